"""A transaction as its client lives it: snapshot, locks, write ids, and one end on every path.

Order matters (transactions.md §3.9): the snapshot is taken before a write id is allocated, so the write id is larger
than that of every row the transaction can see, and its deletes apply to them in every reader.
"""

from __future__ import annotations

import enum
import logging
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from hive_acid.errors import (
    HiveAcidError,
    LockTimeoutError,
    MetastoreUnreachableError,
    NoSuchTxnError,
    TransactionClosedError,
    TransactionExpiredError,
    TxnAbortedError,
    WriteConflictError,
)
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId, WriteId
from hive_acid.wire import table_name, ttypes

if TYPE_CHECKING:
    from hive_acid.connection import Connection

LOG = logging.getLogger(__name__)
CHECK_LOCK_PAUSE_S = 0.05


class TransactionKind(enum.Enum):
    """What the transaction may do; READ takes no write ids and commits without a trace."""

    WRITE = "DEFAULT"
    READ = "READ_ONLY"


class TransactionState(enum.Enum):
    """Where a transaction stands, as far as its client knows."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"


class Operation(enum.Enum):
    """What a write does to existing rows; decides the commit-time conflict check (transactions.md §1.6)."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


def read_component(database: str, table: str) -> Any:
    """The lock of a reader: it keeps the table from being dropped, and no writer waits for it."""
    return ttypes.LockComponent(
        type=ttypes.LockType.SHARED_READ,
        level=ttypes.LockLevel.TABLE,
        dbname=database,
        tablename=table,
        operationType=ttypes.DataOperationType.SELECT,
        isTransactional=True,
    )


def write_component(
    database: str, table: str, operation: Operation, *, partition: str | None = None, dynamic: bool = False
) -> Any:
    """The lock of a writer: beside other writers (the first to commit wins), never beside a drop.

    `dynamic` says that the partitions are not known yet: they follow by `Transaction.add_dynamic_partitions`.
    """
    insert = operation is Operation.INSERT
    return ttypes.LockComponent(
        type=ttypes.LockType.SHARED_READ if insert else ttypes.LockType.SHARED_WRITE,
        level=ttypes.LockLevel.PARTITION if partition else ttypes.LockLevel.TABLE,
        dbname=database,
        tablename=table,
        partitionname=partition,
        operationType=getattr(ttypes.DataOperationType, operation.value),
        isTransactional=True,
        isDynamicPartitionWrite=dynamic,
    )


