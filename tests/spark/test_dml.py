"""UPDATE and DELETE, to the letter of Hive's own talk and beyond."""

import pytest
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError
from tests.spark.checker import check_table, location_of

BUCKET_0 = 536870912


def test_the_tables_of_hives_own_talk(acid, spark):
    acid.create_table("d.t", {"a": "int", "b": "string"})
    table = acid.table("d.t")
    assert table.insert(spark.createDataFrame([(100, "foo"), (200, "xyz"), (300, "bee")], "a int, b string")) == 3
    assert table.delete("a = 200") == 1
    assert table.update({"b": "'bar'"}, where="a = 300") == 1

    rows = [(tuple(r["ROW__ID"]), r["a"], r["b"]) for r in acid.table("d.t", row_id=True).collect()]
    assert sorted(rows) == [((1, BUCKET_0, 0), 100, "foo"), ((3, BUCKET_0, 0), 300, "bar")]
    found = check_table(location_of(acid, "d.t"))
    assert {
        name: {file: list(map(tuple, events)) for file, events in files.items()} for name, files in found.items()
    } == {
        "delta_0000001_0000001_0000": {
            "bucket_00000": [
                (0, 1, BUCKET_0, 0, 1, (100, "foo")),
                (0, 1, BUCKET_0, 1, 1, (200, "xyz")),
                (0, 1, BUCKET_0, 2, 1, (300, "bee")),
            ]
        },
        "delete_delta_0000002_0000002_0000": {"bucket_00000": [(2, 1, BUCKET_0, 1, 2, None)]},
        "delete_delta_0000003_0000003_0000": {"bucket_00000": [(2, 1, BUCKET_0, 2, 3, None)]},
        "delta_0000003_0000003_0000": {"bucket_00000": [(0, 3, BUCKET_0, 0, 3, (300, "bar"))]},
    }
    assert table.count() == 0, "a frame stays with its snapshot"


@pytest.fixture
def numbers(acid, spark):
    """Ids 0..99 in two partitions, n = id."""
    acid.create_table("d.t", {"id": "int", "n": "bigint"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "id n", "int(id % 2) p"))
    return acid


def read(acid, name="d.t"):
    return sorted(tuple(row) for row in acid.table(name).collect())


def test_conditions_may_be_columns_text_or_absent(numbers, spark):
    assert numbers.update("d.t", {"n": F.col("n") * 2}, F.col("id") < 10) == 10
    assert numbers.update("d.t", {"N": "n + p"}, "t.p = 1") == 50
    assert numbers.delete("d.t", F.col("t.id") >= 50) == 50
    spark.createDataFrame([(1,), (2,)], "k int").createOrReplaceTempView("keys")
    assert numbers.delete("d.t", "id IN (SELECT k FROM keys)") == 2
    expected = [(i, (i * 2 if i < 10 else i) + i % 2, i % 2) for i in range(50) if i not in (1, 2)]
    assert read(numbers) == sorted(expected)
    assert numbers.update("d.t", {"n": F.lit(None)}) == 48
    assert numbers.delete("d.t") == 48
    assert read(numbers) == []
    check_table(location_of(numbers, "d.t"))


def test_rows_for_which_the_condition_is_unknown_stay(numbers):
    numbers.update("d.t", {"n": "NULL"}, "id = 0")
    assert numbers.delete("d.t", "n < 1000") == 99
    assert read(numbers) == [(0, None, 0)]


def test_several_columns_are_set_from_the_old_row(numbers):
    assert numbers.update("d.t", {"id": "int(n)", "n": "id + 1"}, "id = 5") == 1
    assert (5, 6, 1) in read(numbers)


def test_updated_rows_can_be_updated_and_deleted_again(numbers):
    for _ in range(3):
        assert numbers.update("d.t", {"n": "n + 100"}, "id = 7") == 1
    assert (7, 307, 1) in read(numbers)
    assert numbers.delete("d.t", "id = 7") == 1
    assert len(read(numbers)) == 99
    assert numbers.delete("d.t", "id = 7") == 0
    check_table(location_of(numbers, "d.t"))


def test_a_value_is_computed_once_per_row(numbers):
    numbers.update("d.t", {"n": "cast(rand() * 1000000 AS int)"})
    assert len({row[1] for row in read(numbers)}) > 50


def test_bad_updates_are_refused_and_leave_nothing(numbers):
    before = check_table(location_of(numbers, "d.t"))
    for change, said in (
        ({"p": "1"}, "partition column p"),
        ({"nothing": "1"}, "no column nothing"),
        ({"n": "'x'"}, r"d\.t\.n"),
        ({"n": "date'2020-01-01'"}, r"d\.t\.n is bigint"),
        ({"id": "n + 100000000000"}, r"d\.t\.id"),
        ({"n": "nothing + 1"}, "nothing"),
        ({"n": "1 +"}, r"statement on d\.t: .*(?i:syntax)"),
        ({"n": "1", "N": "2"}, "given twice"),
        ({}, "sets no column"),
    ):
        with pytest.raises(ColumnError, match=said):
            numbers.update("d.t", change)
    with pytest.raises(ColumnError, match="nothing"):
        numbers.delete("d.t", "nothing = 1")
    assert check_table(location_of(numbers, "d.t")) == before
    assert len(read(numbers)) == 100


def test_one_file_per_bucket_whatever_the_number_of_tasks(acid, spark):
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        acid.insert("d.t", spark.range(0, 400, 1, 8).selectExpr("int(id) id", "int(id % 3) p"))
        acid.insert("d.t", spark.range(400, 800, 1, 8).selectExpr("int(id) id", "int(id % 3) p"))
        assert acid.update("d.t", {"id": "-id"}, "id % 5 = 0") == 160
        assert acid.delete("d.t", "id % 7 = 0") == 115
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    found = check_table(location_of(acid, "d.t"))
    assert len(found["p=0/delete_delta_0000003_0000003_0000"]) == 8
    values = [-i if i % 5 == 0 else i for i in range(800) if i % 7]
    assert [row[0] for row in read(acid)] == sorted(values)
