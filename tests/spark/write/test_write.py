"""INSERT: the files it leaves, the values it takes and those it refuses."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.errors import ColumnError, TableNotAcidError
from hive_acid.format.rows import decode_bucket
from hive_acid.spark import AcidSession
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_table, location_of
from tests.spark.plans import last_write


@pytest.fixture
def simple(acid: AcidSession) -> Any:
    acid.create_table("d.t", {"id": "int", "name": "string"})
    return acid


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


def test_a_small_insert_of_many_tasks_is_one_file_in_the_order_given(simple: Any, spark: SparkSession) -> None:
    simple.insert(
        "d.t", spark.range(1000, numPartitions=10).selectExpr("cast(id AS int) id", "cast(id AS string) name")
    )
    found = check_table(location_of(simple, "d.t"))
    assert list(found) == ["delta_0000001_0000001_0000"]
    (events,) = found["delta_0000001_0000001_0000"].values()
    assert [event.row_id for event in events] == list(range(1000))
    assert [event.row[0] for event in events] == list(range(1000))


def test_several_tasks_are_several_buckets(simple: Any, spark: SparkSession) -> None:
    simple.insert("d.t", spark.range(100).coalesce(2).selectExpr("cast(id AS int) id", "'x' name"))
    found = check_table(location_of(simple, "d.t"))["delta_0000001_0000001_0000"]
    assert list(found) == ["bucket_00000", "bucket_00001"]
    for events in found.values():
        assert [event.row_id for event in events] == list(range(len(events)))
    assert simple.update("d.t", {"name": "'y'"}, "id < 50") == 50
    assert simple.delete("d.t", "id % 2 = 0") == 50
    check_table(location_of(simple, "d.t"))
    assert read(simple) == [(i, "y" if i < 50 else "x") for i in range(1, 100, 2)]


def test_columns_meet_by_name_in_any_case_and_order(simple: Any, spark: SparkSession) -> None:
    simple.insert("d.t", spark.createDataFrame([("a", 1)], "NAME string, Id int"))
    assert read(simple) == [(1, "a")]
    with pytest.raises(ColumnError, match="missing: name; unknown: nam"):
        simple.insert("d.t", spark.createDataFrame([("a", 1)], "nam string, id int"))
    with pytest.raises(ColumnError, match="given twice"):
        simple.insert("d.t", spark.createDataFrame([("a", "b", 1)], "name string, Name string, id int"))


def test_columns_that_the_table_lacks_are_added(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    table = acid.table("d.t")
    table.insert(spark.createDataFrame([(1, "old", 1)], "id int, name string, p int"))
    more = spark.createDataFrame([(1, 2, (3, 4))], "P int, ID bigint, `More of it` struct<A:int,b:int>")
    with pytest.raises(ColumnError, match=r"missing: name; unknown: More of it"):
        table.insert(more)
    assert table.insert(more, schema_evolution=True) == 1
    assert acid.insert(table._table, more, schema_evolution=True) == 1  # by one who has not heard of it
    assert acid.table("d.t").columns == ["id", "name", "more of it", "p"]
    assert read(acid) == [(1, "old", None, 1), (2, None, (3, 4), 1), (2, None, (3, 4), 1)]
    for odd, said in (
        (more.drop("p"), "missing: p"),
        (more.selectExpr("*", "null AS nothing"), "void"),
        (more.selectExpr("*", "1 AS id"), "given twice"),
        (more.selectExpr("*", "1 AS `a``b`"), "backquote"),
        (more.selectExpr("*", "named_struct('a:b', 1) AS s"), "cannot be called a:b"),
        (more.selectExpr("*", "array(named_struct('a`b', 1)) AS s"), "cannot be called a`b"),
    ):
        with pytest.raises(ColumnError, match=said):
            acid.insert("d.t", odd, schema_evolution=True)
        assert acid.table("d.t").columns == ["id", "name", "more of it", "p"]
    acid.create_table("d.o", {"id": "int"}, properties={"transactional_properties": "insert_only"})
    with pytest.raises(TableNotAcidError):
        acid.insert("d.o", more, schema_evolution=True)
    check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("type_", "value", "source"),
    [
        ("int", "x", "string"),
        ("tinyint", 1000, "int"),
        ("int", 2**40, "bigint"),
        ("decimal(4,2)", Decimal("123.45"), "decimal(10,2)"),
        ("date", "2020-13-01", "string"),
        ("varchar(3)", "long", "string"),
        ("char(3)", "long", "string"),
        ("array<tinyint>", [1, 1000], "array<int>"),
        ("map<int,int>", {"1": "x"}, "map<string,string>"),
        ("array<struct<a:tinyint>>", [(1,), (1000,)], "array<struct<a:int>>"),
    ],
)
def test_values_that_do_not_fit_fail_the_insert(
    acid: AcidSession, spark: SparkSession, type_: Any, value: Any, source: Any, ansi: Any
) -> None:
    acid.create_table("d.t", {"v": type_})
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(ColumnError, match=r"d\.t\.v"):
            acid.insert("d.t", spark.createDataFrame([(value,)], f"v {source}"))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert acid.table("d.t").count() == 0
    assert check_table(location_of(acid, "d.t")) == {}


@pytest.mark.parametrize(
    ("type_", "source"),
    [("int", "boolean"), ("int", "date"), ("date", "int"), ("binary", "int"), ("array<int>", "int"),
     ("struct<a:int,b:int>", "struct<a:int,c:int>"), ("string", "array<int>"), ("boolean", "int")],
)  # fmt: skip
def test_types_that_never_fit_are_refused_before_anything_runs(
    acid: AcidSession, spark: SparkSession, type_: Any, source: Any
) -> None:
    acid.create_table("d.t", {"v": type_})
    with pytest.raises(ColumnError, match=r"d\.t\.v is"):
        acid.insert("d.t", spark.createDataFrame([], f"v {source}"))


def test_values_are_cast_without_loss(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"i": "bigint", "d": "decimal(10,3)", "s": "string", "v": "varchar(3)", "c": "char(4)"})
    frame = spark.createDataFrame([("7", 1.5, 9, "ab     ", "x")], "i string, d double, s int, v string, c string")
    acid.insert("d.t", frame)
    assert read(acid) == [(7, Decimal("1.500"), "9", "ab ", "x   ")]


def test_nested_values_are_cast_one_by_one(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"l": "array<bigint>", "m": "map<bigint,string>", "s": "struct<a:bigint,b:array<string>>"})
    given = "l array<int>, m map<string,int>, s struct<A:int,b:array<int>>"
    acid.insert("d.t", spark.createDataFrame([([1, None], {"2": 3}, (4, [5])), (None, None, None)], given))
    rows = acid.table("d.t").orderBy("l").collect()
    assert [tuple(row) for row in rows] == [(None, None, None), ([1, None], {2: "3"}, (4, ["5"]))]


EVERY_TYPE = {
    "b": "boolean",
    "i8": "tinyint",
    "i16": "smallint",
    "i32": "int",
    "i64": "bigint",
    "f": "float",
    "d": "double",
    "dec": "decimal(38,10)",
    "s": "string",
    "bin": "binary",
    "day": "date",
    "at": "timestamp",
    "list": "array<struct<a:int,b:string>>",
    "map": "map<string,array<bigint>>",
    "deep": "struct<x:struct<y:map<int,string>>>",
}


def test_every_type_comes_back(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", EVERY_TYPE)
    values = spark.sql(
        """SELECT true b, tinyint(-1) i8, smallint(300) i16, 70000 i32, 5000000000 i64, float(1.5) f, 2.25D d,
        cast('1234567890123456789012345678.0123456789' AS decimal(38,10)) dec, 'é\\u0000x' s, X'00FF' bin,
        DATE'1500-03-01' day, TIMESTAMP'1970-01-01 00:00:00.123456' at,
        array(named_struct('a', 1, 'b', 'x'), null) list,
        map('k', array(1L, null)) map, named_struct('x', named_struct('y', map(1, 'one'))) deep"""
    )
    nulls = values.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in values.schema))
    assert acid.insert("d.t", values.union(nulls)) == 2
    table = acid.table("d.t")
    assert table.schema.simpleString() == t.StructType(values.schema.fields).simpleString()
    assert table.where("i32 = 70000").collect() == values.collect()
    assert table.where("i32 IS NULL").collect() == nulls.collect()
    assert acid.update("d.t", {"f": "0"}, "b") == 1
    assert table.where("b").drop("f").collect() == acid.table("d.t").where("b").drop("f").collect()


def test_a_timestamp_without_zone_is_stored_as_a_timestamp(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"at": "timestamp"})
    acid.insert("d.t", spark.sql("SELECT TIMESTAMP_NTZ'2020-06-01 12:34:56' AS at"))
    assert [str(row.at) for row in acid.table("d.t").collect()] == ["2020-06-01 12:34:56"]


def test_dynamic_partitions_are_registered(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"y": "int", "m": "string"})
    frame = spark.range(40).selectExpr("int(id) id", "int(2010 + id % 2) y", "concat('m', id % 3) m")
    assert acid.insert("d.t", frame) == 40
    names = [f"y={y}/m=m{m}" for y in (2010, 2011) for m in range(3)]
    assert acid.table("d.t").partitions() == names
    found = check_table(location_of(acid, "d.t"))
    assert sorted(found) == [f"{name}/delta_0000001_0000001_0000" for name in names]
    assert all(list(files) == ["bucket_00000"] for files in found.values())
    assert read(acid) == sorted((i, 2010 + i % 2, f"m{i % 3}") for i in range(40))
    acid.insert("d.t", frame.where("id = 0"))
    assert acid.table("d.t").partitions() == names


@pytest.mark.parametrize(
    ("type_", "texts"),
    [
        ("tinyint", ["-7", "0", "12"]),
        ("smallint", ["-300", "0", "12"]),
        ("int", ["-70000", "0", "12"]),
        ("bigint", ["-5000000000", "0", "12"]),
        ("date", ["0004-02-29", "1969-12-31", "2024-02-29"]),
        ("boolean", ["false", "true", "true"]),
        ("string", ["", "b c", "\u00e9=1/2"]),
        ("decimal(5,2)", ["-1.50", "0.00", "2.25"]),
    ],
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_partitions_of_every_type_and_of_null_keep_the_order_of_rows(
    acid: AcidSession, spark: SparkSession, type_: Any, texts: Any, shuffled: Any
) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": type_})
    text = f"element_at(array(NULL, {', '.join(map(repr, texts))}), int(pmod(xxhash64(id), 4)) + 1)"
    frame = spark.range(2000, numPartitions=1).selectExpr("int(id) id", f"cast({text} AS {type_}) p")
    # Of rows that are grouped Spark knows too little, so they are shuffled.
    given = frame.groupBy("id", "p").agg(F.collect_list("id")).select("id", "p") if shuffled else frame
    with limited(acid, **WRITTEN):
        assert acid.insert("d.t", given) == 2000
    assert {(row.id, row.p) for row in acid.table("d.t").collect()} == {
        (row.id, None if row.p == "" else row.p) for row in frame.collect()
    }
    found = check_table(location_of(acid, "d.t"))
    assert len(found) == len(acid.table("d.t").partitions()) == len({None, *texts} - {""})
    if not shuffled:
        for files in found.values():
            ids = [event.row[0] for event in files["bucket_00000"]]
            assert ids == sorted(ids)
    plan = last_write(spark).tree
    assert plan.count("Sort (") == 1, "the writer takes the order that is there"


def test_an_insert_of_nothing_writes_nothing(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    acid.create_table("d.p", {"id": "int"}, partitioned_by={"p": "int"})
    assert acid.insert("d.t", spark.createDataFrame([], "id int")) == 0
    assert acid.insert("d.p", spark.createDataFrame([], "id int, p int")) == 0
    assert check_table(location_of(acid, "d.t")) == check_table(location_of(acid, "d.p")) == {}
    assert acid.table("d.p").partitions() == []


def test_partition_columns_may_be_called_like_the_acid_columns(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"operation": "int", "row": "string"}, partitioned_by={"bucket": "int", "rowid": "string"})
    acid.insert("d.t", spark.createDataFrame([(1, "r", 2, "x")], "operation int, row string, bucket int, rowid string"))
    acid.update("d.t", {"operation": "operation + bucket"}, "row = 'r' AND rowid = 'x'")
    assert read(acid) == [(3, "r", 2, "x")]


def test_column_names_with_odd_letters(acid: AcidSession, spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2, 3)], "`a b` int, `c.d` int, `é` int")
    acid.create_table("d.t", frame.schema)
    acid.insert("d.t", frame)
    acid.update("d.t", {"a b": "`c.d` + 1"}, "`é` = 3")
    assert read(acid) == [(3, 2, 3)]
    with pytest.raises(ColumnError, match="backquote"):
        acid.create_table("d.u", {"e`f": "int"})
    with pytest.raises(ColumnError, match="no backquotes"):
        acid.create_table("d.u", {"e": "struct<`f g`:int>"})
    for columns in ({"${e}": "int"}, {"e": "struct<a${f}:int>"}):
        with pytest.raises(ColumnError, match="for one of its settings"):
            acid.create_table("d.u", columns)


def test_rows_too_many_for_one_task_keep_their_order_and_stay_unique(simple: Any, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "64k")
    spark.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "16k")
    try:
        ids = spark.range(200_000).select(F.explode(F.array("id")).alias("id"))
        simple.insert("d.t", ids.selectExpr("int(id) id", "concat('name ', id) name"))
    finally:
        spark.conf.unset("spark.sql.adaptive.advisoryPartitionSizeInBytes")
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.minPartitionSize")
    (found,) = check_table(location_of(simple, "d.t")).values()
    assert len(found) > 2
    for events in found.values():
        in_file = [event.row[0] for event in events]
        assert in_file == sorted(in_file)
    assert sorted({decode_bucket(e.bucket_property)[0] for f in found.values() for e in f[:1]}) == list(
        range(len(found))
    )
    assert simple.table("d.t").agg(F.countDistinct("id")).collect()[0][0] == 200_000


def test_snappy(spark: SparkSession, metastore: Any) -> None:
    import pyarrow.orc

    import hive_acid.spark

    with hive_acid.spark.session(spark, metastore(), compression="snappy") as acid:
        acid.create_table("default.t", {"id": "int"})
        acid.insert("t", spark.createDataFrame([(1,)], "id int"))
        (file,) = location_of(acid, "default.t").rglob("bucket_*")
        assert pyarrow.orc.ORCFile(file).compression.lower() == "snappy"
        with pytest.raises(ValueError, match="gzip"):
            hive_acid.spark.session(spark, acid.connection, compression="gzip")


@pytest.mark.parametrize("value", ["parse_json('1')", "INTERVAL '1' DAY", "INTERVAL '1' MONTH", "TIME'10:00:00'"])
def test_types_that_hive_has_not_are_refused_by_name(acid: AcidSession, spark: SparkSession, value: Any) -> None:
    frame = spark.sql(f"SELECT {value} AS v")
    with pytest.raises(ColumnError, match=frame.schema["v"].dataType.simpleString().partition("(")[0]):
        acid.create_table("d.t", frame.schema)
    acid.create_table("d.t", {"v": "string"})
    with pytest.raises(ColumnError, match=r"d\.t\.v is string"):
        acid.insert("d.t", frame)


def test_a_collation_stays_out_of_the_files(acid: AcidSession, spark: SparkSession) -> None:
    import pyarrow.orc

    acid.create_table("d.t", {"v": "string", "l": "array<string>"})
    acid.insert("d.t", spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS v, array('b' COLLATE UTF8_LCASE) AS l"))
    assert read(acid) == [("a", ["b"])]
    (file,) = location_of(acid, "d.t").rglob("bucket_*")
    assert b"LCASE" not in file.read_bytes()
    assert pyarrow.orc.ORCFile(file).nrows == 1


def test_days_and_times_of_long_ago(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"day": "date", "at": "timestamp"})
    texts = ["0001-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "1883-11-18", "1899-12-31", "9999-12-31"]
    frame = spark.createDataFrame([(text,) for text in texts], "day string")
    acid.insert("d.t", frame.selectExpr("day", "concat(day, ' 01:02:03.000004') AS at"))
    found = acid.table("d.t").selectExpr("string(day) day", "string(at) at").collect()
    assert sorted(tuple(row) for row in found) == [(text, f"{text} 01:02:03.000004") for text in texts]


def test_the_session_is_left_as_it_was(simple: Any, spark: SparkSession, tmp_path: Path) -> None:
    simple.insert("d.t", spark.sql("SELECT 1 AS id, 'x' AS name"))
    with pytest.raises(Exception, match=r"(?i)empty"):
        spark.range(1).selectExpr("named_struct() AS nothing").write.orc(str(tmp_path / "refused"))
