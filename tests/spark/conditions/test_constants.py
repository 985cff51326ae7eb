"""Expressions of literals in conditions: what Spark makes of them, what is read by them; and the time goes on."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import date, timedelta
from typing import Any

import pytest
from pyspark.sql import Column as Expr
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.catalog.table import Column, Table
from hive_acid.format.orc.statistics import ColumnStatistics
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.constants import ask_of, with_literals, without_alias
from hive_acid.spark.conditions.predicates import may_match, predicate_of
from hive_acid.spark.conditions.sql_tokens import tokens_of
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.conftest import OVER_CONNECT
from tests.spark.plans import scans
from tests.values.sessions.under import under

GROUP_ROWS = 10_000
"""So many rows ORC has in a row group by itself."""

COLUMNS = {
    "k": "bigint", "i": "int", "tiny": "tinyint", "d": "date", "ts": "timestamp", "s": "string",
    "m": "decimal(12,2)", "wide": "decimal(38,30)", "x": "double", "b": "boolean",
}  # fmt: skip
TABLE = Table("d", "t", tuple(Column(*column) for column in COLUMNS.items()))

WORDS = {
    "k < 3 * 7": "k < 21",
    "k < 3L * 7": "k < CAST(21 AS BIGINT)",
    "k < 3": "k < 3",
    "k = -5": "k = -5",
    "2 + 3 <= k": "5 <= k",
    "k BETWEEN 1 + 1 AND abs(-9) - 1": "k BETWEEN 2 AND 8",
    "k IN (1, 2 * 2, 7 % 4) AND i = 1": "k IN (1, 4, 3) AND i = 1",
    "NOT (d > date_sub(DATE'2020-01-10', 3) OR s = upper('a'))": "NOT (d > DATE'2020-01-07' OR s = 'A')",
    "d >= to_date('2020-01-02') AND k < i": "d >= DATE'2020-01-02' AND k < i",
    "d >= CAST(TIMESTAMP'2020-01-02 23:00:00' AS DATE) + 1": "d >= DATE'2020-01-03'",
    "d = DATE'2020-01-31' + INTERVAL 1 MONTH": "d = DATE'2020-02-29'",
    "i = CAST('7' AS INT)": "i = 7",
    "k = 5000000000 + 1": "k = 5000000001",
    "s = concat('it', '''s')": "s = concat('it', '''s')",
    "m < 1.5 + 1": "m < 1.5 + 1",
    "k = 2 + 3 + i": "k = 2 + 3 + i",
    "k + 2 * 3 > 7": "k + 2 * 3 > 7",
    "k = 2 + 3 & 1": "k = 2 + 3 & 1",
    "k = int('x')": "k = int('x')",
    "d > current_date() - INTERVAL 2026 YEARS": "d > current_date() - INTERVAL 2026 YEARS",
    "k = (SELECT 1 + 1)": "k = (SELECT 1 + 1)",
    "k = rand() + 1": "k = rand() + 1",
    "k < length(s) + 1 * 2": "k < length(s) + 1 * 2",
    "CASE WHEN k = 1 + 1 THEN true END": "CASE WHEN k = 1 + 1 THEN true END",
    "d >= current_date() - 3": "d >= __acid_since({})",
    "d BETWEEN date_sub(now(), 3) AND current_date()": "d BETWEEN __acid_since({}) AND __acid_since({})",
    "i = year(current_date())": "i = year(current_date())",
    "d > date_sub(DATE'2020-01-01', day(current_date()))": "d > date_sub(DATE'2020-01-01', day(current_date()))",
    "d > to_date(current_date(), 'dd-MM-yyyy')": "d > to_date(current_date(), 'dd-MM-yyyy')",
    ">=(d, date_sub(DATE'2020-01-10', 3))": ">=(d, DATE'2020-01-07')",
}


@pytest.fixture
def ask(spark: SparkSession) -> Any:
    with under(spark, {"spark.sql.ansi.enabled": "false"}):
        yield ask_of(spark)


@pytest.mark.parametrize("condition", WORDS)
def test_what_stands_in_their_place(condition: str, ask: Any) -> None:
    found = with_literals(condition, ask)
    assert re.sub(r"since\('\d{4}-\d\d-\d\d'\)", "since({})", found) == WORDS[condition]


def test_what_no_condition_has_is_not_asked() -> None:
    def refused(expressions: Any) -> Any:
        raise AssertionError(expressions)

    for condition in (
        "k = 5 AND s = 'x'",
        "k IN (1, 2)",
        "d >= DATE'2020-01-01'",
        "s = 'a + b'",
        'k = 1 + "a"',
        "k = i + 1",
    ):
        assert with_literals(condition, refused) == condition


def test_an_expression_that_fails_is_no_hint(spark: SparkSession) -> None:
    for condition in ("i < 2147483647 + 1", "k = 1 / 0", "d = to_date('no day')", "k = no_such_function(1) + 1"):
        with under(spark, {"spark.sql.ansi.enabled": "true"}):
            assert with_literals(condition, ask_of(spark)) == condition


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.d >= date_sub(current_date(), 3) ", "d >= date_sub(current_date(), 3)"),
        ("`T`.`d` = 1 + 1 AND k < 5", "`d` = 1 + 1 AND k < 5"),
        ("d >= date_sub(current_date(), 3) OR t.k = u.k", None),
        ("t.d.e = 1 + 1", None),
        ("other = 1 + 1", None),
        ("upper(s) = 'A' AND k = 1 + 1", None),
        ("t.d = DATE'2020-01-01'", None),
    ],
)
def test_columns_without_their_table(condition: str, expected: str | None) -> None:
    assert without_alias(tokens_of(condition), "t", {"d", "k", "s", "t"}) == expected


# --- oracles -------------------------------------------------------------------------------------


def expressions(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Columns, and expressions of literals that they are compared with."""
    number, other = chance.randrange(-40, 40), chance.randrange(1, 9)
    day = f"DATE'20{chance.randrange(20, 30)}-0{chance.randrange(1, 10)}-{chance.randrange(10, 29)}'"
    now = chance.choice(("current_date()", "now()", "current_timestamp()", "current_date"))
    numbers = (
        f"{number} * {other}", f"{number} + {other} - 3", f"abs({number})", f"-({number} - {other})",
        f"{number} % {other}", f"CAST('{number}' AS INT)", f"{number} / {other}", f"{number} * 1.5",
        f"int({number}) + 1L", f"length('abc') * {other}", f"year({day}) - 2000", f"datediff({day}, DATE'2025-01-01')",
        f"{number} + month({now})", f"pmod({number}, {other})", f"9223372036854775807 - {other}",
        f"CAST({number} AS decimal(38,37)) + 0", f"{number}D * 2", f"'{number}' + 1",
    )  # fmt: skip
    days = (
        f"date_sub({day}, {number})", f"{day} + {other}", f"{day} - INTERVAL {other} DAYS",
        f"add_months({day}, {number})", f"last_day({day})", f"trunc({day}, 'MM')", f"to_date('2026-0{other}-11')",
        f"CAST('2026-0{other}-11' AS DATE)", f"make_date(2026, {other}, 1)", f"{day} + INTERVAL '1' MONTH",
        f"CAST(TIMESTAMP'2026-02-0{other} 23:59:59' AS DATE)", f"date_format({day}, 'yyyy-MM-dd')",
        f"TIMESTAMP'2026-02-0{other} 12:00:00' + INTERVAL {other} HOURS", f"date_trunc('MONTH', {day})",
        f"concat('2026-0{other}', '-03')",
    )  # fmt: skip
    moments = (
        f"date_sub({now}, {number})", f"current_date() - {other}", f"current_date() - INTERVAL {other} DAYS",
        f"add_months({now}, {number})", f"trunc({now}, 'MM')", f"last_day({now})", f"CAST({now} AS DATE) + {other}",
        f"date_trunc('WEEK', {now})", f"now() - INTERVAL {other * 9} HOURS", f"to_date({now})",
        f"date_format({now}, 'yyyy-MM-dd')", f"date_sub({day}, day({now}))", f"date_add({day}, month({now}))",
        f"INTERVAL {other} DAYS + current_date()",
    )  # fmt: skip
    texts = (
        f"concat('v', '{other}')", f"upper('v{other}')", f"replace('v-{other}', '-', '')", f"lpad('{other}', 3, '0')",
    )  # fmt: skip
    yield chance.choice(("k", "i", "tiny", "m", "wide", "x", "s")), chance.choice(numbers)
    yield chance.choice(("d", "d", "d", "ts", "s")), chance.choice(days)
    yield chance.choice(("d", "d", "d", "ts")), chance.choice(moments)
    yield "s", chance.choice(texts)


