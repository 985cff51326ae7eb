"""Requesting, checking and giving up locks; each a single trip to the database, never waiting there."""

from __future__ import annotations

from dataclasses import replace

from hive_acid.errors import MetaError, TxnAbortedError, TxnOpenError
from hive_acid.ids import LockId, TxnId
from metastore.lock.models import LockComponent, LockInfo, LockRequest, LockResult
from metastore.lock.states import LockAnswer, LockState, LockType
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.txn.names import stored_name, stored_partition
from metastore.txn.service import LocksFreed, no_such_lock, refuse


class LockService:
    """Locks (transactions.md §3)."""

    def __init__(self, db: Database, locks_freed: LocksFreed = lambda databases: None) -> None:
        self._db = db
        self._locks_freed = locks_freed

    def lock(self, request: LockRequest) -> LockResult:
        """Put a request on record and grant it if nothing is in its way.

        Raises TxnAbortedError, NoSuchTxnError (committed or unknown) or MetaError for a request that makes no sense.
        """
        if not request.components:
            raise MetaError("a lock request without components: name what is to be locked")
        components = [_stored(component) for component in request.components]
        owner = request.owner
        # Outside of a transaction a repeated request would wait for the one whose answer was lost.
        call = self._db.call if request.txn_id else self._db.call_once
        row = call(
            "request_lock",
            *(
                request.txn_id or 0,
                owner.user,
                owner.host,
                owner.agent_info,
                request.reader_waits,
                request.exclusive_ctas,
            ),
            [component.type.value for component in components],
            [component.db for component in components],
            [component.table or "" for component in components],
            [component.partition or "" for component in components],
            [component.operation.value if component.operation else None for component in components],
            [component.dynamic for component in components],
        )[0]
        refuse(row[0], request.txn_id)
        lock_id, answer = LockId(row[1]), LockAnswer(row[0])
        if answer is not LockAnswer.NOT_ACQUIRED:
            return LockResult(lock_id, answer, frozenset(component.db for component in components))
        blocked = components[row[2] - 1]
        target = "/".join(part for part in (blocked.db, blocked.table, blocked.partition) if part)
        held = "held" if row[6] == LockState.ACQUIRED.value else "asked for"
        blocker = f"lock {row[3]}, {LockType(row[5]).name} {held} by transaction {row[7]}"
        if request.exclusive_ctas:
            message = f"another CREATE TABLE AS SELECT works on the same table {target}: {blocker}"
        else:
            message = f"no read lock on {target} without waiting: {blocker}"
        return LockResult(lock_id, answer, frozenset(), message)

    def check_lock(self, lock_id: LockId, txn_id: TxnId | None = None) -> LockResult:
        """Heartbeat a request and grant it if nothing is in its way any more.

        Raises NoSuchLockError; or TxnAbortedError if it went with `txn_id`, the transaction it belonged to.
        """
        row = self._db.call_one("check_lock", lock_id, txn_id or 0)
        assert row is not None
        if row[0] == "lock_unknown":
            raise no_such_lock(lock_id)
        if row[0] == "txn_aborted":
            raise TxnAbortedError(f"Transaction txnid:{txn_id} already aborted")
        return LockResult(lock_id, LockAnswer(row[0]), frozenset(row[1]))

    def unlock(self, lock_id: LockId) -> None:
        """Give up a lock outside of transactions, or a request that waits; an unknown id is fine.

        Raises TxnOpenError for a lock that a transaction holds.
        """
        row = self._db.call_one("unlock", lock_id)
        assert row is not None
        self._locks_freed(row[2])
        if row[0] == "held":
            raise TxnOpenError(
                f"lock {lock_id} belongs to transaction {row[1]} and ends with it: commit or abort the transaction"
            )

    def show_locks(
        self, db: str | None = None, table: str | None = None, partition: str | None = None, txn_id: TxnId | None = None
    ) -> list[LockInfo]:
        """All components on record, those held first, narrowed by what is given (transactions.md §3.7)."""
        rows = self._db.call(
            "show_locks",
            stored_name(db) if db else None,
            stored_name(table) if table else None,
            stored_partition(partition) if partition else None,
            txn_id,
        )
        return [
            LockInfo(
                lock_id=row[0],
                component=row[1],
                txn_id=row[2],
                db=row[3],
                table=row[4],
                partition=row[5],
                type=LockType(row[6]),
                state=LockState(row[7]),
                owner=TxnOwner(row[8], row[9], row[10]),
                heartbeat_ms=row[11],
                acquired_ms=row[12],
                blocker_lock=row[13],
                blocker_component=row[14],
            )
            for row in rows
        ]


def _stored(component: LockComponent) -> LockComponent:
    """The component with its names as they are stored.

    Raises MetaError for a partition without its table or a database without a name.
    """
    if not component.db or (component.partition and not component.table):
        raise MetaError("a lock component names a database, a table of it, or a partition of a table")
    return replace(
        component,
        db=stored_name(component.db),
        table=stored_name(component.table) if component.table else None,
        partition=stored_partition(component.partition) if component.partition else None,
    )
