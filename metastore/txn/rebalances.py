"""Commits that give rows other ids, and who would mind (transactions.md §4.7).

A change that was begun before a rebalance committed, and gets its lock after it, names rows by ids that are no more; it
fails at its commit. Statements of hive-acid outside of blocks look after their lock, and begin anew; so does Hive 4
with exclusive write locks. All others are waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.errors import MetastoreError
from hive_acid.ids import TxnId
from metastore.observe.meters import Meters
from metastore.store.database import Database
from metastore.txn.calls import Commit, CommitCall, LocksFreed
from metastore.txn.names import TablePart
from metastore.txn.states import CONFLICT_REASON


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A transaction that would fail if rows got other ids now; `started_ms` is epoch milliseconds.

    `is_waiting`: it waits for its lock on them.
    """

    txn_id: TxnId
    user: str
    host: str
    agent_info: str
    started_ms: int
    is_waiting: bool


class Rebalances:
    """What is particular about transactions of the type REBALANCE_COMPACTION."""

    def __init__(self, db: Database, locks_freed: LocksFreed, meters: Meters) -> None:
        self._db = db
        self._commit = CommitCall(locks_freed, meters)

    def obstacle(self, target: TablePart, rebalance: TxnId) -> Obstacle | None:
        """Who would fail if the `rebalance` of the target committed now: one that waits, else the oldest."""
        row = self._db.call_one("rebalance_obstacle", rebalance, *target)
        return None if row is None else Obstacle(*row)

    def commit(self, target: TablePart, rebalance: TxnId) -> bool:
        """Commit, unless somebody would fail by it: then False, and nothing is done.

        Raises what `TxnService.commit_txn` raises.
        """
        rows = self._db.call("commit_rebalance", rebalance, *target, CONFLICT_REASON)
        if rows[0][1] == "in_the_way":
            return False
        answer = self._commit.answers([Commit(rebalance, skips_check=False)], rows)[0]
        if isinstance(answer, MetastoreError):
            raise answer
        return True
