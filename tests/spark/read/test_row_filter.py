"""Rows that ORC leaves undecoded: whatever is asked, rows and values are those of a read without search arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.change import dml
from hive_acid.spark.change.driver_write import driver_deletes
from hive_acid.spark.conditions.orc.row_filter import ROW_FILTER_OPTIONS
from tests.spark.conftest import OVER_CONNECT
from tests.spark.plans import scans
from tests.values.sessions.under import under

ROWS = 24_000
COLUMNS = {
    "k": "bigint",
    "tiny": "tinyint",
    "whole": "int",
    "runs": "smallint",
    "later": "date",
    "price": "decimal(12,2)",
    "wide": "decimal(38,18)",
    "x": "double",
    "f": "float",
    "flag": "boolean",
    "day": "date",
    "at": "timestamp",
    "few": "string",
    "many": "string",
    "padded": "char(5)",
    "short": "varchar(8)",
    "raw": "binary",
    "list": "array<decimal(6,1)>",
    "pairs": "map<string,timestamp>",
    "inner": "struct<a:string,b:decimal(5,2),c:double>",
}
VALUES = {
    "k": "id",
    "tiny": "CAST({h} % 100 AS tinyint)",
    "whole": "CAST({h} % 5000 AS int)",
    "runs": "if(id DIV 1700 % 2 = 0 OR id % 3 = 0, null, CAST({h} % 4 AS smallint))",
    "later": "if(id DIV 2900 % 2 = 0, null, date_add(date'1970-01-01', CAST({h} % 4 AS int)))",
    "price": "CAST({h} % 1000000 / 100 + 0.5 AS decimal(12,2))",
    "wide": "CAST({h} AS decimal(38,18)) * 1007",
    "x": "{h} / 7D",
    "f": "CAST({h} % 1000 AS float) / 8",
    "flag": "{h} % 2 = 0",
    "day": "date_add(date'2020-01-01', CAST({h} % 1000 AS int))",
    "at": "timestamp_micros({h} % 4000000000000000)",
    "few": "CAST(1 + abs({h}) % 40 AS string)",
    "many": "concat('text ', CAST({h} AS string))",
    "padded": "CAST(abs({h}) % 50 AS string)",
    "short": "CAST(abs({h}) % 5000 AS string)",
    "raw": "unhex(hex({h} % 100000))",
    "list": "transform(sequence(1, CAST(1 + abs({h}) % 3 AS int)), i -> CAST(i * ({h} % 1000) AS decimal(6,1)))",
    "pairs": "map(CAST({h} % 9 AS string), timestamp_micros({h} % 4000000000000000))",
    "inner": "named_struct('a', CAST({h} % 30 AS string), 'b', CAST({h} % 99 AS decimal(5,2)), 'c', {h} / 3D)",
}
NEVER_NULL = ("k", "few", "price", "whole", "day", "x", "flag")


def rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Rows whose values follow from their numbers: `k` in order, all others in none; a seventh of values is null."""
    made = []
    for place, (name, kind) in enumerate(COLUMNS.items()):
        text = VALUES[name].format(h=f"(xxhash64(id, {place}) DIV 100000)")
        stored = "string" if kind.startswith(("char", "varchar")) else kind
        known = "true" if name in NEVER_NULL else f"pmod(xxhash64(id, {place}, 'null'), 7) > 0"
        made.append(F.expr(f"CAST(if({known}, {text}, null) AS {stored})").alias(name))
    return spark.range(first, last, 1, 1).select(*made)


