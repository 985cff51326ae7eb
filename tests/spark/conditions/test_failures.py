"""Conditions that cannot fail: those of which that is said have a value for all rows that there can be."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.spark.conditions.failures import cannot_fail, compares_as_they_are
from hive_acid.spark.conditions.predicates import predicate_of

COLUMNS = {
    "n": "int", "big": "bigint", "small": "tinyint", "x": "double", "f": "float", "p": "decimal(12,2)",
    "wide": "decimal(38,10)", "d": "date", "ts": "timestamp", "s": "string", "c": "char(5)", "b": "boolean",
}  # fmt: skip
TABLE = Table("d", "t", tuple(Column(*column) for column in COLUMNS.items()), partition_keys=(Column("k", "int"),))

_TEXTS = ("''", "'a'", "'5'", "'1e400'", "'2020-01-01'", "'😀'", "repeat('ab', 9)", "'NaN'", "' 7 '")
_HOSTILE = {
    "n": ("0", "1", "-1", "2147483647", "cast(-2147483648 AS int)"),
    "big": ("0L", "9223372036854775807L", "cast('-9223372036854775808' AS bigint)"),
    "small": ("0Y", "127Y", "cast(-128 AS tinyint)"),
    "x": ("0D", "-0D", "double('NaN')", "double('Infinity')", "1e308D", "4.9e-324D"),
    "f": ("0F", "float('NaN')", "float('-Infinity')", "3e38F"),
    "p": ("0", "9999999999.99", "-9999999999.99"),
    "wide": ("0", "9999999999999999999999999999.9999999999", "0.0000000001"),
    "d": (
        "date'0001-01-01'", "date'9999-12-31'",
        "date_from_unix_date(2147483647)", "date_from_unix_date(-2147483648)",
    ),
    "ts": (
        "timestamp'0001-01-01 00:00:00'", "timestamp'9999-12-31 23:59:59'",
        "timestamp_micros(9223372036854775807L)", "timestamp_micros(cast('-9223372036854775808' AS bigint))",
    ),
    "s": _TEXTS,
    "c": _TEXTS,
    "b": ("true", "false"),
    "k": ("0", "2147483647"),
}  # fmt: skip

_TAME = {"n": ("-40000", "7", "46340"), "big": ("0L", "123456789012L"), "small": ("-63Y", "63Y")}
_WHOLE = ("n", "big", "small", "k")


@pytest.mark.parametrize(
    "condition",
    [
        "n = 17",
        "T.N%100=-20",
        "t.`Big` IS NULL or not (big > +3)",
        "n between -1 and big",
        "d BETWEEN date'2020-01-01' AND DATE '2020-02-01'",
        "d >= '2020-01-01' AND d < '2020-02-01'",
        "ts >= timestamp'2020-01-01 00:00:00' AND ts < '2020-02-01'",
        "p >= 1000.00 AND p < 1990",
        "pmod(xxhash64(n, s), 100) = 7",
        "hash(d) % 10 IN (1, 2)",
        "s LIKE 'a%' OR s NOT LIKE '_b' OR s IN ('x', 'y')",
        "upper(substring(s, 1, 2)) = 'AB'",
        "concat(s, 'x') <> s || 'y'",
        "year(d) = 2020 AND hour(ts) = 3",
        "coalesce(n, 0) > x",
        "b AND NOT b IS TRUE",
        "k = 3",
        "n = '5'",
        "x > 1.5 AND f < 3",
        "n <=> NULL",
        "p = wide",
        "p * p + 1 > n",
        "p / 4 < 2.5 AND -p <> abs(p)",
        "x * 2 > p AND f + n > 0",
        "n / 7 > 0.5 OR big DIV 2 = 1",
        "small + 1 = 2",
        "length(s) * 1 > year(d) - 7",
    ],
)
def test_of_these_it_is_known(condition: Any) -> None:
    assert cannot_fail(condition, TABLE, "t")


def test_columns_are_looked_into(spark: SparkSession) -> None:
    assert cannot_fail((F.col("t.s") == "a") | F.col("b"), TABLE, "t")
    assert not cannot_fail(F.col("s") == 1, TABLE, "t")


@pytest.mark.parametrize(
    "condition",
    [
        "n + 1 = 2", "n - 1 = 2", "-n = 1", "n * 2 = 4", "n % 0 = 1", "1 % n = 0", "n % -1 = 0", "small + small = 2",
        "10 / n = 5", "n DIV n = 1", "abs(n) = 1", "n / 0 = 1", "p / 0.00 = 1", "p / n = 1", "x / 0 = 1",
        "wide * 2 = 1", "wide / 2 = 1", "-wide = 1", "coalesce(big, 0) + 1 = 1", "n + '1' = 2", "d + 1 = d",
        "-2147483648 - n = 1", "big + wide = 1", "'9999-12-31' IN (s, ts)", "'2020-01-01' IN (s, date'2020-01-01')",
        "s = 1", "s > n", "cast(s AS int) = 1", "cast(n AS tinyint) = 1",
        "d = s", "d < ts", "d < timestamp'2020-01-01 00:00:00'", "d = '2020-13-01'", "ts > '1 o clock'", "year(s) = 1",
        "hour(d) = 1", "wide = 0.00000000001", "wide IN (1, 2.5)", "s RLIKE n", "s LIKE c",
        "s LIKE 'a!%' ESCAPE '!'", "my(n) = 1", "n IN (SELECT 1)", "exists(array(n), y -> 1 / y = 1)", "u.n = 1",
        "unknown = 1", "n", "", "n = 1 AND 1 / n = 1", "hash(1 / n) = 1", "to_date(s) = d", "raise_error('x')",
        "coalesce(n, s) = 1", "coalesce(n, 1 / n) = 1", "s LIKE '\\\\'", '"s" = 1', "n = 1 OR s",
    ],
)  # fmt: skip
def test_these_may_fail(condition: Any) -> None:
    assert not cannot_fail(condition, TABLE, "t")


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        ("n + 1 = 2", True), ("n * 2147484 > 1", False), ("n * 2147483 > 1", True), ("n - big = 1", True),
        ("-n < abs(n)", True), ("n + 2147482647 = 1", True), ("n + 2147482648 = 1", False), ("t.n + T.Big < 3", True),
        ("pmod(n + 7, 100) = 3", True), ("big * big > 0", False), ("small + n > 0", True), ("small + small > 0", False),
        ("k + 1 = 2", False), ("n DIV 3 + n % 5 = big", True), ("hash(n + 1) = 3", True), ("n + 1 IN (1, 2)", True),
        ("(n + 1) * (n - 2147483) > 0", False), ("n + 1 BETWEEN 1 AND big - 1", True),
    ],
)  # fmt: skip
def test_sums_of_known_values_have_room(condition: str, known: bool) -> None:
    spans = {"n": (-5, 1000), "big": (0, 10**12)}
    assert cannot_fail(condition, TABLE, "t", spans.get) == known


@pytest.mark.parametrize(
    "name", ["upper", "length", "substring", "left", "concat", "coalesce", "hash", "pmod", "mod", "year", "hour"]
)
@pytest.mark.parametrize("arguments", ["", "*", "DISTINCT n", "n, s, d, p", "n => 1"])
def test_words_that_spark_will_refuse_are_none(name: str, arguments: str) -> None:
    """What lacks an argument is Spark's to refuse: it is looked into without an error."""
    call = f"{name}({arguments})"
    for condition in (call, f"{call} = 1", f"n IN (1, {call})", f"n BETWEEN {call} AND 1", f"s LIKE {call}"):
        cannot_fail(condition, TABLE, "t")
        compares_as_they_are(condition, TABLE, "t")
        predicate_of(condition, TABLE)


