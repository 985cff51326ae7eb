"""One call again and again: heartbeats, open transactions, and the snapshot of a table with many aborted write ids."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

from hive_acid.wire import ttypes
from tests.bench.calls.cycles import DATABASE
from tests.bench.calls.driver import Call, Scenario, Script, ask, connect
from tests.bench.calls.messages import encode, reply_header, success_header

RANGE = 1000
"""Transactions of one call of heartbeat_txn_range, and of one call that opens, allocates or aborts many."""
_EMPTY_SETS = b"\x0e\0\1\x0a\0\0\0\0\x0e\0\2\x0a\0\0\0\0\0\0"

_HEARTBEAT = Call("heartbeat", reply_header("heartbeat"), b"\0")
_HEARTBEAT_RANGE = Call("heartbeat_txn_range", success_header("heartbeat_txn_range") + _EMPTY_SETS)
_GET_OPEN_TXNS = Call("get_open_txns", success_header("get_open_txns"))


@contextlib.contextmanager
def heartbeats(uri: str, connections: int) -> Iterator[Scenario]:
    """Each connection keeps one transaction of its own alive."""
    with open_many(uri, connections) as txns:
        requests = [encode("heartbeat", ttypes.HeartbeatRequest(txnid=txn)) for txn in txns]
        yield _repeated("heartbeat", _HEARTBEAT, lambda number: requests[number])


@contextlib.contextmanager
def heartbeats_of_locks(uri: str, connections: int) -> Iterator[Scenario]:
    """Each connection keeps one transaction of its own alive and names its lock, too."""
    with open_many(uri, connections) as txns, contextlib.closing(connect(uri)) as sock:
        requests = []
        for txn in txns:
            component = ttypes.LockComponent(
                type=ttypes.LockType.SHARED_READ,
                level=ttypes.LockLevel.TABLE,
                dbname=DATABASE,
                tablename="t0",
                operationType=ttypes.DataOperationType.SELECT,
            )
            wanted = ttypes.LockRequest(component=[component], txnid=txn, user="bench", hostname="bench")
            lock = ask(sock, "lock", wanted)[1]
            requests.append(encode("heartbeat", ttypes.HeartbeatRequest(txnid=txn, lockid=lock)))
        yield _repeated("heartbeat lock", _HEARTBEAT, lambda number: requests[number])


@contextlib.contextmanager
def heartbeat_ranges(uri: str, connections: int) -> Iterator[Scenario]:
    """Each connection keeps 1,000 transactions of its own alive by one call."""
    with open_many(uri, connections * RANGE) as txns:
        requests = []
        for first in range(0, len(txns), RANGE):
            txn_range = ttypes.HeartbeatTxnRangeRequest(min=txns[first], max=txns[first + RANGE - 1])
            requests.append(encode("heartbeat_txn_range", txn_range))
        yield _repeated("heartbeat range", _HEARTBEAT_RANGE, lambda number: requests[number])


@contextlib.contextmanager
def open_txns(uri: str, connections: int) -> Iterator[Scenario]:
    """Who is open? Nobody."""
    request = encode("get_open_txns")
    yield _repeated("get_open_txns", _GET_OPEN_TXNS, lambda number: request)


SINGLE_CALLS = {
    "get_open_txns": open_txns,
    "heartbeat": heartbeats,
    "heartbeat-lock": heartbeats_of_locks,
    "heartbeat-range": heartbeat_ranges,
}


def abort_many(uri: str, table: str, write_ids: int) -> None:
    """Give a table so many aborted write ids (a multiple of 1,000), between two that are committed.

    Without a committed write after them a snapshot would leave the aborted ones out, all but the lowest.
    """
    with contextlib.closing(connect(uri)) as sock:
        _commit_one(sock, table)
        for _ in range(0, write_ids, RANGE):
            txns = _open_some(sock, RANGE)
            _allocate(sock, table, txns)
            ask(sock, "abort_txns", ttypes.AbortTxnsRequest(txn_ids=txns))
        _commit_one(sock, table)


def snapshots(uri: str, table: str, by_client: bool) -> Scenario:
    """The valid write ids of one table; the server finds the transactions, or the client lists them as Hive does."""
    call = Call("get_valid_write_ids", success_header("get_valid_write_ids"))
    with contextlib.closing(connect(uri)) as sock:
        txn_list = _valid_txn_list(ask(sock, "get_open_txns")) if by_client else None
    request = ttypes.GetValidWriteIdsRequest(fullTableNames=[f"{DATABASE}.{table}"], validTxnList=txn_list)
    message = encode("get_valid_write_ids", request)
    return _repeated("snapshot", call, lambda number: message)


def _repeated(name: str, call: Call, request: Callable[[int], bytes]) -> Scenario:
    def scripts(number: int) -> Callable[[], Script]:
        message = request(number)

        def script() -> Script:
            yield call, message

        return script

    return Scenario(name, (call,), scripts)


@contextlib.contextmanager
def open_many(uri: str, number: int) -> Iterator[list[int]]:
    """So many transactions, open until the end of the context."""
    with contextlib.closing(connect(uri)) as sock:
        txns: list[int] = []
        while len(txns) < number:
            some = min(RANGE, number - len(txns))
            txns += _open_some(sock, some)
        try:
            yield txns
        finally:
            for first in range(0, number, RANGE):
                ask(sock, "abort_txns", ttypes.AbortTxnsRequest(txn_ids=txns[first : first + RANGE]))


def _open_some(sock: socket.socket, number: int) -> list[int]:
    txns: list[int] = ask(sock, "open_txns", ttypes.OpenTxnRequest(num_txns=number, user="bench", hostname="bench"))[1]
    return txns


def _allocate(sock: socket.socket, table: str, txns: list[int]) -> None:
    request = ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName=table, txnIds=txns)
    ask(sock, "allocate_table_write_ids", request)


def _commit_one(sock: socket.socket, table: str) -> None:
    txns = _open_some(sock, 1)
    _allocate(sock, table, txns)
    ask(sock, "commit_txn", ttypes.CommitTxnRequest(txnid=txns[0]))


def _valid_txn_list(answer: dict[int, Any]) -> str:
    """The list as text, as Hive's client makes it: ``high-water mark:lowest open:open ids:aborted ids``."""
    high_water_mark, txns, bits = answer[1], answer[2], answer[4]
    is_aborted = [bool(bits[n // 8] >> n % 8 & 1) if n // 8 < len(bits) else False for n in range(len(txns))]
    opened = [txn for txn, aborted in zip(txns, is_aborted, strict=True) if not aborted]
    aborted = [txn for txn, gone in zip(txns, is_aborted, strict=True) if gone]
    lowest = min(opened, default=2**63 - 1)
    return f"{high_water_mark}:{lowest}:{','.join(map(str, opened))}:{','.join(map(str, aborted))}"