FORMS = ("{c} {o} {a}", "{a} {o} {c}", "{c} BETWEEN {a} AND {b}", "{c} IN ({a}, {b})", "NOT ({c} {o} {a})")


def condition(chance: random.Random) -> str:
    def compared() -> str:
        column, first = chance.choice(list(expressions(chance)))
        others = [of for _ in range(8) for name, of in expressions(chance) if name == column]
        operator = chance.choice(("=", "<", "<=", ">", ">=", "<=>"))
        return chance.choice(FORMS).format(c=column, a=first, b=chance.choice([first, *others]), o=operator)

    parts = [compared() for _ in range(chance.choice((1, 1, 2, 3)))]
    return chance.choice((" AND ", " OR ")).join(f"({part})" if len(parts) > 1 else part for part in parts)


ROWS = """
SELECT id AS k, CAST(pmod(hash(id), 90) - 45 AS int) AS i, CAST(pmod(hash(id, 1), 60) - 30 AS tinyint) AS tiny,
  date_add({now}, CAST(pmod(hash(id, 2), 4000) - 3000 AS int)) AS d,
  timestamp(date_add({now}, CAST(pmod(hash(id, 3), 400) - 300 AS int))) + INTERVAL 7 HOURS AS ts,
  concat('v', pmod(hash(id, 4), 10)) AS s, CAST(pmod(hash(id, 5), 9000) / 100 - 45 AS decimal(12,2)) AS m,
  CAST(pmod(hash(id, 6), 90) - 45 AS decimal(38,30)) AS wide, pmod(hash(id, 7), 90) / 2 - 22 AS x, id % 2 = 0 AS b
FROM range(-60, 340)
"""


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_spark_chooses_now_and_later_may_match(spark: SparkSession, seed: int, ansi: str) -> None:
    """What is left unread by a condition of today is not wanted tomorrow, or in years."""
    chance = random.Random(f"{seed} {ansi}")
    rows = spark.sql(ROWS.format(now="current_date()")).cache()
    understood = 0
    with under(spark, {"spark.sql.ansi.enabled": ansi}):
        for _ in range(60):
            text = condition(chance)
            said = predicate_of(text, TABLE, ask=ask_of(spark))
            if said is None:
                continue
            understood += 1
            for days in (0, 1, 40, 800):
                try:
                    chosen = rows.where(_later(text, days)).collect()
                except Exception:  # the condition fails, or compares what cannot be compared
                    continue
                for row in chosen:
                    assert may_match(said, _of_row(row)), (text, days, said, row)
    rows.unpersist()
    assert understood > 15


