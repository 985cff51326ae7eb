"""Tables of many columns: what a statement costs grows with their number, not with its square; and rows stay exact.

What is counted does not depend on the machine: calls to the JVM, the SQL and all else that they say, how often the
plans that were run name a column, and how deep their expressions are: Spark descends into each, and some thousand
levels are the end of a thread's stack, and of the JVM with it. The columns of a kind are computed alike, of which Spark
would conclude the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import Any
from unittest import mock

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.limits import Limits
from tests.spark.by_spark import MERGED, limited
from tests.spark.compaction import compact_table

MOST = {"calls": 12, "said": 12, "planned": 25, "depth": 1.5}
"""How many times as much ten times as many columns may cost; a square would be a hundred times.

What is planned has a node more for the wide ones, whose events stand behind a sample.
"""

KINDS = {
    "string": ("concat('v', id % 7, '_', {0})", lambda row, version: f"v{row % 7}_{version}"),
    "varchar(20)": ("concat('w', id, {0})", lambda row, version: f"w{row}{version}"),
    "char(6)": ("lpad(id % 7 + {0}, 6, '0')", lambda row, version: f"{row % 7 + version:06}"),
    "decimal(12,2)": ("cast(id + {0} AS decimal(12,2))", lambda row, version: Decimal(row + version)),
    "bigint": ("id * 3 + {0}", lambda row, version: row * 3 + version),
    "date": ("date'2020-01-01' + int(id % 9 + {0})", lambda row, version: date(2020, 1, row % 9 + version + 1)),
    "timestamp": ("timestamp_seconds(id + {0})", lambda row, version: datetime(1970, 1, 1, 0, 0, row + version)),
    "array<date>": ("array(date'2020-01-01' + {0})", lambda row, version: [date(2020, 1, version + 1)]),
    "binary": ("cast(concat('b', id) AS binary)", lambda row, version: f"b{row}".encode()),
    "struct<x:int,y:string>": ("named_struct('x', int(id), 'y', 'y{0}')", lambda row, version: (row, f"y{version}")),
}  # fmt: skip
"""A value in a row of a version: as SQL, and in Python."""

TEXTS = ("string", "bigint", "string")
"""The kinds of a table's columns in turn: 400 texts in 600."""


def names_of(kinds: tuple[str, ...], width: int) -> dict[str, str]:
    return {f"c{at}": kinds[at % len(kinds)] for at in range(width)}


def rows_of(spark: SparkSession, columns: dict[str, str], ids: range, version: int) -> DataFrame:
    values = (f"{KINDS[kind][0].format(version)} AS {name}" for name, kind in columns.items())
    return spark.range(ids.start, ids.stop, numPartitions=1).selectExpr("id", *values)


def values_of(columns: dict[str, str], row: int, version: int) -> dict[str, object]:
    return {"id": row, **{name: KINDS[kind][1](row, version) for name, kind in columns.items()}}


def model_of(columns: dict[str, str], ids: range, version: int) -> dict[int, dict[str, object]]:
    return {row: values_of(columns, row, version) for row in ids}


@dataclass
class Cost:
    """What was asked of the JVM, and what it has run."""

    calls: int = 0
    said: int = 0
    planned: int = 0
    depth: int = 0


@contextmanager
def counted(spark: SparkSession, cost: Cost) -> Iterator[None]:
    """Add to `cost` what the block costs; plans are as long as they are only if the session leaves nothing out."""
    really = ClientServerConnection.send_command

    def counting(connection: Any, command: Any) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):  # of objects that Python has collected, whenever it does
            cost.calls += 1
            cost.said += len(command)
        return really(connection, command)

    store = spark._jsparkSession.sharedState().statusStore()
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty()
    before = {store.executionsList().apply(at).executionId() for at in range(store.executionsList().size())}
    with mock.patch.object(ClientServerConnection, "send_command", counting):
        yield
    bus.waitUntilEmpty()
    executions = store.executionsList()
    for found in map(executions.apply, range(executions.size())):
        if found.executionId() not in before:
            plan = found.physicalPlanDescription()
            cost.planned += plan.count("#")
            cost.depth = max(cost.depth, depth(plan))


def depth(plan: str) -> int:
    """How many brackets stand within others."""
    steps = ((sign in "([") - (sign in ")]") for sign in plan)
    return max(accumulate(steps), default=0)


@pytest.fixture
def plain_plans(spark: SparkSession) -> Iterator[None]:
    """Plans are told in full."""
    spark.conf.set("spark.sql.debug.maxToStringFields", "100000")
    yield
    spark.conf.unset("spark.sql.debug.maxToStringFields")


