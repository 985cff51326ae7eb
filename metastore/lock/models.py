"""What the lock service takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hive_acid.ids import LockId, TxnId
from metastore.lock.states import LockAnswer, LockState, LockType
from metastore.txn.models import TxnOwner
from metastore.txn.states import Operation


class LockComponent(NamedTuple):
    """One thing to lock: a database, a table of it (`table` set) or a partition of that (`partition` set).

    `operation` is what the transaction is going to write there, None for nothing; `dynamic` says that it writes to
    partitions it will name later.
    """

    type: LockType
    db: str
    table: str | None = None
    partition: str | None = None
    operation: Operation | None = None
    dynamic: bool = False


class LockRequest(NamedTuple):
    """Locks to be had all at once; `txn_id` is None for a request outside of transactions.

    In a transaction, a reader with `reader_waits` False and any request with `exclusive_ctas` is refused rather than
    kept waiting.
    """

    components: tuple[LockComponent, ...]
    owner: TxnOwner
    txn_id: TxnId | None = None
    reader_waits: bool = True
    exclusive_ctas: bool = False


class LockResult(NamedTuple):
    """The answer to a request, and the transaction it belongs to.

    `blocker` is the nearest request in the way of one that waits: it cannot be granted before that one is gone. None if
    nothing is known to be in the way, so that it may be granted at the next look.
    `message` says why it was not acquired.
    """

    lock_id: LockId
    answer: LockAnswer
    txn_id: TxnId | None = None
    blocker: LockId | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LockInfo:
    """One component on record; times are epoch milliseconds.

    `txn_id` is 0 outside of transactions; locks inside of one have no heartbeat of their own.
    """

    lock_id: LockId
    component: int
    txn_id: TxnId
    db: str
    table: str | None
    partition: str | None
    type: LockType
    state: LockState
    owner: TxnOwner
    heartbeat_ms: int | None
    acquired_ms: int | None
    blocker_lock: LockId | None
    blocker_component: int | None
