"""MERGE: states and counties, clause order, one source, cardinality."""

import pytest
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError, MergeCardinalityError
from tests.spark.checker import check_table, location_of


@pytest.fixture
def states(acid, spark):
    """The table of the talk on MERGE: ids 1, 2, 7 and 16."""
    acid.create_table("d.target", {"id": "int", "state": "string", "county": "string"})
    rows = [(1, "CA", "LA"), (2, "MA", "Norfolk"), (7, "MA", "Suffolk"), (16, "CA", "Orange")]
    acid.insert("d.target", spark.createDataFrame(rows, "id int, state string, county string"))
    return acid


@pytest.fixture
def counties(spark):
    rows = [(1, "20.0"), (7, "80.0"), (100, "6.0")]
    return spark.createDataFrame(rows, "id int, value string")


def read(acid, name="d.target"):
    return sorted(tuple(row) for row in acid.table(name).collect())


def test_states_and_counties(states, counties):
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


def test_the_first_clause_whose_condition_holds_decides(states, counties):
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


def test_all_columns_by_name(acid, spark):
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(6).selectExpr("int(id) id", "'old' name", "int(id % 2) p"))
    source = spark.range(4, 8).selectExpr("int(id % 2) P", "'new' NAME", "id", "'more' extra")
    merged = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert tuple(merged) == (2, 2, 0)
    assert read(acid, "d.t") == [(i, "old" if i < 4 else "new", i % 2) for i in range(8)]
    check_table(location_of(acid, "d.t"))
    moved = source.withColumn("P", F.lit(9))
    with pytest.raises(ColumnError, match="partition"):
        acid.merge("d.t", moved, "t.id = s.id").whenMatchedUpdateAll().execute()
    assert read(acid, "d.t") == [(i, "old" if i < 4 else "new", i % 2) for i in range(8)]
    with pytest.raises(ColumnError, match="no column name"):
        acid.merge("d.t", source.drop("NAME"), "t.id = s.id").whenMatchedUpdateAll()


def test_a_row_matched_twice_fails_and_leaves_nothing(states, counties):
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


def test_a_source_that_changes_is_merged_as_one(acid, spark):
    acid.create_table("d.t", {"id": "int", "v": "double"})
    acid.insert("d.t", spark.range(200).selectExpr("int(id) id", "0.0D v"))
    random = spark.range(1000).selectExpr("int(id) id", "rand() v").where("v < 0.5")
    merged = (
        acid.merge("d.t", random, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()
    )
    table = acid.table("d.t")
    assert table.count() == table.select("id").distinct().count() == 200 + merged.inserted
    assert table.where("id < 200 AND v > 0").count() == merged.updated
    assert table.where("v >= 0.5").count() == 0


def test_insert_only_and_update_only(states, counties):
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


def test_joins_that_are_no_equation(states, counties):
    merged = states.merge("d.target", counties.where("id = 7"), "t.id > s.id").whenMatchedDelete()
    assert merged.execute().deleted == 1
    assert [row[0] for row in read(states)] == [1, 2, 7]


def test_null_keys_match_nothing(acid, spark):
    acid.create_table("d.t", {"id": "int"})
    nulls = spark.createDataFrame([(None,), (1,)], "id int")
    acid.insert("d.t", nulls)
    merged = acid.merge("d.t", nulls, "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert tuple(merged) == (1, 0, 1)


def test_bad_merges_are_refused(states, counties, spark):
    def merge(on="t.id = s.id"):
        return states.merge("d.target", counties, on)

    with pytest.raises(ColumnError, match="no clause"):
        merge().execute()
    with pytest.raises(ColumnError, match="never apply"):
        merge().whenMatchedDelete().whenMatchedUpdate(set={"state": "'x'"})
    with pytest.raises(ColumnError, match="no column nothing"):
        merge().whenMatchedUpdate(set={"nothing": "1"})
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
