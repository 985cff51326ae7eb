"""Messages as Hive's own classes read them.

What is expected was checked by hand: the messages of `samples` were read by the JSONMessageDeserializer of Hive 4.0.1
(hive-standalone-metastore-common) and of Hive 2.3.10 (PySpark's jars), every getter called. The keys are the fields of
those classes; the text of a table below was written by Hive 4.0.1's MessageBuilder.
"""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.events.models import EventType, RecordedEvent
from metastore.rpc.encoding.thrift_json import thrift_json
from metastore.rpc.handlers.event_messages import FORMAT, message, notification

from .samples import samples

_ALWAYS = {"server", "servicePrincipal", "timestamp"}
_TABLE = {"db", "table", "tableType", "tableObjJson"}
KEYS = {
    "CREATE_TABLE": {*_TABLE, "files"},
    "ALTER_TABLE": {
        *("db", "table", "tableType", "tableObjBeforeJson", "tableObjAfterJson", "isTruncateOp", "writeId")
    },
    "DROP_TABLE": _TABLE,
    "ADD_PARTITION": {*_TABLE, "partitions", "partitionListJson", "partitionFiles"},
    "ALTER_PARTITION": {
        *(*_TABLE, "isTruncateOp", "writeId", "keyValues", "partitionObjBeforeJson", "partitionObjAfterJson")
    },
    "DROP_PARTITION": {*_TABLE, "partitions"},
    "INSERT": {*_TABLE, "ptnObjJson", "partKeyVals", "replace", "files"},  # partKeyVals is 2.3's
    "RELOAD": {"db", "table", "tableObjJson", "ptnObjJson", "refreshEvent"},
    "ACID_WRITE_EVENT": {
        *("database", "table", "partition", "txnid", "writeId", "tableObjJson", "partitionObjJson", "files")
    },
    "ALLOC_WRITE_ID_EVENT": {"dbName", "tableName", "txnIdList", "writeIdList"},
    "CREATE_DATABASE": {"db", "dbJson"},
    "ALTER_DATABASE": {"db", "dbObjBeforeJson", "dbObjAfterJson"},
    "DROP_DATABASE": {"db", "dbJson"},
    "CREATE_CATALOG": {"catalog"},
    "ALTER_CATALOG": {"catObjBeforeJson", "catObjAfterJson"},
    "DROP_CATALOG": {"catalog"},
    "CREATE_FUNCTION": {"db", "functionObjJson"},
    "DROP_FUNCTION": {"db", "functionName"},
    "ADD_PRIMARYKEY": {"primaryKeyListJson"},
    "ADD_FOREIGNKEY": {"foreignKeyListJson"},
    "ADD_UNIQUECONSTRAINT": {"uniqueConstraintListJson"},
    "ADD_NOTNULLCONSTRAINT": {"notNullConstraintListJson"},
    "ADD_DEFAULTCONSTRAINT": {"defaultConstraintListJson"},
    "ADD_CHECKCONSTRAINT": {"checkConstraintListJson"},
    "DROP_CONSTRAINT": {"dbName", "tableName", "constraintName"},
    "UPDATE_TBL_COL_STAT_EVENT": {"writeId", "database", "colStatsJson", "parameters", "tableObjJson"},
    "DELETE_TBL_COL_STAT_EVENT": {"database", "colName"},
    "UPDATE_PART_COL_STAT_EVENT": {*("writeId", "database", "colStatsJson", "parameters", "tableObjJson", "partVals")},
    "DELETE_PART_COL_STAT_EVENT": {"database", "colName", "partName", "partValues"},
    "COMMIT_COMPACTION_EVENT": {"txnid", "compactionId", "type", "dbname", "tableName", "partName"},
    "OPEN_TXN": {"txnIds", "fromTxnId", "toTxnId"},
    "COMMIT_TXN": {*("txnid", "writeIds", "databases", "tables", "partitions", "tableObjs", "partitionObjs", "files")},
    "ABORT_TXN": {"txnid", "dbsUpdated"},
}
JAVA_TABLE = (
    '{"1":{"str":"t"},"2":{"str":"db"},"3":{"str":"ann"},"4":{"i32":0},"5":{"i32":0},"6":{"i32":0},"7":{"rec":{"1":'
    '{"lst":["rec",1,{"1":{"str":"a"},"2":{"str":"int"}}]},"2":{"str":"file:/w/db.db/t"},"5":{"tf":0},"6":{"i32":0},'
    '"7":{"rec":{"3":{"map":["str","str",0,{}]}}},"8":{"lst":["str",0]},"9":{"lst":["rec",0]},"10":{"map":["str","str",'
    '0,{}]},"11":{"rec":{"1":{"lst":["str",0]},"2":{"lst":["lst",0]},"3":{"map":["lst","str",0,{}]}}}}},"8":{"lst":'
    '["rec",1,{"1":{"str":"ds"},"2":{"str":"string"}}]},"9":{"map":["str","str",1,{"k":"v \\"q\\" é"}]},"12":{"str":'
    '"MANAGED_TABLE"},"17":{"str":"hive"},"18":{"i32":1}}'
)


def stored(event: RecordedEvent) -> RecordedEvent:
    """As it comes out of the database."""
    return replace(event, details=json.loads(json.dumps(event.details)))


SAMPLES = {event.type: stored(event) for event in samples()}