class Transaction:
    """An open transaction; make one with `Connection.begin`, use it as a context manager.

    Leaving the ``with`` block commits, or aborts when an error leaves it. Its methods raise TransactionClosedError
    after its end and TransactionExpiredError when the metastore gave it up for want of heartbeats.
    """

    def __init__(
        self, connection: Connection, txn_id: TxnId, snapshot: ValidTxnList, kind: TransactionKind, lock_timeout_ms: int
    ) -> None:
        self.id = txn_id
        self.snapshot = snapshot
        self.kind = kind
        self.state = TransactionState.OPEN
        self._connection = connection
        self._lock_timeout_ms = lock_timeout_ms
        self._expired: str | None = None
        self._statements = 0
        self._read: dict[str, ValidWriteIdList] = {}
        self._written: dict[str, WriteId] = {}
        self._undo: list[Callable[[], None]] = []

    @classmethod
    def begin(cls, connection: Connection, kind: TransactionKind, *, lock_timeout_ms: int) -> Transaction:
        """Open a transaction and take its snapshot."""
        request = ttypes.OpenTxnRequest(
            num_txns=1,
            user=connection.user,
            hostname=socket.gethostname(),
            agentInfo="hive-acid",
            txn_type=getattr(ttypes.TxnType, kind.value),
        )
        txn_id = TxnId(connection.call("open_txns", request).txn_ids[0])
        try:
            answer = connection.call("get_open_txns")
            snapshot = ValidTxnList.from_open_txns(
                answer.txn_high_water_mark, answer.open_txns, answer.abortedBits, own_txn_id=txn_id
            )
            transaction = cls(connection, txn_id, snapshot, kind, lock_timeout_ms)
            connection.heartbeats.add(transaction)
        except BaseException:
            connection.call("abort_txn", ttypes.AbortTxnRequest(txnid=txn_id))
            raise
        return transaction

    # --- reading -------------------------------------------------------------------------------

    def write_ids(self, database: str, table: str) -> ValidWriteIdList:
        """The table's write ids that this transaction sees; the same at every call, its own write included."""
        name = table_name(database, table)
        if name not in self._read:
            self._check_open()
            request = ttypes.GetValidWriteIdsRequest(fullTableNames=[name], validTxnList=str(self.snapshot))
            found = self._call("get_valid_write_ids", request).tblValidWriteIds[0]
            self._read[name] = _valid_write_ids(found)
        return self._read[name]

    # --- writing -------------------------------------------------------------------------------

    def write_id(self, database: str, table: str) -> WriteId:
        """This transaction's write id for the table, allocated at the first call."""
        name = table_name(database, table)
        if name not in self._written:
            self._check_open()
            request = ttypes.AllocateTableWriteIdsRequest(
                dbName=database.lower(), tableName=table.lower(), txnIds=[self.id]
            )
            answer = self._call("allocate_table_write_ids", request)
            self._written[name] = WriteId(answer.txnToWriteIds[0].writeId)
            self._read.pop(name, None)  # asked again under the same snapshot, the list includes our own write
        return self._written[name]

    def next_statement_id(self) -> int:
        """0, 1, 2, … within the transaction: rows of a later statement may be deletes of an earlier one's."""
        statement = self._statements
        self._statements += 1
        return statement

    def add_dynamic_partitions(self, database: str, table: str, names: Sequence[str], operation: Operation) -> None:
        """Tell the metastore which partitions a dynamic write has touched; it checks conflicts on them at commit.

        Until it is told, by an empty list if need be, the whole table counts as touched.
        """
        self._check_open()
        self._call(
            "add_dynamic_partitions",
            ttypes.AddDynamicPartitions(
                txnid=self.id,
                writeid=self.write_id(database, table),
                dbname=database,
                tablename=table,
                partitionnames=list(names),
                operationType=getattr(ttypes.DataOperationType, operation.value),
            ),
        )

    def lock(self, *components: Any) -> None:
        """Take locks, all or none; waits while others hold them.

        Raises LockTimeoutError after the transaction's ``lock_timeout_ms``, with nothing left waiting.
        """
        self._check_open()
        deadline = time.monotonic() + self._lock_timeout_ms / 1000
        request = ttypes.LockRequest(
            component=list(components),
            txnid=self.id,
            user=self._connection.user,
            hostname=socket.gethostname(),
            agentInfo="hive-acid",
        )
        answer = self._call("lock", request)
        while answer.state == ttypes.LockState.WAITING:
            if time.monotonic() >= deadline:
                self._call("unlock", ttypes.UnlockRequest(lockid=answer.lockid))
                wanted = ", ".join(f"{c.dbname}.{c.tablename}" for c in components)
                raise LockTimeoutError(
                    f"the lock on {wanted} was not free within {self._lock_timeout_ms} ms: another transaction holds "
                    f"it (SHOW LOCKS, or `metastore locks`, tells which)"
                )
            time.sleep(CHECK_LOCK_PAUSE_S)
            answer = self._call("check_lock", ttypes.CheckLockRequest(lockid=answer.lockid, txnid=self.id))
        if answer.state != ttypes.LockState.ACQUIRED:
            raise LockTimeoutError(answer.errorMessage or "the lock was refused")

    def check_alive(self) -> None:
        """Ask the metastore whether the transaction is open still. Raises TransactionExpiredError if not."""
        self._check_open()
        try:
            self.heartbeat()
        except (TxnAbortedError, NoSuchTxnError):
            self._check_open()

    def on_abort(self, undo: Callable[[], None]) -> None:
        """Call `undo` if the transaction aborts, the last given first: it removes what was written."""
        self._undo.append(undo)

    # --- the end -------------------------------------------------------------------------------

    def heartbeat(self) -> None:
        """Tell the metastore that this transaction lives."""
        if self.state is TransactionState.OPEN:
            self._call("heartbeat", ttypes.HeartbeatRequest(txnid=self.id))

    def commit(self) -> None:
        """Make all writes visible at once.

        Raises WriteConflictError when another transaction changed the same data first: this one is then aborted and
        its files are removed. When the answer is lost, MetastoreUnreachableError: the outcome is then unknown, and no
        file is touched.
        """
        self._check_open()
        try:
            self._connection.call(
                "commit_txn", ttypes.CommitTxnRequest(txnid=self.id, exclWriteEnabled=False, txn_type=self._wire_type())
            )
        except TxnAbortedError as error:
            self._end(TransactionState.ABORTED)
            self._run_undo()
            if "write conflict" in str(error):
                raise WriteConflictError(
                    f"{error}. Nothing was written; run the statement again on fresh data."
                ) from None
            raise TransactionExpiredError(f"transaction {self.id} was aborted before its commit: {error}") from None
        except NoSuchTxnError as error:
            self._end(TransactionState.ABORTED)
            raise TransactionExpiredError(f"transaction {self.id} cannot commit: {error}") from None
        except MetastoreUnreachableError:
            self._end(TransactionState.UNKNOWN)
            raise
        self._end(TransactionState.COMMITTED)

    def abort(self) -> None:
        """Undo everything; allowed again and again, and after the metastore's own abort."""
        if self.state is TransactionState.ABORTED:
            return
        if self.state is not TransactionState.OPEN:
            raise TransactionClosedError(f"transaction {self.id} cannot be aborted: it is {self.state.value}")
        self._end(TransactionState.ABORTED)
        self._run_undo()
        try:
            self._connection.call("abort_txn", ttypes.AbortTxnRequest(txnid=self.id, txn_type=self._wire_type()))
        except NoSuchTxnError as error:
            raise TransactionClosedError(f"transaction {self.id} cannot be aborted: {error}") from None
        except MetastoreUnreachableError as error:
            LOG.warning("transaction %d stays open until its time-out: %s", self.id, error)

    def end_later(self) -> None:
        """End a read-only transaction from a finaliser: soon, on the heartbeat thread."""
        self._connection.heartbeats.end_later(self)

    def _wire_type(self) -> int:
        kind: int = getattr(ttypes.TxnType, self.kind.value)
        return kind

    def _end(self, state: TransactionState) -> None:
        self.state = state
        self._connection.heartbeats.remove(self)

    def _run_undo(self) -> None:
        while self._undo:
            undo = self._undo.pop()
            try:
                undo()
            except (OSError, HiveAcidError) as error:
                LOG.warning("files of aborted transaction %d are left for the Cleaner: %s", self.id, error)

    def _call(self, method: str, request: Any) -> Any:
        try:
            return self._connection.call(method, request)
        except (TxnAbortedError, NoSuchTxnError) as error:
            self._expired = str(error)
            if method == "heartbeat":
                raise
            raise TransactionExpiredError(
                f"transaction {self.id} has been ended by the metastore ({error}): begin another one"
            ) from None

    def _check_open(self) -> None:
        if self.state is not TransactionState.OPEN:
            raise TransactionClosedError(f"transaction {self.id} is {self.state.value}: begin another one")
        if self._expired is not None:
            raise TransactionExpiredError(
                f"transaction {self.id} has been ended by the metastore ({self._expired}): begin another one"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if self.state is not TransactionState.OPEN:
            return
        if error is None:
            self.commit()
        else:
            self.abort()


def _valid_write_ids(found: Any) -> ValidWriteIdList:
    return ValidWriteIdList.from_invalid(
        found.fullTableName,
        found.writeIdHighWaterMark,
        found.invalidWriteIds or [],
        found.abortedBits or b"",
        found.minOpenWriteId,
    )
