"""What a connection does in one round: the cycles that are measured, call by call."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any

from hive_acid.wire import ttypes
from tests.bench.calls.driver import Call, Scenario, Script, Scripts, ask, connect
from tests.bench.calls.messages import ID_BYTES, MARK, cut, encode, reply_header, success_header

DATABASE = "bench"
TABLES, PARTITIONS = 10, 100
"""A cycle takes one partition of the thousand at random."""
_LIST_OF_ONE = b"\x0f\0\1%c\0\0\0\1"
_I64, _STRUCT = 10, 12
_ACQUIRED = b"\x08\0\2\0\0\0\1\0\0"

OPEN = Call("open_txns", success_header("open_txns") + _LIST_OF_ONE % _I64)
ALLOCATE = Call(
    "allocate_table_write_ids", success_header("allocate_table_write_ids") + _LIST_OF_ONE % _STRUCT, b"\0\0\0"
)
LOCK = Call("lock", success_header("lock"), _ACQUIRED)
HEARTBEAT = Call("heartbeat", reply_header("heartbeat"), b"\0")
COMMIT = Call("commit_txn", reply_header("commit_txn"), b"\0")
BEGIN = Call(
    "hive_acid_begin",
    success_header("hive_acid_begin") + b"\x0a\0\1",
    b"\0\0",
    _ACQUIRED[:-1] + b"\x0f\0\6",  # the end of its lock, then what it writes to
)
VALID = Call("get_valid_write_ids", success_header("get_valid_write_ids"))
TXN_AT = len(OPEN.prefix)
"""Where the answer to open_txns has the id."""
BEGUN_AT = len(BEGIN.prefix)
"""Where that to hive_acid_begin has it."""
ABORTED_AT = BEGUN_AT + ID_BYTES + 3
"""Where it has the version of the aborted transactions."""


def prepare(uri: str) -> None:
    """Allocate the first write id of every table, one after the other.

    The Java metastore 4.0.1 fails when two clients do that at the same time for one table.
    """
    with contextlib.closing(connect(uri)) as sock:
        for table in range(TABLES):
            request = ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="bench")
            (txn,) = ask(sock, "open_txns", request)[1]
            first = ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName=f"t{table}", txnIds=[txn])
            ask(sock, "allocate_table_write_ids", first)
            ask(sock, "commit_txn", ttypes.CommitTxnRequest(txnid=txn))


def create_tables(uri: str) -> None:
    """Make the tables, of whoever measures: where rights are enforced it asks for those of an owner."""
    with contextlib.closing(connect(uri)) as sock:
        ask(sock, "set_ugi", "root", [])
        ask(
            sock,
            "create_database",
            ttypes.Database(name=DATABASE, ownerName="bench", ownerType=ttypes.PrincipalType.USER),
        )
        ask(sock, "set_ugi", "bench", [])
        descriptor = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("id", "int")],
            inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
            serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
        )
        for table in range(TABLES):
            made = ttypes.Table(
                tableName=f"t{table}",
                dbName=DATABASE,
                owner="bench",
                sd=descriptor,
                partitionKeys=[ttypes.FieldSchema("p", "int")],
                parameters={"transactional": "true"},
                tableType="MANAGED_TABLE",
            )
            ask(sock, "create_table", made)


def open_request(kind: Any = None, txns: int = 1) -> bytes:
    """A call of open_txns."""
    return encode("open_txns", ttypes.OpenTxnRequest(num_txns=txns, user="bench", hostname="bench", txn_type=kind))


def lock_request(table: str, partition: str, kind: Any, operation: Any) -> list[bytes]:
    """The pieces of a call of lock, for one partition and the transaction to be put between them."""
    component = [_component(table, partition, kind, operation)]
    return cut("lock", ttypes.LockRequest(component=component, txnid=MARK, user="bench", hostname="bench"))


def _component(table: str, partition: str, kind: Any, operation: Any) -> Any:
    return ttypes.LockComponent(
        type=kind,
        level=ttypes.LockLevel.PARTITION,
        dbname=DATABASE,
        tablename=table,
        partitionname=partition,
        operationType=operation,
        isTransactional=True,
    )


def begin_request(table: str, partition: str, kind: Any, operation: Any, *, writes: bool) -> list[bytes]:
    """The pieces of a call of hive_acid_begin as our client makes it for a statement on one partition, for the version
    of the aborted transactions that it knows to be put between them.
    """
    name = f"{DATABASE}.{table}"
    opening = ttypes.OpenTxnRequest(
        num_txns=1,
        user="bench",
        hostname="bench",
        txn_type=None if writes else ttypes.TxnType.READ_ONLY,
        tables=[name],
        mayBeginAgain=writes,
    )
    request = ttypes.HiveAcidBeginRequest(
        open=opening,
        component=[_component(table, partition, kind, operation)],
        seen=[name],
        written=[name] if writes else [],
        knownAborted=MARK,
    )
    return cut("hive_acid_begin", request)


def _places() -> list[tuple[str, str]]:
    return [(f"t{table}", f"p={partition}") for table in range(TABLES) for partition in range(PARTITIONS)]


def allocation(table: str) -> list[bytes]:
    """The pieces of a call of allocate_table_write_ids, for the transaction to be put between them."""
    request = ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName=table, txnIds=[MARK])
    return cut("allocate_table_write_ids", request)


_KIND, _OPERATION = ttypes.LockType, ttypes.DataOperationType
OPEN_WRITE = open_request()
_OPEN_READ = open_request(ttypes.TxnType.READ_ONLY)
_HEARTBEAT = cut("heartbeat", ttypes.HeartbeatRequest(txnid=MARK))
_COMMIT = cut("commit_txn", ttypes.CommitTxnRequest(txnid=MARK))
COMMIT_CHECKED = cut("commit_txn", ttypes.CommitTxnRequest(txnid=MARK, exclWriteEnabled=False))
UPDATES = [(allocation(t), lock_request(t, p, _KIND.SHARED_WRITE, _OPERATION.UPDATE)) for t, p in _places()]
_INSERTS = [(allocation(t), lock_request(t, p, _KIND.SHARED_READ, _OPERATION.INSERT)) for t, p in _places()]
_READS = [
    (
        encode("get_valid_write_ids", ttypes.GetValidWriteIdsRequest(fullTableNames=[f"{DATABASE}.{t}"])),
        lock_request(t, p, _KIND.SHARED_READ, _OPERATION.SELECT),
    )
    for t, p in _places()
]


def _write(number: int) -> Callable[[], Script]:
    """Open, allocate, lock, heartbeat, commit: an UPDATE of one partition, whose commit checks for conflicts."""
    choose = random.Random(number).choice

    def script() -> Script:
        txn = (yield OPEN, OPEN_WRITE)[TXN_AT : TXN_AT + ID_BYTES]
        write_id, lock = choose(UPDATES)
        yield ALLOCATE, txn.join(write_id)
        yield LOCK, txn.join(lock)
        yield HEARTBEAT, txn.join(_HEARTBEAT)
        yield COMMIT, txn.join(COMMIT_CHECKED)

    return script


def _insert(number: int) -> Callable[[], Script]:
    """Open, allocate, lock, commit: an INSERT into one partition."""
    choose = random.Random(number).choice

    def script() -> Script:
        txn = (yield OPEN, OPEN_WRITE)[TXN_AT : TXN_AT + ID_BYTES]
        write_id, lock = choose(_INSERTS)
        yield ALLOCATE, txn.join(write_id)
        yield LOCK, txn.join(lock)
        yield COMMIT, txn.join(_COMMIT)

    return script


def _read(number: int) -> Callable[[], Script]:
    """Open read-only, snapshot, shared lock, commit: a SELECT of one partition."""
    choose = random.Random(number).choice

    def script() -> Script:
        txn = (yield OPEN, _OPEN_READ)[TXN_AT : TXN_AT + ID_BYTES]
        snapshot, lock = choose(_READS)
        yield VALID, snapshot
        yield LOCK, txn.join(lock)
        yield COMMIT, txn.join(_COMMIT)

    return script


def _begun(beginnings: Sequence[list[bytes]], commit: list[bytes], *, beats: bool) -> Scripts:
    """Begin, heartbeat or not, commit: the same as our client asks for it."""

    def scripts(number: int) -> Callable[[], Script]:
        choose = random.Random(number).choice
        known = bytes(ID_BYTES)

        def script() -> Script:
            nonlocal known
            answer = yield BEGIN, known.join(choose(beginnings))
            txn, known = answer[BEGUN_AT : BEGUN_AT + ID_BYTES], answer[ABORTED_AT : ABORTED_AT + ID_BYTES]
            if beats:
                yield HEARTBEAT, txn.join(_HEARTBEAT)
            yield COMMIT, txn.join(commit)

        return script

    return scripts


CYCLES = (
    Scenario("write", (OPEN, ALLOCATE, LOCK, HEARTBEAT, COMMIT), _write),
    Scenario("insert", (OPEN, ALLOCATE, LOCK, COMMIT), _insert),
    Scenario("read", (OPEN, VALID, LOCK, COMMIT), _read),
)
"""By Hive's calls."""
_BEGIN_UPDATES, _BEGIN_INSERTS, _BEGIN_READS = (
    [begin_request(t, p, kind, operation, writes=operation != _OPERATION.SELECT) for t, p in _places()]
    for kind, operation in (
        (_KIND.SHARED_WRITE, _OPERATION.UPDATE),
        (_KIND.SHARED_READ, _OPERATION.INSERT),
        (_KIND.SHARED_READ, _OPERATION.SELECT),
    )
)
OUR_CYCLES = {
    "write": Scenario("write, ours", (BEGIN, HEARTBEAT, COMMIT), _begun(_BEGIN_UPDATES, COMMIT_CHECKED, beats=True)),
    "insert": Scenario("insert, ours", (BEGIN, COMMIT), _begun(_BEGIN_INSERTS, _COMMIT, beats=False)),
    "read": Scenario("read, ours", (BEGIN, COMMIT), _begun(_BEGIN_READS, _COMMIT, beats=False)),
}
"""The same by the calls of our client, which other metastores do not know."""
