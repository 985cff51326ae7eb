"""INSERT OVERWRITE: bases of tables and partitions, beside readers and writers, inside transactions."""

import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import ColumnError, UnsupportedTableError, WriteConflictError
from hive_acid.spark import AcidSession
from hive_acid.spark.write.overwrite import has_own_readers
from hive_acid.transactions.transaction import AGENT_INFO
from tests.caller import Caller
from tests.spark.checker import check_table, location_of

KINDS = "id int, p int, q string"


def rows_of(spark: SparkSession, *rows: Any, kinds: Any = KINDS) -> Any:
    return spark.createDataFrame(list(rows), kinds)


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


@pytest.fixture
def numbers(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(5).selectExpr("int(id) id"))
    return acid


@pytest.fixture
def parts(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int", "q": "string"})
    acid.insert("d.t", rows_of(spark, (1, 1, "a"), (2, 1, "b"), (3, 2, "a")))
    return acid


def test_a_table_is_replaced(numbers: Any, spark: SparkSession) -> None:
    numbers.delete("d.t", "id = 0")
    before = numbers.table("d.t")
    assert numbers.table("d.t").overwrite(spark.range(7, 9).selectExpr("int(id) id")) == 2
    assert read(numbers) == [(7,), (8,)]
    assert sorted(row.id for row in before.collect()) == [1, 2, 3, 4]
    assert "base_0000003" in check_table(location_of(numbers, "d.t"))
    numbers.update("d.t", {"id": "70"}, "id = 7")
    numbers.insert("d.t", spark.range(1).selectExpr("int(id) id"))
    assert read(numbers) == [(0,), (8,), (70,)]


def test_a_table_is_replaced_by_what_is_read_from_it(numbers: Any) -> None:
    assert numbers.overwrite("d.t", numbers.table("d.t").where("id > 2").selectExpr("id * 10 AS id")) == 2
    assert read(numbers) == [(30,), (40,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OVERWRITE d.t SELECT id * 10 FROM d.t",
        "CREATE OR REPLACE TABLE d.t AS SELECT id * 10 AS id FROM d.t",
        "CREATE OR REPLACE TABLE d.t AS SELECT id * 10 AS id, 'x' AS more FROM d.t",
    ],
)
def test_what_is_inserted_before_it_has_its_lock_is_read(
    numbers: Any, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """A base hides it: who reads the table must have seen it."""
    begin, todo = numbers.connection.begin, ["INSERT INTO d.t VALUES (5)"]
    with hive_acid.spark.session(numbers.spark, numbers.connection.uri) as other:

        def begun(*given: Any, **options: Any) -> Any:
            found = begin(*given, **options)
            if todo:
                other.sql(todo.pop())
            return found

        monkeypatch.setattr(numbers.connection, "begin", begun)
        numbers.sql(statement)
    assert [row[0] for row in read(numbers)] == [0, 10, 20, 30, 40, 50]


def test_a_table_is_replaced_by_nothing(numbers: Any, spark: SparkSession) -> None:
    assert numbers.overwrite("d.t", rows_of(spark, kinds="id int")) == 0
    assert read(numbers) == []
    found = check_table(location_of(numbers, "d.t"))
    assert found["base_0000002"] == {"bucket_00000": []}
    numbers.insert("d.t", rows_of(spark, (1,), kinds="id int"))
    assert read(numbers) == [(1,)]


def test_partitions_that_rows_fall_into_are_replaced(parts: Any, spark: SparkSession) -> None:
    assert parts.overwrite("d.t", rows_of(spark, (10, 1, "a"), (11, 1, "a"), (12, 9, "z"))) == 3
    assert read(parts) == [(2, 1, "b"), (3, 2, "a"), (10, 1, "a"), (11, 1, "a"), (12, 9, "z")]
    bases = [name for name in check_table(location_of(parts, "d.t")) if "base" in name]
    assert bases == ["p=1/q=a/base_0000002", "p=9/q=z/base_0000002"]
    assert parts.overwrite("d.t", rows_of(spark)) == 0
    assert len(read(parts)) == 5


def test_a_static_partition_is_replaced_even_by_nothing(parts: Any, spark: SparkSession) -> None:
    given = rows_of(spark, (10,), kinds="id int")
    assert parts.overwrite("d.t", given, partition={"P": "1", "q": "a"}) == 1
    assert read(parts) == [(2, 1, "b"), (3, 2, "a"), (10, 1, "a")]
    assert parts.overwrite("d.t", given.limit(0), partition={"p": "1", "q": "a"}) == 0
    assert parts.overwrite("d.t", given.limit(0), partition={"p": "5", "q": None}) == 0
    assert read(parts) == [(2, 1, "b"), (3, 2, "a")]
    assert "p=5/q=__HIVE_DEFAULT_PARTITION__" in parts.table("d.t").partitions()
    check_table(location_of(parts, "d.t"))


def test_the_first_partition_columns_may_be_given(parts: Any, spark: SparkSession) -> None:
    assert parts.overwrite("d.t", rows_of(spark, (10, "b"), kinds="id int, q string"), partition={"p": "1"}) == 1
    assert read(parts) == [(1, 1, "a"), (3, 2, "a"), (10, 1, "b")]
    assert parts.overwrite("d.t", rows_of(spark, (11, "b"), kinds="id int, q string").limit(0), partition={"p": 1}) == 0
    assert parts.overwrite("d.t", rows_of(spark, (11,), kinds="id int").limit(0), partition={"p": 1, "q": "b"}) == 0
    assert read(parts) == [(1, 1, "a"), (3, 2, "a")]
    for wrong in ({"q": "a"}, {"id": "1"}, {"p": "1", "z": "1"}):
        with pytest.raises(ColumnError, match="first of its partition columns"):
            parts.overwrite("d.t", rows_of(spark, (10, 1, "b")), partition=wrong)
    with pytest.raises(ColumnError, match=r"d\.t\.p"):
        parts.overwrite("d.t", rows_of(spark, (10, "b"), kinds="id int, q string"), partition={"p": "one"})


@pytest.mark.parametrize(
    ("partition", "given", "replaced"),
    [
        ({"p": 1}, [(10, 1, "b")], True),
        ({"p": "01"}, [(10, 1, "b"), (11, 1, None)], True),
        ({"p": 1, "q": "a"}, [(10, 1, "a")], True),
        ({"q": "a", "P": 1}, [(10, 1, "a")], True),
        ({"p": 1, "q": "a"}, [], True),
        ({"p": 1, "q": None}, [(10, 1, None), (11, 1, "")], True),
        ({"p": 1, "q": ""}, [(10, 1, None)], True),
        ({"p": 1}, [(10, 1, "b"), (11, 2, "b")], False),
        ({"p": 1}, [(11, None, "b")], False),
        ({"p": 1, "q": "a"}, [(10, 1, "a"), (11, 1, "b")], False),
        ({"p": 1, "q": "a"}, [(10, 1, None)], False),
        ({"p": None}, [(10, 1, "a")], False),
    ],
)
def test_a_frame_may_have_the_partition_that_is_replaced(
    parts: Any, spark: SparkSession, partition: Any, given: Any, replaced: Any
) -> None:
    """If all its rows have the values of `partition`; else nothing is replaced."""

    def read_all() -> Any:
        return sorted(map(tuple, parts.table("d.t").collect()), key=str)

    before = read_all()
    frame = spark.createDataFrame(given, "id int, P int, q string")
    static = {key.lower(): value for key, value in partition.items()}
    if not replaced:
        with pytest.raises(ColumnError, match=r"has another [pq] than that"):
            parts.overwrite("d.t", frame, partition=partition)
        assert read_all() == before
        return
    assert parts.overwrite("d.t", frame, partition=partition) == len(given)
    touched = {(p, q or None) for _, p, q in given} | ({(1, static["q"] or None)} if "q" in static else set())
    kept = [row for row in before if (row[1], row[2]) not in touched]
    assert read_all() == sorted([*kept, *((at, p, q or None) for at, p, q in given)], key=str)


def test_rows_are_replaced_by_a_condition(parts: Any, spark: SparkSession) -> None:
    old = parts.table("d.t")
    assert parts.overwrite("d.t", rows_of(spark, (3, 7, "new"), (3, 2, "a")), where="t.id >= 3 AND p IS NOT NULL") == 2
    assert read(parts) == [(1, 1, "a"), (2, 1, "b"), (3, 2, "a"), (3, 7, "new")]
    assert parts.overwrite("d.t", rows_of(spark), where=F.col("q") == "new") == 0
    assert parts.table("d.t").overwrite(old.where("id > 1").selectExpr("id * 10 id", "p", "q"), where="id > 1") == 2
    assert read(parts) == [(1, 1, "a"), (20, 1, "b"), (30, 2, "a")]
    with parts.transaction():
        parts.insert("d.t", rows_of(spark, (40, 4, "d")))
        parts.overwrite("d.t", rows_of(spark, (50, 5, "e")), where="id >= 30")
    assert read(parts) == [(1, 1, "a"), (20, 1, "b"), (50, 5, "e")]
    assert not any("base" in name for name in check_table(location_of(parts, "d.t")))


def test_rows_that_are_not_among_the_replaced_ones_are_refused(parts: Any, spark: SparkSession) -> None:
    before = check_table(location_of(parts, "d.t"))
    for given in ((2, 1, "a"), (None, 1, "a")):
        with pytest.raises(ColumnError, match=r"new row of d\.t is not one of those"):
            parts.overwrite("d.t", rows_of(spark, (5, 1, "a"), given), where="id >= 3")
    with pytest.raises(ColumnError, match="not both"):
        parts.overwrite("d.t", rows_of(spark, (10,), kinds="id int"), where="id >= 3", partition={"p": "1", "q": "a"})
    with pytest.raises(ColumnError, match="nothing"):
        parts.overwrite("d.t", rows_of(spark, (5, 1, "a")), where="nothing = 3")
    assert check_table(location_of(parts, "d.t")) == before
    # What never becomes a new row is not looked at, wherever Spark could ask of it.
    ids = spark.createDataFrame([(5,)], "id int")
    joined = rows_of(spark, (5, 1, "a"), (2, 1, "a")).join(ids, "id")
    assert parts.overwrite("d.t", joined, where="id >= 3") == 1


def test_in_a_transaction_an_overwrite_comes_last(numbers: Any, spark: SparkSession) -> None:
    one = rows_of(spark, (100,), kinds="id int")
    with numbers.transaction():
        numbers.insert("d.t", one)
        numbers.delete("d.t", "id = 0")
        assert numbers.overwrite("d.t", numbers.table("d.t").where("id >= 4")) == 2
        assert read(numbers) == [(4,), (100,)]
        assert numbers.overwrite("d.t", numbers.table("d.t").selectExpr("id + 1 AS id")) == 2
        assert read(numbers) == [(5,), (101,)]
    assert read(numbers) == [(5,), (101,)]
    check_table(location_of(numbers, "d.t"))
    for after in (
        lambda: numbers.insert("d.t", one),
        lambda: numbers.delete("d.t", "id = 100"),
        lambda: numbers.update("d.t", {"id": "1"}, "id = 100"),
    ):
        with pytest.raises(UnsupportedTableError, match="overwritten"), numbers.transaction():
            numbers.overwrite("d.t", one)
            after()
        assert read(numbers) == [(5,), (101,)]
    (base,) = location_of(numbers, "d.t").glob("base_*")
    assert base.name == "base_0000002"


def test_other_partitions_may_be_changed_after_an_overwrite(parts: Any, spark: SparkSession) -> None:
    with parts.transaction():
        parts.overwrite("d.t", rows_of(spark, (10, 1, "a")))
        parts.insert("d.t", rows_of(spark, (11, 2, "a")))
        parts.delete("d.t", "id = 2")
    assert read(parts) == [(3, 2, "a"), (10, 1, "a"), (11, 2, "a")]


def test_an_abort_leaves_no_base(numbers: Any, spark: SparkSession) -> None:
    with pytest.raises(RuntimeError), numbers.transaction():
        numbers.overwrite("d.t", rows_of(spark, (100,), kinds="id int"))
        assert list(location_of(numbers, "d.t").glob("base_*"))
        raise RuntimeError
    assert not list(location_of(numbers, "d.t").glob("base_*"))
    assert len(read(numbers)) == 5


def test_a_concurrent_change_conflicts(numbers: Any, spark: SparkSession) -> None:
    with pytest.raises(WriteConflictError), numbers.transaction():
        numbers.table("d.t").collect()
        thread = threading.Thread(target=lambda: numbers.delete("d.t", "id = 1"))
        thread.start()
        thread.join()
        numbers.overwrite("d.t", rows_of(spark, (100,), kinds="id int"))
    assert read(numbers) == [(0,), (2,), (3,), (4,)]
    assert not list(location_of(numbers, "d.t").glob("base_*"))


def test_readers_of_other_engines_are_waited_for(numbers: Any) -> None:
    """Ours see no base before its commit, so their frames do not stand in the way."""
    table = numbers.connection.table("d", "t")
    with Caller(numbers.connection.uri) as ann:
        for agent, ours in (("hive_20260101", False), (AGENT_INFO, True)):
            reader = ann.begin()
            ann.lock("r d/t s", txn=reader, agentInfo=agent)
            assert has_own_readers(numbers.connection, table) is ours
            ann.commit(reader)
