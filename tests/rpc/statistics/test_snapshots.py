"""Statistics of ACID tables: who is told that they are true, and who is not given any."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.wire import ttypes
from tests.caller import Caller
from tests.catalog.conftest import table
from tests.catalog.statistics.short import figures, long, statistics, text
from tests.checklist.compactor import Table as Compacted
from tests.rpc.statistics.story import Story
from tests.served import Served

_numbers = itertools.count(1)
FRESH = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'
"""What Hive says of a table that it makes."""


ALL, NOTHING = (["a"], True), ([], False)  # type: ignore[var-annotated]
WITHOUT_PROMISE = (["a"], None)


def test_readers_who_see_the_writer_are_told(ann: Caller) -> None:
    story = Story(ann)
    story.insert()
    before = story.list_of()
    story.analyze()
    assert story.read(story.list_of()) == ALL
    assert story.read(before) == NOTHING, "the writer of the statistics is not visible"
    assert story.read(None) == WITHOUT_PROMISE


def test_while_the_writer_is_open_nobody_is_told(ann: Caller) -> None:
    story = Story(ann)
    story.insert()
    txn, write_id, snapshot = story.begin()
    story.store(write_id, snapshot)
    assert story.read(story.list_of()) == NOTHING
    ann.commit(txn)
    assert story.read(story.list_of()) == ALL


def test_an_aborted_writer(ann: Caller, server: Served) -> None:
    story = Story(ann)
    story.insert()
    txn, write_id, snapshot = story.begin()
    story.store(write_id, snapshot)
    ann.abort(txn)
    assert story.read(story.list_of()) == NOTHING
    server.db.call("aborts_cleaned", "default", story.name, None, [txn], [])
    server.db.call("purge_txns", 0, 1000)
    assert ValidWriteIdList.parse(story.list_of()).is_valid(write_id), "lists name it no longer"
    assert story.read(story.list_of()) == NOTHING
    story.analyze()
    assert story.read(story.list_of()) == ALL


def test_a_later_write_that_says_nothing_outdates_them(ann: Caller) -> None:
    story = Story(ann)
    story.analyze()
    between = story.list_of()
    story.insert()
    assert story.read(story.list_of()) == NOTHING
    assert story.read(between) == NOTHING, "older readers are not told either: this much is not on record"
    story.analyze()
    assert story.read(story.list_of()) == ALL


def test_a_write_id_without_a_write_does_not(ann: Caller) -> None:
    story = Story(ann)
    story.analyze()
    txn, _, _ = story.begin()
    ann.commit(txn)
    assert story.read(story.list_of()) == ALL


def test_an_aborted_write_does_not(ann: Caller) -> None:
    story = Story(ann)
    story.analyze()
    txn, _, _ = story.begin()
    story.writes(txn)
    assert story.read(story.list_of()) == ALL, "it is open still, and not visible"
    ann.abort(txn)
    assert story.read(story.list_of()) == ALL


@pytest.mark.parametrize("first", ["analyst", "other"])
def test_a_write_concurrent_to_the_analyst(ann: Caller, first: str) -> None:
    """Whichever got its write id first: the statistics lack what the other one wrote."""
    story = Story(ann)
    other = story.begin() if first == "other" else None
    txn, write_id, snapshot = story.begin()
    other = other or story.begin()
    story.writes(other[0])
    story.store(write_id, snapshot)
    ann.commit(txn)
    assert story.read(story.list_of()) == ALL, "the other one is not visible yet"
    ann.commit(other[0])
    assert story.read(story.list_of()) == NOTHING


def test_a_concurrent_write_whose_record_was_superseded(ann: Caller, server: Served) -> None:
    """The record keeps the last of two inserts: here that of the one who stored statistics, without the other's."""
    story = Story(ann)
    other, _, _ = story.begin()
    story.writes(other)
    txn, write_id, snapshot = story.begin()
    story.writes(txn)
    story.store(write_id, snapshot)
    ann.commit(other)
    ann.commit(txn)
    server.db.call("purge_duplicates", None, 1000)
    assert story.read(story.list_of()) == NOTHING


