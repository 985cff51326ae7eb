"""The AcidHouseKeeper: ends what nobody heartbeats (transactions.md §1.9)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from hive_acid.ids import LockId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.observe.log import event
from metastore.store.clock import Look
from metastore.store.leases import Calls, LeaseLostError
from metastore.txn.calls import LocksFreed
from metastore.txn.config import TxnConfig
from metastore.txn.states import TIMEOUT_REASON

LOG = logging.getLogger("metastore.services")
MAX_BATCHES = 1000
"""Batches in one run; what is left over is for the next."""
_SLACKS_PER_TIMEOUT, _LEAST_SLACK_MS, _LARGEST_SLACK_MS = 4, 2000, 30_000
"""How far the database's clock may be from where it should be: less than what would let a live transaction time out."""


@dataclass(frozen=True, slots=True)
class HousekeeperRun:
    """What one run did, in numbers: transactions, lock requests, rows that had outlived their transactions, and tables
    whose reserved write ids were given back.
    """

    timed_out_txns: int
    expired_locks: int
    purged_dependents: int
    returned_write_ids: int


class AcidHouseKeeper:
    """Times out transactions and locks.

    Safe to be killed, and to run twice at once: each batch is one database transaction of its own, and repeats its
    condition on rows that it has locked.
    """

    def __init__(
        self,
        db: Calls,
        config: HousekeepingConfig,
        txn_config: TxnConfig,
        locks_freed: LocksFreed = lambda lock_ids: None,
        first_look: Callable[[], Look | None] = lambda: None,
    ) -> None:
        """`first_look` is where the database's clock stood when this server came to run services, another one each time
        it does; None if that is not known.
        """
        self._db = db
        self._first_look = first_look
        self._look: Look | None = None
        self._term: Look | None = None
        self._config = config
        self._txn_config = txn_config
        self._locks_freed = locks_freed

    def run_once(self) -> HousekeeperRun:
        """Do all there is to do now."""
        now_ms = self._settled_ms()
        # Locks first: the end of a transaction may be what the next one waits for, and that one is heartbeated.
        return HousekeeperRun(
            expired_locks=self._expire_locks(now_ms),
            timed_out_txns=self._time_out(now_ms),
            purged_dependents=self._in_batches("purge_dependents"),
            returned_write_ids=self._in_batches("return_write_ids"),
        )

    def _settled_ms(self) -> int:
        """What the database's clock shows. If it has been put forward or back, silence counts from now.

        So too after a time in which nobody could be heard: no server ran, or the database was away.
        """
        term = self._first_look()
        # By that of a new term, the second, all that moved before is settled; heartbeats are rather twice than never.
        looks = [look for look in (self._look, None if term is self._term else term) if look is not None]
        slack_ms = min(max(self._txn_config.timeout_ms // _SLACKS_PER_TIMEOUT, _LEAST_SLACK_MS), _LARGEST_SLACK_MS)
        try:
            for look in looks or (None,):
                expected_ms = None if look is None else look.expected_ms()
                row = self._db.call_one("settle_clock", expected_ms, slack_ms)
                assert row is not None
                at_s, (shown_ms, moved_ms, begun_anew) = time.monotonic(), row
                if moved_ms:
                    what = "clock of the database moved, or nobody could be heard"
                    event(LOG, logging.WARNING, what, ms=moved_ms, begun_anew=begun_anew)
            if moved_ms < 0:
                self._db.call("compaction_settle_clock", shown_ms)
            if moved_ms:
                self._db.call("catalog_settle_clock", shown_ms, moved_ms)  # the last: it must not be repeated
        except LeaseLostError:
            raise
        except Exception:
            if looks:
                self._look, self._term = Look(time.monotonic(), looks[-1].shown_ms), term
            raise
        self._term = term
        self._look = Look(at_s, shown_ms)
        return int(shown_ms)

    def _expire_locks(self, now_ms: int) -> int:
        total: set[LockId] = set()
        batch = self._config.purge_batch
        for _ in range(MAX_BATCHES):
            row = self._db.call_one("expire_locks", self._txn_config.timeout_ms, batch, now_ms)
            assert row is not None
            total |= set(row[0])
            self._locks_freed(row[0])
            if not row[0]:
                break
        return len(total)

    def _time_out(self, now_ms: int) -> int:
        total = 0
        batch = self._config.timeout_batch
        # A heartbeat is put down a little after it has come, and by whatever server it came to.
        delay_ms = self._txn_config.heartbeat_delay_ms
        timeouts = self._txn_config.timeout_ms + delay_ms, self._txn_config.repl_timeout_ms + delay_ms
        for _ in range(MAX_BATCHES):
            row = self._db.call_one("expire_txns", *timeouts, TIMEOUT_REASON, batch, now_ms)
            assert row is not None
            total += len(row[0])
            self._locks_freed(row[1])
            if len(row[0]) < batch:
                break
        return total

    def _in_batches(self, function: str) -> int:
        total = 0
        batch = self._config.purge_batch
        for _ in range(MAX_BATCHES):
            row = self._db.call_one(function, batch)
            assert row is not None
            total += row[0]
            if row[0] < batch:  # each read has left some
                break
        return total
