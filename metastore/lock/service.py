"""Requesting, checking and giving up locks; each a single round trip to the database, never waiting there.

What is hot is a coroutine on the event loop, ``…_soon``; the method without that suffix waits for it in another
thread.
"""

from __future__ import annotations

from hive_acid.errors import MetaError, TxnOpenError
from hive_acid.ids import LockId, TxnId
from metastore.lock.calls import Check, CheckCall, DeadlockCall, RequestCall, UnlockCall
from metastore.lock.models import LockComponent, LockInfo, LockRequest, LockResult
from metastore.lock.states import LockState, LockType
from metastore.store.database import Database
from metastore.txn.calls import LocksFreed
from metastore.txn.models import TxnOwner
from metastore.txn.names import stored_name, stored_partition


class LockService:
    """Locks (transactions.md §3)."""

    def __init__(self, db: Database, locks_freed: LocksFreed = lambda lock_ids: None) -> None:
        self._db = db
        self._request, self._check = RequestCall(), CheckCall()
        self._unlock, self._deadlock = UnlockCall(locks_freed), DeadlockCall(locks_freed)

    async def lock_soon(self, request: LockRequest) -> LockResult:
        """Put a request on record and grant it if nothing is in its way.

        Raises TxnAbortedError, NoSuchTxnError (committed or unknown) or MetaError for a request that makes no sense,
        such as a write by a read-only transaction.
        """
        if not request.components:
            raise MetaError("a lock request without components: name what is to be locked")
        return await self._db.ask_soon(self._request, stored_request(request))

    def lock(self, request: LockRequest) -> LockResult:
        """See `lock_soon`."""
        return self._db.wait(self.lock_soon(request))

    async def check_soon(self, lock_id: LockId, txn_id: TxnId | None = None, *, beats: bool = True) -> LockResult:
        """Grant a request if nothing is in its way any more; `beats` keeps it or its transaction alive.

        Raises NoSuchLockError; or TxnAbortedError if it went with `txn_id`, the transaction it belonged to.
        """
        return await self._db.ask_soon(self._check, Check(lock_id, txn_id, beats))

    def check_lock(self, lock_id: LockId, txn_id: TxnId | None = None) -> LockResult:
        """See `check_soon`."""
        return self._db.wait(self.check_soon(lock_id, txn_id))

    async def unlock_soon(self, lock_id: LockId) -> None:
        """Give up a lock outside of transactions, or a request that waits; an unknown id is fine.

        Raises TxnOpenError for a lock that a transaction holds.
        """
        holder = await self._db.ask_soon(self._unlock, lock_id)
        if holder is not None:
            raise TxnOpenError(
                f"lock {lock_id} belongs to transaction {holder} and ends with it: commit or abort the transaction"
            )

    def unlock(self, lock_id: LockId) -> None:
        """See `unlock_soon`."""
        self._db.wait(self.unlock_soon(lock_id))

    async def break_deadlock_soon(self, lock_id: LockId) -> bool:
        """If a request waits in a circle, abort the youngest transaction of it; whether anybody's was.

        Requests have an order, that of their ids, in which each waits only for smaller ones, so a single request is
        never part of a deadlock by itself. Transactions that lock in several steps can be: each holds what another
        one waits for. All that is in the way counts, locks and requests in the queue, so what is found is a deadlock
        indeed: it would last until somebody gives up. Locks outside of transactions begin no circle, having no earlier
        lock that could be waited for, and are never aborted; in the queue between two transactions they are seen.
        """
        return await self._db.ask_soon(self._deadlock, lock_id)

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


def stored_request(request: LockRequest) -> LockRequest:
    """The request with all names as they are stored. Raises MetaError for names that make no sense."""
    components = tuple([_stored(component) for component in request.components])
    return request if components == request.components else request._replace(components=components)


def _stored(component: LockComponent) -> LockComponent:
    """The component with its names as they are stored.

    Raises MetaError for a partition without its table or a database without a name.
    """
    if not component.db or (component.partition and not component.table):
        raise MetaError("a lock component names a database, a table of it, or a partition of a table")
    db = stored_name(component.db)
    table = stored_name(component.table) if component.table else None
    partition = stored_partition(component.partition) if component.partition else None
    if (db, table, partition) == (component.db, component.table, component.partition):
        return component  # most names are so already, and a copy costs as much as all of this
    return component._replace(db=db, table=table, partition=partition)
