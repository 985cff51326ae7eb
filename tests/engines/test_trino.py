"""Trino 476's own statements on our metastore, and our client on the same tables, both ways."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hive_acid.spark import AcidSession
from tests.engines.trino import TrinoEngine, TrinoRefusedError

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]


def rows(acid: AcidSession, query: Any) -> Any:
    return sorted(tuple(row) for row in acid.sql(query).collect())


def open_txns(acid: AcidSession) -> Any:
    """Those of Trino."""
    return [
        row
        for row in acid.sql("SHOW TRANSACTIONS").collect()
        if "trino" in str(row).lower() and "OPEN" in str(row).upper()
    ]


def test_statements_of_both_on_a_table_of_each(trino: TrinoEngine, acid: AcidSession, db: str) -> None:
    """Trino writes the files of the first one before it makes the table."""
    trino.sql(
        f"CREATE TABLE {db}.theirs WITH (transactional = true) AS"
        " SELECT id, CAST(name AS varchar) name FROM (VALUES (1, 'one'), (2, 'two')) t(id, name)"
    )
    acid.sql(f"CREATE TABLE {db}.ours (id int, name string) TBLPROPERTIES ('hive_acid.layout'='statements')")
    acid.sql(f"INSERT INTO {db}.ours VALUES (1, 'one'), (2, 'two')")
    for table in (f"{db}.theirs", f"{db}.ours"):
        assert rows(acid, f"SELECT * FROM {table}") == [(1, "one"), (2, "two")]
        assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "one"), (2, "two")]
        trino.sql(f"INSERT INTO {table} VALUES (3, 'three'), (4, 'four')")
        trino.sql(f"UPDATE {table} SET name = 'TWO' WHERE id = 2")
        acid.sql(f"UPDATE {table} SET name = 'THREE' WHERE id = 3")
        trino.sql(f"DELETE FROM {table} WHERE id = 1")
        acid.sql(f"DELETE FROM {table} WHERE id = 4")
        trino.sql(
            f"MERGE INTO {table} t USING (VALUES (3, 'gone'), (2, 'Two'), (5, 'five')) s(k, v) ON t.id = s.k"
            " WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.v"
            " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.k, s.v)"
        )
        assert rows(acid, f"SELECT * FROM {table}") == sorted(trino.sql(f"SELECT * FROM {table}"))
        assert rows(acid, f"SELECT * FROM {table}") == [(2, "Two"), (5, "five")]


def test_a_primary_key_of_ours_is_nothing_to_trino(trino: TrinoEngine, acid: AcidSession, db: str) -> None:
    acid.sql(f"CREATE TABLE {db}.t (id int, PRIMARY KEY (id) ENFORCED) PARTITIONED BY (p string)")
    acid.sql(f"INSERT INTO {db}.t SELECT id, string(id % 2) FROM range(100, 0, -1)")
    acid.sql(f"UPDATE {db}.t SET id = -id WHERE id > 90")
    assert trino.sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM {db}.t") == [(100, 100, 3140)]
    trino.sql(f"INSERT INTO {db}.t VALUES (1, 'x')")
    assert [tuple(row) for row in acid.check_key(f"{db}.t").collect()] == [(1, 2)]


def test_partitions(trino: TrinoEngine, acid: AcidSession, db: str) -> None:
    trino.sql(
        f"CREATE TABLE {db}.t WITH (transactional = true, partitioned_by = ARRAY['d']) AS"
        " SELECT 1 id, DATE '2020-01-01' d UNION ALL SELECT 2, DATE '2020-01-02'"
    )
    trino.sql(f"INSERT INTO {db}.t VALUES (3, NULL)")
    acid.sql(f"INSERT INTO {db}.t VALUES (4, date'2020-01-04')")
    assert len(trino.sql(f'SELECT * FROM {db}."t$partitions"')) == 4
    trino.sql(f"DELETE FROM {db}.t WHERE d = DATE '2020-01-01'")
    acid.sql(f"DELETE FROM {db}.t WHERE id = 2")
    assert sorted(trino.sql(f"SELECT id FROM {db}.t")) == rows(acid, f"SELECT id FROM {db}.t") == [(3,), (4,)]
    assert trino.sql(f"SELECT id FROM {db}.t WHERE d > DATE '2020-01-03'") == [(4,)]


def test_a_table_is_given_other_partition_columns(trino: TrinoEngine, acid: AcidSession, db: str) -> None:
    """By another table, of which Trino knows nothing until it has the name."""
    acid.sql(f"CREATE TABLE {db}.t (id int, name string) PARTITIONED BY (p string)")
    acid.sql(f"INSERT INTO {db}.t VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    assert len(trino.sql(f"SELECT * FROM {db}.t")) == 2
    acid.sql(f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (id) AS SELECT p, name, id FROM {db}.t")
    assert trino.sql(f"SHOW TABLES IN {db}") == [("t",)]
    assert sorted(trino.sql(f"SELECT * FROM {db}.t")) == [("x", "a", 1), ("y", "b", 2)]
    assert len(trino.sql(f'SELECT * FROM {db}."t$partitions"')) == 2
    trino.sql(f"INSERT INTO {db}.t VALUES ('z', 'c', 3)")
    assert rows(acid, f"SELECT * FROM {db}.t") == [("x", "a", 1), ("y", "b", 2), ("z", "c", 3)]


def test_a_refused_change_leaves_nothing_open_and_its_recipe_helps(
    trino: TrinoEngine, acid: AcidSession, db: str
) -> None:
    trino.sql(
        f"CREATE TABLE {db}.t (id integer, name varchar) WITH"
        " (transactional = true, bucketed_by = ARRAY['id'], bucket_count = 2)"
    )
    acid.sql(f"CREATE TABLE {db}.spread (id int, name string)")
    frame = (
        acid.sql("SELECT id, cast(id AS string) name FROM range(1, 9)").selectExpr("int(id) id", "name").repartition(4)
    )
    acid.insert(f"{db}.spread", frame)
    for statement in (f"UPDATE {db}.spread SET name = 'x' WHERE id = 1", f"DELETE FROM {db}.spread WHERE id = 1"):
        began_at = time.monotonic()
        with pytest.raises(TrinoRefusedError, match=r"COMPACT 'rebalance' CLUSTERED INTO 1 BUCKETS"):
            trino.sql(statement)
        assert time.monotonic() - began_at < 12, "Trino asks again and again"
        assert open_txns(acid) == []
    acid.sql(f"ALTER TABLE {db}.spread COMPACT 'rebalance' CLUSTERED INTO 1 BUCKETS AND WAIT")
    acid.sql(f"ALTER TABLE {db}.spread SET TBLPROPERTIES ('hive_acid.layout'='statements')")
    trino.sql(f"UPDATE {db}.spread SET name = 'x' WHERE id = 1")
    trino.sql(f"DELETE FROM {db}.spread WHERE id > 2")
    assert rows(acid, f"SELECT * FROM {db}.spread") == sorted(trino.sql(f"SELECT * FROM {db}.spread"))
    assert rows(acid, f"SELECT * FROM {db}.spread") == [(1, "x"), (2, "2")]


def test_views_statistics_and_drops(trino: TrinoEngine, acid: AcidSession, db: str) -> None:
    trino.sql(f"CREATE TABLE {db}.t WITH (transactional = true) AS SELECT 1 id")
    trino.sql(f"ALTER TABLE {db}.t RENAME TO {db}.u")
    trino.sql(f"ALTER TABLE {db}.u ADD COLUMN n bigint")
    trino.sql(f"CREATE VIEW {db}.v AS SELECT * FROM {db}.u")
    assert trino.sql(f"SELECT * FROM {db}.v") == [(1, None)]
    trino.sql(f"ANALYZE {db}.u")
    assert acid.table(f"{db}.u").count() == 1
    trino.sql(f"DROP SCHEMA {db} CASCADE")
    assert (db,) not in trino.sql("SHOW SCHEMAS")
