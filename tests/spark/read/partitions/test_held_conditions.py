"""Conditions on partition keys that are true of all rows that are read: no row is asked, and the rows are the same."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT
from tests.values.sessions.under import under

KEYS = {
    "int": ("CAST(nullif(id % 5, 4) AS int)", ("0", "2", "'3'", "7", "2.5", "1 + 1", "NULL")),
    "date": ("nullif(date_add(date'2024-02-27', CAST(id % 5 AS int)), date'2024-02-29')",
             ("date'2024-02-28'", "'2024-03-01'", "DATE '2024-02-27' + 2", "current_date()", "NULL")),
    "string": ("element_at(array('a b', 'ä/%', 'x', 'X', NULL), CAST(id % 5 AS int) + 1)",
               ("'x'", "'a b'", "'ä/%'", "upper('x')")),
    "decimal(6,2)": ("CAST(nullif(id % 5, 4) / 4 AS decimal(6,2))", ("0.25", "0.5", "0.50", "1")),
    "boolean": ("nullif(id % 3, 2) = 1", ("true", "false")),
    "char(3)": ("element_at(array('a', 'ab', NULL), CAST(id % 3 AS int) + 1)", ("'a'", "'ab '", "'b'")),
}  # fmt: skip
FORMS = (
    "{p} = {v}", "{p} >= {v}", "{p} < {v}", "{v} <= {p}", "{p} BETWEEN {v} AND {w}", "{p} IN ({v}, {w})", "{p} <> {v}",
    "{p} IS NOT NULL", "{p} IS NULL", "NOT ({p} = {v})", "({p} = {v} OR {p} > {w})", "{p} <=> {v}", "( {p} > {v} )",
)  # fmt: skip
OTHERS = (
    "n % 3 = 1",
    "n < {n}",
    "s = 's1'",
    "(n > {n} OR s = 's2')",
    "length(s) = 2",
    "n IN (SELECT id FROM range(9))",
)
QUERIES = (
    "SELECT * FROM {t} WHERE {c}",
    "SELECT n, p FROM {t} AS a WHERE {a}",
    "SELECT p, count(*), sum(n) FROM {t} WHERE {c} GROUP BY p",
    "SELECT sum(a.n), b.p FROM {t} a JOIN {t} b ON a.n = b.n WHERE {a} GROUP BY b.p",
    "SELECT a.n, b.n FROM {t} a LEFT JOIN {t} b ON a.n = b.n + 1 AND b.q = 1 WHERE {a}",
    "SELECT n FROM (SELECT * FROM {t} WHERE {c}) WHERE n % 2 = 0 -- {{braces}}",
    "WITH w AS (SELECT n, p FROM {t} WHERE {c}) SELECT p, max(n) FROM w GROUP BY p HAVING max(n) > 3",
    "SELECT (SELECT count(*) FROM {t} WHERE {c}) AS x, count(DISTINCT p) FROM {t}",
    "SELECT n FROM {t} WHERE {c} UNION ALL SELECT -n FROM {t} WHERE {d} ORDER BY 1 LIMIT 50",
    "SELECT count(*) FROM {t} WHERE {c} AND EXISTS (SELECT 1 FROM {t} AS a WHERE {a} AND a.n = {t}.n)",
    "SELECT p, e FROM {t} LATERAL VIEW explode(array(n, n + 1)) x AS e WHERE {c}",
)


@pytest.fixture(params=list(KEYS))
def kind(request: Any, acid: AcidSession, spark: SparkSession) -> Any:
    """The type of the first key of ``d.t``, whose rows the view ``plain`` has as well."""
    acid.create_table("d.t", {"n": "bigint", "s": "string"}, partitioned_by={"p": request.param, "q": "int"})
    rows = spark.range(400).selectExpr(
        "id AS n", "concat('s', id % 4) AS s", f"{KEYS[request.param][0]} AS p", "CAST(id % 2 AS int) AS q"
    )
    acid.insert("d.t", rows)
    acid.delete("d.t", "n % 11 = 3")
    acid.table("d.t").createOrReplaceTempView("ours")
    spark.createDataFrame(acid.table("d.t").collect(), acid.table("d.t").schema).createOrReplaceTempView("plain")
    yield request.param
    spark.catalog.dropTempView("plain")


def condition(chance: random.Random, kind: str, alias: str = "") -> str:
    def one() -> str:
        if chance.random() < 0.35:
            return chance.choice(OTHERS).format(n=chance.randrange(400))
        if chance.random() < 0.2:
            return f"{alias}q = {chance.randrange(3)}"
        v, w = (chance.choice(KEYS[kind][1]) for _ in range(2))
        return chance.choice(FORMS).format(p=f"{alias}p", v=v, w=w)

    words = [one() for _ in range(chance.choice((1, 2, 3)))]
    if alias:
        words = [f"{alias}n > 5" if "n %" in of or "n " in of or "s" in of.split("'")[0] else of for of in words]
    return chance.choice((" AND ", " and ", "\n  AND ", " OR ")).join(words)


def told(frame: Any) -> Any:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_those_of_plain_spark(kind: str, acid: AcidSession, spark: SparkSession, seed: int) -> None:
    chance = random.Random(f"{seed} {kind}")
    answered = 0
    with under(spark, {"spark.sql.ansi.enabled": chance.choice(("true", "false"))}):
        for _ in range(9):
            query = chance.choice(QUERIES)
            words = {"c": condition(chance, kind), "d": condition(chance, kind), "a": condition(chance, kind, "a.")}
            if "LIMIT" in query and " OR " in words["d"]:
                continue
            try:
                expected = told(spark.sql(query.format(t="plain", **words)))
            except Exception:  # what cannot be compared
                continue
            text = query.format(t="d.t", **words)
            assert told(acid.sql(text)) == expected, text
            frame: DataFrame = acid.table("d.t")
            plain = spark.table("plain")
            for part in chance.sample((words["c"], words["d"], "n > 7"), 2):
                frame, plain = frame.where(part), plain.where(part)
            assert told(frame) == told(plain), words
            answered += 1
    assert answered > 2


def filters(frame: Any) -> str:
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    return "\n".join(line for line in plan.splitlines() if line.lstrip(" +-:").startswith("Filter"))


@pytest.fixture
def days(acid: AcidSession, spark: SparkSession) -> AcidSession:
    """A table of six days."""
    acid.create_table("d.e", {"n": "bigint"}, partitioned_by={"day": "date", "region": "string"})
    day = "date_add(date'2024-01-01', CAST(id % 6 AS int)) AS day"
    acid.insert("d.e", spark.range(60).selectExpr("id AS n", day, "if(id < 30, 'EU', 'US') AS region"))
    return acid


@pytest.mark.skipif(OVER_CONNECT, reason="looks at plans")
@pytest.mark.parametrize(
    ("where", "is_asked"),
    [
        ("day = date'2024-01-02'", False),
        ("day >= '2024-01-03' AND n > 5", False),
        ("day BETWEEN date'2024-01-02' AND date'2024-01-04' AND region = 'EU'", False),
        ("n > 5 AND region IN ('EU', 'XX')", False),
        ("day > date'2024-01-02' OR n > 5", True),
        ("day > date'2024-01-02' AND date_add(day, 1) < date'2024-01-06'", True),
    ],
)
def test_no_row_is_asked_for_its_partition(days: AcidSession, where: str, is_asked: bool) -> None:
    days.sql("DELETE FROM d.e WHERE region = 'US' AND day = date'2024-01-06'")
    in_alias = where.replace("day", "x.day", 1)
    for frame in (
        days.sql(f"SELECT n FROM d.e WHERE {where}"),
        days.sql(f"SELECT x.n FROM d.e AS x WHERE {in_alias} ORDER BY n LIMIT 9"),
        days.table("d.e").where(where).select("n"),
        days.table("d.e", where=where).select("n"),
    ):
        assert ("file_path" in filters(frame)) is is_asked, filters(frame)


@pytest.mark.skipif(OVER_CONNECT, reason="looks at plans")
def test_days_in_turn_are_one_program(days: AcidSession, spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    generator = jvm.org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
    for text in ("SELECT * FROM d.e WHERE day = '2024-01-0{}'", "SELECT sum(n) FROM d.e WHERE day >= '2024-01-0{}'"):
        days.sql(text.format(2)).collect()
        before = generator.compileTime()
        for number in (3, 4):
            assert days.sql(text.format(number)).collect()
        assert generator.compileTime() == before


def test_which_table_a_name_is_of_is_for_spark_to_say(days: AcidSession) -> None:
    with pytest.raises(AnalysisException, match="AMBIGUOUS"):
        days.sql("SELECT a.n FROM d.e a JOIN d.e b ON a.n = b.n WHERE day = '2024-01-02'").collect()
    found = days.sql(
        "SELECT count(*) FROM d.e a JOIN d.e b ON a.n = b.n WHERE a.day = '2024-01-02' AND b.region = 'EU'"
    )
    assert found.collect()[0][0] == 5


def test_a_frame_shows_its_own_partitions(days: AcidSession, spark: SparkSession) -> None:
    frame = days.sql("SELECT * FROM d.e WHERE day >= '2024-01-05'")
    later = days.table("d.e").where("day >= '2024-01-05'")
    days.sql("INSERT INTO d.e VALUES (100, date'2024-01-09', 'EU'), (101, date'2024-01-02', 'EU')")
    assert len(frame.collect()) == len(later.collect()) == 20
    assert len(days.sql("SELECT * FROM d.e WHERE day >= '2024-01-05'").collect()) == 21
    days.sql("CREATE OR REPLACE TEMPORARY VIEW late AS SELECT n FROM d.e WHERE day >= '2024-01-05'")
    assert len(days.sql("SELECT * FROM late").collect()) == 21
    assert len(spark.table("late").collect()) == 21