@pytest.mark.parametrize("seed", range(4))
def test_what_cannot_fail_does_not(seed: int, spark: SparkSession) -> None:
    """Random conditions on hostile rows, by both of Spark's dialects; and most of what could be known is."""
    choice = random.Random(seed)
    rows = _hostile_rows(spark, choice, _HOSTILE | (_TAME if seed % 2 else {})).alias("t")
    ends = rows.selectExpr(*(f"array(min({of}), max({of})) AS {of}" for of in _WHOLE)).first().asDict()  # type: ignore[union-attr]
    spans = {name: (least, greatest) for name, (least, greatest) in ends.items()}
    asked = [_condition(choice, 3) for _ in range(3_000)]
    known = [condition for condition in asked if cannot_fail(condition, TABLE, "t", spans.get)]
    assert len(known) > 200
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            meant = [condition for condition in known if _is_one(rows, condition)]
            assert len(meant) > len(known) // 2
            for begin in range(0, len(meant), 25):
                some = meant[begin : begin + 25]
                found = rows.select(*(F.expr(f"count_if({of}) AS c{at}") for at, of in enumerate(some)))
                assert len(found.collect()) == 1, some
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")


def _is_one(rows: DataFrame, condition: str) -> bool:
    """Whether Spark takes a condition: whose types do not fit is refused before a row is read."""
    try:
        rows.where(condition)
    except AnalysisException:
        return False
    return True


