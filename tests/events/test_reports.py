"""What clients report to the log: files that they have added, and tables that they have refreshed."""

import json
import struct
from typing import Any

from thriftpy2.thrift import TType

from hive_acid.wire import ttypes
from tests.caller import refused
from tests.catalog.conftest import partition

from .follower import Follower, fire, message


def test_an_insert_as_hive_3_and_later_report_it(follower: Follower) -> None:
    follower.create_partitioned()
    follower.call("add_partitions", [partition([value], "t", "db") for value in ("1", "2")])
    insert = ttypes.InsertEventRequestData(replace=True, filesAdded=["f1", "f2"], subDirectoryList=["s"])
    (event_id,) = fire(follower, data=ttypes.FireEventRequestData(insertData=insert), partitionVals=["1"])
    (event,) = follower.next(event_id - 1)
    assert (event.eventId, event.eventType) == (event_id, "INSERT")
    assert message(event)["files"] == ["f1###s", "f2###"]
    assert message(event)["replace"] == "true"
    assert json.loads(message(event)["ptnObjJson"])["1"]["lst"][2] == "1"
    several = [ttypes.InsertEventRequestData(filesAdded=["f"], partitionVal=[value]) for value in ("1", "2")]
    ids = fire(follower, data=ttypes.FireEventRequestData(insertDatas=several))
    assert ids == [event_id + 1, event_id + 2]


def test_an_insert_as_hive_2_reports_it(follower: Follower) -> None:
    """Its first field is the list of files, where later clients have a flag."""
    follower.create_table()

    def strings(*values: str) -> bytes:
        texts = b"".join(struct.pack(">i", len(value)) + value.encode() for value in values)
        return struct.pack(">bi", TType.STRING, len(values)) + texts

    def field(kind: int, number: int, value: bytes) -> bytes:
        return struct.pack(">bh", kind, number) + value

    def text(value: str) -> bytes:
        return struct.pack(">i", len(value)) + value.encode()

    def call(*insert: bytes) -> dict[str, Any]:
        data = field(TType.STRUCT, 1, b"".join(insert) + b"\0") + b"\0"
        request = field(TType.BOOL, 1, b"\1") + field(TType.STRUCT, 2, data)
        request += field(TType.STRING, 3, text("db")) + field(TType.STRING, 4, text("t"))
        message_bytes = struct.pack(">I", 0x80010001) + text("fire_listener_event") + struct.pack(">i", 0)
        last = follower.current()
        follower._socket.write(message_bytes + field(TType.STRUCT, 1, request + b"\0") + b"\0")
        follower._pending = "fire_listener_event"
        follower.receive()
        return message(follower.next(last)[0])

    assert call(field(TType.LIST, 1, strings("f1")))["files"] == ["f1###"]
    sums = field(TType.LIST, 2, strings("c1", "c2"))
    assert call(field(TType.LIST, 1, strings("f1", "f2")), sums)["files"] == ["f1###", "f2###"]
    # The later form without its flag has the same shape but for the numbers.
    assert call(field(TType.LIST, 2, strings("f1")))["files"] == ["f1###"]


def test_a_refresh(follower: Follower) -> None:
    follower.create_partitioned()
    follower.call("add_partitions", [partition([value], "t", "db") for value in ("1", "2")])
    data = ttypes.FireEventRequestData(refreshEvent=True)
    (whole,) = fire(follower, data=data, tblParams={"impala.service": "7"})
    (event,) = follower.next(whole - 1)
    assert (event.eventType, message(event)["refreshEvent"]) == ("RELOAD", "true")
    assert json.loads(message(event)["tableObjJson"])["9"]["map"][3]["impala.service"] == "7"
    assert len(fire(follower, data=data, batchPartitionValsForRefresh=[["1"], ["2"]])) == 2
    assert "impala.service" not in follower.call("get_table", "db", "t").parameters


def test_what_was_not_successful_or_is_not_there_is_not_told(follower: Follower) -> None:
    follower.create_table()
    last = follower.current()
    insert = ttypes.FireEventRequestData(insertData=ttypes.InsertEventRequestData(filesAdded=[]))
    assert fire(follower, data=insert, successful=False) == []
    with refused("internal", "absent table not found"):
        fire(follower, data=insert, tableName="absent")
    with refused("internal", "no data of a kind"):
        fire(follower, data=ttypes.FireEventRequestData())
    assert follower.current() == last


def test_acid_writes(follower: Follower) -> None:
    follower.create_partitioned()
    follower.call("add_partitions", [partition([value], "t", "db") for value in ("1", "2")])
    last = follower.current()

    def written(value: str, *files: str) -> Any:
        return ttypes.WriteNotificationLogRequest(
            txnId=7,
            writeId=1,
            db="db",
            table="t",
            fileInfo=ttypes.InsertEventRequestData(filesAdded=list(files)),
            partitionVals=[value],
        )

    follower.call("add_write_notification_log", written("1", "f1", "f2"))
    batch = ttypes.WriteNotificationLogBatchRequest(
        catalog="hive", db="db", table="t", requestList=[written("1", "f2", "f3"), written("2", "g")]
    )
    follower.call("add_write_notification_log_in_batch", batch)
    assert follower.told(last) == [("ACID_WRITE_EVENT", "db", "t")] * 3
    request = ttypes.GetAllWriteEventInfoRequest(txnId=7, dbName="db", tableName="*")
    first, second = follower.call("get_all_write_event_info", request)
    assert (first.writeId, first.database, first.table, first.partition) == (1, "db", "t", "ds=1")
    assert first.files == "f1###]f2###]f3###"
    assert json.loads(first.tableObj)["1"]["str"] == "t"
    assert json.loads(second.partitionObj)["1"]["lst"][2] == "2"
    assert follower.call("get_all_write_event_info", ttypes.GetAllWriteEventInfoRequest(txnId=8)) == []
