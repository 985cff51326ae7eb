"""Which columns a clause knows, and names that are given twice: no statement means something else than is written."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError, SqlError
from hive_acid.spark import AcidSession

TARGET = [(1, 10, "a"), (2, 20, "b"), (3, 30, "c")]
SOURCE = [(1, 100, 7), (4, 400, 8)]
"""Of the columns id, v and, in the target only, t_only; in the source only s_only."""


@pytest.fixture
def pair(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"id": "int", "v": "int", "t_only": "string"})
    acid.create_table("d.s", {"id": "int", "v": "int", "s_only": "int"})
    acid.insert("d.t", spark.createDataFrame(TARGET, "id int, v int, t_only string"))
    acid.insert("d.s", spark.createDataFrame(SOURCE, "id int, v int, s_only int"))
    return acid


def rows(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(map(tuple, acid.table(name).collect()), key=str)


# The columns by which a clause may be written: what they are of a row of the target and of the source, and whose.
NAMES = {
    "v": (lambda t, s: None, "both"),
    "t.v": (lambda t, s: t[1], "target"),
    "s.v": (lambda t, s: s[1], "source"),
    "t_only": (lambda t, s: len(t[2]), "target"),
    "t.t_only": (lambda t, s: len(t[2]), "target"),
    "s_only": (lambda t, s: s[2], "source"),
    "s.s_only": (lambda t, s: s[2], "source"),
    "s.t_only": (None, "none"),
    "t.s_only": (None, "none"),
    "nothing": (None, "none"),
}
CLAUSES = {
    # The names that a clause may say, the unqualified one that both have, the row that it is about.
    "matched": ({"target", "source"}, None),
    "by source": ({"target"}, lambda t, s: t[1]),
    "insert": ({"source"}, lambda t, s: s[1]),
}


def model(clause: Any, place: Any, name: Any) -> Any:
    """The rows after a MERGE of one clause with `name` in its condition or its value; None if it is refused."""
    known, unqualified = CLAUSES[clause]
    value, whose = NAMES[name]
    if whose == "both":
        if unqualified is None:
            return None
        value = unqualified
    elif whose not in known:
        return None
    matches = {s[0]: s for s in SOURCE}
    after = []
    for t in TARGET:
        s = matches.get(t[0])
        if clause == ("matched" if s else "by source"):
            if place == "condition":
                after.append((t[0], -1 if value(t, s) < 25 else t[1], t[2]))
            else:
                after.append((t[0], value(t, s), t[2]))
        else:
            after.append(t)
    if clause == "insert":
        new = [s for s in SOURCE if s[0] not in {t[0] for t in TARGET} and (place == "value" or value(None, s) < 25)]
        after += [(s[0], -1 if place == "condition" else value(None, s), None) for s in new]
    return sorted(after, key=str)


def by_sql(acid: AcidSession, clause: Any, condition: Any, value: Any) -> None:
    also = f" AND {condition}" if condition else ""
    then = {
        "matched": f"WHEN MATCHED{also} THEN UPDATE SET v = {value}",
        "by source": f"WHEN NOT MATCHED BY SOURCE{also} THEN UPDATE SET t.v = {value}",
        "insert": f"WHEN NOT MATCHED{also} THEN INSERT (id, v) VALUES (s.id, {value})",
    }[clause]
    acid.sql(f"MERGE INTO d.t AS t USING d.s AS s ON t.id = s.id {then}")


def by_builder(wrap: Any) -> Any:
    def run(acid: AcidSession, clause: Any, condition: Any, value: Any) -> None:
        builder = acid.merge("d.t", acid.table("d.s"), wrap("t.id = s.id"))
        condition = wrap(condition) if condition else None
        if clause == "matched":
            builder.whenMatchedUpdate(condition, {"v": wrap(value)})
        elif clause == "by source":
            builder.whenNotMatchedBySourceUpdate(condition, {"v": wrap(value)})
        else:
            builder.whenNotMatchedInsert(condition, {"id": "s.id", "v": wrap(value)})
        builder.execute()

    return run


WAYS = {"sql": by_sql, "text": by_builder(str), "columns": by_builder(F.expr)}


class UndoneError(Exception):
    """What is raised to have a transaction aborted."""


@contextmanager
def undone(acid: AcidSession) -> Iterator[None]:
    with suppress(UndoneError), acid.transaction():
        yield
        raise UndoneError


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_clause_of_merge_knows(pair: Any, spark: SparkSession, clause: Any, way: Any) -> None:
    """All names in SQL, some by the builder: the ways differ in how they are given, not in what they mean."""
    cases = [(place, name) for place in ("condition", "value") for name in NAMES]
    for place, name in cases if way == "sql" else Random(f"{clause} {way}").sample(cases, 5):
        text = f"length({name})" if name.endswith("t_only") else name
        expected = model(clause, place, name)
        given = (f"{text} < 25", "-1") if place == "condition" else (None, text)
        if expected is None:
            with pytest.raises(ColumnError, match=r"cannot be resolved|ambiguous"):
                WAYS[way](pair, clause, *given)
        else:
            with undone(pair):
                WAYS[way](pair, clause, *given)
                assert rows(pair) == expected, (place, name)
    assert rows(pair) == TARGET


TWICE = [
    "UPDATE d.t SET v = 1, V = 2",
    "UPDATE d.t SET v = 1, `V` = 2 WHERE id = 1",
    "UPDATE d.t AS x SET x.v = 1, v = 2",
    "UPDATE d.t SET d.t.v = 1, t.V = 2",
    "UPDATE d.t SET v = 1, v = 1",
    "UPDATE d.t SET v = 1, V = 2 FROM d.s WHERE t.id = s.id",
    "UPDATE d.n SET st.a = 1, ST.A = 2",
    "UPDATE d.n SET st.a = 1, n.st.`A` = 2",
    "UPDATE d.n SET st.a = 1, st = NULL",
    "UPDATE d.n SET st = NULL, st.a = 1",
    "UPDATE d.n SET st.b = NULL, st.b.c = 1",
    "MERGE INTO d.t USING d.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1, t.V = 2",
    "MERGE INTO d.t USING d.s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 1, V = 2",
    "MERGE INTO d.t USING d.s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, ID) VALUES (1, 2)",
    "MERGE INTO d.t USING (SELECT 1 AS id, 2 AS v, 3 AS V) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "UPDATE d.t SET v = 1 FROM (SELECT 1 AS id, 2 AS ID) s WHERE t.v = 1",
    "DELETE FROM d.t USING (SELECT 1 AS id, 2 AS ID) s WHERE t.v = 1",
    "INSERT INTO d.t (id, Id) VALUES (1, 2)",
    "INSERT INTO d.t BY NAME SELECT 1 AS id, 2 AS v, 3 AS V",
    "INSERT WITH SCHEMA EVOLUTION INTO d.t BY NAME SELECT 1 AS id, 2 AS x, 3 AS X",
    "INSERT OVERWRITE d.t BY NAME SELECT 1 AS id, 2 AS v, 3 AS V, '' AS t_only",
    "INSERT INTO d.t BY NAME REPLACE WHERE id = 1 SELECT 1 AS id, 2 AS v, 3 AS V",
    "INSERT INTO d.n SELECT 1, named_struct('a', 1, 'A', 2)",
    "FROM d.s INSERT INTO d.t (id, ID) SELECT id, v",
    "CREATE TABLE d.x AS SELECT 1 AS a, 2 AS A",
    "CREATE TABLE d.x AS SELECT named_struct('a', 1, 'A', 2) AS s",
    "CREATE TABLE d.x (a int, A int)",
    "CREATE TABLE d.x (s array<struct<a:int,A:int>>)",
    "CREATE TABLE d.x (a int) PARTITIONED BY (A int)",
    "ALTER TABLE d.t ADD COLUMNS (x int, X int)",
    "ALTER TABLE d.t ADD COLUMNS (x struct<a:int,A:int>)",
    "INSERT INTO d.p PARTITION (k = 1, K = 2) SELECT 1",
]


@pytest.mark.parametrize("case_sensitive", ["true", "false"])
def test_a_name_that_is_given_twice_is_refused(pair: Any, spark: SparkSession, case_sensitive: Any) -> None:
    acid = pair
    acid.sql("CREATE TABLE d.n (id int, st struct<a:int,b:struct<c:int>>)")
    acid.sql("INSERT INTO d.n SELECT 1, named_struct('a', 1, 'b', named_struct('c', 1))")
    acid.sql("CREATE TABLE d.p (id int) PARTITIONED BY (k int)")
    before = (rows(acid), rows(acid, "d.n"))
    twice = spark.sql("SELECT 1 AS id, 2 AS v, 3 AS V, 'x' AS t_only")
    names = {"v": "1", "V": "2"}
    verbs = {
        "update": lambda: acid.update("d.t", names),
        "update quoted": lambda: acid.update("d.t", {"v": "1", "`V`": "2"}),
        "update field": lambda: acid.update("d.n", {"st.a": "1", "ST.`A`": "2"}),
        "update from": lambda: acid.update("d.t", {"v": "1"}, source=twice, on="t.id = s.id"),
        "delete using": lambda: acid.delete("d.t", source=twice, on="t.id = s.id"),
        "merge": lambda: acid.merge("d.t", twice, "t.id = s.id").whenMatchedUpdateAll().execute(),
        "matched": lambda: acid.merge("d.t", acid.table("d.s"), "t.id = s.id").whenMatchedUpdate(None, names).execute(),
        "inserted": lambda: (
            acid.merge("d.t", acid.table("d.s"), "t.id = s.id").whenNotMatchedInsert(None, names).execute()
        ),
        "evolved": lambda: acid.merge("d.t", twice, "true").withSchemaEvolution().whenNotMatchedInsertAll().execute(),
        "insert": lambda: acid.insert("d.t", twice),
        "insert evolved": lambda: acid.insert("d.t", twice, schema_evolution=True),
        "overwrite": lambda: acid.overwrite("d.t", twice),
        "overwrite where": lambda: acid.overwrite("d.t", twice, where="id = 1"),
        "create": lambda: acid.create_table("d.x", twice.schema),
        "create from names": lambda: acid.create_table("d.x", names | {"w": "int"}),
        "create as": lambda: acid.create_table_as("d.x", twice),
        "multi-insert": lambda: acid.multi_insert(twice).into("d.t", {"id": "id"}).execute(),
        "spec": lambda: acid.overwrite("d.p", spark.sql("SELECT 1 AS id"), partition={"k": 1, "K": 2}),
        "sink append": lambda: acid.sink("d.t", query="a")(twice, 0),
        "sink upsert": lambda: acid.sink("d.t", query="u", mode="upsert", keys=["id"])(twice, 0),
        **{text: (lambda text=text: acid.sql(text)) for text in TWICE},
    }
    spark.conf.set("spark.sql.caseSensitive", case_sensitive)
    said = {}
    try:
        for name, verb in verbs.items():
            try:
                said[name] = verb()
            except (ColumnError, SqlError) as error:
                said[name] = str(error)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert {name: words for name, words in said.items() if not re.search("twice|as a whole", str(words))} == {}
    assert (rows(acid), rows(acid, "d.n")) == before


def test_a_struct_may_have_the_name_of_the_database(acid: AcidSession, spark: SparkSession) -> None:
    """As in Spark ``database.table.column`` is no name of a column of a table that has an alias: it is a field then."""
    kind = "struct<t:struct<n:int>,u:struct<n:int>>"
    acid.create_table("d.u", {"id": "int", "n": "int", "d": kind, "t": "struct<n:int>"})
    row = (1, 5, ((50,), (500,)), (7,))
    acid.insert("d.u", spark.createDataFrame([row], f"id int, n int, d {kind}, t struct<n:int>"))
    matched = "MERGE INTO d.u AS t USING (SELECT 1 AS id) AS s ON t.id = s.id AND d.t.n = 50 WHEN MATCHED THEN UPDATE"
    for statement, expected in (
        ("UPDATE d.u AS t SET n = d.t.n WHERE d.u.n = 500", (1, 50, ((50,), (500,)), (7,))),
        ("UPDATE d.u AS t SET d.t.n = t.n, t.n = t.t.n", (1, 7, ((5,), (500,)), (7,))),
        ("UPDATE d.u AS t SET d.u.n = d.u.n + 1 WHERE t.n = 5", (1, 5, ((50,), (501,)), (7,))),
        ("UPDATE d.u SET d.u.n = d.u.n + 1 WHERE d.u.n = 5", (1, 6, ((50,), (500,)), (7,))),
        (f"{matched} SET n = d.u.n, t.t.n = t.n", (1, 500, ((50,), (500,)), (5,))),
        ("UPDATE d.u AS t SET t.n = t.n + 1", (1, 6, ((50,), (500,)), (7,))),
    ):
        with undone(acid):
            acid.sql(statement)
            assert [tuple(row) for row in acid.table("d.u").collect()] == [expected], statement
    with pytest.raises(ColumnError, match="No such struct field `id`"):
        acid.sql("DELETE FROM d.u AS t WHERE d.u.id = 1")
