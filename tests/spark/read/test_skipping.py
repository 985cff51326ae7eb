"""What is not read: partitions by their names, files by their statistics; and that no row is lost by it."""

import datetime as dt
import gc
import random
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.catalog.table import Column, Table
from hive_acid.filesystem import footers
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.predicates import may_match, predicate_of
from hive_acid.spark.limits import Limits
from hive_acid.spark.read import skipping
from hive_acid.spark.read.skipping import chosen_partitions, of_value
from hive_acid.spark.verbs.frame import AcidTable
from tests.spark.checker import location_of
from tests.spark.plans import scans

FILES = 4
PER_FILE = 100


@pytest.fixture
def stepped(acid: AcidSession, spark: SparkSession) -> Any:
    """Four writes, one file each, with k in 0..99, 100..199, …, and a name that is null in the last."""
    acid.create_table("d.t", {"k": "bigint", "name": "string", "day": "date"})
    for step in range(FILES):
        rows = spark.range(step * PER_FILE, (step + 1) * PER_FILE, 1, 1).selectExpr(
            "id AS k",
            "concat('n', id) AS name" if step < FILES - 1 else "cast(null AS string) AS name",
            "date_add(date'2020-01-01', cast(id AS int)) AS day",
        )
        acid.insert("d.t", rows)
    return acid


def files_of(frame: Any) -> Any:
    return sum(scan.files for scan in scans(frame))


CONDITIONS = {
    "k = 250": (1, 1),
    "k between 150 and 250": (2, 101),
    "k < 0": (0, 0),
    "k in (5, 399)": (2, 2),
    "name is null": (1, 100),
    "name is not null": (3, 300),
    "name = 'n5' or k = 305": (2, 2),
    "day < date'2020-01-11'": (1, 10),
    "k % 100 = 7": (4, 4),
    "name like 'n1%' and k >= 100": (3, 100),
}


def test_files_are_chosen_by_their_statistics(stepped: Any) -> None:
    table = stepped.table("d.t")
    for condition, (files, rows) in CONDITIONS.items():
        frame = stepped.table("d.t", where=condition)
        assert frame.count() == rows, condition
        assert table.where(condition).count() == rows, condition
        if files:
            assert files_of(frame) == files_of(table.where(condition)) == files, condition
        else:
            assert scans(frame) == [] or files_of(frame) == 0


def test_a_session_without_skipping_reads_everything(stepped: Any, spark: SparkSession) -> None:
    stepped.delete("d.t", "k = 110")
    with hive_acid.spark.session(spark, stepped.connection, skipping=False) as session:
        for condition, (_, rows) in CONDITIONS.items():
            for frame in (session.table("d.t", where=condition), session.table("d.t").where(condition)):
                assert frame.count() == rows - (condition in _LESS), condition
                assert files_of(frame) == FILES, condition
        assert session.delete("d.t", "k = 250") == 1


_LESS = ("name is not null", "name like 'n1%' and k >= 100")
"""Conditions that row 110 meets."""


