"""Types as they are read: instants, padded chars, early dates, odd names, wide tables, keys that are no numbers."""

import datetime
import math

import pyarrow
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Column
from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.values.types import row_type, spark_type
from tests.spark.compaction import compact_table
from tests.spark.placed import BUCKET_0, commit_writes, write_events
from tests.spark.plans import SPARK, scans


def test_instants_are_read_and_not_written(acid: AcidSession, spark: SparkSession) -> None:
    if SPARK < (4, 2):
        pytest.skip("this Spark does not know the type in ORC files")
    acid.create_table("d.t", {"id": "int", "at": "timestamp with local time zone"})
    file = commit_writes(acid, "d.t", 1) / "delta_0000001_0000001_0000" / "bucket_00000"
    noon = datetime.datetime(2020, 6, 1, 12, tzinfo=datetime.UTC)
    row = pyarrow.struct([("id", pyarrow.int32()), ("at", pyarrow.timestamp("us", "UTC"))])
    write_events(file, [(0, 1, BUCKET_0, n, 1, {"id": n, "at": noon}) for n in range(3)], row)
    assert acid.table("d.t").where("at = timestamp'2020-06-01 12:00:00Z'").count() == 3
    assert acid.table("d.t").dtypes[1] == ("at", "timestamp")
    assert acid.delete("d.t", "id = 0") == 1
    for write in (
        lambda: acid.update("d.t", {"id": "id + 1"}),
        lambda: acid.insert("d.t", acid.table("d.t")),
        lambda: compact_table(spark, acid, "d.t", "major"),
    ):
        with pytest.raises(ColumnError, match="cannot hold instants"):
            write()
    assert sorted(row.id for row in acid.table("d.t").collect()) == [1, 2]


def test_chars_have_their_whole_length(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int", "c": "char(4)"})
    file = commit_writes(acid, "d.t", 1) / "delta_0000001_0000001_0000" / "bucket_00000"
    row = pyarrow.struct([("id", pyarrow.int32()), ("c", pyarrow.string())])
    texts = ["ab", "ab  ", "", None, "éé"]
    write_events(file, [(0, 1, BUCKET_0, n, 1, {"id": n, "c": text}) for n, text in enumerate(texts)], row)
    assert [row.c for row in acid.table("d.t").orderBy("id").collect()] == ["ab  ", "ab  ", "    ", None, "éé  "]
    acid.change_column_type("d.t", "c", "char(6)")
    assert acid.table("d.t").where("c = 'ab    '").count() == 2


EARLY = [
    ("1500-03-01", "1500-03-01 01:02:03.456789"),
    ("1582-10-04", "1582-10-04 23:59:59"),
    ("1582-10-15", "1582-10-15 00:00:00"),
    ("1883-11-18", "1883-11-18 12:03:58"),
    ("1899-12-31", "1899-12-31 23:59:59.999999"),
    ("0001-01-01", "0001-01-01 00:00:00"),
    ("9999-12-31", "9999-12-31 23:59:59.999999"),
]


def test_early_dates_and_timestamps(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"d": "date", "at": "timestamp", "many": "array<struct<d:date,at:timestamp>>"})
    frame = spark.createDataFrame(EARLY, "d string, at string").selectExpr("cast(d AS date)", "cast(at AS timestamp)")
    acid.insert("d.t", frame.withColumn("many", F.array(F.struct("d", "at"))))
    texts = acid.table("d.t").selectExpr(
        "cast(d AS string)", "cast(at AS string)", "cast(many[0].d AS string)", "cast(many[0].at AS string)"
    )
    for vectorized in ("true", "false"):
        spark.conf.set("spark.sql.orc.enableVectorizedReader", vectorized)
        try:
            assert sorted(tuple(row) for row in texts.collect()) == sorted((*pair, *pair) for pair in EARLY)
        finally:
            spark.conf.unset("spark.sql.orc.enableVectorizedReader")


def test_names_that_need_quotes(acid: AcidSession, spark: SparkSession) -> None:
    names = [
        "a.b",
        "with space",
        "select",
        "it's",
        'say "x"',
        "ünï",
        "a,b",
        "a:b",
        "<x>",
        "1st",
        "bucket",
        "row",
        "rowid",
    ]
    acid.create_table("d.t", dict.fromkeys(names, "int"), partitioned_by={"key.1": "int", "order": "string"})
    schema = t.StructType([t.StructField(name, t.IntegerType()) for name in (*names, "key.1", "order")])
    acid.insert("d.t", spark.createDataFrame([tuple(range(len(names) + 2))], schema))
    assert acid.update("d.t", {"a.b": "`a.b` + `select` + 10", "row": "-1"}, "`with space` = 1 AND `key.1` = 13") == 1
    (found,) = acid.table("d.t").collect()
    assert found.asDict() == {
        **{name: number for number, name in enumerate(names)}, "a.b": 12, "row": -1, "key.1": 13, "order": "14"
    }  # fmt: skip
    acid.rename_column("d.t", "it's", "it is")
    assert acid.table("d.t").select("it is").collect()[0][0] == 3
    with pytest.raises(ColumnError, match="backquote"):
        row_type([Column("a`b", "int")])


@pytest.mark.slow
def test_two_thousand_columns(acid: AcidSession) -> None:
    names = [f"c{number}" for number in range(2000)]
    acid.create_table("d.t", dict.fromkeys(names, "int"))
    file = commit_writes(acid, "d.t", 1) / "delta_0000001_0000001_0000" / "bucket_00000"
    row = pyarrow.struct([(name, pyarrow.int32()) for name in names])
    write_events(file, [(0, 1, BUCKET_0, n, 1, dict.fromkeys(names, n)) for n in range(3)], row)
    found = acid.table("d.t").select("c0", "c1000", "c1999")
    assert sorted(tuple(row) for row in found.collect()) == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    for one in scans(found):
        assert "c7:" not in one.text
    assert set(acid.table("d.t").where("c1999 = 1").first()) == {1}  # type: ignore[arg-type]


def test_keys_that_are_no_number_or_null(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"f": "double", "s": "string"})
    keys = [(math.nan, "a"), (math.inf, "b"), (-0.5, None), (None, "")]
    acid.insert("d.t", spark.createDataFrame([(n, *key) for n, key in enumerate(keys)], "id int, f double, s string"))
    found = {row.id: (row.f, row.s) for row in acid.table("d.t").collect()}
    assert math.isnan(found[0][0])
    assert [found[n] for n in (1, 2, 3)] == [(math.inf, "b"), (-0.5, None), (None, None)]
    assert acid.table("d.t").where("isnan(f)").count() == 1
    assert acid.delete("d.t", "f IS NULL AND s IS NULL") == 1
    assert acid.update("d.t", {"id": "10"}, "isnan(f)") == 1
    assert sorted(row.id for row in acid.table("d.t").collect()) == [1, 2, 10]


def test_unions_are_refused_by_name(acid: AcidSession) -> None:
    with pytest.raises(ColumnError, match="uniontype<int,string>"):
        spark_type("uniontype<int,string>")
