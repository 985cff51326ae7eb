"""Conditions whose literals are kept out of generated code: which they are, and that they mean the same."""

import random
from datetime import date
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.failures import DAYS_AS_TEXTS
from hive_acid.spark.read.literal_hoisting import with_hoisted_literals, with_hoisted_values
from tests.spark.conftest import OVER_CONNECT

TABLE = Table(
    "d",
    "t",
    (
        Column("id", "int"),
        Column("big", "BIGINT"),
        Column("s", "string"),
        Column("d", "decimal(10,2)"),
        Column("day", "date"),
        Column("ts", "timestamp"),
        Column("f", "double"),
    ),
    partition_keys=(Column("p", "int"),),
)


A_TEXT, B_TEXT = "'2020-01-01'", "'2020-01-31'"
FIRST, LAST = "date '2020-01-01'", "date'2020-01-31'"


MANY = f"id IN ({', '.join(map(str, range(11)))})"
"""Of which Spark makes a set."""


def hoisted(number: Any) -> Any:
    return f"array({number})[coalesce(__acid_bucket & 0, 0)]"


def time(text: str) -> Any:
    return hoisted(f"CAST('{text}' AS TIMESTAMP_LTZ)")


@pytest.mark.parametrize(
    ("condition", "changed"),
    [
        ("id = 17", f"id = {hoisted(17)}"),
        ("ID%100=20", f"ID%{hoisted(100)}={hoisted(20)}"),
        (
            "t.id >= 5 AND NOT (`big` + -1 <=> 7)",
            f"t.id >= {hoisted(5)} AND NOT (`big` + -{hoisted(1)} <=> {hoisted(7)})",
        ),
        ("p IS NOT NULL or id between 1 and 2", f"p IS NOT NULL or id between {hoisted(1)} and {hoisted(2)}"),
        ("pmod(xxhash64(s, 7), 100)=13", f"pmod(xxhash64(s, {hoisted(7)}), {hoisted(100)})={hoisted(13)}"),
        ("abs(t.id - 7) < 1L", f"abs(t.id - {hoisted(7)}) < {hoisted('1L')}"),
        ("id IN (1, 2) AND s <> '3'", f"id IN ({hoisted(1)}, {hoisted(2)}) AND s <> '3'"),
        (
            "year(day) = 2020 or date_add(day, 3) > DATE '2020-01-01'",
            f"year(day) = {hoisted(2020)} or date_add(day, {hoisted(3)}) > " + hoisted("DATE '2020-01-01'"),
        ),
        ("big > -22000000000000 and f < 1.5D", f"big > -{hoisted(22000000000000)} and f < {hoisted('1.5D')}"),
        (
            "CASE WHEN id > 3 THEN 4 ELSE big END = 5",
            f"CASE WHEN id > {hoisted(3)} THEN {hoisted(4)} ELSE big END = {hoisted(5)}",
        ),
        ("ts < TIMESTAMP '2020-01-01 00:00:00.5'", "ts < " + hoisted("TIMESTAMP '2020-01-01 00:00:00.5'")),
        (
            "ts < '2020-01-01' AND ts >= '2019-01-01 12:00:00'",
            f"ts < {time('2020-01-01')} AND ts >= {time('2019-01-01 12:00:00')}",
        ),
        (MANY + " AND id > 5", MANY + f" AND id > {hoisted(5)}"),
        ("day >= DATE'2020-01-01' AND s = '= 5'", "day >= " + hoisted("DATE'2020-01-01'") + " AND s = '= 5'"),
        (
            "day BETWEEN date '2020-01-01' AND date'2020-01-31' or big = 3",
            f"day BETWEEN {hoisted(FIRST)} AND {hoisted(LAST)} or big = {hoisted(3)}",
        ),
        (
            "day >= '2020-01-01' AND day<'2020-01-31' AND s LIKE '2020-01-01'",
            f"day >= {hoisted('DATE ' + A_TEXT)} AND day<{hoisted('DATE ' + B_TEXT)} AND s LIKE '2020-01-01'",
        ),
        ("id DIV 2 = 1", f"id DIV {hoisted(2)} = {hoisted(1)}"),
        ("s LIKE 'a%' AND (year(day) = 2020)", f"s LIKE 'a%' AND (year(day) = {hoisted(2020)})"),
    ],
)
def test_numbers_of_plain_conditions_are_hoisted(condition: Any, changed: Any, spark: SparkSession) -> None:
    assert with_hoisted_literals(spark, condition, TABLE, "t") == changed


