"""Predicates of conditions: every row that Spark chooses is one that the predicate lets pass."""

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.format.orc.statistics import ColumnStatistics
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.predicates import (
    AllOf,
    AnyOf,
    Comparison,
    NullTest,
    OneOf,
    Operator,
    all_of,
    between,
    columns_of,
    may_match,
    one_of,
    predicate_of,
    restricted,
)
from tests.spark.conftest import OVER_CONNECT

TABLE = Table(
    "d",
    "t",
    (
        Column("i", "int"), Column("l", "bigint"), Column("f", "float"), Column("x", "double"),
        Column("d", "decimal(6,2)"), Column("s", "string"), Column("b", "boolean"), Column("day", "date"),
        Column("at", "timestamp"), Column("c", "char(3)"), Column("place", "struct<i:int>"),
    ),
    (Column("p", "int"),),
)  # fmt: skip

K = Comparison("i", Operator.EQUAL, 5)


def about(least: dt.datetime, greatest: dt.datetime) -> AllOf:
    """Times of a day before one and a day behind another."""
    return AllOf((since(least), Comparison("at", Operator.AT_MOST, greatest + dt.timedelta(days=1))))


def since(least: dt.datetime) -> Comparison:
    return Comparison("at", Operator.AT_LEAST, least - dt.timedelta(days=1))


NOON = dt.datetime(2020, 1, 2, 12)
UNDERSTOOD = {
    "i = 5": K,
    "5 = i": K,
    "(i) == (5)": K,
    "I = 5L": K,
    "t.i = 5": K,
    "s.i = 5": None,
    "i <=> 5": K,
    "i = '5'": K,
    "i = '05'": None,
    "i = 5.0": K,
    "i = 5.5": None,
    "i = 5e0": None,
    "i = -5": Comparison("i", Operator.EQUAL, -5),
    "3 < i": Comparison("i", Operator.GREATER, 3),
    "i between 1 and 9": AllOf((Comparison("i", Operator.AT_LEAST, 1), Comparison("i", Operator.AT_MOST, 9))),
    "not (i < 3)": Comparison("i", Operator.AT_LEAST, 3),
    "not (i < 3 or i is null)": AllOf((Comparison("i", Operator.AT_LEAST, 3), NullTest("i", False))),
    "not i = 5": None,
    "i <> 5": None,
    "i in (9, 5, 5)": OneOf("i", (5, 9)),
    "i in (5, null)": OneOf("i", (5,)),
    "i not in (5)": None,
    "i in (select 1)": None,
    "i is null": NullTest("i", True),
    "i <=> null": NullTest("i", True),
    "i is not null": NullTest("i", False),
    "i = null": None,
    "b": Comparison("b", Operator.EQUAL, True),
    "not b": Comparison("b", Operator.EQUAL, False),
    "b = true": Comparison("b", Operator.EQUAL, True),
    "i = 5 and rand() < 1": K,
    "i = 5 or rand() < 1": None,
    "i = 5 or i is null": AnyOf((K, NullTest("i", True))),
    "(i = 5 and rand() < 1) or i is null": AnyOf((K, NullTest("i", True))),
    "i + 0 = 5": None,
    "i = l": None,
    "place.i = 5": None,
    "s = 'x'": Comparison("s", Operator.EQUAL, "x"),
    "s = 5": None,
    "s = 'a\\n'": None,
    's = "x"': None,
    "c = 'x'": None,
    "day >= date'2020-01-02'": Comparison("day", Operator.AT_LEAST, dt.date(2020, 1, 2)),
    "day = '2020-01-02'": Comparison("day", Operator.EQUAL, dt.date(2020, 1, 2)),
    "day = '2020-1-2'": None,
    "day = '2020-13-02'": None,
    "d = 1.25": Comparison("d", Operator.EQUAL, Decimal("1.25")),
    "d = 1.255": None,
    "x = 0.1": Comparison("x", Operator.EQUAL, 0.1),
    "f = 16777217": None,
    "p = 3": Comparison("p", Operator.EQUAL, 3),
    "i = 5 -- and more": K,
    "i =": None,
    "date_add(day, 1) > date'2020-01-01'": None,
    "at = timestamp'2020-01-02 12:00:00'": about(NOON, NOON),
    "at > '2020-01-02 12:00:00.000000'": since(NOON),
    "not (at < CAST('2020-01-02 12:00:00' AS timestamp))": since(NOON),
    "at <= date'2020-01-02'": Comparison("at", Operator.AT_MOST, dt.datetime(2020, 1, 3)),
    "at in (timestamp'2020-01-02 12:00:00', '2020-01-01')": about(dt.datetime(2020, 1, 1), NOON),
    "at in (timestamp'2020-01-02 12:00:00', now())": None,
    "at = timestamp'2020-01-02 12:00:00 Europe/Berlin'": None,
    "at = '2020-01-02T12:00:00'": None,
    "at >= timestamp'9999-12-31 23:59:59.5'": None,
    "date(at) = date'2020-01-02'": about(dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 3)),
    "to_date(at) >= '2020-01-02'": since(dt.datetime(2020, 1, 2)),
    "CAST(at AS date) < date'2020-01-02'": Comparison("at", Operator.AT_MOST, dt.datetime(2020, 1, 4)),
    "to_date(at, 'yyyy') = date'2020-01-02'": None,
    "date(day) = date'2020-01-02'": None,
    "date(at) <=> null": None,
    "date(at) = date'9999-12-31'": None,
    "date(at) >= '0001-01-01'": None,
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_texts(text: Any) -> None:
    assert predicate_of(text, TABLE) == UNDERSTOOD[text]