@pytest.mark.parametrize("analyzed", [True, False])
def test_a_compaction_takes_the_record_but_not_the_knowledge(ann: Caller, server: Served, analyzed: bool) -> None:
    story = Story(ann)
    story.analyze()
    story.insert()
    if analyzed:
        story.analyze()
    location = story.table().sd.location
    compacted = Compacted(ann, "default", story.name, location)
    compacted.compact()
    info = ttypes.CompactionInfoStruct(
        id=compacted.shown()[0].id, dbname="default", tablename=story.name, type=ttypes.CompactionType.MAJOR
    )
    ann.call("mark_cleaned", info)
    with server.db.engine.connect() as connection:
        left = connection.exec_driver_sql(f"SELECT count(*) FROM completed_component WHERE tbl = '{story.name}'")
        assert left.scalar() == 0
    assert story.read(story.list_of()) == (ALL if analyzed else NOTHING)


def test_statistics_without_a_transaction_are_for_planners_alone(ann: Caller) -> None:
    story = Story(ann)
    story.analyze()
    assert ann.call("update_table_column_statistics", statistics(story.name, a=long(1, 2))) is True
    assert story.accuracy() is None
    assert story.read(story.list_of()) == NOTHING
    assert story.read(None) == WITHOUT_PROMISE


def test_other_engines_make_no_promise(ann: Caller) -> None:
    story = Story(ann)
    txn, write_id, snapshot = story.begin()
    request = ttypes.SetPartitionsStatsRequest(
        colStats=[statistics(story.name, engine="impala", a=long())], writeId=write_id, validWriteIdList=snapshot
    )
    ann.call("update_table_column_statistics_req", request)
    ann.commit(txn)
    assert story.read(story.list_of(), engine="impala") == NOTHING
    assert story.read(None, engine="impala") == WITHOUT_PROMISE


def test_a_table_without_transactions_is_the_same_to_all(ann: Caller) -> None:
    name = f"plain{next(_numbers)}"
    ann.call("create_table", table(name))
    ann.call("update_table_column_statistics", statistics(name, a=long()))
    for snapshot, told in ((None, None), (f"default.{name}:5:5::", True)):
        request = ttypes.TableStatsRequest(dbName="default", tblName=name, colNames=["a"], validWriteIdList=snapshot)
        found = ann.call("get_table_statistics_req", request)
        assert (len(found.tableStats), found.isStatsCompliant) == (1, told)


# --- inserts that gather ------------------------------------------------------------------------------


def gathering_insert(story: Story, commit: bool = True, **columns: Any) -> int:
    """As Hive inserts with statistics on: rows, then the number of rows with their accuracy, then merged columns."""
    txn, write_id, snapshot = story.begin()
    story.writes(txn)
    seen = story.table(snapshot).parameters
    if "COLUMN_STATS_ACCURATE" in seen:
        story.alter(write_id, snapshot, numRows=str(int(seen.get("numRows", 0)) + 1))
    story.store(write_id, snapshot, merge=True, **columns)
    if commit:
        ann = story.ann
        ann.commit(txn)
    return txn


def test_inserts_in_turn_keep_everything_accurate(ann: Caller) -> None:
    story = Story(ann, COLUMN_STATS_ACCURATE=FRESH, numRows="0")
    assert story.table(story.list_of()).isStatsCompliant is True, "an empty table"
    for number in (1, 2, 3):
        gathering_insert(story, a=long(number, number), b=text(number))
        assert story.accuracy(story.list_of()) == json.loads(FRESH)
        assert story.read(story.list_of()) == (["a", "b"], True)
    found = story.table(story.list_of(), getColumnStats=True)
    assert (found.parameters["numRows"], found.isStatsCompliant) == ("3", True)
    a, b = (figures(one) for one in found.colStats.statsObj)
    assert (a.lowValue, a.highValue, b.maxColLen) == (1, 3, 3)
    assert found.colStats.isStatsCompliant is True


def test_concurrent_inserts_give_accuracy_up(ann: Caller) -> None:
    story = Story(ann, COLUMN_STATS_ACCURATE=FRESH, numRows="0")
    first = gathering_insert(story, commit=False, a=long(1, 1), b=text())
    second = gathering_insert(story, commit=False, a=long(2, 2), b=text())
    ann.commit(first)
    ann.commit(second)
    assert story.read(story.list_of()) == NOTHING
    assert story.accuracy(story.list_of()) is None
    found = story.table(story.list_of(), getColumnStats=True)
    assert (found.isStatsCompliant, found.colStats) == (False, None)


def test_merging_after_a_write_that_said_nothing_fails(ann: Caller) -> None:
    story = Story(ann, COLUMN_STATS_ACCURATE=FRESH, numRows="0")
    gathering_insert(story, a=long(1, 1), b=text())
    story.insert()
    txn, write_id, snapshot = story.begin()
    story.writes(txn)
    assert story.store(write_id, snapshot, merge=True) is False
    ann.commit(txn)
    assert story.accuracy() is None
    assert story.read(story.list_of()) == NOTHING


