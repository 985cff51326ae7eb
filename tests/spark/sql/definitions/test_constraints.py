"""Constraints in SQL: made with a table, added and dropped, told, and made again from what is told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.catalog.constraints import Constraint
from hive_acid.errors import (
    AlreadyExistsError,
    ColumnError,
    ConstraintError,
    HiveAcidError,
    NoSuchObjectError,
    SerializationError,
    SqlError,
)
from hive_acid.spark import AcidSession
from hive_acid.streaming import ArrowWriter, JsonWriter, StreamingConnection
from hive_acid.wire import ConstraintKind

pytestmark = pytest.mark.spark

PARENT = "CREATE TABLE d.parent (a int, b string, CONSTRAINT p_ab PRIMARY KEY (a, b) DISABLE NOVALIDATE)"
MANY = """
    CREATE TABLE d.t (
        id BIGINT NOT NULL COMMENT 'the key, which is > 0',
        v STRING DEFAULT 'x, y' COMMENT "of 'v'",
        w decimal(10, 2) CONSTRAINT w_d DEFAULT -1.5
            CONSTRAINT w_big CHECK (w > -2 AND (w < 5 OR v > 'a')) ENABLE NORELY,
        m map<string, array<struct<a: int, b: varchar(3)>>>,
        `check` int CHECK (`check` >> 1 < 3) DISABLE,
        day date DEFAULT CAST('2020-01-01' AS DATE) DISABLE NOVALIDATE,
        a int REFERENCES d.other (a) DISABLE,
        b string UNIQUE NOT ENFORCED,
        CHECK (id > 0 AND id < 100 -- a comment
        ),
        CONSTRAINT Pk PRIMARY KEY (id, v) DISABLE NOVALIDATE RELY,
        CONSTRAINT fk FOREIGN KEY (a, b) REFERENCES d.parent (a, b) DISABLE NOVALIDATE,
        UNIQUE (v, w) DISABLE NORELY
    )
    PARTITIONED BY (p string NOT NULL DEFAULT 'p' COMMENT 'part', q int)
    TBLPROPERTIES ('k' = 'v')