def story(
    acid: AcidSession, spark: SparkSession, columns: dict[str, str], partitioned_by: dict[str, str], check: bool
) -> dict[str, Cost]:
    """All statements on a table; the cost of each. With `check`, after each the rows are those of the model."""
    costs: dict[str, Cost] = {}
    acid.create_table("d.w", {"id": "bigint", **columns}, partitioned_by=partitioned_by)
    model: dict[int, dict[str, object]] = {}

    def rows(ids: range, version: int) -> DataFrame:
        found = rows_of(spark, columns, ids, version)
        return found.selectExpr("*", "int(id % 2) AS p") if partitioned_by else found

    def took(what: str, run: Callable[[], object], expected: object) -> None:
        with counted(spark, costs.setdefault(what, Cost())):
            assert run() == expected, what
        if check:
            found = {row["id"]: row.asDict() for row in acid.table("d.w").drop("p").collect()}
            assert found == model, what

    texts = [name for name, kind in columns.items() if kind == "string"]
    model |= model_of(columns, range(40), 0)
    took("insert", lambda: acid.insert("d.w", rows(range(40), 0)), 40)
    model[7]["c0"] = "new"
    took("update", lambda: acid.update("d.w", {"c0": "'new'"}, "id = 7"), 1)
    for row in (3, 4):
        model[row] |= {name: f"{model[row][name]}!" for name in texts}
    longer = {name: f"concat({name}, '!')" for name in texts}
    took("update of all texts", lambda: acid.update("d.w", longer, "id IN (3, 4)"), 2)
    model |= model_of(columns, range(10, 12), 1)
    both = {name: f"s.{name}" for name in columns}
    took("update from", lambda: acid.update("d.w", both, source=rows(range(10, 12), 1), on="t.id = s.id"), 2)
    del model[9]
    took("delete", lambda: acid.delete("d.w", "id = 9"), 1)
    model |= model_of(columns, range(35, 50), 2)
    merged = acid.merge("d.w", rows(range(35, 50), 2), "t.id = s.id")
    took("merge", lambda: tuple(merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()), (10, 5, 0))
    model = {row: values for row, values in model.items() if row != 36 and not 20 <= row < 24}
    model[35]["c0"] = "s35"
    model |= {row: values_of(columns, row, 3) for row in (50, 51)}
    for row in (1, 2):
        model[row]["c0"] = "gone"
    given = {"id": "s.id", **both, **{key: f"s.{key}" for key in partitioned_by}}
    merged = acid.merge("d.w", rows(range(35, 52), 3), "t.id = s.id")
    merged = merged.whenMatchedUpdate("s.id = 35", {"c0": "concat('s', s.id)"}).whenMatchedDelete("s.id = 36")
    merged = merged.whenNotMatchedInsert("s.id > 40", given)
    merged = merged.whenNotMatchedBySourceUpdate("t.id IN (1, 2)", {"c0": "'gone'"})
    merged = merged.whenNotMatchedBySourceDelete("t.id BETWEEN 20 AND 23")
    took("merge by all clauses", lambda: tuple(merged.execute()), (2, 3, 5))
    took("read", lambda: acid.table("d.w").where("c0 <> 'x'").count(), len(model))
    with limited(acid, **MERGED):
        took("compaction", lambda: len(compact_table(spark, acid, "d.w", "major")), 2 if partitioned_by else 1)
    model = model_of(columns, range(6), 4)
    took("overwrite", lambda: acid.overwrite("d.w", rows(range(6), 4)), 6)
    acid.drop_table("d.w")
    return costs


@pytest.mark.usefixtures("plain_plans")
@pytest.mark.parametrize(
    ("kinds", "narrow", "partitioned_by", "most_rows"),
    [
        pytest.param(TEXTS, 20, {}, Limits().driver_rows, id="written by the client"),
        pytest.param(tuple(KINDS), 20, {"p": "int"}, -1, id="every kind, written by Spark"),
    ],
)
def test_each_statement_costs_in_proportion_to_the_columns(
    acid: AcidSession, spark: SparkSession, kinds: Any, narrow: Any, partitioned_by: Any, most_rows: Any
) -> None:
    acid.limits = Limits(driver_rows=most_rows)
    few = story(acid, spark, names_of(kinds, narrow), partitioned_by, check=False)
    many = story(acid, spark, names_of(kinds, 10 * narrow), partitioned_by, check=True)
    for statement, cost in many.items():
        for what, found in vars(cost).items():
            least = vars(few[statement])[what]
            assert found <= MOST[what] * least, (
                f"{statement}, {what}: {least} for {narrow} columns, {found} for {10 * narrow}"
            )


def test_400_texts_in_600_columns(acid: AcidSession, spark: SparkSession) -> None:
    """What had taken all of a driver's memory."""
    columns = names_of(TEXTS, 600)
    acid.create_table("d.w", {"id": "bigint", **columns})
    acid.insert("d.w", rows_of(spark, columns, range(20), 0))
    assert acid.update("d.w", {"c0": "'new'"}, "id < 5") == 5
    merged = acid.merge("d.w", rows_of(spark, columns, range(15, 25), 1), "t.id = s.id")
    assert tuple(merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()) == (5, 5, 0)
    model = model_of(columns, range(15), 0) | model_of(columns, range(15, 25), 1)
    for row in range(5):
        model[row]["c0"] = "new"
    assert {row["id"]: row.asDict() for row in acid.table("d.w").collect()} == model


def test_no_method_is_too_long_for_java_where_all_rows_are_taken(acid: AcidSession, spark: SparkSession) -> None:
    columns = names_of(TEXTS, 20)
    key, seen = "spark.sql.codegen.hugeMethodLimit", []
    before = spark.conf.get(key)
    acid.create_table("d.t", {"id": "bigint", **columns})

    @contextmanager
    def recorded(session: SparkSession, settings: dict[str, str], *, gives_way: bool = False) -> Iterator[None]:
        with configured(session, settings, gives_way=gives_way):
            seen.append(session.conf.get(key))
            yield

    with mock.patch("hive_acid.spark.write.statement.configured", recorded):
        acid.insert("d.t", rows_of(spark, columns, range(100), 1))
        assert seen.pop() == "8000"
        acid.update("d.t", {"c0": "'x'"}, "id = 7")
        assert seen.pop() == before
        source = rows_of(spark, columns, range(90, 110), 2)
        acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert seen.pop() == "8000"
        spark.conf.set(key, "7000")
        acid.insert("d.t", rows_of(spark, columns, range(200, 210), 1))
        assert seen.pop() == "7000"
    spark.conf.unset(key)
    assert acid.table("d.t").count() == 120
