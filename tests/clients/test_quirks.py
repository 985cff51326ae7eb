"""What the wire of several generations demands of one server, seen byte by byte (wire.md §1, §2, §3, §5.1)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TPayload, TPayloadMeta, TType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import service, ttypes
from tests.caller import Caller, refused
from tests.clients.checking import CheckingProxy
from tests.repository.methods import methods


@pytest.fixture
def ann(proxy: CheckingProxy) -> Iterator[Any]:
    with Caller(proxy.uri) as caller:
        yield caller


def exchange(uri: str, message: bytes) -> bytes:
    """Bytes sent, and what comes back until the answer pauses."""
    address = urlsplit(uri)
    with socket.create_connection((address.hostname, address.port), timeout=20) as sock:
        sock.sendall(message)
        answer = sock.recv(1 << 16)
        sock.settimeout(0.2)
        try:
            while more := sock.recv(1 << 16):
                answer += more
        except TimeoutError:
            pass
        return answer


def message_of(method: str, arguments: object) -> bytes:
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(method, 1, 7)
    protocol.write_struct(arguments)
    return buffer.getvalue()


def test_open_txns_travel_as_set_and_as_list(proxy: CheckingProxy, ann: Caller) -> None:
    txn_id = ann.begin()
    answer = exchange(proxy.uri, message_of("get_open_txns", service.get_open_txns_args()))
    for kind in (TType.SET, TType.LIST):
        begin = answer.index(struct.pack(">bhb", kind, 2, TType.I64))
        (size,) = struct.unpack_from(">i", answer, begin + 4)
        ids = struct.unpack_from(f">{size}q", answer, begin + 8)
        assert txn_id in ids
    ann.abort(txn_id)


def test_unknown_method_has_the_exact_text_and_keeps_the_connection(proxy: CheckingProxy, ann: Caller) -> None:
    answer = exchange(proxy.uri, struct.pack(">Ii", 0x80010001, 9) + b"no_method" + struct.pack(">i", 77) + b"\0")
    (sequence,) = struct.unpack_from(">i", answer, 17)
    assert sequence == 77
    assert b"Invalid method name: 'no_method'" in answer
    with refused("internal", "^Invalid method name: 'get_index_names'$"):
        ann.call("get_index_names", "d", "t", -1)
    assert ann.call("getName") == "metastore"


def test_elder_clients_are_not_told_newer_kinds_of_locks(proxy: CheckingProxy) -> None:
    with Caller(proxy.uri) as elder, Caller(proxy.uri) as newer:
        lock_id = elder.lock("x quirks/locks n").lockid

        def kind(caller: Caller, **fields: object) -> int:
            (shown,) = caller.locks(dbname="quirks", tablename="locks", **fields)
            return int(shown.type)

        assert kind(elder) == ttypes.LockType.EXCLUSIVE
        assert kind(elder, txnid=0) == ttypes.LockType.EXCL_WRITE
        assert kind(newer) == ttypes.LockType.EXCLUSIVE
        newer.call("get_open_txns_req", ttypes.GetOpenTxnsRequest())
        assert kind(newer) == ttypes.LockType.EXCL_WRITE
        assert kind(elder) == ttypes.LockType.EXCLUSIVE
        elder.unlock(lock_id)


def test_elder_clients_are_not_told_newer_kinds_of_compactions(proxy: CheckingProxy) -> None:
    def kinds(caller: Caller, **fields: object) -> list[int]:
        shown = caller.call("show_compact", ttypes.ShowCompactRequest(**fields)).compacts
        return [one.type for one in shown if one.dbname == "quirks"]

    with Caller(proxy.uri) as elder:
        rebalance = ttypes.CompactionType.REBALANCE
        elder.call("create_database", ttypes.Database(name="quirks", parameters={}))
        elder.call("create_table", acid_table("quirks", "queue"))
        elder.call("compact", ttypes.CompactionRequest(dbname="quirks", tablename="queue", type=rebalance))
        assert kinds(elder) == [ttypes.CompactionType.MAJOR]
        assert kinds(elder, dbName="quirks") == [rebalance]
        elder.call("drop_database", "quirks", True, True)


def acid_table(database: str, name: str) -> object:
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name="id", type="int")],
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    )
    parameters = {"transactional": "true"}
    return ttypes.Table(dbName=database, tableName=name, sd=storage, partitionKeys=[], parameters=parameters)


def test_dynamic_partitions_of_hive_2(proxy: CheckingProxy, ann: Caller) -> None:
    """Its struct has the database's name where the write id is now (wire.md §1.2)."""
    fields = {
        1: (TType.I64, "txnid", True),
        2: (TType.STRING, "dbname", True),
        3: (TType.STRING, "tablename", True),
        4: (TType.LIST, "partitionnames", TType.STRING, True),
        5: (TType.I32, "operationType", False),
    }
    defaults = [(field[1], None) for field in fields.values()]
    elder = TPayloadMeta("Elder", (TPayload,), {"thrift_spec": fields, "default_spec": defaults})
    spec = {1: (TType.STRUCT, "rqst", elder, False)}
    arguments = TPayloadMeta("Args", (TPayload,), {"thrift_spec": spec, "default_spec": [("rqst", None)]})
    txn_id = ann.begin()
    request = elder(txnid=txn_id, dbname="d", tablename="elder", partitionnames=["p=1"], operationType=2)
    answer = exchange(proxy.uri, message_of("add_dynamic_partitions", arguments(rqst=request)))
    assert answer.endswith(b"\0")
    assert answer[3] == 2, answer
    assert ann.max_write_id("d.elder") == 1
    ann.commit(txn_id)
    assert str(ann.write_ids("d.elder").writeIdHighWaterMark) == "1"


def test_a_request_that_is_missing_is_named(ann: Caller) -> None:
    with refused("MetaException", "get_table_req was called without its req$"):
        ann.call("get_table_req")


def test_what_tells_hive_4_from_elder_clients() -> None:
    from metastore.rpc.encoding.generations import is_since_hive_4

    for method in methods():
        if is_since_hive_4(method.name):
            assert method.releases.startswith("4."), method
        elif method.name.endswith("_req"):
            assert not method.releases.startswith("4."), method


def test_last_of_the_groups_is_the_user(ann: Caller) -> None:
    assert ann.call("set_ugi", "ann", ["staff", "admin"]) == ["staff", "admin", "ann"]


def test_absent_databases_have_no_tables(ann: Caller) -> None:
    assert ann.call("get_all_tables", "absent") == []
    assert ann.call("get_tables", "absent", "*") == []
    for missing in (("get_table", "default", "absent"), ("get_partition", "default", "absent", ["1"])):
        with refused("NoSuchObjectException"):
            ann.call(*missing)


@pytest.mark.parametrize("pattern", ["default", "def*", "DEF*", "def.*", "nothing|def*"])
def test_patterns_of_all_generations(ann: Caller, pattern: str) -> None:
    assert ann.call("get_databases", pattern) == ["default"]


def test_names_with_a_catalog(ann: Caller) -> None:
    assert "default" in ann.call("get_databases", "@hive#")
    assert ann.call("get_databases", "@hive#def*") == ["default"]
    assert ann.call("get_database", "@hive#default").name == "default"
    with refused("NoSuchObjectException"):
        ann.call("get_database", "@other#default")
