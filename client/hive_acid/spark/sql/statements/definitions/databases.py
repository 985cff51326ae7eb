"""CREATE, ALTER and DROP DATABASE, and COMMENT ON what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.errors import SqlError
from hive_acid.spark.sql.columns import comment, owner, properties
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import DATABASE_WORDS, Cursor


def create_database(run: Run, cursor: Cursor) -> DataFrame:
    """``CREATE DATABASE [IF NOT EXISTS] d [COMMENT 'text'] [LOCATION 'place'] [MANAGEDLOCATION 'place'] [WITH
    DBPROPERTIES (…)]``.
    """
    cursor.expect("CREATE")
    cursor.one_of(*DATABASE_WORDS)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = run.names.database(cursor.name("a database's name"))
    said = comment(cursor)
    location = cursor.string("a location") if cursor.accept("LOCATION") else None
    managed = cursor.string("a location") if cursor.accept("MANAGEDLOCATION") else None
    given = properties(cursor) if cursor.accept("WITH", "DBPROPERTIES") else {}
    cursor.finish()
    run.acid.create_database(
        name,
        location=location,
        managed_location=managed,
        comment=said,
        properties=given,
        if_not_exists=if_not_exists,
    )
    return run.nothing()


def drop_database(run: Run, cursor: Cursor) -> DataFrame:
    """``DROP DATABASE [IF EXISTS] d [RESTRICT | CASCADE]``."""
    cursor.expect("DROP")
    cursor.one_of(*DATABASE_WORDS)
    if_exists = cursor.accept("IF", "EXISTS")
    name = run.names.database(cursor.name("a database's name"))
    cascade = not cursor.accept("RESTRICT") and cursor.accept("CASCADE")
    cursor.finish()
    run.acid.drop_database(name, cascade=cascade, if_exists=if_exists)
    return run.nothing()


def alter_database(run: Run, cursor: Cursor) -> DataFrame:
    """``ALTER DATABASE d SET DBPROPERTIES (…) | OWNER [USER | ROLE] o | [MANAGED]LOCATION 'place'``."""
    cursor.expect("ALTER")
    cursor.one_of(*DATABASE_WORDS)
    name = run.names.database(cursor.name("a database's name"))
    cursor.expect("SET")
    change: Callable[[Any], None]
    if cursor.accept("DBPROPERTIES") or cursor.accept("PROPERTIES"):
        given = properties(cursor)

        def change(found: Any) -> None:
            found.parameters = {**(found.parameters or {}), **given}

    elif cursor.accept("OWNER"):
        kind, who = owner(cursor)

        def change(found: Any) -> None:
            found.ownerType, found.ownerName = kind, who

    elif cursor.sees("LOCATION") or cursor.sees("MANAGEDLOCATION"):
        field = "locationUri" if cursor.one_of("LOCATION", "MANAGEDLOCATION") == "LOCATION" else "managedLocationUri"
        place = cursor.string("a location")

        def change(found: Any) -> None:
            setattr(found, field, place)

    else:
        raise cursor.error("of ALTER DATABASE, SET DBPROPERTIES, OWNER, LOCATION and MANAGEDLOCATION are understood")
    cursor.finish()
    _alter(run, name, change)
    return run.nothing()


def comment_on(run: Run, cursor: Cursor) -> DataFrame | None:
    """``COMMENT ON DATABASE | TABLE | COLUMN name IS 'text' | NULL``; None for a table that is not ours."""
    cursor.expect("COMMENT", "ON")
    what = cursor.one_of(*DATABASE_WORDS, "TABLE", "COLUMN")
    name = cursor.name(f"a {what.lower()}'s name")
    cursor.expect("IS")
    text = None if cursor.accept("NULL") else cursor.string("a comment")
    cursor.finish()
    if what in DATABASE_WORDS:

        def change(found: Any) -> None:
            found.description = text

        _alter(run, run.names.database(name), change)
        return run.nothing()
    if what == "TABLE":
        table = run.names.defined(name)
        if table is None:
            return None
        run.acid.set_properties(table, {"comment": text})
        return run.nothing()
    if len(name.parts) < 2:
        raise SqlError(f"COMMENT ON COLUMN {name}: the table is to be named, too, as in t.{name}")
    table = run.names.defined(name.parent)
    if table is None:
        return None
    run.acid.set_column_comment(table, name.parts[-1], text)
    return run.nothing()


def _alter(run: Run, name: str, change: Callable[[Any], None]) -> None:
    """Change what the metastore says of a database. Raises NoSuchObjectError."""
    found = run.acid.connection.call("get_database", name)
    change(found)
    run.acid.connection.call("alter_database", name, found)
