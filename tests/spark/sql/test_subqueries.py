"""Subqueries, windows and aggregates in statements mean what plain Spark means by them on a copy, or are refused."""

from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError, HiveAcidError, SqlError
from hive_acid.spark import AcidSession
from tests.sampling import Sample
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.conftest import OVER_CONNECT

pytestmark = pytest.mark.spark

INSERT_ONLY = {"transactional_properties": "insert_only"}

T = "VALUES (1, 10, 'a'), (2, 20, 'b'), (3, CAST(NULL AS int), 'c'), (4, 40, NULL), (5, 20, 'e') AS v(id, n, s)"
O = "VALUES (1, 20, 'a'), (2, CAST(NULL AS int), 'b'), (9, 40, NULL), (3, 20, 'z') AS v(id, n, s)"  # noqa: E741

CONDITIONS = (
    "n IN (SELECT n FROM o)",
    "n IN (SELECT n FROM o WHERE n IS NOT NULL)",
    "n NOT IN (SELECT n FROM o)",
    "n NOT IN (SELECT n FROM o WHERE n IS NOT NULL)",
    "(id, n) IN (SELECT id, n FROM o)",
    "EXISTS (SELECT 1 FROM o WHERE o.id = t.id)",
    "NOT EXISTS (SELECT 1 FROM o WHERE o.n = t.n)",
    "EXISTS (SELECT 1 FROM o WHERE o.id = t.id AND o.n <=> t.n)",
    "n = (SELECT max(n) FROM o)",
    "n > (SELECT avg(n) FROM o)",
    "n < (SELECT max(o.n) FROM o WHERE o.id > t.id)",
    "id < 5 AND (SELECT count(*) FROM o WHERE o.id >= t.id AND n IS NOT NULL) > 1",
    "(SELECT count(*) FROM o WHERE o.id = t.id) = 0",
    "n <= (SELECT max(x.n) FROM t AS x WHERE x.id < t.id OR x.s IS NULL)",
    "id = (SELECT min(o.id) FROM o WHERE o.s <> t.s AND EXISTS (SELECT 1 FROM t AS x WHERE x.n > o.n))",
    "n = (SELECT max(o.n) FROM o WHERE o.id = t.id)",
    "id = (SELECT count(*) FROM o) OR s IN (SELECT s FROM o)",
    "n IN (SELECT n FROM (SELECT n, row_number() OVER (PARTITION BY n ORDER BY id) AS r FROM o) WHERE r = 2)",
    "n IN (SELECT n FROM o GROUP BY n HAVING count(*) > 1)",
    "id IN (SELECT id FROM o EXCEPT SELECT id FROM o WHERE n = 20)",
    "id < 3 AND n IN (SELECT n FROM o WHERE id > 2)",
    "id IN (SELECT id FROM t AS x WHERE x.n = 20)",
)

SOURCES = (
    "SELECT id, max(n) AS n FROM o GROUP BY id",
    "SELECT id, n FROM (SELECT *, row_number() OVER (PARTITION BY n ORDER BY id DESC) AS r FROM o) WHERE r = 1",
    "SELECT t.id, o.n FROM t JOIN o ON t.id = o.id WHERE t.n IS NOT NULL OR o.n = (SELECT max(n) FROM o WHERE n < 40)",
    "SELECT id, n FROM o WHERE id IN (SELECT id FROM t) UNION ALL SELECT id + 10, n FROM t WHERE n > 20",
    "SELECT id, sum(n) OVER (ORDER BY id) n FROM o WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = o.id AND t.n = 10)",
    "SELECT DISTINCT id, first_value(n) OVER (PARTITION BY s ORDER BY id) AS n FROM o",
)


class _GivenUpError(Exception):
    pass


