"""Statistics of columns over Thrift: every kind and form, engines, merging, deleting, errors."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, refused
from tests.catalog.conftest import column, partition, table
from tests.catalog.statistics.short import (
    binary,
    boolean,
    date,
    decimal,
    double,
    figures,
    long,
    statistics,
    text,
    timestamp,
)
from tests.served import served

NO_OBJECT, BAD_OBJECT, BAD_INPUT = "NoSuchObjectException", "InvalidObjectException", "InvalidInputException"
KINDS = {
    "boolean": (boolean(3, 2, 1), "boolean"),
    "long": (long(-5, 2**62, 1, 4, bitVectors=b"\x00\xffHLL", histogram=b"kll"), "bigint"),
    "double": (double(-0.1, 1e300), "double"),
    "string": (text(7, 2.125, 3, 4, bitVectors=b"anything"), "string"),
    "binary": (binary(100, 12.5, 3), "binary"),
    "decimal": (decimal((-12345, 2), (10**30, 4)), "decimal(38,4)"),
    "date": (date(-719162, 2932896), "date"),
    "timestamp": (timestamp(-1, 253402300799), "timestamp"),
}
_numbers = itertools.count(1)


@pytest.fixture
def t(ann: Caller) -> str:
    """A table with the columns a, b, c."""
    name = f"t{next(_numbers)}"
    struct = table(name)
    struct.sd.cols = [column("a"), column("b", "string"), column("c")]
    ann.call("create_table", struct)
    return name


@pytest.fixture
def p(ann: Caller) -> str:
    """A table with the columns a, b and the partitions day=x, day=y, day=z."""
    name = f"p{next(_numbers)}"
    ann.call("create_table", table(name, keys=(column("Day", "string"),)))
    ann.call("add_partitions", [partition([value], name) for value in "xyz"])
    return name


def of_table(ann: Caller, name: str, *columns: str, **fields: Any) -> dict[str, Any]:
    request = ttypes.TableStatsRequest(
        dbName="default", tblName=name, colNames=list(columns) or ["a", "b", "c"], **fields
    )
    return {found.colName: figures(found) for found in ann.call("get_table_statistics_req", request).tableStats}


def of_partitions(ann: Caller, name: str, *partitions: str, **fields: Any) -> dict[str, dict[str, Any]]:
    request = ttypes.PartitionsStatsRequest(
        dbName="default", tblName=name, colNames=["a", "b"], partNames=list(partitions), **fields
    )
    found = ann.call("get_partitions_statistics_req", request).partStats
    return {name: {column.colName: figures(column) for column in columns} for name, columns in found.items()}


def accuracy(ann: Caller, name: str, values: list[str] | None = None) -> Any:
    """What the parameters of a table or partition call accurate."""
    struct = ann.call("get_partition", "default", name, values) if values else ann.call("get_table", "default", name)
    return json.loads(struct.parameters.get("COLUMN_STATS_ACCURATE", "null"))


def set_all(ann: Caller, *structs: Any, **fields: Any) -> bool:
    return bool(ann.call("set_aggr_stats_for", ttypes.SetPartitionsStatsRequest(colStats=list(structs), **fields)))


# --- kinds and forms --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_comes_back_as_it_was(ann: Caller, kind: str) -> None:
    data, kind_of_column = KINDS[kind]
    name = f"kind_{kind}"
    struct = table(name)
    struct.sd.cols = [column("x", kind_of_column)]
    ann.call("create_table", struct)
    sent = statistics(name, x=data)
    assert ann.call("update_table_column_statistics", sent) is True
    found = ann.call("get_table_column_statistics", "default", name, "x")
    assert found.statsObj == sent.statsObj
    desc = found.statsDesc
    assert (desc.isTblLevel, desc.dbName, desc.tableName, desc.catName) == (True, "default", name, "hive")
    assert (desc.partName, found.engine) == (None, "hive")
    assert desc.lastAnalyzed > 1_700_000_000


def test_absent_bounds_stay_absent(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t, a=long(None, None, 7, 0)))
    assert of_table(ann, t)["a"] == figures(statistics(t, a=long(None, None, 7, 0)).statsObj[0])


def test_both_forms_of_a_table_answer_alike(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t.upper(), A=long(1, 2), b=text()))
    request = ttypes.SetPartitionsStatsRequest(colStats=[statistics(t, c=long(3, 4), database="@hive#default")])
    assert ann.call("update_table_column_statistics_req", request).result is True
    found = of_table(ann, t, "B", "a", "c", "nonesuch")
    assert list(found) == ["a", "b", "c"]
    assert found["c"] == figures(ann.call("get_table_column_statistics", "DEFAULT", t, "C").statsObj[0])
    assert accuracy(ann, t) == {"COLUMN_STATS": {"a": "true", "b": "true", "c": "true"}}


def test_both_forms_of_partitions_answer_alike(ann: Caller, p: str) -> None:
    ann.call("update_partition_column_statistics", statistics(p, "day=x", a=long(1, 2)))
    request = ttypes.SetPartitionsStatsRequest(colStats=[statistics(p, "Day=y", a=long(3, 4), b=text())])
    assert ann.call("update_partition_column_statistics_req", request).result is True
    found = of_partitions(ann, p, "DAY=x", "day=y", "day=z", "day=nonesuch", "rubbish")
    assert {name: sorted(columns) for name, columns in found.items()} == {"DAY=x": ["a"], "day=y": ["a", "b"]}
    single = ann.call("get_partition_column_statistics", "default", p, "day=y", "A")
    assert figures(single.statsObj[0]) == found["day=y"]["a"]
    assert (single.statsDesc.isTblLevel, single.statsDesc.partName) == (False, "day=y")
    assert accuracy(ann, p, ["y"]) == {"COLUMN_STATS": {"a": "true", "b": "true"}}
    assert accuracy(ann, p, ["z"]) is None
    assert accuracy(ann, p) is None


def test_what_is_stored_again_is_replaced_and_the_rest_stays(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t, a=long(1, 2, bitVectors=b"old"), b=text(9)))
    ann.call("update_table_column_statistics", statistics(t, a=text(5)))
    found = of_table(ann, t)
    assert (found["a"].maxColLen, found["a"].bitVectors, found["b"].maxColLen) == (5, None, 9)


def test_several_partitions_at_once(ann: Caller, p: str) -> None:
    assert set_all(ann, *(statistics(p, f"day={value}", a=long(1, place)) for place, value in enumerate("xyz")))
    assert [found["a"].highValue for found in of_partitions(ann, p, "day=x", "day=y", "day=z").values()] == [0, 1, 2]
    assert set_all(ann) is True


def test_engines_do_not_see_each_other(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t, a=long(1, 1), engine="Hive"))
    ann.call("update_table_column_statistics", statistics(t, a=long(2, 2), engine="IMPALA"))
    set_all(ann, statistics(t, b=text(3)), engine="impala")
    assert {name: of_table(ann, t, "a", engine=name)["a"].lowValue for name in ("hive", "HIVE", "impala", "")} == {
        "hive": 1,
        "HIVE": 1,
        "impala": 2,
        "": 1,
    }
    assert of_table(ann, t, engine="trino") == {}
    assert accuracy(ann, t) == {"COLUMN_STATS": {"a": "true"}}, "the parameter speaks of Hive's"
    ann.call("delete_table_column_statistics", "default", t, "a", "impala")
    assert (sorted(of_table(ann, t)), sorted(of_table(ann, t, engine="impala"))) == (["a"], ["b"])


def test_bit_vectors_can_be_left_out(postgres_url: str, template: str, tmp_path: Any) -> None:
    settings = {"hive.stats.fetch.bitvector": "false"}
    with served(postgres_url, template, tmp_path, settings) as running, running.caller() as ann:
        ann.call("create_table", table("t"))
        ann.call("update_table_column_statistics", statistics("t", a=long(1, 2, bitVectors=b"v", histogram=b"h")))
        assert (of_table(ann, "t")["a"].bitVectors, of_table(ann, "t")["a"].histogram) == (None, b"h")


# --- merging ----------------------------------------------------------------------------------------


def test_merging_adds_to_what_is_accurate(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t, a=long(5, 6, 1, 7), b=text(4, 2.0, 1, 3)))
    assert set_all(ann, statistics(t, a=long(2, 3, 10, 4), b=text(2, 3.0, 5, 9), c=long()), needMerge=True)
    found = of_table(ann, t)
    assert sorted(found) == ["a", "b"], "c was not accurate: what stands may lack rows"
    a, b = found["a"], found["b"]
    assert (a.lowValue, a.highValue, a.numNulls, a.numDVs) == (2, 6, 11, 7)
    assert (b.maxColLen, b.avgColLen, b.numNulls, b.numDVs) == (4, 3.0, 6, 9)
    assert accuracy(ann, t) == {"COLUMN_STATS": {"a": "true", "b": "true"}}


def test_merging_into_a_table_that_was_empty(ann: Caller) -> None:
    name = f"fresh{next(_numbers)}"
    fresh = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'  # as Hive makes its tables
    ann.call("create_table", table(name, parameters={"COLUMN_STATS_ACCURATE": fresh}))
    assert set_all(ann, statistics(name, a=long(1, 2)), needMerge=True)
    assert of_table(ann, name)["a"].highValue == 2
    assert accuracy(ann, name) == json.loads(fresh)


def test_partitions_merge_one_by_one(ann: Caller, p: str) -> None:
    set_all(ann, statistics(p, "day=x", a=long(1, 2)), statistics(p, "day=y", a=long(1, 2)))
    twice = [statistics(p, "day=x", a=long(3, 4)), statistics(p, "DAY=x", a=long(5, 6))]
    assert set_all(ann, *twice, statistics(p, "day=z", a=long(7, 8)), needMerge=True)
    found = of_partitions(ann, p, "day=x", "day=y", "day=z")
    assert {name: columns["a"].highValue for name, columns in found.items()} == {"day=x": 6, "day=y": 2}


def test_kinds_do_not_merge(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t, a=long()))
    with refused(BAD_OBJECT, "column a cannot be merged.*long.*string"):
        set_all(ann, statistics(t, a=text()), needMerge=True)


# --- deleting ---------------------------------------------------------------------------------------


def test_delete_of_one_column_and_of_all(ann: Caller, t: str) -> None:
    ann.call("update_table_column_statistics", statistics(t, a=long(), b=text(), c=long()))
    assert ann.call("delete_table_column_statistics", "default", t.upper(), "A", None) is True
    assert sorted(of_table(ann, t)) == ["b", "c"]
    assert accuracy(ann, t) == {"COLUMN_STATS": {"b": "true", "c": "true"}}
    with refused(NO_OBJECT, f"no statistics of a of default.{t}"):
        ann.call("delete_table_column_statistics", "default", t, "a", "hive")
    assert ann.call("delete_table_column_statistics", "default", t, None, None) is True
    assert of_table(ann, t) == {}
    assert accuracy(ann, t) is None
    assert ann.call("delete_table_column_statistics", "default", t, None, None) is True, "repeated without harm"


def test_delete_of_partitions(ann: Caller, p: str) -> None:
    set_all(ann, *(statistics(p, f"day={value}", a=long(), b=text()) for value in "xyz"))
    assert ann.call("delete_partition_column_statistics", "default", p, "day=x", "a", None) is True
    assert ann.call("delete_partition_column_statistics", "default", p, "DAY=y", None, None) is True
    found = of_partitions(ann, p, "day=x", "day=y", "day=z")
    assert {name: sorted(columns) for name, columns in found.items()} == {"day=x": ["b"], "day=z": ["a", "b"]}
    assert (accuracy(ann, p, ["y"]), accuracy(ann, p, ["x"])) == (None, {"COLUMN_STATS": {"b": "true"}})


def test_delete_req_takes_tables_partitions_and_columns(ann: Caller, p: str, t: str) -> None:
    def delete(name: str, **fields: Any) -> bool:
        request = ttypes.DeleteColumnStatisticsRequest(db_name="default", tbl_name=name, **fields)
        return bool(ann.call("delete_column_statistics_req", request))

    ann.call("update_table_column_statistics", statistics(t, a=long(), b=text()))
    assert delete(t, col_names=["a"])
    assert sorted(of_table(ann, t)) == ["b"]
    ann.call("update_table_column_statistics", statistics(p, a=long()))
    set_all(ann, *(statistics(p, f"day={value}", a=long(), b=text()) for value in "xyz"))
    assert delete(p, part_names=["day=x", "day=y"], col_names=["b"], engine="hive")
    everything = ("day=x", "day=y", "day=z")
    assert [sorted(columns) for columns in of_partitions(ann, p, *everything).values()] == [["a"], ["a"], ["a", "b"]]
    assert delete(p)
    assert of_partitions(ann, p, *everything) == {}
    assert sorted(of_table(ann, p)) == ["a"], "those of the table as a whole are asked for"
    assert delete(p, tableLevel=True)
    assert of_table(ann, p) == {}


# --- errors -----------------------------------------------------------------------------------------


def test_what_does_not_exist(ann: Caller, t: str, p: str) -> None:
    request = ttypes.TableStatsRequest(dbName="default", tblName="nonesuch", colNames=["a"])
    parts = ttypes.PartitionsStatsRequest(dbName="nonesuch", tblName=p, colNames=["a"], partNames=["day=x"])
    for method, *arguments in (
        ("get_table_statistics_req", request),
        ("get_partitions_statistics_req", parts),
        ("get_aggr_stats_for", parts),
        ("get_table_column_statistics", "default", "nonesuch", "a"),
        ("get_table_column_statistics", "default", t, "a"),
        ("get_partition_column_statistics", "default", p, "day=x", "a"),
        ("get_partition_column_statistics", "default", p, "day=nonesuch", "a"),
        ("update_table_column_statistics", statistics("nonesuch", a=long())),
        ("update_partition_column_statistics", statistics(p, "day=nonesuch", a=long())),
        ("update_partition_column_statistics", statistics(t, "day=x", a=long())),
        ("delete_table_column_statistics", "default", "nonesuch", None, None),
        ("delete_partition_column_statistics", "default", p, "day=nonesuch", None, None),
        ("delete_column_statistics_req", ttypes.DeleteColumnStatisticsRequest(db_name="default", tbl_name="nonesuch")),
    ):
        with refused(NO_OBJECT, "nonesuch|no statistics|day=x"):
            ann.call(method, *arguments)
    assert ann.call("set_aggr_stats_for", ttypes.SetPartitionsStatsRequest(colStats=[])) is True


def test_statistics_that_cannot_be(ann: Caller, t: str) -> None:
    with refused(BAD_OBJECT, "column x doesn't exist"):
        ann.call("update_table_column_statistics", statistics(t, x=long()))
    nothing = statistics(t, a=long())
    nothing.statsObj[0].statsData = ttypes.ColumnStatisticsData()
    with refused(BAD_OBJECT, "of one kind, not of 0"):
        ann.call("update_table_column_statistics", nothing)
    both = statistics(t, a=long())
    both.statsObj[0].statsData.stringStats = text().stringStats
    with refused(BAD_OBJECT, "of one kind, not of 2"):
        ann.call("update_table_column_statistics", both)
    huge = statistics(t, a=decimal((1, 2), (3, 30_000)))
    with refused(BAD_OBJECT, "not a decimal number that can be stored"):
        ann.call("update_table_column_statistics", huge)
    assert of_table(ann, t) == {}


def test_requests_with_gaps(ann: Caller, t: str, p: str) -> None:
    def req(*structs: Any, **fields: Any) -> Any:
        return ttypes.SetPartitionsStatsRequest(colStats=list(structs), **fields)

    gaps = statistics(t, a=long())
    gaps.statsObj[0].statsData.longStats.numNulls = None
    unnamed = statistics(p, "", a=long())
    cases = (
        ("get_table_column_statistics", ("default", t, None), "names no column"),
        ("get_partition_column_statistics", ("default", p, None, "a"), "names no partition"),
        ("delete_partition_column_statistics", ("default", p, None, "a", None), "names no partition"),
        ("update_table_column_statistics", (statistics(p, "day=x", a=long()),), "not statistics of a table"),
        ("update_partition_column_statistics", (statistics(p, a=long()),), "not statistics of a partition"),
        ("update_table_column_statistics", (gaps,), "numNulls of column a is required"),
        ("update_partition_column_statistics", (unnamed,), "do not say of which"),
        ("update_table_column_statistics_req", (req(),), "0 were sent"),
        ("update_table_column_statistics_req", (req(statistics(t, a=long()), needMerge=True),), "set_aggr_stats_for"),
        ("set_aggr_stats_for", (req(statistics(t, a=long()), statistics(p, a=long())),), "of one table"),
        ("set_aggr_stats_for", (req(statistics(p, a=long()), statistics(p, "day=x", a=long())),), "not of both"),
    )
    for method, arguments, words in cases:
        with refused(BAD_INPUT, words):
            ann.call(method, *arguments)
    with refused("MetaException", "2 were sent"):
        set_all(ann, statistics(t, a=long()), statistics(t, a=long()))


def test_all_or_nothing(ann: Caller, p: str) -> None:
    with refused(NO_OBJECT, "day=nonesuch"):
        set_all(ann, statistics(p, "day=x", a=long()), statistics(p, "day=nonesuch", a=long()))
    assert of_partitions(ann, p, "day=x") == {}
    assert accuracy(ann, p, ["x"]) is None


# --- Spark, and compactors --------------------------------------------------------------------------


def test_analyze_of_spark_is_parameters_alone(ann: Caller, t: str) -> None:
    """Its 2.3 client stores what it has found out with alter_table, and tells the server to keep its hands off."""
    struct = ann.call("get_table", "default", t)
    own = {"spark.sql.statistics.totalSize": "5", "spark.sql.statistics.colStats.a.min": "1"}
    struct.parameters = {**struct.parameters, **own}
    context = ttypes.EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
    ann.call("alter_table_with_environment_context", "default", t, struct, context)
    stored = ann.call("get_table", "default", t).parameters
    assert own.items() <= stored.items()
    assert "DO_NOT_UPDATE_STATS" not in stored
    assert of_table(ann, t) == {}


def test_a_compactor_learns_the_columns_with_statistics(ann: Caller, t: str, p: str) -> None:
    def columns(name: str, partition: str | None = None) -> list[str]:
        info = ttypes.CompactionInfoStruct(
            id=1, dbname="default", tablename=name, partitionname=partition, type=ttypes.CompactionType.MAJOR
        )
        return list(ann.call("find_columns_with_stats", info))

    ann.call("update_table_column_statistics", statistics(t, c=long(), a=long()))
    set_all(ann, statistics(p, "day=x", b=text()))
    assert (columns(t), columns(p), columns(p, "day=x"), columns(p, "day=y")) == (["a", "c"], [], ["b"], [])
    assert columns("nonesuch") == []