def test_names_of_others_are_not_the_tables() -> None:
    assert predicate_of("t.i = 5 and i = 6", TABLE, beside=["I"]) == K
    assert predicate_of("t.i = 5", TABLE, "target") is None
    assert predicate_of("target.i = 5", TABLE, "target") == K


COLUMNS = {
    "comparison": (lambda: F.col("i") == 5, K),
    "mirrored": (lambda: F.lit(5) == F.col("t.i"), K),
    "between": (lambda: F.col("i").between(1, 9), UNDERSTOOD["i between 1 and 9"]),
    "list": (lambda: F.col("i").isin(5, 9), OneOf("i", (5, 9))),
    "nulls": (lambda: F.col("i").isNull() | ~F.col("i").isNotNull(), AnyOf((NullTest("i", True), NullTest("i", True)))),
    "null safe": (lambda: F.col("i").eqNullSafe(None), NullTest("i", True)),  # type: ignore[arg-type]
    "unknown part": (lambda: (F.col("i") == 5) & (F.rand() < 1) & F.col("s").like("a%"), K),
    "unknown alternative": (lambda: (F.col("i") == 5) | (F.rand() < 1), None),
    "text": (lambda: F.col("s") == "its (x, 5)", Comparison("s", Operator.EQUAL, "its (x, 5)")),
    "quote": (lambda: F.col("s") == "it's", None),
    "text like a column": (lambda: F.col("s") == "x), =(i, 5", Comparison("s", Operator.EQUAL, "x), =(i, 5")),
    "backslash": (lambda: F.col("s") == "a\\b", None),
    "date": (lambda: F.col("day") < dt.date(2020, 1, 2), Comparison("day", Operator.LESS, dt.date(2020, 1, 2))),
    "decimal": (lambda: F.col("d") > Decimal("1.50"), Comparison("d", Operator.GREATER, Decimal("1.5"))),
    "bool": (
        lambda: F.col("b") & ~F.col("b"),
        AllOf((Comparison("b", Operator.EQUAL, True), Comparison("b", Operator.EQUAL, False))),
    ),
    "bracket in a text": (lambda: F.col("s") == "x[1]", Comparison("s", Operator.EQUAL, "x[1]")),
    "field": (lambda: (F.col("i") == 5) & (F.col("place")["i"] == 7), K),
    "sql": (lambda: F.expr("i = 5 and s like 'a%'"), K),
    "sql within": (lambda: F.expr("i = 5") & (F.col("l") > 3), AllOf((K, Comparison("l", Operator.GREATER, 3)))),
    "cast": (lambda: F.col("i").cast("string") == "5", None),
    "case": (lambda: F.when(F.col("i") == 5, True).otherwise(False), None),
    "function": (lambda: F.length("s") == 5, None),
    "timestamp": (lambda: F.col("day") > dt.datetime(2020, 1, 1), None),
}


