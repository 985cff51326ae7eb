"""Values of partition keys: one text for each, whatever it is written as, and none for what only stands for null."""

import math
import os
import random
import re
import struct
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.partition_values import canonical_text, java_text, known_text, partition_text
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import AlreadyExistsError, ColumnError, HiveAcidError, UnsupportedTableError
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.spark import AcidSession
from hive_acid.streaming import ArrowWriter, StreamingConnection
from tests.spark.checker import check_table, location_of
from tests.values.sessions.under import under

SEED = int(os.environ.get("HIVE_ACID_TEST_SEED", "1"))
INSERT_ONLY = {"transactional_properties": "insert_only"}


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("int", 1, "1"), ("int", "01", "1"), ("int", " +7 ", "7"), ("bigint", "-0", "0"), ("tinyint", "128", None),
        ("int", "1.5", None), ("int", "one", None), ("string", "01", "01"), ("string", True, "true"),
        ("date", "2020-1-1", "2020-01-01"), ("date", date(2020, 1, 1), "2020-01-01"), ("date", "2020-13-01", None),
        ("date", datetime(2020, 1, 1, 5), "2020-01-01"), ("date", "today", None), ("boolean", "TRUE", "true"),
        ("boolean", False, "false"), ("boolean", "1", "true"), ("boolean", "2", None), ("decimal(5,2)", "1.5", "1.50"),
        ("decimal(5,2)", Decimal(1), "1.00"), ("decimal(5,2)", "1000", None), ("decimal(5,0)", "1E2", "100"),
        ("char(4)", "ab", "ab  "), ("char(4)", "ab      ", "ab  "), ("varchar(4)", "ab ", "ab "),
        ("varchar(2)", "abc", None), ("timestamp", "2020-01-01 10:00:00.500", "2020-01-01 10:00:00.5"),
        ("timestamp", "2020-01-01", "2020-01-01 00:00:00"), ("timestamp", "2020-01-01T10:00:00+02:00", None),
        ("string", DEFAULT_PARTITION, None), ("char(30)", DEFAULT_PARTITION + "  ", None),
        ("string", DEFAULT_PARTITION.lower(), DEFAULT_PARTITION.lower()), ("string", b"a/b", "a/b"),
        ("binary", bytearray(b"ab"), "ab"), ("binary", b"\xff", None), ("string", "a\0b", None),
        ("string", "\ud800", None),
        ("string", ["a"], None), ("string", F.lit, None), ("string", float("inf"), "Infinity"), ("int", "1_0", None),
        ("int", "\u0663", None), ("int", 2.0, None), ("decimal(5,2)", "1_0", None), ("date", "20200102", None),
        ("date", "2020-W01-1", None), ("timestamp", "20200102", None),
        ("timestamp", "2020-01-02 1:2", "2020-01-02 01:02:00"),
        ("double", 1, "1.0"), ("double", "1e7", "1.0E7"), ("double", "nan", "NaN"), ("float", 0.1, "0.1"),
        ("double", "x", None),
    ],
)  # fmt: skip
def test_texts(kind: Any, given: Any, text: Any) -> None:
    table = Table("d", "t", (), (Column("p", kind),))
    if text is None:
        with pytest.raises(ColumnError, match=r"d\.t"):
            partition_text(table, table.partition_keys[0], given)
    else:
        assert partition_text(table, table.partition_keys[0], given) == text
        assert known_text(kind, text) == text


def test_null_has_no_text() -> None:
    table = Table("d", "t", (), (Column("p", "int"),))
    assert partition_text(table, table.partition_keys[0], None) is partition_text(table, table.partition_keys[0], "")
    assert known_text("int", None) is None
    assert known_text("int", "x") == "x", "others may have named it so"