def _later(text: str, days: int) -> str:
    """The condition as it is after some days."""
    text = re.sub(r"current_date(\(\))?", f"date_add(current_date(), {days})", text)
    return re.sub(r"(now|current_timestamp)\(\)", f"(now() + INTERVAL {days} DAYS)", text)


def _of_row(row: Any) -> Callable[[str], ColumnStatistics]:
    def known(column: str) -> ColumnStatistics:
        value = row[column]
        return ColumnStatistics(0 if value is None else 1, value is None, value, value)

    return known


def test_statements_read_no_more_than_what_they_ask_for(acid: AcidSession, spark: SparkSession) -> None:
    """And the rows that they show and change are those of a session that reads all."""
    acid.create_table("d.t", {"k": "bigint", "d": "date", "s": "string"})
    days = "date_sub(current_date(), int(id / 100))"
    acid.insert("d.t", spark.range(0, 40_000, 1, 1).selectExpr("id AS k", f"{days} AS d", "string(id) AS s"))
    everything = hive_acid.spark.session(spark, acid.connection, skipping=False)
    for text in (
        "d >= date_sub(current_date(), 3)",
        "d > current_date() - INTERVAL 2 DAYS AND k % 2 = 0",
        "d = CAST(now() AS DATE)",
        "d IN (current_date(), date_sub(current_date(), 1))",
        "k BETWEEN 1000 * 3 AND 1000 * 3 + 50",
        "k < abs(-70) OR k = 3 * 1000",
    ):
        expected = sorted(everything.table("d.t").where(text).collect())
        assert expected
        frames = (
            acid.table("d.t").where(text),
            acid.table("d.t", where=text),
            acid.sql(f"SELECT * FROM d.t WHERE {text}"),
            acid.sql(f"SELECT a.* FROM d.t AS a WHERE ({text.replace('d ', 'a.d ').replace('k ', 'a.k ')}) AND s > ''"),
        )
        for frame in frames:
            assert sorted(frame.collect()) == expected, text
            if not OVER_CONNECT:
                assert sum(of.rows for of in scans(frame)) <= GROUP_ROWS, text
    deleted = acid.delete("d.t", "d >= date_sub(current_date(), 3)")
    assert deleted == 400
    acid.sql("UPDATE d.t SET s = 'x' WHERE k < 50 * 10 AND d < current_date()")
    assert everything.table("d.t").where("s = 'x'").count() == 100
    everything.close()