OF_CONNECT = {"backslash": Comparison("s", Operator.EQUAL, "a\\b")}
"""A Column of Connect is a tree, in which a literal is what it is; the text of a classic one leaves it open."""


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(spark: SparkSession, name: Any) -> None:
    make, expected = COLUMNS[name]
    if OVER_CONNECT:
        expected = OF_CONNECT.get(name, expected)
    assert predicate_of(make(), TABLE) == expected


def test_a_column_is_not_looked_into_where_a_name_is_odd(spark: SparkSession) -> None:
    odd = Table("d", "t", (Column("i", "int"), Column("i), 5) or >(x", "int")))
    named = F.col("`i), 5) or >(x`") == 1
    if not OVER_CONNECT:  # where a Column is a tree itself
        assert predicate_of(named, odd) is None
        assert predicate_of((F.col("i") == 5) & named, odd) is None
    assert predicate_of(F.col("i") == 5, odd) == K
    assert predicate_of("i = 5", odd) == K
    assert predicate_of(F.col("i") == 5, TABLE, beside=["odd name"]) == K


@pytest.mark.parametrize(("name", "kind"), [("true", "boolean"), ("false", "boolean"), ("null", "boolean")])
def test_a_column_is_not_taken_for_the_constant_that_has_its_name(
    acid: AcidSession, spark: SparkSession, name: Any, kind: Any
) -> None:
    acid.create_table("d.t", {"flag": kind, name: kind})
    rows = [(left, right) for left in (True, False, None) for right in (True, False, None)]
    frame = spark.createDataFrame(rows, f"flag {kind}, `{name}` {kind}")
    for row in rows:  # Each has a file of its own, which is skipped if its row is not wanted.
        acid.insert("d.t", spark.createDataFrame([row], frame.schema))
    for condition in (
        F.col("flag") == F.col(name),
        F.col(name).eqNullSafe(F.col("flag")),
        F.col(name) & F.col("flag"),
        f"flag = `{name}`",
    ):
        expected = sorted(map(tuple, frame.where(condition).collect()), key=repr)
        assert sorted(map(tuple, acid.table("d.t").where(condition).collect()), key=repr) == expected
        assert sorted(map(tuple, acid.table("d.t", where=condition).collect()), key=repr) == expected
        merged = acid.merge("d.t", frame.limit(1), F.lit(True)).whenMatchedUpdate(
            F.expr(f"t.flag = t.`{name}`"), {"flag": "t.flag"}
        )
        assert merged.execute().updated == 2
    left = frame.where(~F.coalesce(F.col("flag") == F.col(name), F.lit(False)))
    assert acid.delete("d.t", F.col("flag") == F.col(name)) == 2
    assert sorted(map(tuple, acid.table("d.t").collect()), key=repr) == sorted(map(tuple, left.collect()), key=repr)


