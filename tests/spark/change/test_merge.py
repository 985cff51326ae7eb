"""MERGE: states and counties, clause order, one source, cardinality."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import ColumnError, MergeCardinalityError, WriteConflictError
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.frames import kept_rows
from hive_acid.spark.limits import Limits
from tests.spark.checker import check_table, location_of
from tests.spark.plans import SPARK, last_write


@pytest.fixture
def states(acid: AcidSession, spark: SparkSession) -> Any:
    """The table of the talk on MERGE: ids 1, 2, 7 and 16."""
    acid.create_table("d.target", {"id": "int", "state": "string", "county": "string"})
    rows = [(1, "CA", "LA"), (2, "MA", "Norfolk"), (7, "MA", "Suffolk"), (16, "CA", "Orange")]
    acid.insert("d.target", spark.createDataFrame(rows, "id int, state string, county string"))
    return acid


@pytest.fixture
def counties(spark: SparkSession) -> Any:
    rows = [(1, "20.0"), (7, "80.0"), (100, "6.0")]
    return spark.createDataFrame(rows, "id int, value string")


def read(acid: AcidSession, name: Any = "d.target") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


def test_states_and_counties(states: Any, counties: Any) -> None:
    merged = (
        states.table("d.target")
        .merge(counties, "t.id = s.id")
        .whenMatchedUpdate(set={"state": "s.value"})
        .whenNotMatchedInsert(values={"id": "s.id", "state": "s.value"})
        .execute()
    )
    assert tuple(merged) == (1, 2, 0)
    assert read(states) == [
        (1, "20.0", "LA"),
        (2, "MA", "Norfolk"),
        (7, "80.0", "Suffolk"),
        (16, "CA", "Orange"),
        (100, "6.0", None),
    ]
    found = check_table(location_of(states, "d.target"))
    assert sorted(found) == [
        "delete_delta_0000002_0000002_0000",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
    ]
    deleted = [event.key for event in found["delete_delta_0000002_0000002_0000"]["bucket_00000"]]
    assert [(key.write_id, key.row_id) for key in deleted] == [(1, 0), (1, 2)]


def test_the_first_clause_whose_condition_holds_decides(states: Any, counties: Any) -> None:
    merged = (
        states.table("d.target")
        .merge(counties, F.col("t.id") == F.col("s.id"))
        .whenMatchedDelete("s.id = 7")
        .whenMatchedUpdate("t.state = 'CA'", {"county": "concat(t.county, '!')"})
        .whenMatchedDelete()
        .whenNotMatchedInsert("s.id < 100", {"id": "s.id"})
        .whenNotMatchedInsert(values={"id": F.col("s.id") + 1, "county": F.lit("new")})
        .execute()
    )
    assert tuple(merged) == (1, 1, 1)
    assert read(states) == [(1, "CA", "LA!"), (2, "MA", "Norfolk"), (16, "CA", "Orange"), (101, None, "new")]


def test_all_columns_by_name(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(6).selectExpr("int(id) id", "'old' name", "int(id % 2) p"))
    source = spark.range(4, 8).selectExpr("int(id % 2) P", "'new' NAME", "id", "'more' extra")
    merged = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert tuple(merged) == (2, 2, 0)
    assert read(acid, "d.t") == [(i, "old" if i < 4 else "new", i % 2) for i in range(8)]
    check_table(location_of(acid, "d.t"))
    with pytest.raises(ColumnError, match="no column name"):
        acid.merge("d.t", source.drop("NAME"), "t.id = s.id").whenMatchedUpdateAll().execute()
    with pytest.raises(ColumnError, match="no column p"):
        acid.merge("d.t", source.drop("P"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    kept = acid.merge("d.t", source.drop("P").limit(1), "t.id = s.id").whenMatchedUpdateAll()
    assert kept.execute().updated == 1


def test_rows_move_between_partitions(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(6).selectExpr("int(id) id", "'old' name", "int(id % 2) p"))
    source = spark.range(3, 7).selectExpr("int(id) id", "'new' name", "if(id < 5, 9, int(id % 2)) p")
    merged = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert tuple(merged) == (1, 3, 0)
    moved = [(3, "new", 9), (4, "new", 9), (5, "new", 1), (6, "new", 0)]
    assert read(acid, "d.t") == [(0, "old", 0), (1, "old", 1), (2, "old", 0), *moved]
    check_table(location_of(acid, "d.t"))


def test_a_row_matched_twice_fails_and_leaves_nothing(states: Any, counties: Any) -> None:
    before = check_table(location_of(states, "d.target"))
    twice = counties.union(counties.where("id = 1"))
    with pytest.raises(MergeCardinalityError, match="1 of its rows"):
        states.merge("d.target", twice, "t.id = s.id").whenMatchedDelete().execute()
    assert check_table(location_of(states, "d.target")) == before
    told_apart = counties.withColumn("n", F.lit(1)).union(counties.withColumn("n", F.lit(2)))
    only_one_applies = states.merge("d.target", told_apart, "t.id = s.id").whenMatchedDelete("s.n = 1 AND s.id = 7")
    assert only_one_applies.execute().deleted == 1
    unmatched_twice = counties.where("id = 100").union(counties.where("id = 100"))
    inserted = states.merge("d.target", unmatched_twice, "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id"})
    assert inserted.execute().inserted == 2


@pytest.mark.parametrize("twice", ["never", "speculation"])
@pytest.mark.parametrize("by", ["client", "spark"])
def test_a_source_that_changes_is_merged_as_one(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, by: Any, twice: Any
) -> None:
    """At each use it would have other rows; `rand()` has a seed, by which it has the same."""
    if by == "spark":
        acid.limits = Limits(driver_rows=-1)
    if twice == "speculation":  # which is for the start of a Spark
        monkeypatch.setattr(kept_rows, "_SPECULATION", "spark.hive_acid.test.speculation")
        spark.conf.set("spark.hive_acid.test.speculation", "true")
    acid.create_table("d.t", {"id": "int", "v": "double"})
    acid.insert("d.t", spark.range(200).selectExpr("int(id) id", "0.0D v"))
    chance = "double(reflect('java.lang.Math', 'random'))"
    random = spark.range(1000).selectExpr("int(id) id", f"{chance} v").where("v < 0.5")
    assert random.agg({"v": "sum"}).collect() != random.agg({"v": "sum"}).collect()
    merged = (
        acid.merge("d.t", random, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()
    )
    table = acid.table("d.t")
    assert table.count() == table.select("id").distinct().count() == 200 + merged.inserted
    assert table.where("id < 200 AND v > 0").count() == merged.updated
    assert table.where("v >= 0.5").count() == 0


def test_insert_only_and_update_only(states: Any, counties: Any) -> None:
    assert tuple(
        states.merge("d.target", counties, "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id"}).execute()
    ) == (
        1,
        0,
        0,
    )
    again = states.merge("d.target", counties, "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id"})
    assert tuple(again.execute()) == (0, 0, 0)
    updated = states.merge("d.target", counties, "t.id = s.id AND s.id > 50").whenMatchedUpdate(set={"state": "'x'"})
    assert tuple(updated.execute()) == (0, 1, 0)
    assert len(read(states)) == 5


def test_joins_that_are_no_equation(states: Any, counties: Any) -> None:
    merged = states.merge("d.target", counties.where("id = 7"), "t.id > s.id").whenMatchedDelete()
    assert merged.execute().deleted == 1
    assert [row[0] for row in read(states)] == [1, 2, 7]


def test_null_keys_match_nothing(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    nulls = spark.createDataFrame([(None,), (1,)], "id int")
    acid.insert("d.t", nulls)
    merged = acid.merge("d.t", nulls, "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert tuple(merged) == (1, 0, 1)


def test_bad_merges_are_refused(states: Any, counties: Any, spark: SparkSession) -> None:
    def merge(on: Any = "t.id = s.id") -> Any:
        return states.merge("d.target", counties, on)

    with pytest.raises(ColumnError, match="no clause"):
        merge().execute()
    with pytest.raises(ColumnError, match="never apply"):
        merge().whenMatchedDelete().whenMatchedUpdate(set={"state": "'x'"})
    with pytest.raises(ColumnError, match="no column nothing"):
        merge().whenMatchedUpdate(set={"nothing": "1"}).execute()
    with pytest.raises(ColumnError, match="given twice"):
        merge().whenMatchedUpdate(set={"state": "1", "STATE": "2"}).execute()
    with pytest.raises(ColumnError, match="nothing"):
        merge("t.nothing = s.id").whenMatchedDelete().execute()
    with pytest.raises(ColumnError, match="nothing"):
        merge().whenMatchedDelete("s.nothing = 1").execute()
    with pytest.raises(ColumnError, match=r"d\.target\.id"):
        merge().whenMatchedUpdate(set={"id": "s.value || 'x'"}).execute()
    with pytest.raises(ColumnError, match=r"d\.target\.id is int"):
        merge().whenMatchedUpdate(set={"id": "date'2020-01-01'"}).execute()
    assert len(check_table(location_of(states, "d.target"))) == 1
    assert read(states)[0] == (1, "CA", "LA")


def test_rows_that_no_source_row_matches(states: Any, counties: Any) -> None:
    def merge() -> Any:
        return states.merge("d.target", counties, "t.id = s.id")

    updated = merge().whenNotMatchedBySourceUpdate("t.id = 2", {"county": "concat(county, '?')"})
    assert tuple(updated.whenNotMatchedBySourceDelete().execute()) == (0, 1, 1)
    assert read(states) == [(1, "CA", "LA"), (2, "MA", "Norfolk?"), (7, "MA", "Suffolk")]
    everything = (
        merge()
        .whenMatchedDelete("t.state = 'CA'")
        .whenMatchedUpdate(set={"county": "s.value"})
        .whenNotMatchedInsert("s.id > 50", {"id": "s.id"})
        .whenNotMatchedBySourceUpdate(set={"state": F.lit("gone")})
    )
    assert tuple(everything.execute()) == (1, 2, 1)
    assert read(states) == [(2, "gone", "Norfolk?"), (7, "MA", "80.0"), (100, None, None)]
    only_deletes = states.merge("d.target", counties.where("id = 7"), "t.id = s.id").whenNotMatchedBySourceDelete()
    assert tuple(only_deletes.execute()) == (0, 0, 2)
    empty = states.merge("d.target", counties.where("false"), "t.id = s.id")
    assert tuple(empty.whenMatchedDelete().whenNotMatchedBySourceDelete("t.id > 7").execute()) == (0, 0, 0)
    check_table(location_of(states, "d.target"))


def test_one_source_row_may_match_many(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "k": "int"})
    acid.insert("d.t", spark.range(0, 1000, 1, 3).selectExpr("int(id) id", "int(id % 5) k"))
    source = spark.createDataFrame([(0,), (1,), (7,), (None,)], "k int")
    merged = (
        acid.merge("d.t", source, "t.k = s.k")
        .whenMatchedUpdate("t.id < 500", {"id": "-t.id"})
        .whenNotMatchedInsert(values={"id": "5000", "k": "s.k"})
        .execute()
    )
    assert tuple(merged) == (2, 200, 0)
    expected = [(-i if i < 500 and i % 5 < 2 else i, i % 5) for i in range(1000)]
    assert sorted(map(tuple, acid.table("d.t").collect()), key=str) == sorted(
        [*expected, (5000, 7), (5000, None)], key=str
    )


def test_columns_that_the_table_lacks_are_added(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(4).selectExpr("int(id) id", "'old' name", "int(id % 2) p"))
    source = spark.range(2, 6).selectExpr("int(id) id", "'x' More", "id * 2 AS twice", "int(id % 2) p")
    merge = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(ColumnError, match="no column name"):
        merge.execute()
    assert tuple(merge.withSchemaEvolution().execute()) == (2, 2, 0)
    assert [(c.name, c.type) for c in acid.connection.table("d", "t").columns] == [
        ("id", "int"), ("name", "string"), ("more", "string"), ("twice", "bigint"),
    ]  # fmt: skip
    assert sorted(map(tuple, acid.table("d.t").collect()), key=str) == [
        (0, "old", None, None, 0), (1, "old", None, None, 1), (2, "old", "x", 4, 0), (3, "old", "x", 6, 1),
        (4, None, "x", 8, 0), (5, None, "x", 10, 1),
    ]  # fmt: skip
    one = source.selectExpr("id", "p", "'n' AS note", "'i' AS ignored")
    named = (
        acid.merge("d.t", one, "t.id = s.id").withSchemaEvolution().whenMatchedUpdate("t.id = 5", {"note": "s.note"})
    )
    assert named.execute().updated == 1
    assert acid.table("d.t").columns == ["id", "name", "more", "twice", "note", "p"]
    again = acid.merge("d.t", one.drop("ignored"), "t.id = s.id").withSchemaEvolution().whenMatchedUpdateAll()
    assert again.execute().updated == 4
    check_table(location_of(acid, "d.t"))


@pytest.mark.usefixtures("written_by_spark")
def test_only_what_can_match_is_read(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "string", "w": "string"}, partitioned_by={"p": "int"})
    for first in (0, 100, 200):
        acid.insert(
            "d.t", spark.range(first, first + 100).selectExpr("int(id) id", "'old' v", "'w' w", "int(id % 2) p")
        )
    source = spark.range(110, 130, 2).selectExpr("int(id) id", "'new' v", "0 p")
    clauses = acid.merge("d.t", source, "t.id = s.id AND t.p = s.p")
    merged = clauses.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"})
    assert tuple(merged.execute()) == (0, 10, 0)
    written = last_write(spark)
    assert written.metrics["number of files read"] == 1, "of three per partition"
    assert written.tree.count("Scan orc") == 1, "the target is read once"
    assert "BroadcastHashJoin Inner BuildRight" in written.tree
    assert "SortMergeJoin" not in written.tree
    assert "Python" not in written.tree
    assert acid.delete("d.t", source=source, on="t.id = s.id") == 10
    assert last_write(spark).metrics["number of files read"] == 3, "data files of one write, and of the merge"
    assert acid.update("d.t", {"v": "'x'"}, "id >= 290 AND p = 1") == 5
    written = last_write(spark)
    assert written.metrics["number of files read"] == 1
    assert "w:string" in written.text, "an update keeps what it does not set"
    assert acid.delete("d.t", "v = 'x'") == 5
    assert "w:string" not in last_write(spark).text, "a delete reads what its condition names"


@pytest.mark.usefixtures("written_by_spark")
def test_a_merge_sorts_its_events_once(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "int"})
    acid.insert("d.t", spark.range(20).selectExpr("int(id) id", "0 v"))
    twice = spark.range(10, 50).selectExpr("int(id / 2) id", "int(id % 2) v")
    merge = acid.merge("d.t", twice, "t.id = s.id AND s.v = 1").whenMatchedUpdateAll()
    assert tuple(merge.execute()) == (0, 15, 0)
    plan = last_write(spark).tree
    assert plan.count("Exchange") == plan.count("BroadcastExchange") + 1, "only changed rows are shuffled, and once"
    sorts = 1 if SPARK >= (4, 3) else 2  # of which the second finds all in order
    assert plan.count("Sort (") == sorts, "the check for rows that match twice takes the writer's order"


@pytest.mark.usefixtures("written_by_spark")
def test_no_row_is_shuffled_where_none_can_match_twice(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "k": "string", "v": "int"})
    acid.insert("d.t", spark.range(20).selectExpr("int(id) id", "'k' k", "0 v"))
    source = spark.range(5, 25).selectExpr("int(id) id", "if(id = 7, null, 'k') k", "1 v")
    source = source.unionByName(source.where("id = 7"))
    merge = acid.merge("d.t", source, "t.id = s.id AND t.k = s.k")
    assert tuple(merge.whenMatchedUpdateAll().execute()) == (0, 14, 0), "null matches nothing, twice neither"
    plan = last_write(spark).tree
    assert plan.count("Exchange") == plan.count("BroadcastExchange")
    assert plan.count("Sort (") == 1
    merge = acid.merge("d.t", source, "t.id = s.id AND t.k = s.k")
    assert tuple(merge.whenMatchedUpdate(set={"v": "s.v + t.v"}).whenNotMatchedInsertAll().execute()) == (7, 14, 0)
    plan = last_write(spark).tree
    assert plan.count("Exchange") == plan.count("BroadcastExchange") + 1, "to find the source rows without a pair"
    check_table(location_of(acid, "d.t"))
    assert sorted(row["v"] for row in acid.table("d.t").where("id BETWEEN 5 AND 24 AND id <> 7").collect()) == (
        [1] * 5 + [2] * 14
    )


@pytest.mark.parametrize("upsert", [True, False], ids=["upsert", "only new ones"])
@pytest.mark.parametrize("keys", [{"p": "int"}, {}], ids=["partitions", "none"])
def test_a_row_that_two_would_insert_is_there_once(
    acid: AcidSession, spark: SparkSession, keys: Any, upsert: Any
) -> None:
    """Nothing that was there has changed, and yet the second knows not what the first has inserted."""
    columns = {"id": "int", "v": "string"} | ({} if keys else {"p": "int"})
    acid.create_table("d.t", columns, partitioned_by=keys)
    other = hive_acid.spark.session(spark, acid.connection)

    def merge(session: Any, writer: Any, p: Any) -> Any:
        source = spark.range(1).selectExpr("7 id", f"'{writer}' v", f"{p} p")
        builder = session.merge("d.t", source, "t.id = s.id AND t.p = s.p").whenNotMatchedInsertAll()
        return (builder.whenMatchedUpdateAll() if upsert else builder).execute()

    def lose() -> None:
        with acid.transaction():
            assert tuple(merge(other, "other", 1)) == (1, 0, 0)
            merge(acid, "acid", 1)

    with pytest.raises(WriteConflictError):
        lose()
    assert read(acid, "d.t") == [(7, "other", 1)]
    if keys:
        with acid.transaction():
            assert tuple(merge(other, "other", 2)) == (1, 0, 0)
            assert tuple(merge(acid, "acid", 3)) == (1, 0, 0), "what is in another partition is another row"
    check_table(location_of(acid, "d.t"))
