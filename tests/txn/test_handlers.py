"""The handlers of transactions: Thrift structs in and out, without the wire."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.errors import MetaError
from hive_acid.wire import service, ttypes
from metastore.rpc.call import Call, Session
from metastore.rpc.encoding.codec import Prepared, encode_result
from metastore.rpc.handlers import transactions
from metastore.rpc.handlers.replication import SpecialCalls
from metastore.rpc.limits.workers import Workers
from metastore.store.database import Database
from metastore.txn.commits import ExtendedCommits
from metastore.txn.config import TxnConfig
from metastore.txn.replication import ReplicationService
from metastore.txn.service import TxnService
from metastore.txn.write_ids.service import WriteIdService

Rpc = Callable[..., Any]


@pytest.fixture
def rpc(db: Database, txns: TxnService, write_ids: WriteIdService) -> Rpc:
    special = SpecialCalls(ReplicationService(db, TxnConfig()), ExtendedCommits(db))
    served = transactions.handlers(txns, write_ids, special)

    def call(method: str, *arguments: Any) -> Any:
        with Workers(1) as workers:
            found = served[method](Call(method, Session("test"), workers), *arguments)
            value = db.wait(found) if inspect.iscoroutine(found) else found
            return _as_sent(method, value) if isinstance(value, Prepared) else value

    return call


def _as_sent(method: str, value: Prepared) -> Any:
    """What a client reads of a result of which fields are encoded already."""
    protocol = TCyBinaryProtocol(TCyMemoryBuffer(encode_result(method, 0, value)))
    protocol.read_message_begin()
    result = getattr(service, f"{method}_result")()
    protocol.read_struct(result)
    return result.success


def open_txns(rpc: Rpc, number: int, **fields: Any) -> list[int]:
    request = ttypes.OpenTxnRequest(num_txns=number, user="u", hostname="h", **fields)
    return list(rpc("open_txns", request).txn_ids)


def allocate(rpc: Rpc, table: str, *txn_ids: int, **fields: Any) -> list[tuple[int, int]]:
    request = ttypes.AllocateTableWriteIdsRequest(dbName="db", tableName=table, txnIds=list(txn_ids), **fields)
    return [(pair.txnId, pair.writeId) for pair in rpc("allocate_table_write_ids", request).txnToWriteIds]


def test_tables_named_with_the_opening(rpc: Rpc, db: Database) -> None:
    """As stored; the answer says that they are, and says nothing to those that name none."""
    named = rpc("open_txns", ttypes.OpenTxnRequest(
        num_txns=2, user="ann", hostname="h", tables=["D.T", "d.t", "@hive#d.u"], mayBeginAgain=False
    ))  # fmt: skip
    assert named.tablesNamed is True
    silent = rpc("open_txns", ttypes.OpenTxnRequest(num_txns=1, user="ann", hostname="h"))
    assert silent.tablesNamed is None
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT txn_id, db, tbl FROM min_history_write_id ORDER BY 1, 2, 3").all()
    assert [tuple(row) for row in found] == [(txn_id, "d", table) for txn_id in named.txn_ids for table in ("t", "u")]


def test_golden_open_txns(rpc: Rpc) -> None:
    empty = rpc("get_open_txns")
    assert (empty.txn_high_water_mark, empty.open_txns, empty.min_open_txn, empty.abortedBits) == (0, [], None, b"")
    ids = open_txns(rpc, 12)
    assert allocate(rpc, "e", *ids) == [(n, n) for n in range(1, 13)]
    rpc("abort_txns", ttypes.AbortTxnsRequest(txn_ids=[2, 3, 4, 5, 6, 9]))
    for txn_id in (1, 10):
        rpc("commit_txn", ttypes.CommitTxnRequest(txnid=txn_id))
    found = rpc("get_open_txns")
    assert found.open_txns == [2, 3, 4, 5, 6, 7, 8, 9, 11, 12]
    assert (found.txn_high_water_mark, found.min_open_txn, found.abortedBits.hex()) == (12, 7, "9f")
    request = ttypes.GetValidWriteIdsRequest(fullTableNames=["db.e"], validTxnList="12:7:7,8,11,12:2-6,9")
    (table,) = rpc("get_valid_write_ids", request).tblValidWriteIds
    assert (table.fullTableName, table.writeIdHighWaterMark, table.minOpenWriteId) == ("db.e", 12, 7)
    assert (table.invalidWriteIds, table.abortedBits.hex()) == ([2, 3, 4, 5, 6, 7, 8, 9, 11, 12], "9f")
    (table,) = rpc(
        "get_valid_write_ids", ttypes.GetValidWriteIdsRequest(fullTableNames=["db.e"], writeId=7)
    ).tblValidWriteIds
    assert (table.writeIdHighWaterMark, table.minOpenWriteId, table.abortedBits.hex()) == (7, None, "1f")
    with pytest.raises(MetaError, match="not a transaction list"):
        rpc("get_valid_write_ids", ttypes.GetValidWriteIdsRequest(fullTableNames=["db.e"], validTxnList="x"))


def test_excluded_types(rpc: Rpc) -> None:
    open_txns(rpc, 1, txn_type=ttypes.TxnType.READ_ONLY)
    open_txns(rpc, 2)
    rpc("abort_txn", ttypes.AbortTxnRequest(txnid=3))

    def listed(*excluded: int) -> tuple[list[int], bytes]:
        found = rpc("get_open_txns_req", ttypes.GetOpenTxnsRequest(excludeTxnTypes=list(excluded)))
        return found.open_txns, found.abortedBits

    assert rpc("get_open_txns").open_txns == [2, 3]
    assert listed() == ([1, 2, 3], b"\x04")
    assert rpc("get_open_txns_req", ttypes.GetOpenTxnsRequest()).open_txns == [1, 2, 3]
    assert listed(ttypes.TxnType.READ_ONLY) == ([2, 3], b"\x02")
    assert listed(ttypes.TxnType.DEFAULT) == ([1], b"")
    with pytest.raises(MetaError, match="no transaction type 9"):
        listed(9)


def test_info(rpc: Rpc) -> None:
    open_txns(rpc, 2, agentInfo="tool")
    rpc("abort_txn", ttypes.AbortTxnRequest(txnid=1, errorCode=50001))
    found = rpc("get_open_txns_info")
    aborted, opened = found.open_txns
    assert (found.txn_high_water_mark, aborted.state, opened.state) == (
        2,
        ttypes.TxnState.ABORTED,
        ttypes.TxnState.OPEN,
    )
    assert (opened.user, opened.hostname, opened.agentInfo, opened.metaInfo) == ("u", "h", "tool", None)
    assert "ABORT" in aborted.metaInfo


def test_heartbeats(rpc: Rpc) -> None:
    open_txns(rpc, 2)
    rpc("abort_txn", ttypes.AbortTxnRequest(txnid=2))
    rpc("heartbeat", ttypes.HeartbeatRequest(txnid=1))
    rpc("heartbeat", ttypes.HeartbeatRequest())
    found = rpc("heartbeat_txn_range", ttypes.HeartbeatTxnRangeRequest(min=1, max=3))
    assert (set(found.aborted), set(found.nosuch)) == ({2}, {3})


def test_write_ids_and_their_seed(rpc: Rpc) -> None:
    rpc("seed_write_id", ttypes.SeedTableWriteIdsRequest(dbName="db", tableName="t", seedWriteId=10))
    open_txns(rpc, 1)
    assert allocate(rpc, "t", 1) == [(1, 11)]
    assert allocate(rpc, "t", 1, reallocate=True) == [(1, 12)]
    request = ttypes.MaxAllocatedTableWriteIdRequest(dbName="db", tableName="t")
    assert rpc("get_max_allocated_table_write_id", request).maxWriteId == 12


def test_dynamic_partitions_without_an_operation_are_updates(rpc: Rpc, db: Database) -> None:
    open_txns(rpc, 1)
    request = ttypes.AddDynamicPartitions(
        txnid=1, writeid=1, dbname="db", tablename="t", partitionnames=["p=1"], operationType=None
    )
    rpc("add_dynamic_partitions", request)
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT operation FROM txn_component").scalar() == "u"
    request.operationType = ttypes.DataOperationType.SELECT
    with pytest.raises(MetaError, match="writes nothing"):
        rpc("add_dynamic_partitions", request)
    assert rpc("get_latest_txnid_in_conflict", 1) == 0