def test_no_tail_beyond_the_limit_is_opened(stepped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stepped.limits = Limits(skipping_files=2)
    monkeypatch.setattr(skipping, "SHARED", footers.Footers())
    assert files_of(stepped.table("d.t", where="k < 0")) == FILES - 2
    assert stepped.table("d.t", where="k = 250").count() == 1


def test_changes_read_what_they_change(stepped: Any) -> None:
    assert stepped.delete("d.t", "k between 110 and 119") == 10
    assert stepped.update("d.t", {"k": "k + 1000"}, "k = 305 or k = 5") == 2
    assert stepped.table("d.t").count() == FILES * PER_FILE - 10
    moved = stepped.table("d.t", where="k > 999")
    assert sorted(row.k for row in moved.collect()) == [1005, 1305]
    assert stepped.table("d.t", where="k = 115").count() == 0
    assert stepped.table("d.t", where="k = 5").count() == 0
    source = stepped.spark.createDataFrame([(250, "merged"), (5000, "new")], "k bigint, name string")
    counts = (
        stepped.merge("d.t", source, "t.k = s.k")
        .whenMatchedUpdate(set={"name": "s.name"})
        .whenNotMatchedInsert(values={"k": "s.k", "name": "s.name"})
        .execute()
    )
    assert (counts.updated, counts.inserted) == (1, 1)
    assert {row.k: row.name for row in stepped.table("d.t", where="k in (250, 5000)").collect()} == {
        250: "merged",
        5000: "new",
    }


def test_only_files_that_deletes_may_name_are_joined(stepped: Any) -> None:
    stepped.limits = Limits(delete_events=0)
    stepped.delete("d.t", "k = 110")
    found = scans(stepped.table("d.t").select("k"))
    joined = [scan for scan in found if scan.files == 1]
    assert sum(scan.files for scan in found) == FILES + 1
    assert sorted(scan.files for scan in found) == [1, 1, 3], found
    assert len(joined) == 2
    assert stepped.table("d.t").count() == FILES * PER_FILE - 1


def test_columns_of_a_frame_and_of_what_is_filtered_from_it(stepped: Any) -> None:
    table = stepped.table("d.t")
    narrow = table.where("k between 150 and 250")
    assert isinstance(table, AcidTable)
    assert isinstance(narrow, DataFrame)
    assert not isinstance(narrow, AcidTable), "a change of what is filtered would be one of the whole table"
    assert narrow.select(table.k, table["name"], "day").count() == 101
    assert narrow.where(table.k > 200).select(narrow.k).agg(F.max("k")).collect()[0][0] == 250
    assert files_of(narrow.where(F.col("k") > 200)) == 1
    other = stepped.table("d.t").where("k < 160")
    assert narrow.join(other, narrow.k == other.k).count() == 10
    assert narrow.join(other, "k").count() == 10
    assert narrow.alias("a").join(narrow.alias("b"), F.col("a.k") == F.col("b.k")).count() == 101
    assert table[0].isNull() is not None
    assert table.where(table.k == 5).collect()[0].name == "n5"
    assert table[["k"]].columns == ["k"]
    with pytest.raises(AttributeError):
        _ = table.no_such_column
    with pytest.raises(PySparkException):
        table.where("no_such_column = 1 and k = 5")


def test_a_struct_may_have_the_name_of_its_table(acid: AcidSession, spark: SparkSession) -> None:
    """``t.k`` is the struct's field to a frame, and the table's column to SQL and to verbs."""
    acid.create_table("d.t", {"k": "int", "t": "struct<k:int>"})
    rows = [(k, (100 - k,)) for k in range(0, 100, 10)]
    for row in rows:
        acid.insert("d.t", spark.createDataFrame([row], "k int, t struct<k:int>"))
    of_field = [row for row in rows if row[1][0] == 30]
    assert [tuple(row) for row in acid.table("d.t", where="t.k = 30").collect()] == of_field
    assert [tuple(row) for row in acid.table("d.t", where=F.col("t.k") == 30).collect()] == of_field
    assert [tuple(row) for row in acid.table("d.t").where("t.k = 30").collect()] == of_field
    assert [row.k for row in acid.sql("SELECT k FROM d.t WHERE t.k = 30").collect()] == [30]
    assert acid.update("d.t", {"k": "-1"}, "t.k = 30") == acid.delete("d.t", "t.k = -1") == 1
    assert sorted(row.k for row in acid.table("d.t").collect()) == [k for k, _ in rows if k != 30]


def test_a_frame_whose_columns_were_given_is_filtered_as_it_is(stepped: Any) -> None:
    table = stepped.table("d.t")
    column = table.k
    assert table.where("k = 250").select(column).count() == 1
    assert table.where(column == 250).select(column, table.name).collect()[0].name == "n250"
    assert table.where(F.col("k") == 250).join(table, "k").count() == 1


def test_a_cached_frame_stays_cached(stepped: Any) -> None:
    table = stepped.table("d.t").cache()
    try:
        assert table.count() == FILES * PER_FILE
        assert "InMemoryRelation" in table.where("k = 250")._jdf.queryExecution().withCachedData().toString()
    finally:
        table.unpersist()


def test_what_is_filtered_keeps_the_snapshot_and_its_lease(stepped: Any, spark: SparkSession) -> None:
    table = stepped.table("d.t")
    narrow = table.where("k >= 300")
    del table
    gc.collect()
    stepped.delete("d.t", "k >= 300")
    assert narrow.count() == PER_FILE
    assert stepped.table("d.t", where="k >= 300").count() == 0
    with stepped.snapshot():
        before = stepped.table("d.t", where="k < 10")
        stepped_again = stepped.table("d.t").where("k < 10")
        assert before.count() == stepped_again.count() == 10


@pytest.fixture
def partitioned(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.p", {"k": "bigint"}, partitioned_by={"day": "date", "n": "int", "text": "string"})
    rows = spark.range(24).selectExpr(
        "id AS k",
        "date_add(date'2020-01-01', cast(id % 3 AS int)) AS day",
        "cast(id % 2 AS int) AS n",
        "if(id % 4 = 3, null, concat('a b/', id % 4)) AS text",
    )
    acid.insert("d.p", rows)
    return acid


def test_partitions_are_chosen_by_their_names(partitioned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    call = partitioned.connection.call
    monkeypatch.setattr(
        partitioned.connection,
        "call",
        lambda method, *args: (asked.append((method, args)), call(method, *args))[1],
    )
    everything = partitioned.table("d.p").collect()
    assert len(everything) == 24
    for condition, chosen in {
        "day = '2020-01-02' and n = 1": lambda row: row.day == dt.date(2020, 1, 2) and row.n == 1,
        "text is null": lambda row: row.text is None,
        "text = 'a b/1' or k = 0": lambda row: row.text == "a b/1" or row.k == 0,
        "n > 5": lambda row: False,
        "text in ('a b/0', 'a b/2') and k < 9": lambda row: row.text in ("a b/0", "a b/2") and row.k < 9,
    }.items():
        asked.clear()
        expected = sorted(row.k for row in everything if chosen(row))
        frame = partitioned.table("d.p", where=condition)
        named = [one.name for method, args in asked if method == "hive_acid_moved" for one in args[0].partitions]
        assert sorted(row.k for row in frame.collect()) == expected, condition
        assert sorted(row.k for row in partitioned.table("d.p").where(condition).collect()) == expected, condition
        if "or" not in condition:
            assert len(named) < 12
    assert partitioned.delete("d.p", "day = '2020-01-02'") == 8
    assert partitioned.table("d.p").count() == 16
    assert partitioned.update("d.p", {"k": "-k"}, "n = 0 and text = 'a b/2'") == 4


NAMED = Table(
    "d",
    "t",
    (),
    (
        Column("i", "tinyint"), Column("s", "string"), Column("day", "date"), Column("d", "decimal(4,2)"),
        Column("b", "boolean"), Column("x", "double"), Column("c", "char(2)"), Column("v", "varchar(3)"),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "name", "is_chosen"),
    [
        ("i = 5", {"i": "5"}, True),
        ("i = 5", {"i": "6"}, False),
        ("i = 5", {"i": "05"}, True),
        ("i is null", {"i": "300"}, True),
        ("i is null", {"i": "5"}, False),
        ("i is null", {}, True),
        ("i = 5", {"i": "x"}, True),
        ("s = 'x y'", {"s": "x y"}, True),
        ("s = 'x'", {"s": "x%2Fy"}, False),
        ("s = 'x/y'", {"s": "x%2Fy"}, True),
        ("day > date'2020-01-01'", {"day": "2020-01-01"}, False),
        ("day > date'2020-01-01'", {"day": "2020-1-1"}, True),
        ("day is null", {"day": "2020-02-30"}, True),
        ("d = 1.5", {"d": "1.50"}, True),
        ("d = 1.5", {"d": "1.51"}, False),
        ("d is null", {"d": "123.45"}, True),
        ("d = 1.51", {"d": "1.509"}, True),
        ("b", {"b": "false"}, False),
        ("b", {"b": "FALSE"}, True),
        ("x = 5", {"x": "6"}, True),
        ("c = 'a'", {"c": "b"}, True),
        ("v is null", {"v": "b"}, True),
    ],
)
def test_values_in_names(condition: Any, name: Any, is_chosen: Any) -> None:
    parts = [f"{key.name}={name.get(key.name, '__HIVE_DEFAULT_PARTITION__')}" for key in NAMED.partition_keys]
    found = chosen_partitions(NAMED, ["/".join(parts)], predicate_of(condition, NAMED))
    assert bool(found) == is_chosen


@pytest.mark.parametrize("seed", range(3))
def test_names_that_are_refused_at_sight_could_not_match(seed: int) -> None:
    """Against each value by itself: whatever texts stand for numbers in names."""
    choice = random.Random(seed)
    kinds = {"t": "tinyint", "n": "int", "g": "bigint", "s": "string"}
    table = Table("d", "t", (Column("a", "int"),), partition_keys=tuple(Column(*key) for key in kinds.items()))
    texts = ("0", "7", "07", "-7", "%37", "+7", "99", "127", "128", "999", "2147483648", "9223372036854775808", "٧",
             "7 ", "x", "__HIVE_DEFAULT_PARTITION__", "70", "1e1", "7.0")  # fmt: skip
    names = ["/".join(f"{key}={choice.choice(texts)}" for key in kinds) for _ in range(400)]
    numbers = ("0", "7", "-7", "99", "127", "128", "70", "2147483648", "9223372036854775807")
    for _ in range(200):
        conditions = []
        for key in choice.sample(["t", "n", "g", "s"], choice.randrange(1, 3)):
            one, other = choice.choice(numbers), choice.choice(numbers)
            quote = "'" if key == "s" else ""
            conditions.append(
                choice.choice(
                    (f"{key} = {quote}{one}{quote}", f"{key} IN ({quote}{one}{quote}, {quote}{other}{quote})")
                )
            )
        wanted = predicate_of(choice.choice((" AND ", " OR ")).join(conditions), table)
        expected = names
        if wanted is not None:
            expected = [name for name in names if may_match(wanted, _statistics(table, name))]
        assert chosen_partitions(table, names, wanted) == expected, conditions


def _statistics(table: Table, name: str) -> Any:
    values = dict(parse_partition_name(name))
    keys = {key.name: key for key in table.partition_keys}
    return lambda column: of_value(keys[column], values[column])


def test_statistics_are_those_of_the_place_in_the_file(acid: AcidSession, spark: SparkSession) -> None:
    """Columns that change names: what is known of a file's `a` is known of the table's `b`."""
    acid.create_table("d.t", {"a": "bigint", "b": "bigint"})
    acid.insert("d.t", spark.createDataFrame([(1, 100)], "a bigint, b bigint"))
    acid.rename_column("d.t", "a", "c")
    acid.rename_column("d.t", "b", "a")
    acid.insert("d.t", spark.createDataFrame([(2, 200)], "c bigint, a bigint"))
    assert [tuple(row) for row in acid.table("d.t", where="a = 100").collect()] == [(1, 100)]
    assert [tuple(row) for row in acid.table("d.t", where="a = 200").collect()] == [(2, 200)]
    assert acid.table("d.t", where="a < 10").count() == 0
    acid.add_columns("d.t", {"added": "int"})
    acid.insert("d.t", spark.createDataFrame([(3, 300, 5)], "c bigint, a bigint, added int"))
    assert acid.table("d.t", where="added = 5").count() == 1
    assert acid.table("d.t", where="added is null").count() == 2
    assert files_of(acid.table("d.t", where="added = 5")) == 1


def test_a_file_that_cannot_be_looked_into_is_read(stepped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(footers.Footers):
        def read(self, wanted: Any) -> None:  # type: ignore[override]
            raise OSError("no")

    monkeypatch.setattr(skipping, "SHARED", Refusing())
    stepped.delete("d.t", "k = 110")
    assert stepped.table("d.t", where="k = 250").count() == 1
    assert stepped.table("d.t", where="k between 109 and 111").count() == 2


def test_the_checker_sees_what_the_statistics_say(stepped: Any) -> None:
    """The independent reader of the tails: pyarrow's own minimum of each file."""
    for path in sorted(location_of(stepped, "d.t").glob("delta_*/bucket_*")):
        values = pyarrow.orc.ORCFile(path).read().column("row").combine_chunks().field("k")
        found = footers.SHARED.read([footers.DataFilePath(str(path), path.stat().st_size)])[0]
        known = found.statistics(found.column("row", "k"))  # type: ignore[arg-type]
        assert (known.minimum, known.maximum) == (pa.compute.min(values).as_py(), pa.compute.max(values).as_py())


def test_a_decimal_that_spark_rounds_beside_a_number_is_read(acid: AcidSession, spark: SparkSession) -> None:
    """Without a decimal that holds all values of both types Spark gives up places behind the point."""
    values = {"v": ("0." + "0" * 37 + "1", "0." + "9" * 38), "w": ("0." + "0" * 27 + "1", "9" * 10 + "." + "9" * 28)}
    acid.create_table("d.t", {"v": "decimal(38,38)", "w": "decimal(38,28)"})
    selects = [f"SELECT CAST('{v}' AS decimal(38,38)) AS v, CAST('{w}' AS decimal(38,28)) AS w"
               for v, w in zip(*values.values(), strict=True)]  # fmt: skip
    for select in selects:
        acid.insert("d.t", spark.sql(select))
    conditions = ("v = 0", "v <= 0", "v >= 1", "v > 0", "v IN (0, 1)", "v < 1", "w = 0", "w >= 10000000000", "w < 1.5",
                  "w = 0.0", "w > 0")  # fmt: skip
    plain = spark.sql(" UNION ALL ".join(selects))
    right = plain.selectExpr(*(f"count_if({of})" for of in conditions)).collect()[0]
    frames = [acid.table("d.t", where=of).selectExpr(f"{at} AS at") for at, of in enumerate(conditions)]
    rows = [row["at"] for row in reduce(DataFrame.unionAll, frames).collect()]
    assert [rows.count(at) for at in range(len(conditions))] == list(right)
    assert right[0] == 1, "Spark takes 1E-38 for 0 no more: then files may be skipped by it"
