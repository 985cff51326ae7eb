"""Every kind of statement of Hive's and Spark's: it works, or a sentence names what is refused, and where.

What comes neither way has leaked: an error of Spark's parser about a statement that was never its own, one of Java or
of Python.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT

WORKS = """
SELECT * FROM t ORDER BY id NULLS FIRST LIMIT 1
FROM t SELECT id WHERE id == 1
TABLE t
VALUES (1), (2)
BEGIN READ ONLY
SELECT * FROM t
COMMIT WORK
SET AUTOCOMMIT false
SET AUTOCOMMIT = true
START TRANSACTION
ROLLBACK
SELECT * FROM t TABLESAMPLE (1 ROWS)
SELECT * FROM t LATERAL VIEW explode(array(1)) x AS y
SELECT FLOOR(CURRENT_TIMESTAMP() TO hour), FLOOR(id / 2.0) FROM t
SELECT FLOOR(TIMESTAMP '2026-11-28 22:52:37' TO QUARTER)
UPDATE t SET name = FLOOR(TIMESTAMP '2026-11-28 22:52:37' TO day) WHERE floor(id / 2) < 0
INSERT INTO pt PARTITION (hr=='11', ds='d') VALUES (1, 'a')
INSERT INTO t DEFAULT VALUES
INSERT INTO t REPLACE USING (id) SELECT * FROM s
INSERT INTO t AS o REPLACE ON o.id = n.id (SELECT * FROM s) AS n
INSERT OVERWRITE TABLE pt PARTITION (hr, ds) SELECT id, name, 1, p FROM s
INSERT OVERWRITE DIRECTORY '{tmp}/a' USING parquet SELECT * FROM t
INSERT OVERWRITE DIRECTORY '{tmp}/b' STORED AS PARQUET SELECT * FROM t
INSERT OVERWRITE LOCAL DIRECTORY '{tmp}/c' STORED AS JSONFILE SELECT * FROM t
INSERT OVERWRITE DIRECTORY USING json OPTIONS (path '{tmp}/d') SELECT * FROM t
EXPLAIN INSERT OVERWRITE DIRECTORY '{tmp}/e' STORED AS ORC SELECT * FROM t
UPDATE t SET name = DEFAULT WHERE id = 1
DELETE FROM t USING s WHERE t.id = s.id
TRUNCATE TABLE t
ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS
ANALYZE TABLES COMPUTE STATISTICS
ANALYZE TABLES IN d COMPUTE STATISTICS NOSCAN
ALTER TABLE t TOUCH
ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')
ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a')
ALTER TABLE t CONCATENATE
ALTER TABLE t UPDATE STATISTICS SET ('numRows' = '5')
ALTER TABLE pt RECOVER PARTITIONS
MSCK TABLE pt
MSCK REPAIR TABLE pt
REPAIR TABLE pt SYNC PARTITIONS
EXPLAIN MSCK REPAIR TABLE pt ADD PARTITIONS
ALTER TABLE pt ADD IF NOT EXISTS PARTITION (hr=1, ds='x') PARTITION (hr=2, ds='x')
CACHE TABLE t
CACHE LAZY TABLE t OPTIONS ('storageLevel' 'DISK_ONLY')
UNCACHE TABLE t
UNCACHE TABLE IF EXISTS t
REFRESH TABLE t
REFRESH t
REFRESH '{tmp}'
CLEAR CACHE
SET spark.hive_acid.some = thing
SET tez.hive-acid.most-size=2
EXPLAIN SET tez.hive-acid.most-size=3
SHOW TABLE EXTENDED LIKE t
SHOW TABLE EXTENDED LIKE `t`
CREATE ROLE IF NOT EXISTS clerk
GRANT SELECT, UPDATE (id, name) ON TABLE t TO USER bob, ROLE clerk WITH GRANT OPTION
SHOW GRANT USER bob ON TABLE t
REVOKE GRANT OPTION FOR SELECT ON t FROM bob
REVOKE SELECT ON t FROM USER bob
GRANT ALL PRIVILEGES ON DATABASE d TO GROUP staff
GRANT CREATE TO USER bob
GRANT ROLE clerk TO USER bob WITH ADMIN OPTION
REVOKE ADMIN OPTION FOR clerk FROM USER bob
REVOKE clerk FROM bob
SHOW GRANT
SHOW GRANT ON ALL
SHOW GRANT ROLE clerk ON DATABASE d
SHOW ROLES
SHOW CURRENT ROLES
SHOW PRINCIPALS clerk
SHOW ROLE GRANT USER bob
DROP ROLE clerk
SHOW TABLES 't*'
SHOW TABLE EXTENDED LIKE 't'
SHOW COLUMNS FROM t LIKE 'n*'
SHOW CREATE DATABASE d
SHOW CURRENT DATABASE
SHOW FUNCTIONS LIKE 'abs'
SHOW LOCKS t EXTENDED
DESCRIBE QUERY SELECT * FROM t
DESC SELECT id FROM t
DESCRIBE FUNCTION abs
DESCRIBE EXTENDED pt PARTITION (hr=11, ds='d')
COMMENT ON TABLE t IS 'words'
EXPLAIN EXTENDED SELECT * FROM t
EXPLAIN LOCKS UPDATE t SET id = 1
EXPLAIN GRANT SELECT ON t TO bob
EXPLAIN CACHE TABLE t
EXPLAIN ANALYZE TABLE t COMPUTE STATISTICS
EXPLAIN SET x = y
"""
"""Statements, one in a line, which stand on what is there: they are run one after the other in one session."""

REFUSED = {
    "EXPLAIN AST SELECT * FROM t": "EXPLAIN AST tells of Hive's planner",
    "EXPLAIN EXPLAIN SELECT 1": "begins with none of",
    "SELECT INPUT__FILE__NAME FROM t": "INPUT__FILE__NAME is a column of Hive's alone",
    "SELECT * FROM t('acid.fetch.deleted.rows'='true') AS x": "are Hive's: t.deletes lists rows that are deleted",
    "SELECT * FROM t('some.thing'='true')": "options of a table in a query are Hive's: leave it out",
    "SELECT * FROM t VERSION AS OF 1": "AS OF is not supported",
    "SELECT * FROM t TABLESAMPLE (BUCKET 1 OUT OF 2 ON id)": "Spark does not understand the statement: TABLESAMPLE",
    "SELECT * FROM t LIMIT 1, 2": "Spark does not understand the statement",
    "INSERT INTO t (id) DEFAULT VALUES": "DEFAULT VALUES is of all columns.*column 20",
    "INSERT INTO t SET id = 1": "INSERT … SET.*column 15",
    "INSERT INTO t REPLACE ON t.id = s.id": "a query was expected behind the condition of REPLACE ON",
    "INSERT INTO t REPLACE USING (nothere) SELECT * FROM s": "REPLACE USING names nothere, which d.t does not have",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT * FROM t": "INSERT OVERWRITE DIRECTORY writes Hive's text.*column 37",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' SELECT * FROM t": "USING csv",
    "FROM t INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT * INSERT INTO s SELECT *": "a statement of its own.*column 8",
    "INSERT INTO t VALUES (1),": "Spark does not understand the statement",
    "INSERT INTO t VALUES (1, 'a' 'b'": "",
    "INSERT INTO t SELECT * FORM s": "cannot read 'SELECT . FORM s'",
    "LOAD DATA INPATH '/tmp/nothere' INTO TABLE t": "there are no files to take in at /tmp/nothere",
    "LOAD DATA LOCAL INPATH '/tmp/nothere/x' INTO TABLE pt PARTITION (hr = 1, ds = 'x')": "there are no files",
    "REPLACE INTO t VALUES (1, 'a', 'b')": "REPLACE is no statement here: say MERGE INTO",
    "UPSERT INTO t VALUES (1, 'a', 'b')": "UPSERT is no statement here: say MERGE INTO",
    "ANALYZE TABLE t CACHE METADATA": "COMPUTE STATISTICS was expected.*column 17",
    "ALTER TABLE t UPDATE STATISTICS FOR COLUMN id SET ('numDVs' = '5')": "UPDATE STATISTICS FOR COLUMN of d.t",
    "ALTER TABLE pt PARTITION (hr=11, ds='d') UPDATE STATISTICS SET ('a'='5')": "takes whole numbers.*column 64",
    "ALTER TABLE pt PARTITION (hr=1, ds='d') SET FILEFORMAT PARQUET": "SET FILEFORMAT of d.pt",
    "ALTER TABLE pt PARTITION (hr=1, ds='d') SET LOCATION '/x'": "SET LOCATION of d.pt: rows do not move",
    "ALTER TABLE pt PARTITION (hr=1, ds='d') SET SERDEPROPERTIES ('a'='b')": "SET SERDEPROPERTIES of d.pt",
    "ALTER TABLE pt PARTITION (hr=1, ds='d') ADD COLUMNS (z int)": "ADD COLUMNS of d.pt: .*leave PARTITION out",
    "ALTER TABLE pt PARTITION (hr=1, ds='d') CHANGE COLUMN v w string": "CHANGE of d.pt: .*leave PARTITION out",
    "ALTER TABLE pt ADD PARTITION (hr = = 1, ds = 'x')": "'= 1' is no constant, as a value of a partition key is",
    "TRUNCATE TABLE pt PARTITION (hr = 1 / 0)": "",
    "ALTER TABLE pt PARTITION COLUMN (hr bigint)": "PARTITION COLUMN of d.pt",
    "ALTER TABLE t SET SERDE 'x'": "SET SERDE of d.t",
    "ALTER TABLE t UNSET SERDEPROPERTIES ('a')": "UNSET SERDEPROPERTIES of d.t",
    "ALTER TABLE t EXCHANGE PARTITION (hr=11) WITH TABLE pt": "EXCHANGE PARTITION is of plain tables",
    "ALTER TABLE t RECOVER PARTITIONS": "d.t has no partitions",
    "MSCK REPAIR TABLE t": "d.t has no partitions",
    "ALTER TABLE t ARCHIVE PARTITION (hr=1)": "ARCHIVE PARTITION of d.t",
    "ALTER TABLE t UNARCHIVE PARTITION (hr=1)": "UNARCHIVE PARTITION of d.t",
    "ALTER TABLE t CONVERT TO ICEBERG": "CONVERT TO of d.t",
    "ALTER TABLE t EXECUTE ROLLBACK(1)": "EXECUTE of d.t: rows have one history",
    "ALTER TABLE t CREATE BRANCH b": "CREATE of d.t: rows have one history",
    "ALTER TABLE t SET PARTITION SPEC (a)": "SET PARTITION SPEC of d.t",
    "ALTER TABLE t INTO 4 BUCKETS": "INTO of d.t: .*buckets",
    "ALTER TABLE t CLUSTER BY (id)": "CLUSTER BY of d.t",
    "ALTER TABLE t NOT SKEWED": "NOT SKEWED of d.t",
    "ALTER TABLE t SET SKEWED LOCATION (1='x')": "SET SKEWED of d.t",
    "ALTER TABLE t NOT STORED AS DIRECTORIES": "NOT STORED AS of d.t",
    "ALTER TABLE t DEFAULT COLLATION UTF8_BINARY": "DEFAULT COLLATION of d.t",
    "ALTER TABLE nothere CLUSTERED BY (id) INTO 4 BUCKETS": "the metastore has no table nothere, and Spark does not",
    "ALTER TABLE t NONSENSE": "of ALTER TABLE, .* are understood",
    "CREATE INDEX i ON TABLE t (id)": "CREATE INDEX: there are none",
    "ALTER INDEX i ON t REBUILD": "ALTER INDEX: there are none",
    "DROP INDEX i ON t": "DROP INDEX: there are none",
    "CREATE TEMPORARY MACRO m (x int) x + 1": "CREATE MACRO: say CREATE TEMPORARY FUNCTION",
    "CREATE SCHEDULED QUERY q EVERY 1 DAY AS SELECT 1": "CREATE SCHEDULED: ",
    "CREATE RESOURCE PLAN rp": "CREATE RESOURCE: resource plans are HiveServer2's",
    "CREATE DATACONNECTOR dc TYPE 'x' URL 'y'": "CREATE DATACONNECTOR: ",
    "CREATE REMOTE DATABASE rd USING dc": "CREATE REMOTE: ",
    "CREATE CATALOG c LOCATION 'x'": "CREATE CATALOG: ",
    "CREATE MATERIALIZED VIEW mv AS SELECT * FROM t": "materialized views are not made here",
    "LOCK TABLE t SHARED": "LOCK is no statement here",
    "UNLOCK TABLE t": "UNLOCK is no statement here",
    "REPL DUMP d": "REPL is no statement here: .*metastore export",
    "DFS -ls /": "DFS is no statement here",
    "VACUUM t": "VACUUM is no statement here",
    "OPTIMIZE t": "OPTIMIZE is no statement here",
    "CONVERT TO DELTA t": "CONVERT is no statement here: acid.convert_table",
    "COPY INTO t FROM '/x'": "COPY is no statement here: say LOAD DATA",
    "START TRANSACTION ISOLATION LEVEL READ UNCOMMITTED": "READ UNCOMMITTED is none of hive-acid's.*column 35",
    "SAVEPOINT s": "savepoints have no names here",
    "COMMIT AND CHAIN": "COMMIT AND CHAIN is not done.*column 8",
    "COMMIT": "there is no transaction to commit on this thread",
    "EXECUTE IMMEDIATE 'SELECT * FROM t'": "EXECUTE is no statement here: acid.sql",
    "PREPARE q FROM SELECT 1": "PREPARE is no statement here",
    "SET ROLE clerk": "SET ROLE: all roles of a user count",
    "SET VARIABLE v = (SELECT max(id) FROM t)": "which does not find tables of the metastore.*column 5",
    "SET NONSENSE words of all kinds": "neither hive-acid nor Spark understands the statement",
    "GRANT FLY ON t TO bob": "FLY is no privilege: there are ALL, ALTER.*column 11",
    "GRANT SELECT ON nothere TO bob": "no table d.nothere",
    "GRANT SELECT ON URI '/x' TO bob": "on a TABLE or a DATABASE here, and none on a URI",
    "GRANT SELECT ON pt PARTITION (hr=1) TO bob": "leave PARTITION out",
    "GRANT nothere TO bob": "the role nothere does not exist",
    "CACHE TABLE t OPTIONS ('storageLevel' 'NOWHERE')": "the option of CACHE TABLE is 'storageLevel'",
    "CACHE TABLE t.files": "t.files tells about a table: keep its frame",
    "SHOW MATERIALIZED VIEWS": "SHOW MATERIALIZED VIEWS: there are none here",
    "SHOW INDEX ON t": "SHOW INDEX: there are none",
    "SHOW CONF 'x'": "SHOW CONF: settings are Spark's",
    "SHOW EXTENDED TABLES": "SHOW EXTENDED TABLES: say SHOW TABLE EXTENDED",
    "SHOW TABLES EXTENDED": "SHOW TABLES EXTENDED: say SHOW TABLE EXTENDED",
    "SHOW SORTED COLUMNS IN t": "SHOW SORTED COLUMNS: say SHOW COLUMNS",
    "SHOW PROCESSLIST": "SHOW PROCESSLIST: SHOW TRANSACTIONS",
    "SHOW RESOURCE PLANS": "SHOW RESOURCE: ",
    "SHOW NONSENSE": "neither hive-acid nor Spark understands the statement",
    "DESCRIBE DETAIL t": "DESCRIBE DETAIL is another format's",
    "!ls": "begins with none of",
}
"""Statements, and what is said of each."""


def test_statements_that_work(tables: AcidSession, tmp_path: Path) -> None:
    wrong = []
    for statement in filter(None, WORKS.replace("{tmp}", str(tmp_path)).splitlines()):
        try:
            tables.sql(statement).collect()
        except Exception as error:
            wrong.append((statement, type(error).__name__, str(error).strip().splitlines()[:1]))
    assert wrong == []


def test_statements_that_are_refused_by_a_sentence(tables: AcidSession) -> None:
    wrong: list[Any] = []
    for statement, words in REFUSED.items():
        try:
            tables.sql(statement).collect()
            wrong.append((statement, "works"))
        except HiveAcidError as error:
            if not re.search(words, str(error)):
                wrong.append((statement, str(error)))
        except Exception as error:
            wrong.append((statement, "leaks", type(error).__name__, str(error).strip().splitlines()[:1]))
    assert wrong == []
    assert sorted(tables.connection.call("get_all_tables", "d")) == ["pt", "s", "t"]


# --- what they do --------------------------------------------------------------------------------


def test_times_are_cut_as_hive_says_it(tables: AcidSession) -> None:
    """In queries, values, conditions and views; one cut may be within another."""
    tables.sql("CREATE TABLE w (k int, at timestamp)")
    tables.sql("INSERT INTO w SELECT 1, FLOOR(TIMESTAMP '2026-11-28 22:52:37.5' TO second)")
    cut = {
        "second": "2026-11-28 22:52:37", "Minute": "2026-11-28 22:52:00", "HOUR": "2026-11-28 22:00:00",
        "day": "2026-11-28 00:00:00", "week": "2026-11-23 00:00:00", "month": "2026-11-01 00:00:00",
        "quarter": "2026-10-01 00:00:00", "year": "2026-01-01 00:00:00",
    }  # fmt: skip
    cuts = ", ".join(f"string(floor(w.at TO {unit}))" for unit in cut)
    assert tables.sql(f"SELECT {cuts} FROM w").collect() == [tuple(cut.values())]
    within = "string(FLOOR ( FLOOR(at TO month) + INTERVAL 40 days TO month ))"
    nested = f"SELECT {within}, FLOOR(2.7), 'floor(at TO day)' FROM w"
    tables.sql(f"CREATE VIEW cuts (a, b, c) AS {nested}")
    for query in (nested, "SELECT * FROM cuts"):
        assert tables.sql(query).collect() == [("2026-12-01 00:00:00", 2, "floor(at TO day)")]
    assert tables.sql("DELETE FROM w WHERE FLOOR(at TO year) = TIMESTAMP '2026-01-01 00:00:00'").collect()[0][0] == 1


def rows(acid: AcidSession, table: str = "t") -> list[Any]:
    return sorted((tuple(row) for row in acid.table(f"d.{table}").collect()), key=str)


def test_replace_using_puts_rows_in_the_place_of_those_with_the_same_keys(
    tables: AcidSession, spark: SparkSession
) -> None:
    """As a DELETE of those with the same keys and an INSERT in one transaction."""
    tables.sql("INSERT INTO t VALUES (2, 'twice', 'y'), (NULL, 'null', 'n')")
    new = [(2, "new", "y"), (2, "more", "z"), (9, "nine", "x"), (None, "other", "n")]
    spark.createDataFrame(new, "id int, name string, p string").createOrReplaceTempView("new_rows")
    kept = [row for row in rows(tables) if row[0] != 2]
    counts = tables.sql("INSERT INTO t REPLACE USING (ID) SELECT * FROM new_rows").collect()
    assert [row.num_inserted_rows for row in counts] == [4]
    assert rows(tables) == sorted([*kept, *new], key=str)
    tables.sql("INSERT INTO t BY NAME REPLACE USING (id, p) SELECT 'by name' AS name, p, id FROM new_rows WHERE id = 2")
    named = {row for row in rows(tables) if row[0] == 2}
    assert named == {(2, "by name", "y"), (2, "by name", "z")}
    before = rows(tables)
    tables.sql("INSERT INTO t REPLACE USING (id) SELECT * FROM new_rows WHERE false")
    assert rows(tables) == before
    with pytest.raises(Exception, match="here"):
        tables.sql("INSERT INTO t REPLACE USING (id) SELECT id, raise_error('here'), p FROM new_rows")
    assert rows(tables) == before


def test_a_source_of_chance_is_computed_once(tables: AcidSession) -> None:
    """What is deleted and what is inserted are of the same rows."""
    tables.sql("INSERT OVERWRITE t SELECT CAST(id AS int), 'old', 'p' FROM range(200)")
    tables.sql("INSERT INTO t REPLACE USING (id) SELECT CAST(id AS int), 'new', 'p' FROM range(200) WHERE rand() < 0.5")
    found = [row[0] for row in rows(tables)]
    assert len(found) == len(set(found)) == 200


def test_default_values_are_those_of_all_columns(tables: AcidSession) -> None:
    tables.sql("INSERT INTO s DEFAULT VALUES")
    assert (None, None, None) in rows(tables, "s")
    tables.sql("INSERT INTO pt PARTITION (hr = 3, ds = 'x') DEFAULT VALUES")
    tables.sql("INSERT INTO pt PARTITION (hr = 3, ds = 'x') VALUES (5, DEFAULT)")
    assert {(None, None, 3, "x"), (5, None, 3, "x")} <= set(rows(tables, "pt"))


def test_a_directory_has_the_rows_of_the_query(tables: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    for form, source in {"PARQUET": "parquet", "ORC": "orc", "jsonfile": "json"}.items():
        tables.sql(
            f"WITH q AS (SELECT id FROM t) INSERT OVERWRITE LOCAL DIRECTORY '{tmp_path}/{form}' STORED AS {form} "
            "SELECT id, 'x' AS x FROM q WHERE id > :least",
            {"least": 1},
        )
        assert [tuple(row) for row in spark.read.format(source).load(f"{tmp_path}/{form}").collect()] == [(2, "x")]


def test_what_is_granted_is_shown(tables: AcidSession) -> None:
    tables.sql_script(
        """CREATE ROLE clerk; GRANT clerk TO USER bob WITH ADMIN OPTION;
        GRANT SELECT, UPDATE (name) ON t TO ROLE clerk WITH GRANT OPTION; GRANT ALL ON DATABASE d TO ann"""
    )

    def shown(text: str) -> list[Any]:
        return [
            tuple(row)
            for row in tables.sql(f"SHOW GRANT {text}")
            .select("database", "table", "column", "principal_name", "principal_type", "privilege", "grant_option")
            .collect()
        ]

    assert shown("ROLE clerk ON ALL") == [
        ("d", "t", "", "clerk", "ROLE", "SELECT", "true"),
        ("d", "t", "name", "clerk", "ROLE", "UPDATE", "true"),
    ]
    assert shown("ON TABLE t") == [("d", "t", "", "clerk", "ROLE", "SELECT", "true")]
    assert shown("USER ann ON DATABASE d") == [("d", "", "", "ann", "USER", "ALL", "false")]
    assert tables.sql("SHOW PRINCIPALS clerk").collect() == [("bob", "USER", "true", tables.connection.user)]
    assert ("clerk",) in tables.sql("SHOW ROLE GRANT USER bob").collect()
    tables.sql_script("REVOKE GRANT OPTION FOR SELECT ON t FROM ROLE clerk; REVOKE UPDATE (name) ON t FROM ROLE clerk")
    assert shown("ROLE clerk ON ALL") == [("d", "t", "", "clerk", "ROLE", "SELECT", "false")]
    tables.sql("DROP ROLE clerk")
    assert shown("ROLE clerk ON ALL") == []


@pytest.mark.skipif(OVER_CONNECT, reason="what is kept is told by the plan of a classic session")
def test_a_table_that_is_cached_is_read_from_memory_until_it_changes(tables: AcidSession) -> None:
    def plan(name: str = "t") -> str:
        return str(tables.sql(f"EXPLAIN SELECT * FROM {name}").collect()[0].plan)

    tables.sql("CACHE TABLE t")
    assert "InMemoryTableScan" in plan()
    tables.sql("INSERT INTO t VALUES (7, 'x', 'y')")
    assert "InMemoryTableScan" not in plan(), "it is another state of the table"
    assert tables.sql("SELECT * FROM t WHERE id = 7").count() == 1
    tables.sql("REFRESH TABLE t")
    assert "InMemoryTableScan" in plan()
    tables.sql("UNCACHE TABLE t")
    assert "InMemoryTableScan" not in plan()
    tables.sql("CACHE TABLE kept_query AS SELECT id FROM t WHERE id = 7")
    tables.sql("DELETE FROM t")
    assert tables.sql("SELECT * FROM kept_query").collect() == [(7,)]
    assert "InMemoryTableScan" in plan("kept_query")
    tables.spark.catalog.dropTempView("kept_query")
    tables.sql("CACHE TABLE s")
    tables.sql("CLEAR CACHE")
    assert "InMemoryTableScan" not in plan("s")