def test_each_text_means_what_spark_casts_it_to(spark: SparkSession) -> None:
    """Else rows would be written into one partition, and read as of another value."""
    chance = random.Random(SEED)
    signs = "0123456789" * 3 + "-+.: TeEdf_\t\n/Zx\u0663\u00a0"
    numbers = [chance.choice((1, 1e-3, 1e7, 1e300, 1e-300)) * chance.uniform(-9, 9) for _ in range(100)]
    days = [
        f"{chance.randrange(1, 10000):0{chance.choice((1, 4))}}-{chance.randrange(15)}-{chance.randrange(1, 33)}"
        for _ in range(100)
    ]
    times = [
        f"{day}{chance.choice(' T')}{chance.randrange(26)}:{chance.randrange(61)}:{chance.randrange(61)}{fraction}"
        for day in days
        for fraction in ("", f".{chance.randrange(10 ** chance.randrange(1, 10))}")
    ]
    any_signs = ["".join(chance.choices(signs, k=chance.randrange(1, 8))) for _ in range(300)]
    words = [
        "1",
        "007",
        "+1",
        "-0",
        "1.5",
        "1e2",
        "128",
        "true",
        "YES",
        "t",
        "0",
        "nan",
        "-inf",
        "Infinity",
        "1d",
        "2020",
    ]
    texts = [*words, *map(repr, numbers), *days, *times, *any_signs]
    spark.createDataFrame([(text,) for text in texts], "v string").createOrReplaceTempView("texts")
    number_kinds = ("tinyint", "int", "bigint", "decimal(6,2)", "decimal(38,18)", "double", "float")
    kinds = (*number_kinds, "date", "timestamp", "boolean")
    casts = ", ".join(f"CAST(try_cast(v AS {kind}) AS string)" for kind in kinds)
    wrong: list[Any] = []
    taken: Counter[Any] = Counter()
    for text, *found in spark.sql(f"SELECT v, {casts} FROM texts").collect():
        for kind, of_spark in zip(kinds, found, strict=True):
            try:
                ours = canonical_text(kind, text)
            except (ValueError, ArithmeticError):
                continue
            taken[kind] += 1
            is_same = ours == of_spark
            if not is_same and of_spark is not None and kind in ("float", "double"):
                is_same = is_same_number(kind, float(ours), float(of_spark))
            if not is_same:
                wrong.append((kind, text, ours, of_spark))
    assert not wrong, f"seed {SEED}: {wrong[:5]}"
    assert min(taken[kind] for kind in kinds) > 5
    assert taken["date"] + taken["timestamp"] > 200


def test_texts_of_floats_are_java_s(spark: SparkSession) -> None:
    chance = random.Random(SEED)
    given = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(300)]
    given += [10.0**of for of in range(-9, 12)] + [chance.uniform(-1e8, 1e8) for _ in range(100)] + [-0.0, math.inf]
    spark.createDataFrame([(value,) for value in given], "v double").createOrReplaceTempView("floats")
    found = spark.sql("SELECT v, CAST(v AS string), CAST(CAST(v AS float) AS string) FROM floats").collect()
    for value, double, single in found:
        # Java 17 writes some by a digit too many.
        assert java_text(value) == double or float(double) == value
        own = java_text(value, is_single=True)
        assert own == single or is_same_number("float", float(own), float(single))
        assert re.sub(r"\d+", "0", java_text(value)) == re.sub(r"\d+", "0", double)


def is_same_number(kind: Any, one: Any, other: Any) -> Any:
    """Java 17 writes some floats by a digit too many."""
    return struct.pack(kind[0], one) == struct.pack(kind[0], other)


