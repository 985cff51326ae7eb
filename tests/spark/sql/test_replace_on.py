"""INSERT INTO … REPLACE ON: rows in the place of those for which a condition is true, beside Spark's own joins."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, SqlError
from hive_acid.spark import AcidSession

CONDITIONS = [
    "t.id = s.id",
    "t.id <=> s.id",
    "(t.id = s.id) AND (t.p <=> s.p OR s.p IS NULL)",
    "t.id > s.id",
    "true",
    "false",
    "t.name IN ('a', 'b') AND s.id IS NOT NULL",
    "t.id = s.id AND t.name = concat(lower(s.p), '')",
    "coalesce(t.id, (s.id), 0) BETWEEN (1) AND (s.id)",
    "(CASE WHEN t.id = s.id THEN true ELSE false END)",
]


def rows(acid: AcidSession) -> list[Any]:
    return sorted((tuple(row) for row in acid.table("d.t").collect()), key=str)


@pytest.fixture
def tables(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TABLE d.t (id int, name string) PARTITIONED BY (p string)")
    acid.sql("CREATE TABLE d.s (id int, name string, p string)")
    return acid


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_an_anti_join_and_the_new_ones(tables: AcidSession, spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)

    def some(most: int) -> list[Any]:
        one = [None, *range(4)]
        return [
            (chance.choice(one), chance.choice([None, "a", "b", "c"]), chance.choice([None, "x", "y"]))
            for _ in range(chance.randrange(most))
        ]

    schema = "id int, name string, p string"
    for condition in chance.sample(CONDITIONS, 4):
        old, new = spark.createDataFrame(some(9), schema), spark.createDataFrame(some(5), schema)
        old.createOrReplaceTempView("old_rows")
        new.createOrReplaceTempView("new_rows")
        tables.sql("TRUNCATE TABLE d.t")
        tables.sql("INSERT INTO d.t SELECT * FROM old_rows")
        wanted = spark.sql(
            f"SELECT t.* FROM old_rows t LEFT ANTI JOIN new_rows s ON {condition} UNION ALL SELECT * FROM new_rows"
        )
        alias = chance.choice(["t ", "AS t ", ""])
        source = chance.choice(
            ["(SELECT * FROM new_rows) s", "(TABLE new_rows) AS s", "(SELECT * FROM new_rows) AS s;"]
        )
        tables.sql(f"INSERT INTO d.t {alias}REPLACE ON {condition} {source}")
        assert rows(tables) == sorted(map(tuple, wanted.collect()), key=str), condition


def test_a_query_may_be_without_a_name_or_with_names_for_its_columns(tables: AcidSession) -> None:
    tables.sql("INSERT INTO d.t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')")
    tables.sql("INSERT INTO d.s VALUES (2, 'k', 'z')")
    tables.sql("INSERT INTO d.t REPLACE ON t.id = key SELECT id AS key, 'new', p FROM d.s")
    assert rows(tables) == [(1, "a", "x"), (2, "new", "z"), (3, "c", "y")]
    tables.sql("INSERT INTO d.t BY NAME REPLACE ON t.id IN (SELECT id FROM d.s) (SELECT p, id, 'n' AS name FROM d.s)")
    assert rows(tables) == [(1, "a", "x"), (2, "n", "z"), (3, "c", "y")]
    tables.sql("INSERT INTO d.t AS o REPLACE ON o.id = s.k (VALUES (3, 'v', 'y')) AS s(k, l, m)")
    assert rows(tables) == [(1, "a", "x"), (2, "n", "z"), (3, "v", "y")]
    tables.sql("WITH q AS (SELECT 1 AS i) INSERT INTO d.t REPLACE ON t.id = i SELECT i, 'with', 'w' FROM q")
    assert rows(tables) == [(1, "with", "w"), (2, "n", "z"), (3, "v", "y")]
    before = rows(tables)
    tables.sql("INSERT INTO d.t REPLACE ON true (SELECT * FROM d.s WHERE false) s")
    assert rows(tables) == before


def test_it_is_one_transaction(tables: AcidSession) -> None:
    tables.sql("INSERT INTO d.t SELECT CAST(id AS int), 'old', 'p' FROM range(200)")
    tables.sql(
        "INSERT INTO d.t REPLACE ON t.id = s.i "
        "(SELECT CAST(id AS int) AS i, 'new', 'p' FROM range(200) WHERE rand() < 0.5) s"
    )
    found = [row[0] for row in rows(tables)]
    assert len(found) == len(set(found)) == 200, "a source of chance is computed once"
    before = rows(tables)
    with pytest.raises(Exception, match="no"):
        tables.sql("INSERT INTO d.t REPLACE ON t.id = s.i (SELECT 1 AS i, raise_error('no'), 'p') s")
    with pytest.raises(ColumnError):
        tables.sql("INSERT INTO d.t REPLACE ON t.id = s.i (SELECT 1 AS i, 'only two') s")
    assert rows(tables) == before
    plan = tables.sql("EXPLAIN INSERT INTO d.t REPLACE ON t.id = s.i (SELECT 1 AS i, 'x', 'p') s").collect()[0].plan
    assert "DELETE" in plan
    assert rows(tables) == before


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "INSERT INTO d.t REPLACE ON t.id = s.id": "a query was expected behind the condition",
        "INSERT INTO d.t REPLACE ON (SELECT 1, 'a', 'b') s": "a condition was expected",
        "INSERT INTO d.t REPLACE ON SELECT 1, 'a', 'b'": "a condition was expected",
        "INSERT INTO d.t x REPLACE USING (id) SELECT 1, 'a', 'b'": "",
        "INSERT OVERWRITE d.t REPLACE ON t.id = s.id (SELECT 1, 'a', 'b') s": "",
        "INSERT INTO d.t REPLACE ON t.id + 1 (SELECT 1, 'a', 'b') s": "a condition is true or false",
        "INSERT INTO d.t REPLACE ON t.nothere = s.id (SELECT 1 AS id, 'a', 'b') s": "nothere",
        "INSERT INTO d.t REPLACE ON t.id = s.id (SELECT 1 AS id, 'a', 'b') s WHERE true": "",
    }.items(),
)
def test_what_is_not_understood_is_refused(tables: AcidSession, text: str, words: str) -> None:
    with pytest.raises((SqlError, ColumnError), match=words):
        tables.sql(text)
