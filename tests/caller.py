"""A raw Thrift client with short verbs: one named person, one socket, what the tests of the wire speak.

Locks are written ``"w db/t/p=1 u"``: the letter of the type (r, w, x, e), what to lock, and the letter of what will be
done to it (s select, i insert, u update, d delete, n nothing with transactions; s where it is left out).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TClient, TException, args_to_kwargs
from thriftpy2.transport import TCyBufferedTransport, TSocket

from hive_acid.format.snapshot import ValidTxnList
from hive_acid.wire import service, ttypes

LOCK_TYPES = {
    "r": ttypes.LockType.SHARED_READ,
    "w": ttypes.LockType.SHARED_WRITE,
    "x": ttypes.LockType.EXCL_WRITE,
    "e": ttypes.LockType.EXCLUSIVE,
}
OPERATIONS = {
    "s": ttypes.DataOperationType.SELECT,
    "i": ttypes.DataOperationType.INSERT,
    "u": ttypes.DataOperationType.UPDATE,
    "d": ttypes.DataOperationType.DELETE,
    "n": ttypes.DataOperationType.NO_TXN,
}
STATES = {
    ttypes.LockState.ACQUIRED: "A",
    ttypes.LockState.WAITING: "W",
    ttypes.LockState.NOT_ACQUIRED: "N",
}
INTERNAL = "internal"
"""Kind of an error that the method does not declare (transactions.md §1.10)."""


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """An error reply: `kind` is the name of the Thrift exception, or `INTERNAL`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message

    def require(self, kind: str, *words: str) -> None:
        """It must be of this kind and say all of this."""
        assert self.kind == kind, self
        assert all(word in self.message for word in words), self


@contextmanager
def refused(kind: str, pattern: str = "") -> Iterator[None]:
    """The body must end with this error, and its message match."""
    with pytest.raises(Refused) as caught:
        yield
    assert caught.value.kind == kind, caught.value
    assert re.search(pattern, caught.value.message), caught.value


