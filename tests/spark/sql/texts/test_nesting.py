"""Long and deeply nested texts mean what they mean to Spark, which takes many that Python's limit of calls does not."""

import sys
import threading

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import SqlError
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.nesting import DEEPEST, deeply_nested

ROWS = 40
LONG = 400
CONDITIONS = {
    "or": " OR ".join(f"id = {at * 7 % 5000}" for at in range(3 * LONG)),
    "or of and": " OR ".join(f"(id = {at} AND s = 's{at * 2 % 30}')" for at in range(LONG)),
    "and": " AND ".join(f"id <> {at}" for at in range(3, LONG)),
    "not or": "NOT (" + " OR ".join(f"id = {at * 3}" for at in range(LONG)) + ")",
    "brackets": "(" * 120 + "id = 7" + ")" * 120,
    "brackets and more": "(" * 80 + "id > 3" + " AND id < 30)" * 80,
    "not": "NOT " * 121 + "id = 7",
    "case": "CASE WHEN id > 3 THEN id " + "ELSE CASE WHEN id = 2 THEN 9 " * 40 + "END " * 40 + "END > 8",
    "char between": "(" * 70 + "c BETWEEN 'c3' AND 'c3'" + ")" * 70,
    "char function": f"upper(c) IN ('C5', 'C6') OR id IN ({', '.join(str(at) for at in range(100, 25_000))})",
    "char in order": " OR ".join(f"(c > 'c{at}' AND c < 'c{at}\t')" for at in range(200)) + " OR c <= 'c1'",
}
"""Each has a CHAR beside, since all of a condition of a table with one is looked into."""


@pytest.fixture(name="both")
def _both(acid: AcidSession, spark: SparkSession) -> None:
    """The same rows in a table, and in a frame of Spark's own whose CHAR has no blanks."""
    rows = spark.range(ROWS).selectExpr("id", "concat('s', id) AS s", "concat('c', id) AS c")
    acid.create_table("d.t", {"id": "bigint", "s": "string", "c": "char(6)"})
    acid.insert("d.t", rows)
    rows.createOrReplaceTempView("plain")


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.sampled
def test_conditions(acid: AcidSession, spark: SparkSession, kind: str) -> None:
    condition = CONDITIONS[kind]
    expected = {row[0] for row in spark.sql(f"SELECT id FROM plain WHERE {condition}").collect()}
    assert 0 < len(expected) < ROWS
    assert {row[0] for row in acid.sql(f"SELECT id FROM d.t WHERE {condition}").collect()} == expected
    assert {row[0] for row in acid.table("d.t").where(condition).collect()} == expected
    assert acid.update("d.t", {"c": "'found'"}, condition) == len(expected)
    assert {row[0] for row in acid.table("d.t").where("c = 'found'").collect()} == expected
    [counted] = acid.sql(f"DELETE FROM d.t WHERE c = 'found' OR ({condition})").collect()
    assert counted[0] == len(expected)


@pytest.mark.usefixtures("both")
def test_a_column_of_many_parts(acid: AcidSession) -> None:
    condition = F.lit(False)
    for at in range(LONG // 3):  # of more the driver's JVM has no stack
        condition = condition | (F.col("id") == at * 5)
    assert acid.delete("d.t", condition) == ROWS // 5


@pytest.mark.usefixtures("both")
def test_what_is_too_deep_is_a_sentence(acid: AcidSession) -> None:
    deep = "(" * DEEPEST + "id = 7" + ")" * DEEPEST
    for ask in (
        lambda: acid.sql(f"SELECT * FROM d.t WHERE {deep}"),
        lambda: acid.sql(f"DELETE FROM d.t WHERE {deep}"),
    ):
        with pytest.raises(SqlError, match=r"nested too deeply|too complex"):
            ask()
    assert acid.table("d.t").count() == ROWS


def test_the_limit_of_others_is_kept() -> None:
    """It is one for all threads: it goes back as the last one leaves, and not if somebody has set another."""
    before = sys.getrecursionlimit()
    entered, go = threading.Event(), threading.Event()

    def other() -> None:
        with deeply_nested("x"):
            entered.set()
            go.wait(30)

    thread = threading.Thread(target=other)
    with deeply_nested("x"):
        thread.start()
        assert entered.wait(30)
    assert sys.getrecursionlimit() == DEEPEST
    go.set()
    thread.join()
    assert sys.getrecursionlimit() == before
    with deeply_nested("x"):
        sys.setrecursionlimit(2_000)
    assert sys.getrecursionlimit() == 2_000
    sys.setrecursionlimit(before)