VALUES = {
    "i": [None, -(2**31), -1, 0, 5, 16777217, 2**31 - 1],
    "l": [None, -(2**63) + 1, 5, 2**53 + 1, 2**63 - 1],
    "f": [None, float("nan"), -0.0, 0.1, 5.0, 16777216.0],
    "x": [None, float("nan"), 0.0, 0.1, 5.0, 9007199254740992.0, float("inf")],
    "d": [None, Decimal("-1.25"), Decimal("0.00"), Decimal("5.00"), Decimal("9999.99")],
    "s": [None, "", "5", "05", "a", "é", "x y"],
    "b": [None, True, False],
    "day": [None, dt.date(1900, 1, 1), dt.date(2020, 1, 2), dt.date(2020, 1, 3)],
}
LITERALS = {
    "i": ["5", "-1", "5.0", "0.1", "'5'", "16777217", "3000000000", "9007199254740993", "99999999999999999999"],
    "s": ["'5'", "'a'", "''", "'é'"],
    "b": ["true", "false"],
    "day": ["date'2020-01-02'", "'2020-01-02'", "date'1900-01-01'"],
}
OPERATORS = ["=", "<=>", "<", "<=", ">", ">="]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_row_that_spark_chooses_is_refused(spark: SparkSession, ansi: Any) -> None:
    """Each comparison of each type with each literal, alone and negated, over values at the edges."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for name, values in VALUES.items():
            kind = next(column.type for column in TABLE.columns if column.name == name)
            literals = LITERALS.get(name, LITERALS["i"])
            if name in "fxd":
                literals = [literal for literal in literals if "'" not in literal]
            texts = [f"{name} {operator} {literal}" for operator, literal in itertools.product(OPERATORS, literals)]
            texts += [f"not ({text})" for text in texts]
            texts += [f"{name} in ({', '.join(literals[:2])})", f"{name} is null", f"{name} is not null"]
            understood = [(text, found) for text in texts if (found := predicate_of(text, TABLE)) is not None]
            assert len(understood) >= 12, name
            frame = spark.createDataFrame([(value,) for value in values], f"{name} {kind}")  # type: ignore[attr-defined]
            chosen = frame.select(name, *(F.expr(text).alias(f"c{at}") for at, (text, _) in enumerate(understood)))
            for row in chosen.collect():
                is_nan = isinstance(row[0], float) and row[0] != row[0]
                bound = None if is_nan else row[0]
                known = ColumnStatistics(int(row[0] is not None), row[0] is None, bound, bound)
                for at, (text, predicate) in enumerate(understood):
                    assert not row[at + 1] or may_match(predicate, lambda _, known=known: known), (text, row[0])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_statistics_decide() -> None:
    known = {
        "i": ColumnStatistics(10, False, 3, 7),
        "s": ColumnStatistics(0, True),
        "l": ColumnStatistics(None, True, "a", "b"),
    }.get

    def matches(text: Any) -> Any:
        return may_match(predicate_of(text, TABLE), known)  # type: ignore[arg-type]

    assert matches("i = 7")
    assert not matches("i = 8")
    assert not matches("i < 3")
    assert matches("i <= 3")
    assert not matches("i > 7")
    assert matches("i in (1, 5)")
    assert not matches("i in (1, 9)")
    assert not matches("i is null")
    assert matches("i is not null")
    assert not matches("s = 'x'")
    assert matches("s is null")
    assert not matches("s is not null")
    assert not matches("i = 5 and i = 8")
    assert matches("i = 8 or i = 5")
    # What is unknown, or of another type than the value, may be anything.
    assert matches("l = 5")
    assert matches("x = 5 and day = '2020-01-01' and b")


def test_parts() -> None:
    predicate = predicate_of("i = 5 and (s = 'x' or l = 3) and p = 1", TABLE)
    assert columns_of(predicate) == {"i", "s", "l", "p"}  # type: ignore[arg-type]
    assert restricted(predicate, ["p"]) == Comparison("p", Operator.EQUAL, 1)
    assert restricted(predicate, ["s"]) is None
    assert restricted(None, ["s"]) is None
    assert all_of([]) is None


def test_values_of_python() -> None:
    column = TABLE.columns[0]
    assert one_of(column, [3, None, 1, 3]) == OneOf("i", (1, 3))
    assert one_of(column, [None]) is None
    assert one_of(column, ["x"]) is None
    assert one_of(column, range(5000)) == between(column, 0, 4999)
    assert between(column, None, 4) == Comparison("i", Operator.AT_MOST, 4)
    assert one_of(Column("c", "char(3)"), ["a"]) is None
    assert one_of(Column("x", "double"), [float("nan")]) is None
    assert one_of(Column("day", "date"), [dt.datetime(2020, 1, 1)]) is None