def _hostile_rows(spark: SparkSession, choice: random.Random, hostile: Mapping[str, Sequence[str]]) -> DataFrame:
    rows = []
    kinds = {**COLUMNS, "c": "string", "k": "int"}
    for _ in range(60):
        values = (choice.choice((*hostile[name], "null")) for name in kinds)
        named = zip(values, kinds.items(), strict=True)
        rows.append(", ".join(f"cast({of} AS {kind}) AS {name}" for of, (name, kind) in named))
    made = spark.sql(" UNION ALL ".join(f"SELECT {row}" for row in rows))
    # Of constants alone Spark would compute all that there is when it plans.
    return made.repartition(1).cache()


def _condition(choice: random.Random, depth: int) -> str:
    if depth and choice.random() < 0.4:
        word = choice.choice(("AND", "OR"))
        return f"({_condition(choice, depth - 1)} {word} {_condition(choice, depth - 1)})"
    if depth and choice.random() < 0.1:
        return f"NOT ({_condition(choice, depth - 1)})"
    value = _value(choice, 2)
    match choice.randrange(6):
        case 0:
            return f"{value} IS NULL"
        case 1:
            return f"{value} BETWEEN {_value(choice, 1)} AND {_value(choice, 1)}"
        case 2:
            return f"{value} IN ({_value(choice, 0)}, {_value(choice, 0)})"
        case 3:
            return f"{value} LIKE {choice.choice(_LITERALS)}"
    return f"{value} {choice.choice(('=', '<', '>=', '<>', '<=>'))} {_value(choice, 1)}"


_LITERALS = (
    "1", "0", "-7", "123456789012", "1.5", "0.00000001", "12345678901234.5", "'a%'", "'5'", "'2020-01-01'",
    "'9999-12-31 23:59:59'", "date'2020-01-01'", "date'9999-12-31'", "timestamp'0001-01-01 00:00:00'", "true", "NULL",
    "99999999999999999999", "'1e400'",
)  # fmt: skip


def _value(choice: random.Random, depth: int) -> str:
    if not depth or choice.random() < 0.6:
        return choice.choice((*COLUMNS, *COLUMNS, "k", "t.n", *_LITERALS))
    one, other = _value(choice, depth - 1), _value(choice, depth - 1)
    return choice.choice(
        (
            f"{one} % 7", f"{one} % {other}", f"pmod({one}, 100)", f"hash({one}, {other})", f"xxhash64({one})",
            f"year({one})", f"month({one})", f"hour({one})", f"upper({one})", f"length({one})", f"trim({one})",
            f"substring({one}, 2, 3)", f"left({one}, 2)", f"concat({one}, {other})", f"coalesce({one}, {other})",
            f"{one} + {other}", f"{one} - {other}", f"{one} * {other}", f"{one} / {other}", f"{one} / 4",
            f"{one} DIV 3",
            f"(-{one})", f"({one} + {other}) * {choice.choice(_LITERALS)}",
            f"cast({one} AS int)", f"abs({one})", f"dayofweek({one})",
            f"{one} || {other}", f"quarter({one})", f"weekofyear({one})", f"second({one})", f"right({one}, 1)",
        )
    )  # fmt: skip
