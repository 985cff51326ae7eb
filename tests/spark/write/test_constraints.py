"""NOT NULL, CHECK and DEFAULT that are in the metastore, of whoever made them: all writers keep to them.

What each writer is to do is told by a model in Python: a row that breaks a constraint fails the whole statement, which
leaves nothing; any other row is stored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.catalog.constraints import Constraint, structs
from hive_acid.catalog.references import Definitions
from hive_acid.errors import (
    ConstraintError,
    HiveAcidError,
    StreamingConnectionError,
    TableChangedError,
    UnsupportedTableError,
)
from hive_acid.spark import AcidSession
from hive_acid.streaming import JsonWriter, StreamingConnection
from hive_acid.wire import ConstraintKind, ttypes
from hive_acid.write.table_write import TableWrite
from tests.sampling import Sample
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.tables.test_load import write_orc

pytestmark = pytest.mark.spark

COLUMNS = {"id": "int", "v": "double", "c": "char(4)", "s": "string", "n": "struct<a:int,b:string>"}
KEY = {"p": "string"}
SCHEMA = "id int, v double, c string, s string, n struct<a:int,b:string>, p string"
SCHEMA_NAMES = ("id", "v", "c", "s", "n", "p")
NOT_NULL, CHECK, DEFAULT = ConstraintKind.NOT_NULL, ConstraintKind.CHECK, ConstraintKind.DEFAULT
CONSTRAINTS = (
    Constraint(NOT_NULL, ("id",), "id_there"),
    Constraint(NOT_NULL, ("p",), "p_there"),
    Constraint(CHECK, ("v",), "v_big", expression="v >= 0 -- or null"),
    Constraint(CHECK, (), "c_good", expression="C <> 'no' AND t.s <> concat('it''s ', 'bad')"),
    Constraint(CHECK, ("n",), "n_good", expression="n.a < 10"),
    Constraint(DEFAULT, ("s",), "s_default", expression="'unsaid'"),
    Constraint(NOT_NULL, ("v",), "v_there", enabled=False),
    Constraint(CHECK, ("v",), "v_small", enabled=False, expression="v < 0"),
    Constraint(ConstraintKind.UNIQUE, ("s",), "s_once", enabled=False),
    Constraint(ConstraintKind.PRIMARY_KEY, ("id",), "pk", enabled=False),
)
FIRST = (1, 1.0, "yes", "old", (1, "x"), "a")
Row = tuple[Any, ...]
ROWS: dict[str, tuple[Row, str | None]] = {
    "good": ((2, 0.5, "yes", "new", (2, "y"), "b"), None),
    "nothing but what must be": ((2, None, None, None, None, "b"), None),
    "null in a struct": ((2, 1.0, "yes", "new", (None, None), "b"), None),
    "NaN is the greatest": ((2, math.nan, "yes", "new", (2, "y"), "b"), None),
    "-0.0 is 0": ((2, -0.0, "yes", "new", (2, "y"), "b"), None),
    "CHAR without value": ((2, 1.0, "", "", (2, "y"), "b"), None),
    "no id": ((None, 1.0, "yes", "new", (2, "y"), "b"), "id_there"),
    "no key": ((2, 1.0, "yes", "new", (2, "y"), None), "p_there"),
    "an empty key, which is none": ((2, 1.0, "yes", "new", (2, "y"), ""), "p_there"),
    "negative": ((2, -1.0, "yes", "new", (2, "y"), "b"), "v_big"),
    "blanks of CHAR": ((2, 1.0, "no ", "new", (2, "y"), "b"), "c_good"),
    "a text with a quote": ((2, 1.0, "yes", "it's bad", (2, "y"), "b"), "c_good"),
    "nested": ((2, 1.0, "yes", "new", (10, "y"), "b"), "n_good"),
}


def add(acid: AcidSession, *constraints: Constraint) -> None:
    """As another client has it."""
    keys, foreign, unique, not_null, default, check = structs("d", "t", constraints)
    call = acid.connection.call
    for one in keys:
        call("add_primary_key", ttypes.AddPrimaryKeyRequest([one]))
    for one in unique:
        call("add_unique_constraint", ttypes.AddUniqueConstraintRequest([one]))
    for one in not_null:
        call("add_not_null_constraint", ttypes.AddNotNullConstraintRequest([one]))
    for one in default:
        call("add_default_constraint", ttypes.AddDefaultConstraintRequest([one]))
    for one in check:
        call("add_check_constraint", ttypes.AddCheckConstraintRequest([one]))
    assert not foreign


def made(acid: AcidSession, *, keyed: bool = True, insert_only: bool = False) -> AcidSession:
    """A table with a row, and the constraints of its columns."""
    properties = {"transactional_properties": "insert_only"} if insert_only else {}
    acid.create_table("d.t", COLUMNS | KEY, partitioned_by=list(KEY) if keyed else [], properties=properties)
    acid.insert("d.t", acid.spark.createDataFrame([FIRST], SCHEMA))
    add(acid, *(one for one in CONSTRAINTS if keyed or one.columns != ("p",)))
    return acid


def rows(acid: AcidSession) -> list[str]:
    """As texts, in which NaN is itself and -0.0 is not 0."""
    found = acid.table("d.t").select("id", "v", "c", "s", "n.a", "n.b", "p").collect()
    return sorted(str(tuple(row)) for row in found)


def shown(row: Row, *, keyed: bool) -> str:
    """A row as `rows` has it."""
    number, v, c, s, n, p = row
    return str(
        (number, v, None if c is None else f"{c.rstrip(' '):4}", s, *(n or (None, None)), (p or None) if keyed else p)
    )


# --- writers --------------------------------------------------------------------------------------

Writer = Callable[[AcidSession, Row], Any]
_batches = itertools.count()


def source(acid: AcidSession, row: Row) -> Any:
    return acid.spark.createDataFrame([row], SCHEMA)


def by_sql(text: str, **limits: int) -> Writer:
    def write(acid: AcidSession, row: Row) -> None:
        source(acid, row).createOrReplaceTempView("given")
        try:
            with limited(acid, **limits):
                acid.sql(text)
        finally:
            acid.spark.catalog.dropTempView("given")

    return write


def update(acid: AcidSession, row: Row) -> None:
    values = {name: F.lit(value) for name, value in zip(SCHEMA_NAMES, row, strict=True) if name != "n"}
    n = F.lit(None) if row[4] is None else F.struct(F.lit(row[4][0]).alias("a"), F.lit(row[4][1]).alias("b"))
    acid.update("d.t", {**values, "n": n})


def update_by_spark(acid: AcidSession, row: Row) -> None:
    with limited(acid, **WRITTEN):
        update(acid, row)


def multi(acid: AcidSession, row: Row) -> None:
    several = acid.multi_insert(source(acid, row))
    several.into("d.t", where="false").into("d.t").execute()


MATCHED = "MERGE INTO d.t USING given AS g ON t.s IS NULL OR t.s IS NOT NULL WHEN MATCHED THEN UPDATE SET "
SETS = ", ".join(f"{name} = g.{name}" for name in SCHEMA_NAMES)
UNMATCHED = "MERGE INTO d.t USING given AS g ON t.id = 0 WHEN NOT MATCHED THEN INSERT *"
OF_ALL = {name: f"s.{name}" for name in SCHEMA_NAMES}
ADDING: dict[str, Writer] = {
    "insert": lambda acid, row: acid.insert("d.t", source(acid, row)),
    "INSERT (columns)": by_sql("INSERT INTO d.t (p, n, s, c, v, id) SELECT p, n, s, c, v, id FROM given"),
    "evolving": lambda acid, row: acid.insert("d.t", source(acid, row), schema_evolution=True),
    "multi": multi,
    "FROM": by_sql("FROM given INSERT INTO d.t SELECT * WHERE id = 77 INSERT INTO d.t SELECT *"),
    "sink": lambda acid, row: acid.sink("d.t", query="q")(source(acid, row), next(_batches)),
    "replace where": lambda acid, row: acid.overwrite("d.t", source(acid, row), where="id = 2 OR id IS NULL"),
    "merge": by_sql(UNMATCHED),
    "merge by Spark": by_sql(UNMATCHED, **WRITTEN),
    "upsert": lambda acid, row: acid.sink("d.t", query="q", mode="upsert", keys=["id"])(
        source(acid, row), next(_batches)
    ),
}
REPLACING: dict[str, Writer] = {
    "overwrite": lambda acid, row: acid.overwrite("d.t", source(acid, row)),
    "OVERWRITE": by_sql("INSERT OVERWRITE TABLE d.t SELECT * FROM given"),
    "update": update,
    "update by Spark": update_by_spark,
    "merge update": by_sql(MATCHED + SETS),
    "merge update by Spark": by_sql(MATCHED + SETS, **WRITTEN),
    "merge with inserts": by_sql(MATCHED + SETS + " WHEN NOT MATCHED THEN INSERT (id, p) VALUES (NULL, g.p)"),
    "update from": lambda acid, row: acid.update("d.t", OF_ALL, source=source(acid, row), on="t.p <> ''"),
    "by source": by_sql(
        "MERGE INTO d.t USING (SELECT 0 AS zero) AS z ON t.id = z.zero WHEN NOT MATCHED BY SOURCE THEN UPDATE SET "
        + ", ".join(f"{name} = (SELECT first({name}) FROM given)" for name in SCHEMA_NAMES)
    ),
}
APPENDING = {*ADDING} - {"replace where", "upsert"}
OF_ALL_SHAPES = ("insert", "multi", "overwrite", "update", "merge update by Spark", "merge")
INSERT_ONLY = ("insert", "INSERT (columns)", "multi", "FROM", "overwrite", "OVERWRITE")
SHAPES = {
    "partitioned": ({"keyed": True}, (*ADDING, *REPLACING)),
    "flat": ({"keyed": False}, OF_ALL_SHAPES),
    "insert-only": ({"insert_only": True}, INSERT_ONLY),
}
"""Of a table and the writers that are tried on it."""
ROW_TURNS = 2
"""Within so many turns of a writer each row has its own."""


@pytest.mark.parametrize(
    ("shape", "name"),
    [pytest.param(how, name, id=f"{shape}-{name}") for shape, (how, names) in SHAPES.items() for name in names],
)
def test_all_writers_keep_to_constraints(acid: AcidSession, shape: dict[str, bool], name: str, sample: Sample) -> None:
    wrong: list[Any] = []
    made(acid, **shape)
    keyed = shape.get("keyed", True)
    for what in sample.of(sorted(ROWS, key=lambda what: ROWS[what][1] is None), turns=ROW_TURNS):
        row, broken = ROWS[what]
        breaks = None if broken == "p_there" and not keyed else broken
        if (name, breaks) == ("upsert", "id_there"):
            continue  # a key that is null is told before
        before, said = rows(acid), None
        kept = name in ADDING or ("verwrite" in name.lower() and keyed)
        others = [one for one in before if not one.startswith("(2, ") or name in APPENDING] if kept else []
        expected = before if breaks else sorted([*others, shown(row, keyed=keyed)])
        try:
            (ADDING | REPLACING)[name](acid, row)
        except ConstraintError as error:
            said = str(error)
        except Exception as error:
            wrong.append((what, repr(error)[:400]))
            continue
        if (said is None) != (breaks is None) or (breaks and f"constraint {breaks} of d.t: " not in str(said)):
            wrong.append((what, f"expected {breaks}, and it said {said}"))
        if (found := rows(acid)) != expected:
            wrong.append((what, f"{found} instead of {expected}"))
    assert not wrong, "\n".join(map(str, wrong))


# --- defaults -------------------------------------------------------------------------------------


def of_column(acid: AcidSession, column: str, where: str) -> list[Any]:
    return [row[0] for row in acid.table("d.t").where(where).select(column).collect()]


GOOD = (2, 0.5, "yes", "new", (2, "y"), "b")
DEFAULTS: dict[str, Callable[[AcidSession], Any]] = {
    "frame": lambda acid: acid.insert("d.t", source(acid, GOOD).drop("s")),
    "evolving": lambda acid: acid.insert("d.t", source(acid, GOOD).drop("s", "v"), schema_evolution=True),
    "overwrite": lambda acid: acid.overwrite("d.t", source(acid, GOOD).drop("s")),
    "columns": lambda acid: acid.sql("INSERT INTO d.t (p, id) VALUES ('b', 2)"),
    "evolving columns": lambda acid: acid.sql("INSERT WITH SCHEMA EVOLUTION INTO d.t (p, id) VALUES ('b', 2)"),
    "static partition": lambda acid: acid.sql("INSERT INTO d.t PARTITION (p = 'b') (id) VALUES (2)"),
    "BY NAME": lambda acid: acid.sql("INSERT INTO d.t BY NAME SELECT 2 AS id, 'b' AS p"),
    "OVERWRITE": lambda acid: acid.sql("INSERT OVERWRITE d.t (id, p) SELECT 2, 'b'"),
    "FROM": lambda acid: acid.sql("FROM (SELECT 2 AS i) x INSERT INTO d.t (id, p) SELECT i, 'b'"),
    "word": lambda acid: acid.sql("INSERT INTO d.t VALUES (2, DEFAULT, 'c', DEFAULT, DEFAULT, 'b')"),
    "MERGE": lambda acid: acid.sql(
        "MERGE INTO d.t USING (SELECT 2 AS i) g ON t.id = g.i WHEN NOT MATCHED THEN INSERT (id, p) VALUES (i, 'b')"
    ),
    "MERGE *": lambda acid: (
        acid.merge("d.t", source(acid, GOOD).drop("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    ),
    "upsert": lambda acid: acid.sink("d.t", query="q", mode="upsert", keys=["id"], schema_evolution=True)(
        source(acid, GOOD).drop("s", "v"), next(_batches)
    ),
}


@pytest.mark.parametrize("insert_only", [False, True], ids=["full", "insert-only"])
def test_columns_that_are_not_named_have_their_default(acid: AcidSession, insert_only: bool) -> None:
    made(acid, insert_only=insert_only)
    wrong = {}
    for name, write in DEFAULTS.items():
        if insert_only and ("volving" in name or "MERGE" in name or name == "upsert"):
            continue
        acid.sql("TRUNCATE TABLE d.t")
        try:
            write(acid)
        except Exception as error:
            wrong[name] = str(error)[:300]
            continue
        if (found := of_column(acid, "s", "id = 2")) != ["unsaid"]:
            wrong[name] = str(found)
    assert not wrong, wrong


def test_null_that_is_given_is_not_the_default(acid: AcidSession) -> None:
    made(acid)
    acid.sql("INSERT INTO d.t (id, s, p) VALUES (2, NULL, 'b')")
    acid.sql("INSERT INTO d.t SELECT 3, NULL, NULL, NULL, NULL, 'b'")
    assert of_column(acid, "s", "id > 1") == [None, None]


def test_a_default_is_none_of_the_values_of_another_column(acid: AcidSession) -> None:
    """Defaults are computed without the row, are cast, and may be those of partition keys."""
    acid.create_table("d.t", {"id": "bigint", "day": "date", "p": "string"}, partitioned_by=["p"])
    add(
        acid,
        Constraint(DEFAULT, ("id",), "id_d", expression="7"),
        Constraint(DEFAULT, ("day",), "day_d", expression="current_date()"),
        Constraint(DEFAULT, ("p",), "p_d", expression="'x' -- comment"),
    )
    acid.sql("INSERT INTO d.t (day) VALUES (DEFAULT)")
    acid.sql("INSERT INTO d.t (id) VALUES (8)")
    found = acid.table("d.t").select("id", "p", (F.col("day") == F.current_date()).alias("today")).orderBy("id")
    assert [tuple(row) for row in found.collect()] == [(7, "x", True), (8, "x", True)]
    add(acid, Constraint(DEFAULT, ("id",), "other", enabled=False, expression="id + 1"))
    acid.sql("INSERT INTO d.t (p) VALUES ('y')")
    assert of_column(acid, "id", "p = 'y'") == [7]


# --- while others change them ---------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["behind_lock", "publish"])
@pytest.mark.parametrize("name", ["insert", "update", "merge", "overwrite", "FROM"])
def test_constraints_count_that_are_added_meanwhile(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch, moment: str, name: str
) -> None:
    """Between the look at the table and its lock they are asked; behind it the statement fails, and tells why."""
    acid.create_table("d.t", COLUMNS | KEY, partitioned_by=list(KEY))
    acid.insert("d.t", source(acid, FIRST))
    owner = Definitions if moment == "behind_lock" else TableWrite
    original = getattr(owner, moment)
    added: list[None] = []

    def meanwhile(*given: Any, **words: Any) -> Any:
        if not added:
            added.append(None)
            add(acid, Constraint(NOT_NULL, ("v",), "v_there"))
        return original(*given, **words)

    before = rows(acid)
    monkeypatch.setattr(owner, moment, meanwhile)
    # The second INSERT of FROM begins behind the change.
    told = ConstraintError if moment == "behind_lock" or name == "FROM" else TableChangedError
    with pytest.raises(told, match="constraint v_there"):
        (ADDING | REPLACING)[name](acid, (2, None, "yes", "new", (2, "y"), "b"))
    assert rows(acid) == before
    assert acid.insert("d.t", source(acid, GOOD)) == 1


def test_a_default_that_is_made_before_the_lock_is_that_of_the_row(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.create_table("d.t", {"id": "int", "v": "int"})
    original = Definitions.behind_lock
    added: list[None] = []

    def meanwhile(*given: Any, **words: Any) -> Any:
        if not added:
            added.append(None)
            add(acid, Constraint(DEFAULT, ("v",), "v_d", expression="5"))
        return original(*given, **words)

    monkeypatch.setattr(Definitions, "behind_lock", meanwhile)
    acid.sql("INSERT INTO d.t (id) VALUES (1)")
    assert of_column(acid, "v", "id = 1") == [5]


# --- what is refused ------------------------------------------------------------------------------


def test_files_that_nobody_reads_are_refused_where_rows_must_meet_something(acid: AcidSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string", "p": "int"}, partitioned_by=["p"])
    given = write_orc(tmp_path / "in" / "a.orc", [1])
    add(acid, Constraint(DEFAULT, ("name",), "d", expression="'x'"))
    acid.load_data("d.t", str(given), partition={"p": "1"}, copy=True)
    add(acid, Constraint(NOT_NULL, ("name",), "name_there"))
    with pytest.raises(UnsupportedTableError, match=r"LOAD DATA .* d\.t .*name_there"):
        acid.load_data("d.t", str(given), partition={"p": "1"}, copy=True)
    with pytest.raises(UnsupportedTableError, match=r"ADD PARTITION .* d\.t .*name_there"):
        acid.sql(f"ALTER TABLE d.t ADD PARTITION (p = 2) LOCATION '{given.parent}'")
    acid.sql("ALTER TABLE d.t ADD PARTITION (p = 3)")
    assert given.exists()
    assert acid.table("d.t").count() == 1


@pytest.mark.parametrize("asked", ["explode(array(true, false))", "grouping(v)", "no_such(v) > 1", "w > 1", "v >"])
def test_a_check_that_spark_does_not_understand_fails_the_statement(acid: AcidSession, asked: str) -> None:
    acid.create_table("d.t", {"v": "int"})
    add(acid, Constraint(CHECK, (), "odd", expression=asked))
    with pytest.raises(ConstraintError, match=r"constraint odd of d\.t cannot be asked .*") as told:
        acid.sql("INSERT INTO d.t VALUES (1)")
    assert "\n" not in str(told.value)
    assert acid.table("d.t").count() == 0


def test_plain_tables_keep_to_constraints(acid: AcidSession) -> None:
    dummy = hive_acid.spark.session(acid.spark, acid.connection, settings={"hive.txn.manager": "DummyTxnManager"})
    dummy.create_table("d.t", COLUMNS | KEY, partitioned_by=["p"], properties={"transactional": "false"})
    add(acid, *CONSTRAINTS)
    wrong = []
    for what, (row, broken) in ROWS.items():
        before = dummy.table("d.t").count()
        try:
            dummy.insert("d.t", source(acid, row).drop("s" if what == "good" else "none"))
        except ConstraintError as error:
            if broken is None or f"constraint {broken} of d.t" not in str(error):
                wrong.append((what, str(error)))
        else:
            if broken is not None:
                wrong.append((what, "was inserted"))
        if dummy.table("d.t").count() != before + (broken is None):
            wrong.append((what, "rows"))
    assert not wrong, wrong
    assert dummy.table("d.t").where("s = 'unsaid'").count() == 1


def test_streams_without_spark(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int", "p": "string"}, partitioned_by=["p"])
    add(acid, Constraint(NOT_NULL, ("id",), "id_there"), Constraint(NOT_NULL, ("p",), "p_there"))
    with StreamingConnection(acid.connection, "d.t", JsonWriter()) as stream:
        for broken in ('{"p": "a"}', '{"id": 1, "p": ""}', '{"id": 1}'):
            stream.begin_transaction()
            with pytest.raises(HiveAcidError, match=r"constraint (id|p)_there of d\.t: column .* is NOT NULL"):
                stream.write('{"id": 1, "p": "a"}\n' + broken)
            stream.abort_transaction()
        stream.begin_transaction()
        stream.write('{"id": 1, "p": "a"}')
        stream.commit_transaction()
        add(acid, Constraint(CHECK, ("id",), "id_big", expression="id > 0"))
        with pytest.raises(HiveAcidError, match="other constraints"):
            stream.begin_transaction()
    with pytest.raises(StreamingConnectionError, match="id_big"):
        StreamingConnection(acid.connection, "d.t", JsonWriter())
    assert acid.table("d.t").count() == 1
