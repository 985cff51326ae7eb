"""What is said of rows that do not meet a condition: those of which that is surely not so meet it, by Spark's word."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.format.orc.statistics import ColumnStatistics
from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.predicates import may_match, refusal_of
from tests.values.sessions.under import under

COLUMNS = {"k": "bigint", "m": "decimal(12,2)", "d": "date", "s": "string", "b": "boolean", "ts": "timestamp"}
LOOSE = {"c": "char(3)", "v": "varchar(3)", "x": "double", "f": "float"}
TABLE = Table("d", "t", tuple(Column(*column) for column in {**COLUMNS, **LOOSE}.items()))
ROWS = """
SELECT CAST(id AS int) AS n, nullif(pmod(hash(id), 8), 7) AS k,
  CAST(nullif(pmod(hash(id, 1), 8), 7) / 2 AS decimal(12,2)) AS m,
  element_at(array(date'2020-01-01', date'2020-01-02', date'2020-01-03', current_date(), date'9999-12-31', NULL),
    1 + CAST(pmod(hash(id, 2), 6) AS int)) AS d,
  element_at(array('', 'a', 'ab', 'a b', 'B', NULL), 1 + CAST(pmod(hash(id, 3), 6) AS int)) AS s,
  element_at(array(true, false, NULL), 1 + CAST(pmod(hash(id, 4), 3) AS int)) AS b,
  element_at(array(timestamp'2020-01-01 00:00:00', timestamp'2020-01-02 10:00:00', current_timestamp(), NULL),
    1 + CAST(pmod(hash(id, 5), 4) AS int)) AS ts,
  element_at(array('a', 'ab ', NULL), 1 + CAST(pmod(hash(id, 6), 3) AS int)) AS c,
  element_at(array('a', 'ab ', NULL), 1 + CAST(pmod(hash(id, 6), 3) AS int)) AS v,
  element_at(array(double('nan'), -0D, 0D, 1D, NULL), 1 + CAST(pmod(hash(id, 7), 5) AS int)) AS x,
  element_at(array(float('nan'), float(-0D), float(0.1), NULL), 1 + CAST(pmod(hash(id, 8), 4) AS int)) AS f
FROM range(300)
"""
VALUES = {
    "k": ("0", "3", "6", "'3'", "1 + 1", "2.5", "NULL", "9223372036854775807", "length(s)"),
    "m": ("0", "1.5", "3.00", "-0.0", "NULL", "1.005"),
    "d": ("date'2020-01-02'", "'2020-01-02'", "current_date()", "date_sub(current_date(), 1)", "NULL", "'2020-1-2'"),
    "s": ("''", "'a'", "'ab'", "'a '", "NULL", "upper('b')"),
    "ts": ("timestamp'2020-01-02 10:00:00'", "'2020-01-01'", "now()", "NULL"),
    "c": ("'a'", "'ab'", "'ab '"), "v": ("'a'", "'ab'"), "x": ("0", "0.0", "1", "double('nan')"), "f": ("0", "0.1"),
}  # fmt: skip
OPERATORS = ("=", "<", "<=", ">", ">=", "<=>", "<>")


def leaf(chance: random.Random) -> str:
    if chance.random() < 0.15:
        return chance.choice(("b", "NOT b", "true", "false", "b IS NULL", "NULL", "b = true", "b IS NOT TRUE"))
    name = chance.choice(list(VALUES))
    values, operator = VALUES[name], chance.choice(OPERATORS)
    some = [chance.choice(values) for _ in range(3)]
    column = f"date({name})" if name == "ts" and chance.random() < 0.3 else name
    return chance.choice((
        f"{column} {operator} {some[0]}",
        f"{column} {operator} {some[0]}",
        f"{some[0]} {operator} {column}",
        f"{column} BETWEEN {some[0]} AND {some[1]}",
        f"{column} IN ({', '.join(some)})",
        f"{column} NOT IN ({', '.join(some)})",
        f"{column} NOT BETWEEN {some[0]} AND {some[1]}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        f"{name} LIKE '%a%'",
    ))  # fmt: skip


def condition(chance: random.Random, depth: int = 0) -> str:
    if depth > 2 or chance.random() < 0.4:
        return leaf(chance)
    if chance.random() < 0.2:
        return f"NOT ({condition(chance, depth + 1)})"
    parts = [condition(chance, depth + 1) for _ in range(chance.choice((2, 2, 3)))]
    return chance.choice((" AND ", " OR ")).join(f"({part})" for part in parts)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_surely_not_refused_are_chosen(spark: SparkSession, seed: int, ansi: str) -> None:
    """Each row by itself, as a file with that row alone, and all rows of a kind, as a file with these."""
    chance = random.Random(f"{seed} {ansi}")
    frame = spark.sql(ROWS).cache()
    rows = [row.asDict() for row in sorted(frame.collect(), key=lambda row: row.n)]
    told = 0
    with under(spark, {"spark.sql.ansi.enabled": ansi}):
        for _ in range(120):
            text = condition(chance)
            refusal = refusal_of(text, TABLE, ask=ask_of(spark))
            if refusal is None:
                continue
            try:
                chosen = {row.n for row in frame.where(text).select("n").collect()}
            except Exception:  # the condition fails, or compares what cannot be compared
                continue
            sure = {number for number, row in enumerate(rows) if not may_match(refusal, of_rows([row]))}
            assert sure <= chosen, (text, refusal, rows[min(sure - chosen)])
            for _ in range(8):
                some = chance.sample(range(len(rows)), chance.choice((2, 3, 10)))
                if not may_match(refusal, of_rows([rows[number] for number in some])):
                    assert chosen.issuperset(some), (text, refusal, [rows[number] for number in some])
            told += bool(sure)
    frame.unpersist()
    assert told > 20


def of_rows(rows: list[dict[str, Any]]) -> Callable[[str], ColumnStatistics]:
    """What a file with these rows says of a column."""

    def known(name: str) -> ColumnStatistics:
        values = [row[name] for row in rows if row[name] is not None]
        bounds = (min(values), max(values)) if values and values == values and name not in ("x", "f") else (None, None)
        return ColumnStatistics(len(values), len(values) < len(rows), *bounds)

    return known


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("d = date'2020-01-01'", True),
        ("d = '2020-01-01' AND k = 1", True),
        ("d <> date'2020-01-02' OR s LIKE '%'", True),
        ("k IN (1, NULL)", True),
        ("k NOT IN (2, NULL)", False),
        ("NOT (k = 2 AND s LIKE 'x')", True),
        ("m = 1.50", True),
        ("s LIKE '%'", False),
        ("k <=> 1 AND NOT k <=> NULL", True),
        ("true", True),
        ("d < current_date()", True),
        ("d < current_date() - 30 AND s = 'a'", True),
        ("d <= current_date() AND k > 1", False),
        ("k + 0 = 1", False),
        ("c = 'a'", False),
    ],
)
def test_what_is_told_of_one_row(text: str, chosen: bool, spark: SparkSession) -> None:
    row = {"k": 1, "m": Decimal("1.50"), "d": date(2020, 1, 1), "s": "a", "b": True, "ts": None, "c": "a"}
    refusal = refusal_of(text, TABLE, ask=ask_of(spark))
    assert (refusal is not None and not may_match(refusal, of_rows([row]))) is chosen