def test_a_specification_without_ansi_means_no_other_partition(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark casts 'x' to null and 300 to 44 then: an overwrite, a TRUNCATE or a DROP would be of those partitions."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "tinyint"})
    acid.insert("d.t", spark.sql("SELECT 1 AS id, NULL AS p UNION ALL SELECT 2, 44 UNION ALL SELECT 3, 7"))
    before = rows(acid)
    with under(spark, {"spark.sql.ansi.enabled": "false"}):
        for value in ("'x'", "300", "'1O'", "7.9", "1 = 1", "X'37FF'"):
            for statement in (
                "INSERT INTO d.t PARTITION (p = {}) VALUES (5)",
                "INSERT OVERWRITE d.t PARTITION (p = {}) VALUES (5)",
                "TRUNCATE TABLE d.t PARTITION (p = {})",
                "ALTER TABLE d.t DROP PARTITION (p = {})",
                "ALTER TABLE d.t ADD IF NOT EXISTS PARTITION (p = {})",
            ):
                with pytest.raises(ColumnError):
                    acid.sql(statement.format(value))
        assert rows(acid) == before
        acid.sql("TRUNCATE TABLE d.t PARTITION (p = 40 + 4)")
        acid.sql("TRUNCATE TABLE d.t PARTITION (p = NULL)")
    assert rows(acid) == [(3, 7)]


def test_a_specification_of_a_time_that_clocks_skip_is_refused(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows would go to the partition of a later time, or be read as of that."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "timestamp"})
    one = spark.sql("SELECT 1 AS id")
    one.coalesce(1).write.orc(str(tmp_path / "files"))
    for zone, skipped, known in (
        ("Europe/Berlin", "2024-03-31 02:30:00", "2024-10-27 02:30:00"),
        ("Australia/Lord_Howe", "2023-10-01 02:15:00", "2023-10-01 02:30:00"),
        ("Pacific/Apia", "2011-12-30 12:00:00", "2011-12-31 00:00:00"),
        ("Asia/Kathmandu", "1986-01-01 00:10:00", "0001-01-01 00:00:00"),
    ):
        with under(spark, {"spark.sql.session.timeZone": zone}):

            def ways(value: Any) -> Any:
                spec, said = {"p": value}, f"'{value}'"
                name = acid.connection.table("d", "t").partition_name([value])
                return {
                    "overwrite": lambda: acid.overwrite("d.t", one, partition=spec),
                    "by nothing": lambda: acid.overwrite("d.t", one.limit(0), partition=spec),
                    "INSERT": lambda: acid.sql(f"INSERT INTO d.t PARTITION (p = {said}) VALUES (2)"),
                    "multi-insert": lambda: acid.multi_insert(one).into("d.t", partition=spec).execute(),
                    "add": lambda: acid.add_partitions("d.t", {name: None}, if_not_exists=True),
                    "ADD": lambda: acid.sql(f"ALTER TABLE d.t ADD IF NOT EXISTS PARTITION (p = {said})"),
                    "load": lambda: acid.load_data("d.t", str(tmp_path / "files"), partition=spec, copy=True),
                }

            for way, run in ways(skipped).items():
                with pytest.raises(ColumnError, match="clocks are put forward"):
                    run()
                assert acid.table("d.t").partitions() == [], way
            for run in ways(known).values():
                run()
            assert {row.p for row in acid.table("d.t").selectExpr("string(p) AS p").collect()} == {known}
            acid.sql("ALTER TABLE d.t DROP PARTITION (p = :p)", {"p": known})


def test_a_partition_that_is_added_twice_is_refused(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    """One of its two places would be forgotten, with the rows there."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    for at in (1, 2):
        spark.sql(f"SELECT {at} AS id").coalesce(1).write.orc(str(tmp_path / f"{at}"))
    with pytest.raises(AlreadyExistsError, match=r"p=1 of d\.t is given twice"):
        acid.add_partitions("d.t", {"p=1": str(tmp_path / "1"), "p=01": str(tmp_path / "2")})
    with pytest.raises(AlreadyExistsError, match=r"p=1 of d\.t is given twice"):
        acid.sql(
            f"ALTER TABLE d.t ADD PARTITION (p=1) LOCATION '{tmp_path}/1' PARTITION (p='01') LOCATION '{tmp_path}/2'"
        )
    assert acid.table("d.t").partitions() == []


def test_an_empty_char_is_one_of_blanks_whatever_gives_it(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "char(4)"})
    null, blanks = f"p={DEFAULT_PARTITION}", "p=    "
    for text in ("", "  "):
        acid.insert("d.t", spark.sql("SELECT 1 AS id, '' AS p UNION ALL SELECT 2, NULL"))
        assert acid.overwrite("d.t", spark.sql("SELECT 3 AS id"), partition={"p": text}) == 1
        acid.sql(f"INSERT INTO d.t PARTITION (p = '{text}') VALUES (3)")
        for static, given in (({"p": text}, "3 AS id"), ({}, f"3 AS id, '{text}' AS p")):
            stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=static)
            with stream, stream.transaction():
                stream.write(spark.sql(f"SELECT {given}").toArrow())
        assert rows(acid) == [(2, None), *[(3, "    ")] * 4]
        assert sorted(acid.table("d.t").partitions()) == [blanks, null]
        acid.delete("d.t")


@pytest.mark.parametrize("kind", ["double", "float"])
def test_an_overwrite_of_a_float_is_of_its_partition(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": kind})
    for value in (1, "1", 1.0, "1e0", Decimal(1), 1e7, 0.1, "NaN", float("-inf")):
        acid.insert("d.t", spark.sql(f"SELECT 1 AS id, CAST('{value}' AS {kind}) AS p"))
        assert acid.overwrite("d.t", spark.sql("SELECT 2 AS id"), partition={"p": value}) == 1  # type: ignore[dict-item]
        assert [row.id for row in acid.table("d.t").collect()] == [2], value
        assert acid.overwrite("d.t", spark.sql("SELECT 2 AS id").limit(0), partition={"p": value}) == 0  # type: ignore[dict-item]
        assert acid.table("d.t").count() == 0, value


def rows(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted((tuple(row) for row in acid.table(name).collect()), key=str)


@pytest.mark.parametrize("kind", ["string", "char(30)"])
def test_the_text_that_stands_for_null_is_refused(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, kind: Any
) -> None:
    """It would be read as null, and meet the rows of null in one directory."""
    acid.create_table("d.t", {"id": "int", "v": "string"}, partitioned_by={"p": kind})
    acid.create_table("d.i", {"id": "int", "v": "string"}, partitioned_by={"p": kind}, properties=INSERT_ONLY)
    acid.insert("d.t", spark.createDataFrame([(1, "a", "x"), (2, "b", None)], "id int, v string, p string"))
    before = rows(acid)
    bad = spark.createDataFrame([(1, "z", DEFAULT_PARTITION), (5, "y", None)], "id int, v string, p string")
    bad.createOrReplaceTempView("bad")
    one = spark.sql("SELECT 9 AS id, 'n' AS v")
    one.coalesce(1).write.orc(str(tmp_path / "files"))
    spec, quoted = {"p": DEFAULT_PARTITION}, f"'{DEFAULT_PARTITION}'"

    def merge() -> Any:
        return acid.merge("d.t", bad, "t.id = s.id")

    def streamed(static: Any) -> None:
        stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=static)
        with stream, stream.transaction():
            stream.write(bad.drop("p").toArrow() if static else bad.toArrow())

    paths = {
        "insert": lambda: acid.insert("d.t", bad),
        "insert evolved": lambda: acid.insert("d.t", bad, schema_evolution=True),
        "insert-only": lambda: acid.insert("d.i", bad),
        "insert-only overwrite": lambda: acid.overwrite("d.i", bad),
        "insert-only partition": lambda: acid.overwrite("d.i", one, partition=spec),
        "overwrite": lambda: acid.overwrite("d.t", bad),
        "overwrite partition": lambda: acid.overwrite("d.t", one, partition=spec),
        "overwrite where": lambda: acid.overwrite("d.t", bad, where="id > 0"),
        "update": lambda: acid.update("d.t", {"p": quoted}, "id = 1"),
        "update everything": lambda: acid.update("d.t", {"p": F.lit(DEFAULT_PARTITION)}),
        "update from": lambda: acid.update("d.t", {"p": "s.p"}, source=bad, on="t.id = s.id"),
        "merge update": lambda: merge().whenMatchedUpdateAll().execute(),
        "merge insert": lambda: (
            acid.merge("d.t", bad, "t.id = s.id + 100").whenNotMatchedInsertAll().execute()
        ),
        "merge both": lambda: merge().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
        "merge by source": lambda: merge().whenNotMatchedBySourceUpdate(None, {"p": quoted}).execute(),
        "create as": lambda: acid.create_table_as("d.x", bad, partitioned_by=["p"]),
        "multi-insert": lambda: acid.multi_insert(bad).into("d.t").into("d.i").execute(),
        "multi-insert partition": lambda: acid.multi_insert(one).into("d.t", partition=spec).execute(),
        "sink": lambda: acid.sink("d.t", query="a")(bad, 0),
        "upsert": lambda: acid.sink("d.t", query="u", mode="upsert", keys=["id"])(bad, 0),
        "load": lambda: acid.load_data("d.t", str(tmp_path / "files"), partition=spec, copy=True),
        "partition's name": lambda: acid.add_partitions("d.t", {"p=%5F_HIVE_DEFAULT_PARTITION__": None}),
        "truncate": lambda: acid.truncate("d.t", spec),
        "stream": lambda: streamed({}),
        "stream's partition": lambda: streamed(spec),
        "INSERT": lambda: acid.sql("INSERT INTO d.t SELECT * FROM bad"),
        "INSERT VALUES": lambda: acid.sql(f"INSERT INTO d.t VALUES (1, 'z', {quoted})"),
        "INSERT PARTITION": lambda: acid.sql(f"INSERT INTO d.t PARTITION (p = {quoted}) VALUES (1, 'z')"),
        "INSERT OVERWRITE": lambda: acid.sql(f"INSERT OVERWRITE d.t PARTITION (p = {quoted}) VALUES (1, 'z')"),
        "UPDATE": lambda: acid.sql(f"UPDATE d.t SET p = {quoted}"),
        "MERGE": lambda: acid.sql(
            "MERGE INTO d.t USING bad AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = s.p "
            "WHEN NOT MATCHED THEN INSERT *"
        ),
        "ADD PARTITION": lambda: acid.sql(f"ALTER TABLE d.t ADD PARTITION (p = {quoted})"),
        "DROP PARTITION": lambda: acid.sql(f"ALTER TABLE d.t DROP PARTITION (p = {quoted})"),
        "LOAD DATA": lambda: acid.sql(f"LOAD DATA INPATH '{tmp_path}/files' INTO TABLE d.t PARTITION (p = {quoted})"),
    }  # fmt: skip
    taken = {}
    for name, path in paths.items():
        try:
            taken[name] = path()
        except HiveAcidError as error:
            if DEFAULT_PARTITION not in str(error):
                taken[name] = str(error)
    assert taken == {}
    assert rows(acid) == before
    assert rows(acid, "d.i") == []
    assert not acid.connection.call("get_tables", "d", "x")
    check_table(location_of(acid, "d.t"))


def test_null_and_the_empty_text_are_one_partition(acid: AcidSession, spark: SparkSession) -> None:
    """As Hive has it; a row that stays in its partition is not moved by it."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "string"})
    acid.create_table("d.i", {"id": "int"}, partitioned_by={"p": "string"}, properties=INSERT_ONLY)
    both = spark.createDataFrame([(1, None), (2, ""), (3, " ")], "id int, p string")
    expected = [(1, None), (2, None), (3, " ")]
    assert (acid.insert("d.t", both), acid.insert("d.i", both)) == (3, 3)
    assert rows(acid) == rows(acid, "d.i") == expected
    merge = acid.merge("d.t", both.selectExpr("id + 1 AS id", "p"), "t.id = s.id")
    assert tuple(merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()) == (1, 2, 0)
    assert rows(acid) == [(1, None), (2, None), (3, None), (4, " ")]
    acid.update("d.t", {"p": "''"}, "id = 4")
    acid.update("d.t", {"p": "if(id = 1, '', NULL)"})
    assert acid.overwrite("d.t", spark.sql("SELECT 7 AS id"), partition={"p": ""}) == 1
    assert rows(acid) == [(7, None)]
    with StreamingConnection(acid.connection, "d.t", ArrowWriter()) as stream, stream.transaction():
        stream.write(both.toArrow())
    assert rows(acid) == sorted([*expected, (7, None)], key=str)
    assert sorted(acid.table("d.t").partitions()) == ["p= ", f"p={DEFAULT_PARTITION}"]


WRITTEN_OTHERWISE = {
    # A key's type: a value in Spark's SQL, and texts and values that mean it.
    "int": ("1", ["1", "01", "+1", 1]),
    "date": ("date'2020-01-02'", ["2020-01-02", "2020-1-2", date(2020, 1, 2)]),
    "boolean": ("true", ["true", "TRUE", True]),
    "decimal(6,2)": ("1.5", ["1.50", "1.5", "01.500", Decimal("1.5")]),
    "char(4)": ("'ab'", ["ab", "ab  ", "ab      "]),
    "string": ("'a/b=c%25 ü'", ["a/b=c%25 ü"]),
}


@pytest.mark.parametrize("kind", WRITTEN_OTHERWISE)
def test_a_partition_is_found_whatever_its_value_is_written_as(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, kind: Any
) -> None:
    value, texts = WRITTEN_OTHERWISE[kind]
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": kind})
    spark.range(1).selectExpr("int(id) id").coalesce(1).write.orc(str(tmp_path / "files"))
    acid.insert("d.t", spark.sql(f"SELECT 1 AS id, {value} AS p"))
    (name,) = acid.table("d.t").partitions()
    one = spark.sql("SELECT 2 AS id")
    for text in texts:  # type: ignore[attr-defined]
        spec = {"p": text}
        said = f"'{text}'"
        assert acid.overwrite("d.t", one, partition=spec) == 1
        assert acid.table("d.t").count() == 1, f"{text!r}: what was there is replaced"
        assert acid.load_data("d.t", str(tmp_path / "files"), partition=spec, copy=True) == 1
        assert acid.sql(f"INSERT INTO d.t PARTITION (p = {said}) VALUES (3)").collect() == [(1, 1)]
        assert acid.multi_insert(one).into("d.t", partition=spec).execute() == [1]
        stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=spec)
        with stream, stream.transaction():
            stream.write(one.toArrow())
        assert acid.table("d.t").partitions() == [name], text
        assert acid.table("d.t").where(f"p = {value}").count() == acid.table("d.t").count()
        acid.truncate("d.t", spec)
        assert acid.table("d.t").count() == 0, f"{text!r}: truncated"
        acid.insert("d.t", spark.sql(f"SELECT 1 AS id, {value} AS p"))
        acid.sql(f"ALTER TABLE d.t DROP PARTITION (p = {said})")
        assert acid.table("d.t").partitions() == []
        acid.sql(f"ALTER TABLE d.t ADD PARTITION (p = {said})")
        assert acid.table("d.t").partitions() == [name]


NAMED_BY_OTHERS = {
    # A key's type: how another engine has named the partition, the value in Spark's SQL, and as it is given.
    "int": ("01", "1", 1),
    "char(4)": ("ab", "'ab'", "ab"),
    "date": ("2020-1-2", "date'2020-01-02'", date(2020, 1, 2)),
    "decimal(6,2)": ("1.5", "1.5", "1.50"),
    "timestamp": ("2020-01-02 00:00:00.0", "timestamp'2020-01-02 00:00:00'", "2020-01-02 00:00:00"),
}


def named_by_others(acid: AcidSession, kind: Any, *texts: Any, properties: Any = None) -> Any:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": kind}, properties=properties)
    table = acid.connection.table("d", "t")
    names = [table.partition_name([text]) for text in texts]
    acid.connection.add_partitions(table, {name: f"{table.location}/{name}" for name in names})
    return names


@pytest.mark.parametrize("properties", [None, INSERT_ONLY])
@pytest.mark.parametrize("kind", NAMED_BY_OTHERS)
def test_rows_go_to_the_partition_that_others_have_named(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, kind: Any, properties: Any
) -> None:
    """Hive and ours are one partition: what is inserted is where its rows are, and an overwrite replaces those."""
    text, value, given = NAMED_BY_OTHERS[kind]
    names = named_by_others(acid, kind, text, properties=properties)
    spark.range(1).selectExpr("int(id) id").coalesce(1).write.orc(str(tmp_path / "files"))
    one, whole = spark.sql("SELECT 2 AS id"), spark.sql(f"SELECT 2 AS id, {value} AS p")
    acid.insert("d.t", whole)
    acid.sql(f"INSERT INTO d.t PARTITION (p = '{given}') VALUES (3)")
    acid.sql(f"INSERT OVERWRITE d.t PARTITION (p = '{given}') IF NOT EXISTS VALUES (4)")
    acid.add_partitions("d.t", {acid.connection.table("d", "t").partition_name([str(given)]): None}, if_not_exists=True)
    assert acid.load_data("d.t", str(tmp_path / "files"), partition={"p": given}, copy=True) == 1
    ids = [0, 2, 3]
    if properties is None:
        wall_clock = whole.withColumn("p", F.col("p").cast("timestamp_ntz")) if kind == "timestamp" else whole
        for static in ({"p": given}, {}):
            stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=static)
            with stream, stream.transaction():
                stream.write((one if static else wall_clock).toArrow())
        assert acid.update("d.t", {"p": value}) == 5
        acid.merge("d.t", spark.sql(f"SELECT 5 AS id, {value} AS p"), "t.id = s.id").whenNotMatchedInsertAll().execute()
        ids = [0, 2, 2, 2, 3, 5]
    assert sorted(row.id for row in acid.table("d.t").collect()) == ids
    assert acid.table("d.t").partitions() == names
    for partition, frame in (({"p": given}, one), (None, whole), ({"p": given}, one.limit(0))):
        acid.insert("d.t", whole)
        acid.overwrite("d.t", frame, partition=partition)  # type: ignore[arg-type]
        assert [row.id for row in acid.table("d.t").collect()] == [row.id for row in frame.collect()]
    assert acid.table("d.t").partitions() == names


@pytest.mark.parametrize("kind", NAMED_BY_OTHERS)
def test_an_overwrite_of_two_partitions_of_one_value_is_refused(
    acid: AcidSession, spark: SparkSession, kind: Any
) -> None:
    """It would leave the rows of the other one."""
    text, value, given = NAMED_BY_OTHERS[kind]
    table = Table("d", "t", (), (Column("p", kind),))
    named_by_others(acid, kind, text, partition_text(table, table.partition_keys[0], given))
    acid.insert("d.t", spark.sql(f"SELECT 1 AS id, {value} AS p"))
    for partition in ({"p": given}, None):
        with pytest.raises(UnsupportedTableError, match="of the same values"):
            acid.overwrite("d.t", spark.sql(f"SELECT 2 AS id, {value} AS p"), partition=partition)  # type: ignore[arg-type]
    assert [row.id for row in acid.table("d.t").collect()] == [1]
    acid.truncate("d.t", {"p": given})
    assert acid.table("d.t").count() == 0


def test_a_value_too_long_for_a_directorys_name_is_told(acid: AcidSession, spark: SparkSession) -> None:
    # Unicode ends a line by the signs before it, as Python's `splitlines` does.
    longs = [
        spark.sql(f"SELECT 1 AS id, '{sign}' || repeat('ü', 130) AS k") for sign in ("", "\u2028", "\u2029", "\x85")
    ]
    for name, properties in (("d.t", {}), ("d.i", INSERT_ONLY)):
        acid.create_table(name, {"id": "int"}, partitioned_by={"k": "string"}, properties=properties)
        for long in longs:
            with pytest.raises(ColumnError, match=rf"{name}: a value is too long for a partition key"):
                acid.insert(name, long)
    acid.insert("d.t", spark.sql("SELECT 1 AS id, 'a' AS k"))
    with pytest.raises(ColumnError, match="too long for a partition key"):
        acid.update("d.t", {"k": "repeat(k, 300)"})
    assert [tuple(row) for row in acid.table("d.t").collect()] == [(1, "a")]
