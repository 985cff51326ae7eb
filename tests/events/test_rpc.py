"""The log as its clients see it: over Thrift, from the first poll to the last."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.format.properties import SUCCEEDS, successor_name
from hive_acid.wire import ttypes
from metastore.catalog.removal.trash import UNDROP
from metastore.store.database import Database
from tests.caller import Refused
from tests.catalog.conftest import ACID, column, partition, table

from .follower import Follower, after, fire, message

Start = Callable[..., str]


def test_every_event_is_complete(follower: Follower) -> None:
    follower.create_table()
    events = follower.next()
    assert [event.eventId for event in events] == list(range(1, len(events) + 1))
    assert follower.current() == len(events)
    created = events[-1]
    assert (created.eventType, created.catName, created.dbName, created.tableName) == (
        *("CREATE_TABLE", "hive", "db", "t"),
    )
    assert created.messageFormat == "json-0.2"
    assert created.eventTime == message(created)["timestamp"] > 1_600_000_000


def test_databases_and_tables(follower: Follower) -> None:
    last = follower.current()
    follower.create_table("t")
    moved = follower.call("get_table_req", ttypes.GetTableRequest(dbName="db", tblName="t")).table
    moved.tableName = "u"
    follower.call("alter_table", "db", "t", moved)
    follower.call("drop_table", "db", "u", True)
    follower.call("alter_database", "db", ttypes.Database(name="db", parameters={"k": "v"}))
    follower.call("drop_database", "db", True, False)
    events = follower.next(last)
    assert [(event.eventType, event.tableName) for event in events] == [
        ("CREATE_TABLE", "t"),
        ("ALTER_TABLE", "u"),
        ("DROP_TABLE", "u"),
        ("ALTER_DATABASE", None),
        ("DROP_DATABASE", None),
    ]
    before, now = (json.loads(message(events[1])[f"tableObj{when}Json"]) for when in ("Before", "After"))
    assert (message(events[1])["table"], before["1"]["str"], now["1"]["str"]) == ("t", "t", "u")
    assert now["7"]["rec"]["2"]["str"].endswith("db.db/u")
    assert json.loads(message(events[3])["dbObjAfterJson"])["4"]["map"][3] == {"k": "v"}


def test_a_table_that_takes_the_place_of_another_one_is_told_of_once_it_has(follower: Follower) -> None:
    """As of a drop and of a new table with its partitions, under the one name; what comes before nobody sees."""
    follower.create_table(parameters=ACID)
    txn = follower.begin()
    follower.allocate("db.t", txn)
    name, last = successor_name(txn), follower.current()
    follower.create_table(name, keys=(column("ds", "string"),), parameters={**ACID, SUCCEEDS: "t"})
    follower.call("add_partition", partition(["1"], name, "db"))
    made, wanted = (follower.table(one) for one in (name, name))
    request = ttypes.AddNotNullConstraintRequest(
        notNullConstraintCols=[ttypes.SQLNotNullConstraint(table_db="db", table_name=name, column_name="a")]
    )
    follower.call("add_not_null_constraint", request)
    assert follower.told(last) == []
    wanted.tableName = "t"
    replaced = ttypes.HiveAcidReplaceTableRequest(
        txnid=txn, tableId=follower.table("t").id, table=wanted, successorId=made.id
    )
    follower.call("hive_acid_replace_table", replaced)
    told = follower.next(last)
    assert [(one.eventType, one.dbName, one.tableName) for one in told] == [
        ("DROP_TABLE", "db", "t"),
        ("CREATE_TABLE", "db", "t"),
        ("ADD_PARTITION", "db", "t"),
        ("ADD_NOTNULLCONSTRAINT", "db", "t"),
    ]
    assert all(name not in one.message for one in told)
    abandoned = follower.begin()
    follower.create_table(successor_name(abandoned), parameters={**ACID, SUCCEEDS: "t"})
    follower.call("drop_table", "db", successor_name(abandoned), True)
    assert follower.told(told[-1].eventId) == []


def test_a_cascade_tells_of_each_table_first(follower: Follower) -> None:
    follower.create_table("a")
    follower.create_table("b")
    last = follower.current()
    follower.call("drop_database", "db", True, True)
    assert follower.told(last) == [
        *(("DROP_TABLE", "db", "a"), ("DROP_TABLE", "db", "b"), ("DROP_DATABASE", "db", None)),
    ]


def test_partitions(follower: Follower) -> None:
    follower.create_partitioned()
    last = follower.current()
    follower.call("add_partitions", [partition([value], "t", "db") for value in ("1", "2")])
    changed = partition(["1"], "t", "db", parameters={"k": "v"})
    follower.call("alter_partition", "db", "t", changed)
    follower.call("rename_partition", "db", "t", ["1"], partition(["3"], "t", "db"))
    follower.call("drop_partition", "db", "t", ["2"], True)
    events = follower.next(last)
    assert [event.eventType for event in events] == [
        *("ADD_PARTITION", "ALTER_PARTITION", "ALTER_PARTITION", "DROP_PARTITION"),
    ]
    added, altered, renamed, dropped = map(message, events)
    assert added["partitions"] == [{"ds": "1"}, {"ds": "2"}]
    assert len(added["partitionListJson"]) == 2
    assert json.loads(altered["partitionObjAfterJson"])["7"]["map"][3]["k"] == "v"
    assert [json.loads(renamed[f"partitionObj{when}Json"])["1"]["lst"][2] for when in ("Before", "After")] == ["1", "3"]
    assert dropped["partitions"] == [{"ds": "2"}]


def test_many_partitions_make_several_events(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.catalog.changes.MAX_PARTITIONS", 2)
    follower.create_partitioned()
    events = after(
        follower, lambda: follower.call("add_partitions", [partition([str(n)], "t", "db") for n in range(5)])
    )
    assert [len(message(event)["partitions"]) for event in events] == [2, 2, 1]


def test_what_is_refused_is_no_event(follower: Follower) -> None:
    follower.create_partitioned()
    follower.call("add_partitions", [partition(["1"], "t", "db")])
    last = follower.current()
    for method, *args in (
        ("create_database", ttypes.Database(name="db", parameters={})),
        ("create_table", table("t", "db")),
        ("drop_table", "db", "absent", True),
        ("add_partitions", [partition([value], "t", "db") for value in ("1", "2")]),
        ("drop_database", "db", True, False),
    ):
        with pytest.raises(Refused):
            follower.call(method, *args)
    assert follower.current() == last


def test_filters_of_the_poll(follower: Follower) -> None:
    follower.create_database("other")
    follower.create_table("t")
    follower.create_table("u")
    assert follower.told(dbName="db", tableNames=["U"]) == [("CREATE_TABLE", "db", "u")]
    assert follower.told(catName="hive", dbName="OTHER") == [("CREATE_DATABASE", "other", None)]
    assert follower.told(catName="absent") == []
    assert follower.told(eventTypeSkipList=["CREATE_TABLE"]) == [
        *(("CREATE_DATABASE", "db", None), ("CREATE_DATABASE", "other", None)),
    ]
    assert [kind for kind, *_ in follower.told(eventTypeList=["CREATE_TABLE"])] == ["CREATE_TABLE"] * 2
    assert len(follower.next(maxEvents=2)) == 2
    assert follower.count(0, "db") == 3
    assert follower.count(0, "db", limit=2) == 2
    assert follower.count(0, "db", toEventId=1) == 1
    assert follower.count(0, "db", tableNames=["t"]) == 1


def test_nothing_is_recycled(follower: Follower) -> None:
    assert follower.call("cm_recycle", ttypes.CmRecycleRequest(dataPath="file:/x", purge=False)) is not None


def test_transactions_when_hives_listener_is_configured(metastore: Start) -> None:
    listener = "org.apache.hive.hcatalog.listener.DbNotificationListener"
    with Follower(metastore(**{"metastore.transactional.event.listeners": listener})) as client:
        last = client.current()
        txn_id = client.begin()
        client.allocate("default.t", txn_id)
        client.commit(txn_id)
        events = client.next(last)
        assert [event.eventType for event in events] == ["OPEN_TXN", "ALLOC_WRITE_ID_EVENT", "COMMIT_TXN"]
        assert (events[1].dbName, events[1].tableName) == ("default", "t")
        assert message(events[1])["txnIdList"] == [txn_id]
        assert message(events[2])["txnid"] == txn_id
    with Follower(metastore()) as client:  # the last server to start decides
        last = client.current()
        client.commit(client.begin())
        assert client.next(last) == []


def test_a_log_that_is_off_is_empty(metastore: Start, db: Database) -> None:
    with Follower(metastore(**{"metastore.notification.log.on": "false"})) as client:
        client.create_database("db")
        client.create_table()
        insert = ttypes.FireEventRequestData(insertData=ttypes.InsertEventRequestData(filesAdded=[]))
        assert fire(client, data=insert) == []
        assert (client.current(), client.next()) == (0, [])


def test_catalogs(follower: Follower, tmp_path: Path) -> None:
    last = follower.current()
    catalog = ttypes.Catalog(name="c1", locationUri=f"file:{tmp_path}/c1")
    follower.call("create_catalog", ttypes.CreateCatalogRequest(catalog=catalog))
    catalog.description = "words"
    follower.call("alter_catalog", ttypes.AlterCatalogRequest(name="c1", newCat=catalog))
    follower.call("create_database", ttypes.Database(name="d", catalogName="c1", parameters={}))
    (created,) = follower.next(last, catName="c1", dbName="d")
    assert (created.eventType, created.catName, created.dbName) == ("CREATE_DATABASE", "c1", "d")
    follower.call("drop_database", "@c1#d", True, False)
    follower.call("drop_catalog", ttypes.DropCatalogRequest(name="c1"))
    events = follower.next(last)
    assert [event.eventType for event in events] == [
        *("CREATE_CATALOG", "CREATE_DATABASE", "ALTER_CATALOG", "CREATE_DATABASE"),
        *("DROP_DATABASE", "DROP_DATABASE", "DROP_CATALOG"),
    ]
    assert message(events[0])["catalog"] == "c1"
    assert json.loads(message(events[2])["catObjAfterJson"])["2"]["str"] == "words"
    # The poll of one catalog's events: its own, and what belongs to no database.
    assert {event.catName for event in follower.next(last, catName="c1")} == {"c1", None}


def test_functions(follower: Follower) -> None:
    last = follower.current()
    function = ttypes.Function(
        functionName="F", dbName="db", className="org.F", ownerName="ann", ownerType=1, functionType=1, resourceUris=[]
    )
    follower.call("create_function", function)
    follower.call("drop_function", "db", "f")
    created, dropped = map(message, follower.next(last))
    assert json.loads(created["functionObjJson"])["3"]["str"] == "org.F"
    assert (dropped["db"], dropped["functionName"]) == ("db", "f")


def test_constraints(follower: Follower) -> None:
    key = ttypes.SQLPrimaryKey(table_db="db", table_name="t", column_name="a", key_seq=1, pk_name="k")
    last = follower.current()
    follower.call("create_table_with_constraints", table("t", "db"), [key], None, None, None, None, None)
    unique = ttypes.SQLUniqueConstraint(table_db="db", table_name="t", column_name="b", key_seq=1, uk_name="u")
    follower.call("add_unique_constraint", ttypes.AddUniqueConstraintRequest(uniqueConstraintCols=[unique]))
    request = ttypes.DropConstraintRequest(dbname="db", tablename="t", constraintname="U")
    follower.call("drop_constraint", request)
    events = follower.next(last)
    assert [event.eventType for event in events] == [
        *("CREATE_TABLE", "ADD_PRIMARYKEY", "ADD_UNIQUECONSTRAINT", "DROP_CONSTRAINT"),
    ]
    assert json.loads(message(events[1])["primaryKeyListJson"][0])["5"]["str"] == "k"
    assert message(events[3])["constraintName"] == "u"


def test_statistics(follower: Follower) -> None:
    follower.create_partitioned()
    follower.call("add_partitions", [partition(["1"], "t", "db")])

    def statistics(name: str | None) -> Any:
        desc = ttypes.ColumnStatisticsDesc(isTblLevel=name is None, dbName="db", tableName="t", partName=name)
        numbers = ttypes.LongColumnStatsData(lowValue=3, highValue=4, numNulls=0, numDVs=2)
        data = ttypes.ColumnStatisticsData(longStats=numbers)
        column = ttypes.ColumnStatisticsObj(colName="a", colType="int", statsData=data)
        return ttypes.ColumnStatistics(statsDesc=desc, statsObj=[column])

    last = follower.current()
    follower.call("update_table_column_statistics", statistics(None))
    follower.call("update_partition_column_statistics", statistics("ds=1"))
    follower.call("delete_table_column_statistics", "db", "t", "a", "hive")
    follower.call("delete_partition_column_statistics", "db", "t", "ds=1", "a", "hive")
    events = [event for event in follower.next(last) if "STAT" in event.eventType]
    assert [event.eventType for event in events] == [
        *("UPDATE_TBL_COL_STAT_EVENT", "UPDATE_PART_COL_STAT_EVENT"),
        *("DELETE_TBL_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"),
    ]
    whole, part, whole_gone, part_gone = map(message, events)
    assert '"lst":["rec",1,{"1":{"str":"a"}' in whole["colStatsJson"]
    assert part["partVals"] == part_gone["partValues"] == ["1"]
    assert (whole_gone["colName"], part_gone["partName"]) == ("a", "ds=1")


def test_truncation(follower: Follower) -> None:
    follower.create_table("u")
    follower.create_partitioned()
    follower.call("add_partitions", [partition([value], "t", "db") for value in ("1", "2")])
    last = follower.current()
    follower.call("truncate_table", "db", "u", None)
    follower.call("truncate_table", "db", "t", ["ds=2"])
    whole, part = follower.next(last)
    assert (whole.eventType, message(whole)["isTruncateOp"]) == ("ALTER_TABLE", "true")
    assert (part.eventType, message(part)["isTruncateOp"]) == ("ALTER_PARTITION", "true")
    assert message(part)["keyValues"] == {"ds": "2"}


def test_an_answer_ends_before_clients_choke_on_it(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.rpc.handlers.events.MAX_ANSWER_CHARACTERS", 100)
    follower.create_table("a")
    follower.create_table("b")
    assert [len(follower.next(last)) for last in (0, 1, 2, 3)] == [1, 1, 1, 0]


def test_a_table_that_is_brought_back_is_a_new_one(metastore: Start) -> None:
    with Follower(metastore(**{"metastore.catalog.undrop.window": "1h"})) as client:
        client.create_database("db")
        client.create_partitioned()
        client.call("add_partitions", [partition(["1"], "t", "db")])
        client.call("drop_table", "db", "t", True)
        last = client.current()
        context = ttypes.EnvironmentContext(properties={UNDROP: "true"})
        client.call("create_table_with_environment_context", table("t", "db"), context)
        created, added = client.next(last)
        assert (created.eventType, added.eventType) == ("CREATE_TABLE", "ADD_PARTITION")
        assert message(added)["partitions"] == [{"ds": "1"}]
