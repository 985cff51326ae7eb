"""Opening, heartbeating, committing and aborting transactions; each a single round trip to the database.

What is hot is a coroutine on the event loop, ``…_soon``; the method without that suffix waits for it in another
thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hive_acid.errors import MetaError, MetastoreError, NoSuchTxnError
from hive_acid.ids import LockId, TxnId, WriteId
from metastore.observe.meters import Meters
from metastore.store.database import Database
from metastore.txn.calls import Commit, CommitCall, LocksFreed, OpenCall, Opening, SnapshotCall, refusal
from metastore.txn.commits import CommitParameter, stored_parameter
from metastore.txn.config import TxnConfig
from metastore.txn.heartbeats import Heartbeats
from metastore.txn.keeping import Keeping
from metastore.txn.models import (
    UNDECLARED,
    AbortedTxns,
    HeartbeatRange,
    Intent,
    OpenTxns,
    OtherChange,
    TxnInfo,
    TxnOwner,
)
from metastore.txn.names import stored_name, stored_partition
from metastore.txn.rebalances import Rebalances
from metastore.txn.states import ABORT_REASONS, CONFLICT_REASON, NO_REASON, Operation, TxnState, TxnType

READ_ONLY = frozenset({TxnType.READ_ONLY})
MAX_USES = 10_000
"""So many tables all transactions of one opening may name together."""


class TxnService:
    """Transactions (transactions.md §1)."""

    def __init__(
        self,
        db: Database,
        config: TxnConfig,
        locks_freed: LocksFreed = lambda lock_ids: None,
        meters: Meters | None = None,
    ) -> None:
        """`meters` counts those that end here."""
        self._db = db
        self._config = config
        self._locks_freed = locks_freed
        self._meters = meters or Meters()
        self._open, self._commit = OpenCall(config.max_open_txns), CommitCall(locks_freed, self._meters)
        self._snapshots: dict[frozenset[TxnType], SnapshotCall] = {}
        self.heartbeats = Heartbeats(db, config.heartbeat_delay_ms)
        self.keeping = Keeping(db)
        self.rebalances = Rebalances(db, locks_freed, self._meters)

    async def open_soon(
        self, how_many: int, owner: TxnOwner, txn_type: TxnType = TxnType.DEFAULT, intent: Intent = UNDECLARED
    ) -> list[TxnId]:
        """Open transactions, at most the configured batch; their ids are ascending and contiguous.

        Raises MetaError for a bad number, for more tables than `MAX_USES`, and when the limit of open transactions
        would be passed.
        """
        if how_many <= 0:
            raise MetaError(f"the number of transactions to open must be positive, not {how_many}")
        opening = Opening(min(how_many, self._config.max_open_batch), owner, txn_type, intent)
        self.check_opening(opening)
        txn_ids = await self._db.ask_soon(self._open, opening)
        self.keeping.opened(txn_ids)
        return txn_ids

    def check_opening(self, opening: Opening) -> None:
        """Raise MetaError for more tables than `MAX_USES`."""
        how_many, tables = opening.how_many, opening.intent.tables
        if len(tables) * how_many > MAX_USES:
            raise MetaError(
                f"{how_many} transactions that name {len(tables)} tables each are too much for one opening, at"
                f" most {MAX_USES} names go: open fewer at a time"
            )

    def open_txns(
        self, how_many: int, owner: TxnOwner, txn_type: TxnType = TxnType.DEFAULT, intent: Intent = UNDECLARED
    ) -> list[TxnId]:
        """See `open_soon`."""
        return self._db.wait(self.open_soon(how_many, owner, txn_type, intent))

    async def get_open_soon(self, excluded: Collection[TxnType] = READ_ONLY) -> OpenTxns:
        """The present snapshot without the transactions of the excluded types."""
        types = frozenset(excluded)
        call = self._snapshots.get(types)
        if call is None:
            call = self._snapshots[types] = SnapshotCall(types)
        return await self._db.ask_soon(call, None)

    def get_open_txns(self, excluded: Collection[TxnType] = READ_ONLY) -> OpenTxns:
        """See `get_open_soon`."""
        return self._db.wait(self.get_open_soon(excluded))

    def get_open_txns_info(self) -> tuple[TxnId, list[TxnInfo]]:
        """The high-water mark, and all open and aborted transactions, ascending."""
        self._db.wait(self.heartbeats.flush())
        rows = self._db.call("get_open_txns_info")
        infos = [
            TxnInfo(
                txn_id=row[1],
                state=TxnState(row[2]),
                type=TxnType(row[10]),
                owner=TxnOwner(row[3], row[4], row[5]),
                heartbeat_count=row[6],
                abort_reason=row[7],
                started_ms=row[8],
                heartbeat_ms=row[9],
            )
            for row in rows
            if row[1] is not None
        ]
        return TxnId(rows[0][0]), infos

    async def heartbeat_soon(self, txn_id: TxnId | None, lock_id: LockId | None = None) -> None:
        """Keep a transaction or a lock or both alive; None and 0 mean not this one.

        Raises TxnAbortedError, NoSuchTxnError or NoSuchLockError; the transaction is not kept alive then.
        """
        if txn_id and lock_id:
            await self.heartbeats.beat_both(txn_id, lock_id)
        elif txn_id:
            await self.heartbeats.beat(txn_id)
        elif lock_id:
            await self.heartbeats.beat_lock(lock_id)

    def heartbeat(self, txn_id: TxnId | None, lock_id: LockId | None = None) -> None:
        """See `heartbeat_soon`."""
        self._db.wait(self.heartbeat_soon(txn_id, lock_id))

    def check_open(self, txn_id: TxnId) -> None:
        """Raise TxnAbortedError or NoSuchTxnError if a transaction is not open; this is no heartbeat."""
        self._db.wait(self.heartbeats.check(txn_id))

    async def heartbeat_range_soon(self, first: TxnId, last: TxnId) -> HeartbeatRange:
        """Keep all open ones of ``first..last`` alive.

        Raises MetaError for a range that is too long.
        """
        if last < first:
            return HeartbeatRange(set(), set())
        if last - first >= self._config.max_heartbeat_range:
            raise MetaError(
                f"{last - first + 1} transactions are too many for one heartbeat, at most"
                f" {self._config.max_heartbeat_range} go: send several"
            )
        return await self.heartbeats.beat_range(first, last)

    def heartbeat_txn_range(self, first: TxnId, last: TxnId) -> HeartbeatRange:
        """See `heartbeat_range_soon`."""
        return self._db.wait(self.heartbeat_range_soon(first, last))

    def abort_txns(self, txn_ids: Sequence[TxnId], error_code: int | None = None) -> AbortedTxns:
        """Abort those that are open; unknown and finished ones are passed over.

        Raises NoSuchTxnError, the one error that clients are told of, for an empty list.
        """
        if not txn_ids:
            raise NoSuchTxnError("the list of transactions to abort is empty")
        reason = ABORT_REASONS.get(error_code or 0, NO_REASON)
        row = self._db.call_one("abort_txns", list(txn_ids), reason)
        assert row is not None
        self._locks_freed(row[3])
        if row[0]:
            self._meters.aborted.inc(len(row[0]))
        return AbortedTxns(row[0], row[1], row[2])

    def abort_txn(self, txn_id: TxnId, error_code: int | None = None) -> None:
        """Abort one transaction; one that is aborted already is fine.

        Raises NoSuchTxnError if it is committed or unknown.
        """
        done = self.abort_txns([txn_id], error_code)
        if not done.aborted and not done.aborted_before:
            refuse("txn_committed" if done.committed else "txn_unknown", txn_id)

    async def commit_soon(self, txn_id: TxnId, skip_conflict_check: bool = False) -> None:
        """Commit a transaction; the first to commit of two that changed the same data wins (transactions.md §1.6).

        One that is committed already is fine. Raises TxnAbortedError if it is aborted, before or by a write conflict,
        NoSuchTxnError if it is unknown.
        """
        await self._db.ask_soon(self._commit, Commit(txn_id, skip_conflict_check))
        self.heartbeats.ended((txn_id,))
        self.keeping.ended(txn_id)

    def commit_txn(self, txn_id: TxnId, skip_conflict_check: bool = False) -> None:
        """See `commit_soon`."""
        self._db.wait(self.commit_soon(txn_id, skip_conflict_check))

    def commit_rows(
        self, txn_id: TxnId, checked: Collection[TxnId], parameter: CommitParameter | None = None
    ) -> list[OtherChange]:
        """Commit as `commit_soon` a transaction whose owner knows that those `checked` have changed other rows.

        If others have changed the same data, too, nothing is done, and what they have changed is returned: the
        transaction is still open. What no owner can know is a conflict, such as that a rebalance has renamed all rows.

        The commit gives a table's `parameter` its value, too. Raises MetaError if it cannot: then the transaction is
        still open.
        """
        if parameter is not None:
            parameter.refuse_unfit(txn_id)
        rows = self._db.call("commit_rows", txn_id, list(checked), CONFLICT_REASON, *stored_parameter(parameter))
        if parameter is not None:
            parameter.refuse(txn_id, rows)
        if unchecked := [row for row in rows if row[1] == "unchecked"]:
            return [OtherChange(row[3], row[4], row[5], row[8], row[11]) for row in unchecked]
        (answer,) = self._commit.answers([Commit(txn_id, skips_check=False)], [row[:11] for row in rows])
        if isinstance(answer, MetastoreError):
            raise answer
        self.heartbeats.ended((txn_id,))
        self.keeping.ended(txn_id)
        return []

    def add_dynamic_partitions(
        self,
        txn_id: TxnId,
        write_id: WriteId,
        db: str,
        table: str,
        partitions: Collection[str],
        operation: Operation = Operation.UPDATE,
        *,
        also_whole_table: bool = False,
    ) -> None:
        """Name the partitions a transaction wrote to; they take the place of its claim on the whole table.

        With `also_whole_table` that stays.

        Raises TxnAbortedError, or NoSuchTxnError if the transaction is committed or unknown.
        """
        names = [stored_partition(name) for name in partitions]
        row = self._db.call_one(
            "add_dynamic_partitions",
            *(txn_id, write_id, stored_name(db), stored_name(table), names, operation.value, also_whole_table),
        )
        assert row is not None
        refuse(row[0], txn_id)

    def get_latest_txnid_in_conflict(self, txn_id: TxnId) -> TxnId:
        """The largest transaction whose commit this one's changes would collide with, 0 if there is none."""
        row = self._db.call_one("get_latest_txnid_in_conflict", txn_id)
        assert row is not None
        return TxnId(row[0])


def refuse(outcome: str, txn_id: TxnId | None) -> None:
    """Raise the error that an outcome of a stored function stands for; ``ok`` and the like raise nothing."""
    if outcome.startswith("txn_"):
        raise refusal(outcome, txn_id)
