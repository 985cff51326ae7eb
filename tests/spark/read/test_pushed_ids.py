"""The ids of events are never asked of ORC, which would take their names for those of columns of the user's row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT
from tests.spark.plans import pushed_to_orc
from tests.spark.read.test_row_filter import COLUMNS, conditions, rows, told

ROWS = 24_000
STATEMENTS = (
    "SELECT count(price) FROM d.t WHERE k > {}",
    "SELECT count(price) FROM d.t WHERE k > {} AND row__id.writeid > 2",
    "SELECT count(price) FROM d.t WHERE row__id.writeid IN (1, 2, 8) AND row__id.rowid < {}",
    "SELECT count(a.price) FROM d.t a JOIN d.t b ON a.row__id = b.row__id WHERE a.k < {}",
    "UPDATE d.t SET price = 1 WHERE k = {}",
    "DELETE FROM d.t WHERE k = {} + 1",
    "MERGE INTO d.t USING (SELECT k, price FROM d.t WHERE k < {} AND k > 100) s ON t.k = s.k "
    "WHEN MATCHED AND s.k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET price = 2",
)


@pytest.fixture
def table(acid: AcidSession, spark: SparkSession) -> Iterator[Any]:
    """A compaction has merged writes with an aborted one between them, a later one is open; rows are deleted."""
    acid.create_table("d.t", COLUMNS, properties={"orc.row.index.stride": "1000", "orc.stripe.size": "200000"})
    for turn, first in enumerate(range(0, ROWS, ROWS // 4)):
        if turn == 2:
            _begun(acid).abort()
        acid.insert("d.t", rows(spark, first, first + ROWS // 4))
    acid.delete("d.t", "k % 11 = 3")
    compact_table(spark, acid, "d.t", "minor")
    left_open = _begun(acid)
    acid.update("d.t", {"price": "price + 1"}, "k % 500 = 1")
    with hive_acid.spark.session(spark, acid.connection, skipping=False) as off:
        yield acid, off
    left_open.abort()


def _begun(acid: AcidSession) -> Any:
    transaction = acid.connection.begin()
    transaction.write_id("d", "t")
    return transaction


@pytest.mark.parametrize("seed", range(2))
def test_conditions_beside_writes_that_are_not_seen(table: Any, seed: Any) -> None:
    """ORC failed on a directory that a compaction had merged over an aborted write."""
    acid, off = table
    for condition in conditions(random.Random(50 + seed)):
        expected = told(off.table("d.t").where(condition))
        assert told(acid.table("d.t", where=condition)) == expected, condition
        assert told(acid.table("d.t").where(condition)) == expected, condition
        numbered = (
            acid.table("d.t", row_id=True).where(f"({condition}) AND ROW__ID.writeId IN (1, 3, 8)").drop("ROW__ID")
        )
        kept = off.table("d.t", row_id=True).where(condition).where("ROW__ID.writeId IN (1, 3, 8)").drop("ROW__ID")
        assert told(numbered) == told(kept), condition


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_asks_orc_for_an_id(table: Any, spark: SparkSession, statement: Any, joined: Any) -> None:
    acid, _ = table
    if joined:
        acid.limits = replace(acid.limits, delete_events=0)
    with pushed_to_orc(spark) as filters:
        acid.sql(statement.format(ROWS // 2)).collect()
        acid.sql(statement.format(ROWS // 2 + 700)).collect()
    assert set(filters) == {"[]"}


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
@pytest.mark.parametrize("kind", ["minor", "major"])
def test_no_compaction_asks_orc_for_an_id(table: Any, spark: SparkSession, kind: Any) -> None:
    acid, _ = table
    acid.delete("d.t", "k % 13 = 3")
    with pushed_to_orc(spark) as filters:
        compact_table(spark, acid, "d.t", kind)
    assert set(filters) <= {"[]"}  # a minor one may need no Spark


@pytest.mark.parametrize("beside", ["aborted", ""])
def test_columns_of_the_user_that_are_called_as_the_ids_are(
    acid: AcidSession, spark: SparkSession, beside: Any
) -> None:
    """Each value is far from the id of its name, so that no row group has both."""
    names = ("operation", "originaltransaction", "bucket", "rowid", "currenttransaction")
    columns = {"k": "bigint"} | dict.fromkeys(names, "bigint")
    acid.create_table("d.t", columns, properties={"orc.row.index.stride": "1000"})
    for turn in range(3):
        if turn and beside:
            _begun(acid).abort()
        values = [f"id + {1_000_000 * place} AS {name}" for place, name in enumerate(names, 1)]
        acid.insert("d.t", spark.range(turn * 4_000, turn * 4_000 + 4_000, 1, 1).selectExpr("id AS k", *values))
    compact_table(spark, acid, "d.t", "minor")
    acid.delete("d.t", "k % 3 = 0")
    shown = acid.table("d.t", row_id=True)
    rows = [row.asDict(recursive=True) for row in shown.collect()]
    assert len(rows) == 8_000
    for write_id, row_id in ((row["ROW__ID"]["writeId"], row["ROW__ID"]["rowId"]) for row in rows[::1_777]):
        for frame in (shown, shown.where(f"k >= {row_id}"), acid.table("d.t", where="rowid > 5", row_id=True)):
            assert frame.where(f"ROW__ID.writeId = {write_id} AND ROW__ID.rowId = {row_id}").count() == 1
        named = f"SELECT * FROM d.t WHERE row__id.writeid >= {write_id} AND row__id.rowid = {row_id}"
        assert acid.sql(named).count() == sum(
            row["ROW__ID"]["writeId"] >= write_id and row["ROW__ID"]["rowId"] == row_id for row in rows
        )
    for place, name in enumerate(names, 1):
        one = f"{name} = {1_000_000 * place + 4_001}"
        assert acid.table("d.t", where=one).count() == acid.table("d.t").where(one).count() == 1
        assert acid.update("d.t", {name: f"{name} + 1"}, one) == 1
