"""Tables of many columns, whose columns have no guards: rows, plans, and methods that Java compiles."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.read import unpushed
from tests.spark.conftest import OVER_CONNECT
from tests.spark.plans import pushed_to_orc
from tests.spark.read.test_row_filter import COLUMNS, conditions, rows
from tests.values.sessions.under import under

ROWS = 24_000
MORE = {f"more{number}": "int" for number in range(20)}
MOST_BYTES = 8_000
"""Java compiles no method that has more."""


@pytest.fixture
def table(acid: AcidSession, spark: SparkSession) -> Iterator[tuple[AcidSession, AcidSession]]:
    """Two sessions, of which one is to have guards; some rows are deleted, and some changed."""
    assert len({**COLUMNS, **MORE}) > unpushed.MOST_GUARDED > len(COLUMNS)
    acid.create_table("d.t", {**COLUMNS, **MORE}, properties={"orc.row.index.stride": "1000"})
    acid.insert("d.t", rows(spark, 0, ROWS).selectExpr("*", *(f"int(hash(k, '{name}')) AS {name}" for name in MORE)))
    acid.delete("d.t", "k % 11 = 3")
    acid.update("d.t", {"price": "price + 1", "few": "'7'"}, "k % 500 = 1")
    some = ("k", "few", "price", "x", "day")
    acid.create_table("d.u", {f"u_{name}": COLUMNS[name] for name in some})
    acid.insert("d.u", rows(spark, 0, 500).select(*(F.col(name).alias(f"u_{name}") for name in some)))
    with hive_acid.spark.session(spark, acid.connection) as guarded:
        yield acid, guarded


QUERIES = (
    "SELECT * FROM d.t WHERE {}",
    "SELECT more3, few, k FROM (SELECT * FROM d.t WHERE k % 3 = 1) WHERE {}",
    "SELECT few, sum(price), max(`inner`.b), count(DISTINCT day) FROM d.t WHERE {} GROUP BY few",
    "SELECT k, b.n FROM d.t, LATERAL (SELECT sum(u_price) AS n FROM d.u WHERE u_few = few) b WHERE {}",
    "SELECT k, (SELECT max(u_x) FROM d.u WHERE u_few = few) FROM d.t WHERE {}",
    "SELECT k, more1 FROM d.t WHERE {} AND EXISTS (SELECT 1 FROM d.u WHERE u_k = k AND u_price > 9)",
    "SELECT k FROM d.t WHERE {} AND few NOT IN (SELECT u_few FROM d.u WHERE u_few > '3')",
    "SELECT u_k, n FROM d.u, LATERAL (SELECT count(*) AS n FROM d.t WHERE few = u_few AND {})",
    "SELECT k, u_day, at FROM d.t JOIN d.u ON k = u_k + 7 WHERE {}",
    "SELECT k, u_day FROM d.t FULL JOIN d.u ON k = u_k AND u_price > 5000 WHERE {}",
    "SELECT k, row_number() OVER (PARTITION BY few ORDER BY k) FROM d.t WHERE {}",
    "SELECT more0, k FROM d.t WHERE {} UNION ALL SELECT more1, k FROM d.t WHERE k < 9",
    "SELECT k, wide FROM d.t WHERE {} ORDER BY k DESC LIMIT 40",
    "SELECT * FROM (SELECT k, few FROM d.t WHERE {} ORDER BY k LIMIT 900) WHERE few <> '7'",
    "SELECT * FROM (SELECT few, tiny, price FROM d.t WHERE {}) PIVOT (sum(price) FOR few IN ('1', '7'))",
    "SELECT k, v.item FROM d.t LATERAL VIEW explode(list) v AS item WHERE {}",
)


def counted(frame: DataFrame) -> Counter[str]:
    """How often each row is there, as a text."""
    kinds = frame.dtypes
    shown = (F.to_json(f"`{name}`") if kind.startswith("map") else F.col(f"`{name}`") for name, kind in kinds)
    return Counter(str(tuple(row)) for row in frame.select(*shown).collect())


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_those_of_columns_with_guards(
    table: tuple[AcidSession, AcidSession], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid, guarded = table
    chance = random.Random(seed)
    for query, condition in zip(QUERIES, conditions(chance), strict=True):
        text = query.format(f"({condition})")
        found = counted(acid.sql(text))
        with monkeypatch.context() as patched:
            patched.setattr(unpushed, "MOST_GUARDED", 1_000)
            assert found == counted(guarded.sql(text)), text


def test_frames_in_all_their_uses(table: tuple[AcidSession, AcidSession], monkeypatch: pytest.MonkeyPatch) -> None:
    def uses(acid: AcidSession) -> list[Counter[str]]:
        frame = acid.table("d.t")
        frame.createOrReplaceTempView("wide")
        kept = frame.where("tiny > 50").cache()
        found = [
            counted(frame.where("few = '3'").where(frame.k > 5)),
            counted(kept.select("k", "more7")),
            counted(frame.sparkSession.sql("SELECT k, raw FROM wide WHERE day < DATE'2021-01-01'")),
            counted(acid.table("d.t", row_id=True).where("ROW__ID.writeId = 1 AND x < 0").select("ROW__ID", "k")),
            counted(frame.join(acid.table("d.u").selectExpr("u_k AS k"), "k", "left_anti").select("k", "pairs")),
            counted(frame.select("more0").distinct().sample(fraction=0.5, seed=4)),
            counted(frame.orderBy("k").limit(7)),
            Counter(str(len(frame.where("price > 0").take(5)))),
        ]
        kept.unpersist()
        return found

    acid, guarded = table
    found = uses(acid)
    with monkeypatch.context() as patched:
        patched.setattr(unpushed, "MOST_GUARDED", 1_000)
        expected = uses(guarded)
    assert found == expected


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(price) FROM d.t WHERE k > {}",
        "SELECT count(price) FROM d.t JOIN d.u ON k = u_k WHERE k > {}",
        "UPDATE d.t SET price = 1 WHERE k = {} AND few IS NOT NULL",
        "DELETE FROM d.t WHERE k = {} + 1 OR `inner`.a = 'x'",
        "MERGE INTO d.t USING d.u s ON t.k = s.u_k AND t.k > {} WHEN MATCHED THEN UPDATE SET price = 2",
    ],
)
def test_spark_asks_orc_for_nothing(table: Any, spark: SparkSession, statement: str) -> None:
    acid, _ = table
    with pushed_to_orc(spark) as filters:
        acid.sql(statement.format(ROWS // 2)).collect()
    assert filters
    assert set(filters) == {"[]"}


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
@pytest.mark.parametrize("kind", ["bigint", "string", "decimal(10,2)", "timestamp"])
def test_java_compiles_what_reads_whole_rows(acid: AcidSession, spark: SparkSession, kind: str) -> None:
    acid.create_table("d.w", {"id": "bigint"} | {f"c{number}": kind for number in range(79)})
    acid.insert("d.w", spark.range(40).selectExpr("id", *(f"CAST(id AS {kind}) AS c{number}" for number in range(79))))
    with under(spark, {"spark.sql.adaptive.enabled": "false"}):
        clean = _longest_method(spark, acid.table("d.w"))
        acid.delete("d.w", "id = 3")
        deleted = _longest_method(spark, acid.table("d.w"))
    assert 4_000 < clean < deleted < MOST_BYTES


def _longest_method(spark: SparkSession, frame: DataFrame) -> int:
    """How many bytes the longest method has that Spark generates for a frame."""
    debug: Any = spark._jvm.org.apache.spark.sql.execution.debug.package  # type: ignore[union-attr]
    plan = frame._jdf.queryExecution().executedPlan()
    made = debug.codegenStringSeq(plan)
    return max(int(made.apply(number)._3().maxMethodCodeSize()) for number in range(made.size()))