def test_what_the_writer_itself_changes_is_in_no_other_column(ann: Caller) -> None:
    story = Story(ann)
    story.analyze(a=long(), b=text())
    txn, write_id, snapshot = story.begin()
    story.writes(txn)
    story.store(write_id, snapshot, a=long(0, 100))
    ann.commit(txn)
    assert story.accuracy() == {"COLUMN_STATS": {"a": "true"}}
    assert story.read(story.list_of(), "a") == ALL
    assert story.read(story.list_of(), "a", "b") == NOTHING


# --- partitions ---------------------------------------------------------------------------------------


def test_partitions_are_judged_one_by_one(ann: Caller) -> None:
    story = Story(ann, partitioned=True)
    story.analyze("p=x")
    story.analyze("p=y")
    assert story.read_partitions(story.list_of()) == (["p=x", "p=y"], True)
    assert story.aggregate(story.list_of()) == (1, 2, True)
    story.insert("/p=x")
    assert story.read_partitions(story.list_of()) == (["p=y"], False)
    assert story.aggregate(story.list_of()) == (0, 0, False)
    assert story.read_partitions(None) == (["p=x", "p=y"], None)
    assert story.aggregate(None) == (1, 2, None)
    story.insert()
    assert story.read_partitions(story.list_of()) == ([], False), "a write to the whole table"


def test_statistics_travel_with_partitions(ann: Caller) -> None:
    story = Story(ann, partitioned=True)
    story.analyze("p=x")
    story.analyze("p=y")
    story.insert("/p=x")

    def by_names(**fields: Any) -> dict[str, Any]:
        request = ttypes.GetPartitionsByNamesRequest(
            db_name="default", tbl_name=story.name, names=["p=x", "p=y"], **fields
        )
        found = ann.call("get_partitions_by_names_req", request).partitions
        return {one.values[0]: one for one in found}

    plain = by_names()
    assert [(one.colStats, one.isStatsCompliant) for one in plain.values()] == [(None, None)] * 2
    asked = by_names(get_col_stats=True, engine="HIVE")
    assert [figures(one.colStats.statsObj[0]).highValue for one in asked.values()] == [9, 9]
    assert asked["x"].colStats.statsDesc.partName == "p=x"
    seen = by_names(get_col_stats=True, validWriteIdList=story.list_of())
    assert seen["x"].colStats is None
    assert figures(seen["y"].colStats.statsObj[0]).highValue == 9
    assert seen["y"].colStats.isStatsCompliant is True
    assert "COLUMN_STATS_ACCURATE" not in seen["x"].parameters
    assert "COLUMN_STATS_ACCURATE" in seen["y"].parameters
    request = ttypes.PartitionsRequest(
        dbName="default", tblName=story.name, maxParts=-1, validWriteIdList=story.list_of()
    )
    listed = ann.call("get_partitions_req", request).partitions
    assert ["COLUMN_STATS_ACCURATE" in one.parameters for one in listed] == [False, True]


def test_partitions_altered_in_a_transaction(ann: Caller) -> None:
    story = Story(ann, partitioned=True)
    txn, write_id, snapshot = story.begin()
    story.writes(txn, "/p=x")
    struct = ann.call("get_partition", "default", story.name, ["x"])
    struct.parameters = {"numRows": "1", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    request = ttypes.AlterPartitionsRequest(
        dbName="default",
        tableName=story.name,
        partitions=[struct],
        writeId=write_id,
        validWriteIdList=snapshot,
        environmentContext=ttypes.EnvironmentContext(properties={"STATS_GENERATED": "TASK"}),
    )
    ann.call("alter_partitions_req", request)

    def told(snapshot: str) -> bool | None:
        names = ttypes.GetPartitionsByNamesRequest(
            db_name="default", tbl_name=story.name, names=["p=x"], validWriteIdList=snapshot
        )
        return bool(ann.call("get_partitions_by_names_req", names).partitions[0].isStatsCompliant)

    assert told(story.list_of()) is False
    ann.commit(txn)
    assert told(story.list_of()) is True
    struct.parameters["numRows"] = "2"
    ann.call("alter_partition", "default", story.name, struct)
    assert told(story.list_of()) is False, "a number that nobody vouches for"