@pytest.mark.parametrize("written", ["by the client", "by Spark"])
def test_times_skip_row_groups(acid: AcidSession, spark: SparkSession, written: str) -> None:
    """Clustered by time, of which some are null; the rows are those of a session that reads all."""
    acid.create_table("d.t", {"k": "bigint", "ts": "timestamp"})
    times = "timestamp_micros(unix_micros(timestamp(date_sub(current_date(), int(id / 100)))) - id * 7001)"
    rows = spark.range(0, 40_000, 1, 1).selectExpr("id AS k", f"if(id % 501 = 0, null, {times}) AS ts")
    with nullcontext() if written == "by the client" else limited(acid, **WRITTEN):
        acid.insert("d.t", rows)
    acid.delete("d.t", "k % 11 = 3")
    everything = hive_acid.spark.session(spark, acid.connection, skipping=False)
    day = date.today() - timedelta(days=9)
    for text in (
        f"ts >= '{day}'",
        f"ts > TIMESTAMP'{day} 01:00:00' AND ts <= TIMESTAMP'{day} 00:00:00' + INTERVAL 30 HOURS",
        f"ts = TIMESTAMP'{day} 00:00:00' - INTERVAL 7 SECONDS OR k = 5",
        "ts >= current_timestamp() - INTERVAL 36 HOURS",
        "date(ts) >= current_date() - 3",
        f"to_date(ts) = DATE'{day}'",
        f"ts BETWEEN DATE'{day}' AND now() AND k % 2 = 0",
        "ts < '1950-01-01'",
    ):
        expected = sorted(everything.table("d.t").where(text).collect())
        for frame in (acid.table("d.t").where(text), acid.sql(f"SELECT * FROM d.t WHERE {text}")):
            assert sorted(frame.collect()) == expected, text
            if not OVER_CONNECT:
                assert sum(of.rows for of in scans(frame)) <= 2 * GROUP_ROWS, text
    everything.close()


@pytest.mark.skipif(OVER_CONNECT, reason="Columns of Connect are not looked into for it")
def test_columns_of_the_dataframe_api(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"k": "bigint", "d": "date"})
    acid.insert(
        "d.t", spark.range(0, 40_000, 1, 1).selectExpr("id AS k", "date_sub(current_date(), int(id / 100)) AS d")
    )
    asked: tuple[Expr, ...] = (
        F.col("d") >= F.date_sub(F.current_date(), 3),
        F.col("d") >= F.expr("current_date() - INTERVAL 3 DAYS"),
        F.col("d").between(F.date_sub(F.current_date(), 3), F.current_date()),
        (F.col("d") == F.to_date(F.lit(str(date.today() - timedelta(days=2))))) & (F.col("k") > 5),
    )
    for one in asked:
        (scan,) = scans(frame := acid.table("d.t").where(one))
        assert 0 < frame.count() <= 400
        assert scan.rows <= GROUP_ROWS, str(one)