def told(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message(SAMPLES[kind]))
    return found


@pytest.mark.parametrize("kind", [str(kind) for kind in EventType])
def test_every_type_has_the_keys_that_hive_reads(kind: str) -> None:
    keys = set(told(kind))
    assert keys >= KEYS[kind] | _ALWAYS
    # Beside them only what the event is of, which Hive passes over.
    assert keys - KEYS[kind] - _ALWAYS <= {"db", "table", "tableType", "partKeyVals"}


def test_a_struct_is_written_as_java_writes_it() -> None:
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name="a", type="int")],
        location="file:/w/db.db/t",
        compressed=False,
        numBuckets=0,
        serdeInfo=ttypes.SerDeInfo(parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=ttypes.SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
    )
    table = ttypes.Table(
        tableName="t",
        dbName="db",
        owner="ann",
        createTime=0,
        lastAccessTime=0,
        retention=0,
        sd=storage,
        partitionKeys=[ttypes.FieldSchema(name="ds", type="string")],
        parameters={"k": 'v "q" é'},
        tableType="MANAGED_TABLE",
        catName="hive",
        ownerType=1,
    )
    assert thrift_json(table) == JAVA_TABLE


def test_numbers_bytes_and_keys_that_are_no_text() -> None:
    def double(value: float) -> str:
        return thrift_json(ttypes.DoubleColumnStatsData(lowValue=value, numNulls=1 << 40))

    assert double(0.5) == '{"1":{"dbl":0.5},"3":{"i64":1099511627776}}'
    assert double(math.inf) == '{"1":{"dbl":"Infinity"},"3":{"i64":1099511627776}}'
    assert '"dbl":"NaN"' in double(math.nan)
    assert thrift_json(ttypes.Decimal(scale=2, unscaled=b"\x01\xff")) == '{"1":{"str":"Af8="},"3":{"i16":2}}'
    skewed = ttypes.SkewedInfo(skewedColValueLocationMaps={("x", "y"): "file:/d"})
    assert thrift_json(skewed) == '{"3":{"map":["lst","str",1,{["str",2,"x","y"]:"file:/d"}]}}'


def test_a_table_is_there_as_it_was() -> None:
    event = told("CREATE_TABLE")
    assert (event["db"], event["table"], event["tableType"], event["timestamp"]) == (
        *("db", "t", "MANAGED_TABLE", 1_700_000_000),
    )
    struct = json.loads(event["tableObjJson"])
    assert struct["7"]["rec"]["1"]["lst"][2:] == [
        {"1": {"str": "a"}, "2": {"str": "int"}},
        {"1": {"str": "b"}, "2": {"str": "string"}, "3": {"str": 'say "ü"'}},
    ]
    altered = told("ALTER_TABLE")
    names = [json.loads(altered[f"tableObj{when}Json"])["1"]["str"] for when in ("Before", "After")]
    assert (names, altered["isTruncateOp"], altered["writeId"]) == (["t", "u"], "false", 3)


def test_a_partition_is_whole_though_the_log_keeps_only_what_is_its_own() -> None:
    assert "columns" not in SAMPLES["ADD_PARTITION"].details["partitions"][0]
    event = told("ADD_PARTITION")
    (struct,) = map(json.loads, event["partitionListJson"])
    assert event["partitions"] == [{"ds": "x=1/y"}]
    assert struct["1"] == {"lst": ["str", 1, "x=1/y"]}
    assert len(struct["6"]["rec"]["1"]["lst"]) == 4
    assert struct["6"]["rec"]["3"] == {"str": "in"}
    assert told("ALTER_PARTITION")["keyValues"] == {"ds": "x=1/y"}


def test_what_clients_report() -> None:
    insert = told("INSERT")
    assert (insert["replace"], insert["files"]) == ("true", ["f1###", "f2###s"])
    assert json.loads(insert["ptnObjJson"])["1"] == {"lst": ["str", 1, "x=1/y"]}
    assert (told("RELOAD")["refreshEvent"], told("RELOAD")["ptnObjJson"]) == ("true", None)
    write = told("ACID_WRITE_EVENT")
    assert (write["txnid"], write["writeId"], write["partition"]) == (3, 1, "ds=x%3D1%2Fy")


def test_a_database_of_another_catalog() -> None:
    event = replace(SAMPLES["DROP_TABLE"], database="@c1#db")
    found = notification(event)
    assert (found.catName, found.dbName, found.tableName, found.messageFormat) == ("c1", "db", "t", FORMAT)
    assert json.loads(found.message)["db"] == "db"


def test_an_event_of_no_database() -> None:
    found = notification(SAMPLES["OPEN_TXN"])
    assert (found.catName, found.dbName, found.tableName) == (None, None, None)
    assert told("OPEN_TXN")["txnIds"] == [3, 4]


def test_a_type_or_a_field_of_a_newer_server_does_no_harm() -> None:
    event = replace(SAMPLES["CREATE_TABLE"], type="SOMETHING_NEW")
    assert json.loads(message(event)) == {
        "server": "", "servicePrincipal": "", "timestamp": 1_700_000_000, "db": "db", "table": "t",
    }  # fmt: skip
    newer = {"table": {**SAMPLES["CREATE_TABLE"].details["table"], "later_field": 1}}
    assert json.loads(message(replace(SAMPLES["CREATE_TABLE"], details=newer)))["table"] == "t"