def test_days_stay_texts_where_spark_compares_them_as_texts(spark: SparkSession) -> None:
    spark.conf.set(DAYS_AS_TEXTS, "true")
    try:
        assert with_hoisted_literals(spark, "day = '2020-01-01'", TABLE, "t") == "day = '2020-01-01'"
    finally:
        spark.conf.unset(DAYS_AS_TEXTS)


@pytest.mark.parametrize(
    "condition",
    [
        "d = 1",
        "id = 1.5",
        "id = 1e3",
        "id = 1234567890",
        "id = '1'",
        "rand(5) < 1",
        "x.id = 1",
        "id = 1 -- 2",
        "id = 1 /* 2 */",
        "id = (SELECT 1)",
        "true(1)",
        "id = .5",
        "d = 1 AND id = 2",
        "day = '2020-01-32'",
        "s = '2020-01-01'",
        "day = '2020-01-01' AND s <> '2020-01-01'",
        "day IN ('2020-01-01', '2020-01-02')",
        "day = '2020-1-1'",
        "id IN (1, 2) AND d > 5",
        "hash(id) = 1234567890",
        "hash(id) = 1 -- 2",
        "s IN (SELECT s FROM o WHERE id = 3)",
        "exists(array(1), id -> id = 3) AND s = 'x'",
        "id = 5.",
        "id = 2147483648",
        "round(f, 1) = 1",
        "DATE '2020-01-01' = '2020-01-02'",
        "5 BETWEEN id + big AND 7",
        "id IN (1, 2) AND d * 5 > 7",
        "ts > '2020-01-01' AND day > '2020-01-01'",
        "ts > '2020-1-1'",
        "day > '2020-01-01 00:00:00'",
        "CAST(id AS decimal(12,2)) = 5",
        "day day 5 = 5",
        "hash id = 5",
        "",
    ],
)
def test_others_stay(condition: Any, spark: SparkSession) -> None:
    assert with_hoisted_literals(spark, condition, TABLE, "t") == condition


def test_they_mean_the_same(acid: AcidSession, spark: SparkSession) -> None:
    columns = {"id": "int", "big": "bigint", "day": "date", "s": "string"}
    acid.create_table("d.t", columns, partitioned_by={"p": "tinyint"})
    values = ("if(id % 7 = 0, null, id) big", "date'2020-01-01' + int(id) day", "string(id) s", "tinyint(id % 3) p")
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", *values))
    for condition in (
        "id % 10 = 3",
        "big - id <> 0 OR big IS NULL",
        "NOT (big > 5)",
        "t.p = 1 AND id BETWEEN 20 AND 40",
        "id * 2 - -4 < 20 and p != 2",
        "pmod(xxhash64(s, id), 10) = 3",
        "day BETWEEN date'2020-01-05' AND DATE '2020-02-01' AND s LIKE '%1%'",
        "day BETWEEN '2020-01-05' AND '2020-02-01' AND s LIKE '%1%'",
        "day >= '2020-02-01' OR day < '2020-01-03'",
        "date'2020-02-28' < day OR hash(day) % 5 = 1",
    ):
        assert with_hoisted_literals(spark, condition, acid.connection.table("d", "t"), "t") != condition
        with pytest.raises(RuntimeError, match="undone"), acid.transaction():
            expected = acid.table("d.t").alias("t").where(condition).count()
            assert 0 < acid.delete("d.t", condition) == expected
            raise RuntimeError("undone")
    assert acid.table("d.t").count() == 100