class Caller:
    """One client."""

    def __init__(self, uri: str, name: str = "ann", timeout_ms: int = 30_000) -> None:
        self.name = name
        address = urlsplit(uri)
        self._socket = TSocket(address.hostname, address.port, socket_timeout=timeout_ms)
        self._socket.open()
        self._client = TClient(service, TCyBinaryProtocol(TCyBufferedTransport(self._socket)))
        self._pending = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, method: str, *args: Any) -> None:
        """Send a call without waiting for its answer."""
        spec = getattr(service, f"{method}_args").thrift_spec
        self._client._send(method, **args_to_kwargs(spec, *args))
        self._pending = method

    def receive(self) -> Any:
        """The answer to the call sent last. Raises Refused."""
        try:
            return self._client._recv(self._pending)
        except TApplicationException as error:
            raise Refused(INTERNAL, error.message or "") from None
        except TException as error:
            raise Refused(type(error).__name__, getattr(error, "message", None) or "") from None

    def call(self, method: str, *args: Any) -> Any:
        """One call. Raises Refused."""
        self.send(method, *args)
        return self.receive()

    # --- transactions --------------------------------------------------------------------------

    def open(self, number: int = 1, **fields: Any) -> list[int]:
        request = ttypes.OpenTxnRequest(num_txns=number, user=self.name, hostname="host1", **fields)
        return list(self.call("open_txns", request).txn_ids)

    def begin(self, **fields: Any) -> int:
        return self.open(1, **fields)[0]

    def begin_statement(
        self, *wanted: str, seen: Sequence[str] = (), written: Sequence[str] = (), **fields: Any
    ) -> Any:
        """The answer of hive_acid_begin; `fields` are the opening's."""
        return self.call("hive_acid_begin", self.beginning(*wanted, seen=seen, written=written, **fields))

    def beginning(self, *wanted: str, seen: Sequence[str] = (), written: Sequence[str] = (), **fields: Any) -> Any:
        opening = ttypes.OpenTxnRequest(num_txns=1, user=self.name, hostname="host1", **fields)
        components = [component(text) for text in wanted]
        return ttypes.HiveAcidBeginRequest(open=opening, component=components, seen=list(seen), written=list(written))

    def commit(self, txn_id: int, **fields: Any) -> None:
        """Without `exclWriteEnabled` unless it is given."""
        self.call("commit_txn", ttypes.CommitTxnRequest(txnid=txn_id, **fields))

    def abort(self, txn_id: int, **fields: Any) -> None:
        self.call("abort_txn", ttypes.AbortTxnRequest(txnid=txn_id, **fields))

    def abort_all(self, *txn_ids: int) -> None:
        self.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=list(txn_ids)))

    def heartbeat(self, txn_id: int | None = None, lock_id: int | None = None) -> None:
        self.call("heartbeat", ttypes.HeartbeatRequest(txnid=txn_id, lockid=lock_id))

    def heartbeat_range(self, first: int, last: int) -> tuple[set[int], set[int]]:
        """The aborted ones and those that are not there."""
        answer = self.call("heartbeat_txn_range", ttypes.HeartbeatTxnRangeRequest(min=first, max=last))
        return set(answer.aborted), set(answer.nosuch)

    def snapshot(self, own_txn_id: int = 0) -> ValidTxnList:
        found = self.call("get_open_txns")
        return ValidTxnList.from_open_txns(
            found.txn_high_water_mark, found.open_txns, found.abortedBits or b"", own_txn_id
        )

    def info(self) -> dict[int, Any]:
        """All open and aborted transactions by id."""
        return {one.id: one for one in self.call("get_open_txns_info").open_txns}

    # --- write ids -----------------------------------------------------------------------------

    def allocate(self, table: str, *txn_ids: int, **fields: Any) -> list[tuple[int, int]]:
        """(transaction, write id) of ``db.table``."""
        db, _, name = table.partition(".")
        request = ttypes.AllocateTableWriteIdsRequest(dbName=db, tableName=name, txnIds=list(txn_ids), **fields)
        return [(one.txnId, one.writeId) for one in self.call("allocate_table_write_ids", request).txnToWriteIds]

    def write_ids(self, *tables: str, snapshot: object = None, write_id: int | None = None) -> Any:
        """One answer per table; that of the first alone if only one is asked for."""
        request = ttypes.GetValidWriteIdsRequest(
            fullTableNames=list(tables), validTxnList=None if snapshot is None else str(snapshot), writeId=write_id
        )
        found = self.call("get_valid_write_ids", request).tblValidWriteIds
        return found if len(tables) > 1 else found[0]

    def max_write_id(self, table: str) -> int:
        db, _, name = table.partition(".")
        request = ttypes.MaxAllocatedTableWriteIdRequest(dbName=db, tableName=name)
        return int(self.call("get_max_allocated_table_write_id", request).maxWriteId)

    def add_partitions(
        self, txn_id: int, write_id: int, table: str, *partitions: str, operation: str | None = "u"
    ) -> None:
        db, _, name = table.partition(".")
        request = ttypes.AddDynamicPartitions(
            txnid=txn_id,
            writeid=write_id,
            dbname=db,
            tablename=name,
            partitionnames=list(partitions),
            operationType=OPERATIONS[operation] if operation else None,
        )
        self.call("add_dynamic_partitions", request)

    # --- locks ---------------------------------------------------------------------------------

    def lock(self, *wanted: str, txn: int | None = None, **fields: Any) -> Any:
        return self.call("lock", self.lock_request(*wanted, txn=txn, **fields))

    def lock_request(self, *wanted: str, txn: int | None = None, **fields: Any) -> Any:
        components = [component(text) for text in wanted]
        return ttypes.LockRequest(component=components, txnid=txn, user=self.name, hostname="host1", **fields)

    def asks(self, *wanted: str, txn: int | None = None, **fields: Any) -> str:
        """`lock`, and only the letter of its answer: A acquired, W waiting, N not acquired."""
        return STATES[self.lock(*wanted, txn=txn, **fields).state]

    def check(self, lock_id: int, txn: int | None = None) -> str:
        """`check_lock`, and only the letter of its answer."""
        request = ttypes.CheckLockRequest(lockid=lock_id, txnid=txn)
        return STATES[self.call("check_lock", request).state]

    def unlock(self, lock_id: int) -> None:
        self.call("unlock", ttypes.UnlockRequest(lockid=lock_id))

    def locks(self, **filters: Any) -> list[Any]:
        return list(self.call("show_locks", ttypes.ShowLocksRequest(**filters)).locks or [])

    def write(self, txn_id: int, target: str, operation: str = "u", **fields: Any) -> int:
        """Declare a write as a client does: allocate, then a shared-write lock; the write id."""
        db, table = target.split("/")[:2]
        ((_, write_id),) = self.allocate(f"{db}.{table}", txn_id)
        wanted = component(f"w {target} {operation}", **fields)
        request = ttypes.LockRequest(component=[wanted], txnid=txn_id, user=self.name, hostname="host1")
        assert STATES[self.call("lock", request).state] == "A"
        return write_id


def component(text: str, **fields: Any) -> Any:
    """The lock component of a text such as ``"w db/t/p=1 u"``."""
    letter, target, *operation = text.split()
    names: list[str | None] = [*target.split("/", 2), None, None]
    level = ttypes.LockLevel.PARTITION if names[2] else ttypes.LockLevel.TABLE if names[1] else ttypes.LockLevel.DB
    return ttypes.LockComponent(
        type=LOCK_TYPES[letter],
        level=level,
        dbname=names[0],
        tablename=names[1],
        partitionname=names[2],
        operationType=OPERATIONS[operation[0] if operation else "s"],
        **fields,
    )