@pytest.fixture
def tables(spark: SparkSession, acid: AcidSession) -> Any:
    """`d.t` and `d.o`, and copies of them as views, in `p_t` and `p_o`."""
    for name, rows in (("t", T), ("o", O)):
        acid.create_table(f"d.{name}", {"id": "int", "n": "int", "s": "string"})
        acid.insert(f"d.{name}", spark.sql(f"SELECT * FROM {rows}"))
        spark.sql(f"SELECT * FROM {rows}").createOrReplaceTempView(f"p_{name}")
    return acid


def _plainly(text: Any) -> Any:
    """The same over the copies."""
    for name in "to":
        for before in ("FROM", "JOIN"):
            text = text.replace(f"{before} {name} ", f"{before} p_{name} AS {name} ")
            text = text.replace(f"{before} {name})", f"{before} p_{name} AS {name})")
            text = text.removesuffix(f"{before} {name}") + (
                f"{before} p_{name} AS {name}" if text.endswith(f"{before} {name}") else ""
            )
    return text.replace("AS t AS x", "AS x")


def _ours(text: Any) -> Any:
    return _plainly(text).replace("p_", "d.")


def test_conditions_with_subqueries(spark: SparkSession, tables: Any, sample: Sample) -> None:
    """Each in a SELECT, and in a statement that changes rows; a MERGE and an overwrite may refuse some."""
    plain = [spark.sql(f"SELECT {at} AS at, id FROM p_t AS t WHERE {_plainly(of)}") for at, of in enumerate(CONDITIONS)]
    ours = [tables.sql(f"SELECT {at} AS at, id FROM d.t AS t WHERE {_ours(of)}") for at, of in enumerate(CONDITIONS)]
    right, found = (_by_condition(reduce(DataFrame.unionAll, frames)) for frames in (plain, ours))
    assert found == right
    for at in sample.of(range(len(CONDITIONS))):
        where = _ours(CONDITIONS[at])
        statements = (
            f"UPDATE d.t AS t SET s = 'hit' WHERE {where}",
            f"DELETE FROM d.t AS t WHERE {where}",
            f"INSERT INTO d.t REPLACE WHERE {where} SELECT 1, 1, 'x' WHERE false",
            f"MERGE INTO d.t AS t USING (SELECT 1 AS one) AS z ON {where} WHEN MATCHED THEN DELETE",
            f"MERGE INTO d.t AS t USING (SELECT id AS i FROM p_t) z ON id = i WHEN MATCHED AND {where} THEN DELETE",
        )
        _check(tables, statements[at % len(statements)], right[at])


@pytest.mark.parametrize("limits", [{}, WRITTEN], ids=["few", "by Spark"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE d.t SET n = (SELECT id FROM d.o)",
        "UPDATE d.t SET n = 1 WHERE n < (SELECT id FROM p_o)",
        "DELETE FROM d.t WHERE n = (SELECT id FROM d.o)",
        "MERGE INTO d.t USING d.o ON t.id = o.id AND t.n > (SELECT id FROM p_o) WHEN MATCHED THEN DELETE",
        "MERGE INTO d.t USING d.o ON t.id = o.id WHEN MATCHED THEN UPDATE SET n = (SELECT id FROM p_o)",
        "INSERT INTO d.t SELECT id, (SELECT id FROM d.o), s FROM d.t",
        "INSERT INTO d.i SELECT id, (SELECT id FROM d.o), s FROM d.t",
        "INSERT INTO d.t REPLACE WHERE n = (SELECT id FROM p_o) SELECT 1, 1, 'x' WHERE false",
        "FROM d.t INSERT INTO d.t SELECT id, (SELECT id FROM d.o), s",
        "CREATE TABLE d.made AS SELECT (SELECT id FROM d.o) AS n",
    ],
)
def test_a_value_of_several_rows_is_told_in_a_sentence(tables: Any, limits: Any, statement: Any) -> None:
    tables.create_table("d.i", {"id": "int", "n": "int", "s": "string"}, properties=INSERT_ONLY)
    with limited(tables, **limits), pytest.raises(HiveAcidError) as refused:
        tables.sql(statement)
    assert str(refused.value).count("\n") == 0
    assert "More than one row returned by a subquery" in str(refused.value)
    assert sorted(row.id for row in tables.table("d.t").collect()) == [1, 2, 3, 4, 5]
    assert tables.table("d.i").count() == 0