"""


def meanings(acid: AcidSession, name: str = "t") -> list[str]:
    found = acid.connection.table("d", name).constraints
    return sorted(
        f"{one.kind.name} {','.join(one.columns)} {' '.join((one.expression or '').split())} {one.enabled} {one.rely} "
        f"{one.parent} {','.join(one.parent_columns)}"
        for one in found
    )


def test_a_table_is_made_with_constraints_and_told_so(acid: AcidSession) -> None:
    acid.sql(PARENT)
    acid.sql("CREATE TABLE d.other (a int UNIQUE DISABLE)")
    acid.sql(MANY)
    assert meanings(acid) == [
        "CHECK  id > 0 AND id < 100 True True None ",
        "CHECK check `check` >> 1 < 3 False False None ",
        "CHECK w w > -2 AND (w < 5 OR v > 'a') True False None ",
        "DEFAULT day CAST('2020-01-01' AS DATE) False False None ",
        "DEFAULT p 'p' True True None ",
        "DEFAULT v 'x, y' True True None ",
        "DEFAULT w -1.5 True True None ",
        "FOREIGN_KEY a  False False ('d', 'other') a",
        "FOREIGN_KEY a,b  False False ('d', 'parent') a,b",
        "NOT_NULL id  True True None ",
        "NOT_NULL p  True True None ",
        "PRIMARY_KEY id,v  False True None ",
        "UNIQUE b  False False None ",
        "UNIQUE v,w  False False None ",
    ]
    table = acid.connection.table("d", "t")
    assert [(one.name, one.comment) for one in table.all_columns if one.comment] == [
        ("id", "the key, which is > 0"),
        ("v", "of 'v'"),
        ("p", "part"),
    ]
    assert {"pk", "fk", "w_d", "w_big"} <= {one.name for one in table.constraints}
    (text,) = acid.sql("SHOW CREATE TABLE d.t").collect()[0]
    acid.sql(text.replace("`d`.`t`", "d.again").replace(table.location, f"{table.location}_again"))
    assert meanings(acid, "again") == meanings(acid)
    assert {one.name for one in acid.connection.table("d", "again").constraints} == {
        one.name for one in table.constraints
    }
    described = {row.col_name: (row.data_type, row.comment) for row in acid.sql("DESCRIBE FORMATTED d.t").collect()}
    assert described["pk"] == ("PRIMARY KEY (`id`, `v`) DISABLE NOVALIDATE RELY", "id, v")
    assert described["w_d"] == ("DEFAULT -1.5 ENABLE NOVALIDATE RELY", "w")
    assert described["fk"][0].startswith("FOREIGN KEY (`a`, `b`) REFERENCES `d`.`parent` (`a`, `b`) DISABLE")
    assert "pk" not in {row.col_name for row in acid.sql("DESCRIBE d.t").collect()}
    acid.sql("INSERT INTO d.t (id, p) VALUES (1, 'a')")
    acid.sql("INSERT INTO d.t (id, v) VALUES (2, DEFAULT)")
    assert sorted(map(tuple, acid.sql("SELECT id, v, string(w), day, p, q FROM d.t").collect())) == [
        (1, "x, y", "-1.50", None, "a", None),
        (2, "x, y", "-1.50", None, "p", None),
    ]
    for broken in ("(id) VALUES (NULL)", "(id) VALUES (0)", "(id, p) VALUES (1, NULL)", "(id, w) VALUES (1, -2)"):
        with pytest.raises(ConstraintError, match=r"of d\.t"):
            acid.sql(f"INSERT INTO d.t {broken}")
    acid.sql("INSERT INTO d.t (id, `check`) VALUES (3, 1000)")
    assert acid.table("d.t").count() == 3


REFUSED = {
    "CREATE TABLE d.x (id int, PRIMARY KEY (id) DISABLE VALIDATE)": "not checked for a PRIMARY KEY that is not",
    "CREATE TABLE d.x (id int PRIMARY KEY) TBLPROPERTIES ('transactional' = 'false')": "d.x is no full-ACID table",
    "CREATE TABLE d.x (id array<int> PRIMARY KEY)": "array<int>, of which values are not compared",
    "CREATE TABLE d.x (id int, UNIQUE (id) ENFORCED)": "UNIQUE is stored and not enforced",
    "CREATE TABLE d.x (id int, FOREIGN KEY (id) REFERENCES d.s (id))": "FOREIGN KEY is stored and not enforced",
    "CREATE TABLE d.x (id int, FOREIGN KEY (id) REFERENCES d.s (id, b) DISABLE)": "of 1 columns refers to 2",
    "CREATE TABLE d.x (id int NOT NULL VALIDATE)": "rows that are there are not checked",
    "CREATE TABLE d.x (id int NOT NULL ENABLE DISABLE)": "twice",
    "CREATE TABLE d.x (id int, UNIQUE (id, id) DISABLE)": "twice",
    "CREATE TABLE d.x (id int NOT NULL, CONSTRAINT c NOT NULL)": "type",
    "CREATE TABLE d.x (id int NOT NULL NOT NULL)": "column id of d.x has NOT NULL twice",
    "CREATE TABLE d.x (id int DEFAULT 1 DEFAULT 2)": "column id of d.x has DEFAULT twice",
    "CREATE TABLE d.x (id int DEFAULT)": "a value was expected",
    "CREATE TABLE d.x (id int CHECK ())": "no condition",
    "CREATE TABLE d.x (id int CHECK (id > (SELECT 1)))": "no queries",
    "CREATE TABLE d.x (id int DEFAULT (SELECT 1))": "no queries",
    "CREATE TABLE d.x (id int, CHECK (other > 1))": "cannot be asked",
    "CREATE TABLE d.x (id int, CHECK (max(id) > 1))": "cannot be asked",
    "CREATE TABLE d.x (id int, CHECK (explode(array(true))))": "cannot be asked",
    "CREATE TABLE d.x (id int, CHECK (id + 1 > 2) DISABLE, CHECK (nope) DISABLE)": "cannot be asked",
    "CREATE TABLE d.x (id int, CHECK (id +))": "cannot be asked",
    "CREATE TABLE d.x (id int DEFAULT id)": "cannot be stored",
    "CREATE TABLE d.x (id int DEFAULT max(1))": "cannot be stored",
    "CREATE TABLE d.x (id int DEFAULT explode(array(1)))": "cannot be stored",
    "CREATE TABLE d.x (id int DEFAULT array(1))": "cannot be stored",
    "CREATE TABLE d.x (id tinyint DEFAULT 300)": "cannot be stored",
    "CREATE TABLE d.x (id varchar(2) DEFAULT 'long')": "cannot be stored",
    "CREATE TABLE d.x (id int, UNIQUE (nope) DISABLE)": "no column nope for UNIQUE",
    "CREATE TABLE d.x (id int NOT NULL) TBLPROPERTIES ('transactional' = 'false')": "d.x is no ACID table",
    "ALTER TABLE d.s ADD COLUMNS (x int PRIMARY KEY)": "comes by itself",
    "ALTER TABLE d.s ADD CONSTRAINT c CHECK (nope = 1)": "cannot be asked",
    "ALTER TABLE d.s ADD CONSTRAINT c UNIQUE (id)": "not enforced",
    "ALTER TABLE d.s ADD CONSTRAINT c NOT NULL": "was expected",
    "ALTER TABLE d.s DROP CONSTRAINT c": "no constraint c",
    "ALTER TABLE d.s ALTER COLUMN id DROP NOT NULL": "has no NOT NULL",
    "ALTER TABLE d.s ALTER COLUMN id SET DEFAULT 'x' || 1": "cannot be stored",
    "ALTER TABLE d.s ALTER COLUMN nope SET NOT NULL": "no column nope",
    "ALTER TABLE d.s ALTER COLUMN id SET CHECK (id > 1)": "ADD CONSTRAINT",
    "CREATE TABLE d.x (id int, CONSTRAINT c UNIQUE (id) DISABLE, CONSTRAINT c CHECK (id > 1))": "already exists",
}  # fmt: skip


def test_what_cannot_be_kept_is_refused(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.s (id int, b string)")
    wrong: dict[str, Any] = {}
    for text, words in REFUSED.items():
        try:
            acid.sql(text)
            wrong[text] = "was accepted"
        except HiveAcidError as error:
            if words not in str(error) or "\n" in str(error):
                wrong[text] = str(error)
        except Exception as error:
            wrong[text] = repr(error)[:300]
    assert not wrong, "\n".join(f"{text}: {found}" for text, found in wrong.items())
    assert [row.tableName for row in acid.sql("SHOW TABLES IN d").collect()] == ["s"]
    assert acid.connection.table("d", "s").constraints == ()


def test_constraints_are_added_and_dropped(acid: AcidSession) -> None:
    sql = acid.sql
    sql("CREATE TABLE d.t (id int, v int, s string)")
    sql("INSERT INTO d.t VALUES (NULL, -1, NULL)")
    sql("ALTER TABLE d.t ADD CONSTRAINT v_big CHECK (v > 0)")
    sql("ALTER TABLE d.t CHANGE COLUMN id id bigint CONSTRAINT id_there NOT NULL ENABLE")
    sql("ALTER TABLE d.t ALTER COLUMN s SET DEFAULT 'one'")
    sql("ALTER TABLE d.t ALTER COLUMN s SET DEFAULT 'two'")
    sql("ALTER TABLE d.t ADD PRIMARY KEY (id) DISABLE NOVALIDATE")
    assert meanings(acid) == [
        "CHECK  v > 0 True True None ",
        "DEFAULT s 'two' True True None ",
        "NOT_NULL id  True True None ",
        "PRIMARY_KEY id  False False None ",
    ]
    assert [one.type for one in acid.connection.table("d", "t").columns] == ["bigint", "int", "string"]
    with pytest.raises(ConstraintError, match=r"constraint v_big of d\.t: CHECK \(v > 0\) is false"):
        sql("UPDATE d.t SET id = 2")
    sql("UPDATE d.t SET id = 2, v = 3")
    with pytest.raises(ColumnError, match="has NOT NULL twice"):
        sql("ALTER TABLE d.t CHANGE id id bigint NOT NULL")
    with pytest.raises(HiveAcidError, match="already exists"):
        sql("ALTER TABLE d.t ADD CONSTRAINT id_there CHECK (id > 0)")
    sql("ALTER TABLE d.t DROP CONSTRAINT V_big")
    sql("ALTER TABLE d.t DROP CONSTRAINT IF EXISTS v_big")
    with pytest.raises(NoSuchObjectError, match="no constraint v_big"):
        sql("ALTER TABLE d.t DROP CONSTRAINT v_big")
    sql("ALTER TABLE d.t ALTER COLUMN id DROP NOT NULL")
    sql("ALTER TABLE d.t ALTER COLUMN s DROP DEFAULT")
    sql("INSERT INTO d.t (v) VALUES (-5)")
    assert sorted(map(tuple, acid.table("d.t").collect()), key=str) == [(2, 3, None), (None, -5, None)]


def test_renamed_columns_keep_what_is_of_them(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int NOT NULL, v int DEFAULT 5)")
    acid.sql("ALTER TABLE d.t RENAME COLUMN id TO key")
    acid.sql("ALTER TABLE d.t CHANGE v w int")
    acid.sql("INSERT INTO d.t (key) VALUES (1)")
    assert [tuple(row) for row in acid.table("d.t").collect()] == [(1, 5)]
    with pytest.raises(ConstraintError, match="column key is NOT NULL"):
        acid.sql("INSERT INTO d.t VALUES (NULL, 1)")


CHECKS = {
    "v > 0": True,
    "`v` IS NOT NULL": True,
    "id > 0 AND abs(V) < 3": True,
    "id <> 'v' AND s <> \"the v\"": False,
    "id > 0 -- and no v": True,
    "vv.v > 0": True,
    "length(s) > 0": False,
    "s <> 'it\\'s v'": False,
}
"""CHECKs, and whether `v` is taken for a name in them: once too often is no harm."""


@pytest.mark.parametrize("check", CHECKS)
def test_a_column_that_a_check_names_is_not_renamed(acid: AcidSession, check: str) -> None:
    constraint = Constraint(ConstraintKind.CHECK, (), "asked", expression=check)
    acid.create_table("d.t", {"id": "int", "v": "int", "s": "string"}, constraints=[constraint])
    for rename in ("RENAME COLUMN v TO w", "CHANGE v w bigint COMMENT 'new'"):
        if not CHECKS[check]:
            acid.sql(f"ALTER TABLE d.t {rename}")
            break
        with pytest.raises(ColumnError, match="names v: DROP CONSTRAINT asked before it is renamed"):
            acid.sql(f"ALTER TABLE d.t {rename}")
        with pytest.raises(ColumnError, match="names V: DROP CONSTRAINT asked"):
            acid.rename_column("d.t", "V", "w")
        assert [(one.name, one.type, one.comment) for one in acid.connection.table("d", "t").columns] == [
            ("id", "int", None),
            ("v", "int", None),
            ("s", "string", None),
        ]
    acid.sql("ALTER TABLE d.t DROP CONSTRAINT asked")
    acid.sql(f"ALTER TABLE d.t RENAME COLUMN {'v TO w' if CHECKS[check] else 'w TO x'}")


def test_columns_are_added_with_constraints(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    acid.sql("INSERT INTO d.t VALUES (1)")
    acid.sql(
        "ALTER TABLE d.t ADD COLUMNS (v int NOT NULL DEFAULT 3 COMMENT 'three', s string DEFAULT 'x' CHECK (s <> 'y'), "
        "CONSTRAINT sum CHECK (v + id < 100)) CASCADE"
    )
    acid.sql("ALTER TABLE d.t ADD COLUMN w bigint DEFAULT 7 NOT NULL")
    assert [(one.name, one.comment) for one in acid.connection.table("d", "t").columns] == [
        ("id", None),
        ("v", "three"),
        ("s", None),
        ("w", None),
    ]
    acid.sql("INSERT INTO d.t (id) VALUES (2)")
    found = sorted(map(tuple, acid.table("d.t").collect()), key=str)
    assert found == [(1, None, None, None), (2, 3, "x", 7)], "rows that are there have null"
    for row in ("3, NULL, 'x', 1", "3, 1, 'y', 1", "3, 97, 'x', 1"):
        with pytest.raises(ConstraintError):
            acid.sql(f"INSERT INTO d.t VALUES ({row})")
    acid.sql("UPDATE d.t SET v = 1, w = 1 WHERE id = 1")
    wrong = {
        "(x int PRIMARY KEY)": "a PRIMARY KEY that is enforced comes by itself",
        "(x int DEFAULT 'text')": "DEFAULT 'text' of column x of d.t cannot be stored there",
        "(x int CHECK (nothere > 1))": "nothere",
        "(x int NOT NULL, CONSTRAINT c NOT NULL)": "",
        "(id int NOT NULL)": "has a column 'id' already",
    }
    before = acid.connection.table("d", "t")
    for text, words in wrong.items():
        with pytest.raises((ColumnError, ConstraintError, SqlError), match=words):
            acid.sql(f"ALTER TABLE d.t ADD COLUMNS {text}")
    after = acid.connection.table("d", "t")
    assert (after.columns, after.constraints) == (before.columns, before.constraints)


def test_a_frame_without_a_column_with_a_default_is_written(acid: AcidSession, spark: SparkSession) -> None:
    """By its names, as Spark has it; by the places of its columns, one for each is asked."""
    acid.sql("CREATE TABLE d.t (id int, v string DEFAULT 'x', w int DEFAULT 1 + 1) PARTITIONED BY (p int DEFAULT 9)")
    acid.insert("d.t", spark.createDataFrame([(6, 3)], "id int, p int"))
    with hive_acid.spark.enable(spark, acid.connection.uri):
        rows = spark.createDataFrame([(1,)], "id int")
        rows.writeTo("d.t").append()
        spark.createDataFrame([(2, 5)], "w int, ID int").write.mode("append").saveAsTable("d.t")
        spark.sql("INSERT INTO d.t BY NAME SELECT 7 AS id")
        found = sorted(map(tuple, spark.table("d.t").collect()))
        assert found == [(1, "x", 2, 9), (5, "x", 2, 9), (6, "x", 2, 3), (7, "x", 2, 9)]
        with pytest.raises(ColumnError):
            rows.write.insertInto("d.t")


CONSTANTS = {
    "a int": "5",
    "b decimal(10,2)": "-1.5",
    "c string": "'it'",
    "d boolean": "TRUE",
    "e string": "NULL",
    "f date": "DATE '2020-02-29'",
    "g date": "CAST('2020-01-01' AS DATE)",
    "h timestamp": "TIMESTAMP '2020-01-01 10:00:00.5'",
    "i bigint": "(7)",
    "j double": "1e3",
    "k varchar(3)": "''",
    "l char(4)": "'ab'",
}


def test_a_stream_has_the_defaults_that_spark_has(acid: AcidSession) -> None:
    columns = ", ".join(f"{name} DEFAULT {value}" for name, value in CONSTANTS.items())
    acid.sql(f"CREATE TABLE d.t (id int, {columns}) PARTITIONED BY (p int DEFAULT 3)")
    acid.sql("INSERT INTO d.t (id) VALUES (1)")
    address = acid.connection.uri
    with StreamingConnection(address, "d.t", JsonWriter()) as stream, stream.transaction():
        stream.write('{"id": 2}\n{"id": 3, "c": null, "a": 8, "p": 4}')
    with StreamingConnection(address, "d.t", ArrowWriter()) as stream, stream.transaction():
        stream.write(pa.table({"ID": pa.array([4], pa.int32())}))
    one, two, three, four = (tuple(row) for row in acid.table("d.t").orderBy("id").collect())
    assert one[1:] == two[1:] == four[1:]
    assert (three[1], three[3], three[-1]) == (8, None, 4)
    assert three[4:-1] == one[4:-1]
    acid.sql("ALTER TABLE d.t ALTER COLUMN a SET DEFAULT 1 + 1")
    for writer, records in ((JsonWriter(), '{"id": 2}'), (ArrowWriter(), pa.table({"id": [1]}))):
        with (
            StreamingConnection(address, "d.t", writer) as stream,
            pytest.raises(SerializationError, match=r"does not name a, whose DEFAULT 1 \+ 1 only Spark computes"),
            stream.transaction(),
        ):
            stream.write(records)
    with StreamingConnection(address, "d.t", JsonWriter()) as stream, stream.transaction():
        stream.write('{"id": 9, "a": 1}')
    assert acid.table("d.t").count() == 5


def test_a_table_that_is_replaced_keeps_its_constraints(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int NOT NULL)")
    with pytest.raises(ConstraintError):
        acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT CAST(NULL AS int) AS id")
    acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 1 AS id")
    acid.sql("CREATE OR REPLACE TABLE d.t (id int NOT NULL)")
    assert len(meanings(acid)) == 1
    acid.sql("CREATE OR REPLACE TABLE d.t (id int NOT NULL DEFAULT 1)")
    assert len(meanings(acid)) == 2
    with pytest.raises(ColumnError, match="not compared"):
        acid.sql("CREATE OR REPLACE TABLE d.t (id array<int>, PRIMARY KEY (id))")


def test_the_verb_takes_them_too(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int"}, constraints=[Constraint(ConstraintKind.NOT_NULL, ("id",), "id_there")])
    with pytest.raises(ConstraintError, match="id_there"):
        acid.insert("d.t", acid.spark.sql("SELECT CAST(NULL AS int) AS id"))
    acid.create_table("d.t", {"id": "int"}, if_not_exists=True)
    with pytest.raises(AlreadyExistsError):
        acid.sql("CREATE TABLE d.t (id int NOT NULL)")


def test_a_column_may_be_called_like_a_constraint(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TABLE d.t (primary int, unique string, check int, foreign array<int>, default int, constraint int)"
    )
    assert len(acid.connection.table("d", "t").columns) == 6
    with pytest.raises(SqlError):
        acid.sql("CREATE TABLE d.u (id int NOT)")
