"""Hive's hash of bucket columns as a Spark column, against what Hive computes, and against the form in plain Python."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.format.hashing import bucket_number, spark_hash
from hive_acid.spark.values.hashing import bucket_of
from hive_acid.spark.values.types import spark_type
from tests.format.hash_vectors import HASHES, value_of
from tests.values.rows.hostile import TYPES, python_of, stored
from tests.values.sessions.under import under

MANY = 1 << 30


def table(kinds: Any, buckets: Any = MANY, **parameters: Any) -> Any:
    columns = tuple(Column(f"c{place}", kind) for place, kind in enumerate(kinds))
    names = tuple(column.name for column in columns)
    return Table(
        "d", "t", columns, parameters={"bucketing_version": "2", **parameters}, bucket_columns=names, buckets=buckets
    )


def buckets(frame: Any, of: Any) -> Any:
    return frame.selectExpr(f"{bucket_of(of, {name: name for name in of.bucket_columns})} AS bucket")


COMMON = ["boolean", "tinyint", "smallint", "int", "bigint", "string", "char(20)", "date"]


@pytest.mark.parametrize("kinds", [COMMON, pytest.param([*HASHES.keys() - {*COMMON}], marks=pytest.mark.slow)])
def test_buckets_are_those_of_hive(spark: SparkSession, kinds: Any) -> None:
    """One frame with a column for each type, so that one job computes them all."""
    rows = max(len(HASHES[kind]) for kind in kinds)
    # Clients of Connect cannot send all of Hive's timestamps.
    sent = ["string" if kind == "timestamp" else kind for kind in kinds]
    schema = t.StructType([t.StructField(f"c{place}", spark_type(kind)) for place, kind in enumerate(sent)])
    values = [
        tuple(
            value_of(as_sent, HASHES[kind][n][0]) if n < len(HASHES[kind]) else None
            for kind, as_sent in zip(kinds, sent, strict=True)
        )
        for n in range(rows)
    ]
    frame = spark.createDataFrame(values, schema).selectExpr(
        *(f"cast(c{place} AS {spark_type(kind).simpleString()}) AS c{place}" for place, kind in enumerate(kinds))
    )
    hashes = (bucket_of(table([kind]), {"c0": f"c{place}"}) for place, kind in enumerate(kinds))
    found = frame.selectExpr(*hashes).collect()
    for place, kind in enumerate(kinds):
        expected = [(hashed & 0x7FFFFFFF) % MANY for _, hashed in HASHES[kind]]
        assert [row[place] for row in found] == expected + [0] * (rows - len(expected)), kind


def test_random_keys_agree_with_plain_python_with_and_without_ansi(spark: SparkSession) -> None:
    dice = random.Random(20)
    letters = "abzé日😀 \u0000\u007f"
    rows = [
        (
            dice.choice([None, dice.randrange(-(2**31), 2**31)]),
            dice.randrange(-(2**63), 2**63),
            "".join(dice.choices(letters, k=dice.randrange(14))),
        )
        for _ in range(300)
    ]
    kinds = ["int", "bigint", "string"]
    of = table(kinds, 4096)
    frame = spark.createDataFrame(rows, "c0 int, c1 bigint, c2 string")
    expected = [bucket_number(kinds, row, 4096) for row in rows]
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            assert [row.bucket for row in buckets(frame, of).collect()] == expected
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_hostile_values_agree_with_plain_python(spark: SparkSession, ansi: Any) -> None:
    kinds = [kind for kind in TYPES if not kind.startswith("map<")]
    values = {kind: stored(kind) for kind in kinds}
    arrays = (f"array({', '.join(value.sql for value in values[kind])})" for kind in kinds)
    places = spark.range(0, max(map(len, values.values())), 1, 1)
    names = {kind: f"c{place}" for place, kind in enumerate(kinds)}
    frame = places.selectExpr(
        *(f"get({of}, cast(id AS int)) AS {name}" for of, name in zip(arrays, names.values(), strict=True))
    )
    hashes = (bucket_of(table([kind]), {"c0": name}) for kind, name in names.items())
    with under(spark, {"spark.sql.ansi.enabled": ansi}):
        found = frame.selectExpr(*hashes).collect()
    for place, (kind, given) in enumerate(values.items()):
        expected = [bucket_number([kind], [python_of(kind, value.model)], MANY) for value in given]
        wrong = [
            (value.model, row[place], ought)
            for value, row, ought in zip(given, found, expected, strict=False)
            if row[place] != ought
        ]
        assert not wrong, kind


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_many_columns_and_fields(spark: SparkSession, ansi: Any) -> None:
    """As many as there are: their hashes are in one another, for which Spark's parser has no stack without end."""
    texts, fields = ["string", "int"] * 32, ", ".join(f"'f{place}', id * {place}" for place in range(64))
    kinds = [*texts, f"struct<{','.join(f'f{place}:bigint' for place in range(64))}>", "string"]
    values = [f"cast(if(id % 7 = {place % 7}, NULL, id * {place}) AS {kind})" for place, kind in enumerate(texts)]
    every = [*values, f"named_struct({fields})", "string(id)"]
    frame = spark.range(20).selectExpr(*(f"{value} AS c{place}" for place, value in enumerate(every)))

    def row(number: Any) -> Any:
        products = (None if number % 7 == place % 7 else number * place for place in range(64))
        found = [str(of) if of is not None and place % 2 == 0 else of for place, of in enumerate(products)]
        return [*found, {f"f{place}": number * place for place in range(64)}, str(number)]

    with under(spark, {"spark.sql.ansi.enabled": ansi}):
        found = [of.bucket for of in buckets(frame, table(kinds)).collect()]
    assert found == [bucket_number(kinds, row(number), MANY) for number in range(20)]


def test_the_older_hash_and_maps_are_refused(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedTableError, match="bucketing_version 1"):
        bucket_of(table(["int"], bucketing_version="1"), {"c0": "1"})
    with pytest.raises(UnsupportedTableError, match="map<int,int>"):
        bucket_of(table(["map<int,int>"]), {"c0": "NULL"})


def test_no_python_runs(spark: SparkSession) -> None:
    plan = buckets(spark.range(3).selectExpr("string(id) c0"), table(["string"], 8))
    assert "Python" not in plan._jdf.queryExecution().executedPlan().toString()


def test_spark_s_own_hash_is_known(spark: SparkSession) -> None:
    """By which partitions with deleted rows are found."""
    chosen = random.Random(7)
    texts = ["", "a", "ab", "abc", "2024-01-01", "\u00e9t\u00e9 \u96ea", None]
    rows = [(chosen.choice(texts), chosen.getrandbits(31) - (1 << 30)) for _ in range(300)]
    frame = spark.createDataFrame(rows, "text string, number int")
    found = [row[0] for row in frame.selectExpr("hash(text, number, 3)").collect()]
    assert found == [spark_hash((text, number, 3)) for text, number in rows]