def test_a_subquery_that_asks_for_the_rows_of_a_frame(spark: SparkSession, tables: Any) -> None:
    """Spark reads them a second time, and all columns of an event have to be read then, too."""
    tables.create_table("d.p", {"id": "int", "n": "int", "s": "string"}, partitioned_by={"p": "int"})
    tables.sql("INSERT INTO d.p SELECT *, id % 2 FROM d.t")
    copy = spark.sql("SELECT *, id % 2 AS p FROM p_t")
    for condition in (
        "n < (SELECT max(n) FROM p_o WHERE p_o.n > id)",
        "id > 1 AND (SELECT count(*) FROM p_o WHERE p_o.id > p) = 3",
        "id > 1 AND (select count(*) FROM p_o AS o WHERE o.n > id OR o.s <=> s) > 1",
    ):
        ids = sorted(row.id for row in copy.where(condition).collect())
        assert ids
        for given in (condition, F.expr(condition)):
            frame = tables.table("d.p")
            frames = [frame.where(given), frame.where("id > 0").filter(given)]
            if given is condition or not OVER_CONNECT:  # docs/limits.md
                frames.append(tables.table("d.p", where=given))
            for found in frames:
                assert sorted(row.id for row in found.collect()) == ids, given
        for verb in (tables.delete, lambda name, where: tables.update(name, {"s": "'x'"}, where)):
            with pytest.raises(_GivenUpError), tables.transaction():
                assert verb("d.p", condition) == len(ids)
                raise _GivenUpError


def _by_condition(frame: Any) -> Any:
    found: dict[int, set[Any]] = {at: set() for at in range(len(CONDITIONS))}
    for row in frame.collect():
        found[row["at"]].add(row.id)
    return found


def _check(tables: Any, statement: Any, ids: Any) -> None:
    """Run a statement in a transaction that is given up: rows with `ids` are changed, or it is refused."""
    may_be_refused = (ColumnError, SqlError) if statement.startswith(("MERGE", "INSERT")) else ()
    try:
        with tables.transaction():
            tables.sql(statement)
            rows = {row.id: row.s for row in tables.table("d.t").collect()}
            hit = {of for of, s in rows.items() if s == "hit"} | ({1, 2, 3, 4, 5} - rows.keys())
            assert hit == ids, statement
            raise _GivenUpError
    except (_GivenUpError, *may_be_refused):
        pass


@pytest.mark.parametrize("query", SOURCES)
def test_sources_of_all_kinds(spark: SparkSession, tables: Any, query: str) -> None:
    given = {row[0]: row[1] for row in spark.sql(_plainly(query)).collect()}
    before = {row[0]: row[1] for row in spark.sql("SELECT id, n FROM p_t").collect()}
    ours = _ours(query)
    found = {}
    for statement in (
        f"MERGE INTO d.t USING ({ours}) AS z ON t.id = z.id WHEN MATCHED THEN UPDATE SET n = z.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (z.id, z.n)",
        f"UPDATE d.t SET n = z.n FROM ({ours}) AS z WHERE t.id = z.id",
        f"INSERT OVERWRITE d.t SELECT z.*, NULL FROM ({ours}) AS z",
        f"DELETE FROM d.t USING ({ours}) AS z WHERE t.id = z.id",
    ):
        with pytest.raises(_GivenUpError), tables.transaction():
            tables.sql(statement)
            found[statement.split()[0]] = {row[0]: row[1] for row in tables.table("d.t").select("id", "n").collect()}
            raise _GivenUpError
    assert found["MERGE"] == before | given
    assert found["UPDATE"] == before | {of: n for of, n in given.items() if of in before}
    assert found["INSERT"] == given
    assert found["DELETE"] == {of: n for of, n in before.items() if of not in given}