@pytest.fixture
def table(acid: AcidSession, spark: SparkSession) -> Iterator[Any]:
    """Three files with row groups of a thousand rows, and others with few rows; some rows are deleted, some changed."""
    acid.create_table("d.t", COLUMNS, properties={"orc.row.index.stride": "1000", "orc.stripe.size": "200000"})
    for first in range(0, ROWS, ROWS // 3):
        acid.insert("d.t", rows(spark, first, first + ROWS // 3))
    acid.delete("d.t", "k % 11 = 3")
    acid.update("d.t", {"price": "price + 1", "few": "'7'"}, "k % 500 = 1")
    acid.sql("INSERT INTO d.t (k, few, price) VALUES (-1, '3', 5.5), (-2, '4', 6.5)")
    with hive_acid.spark.session(spark, acid.connection, skipping=False) as off:
        yield acid, off


def conditions(chance: random.Random) -> Iterator[str]:
    """Comparisons of all types, of which none, few, many or all rows meet, alone and joined."""
    number = chance.randrange(ROWS)
    day = f"DATE'20{chance.randrange(18, 24)}-0{chance.randrange(1, 10)}-{chance.randrange(10, 29)}'"
    moment = f"19{chance.randrange(67, 73)}-0{chance.randrange(1, 10)}-{chance.randrange(10, 29)}"
    leaves = [
        f"k BETWEEN {number} AND {number + chance.choice((0, 5, 900, 9000))}",
        f"k {chance.choice(('<', '<=', '>', '>='))} {number}",
        f"k IN ({', '.join(str(chance.randrange(ROWS)) for _ in range(chance.choice((1, 3, 30))))})",
        f"tiny = {chance.randrange(-128, 200)}",
        f"whole IN ({', '.join(str(chance.randrange(-5000, 5000)) for _ in range(chance.choice((2, 40))))})",
        f"runs {chance.choice(('<', '>=', '=', '<>'))} {chance.randrange(-4, 5)}",
        f"runs IN ({', '.join(str(chance.randrange(-4, 9)) for _ in range(chance.choice((1, 2, 15))))})",
        f"runs BETWEEN {chance.randrange(-4, 3)} AND {chance.randrange(0, 5)}",
        f"later {chance.choice(('<', '>=', '=', '<>'))} DATE'1970-01-0{chance.randrange(1, 5)}'",
        f"price {chance.choice(('<', '>=', '='))} {chance.randrange(-10000, 10000)}.5",
        f"price IN ({', '.join(f'{chance.randrange(10000)}.{chance.randrange(100):02}' for _ in range(20))})",
        f"wide {chance.choice(('<', '>'))} {chance.randrange(-(10**12), 10**12)}.125",
        f"x {chance.choice(('<', '>'))} {chance.randrange(-(10**14), 10**14)}.5",
        f"f {chance.choice(('=', '<', '>'))} {chance.randrange(-120, 120)}.5",
        chance.choice(("flag", "NOT flag", "flag = false")),
        f"day {chance.choice(('=', '<', '>='))} {day}",
        f"day IN ({day}, DATE'2021-05-05', DATE'2020-02-02')",
        f"at {chance.choice(('=', '<', '>=', '>'))} TIMESTAMP'{moment} 12:00:00'",
        f"at BETWEEN TIMESTAMP'{moment} 00:00:00' AND TIMESTAMP'{moment} 00:00:00' + INTERVAL {number} MINUTES",
        f"CAST(at AS DATE) {chance.choice(('=', '<', '>='))} DATE'{moment}'",
        f"few = '{chance.randrange(50)}'",
        f"few IN ('{chance.randrange(50)}', 'none', '17')",
        f"many {chance.choice(('<', '>'))} 'text {chance.choice('-0123456789')}'",
        f"{chance.choice(list(COLUMNS))} IS {chance.choice(('', 'NOT '))}NULL",
        f"padded = '{chance.randrange(50)}'",
        f"pmod(whole, 10) = {chance.randrange(10)}",
        f"few LIKE '{chance.randrange(10)}%'",
    ]
    for _ in range(16):
        one, other, third = chance.sample(leaves, 3)
        yield chance.choice((one, f"{one} AND {other}", f"{one} OR {other}", f"({one} OR {other}) AND NOT ({third})"))


def told(frame: DataFrame) -> Any:
    """How many rows there are, and a sum of hashes of all values that no order of rows changes."""
    columns = [F.to_json(name) if COLUMNS[name].startswith("map") else F.col(name) for name in COLUMNS]
    summed = F.sum(F.xxhash64(*columns).cast("decimal(38,0)"))
    return frame.agg(F.count(F.lit(1)), summed).collect()[0]


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_values_are_those_of_a_read_without(table: Any, seed: Any) -> None:
    acid, off = table
    for condition in conditions(random.Random(seed)):
        expected = told(off.table("d.t").where(condition))
        assert told(acid.table("d.t", where=condition)) == expected, condition
        assert told(acid.table("d.t").where(condition)) == expected, condition


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.orc.enableVectorizedReader", "false"),
        ("orc.sarg.to.filter", "true"),
        ("orc.filter.use.selected", "true"),
        ("orc.filter.plugin", "true"),
    ],
)
def test_whatever_a_session_says_of_orc(table: Any, spark: SparkSession, setting: str, value: str) -> None:
    acid, off = table
    for condition in conditions(random.Random(77)):
        expected = told(off.table("d.t").where(condition))
        with under(spark, {setting: value}):
            assert told(acid.table("d.t", where=condition)) == expected, condition


@pytest.mark.parametrize(
    "fails_elsewhere",
    [
        "CAST(few AS int) > 0",  # an empty text is no number
        "10 / price <> 0",  # and no price is zero
        "CAST(trim(few) AS tinyint) + 1 / price > 0",
        "10 / price > -1 AND 10 / price < 9999 AND (10 / price <> 7 OR CAST(few AS int) > 3 AND CAST(few AS int) < 9)",
    ],
)
@pytest.mark.parametrize("plain", ["whole = 17", "k IN (5, 1700, 23000)", "day < DATE'2018-01-01'", "tiny > 98"])
def test_nothing_else_is_asked_of_rows_that_are_not_decoded(table: Any, fails_elsewhere: Any, plain: Any) -> None:
    acid, off = table
    for condition in (f"{fails_elsewhere} AND {plain}", f"{plain} AND {fails_elsewhere}"):
        expected = told(off.table("d.t").where(condition))
        assert told(acid.table("d.t").where(condition)) == expected, condition
        assert told(acid.table("d.t", where=plain).where(fails_elsewhere)) == expected, condition
        assert told(acid.table("d.t").where(fails_elsewhere).where(plain)) == expected, condition
        assert told(acid.sql(f"SELECT * FROM d.t WHERE {condition}")) == expected, condition


@pytest.mark.parametrize("seed", range(2))
def test_changes_meet_the_rows_that_they_should(table: Any, seed: Any) -> None:
    acid, off = table
    for turn, condition in enumerate(conditions(random.Random(1000 + seed))):
        matched = off.table("d.t").where(condition).count()
        before = off.table("d.t").cache()
        if turn % 2:
            acid.update("d.t", {"price": "price + 1"}, condition)
            changed = before.withColumn("price", F.expr(f"if({condition}, price + 1, price)"))
            assert told(off.table("d.t")) == told(changed), condition
        elif matched < ROWS // 4:
            acid.delete("d.t", condition)
            assert told(off.table("d.t")) == told(before.where(f"NOT coalesce({condition}, false)")), condition
        before.unpersist()


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
def test_which_conditions_orc_asks_of_rows(table: Any) -> None:
    """Comparisons of numbers and days, of which no null could be taken for a value."""
    acid, _ = table
    ((option, value),) = ROW_FILTER_OPTIONS.items()
    for condition, asked in {
        "k = 5": True,
        "price >= 10.5 AND whole < 3": True,
        "day = '2020-05-05' OR whole IN (1, 2)": True,
        "k < 5 AND pmod(whole, 10) = 3": True,
        # Times are asked of row groups alone, and of none where rows are asked.
        "k < 5 AND at > '1970-05-05'": True,
        "at > '1970-05-05'": False,
        "k < 5 OR at > '1970-05-05'": False,
        # Nulls, in whose place ORC has 1.
        "k < 5 AND tiny = 3": True,
        "runs > 1 AND runs < 5": True,
        "later = DATE'1970-01-03'": True,
        "runs >= 1": False,
        "later < DATE'1970-01-03'": False,
        "k < 5 OR tiny = 3": False,
        "tiny IS NOT NULL": False,
        "tiny IN (3, 4, 5) AND tiny IS NOT NULL": True,
        "wide > 5": False,
        "f > 5.5": False,
        "few = '7'": False,
        "x IN (1.5, 2.5)": False,
        "list IS NULL": False,
        "pmod(whole, 10) = 3": False,
    }.items():
        plan = acid.table("d.t", where=condition)._jdf.queryExecution().analyzed()
        options = list(_options(plan))
        assert any(f"{option} -> {value}" in found for found in options) == asked, condition
    (scan,) = scans(acid.table("d.t", where="whole = 4000").select("many"))
    assert "Batched: true" in scan.text
    assert "PushedFilters: []" in scan.text or "PushedFilters" not in scan.text


def _options(plan: Any) -> Iterator[str]:
    """The options of the sources that a plan reads."""
    leaves = plan.collectLeaves()
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        if "LogicalRelation" in leaf.getClass().getName():
            yield leaf.relation().options().toString()


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the code")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("k IN (11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)", "k IN (31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 42)"),
        ("whole IN (11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)", "whole IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 400)"),
        ("day BETWEEN '2020-05-01' AND '2020-05-02'", "day BETWEEN '2021-06-01' AND '2021-06-03'"),
        ("price >= 10.50 AND price < 20.50", "price >= 7010.50 AND price < 7020.50"),
    ],
)
def test_changes_by_other_values_have_the_same_code(
    table: Any, monkeypatch: pytest.MonkeyPatch, one: Any, other: Any
) -> None:
    acid, _ = table
    seen = []

    def spied(rows: Any, *args: Any) -> Any:
        parts = rows._jdf.queryExecution().debug().codegenToSeq()
        seen.append([parts.apply(at)._2() for at in range(parts.size())])
        return driver_deletes(rows, *args)

    monkeypatch.setattr(dml, "driver_deletes", spied)
    acid.delete("d.t", "k = -2")  # the table has deletes of all its files from here on
    del seen[:]
    assert acid.delete("d.t", one) > 0
    assert acid.delete("d.t", other) > 0
    assert len(seen) == 2
    assert seen[0] == seen[1]