@pytest.mark.skipif(OVER_CONNECT, reason="a client of Connect does not see what is compiled")
def test_statements_of_other_literals_share_their_programs(acid: AcidSession, spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    programs = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    columns = {"id": "bigint", "n": "int", "f": "double", "s": "string", "day": "date", "ts": "timestamp"}
    acid.create_table("d.t", columns)
    values = ("id", "int(id % 500) n", "double(id) f", "concat('a', id) s", "date_add(DATE '2020-01-01', int(id)) day")
    acid.insert("d.t", spark.range(300).selectExpr(*values, "timestamp_seconds(1577836800 + id * 99999) ts"))
    acid.delete("d.t", "id = 0")
    statements: list[tuple[dict[str, Any], str]] = [
        ({}, "pmod(id + {n}, 100) = 7 AND abs(n - {n}) < {n}"),
        ({}, "id IN ({n}, 7{n}) OR f * {n} < 1D"),
        ({}, "if(id > {n}, 1, {n}) = {n} AND xxhash64(s, {n}) % {n} = 0"),
        ({}, "date_sub(day, {n}) < DATE '2020-01-{n}' AND substr(s, {n}, 2) = '{n}'"),
        ({}, "ts < '2020-01-{n} 00:00:00' AND day >= DATE '2020-01-{n}'"),
        ({}, "CAST(ts AS date) = DATE '2020-01-{n}' AND hour(ts) > {n}"),
        ({"n": "n + {n}", "f": "{n}", "ts": "TIMESTAMP '2020-01-{n} 00:00:00'", "s": "'{n}'"}, "id = 2{n}"),
        ({"n": 1, "day": date(2020, 1, 1)}, "id = 2{n}"),
    ]
    for assigned, where in statements:
        made = []
        for n in (11, 12, 13, 14):
            before, condition = programs.getCount(), where.format(n=n)
            if assigned:
                new = {name: value.format(n=n) if isinstance(value, str) else value for name, value in assigned.items()}
                if isinstance(new["n"], int):
                    new = {"n": n, "day": date(2020, 1, n)}
                acid.update("d.t", new, condition)
            else:
                acid.delete("d.t", condition)
            made.append(programs.getCount() - before)
        # Of what is deleted so far there is some code, too, which may change once.
        assert 0 in made[1:], (where, made)


HOSTILE = (
    "1, 1L, 2S, 1.5F, 0.0D, 'a5', 'x ', true, DATE '2020-02-29', TIMESTAMP '2020-02-29 12:30:00', 536870912",
    "-1, -9223372036854775807L, -32768S, -0.0F, -0.0D, '7', '7   ', false, DATE '0001-01-01',"
    " TIMESTAMP '0001-01-01 00:00:00', 0",
    "2147483647, 9223372036854775807L, 32767S, float('NaN'), double('NaN'), '', '    ', true, DATE '9999-12-31',"
    " TIMESTAMP '9999-12-31 23:59:59.999999', 2147483647",
    "-2147483648, 0L, 0S, float('Infinity'), double('-Infinity'), '2020-01-05', '5', NULL, DATE '2020-01-05',"
    " TIMESTAMP '2020-01-05 00:00:00', -1",
    "7, 7L, 7S, 7.0F, 7.0D, 'é😀x', 'abcd', false, DATE '1970-01-01', TIMESTAMP '1969-12-31 23:59:59.5', NULL",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1",
    "5, 17L, 3S, 16777217F, 9007199254740993D, '5', '05  ', true, DATE '2020-01-01',"
    " TIMESTAMP '2020-01-01 00:00:00', 7",
)
"""Rows of `HOSTILE_TABLE`, and their buckets."""

HOSTILE_TABLE = Table(
    "d",
    "t",
    (
        *(Column("i", "int"), Column("big", "bigint"), Column("small", "smallint"), Column("fl", "float")),
        *(Column("f", "double"), Column("s", "string"), Column("c", "char(4)"), Column("b", "boolean")),
        *(Column("day", "date"), Column("ts", "timestamp")),
    ),
)


class Conditions:
    """Random conditions of all types; `value` gives one of a type, nested so deeply."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one(self, *of: str) -> str:
        return self._random.choice(of)

    def number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.3:
            literal = self.one(
                "0", "1", "2", "5", "7", "100", "2147483647", "999999999", "3L", "-4", "1.5D", "22000000000000"
            )
            return self.one("i", "big", "small", "fl", "f", "t.i", "`big`", literal, literal, literal, "null")
        a, b, day, text = self.number(depth - 1), self.number(depth - 1), self.day(depth - 1), self.text(depth - 1)
        return self.one(
            *(f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} / {b}", f"{a} % {b}", f"({a})", f"-{a}", f"i DIV {b}"),
            *(
                f"pmod({a}, {b})",
                f"abs({a})",
                f"hash({a}, {b})",
                f"xxhash64({a}, {day}, {text})",
                f"greatest({a}, {b})",
            ),
            *(f"if({self.test(depth - 1)}, {a}, {b})", f"CASE WHEN {self.test(depth - 1)} THEN {a} ELSE {b} END"),
            *(
                f"coalesce({a}, {b})",
                f"nullif({a}, {b})",
                f"nvl({a}, {b})",
                f"shiftleft(i, {self.one('1', '3', '40')})",
            ),
            *(f"year({day})", f"dayofmonth({day})", f"datediff({day}, {self.day(depth - 1)})", f"length({text})"),
            *(f"CAST({a} AS bigint)", f"try_cast({text} AS int)", f"instr({text}, {self.text(0)})", f"mod({a}, {b})"),
        )

    def day(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return self.one("day", "day", "DATE '2020-01-05'", "date'0001-01-01'", "DATE '2020-02-30'", "to_date(ts)")
        n = self.one("1", "5", "40", "small")
        given = self.day(depth - 1)
        return self.one(
            f"date_add({given}, {n})", f"date_sub({given}, {n})", f"add_months({given}, {n})", f"last_day({given})"
        )

    def text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return self.one("s", "s", "c", "'5'", "'2020-01-05'", "''", "'a'")
        given, n = self.text(depth - 1), self.one("0", "1", "2", "-3", "5")
        return self.one(
            *(f"substr({given}, {n}, {n})", f"left({given}, {n})", f"right({given}, {n})", f"upper({given})"),
            *(
                f"concat({given}, {self.one('5', 'i', 's')})",
                f"CAST({self.number(depth - 1)} AS string)",
                f"trim({given})",
            ),
        )

    def test(self, depth: int) -> str:
        if depth > 0 and self._random.random() < 0.4:
            a, b = self.test(depth - 1), self.test(depth - 1)
            return self.one(f"{a} AND {b}", f"({a} OR {b})", f"NOT ({a})", f"({a}) IS NULL")
        compared = self.one("=", "<", ">=", "<>", "<=>", "==", "!=")
        a, b = self.number(depth), self.number(depth)
        few = ", ".join(self.number(0) for _ in range(self._random.choice([1, 2, 5, 10])))
        many = ", ".join(map(str, self._random.sample(range(-20, 30), 13)))
        day = self.one("'2020-01-05'", "'2020-01-01'", "'2020-02-30'", self.day(depth))
        time = self.one(
            "'2020-01-05'", "'2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 00:00:00.25'", "CAST(day AS timestamp)"
        )
        return self.one(
            *(f"{a} {compared} {b}", f"{a} {compared} {b}", f"{a} BETWEEN {b} AND {self.number(depth - 1)}", "b"),
            *(f"{a} IN ({few})", f"i IN ({many})", f"big NOT IN ({many}, {self.one('5', '7')})", f"{a} IS NOT NULL"),
            *(f"{self.day(depth)} {compared} {day}", f"day BETWEEN {day} AND {day}", f"day {compared} {day}"),
            *(
                f"ts {compared} {time}",
                f"ts {compared} {time}",
                f"date_trunc('DAY', ts) {compared} {time}",
                f"hour(ts) = {a}",
            ),
            *(f"{self.text(depth)} {compared} {self.text(0)}", "s LIKE '%5'", f"{self.text(depth)} = {a}"),
        )


def outcome(rows: DataFrame, expression: str, *, is_test: bool) -> Any:
    """The type and values of an expression, and the rows for which it is true, or what Spark says against it."""
    try:
        found = rows.selectExpr(f"{expression} AS x")
        values = [row.text for row in found.selectExpr("CAST(x AS string) AS text").collect()]
        kept = [row.i for row in rows.where(expression).select("i").collect()] if is_test else []
    except PySparkException as error:
        return error.getCondition()
    return found.schema["x"].dataType, values, kept


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_random_conditions_and_values_mean_the_same(seed: int, ansi: str, spark: SparkSession) -> None:
    of, before = Conditions(seed), spark.conf.get("spark.sql.ansi.enabled")
    names = ", ".join((*(column.name for column in HOSTILE_TABLE.columns), "__acid_bucket"))
    values = ", ".join(f"({row})" for row in HOSTILE)
    # Kept, since Spark computes what is in the query itself before it optimizes anything.
    rows = spark.sql(f"SELECT * FROM VALUES {values} AS t({names})").localCheckpoint().alias("t")
    changed = 0
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for is_test in [True] * 45 + [False] * 15:
            text = of.test(2) if is_test else of.number(2)
            if is_test:
                hoisted_text = with_hoisted_literals(spark, text, HOSTILE_TABLE, "t")
            else:
                hoisted_text = with_hoisted_values(text, HOSTILE_TABLE, "t")
            changed += hoisted_text != text
            expected = outcome(rows, text, is_test=is_test)
            assert outcome(rows, hoisted_text, is_test=is_test) == expected, text
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    assert changed > 10
