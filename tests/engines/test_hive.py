"""Hive 4.0.1's own statements on our metastore, and our client on the same tables, both ways."""

from __future__ import annotations

import re
import time

import pytest

from hive_acid.errors import DuplicateKeyError
from hive_acid.spark import AcidSession
from tests.engines.conftest import Ours
from tests.engines.hive import HiveEngine, HiveRefusedError
from tests.waiting import until

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
INSERT_ONLY = "STORED AS PARQUET TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


def rows(acid: AcidSession, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in acid.sql(query).collect())


def described(hive: HiveEngine, what: str) -> dict[str, str]:
    """What DESCRIBE FORMATTED tells: names without colons to values."""
    lines = hive.sql(f"DESCRIBE FORMATTED {what}")
    told = (line[1:] if not line[0] else line for line in lines)
    return {line[0].strip().rstrip(":"): line[1].strip() for line in told if len(line) > 1}


def compactions(hive: HiveEngine, db: str) -> list[tuple[str, str, str]]:
    """What SHOW COMPACTIONS tells of a database: table, type and state."""
    lines = hive.sql(f"SHOW COMPACTIONS DATABASE {db}")
    return [(line[2], line[4], line[5]) for line in lines if line[1] == db]


def test_statements_of_both_on_a_table_of_each(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.theirs (id int, name string) {ACID}")
    acid.sql(f"CREATE TABLE {db}.ours (id int, name string)")
    for table in (f"{db}.theirs", f"{db}.ours"):
        hive.sql(f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')")
        assert rows(acid, f"SELECT * FROM {table}") == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
        acid.sql(f"INSERT INTO {table} VALUES (5, 'five'), (6, 'six')")
        hive.sql(f"UPDATE {table} SET name = 'TWO' WHERE id = 2")
        acid.sql(f"UPDATE {table} SET name = 'THREE' WHERE id = 3")
        hive.sql(f"DELETE FROM {table} WHERE id IN (1, 5)")
        acid.sql(f"DELETE FROM {table} WHERE id = 4")
        hive.sql(
            f"MERGE INTO {table} t USING (SELECT 6 k, 'SIX' v UNION ALL SELECT 3, 'gone' UNION ALL SELECT 7, 'seven') s"
            " ON t.id = s.k WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.v"
            " WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)"
        )
        acid.sql(
            f"MERGE INTO {table} t USING (SELECT 7 k, 'SEVEN' v UNION ALL SELECT 8, 'eight') s ON t.id = s.k"
            " WHEN MATCHED THEN UPDATE SET name = s.v WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.k, s.v)"
        )
        expected = [(2, "TWO"), (6, "SIX"), (7, "SEVEN"), (8, "eight")]
        assert rows(acid, f"SELECT * FROM {table}") == expected
        assert [(int(number), name) for number, name in hive.sql(f"SELECT * FROM {table} ORDER BY id")] == expected
        # The same rows have the same ROW__ID to both.
        theirs = {tuple(map(int, re.findall(r":(\d+)", found))): int(number)
                  for found, number in hive.sql(f"SELECT row__id, id FROM {table}")}  # fmt: skip
        ours = {tuple(row.row_id): row.id for row in acid.sql(f"SELECT row__id AS row_id, id FROM {table}").collect()}
        assert theirs == ours


def test_buckets(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int, name string) CLUSTERED BY (id) INTO 4 BUCKETS {ACID}")
    hive.sql(f"INSERT INTO {db}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    acid.sql(f"INSERT INTO {db}.t VALUES (4, 'd'), (5, 'e'), (6, 'f'), (null, 'g')")
    hive.sql(f"UPDATE {db}.t SET name = 'H' WHERE id IN (2, 5)")
    acid.sql(f"UPDATE {db}.t SET name = 'S' WHERE id IN (1, 6)")
    hive.sql(f"DELETE FROM {db}.t WHERE id = 4")
    expected = [("1", "S"), ("2", "H"), ("3", "c"), ("5", "H"), ("6", "S"), ("NULL", "g")]
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == expected
    assert sorted((str(number or "NULL"), name) for number, name in acid.table(f"{db}.t").collect()) == expected
    # A join by buckets finds partners only where hashes agree.
    joined = hive.sql(f"SELECT a.id, b.name FROM {db}.t a JOIN {db}.t b ON a.id = b.id")
    assert sorted(joined) == expected[:-1]


def test_a_table_is_given_other_columns(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    """Also its partitions, each of which has columns of its own in Hive."""
    hive.sql(f"CREATE TABLE {db}.t (id int, name string) PARTITIONED BY (p string) {ACID}")
    hive.sql(f"INSERT INTO {db}.t PARTITION (p) VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    hive.sql(f"UPDATE {db}.t SET name = 'c' WHERE id = 2")
    acid.sql(
        f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (p) CLUSTERED BY (name) INTO 2 BUCKETS AS SELECT CAST(id * 1.5 "
        f"AS decimal(6,2)) AS amount, concat(name, '!') AS name, DATE'9999-12-31' AS d, 'x' AS p FROM {db}.t"
    )
    expected = [("1.50", "a!", "9999-12-31", "x"), ("3.00", "c!", "9999-12-31", "x")]
    assert hive.sql(f"SELECT * FROM {db}.t ORDER BY amount") == expected
    assert hive.sql(f"SELECT count(*) FROM {db}.t WHERE p = 'y'") == [("0",)]
    hive.sql(f"INSERT INTO {db}.t PARTITION (p) VALUES (7.25, 'new', DATE'2020-02-29', 'y')")
    hive.sql(f"UPDATE {db}.t SET amount = amount + 1 WHERE name = 'a!'")
    assert [str(row.amount) for row in acid.sql(f"SELECT amount FROM {db}.t ORDER BY amount").collect()] == [
        "2.50",
        "3.00",
        "7.25",
    ]
    acid.sql(f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (p) AS SELECT name, p FROM {db}.t")
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == [("a!", "x"), ("c!", "x"), ("new", "y")]


def test_a_table_is_given_other_partition_columns(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    """By another table, of which Hive knows nothing until it has the name."""
    hive.sql(f"CREATE TABLE {db}.t (id int, name string) PARTITIONED BY (p string) {ACID}")
    hive.sql(f"INSERT INTO {db}.t PARTITION (p) VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    hive.sql(f"UPDATE {db}.t SET name = 'c' WHERE id = 2")
    acid.sql(f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (id, name) AS SELECT p, id, name FROM {db}.t")
    assert hive.sql("SHOW TABLES IN " + db) == [("t",)]
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == [("x", "1", "a"), ("y", "2", "c")]
    assert sorted(hive.sql(f"SHOW PARTITIONS {db}.t")) == [("id=1/name=a",), ("id=2/name=c",)]
    assert hive.sql(f"SELECT count(*) FROM {db}.t WHERE id = 2") == [("1",)]
    hive.sql(f"INSERT INTO {db}.t PARTITION (id, name) VALUES ('z', 3, 'd')")
    hive.sql(f"UPDATE {db}.t SET p = concat(p, '!') WHERE id < 3")
    assert rows(acid, f"SELECT * FROM {db}.t") == [("x!", 1, "a"), ("y!", 2, "c"), ("z", 3, "d")]
    acid.sql(f"CREATE OR REPLACE TABLE {db}.t AS SELECT name FROM {db}.t WHERE id > 1")
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == [("c",), ("d",)]
    hive.sql(f"DELETE FROM {db}.t WHERE name = 'c'")
    assert rows(acid, f"SELECT * FROM {db}.t") == [("d",)]


def test_insert_only(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int) {INSERT_ONLY}")
    hive.sql(f"INSERT INTO {db}.t VALUES (1), (2)")
    acid.sql(f"INSERT INTO {db}.t VALUES (3)")
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == [("1",), ("2",), ("3",)]
    assert rows(acid, f"SELECT * FROM {db}.t") == [(1,), (2,), (3,)]
    hive.sql(f"INSERT OVERWRITE TABLE {db}.t SELECT 7")
    assert rows(acid, f"SELECT * FROM {db}.t") == [(7,)]
    acid.sql(f"INSERT OVERWRITE {db}.t VALUES (8)")
    assert hive.sql(f"SELECT * FROM {db}.t") == [("8",)]


def test_tables_made_of_queries_and_truncated(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 id, 'a' name UNION ALL SELECT 2, 'b'")
    assert rows(acid, f"SELECT * FROM {db}.t") == [(1, "a"), (2, "b")]
    hive.sql(f"INSERT OVERWRITE TABLE {db}.t SELECT 3, 'c'")
    assert rows(acid, f"SELECT * FROM {db}.t") == [(3, "c")]
    for base in ("true", "false"):  # under Hive's own write id, and under the server's
        hive.set(hive_acid_truncate_usebase=base)
        began_at = time.monotonic()
        hive.sql(f"TRUNCATE TABLE {db}.t")
        assert time.monotonic() - began_at < 8, "it waits for itself"
        assert rows(acid, f"SELECT * FROM {db}.t") == []
        acid.sql(f"INSERT INTO {db}.t VALUES (4, 'd')")
        assert hive.sql(f"SELECT * FROM {db}.t") == [("4", "d")]
    hive.set(hive_acid_truncate_usebase="true")
    hive.sql(f"CREATE TABLE {db}.like_it LIKE {db}.t")
    assert hive.sql(f"SELECT count(*) FROM {db}.like_it") == [("0",)]


def test_partitions(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int) PARTITIONED BY (d date, k int) {ACID}")
    hive.sql(
        f"INSERT INTO {db}.t VALUES (1, '2020-01-01', 1), (2, '2020-01-02', 2),"
        " (3, '2020-01-03', 3), (4, '2020-01-03', 10)"
    )
    acid.sql(f"INSERT INTO {db}.t VALUES (5, date'2020-01-04', 5), (6, date'2020-01-05', 6), (7, null, null)")
    assert len(hive.sql(f"SHOW PARTITIONS {db}.t")) == 7
    assert hive.sql(f"SELECT id FROM {db}.t WHERE d > '2020-01-03' AND k < 6") == [("5",)]
    assert hive.sql(f"SELECT id FROM {db}.t WHERE d IS NULL") == [("7",)]
    began_at = time.monotonic()
    hive.sql(f"ALTER TABLE {db}.t DROP PARTITION (d < '2020-01-02'), PARTITION (d = '2020-01-03', k >= 4)")
    assert time.monotonic() - began_at < 8, "it waits for itself"
    assert [number for (number,) in rows(acid, f"SELECT id FROM {db}.t")] == [2, 3, 5, 6, 7]
    hive.sql(f"ALTER TABLE {db}.t DROP IF EXISTS PARTITION (k = 77)")
    hive.sql(f"ALTER TABLE {db}.t PARTITION (d='2020-01-02', k=2) RENAME TO PARTITION (d='2021-01-02', k=7)")
    assert rows(acid, f"SELECT * FROM {db}.t WHERE id = 2")[0][2] == 7
    hive.sql(f"UPDATE {db}.t SET id = 22 WHERE k = 7")
    acid.sql(f"DELETE FROM {db}.t WHERE id = 22")
    assert hive.sql(f"SELECT id FROM {db}.t WHERE k = 7") == []
    hive.sql(f"ALTER TABLE {db}.t ADD PARTITION (d='2022-01-01', k=8)")
    acid.sql(f"INSERT INTO {db}.t PARTITION (d = '2022-01-01', k = 8) VALUES (8)")
    assert hive.sql(f"SELECT id FROM {db}.t WHERE k = 8") == [("8",)]
    assert sorted(hive.sql(f"SHOW PARTITIONS {db}.t PARTITION (d='2022-01-01')")) == [("d=2022-01-01/k=8",)]


def test_a_partition_dropped_softly(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int) PARTITIONED BY (k int) {ACID}")
    hive.sql(f"INSERT INTO {db}.t VALUES (1, 1), (2, 2)")
    hive.set(hive_acid_droppartition_usebase="true")
    try:
        hive.sql(f"ALTER TABLE {db}.t DROP PARTITION (k = 1)")
    finally:
        hive.set(hive_acid_droppartition_usebase="false")
    assert rows(acid, f"SELECT * FROM {db}.t") == [(2, 2)]
    acid.sql(f"INSERT INTO {db}.t VALUES (3, 1)")
    assert hive.sql(f"SELECT * FROM {db}.t WHERE k = 1") == [("3", "1")]


def test_partitions_are_exchanged(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    for table in ("a", "b"):
        hive.sql(f"CREATE TABLE {db}.{table} (id int) PARTITIONED BY (k int) STORED AS ORC")
    hive.sql(f"INSERT INTO {db}.b VALUES (5, 1)")
    hive.sql(f"ALTER TABLE {db}.a EXCHANGE PARTITION (k = 1) WITH TABLE {db}.b")
    assert hive.sql(f"SELECT * FROM {db}.a") == [("5", "1")]
    assert hive.sql(f"SHOW PARTITIONS {db}.b") == []


@pytest.mark.parametrize("made_by", ["hive", "ours", "changed"])
def test_describe_formatted(hive: HiveEngine, acid: AcidSession, db: str, made_by: str) -> None:
    """Hive fails where a map that it always sends is absent: of skewed values and their places."""
    if made_by == "ours":
        acid.create_table(f"{db}.t", {"id": "int"}, partitioned_by={"k": "int"})
    else:
        hive.sql(f"CREATE TABLE {db}.t (id int) PARTITIONED BY (k int) {ACID}")
    hive.sql(f"ALTER TABLE {db}.t ADD PARTITION (k = 1)")
    if made_by == "changed":
        hive.sql(f"ALTER TABLE {db}.t SET TBLPROPERTIES ('a' = 'b')")
        hive.sql(f"ALTER TABLE {db}.t ADD COLUMNS (name string) CASCADE")
    told = described(hive, f"{db}.t")
    assert told["Table Type"] == "MANAGED_TABLE"
    assert told["Location"].endswith(f"/{db}.db/t")
    assert described(hive, f"{db}.t PARTITION (k = 1)")["Location"].endswith("/t/k=1")
    hive.sql(f"CREATE TABLE {db}.skewed (id int) SKEWED BY (id) ON (1, 2) STORED AS ORC")
    assert described(hive, f"{db}.skewed")["Skewed Columns"] == "[id]"


def test_compactions(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    """Hive 4.0.1 queues its own in its database, past the metastore; it shows ours, and reads what they made."""
    hive.sql(f"CREATE TABLE {db}.t (id int) {ACID}")
    for number in range(3):
        hive.sql(f"INSERT INTO {db}.t VALUES ({number})")
    hive.sql(f"DELETE FROM {db}.t WHERE id = 1")
    with pytest.raises(HiveRefusedError, match="No suitable driver"):
        hive.sql(f"ALTER TABLE {db}.t COMPACT 'major'")
    acid.sql(f"ALTER TABLE {db}.t COMPACT 'major'")
    until(lambda: compactions(hive, db)[0][2] not in ("initiated", "working"), 120, lambda: compactions(hive, db))
    shown = compactions(hive, db)
    assert shown[0][:2] == ("t", "MAJOR")
    assert shown[0][2] in ("ready for cleaning", "succeeded"), shown
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == [("0",), ("2",)]
    acid.sql(f"INSERT INTO {db}.t VALUES (3)")
    acid.sql(f"ALTER TABLE {db}.t COMPACT 'minor' AND WAIT")
    assert sorted(hive.sql(f"SELECT * FROM {db}.t")) == [("0",), ("2",), ("3",)]
    assert ("t", "MINOR") in [line[:2] for line in compactions(hive, db)]


def test_transactions_and_locks(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    acid.create_table(f"{db}.t", {"id": "int"})
    with acid.transaction():
        acid.sql(f"INSERT INTO {db}.t VALUES (1)")
        locks = hive.sql(f"SHOW LOCKS {db}.t")
        assert any(line[1:3] == (db, "t") and (line[4], line[6]) == ("ACQUIRED", "SHARED_READ") for line in locks), (
            locks
        )
        assert any(line[1] == "OPEN" for line in hive.sql("SHOW TRANSACTIONS"))
        (txn_id,) = (line[7] for line in locks if line[1:3] == (db, "t"))
        assert hive.sql(f"SELECT * FROM {db}.t") == []
    assert hive.sql(f"SELECT * FROM {db}.t") == [("1",)]
    assert txn_id not in [line[0] for line in hive.sql("SHOW TRANSACTIONS")]
    doomed = acid.connection.begin()
    hive.sql(f"ABORT TRANSACTIONS {doomed.id}")
    assert any(line[:2] == (str(doomed.id), "ABORTED") for line in hive.sql("SHOW TRANSACTIONS"))


def test_statistics(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int, name string) {ACID}")
    acid.sql(f"INSERT INTO {db}.t VALUES (1, 'a'), (5, null)")
    hive.sql(f"ANALYZE TABLE {db}.t COMPUTE STATISTICS FOR COLUMNS")
    told = described(hive, f"{db}.t id")
    assert (told["min"], told["max"], told["distinct_count"]) == ("1", "5", "2")
    assert described(hive, f"{db}.t")["numRows"] == "2"
    assert hive.sql(f"SELECT count(*), max(id) FROM {db}.t") == [("2", "5")]
    acid.sql(f"INSERT INTO {db}.t VALUES (9, 'b')")
    # Answered by statistics if they are vouched for, which they no longer are.
    assert hive.sql(f"SELECT count(*), max(id) FROM {db}.t") == [("3", "9")]
    acid.analyze(f"{db}.t", columns=["id"])
    assert described(hive, f"{db}.t id")["max"] == "9"


def test_statistics_of_partitions(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    """Hive counts the rows of each by its INSERT, and answers out of that until somebody has written there."""
    hive.sql(f"CREATE TABLE {db}.t (id int, name string) PARTITIONED BY (p string) {ACID}")
    hive.sql(f"INSERT INTO {db}.t PARTITION (p) VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'y'), (4, 'd', 'z')")
    acid.sql(f"DELETE FROM {db}.t WHERE id = 2")
    acid.sql(f"INSERT OVERWRITE {db}.t PARTITION (p = 'z') SELECT id, name FROM {db}.t WHERE false")
    for condition, count in (("p = 'x'", "1"), ("p = 'y'", "1"), ("p = 'z'", "0"), ("p >= 'y'", "1"), ("true", "2")):
        assert hive.sql(f"SELECT count(*) FROM {db}.t WHERE {condition}") == [(count,)], condition
        assert hive.sql(f"SELECT count(id), max(id) FROM {db}.t WHERE {condition}")[0][0] == count, condition


def test_roles_and_grants(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    acid.create_table(f"{db}.t", {"id": "int"})
    hive.sql("SET ROLE admin")
    hive.sql(f"CREATE ROLE readers_{db}")
    hive.sql(f"GRANT ROLE readers_{db} TO USER ann")
    hive.sql(f"GRANT SELECT, UPDATE ON TABLE {db}.t TO ROLE readers_{db}")
    hive.sql(f"REVOKE UPDATE ON TABLE {db}.t FROM ROLE readers_{db}")
    shown = hive.sql(f"SHOW GRANT ROLE readers_{db} ON TABLE {db}.t")
    assert [line[6] for line in shown] == ["SELECT"]
    assert (f"readers_{db}",) in hive.sql("SHOW ROLES")
    assert any(line[0] == f"readers_{db}" for line in hive.sql("SHOW ROLE GRANT USER ann"))
    hive.sql(f"DROP ROLE readers_{db}")


def test_constraints(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(
        f"CREATE TABLE {db}.t (id int NOT NULL DISABLE, n int DEFAULT 7, PRIMARY KEY (id) DISABLE NOVALIDATE) {ACID}"
    )
    hive.sql(f"INSERT INTO {db}.t (id) VALUES (1)")
    acid.sql(f"INSERT INTO {db}.t (id) VALUES (2)")
    assert rows(acid, f"SELECT * FROM {db}.t") == [(1, 7), (2, 7)]
    assert any(
        "Primary Key" in line[0] or "primary" in line[0].lower() for line in hive.sql(f"DESCRIBE FORMATTED {db}.t")
    )


def test_a_primary_key_of_ours_is_an_ordinary_one_to_hive(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    acid.sql(f"CREATE TABLE {db}.t (name string, id int, PRIMARY KEY (id) ENFORCED)")
    acid.sql(f"INSERT INTO {db}.t SELECT 'a', id FROM range(100, 0, -1)")
    acid.sql(f"INSERT INTO {db}.t VALUES ('b', 100), ('b', 101) ON CONFLICT (id) DO UPDATE SET name = excluded.name")
    assert hive.sql(f"SELECT name, count(*), sum(id) FROM {db}.t GROUP BY name ORDER BY name") == [
        *(("a", "99", "4950"), ("b", "2", "201"))
    ]
    hive.sql(f"INSERT INTO {db}.t VALUES ('hive', 101), ('hive', 102)")
    hive.sql(f"UPDATE {db}.t SET name = 'c' WHERE id < 3")
    assert hive.sql(f"SELECT count(*) FROM {db}.t WHERE id > 100") == [("3",)]
    assert [tuple(row) for row in acid.check_key(f"{db}.t").collect()] == [(101, 2)]
    with pytest.raises(DuplicateKeyError, match="id = 102"):
        acid.sql(f"INSERT INTO {db}.t VALUES ('d', 102)")
    acid.sql(f"DELETE FROM {db}.t WHERE id = 101 AND name = 'hive'")
    acid.sql(f"INSERT INTO {db}.t VALUES ('d', 103)")
    assert hive.sql(f"SELECT count(*), count(DISTINCT id) FROM {db}.t") == [("103", "103")]
    assert any("id" in line[0] for line in hive.sql(f"DESCRIBE FORMATTED {db}.t"))


def test_materialized_views(hive: HiveEngine, acid: AcidSession, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int, name string) {ACID}")
    acid.sql(f"INSERT INTO {db}.t VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    hive.sql(f"CREATE MATERIALIZED VIEW {db}.v AS SELECT name, count(*) n FROM {db}.t GROUP BY name")
    assert sorted(hive.sql(f"SELECT * FROM {db}.v")) == [("a", "2"), ("b", "1")]
    acid.sql(f"INSERT INTO {db}.t VALUES (4, 'b')")
    hive.sql(f"ALTER MATERIALIZED VIEW {db}.v REBUILD")
    assert sorted(hive.sql(f"SELECT * FROM {db}.v")) == [("a", "2"), ("b", "2")]
    hive.sql(f"DROP MATERIALIZED VIEW {db}.v")


def test_tables_are_renamed_and_databases_dropped(hive: HiveEngine, ours: Ours, db: str) -> None:
    hive.sql(f"CREATE TABLE {db}.t (id int) PARTITIONED BY (k int) {ACID}")
    hive.sql(f"INSERT INTO {db}.t VALUES (1, 1)")
    hive.sql(f"ALTER TABLE {db}.t RENAME TO {db}.u")
    hive.sql(f"ALTER TABLE {db}.u CHANGE COLUMN id number bigint")
    assert rows(ours.acid, f"SELECT number, k FROM {db}.u") == [(1, 1)]
    hive.sql(f"CREATE VIEW {db}.v AS SELECT * FROM {db}.u")
    assert hive.sql(f"SELECT * FROM {db}.v") == [("1", "1")]
    with pytest.raises(HiveRefusedError, match="not empty"):
        hive.sql(f"DROP DATABASE {db}")
    hive.sql(f"DROP DATABASE {db} CASCADE")
    assert (db,) not in hive.sql("SHOW DATABASES")
    place = ours.warehouse / f"{db}.db"
    until(lambda: not place.exists(), told=lambda: sorted(place.rglob("*")))
