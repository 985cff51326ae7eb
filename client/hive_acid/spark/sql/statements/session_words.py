"""Statements about Spark's session: what it keeps in memory, and SET."""

from __future__ import annotations

import re

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hive_acid.catalog.about import AboutTable
from hive_acid.spark.sql.mentions import mentions_ours
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.transactions import set_autocommit
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.spark.values.quoting import quoted

_OPTION = re.compile(r"""(['"]?)storageLevel\1\s*=?\s*(['"])(?P<level>\w+)\2""", re.IGNORECASE)
_DASHED = re.compile(r"\s*SET\s+(\w[\w.:]*-[\w.:-]*)\s*((?:=.*?)?)\s*;?\s*", re.IGNORECASE | re.DOTALL)
"""Names that Spark takes in quotes only, as Hive's users have them without."""
_QUERY = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def cache(run: Run, cursor: Cursor) -> DataFrame | None:
    """``CACHE [LAZY] TABLE t [OPTIONS ('storageLevel' = 'DISK_ONLY')] [AS query]``; None if nothing of it is ours.

    A table is kept as it is now: after a change its files are read again.
    """
    cursor.expect("CACHE")
    lazy = cursor.accept("LAZY")
    cursor.expect("TABLE")
    at = cursor.start
    name = cursor.name()
    level = _level(cursor)
    query = cursor.rest() if cursor.accept("AS") or cursor.peek() in _QUERY else None
    cursor.finish()
    if query is not None:
        if not run.reads_ours(query):
            return None
        frame = run.prepared(query).frame(of_view=True)
        if run.explains:
            return run.nothing()
        frame.createTempView(".".join(map(quoted, name.parts)))
        kept = frame.persist(level)
    else:
        table = run.names.source(name.parts)
        if table is None:
            return None
        if isinstance(table, AboutTable):
            raise Cursor(cursor.text[at:]).error(f"{name} tells about a table: keep its frame, acid.table(…).cache()")
        frame = run.acid.table(table)
        if run.explains:
            return run.nothing()
        kept = run.acid.kept.keep(table, frame, level)
    if not lazy:
        kept.write.format("noop").mode("overwrite").save()
    return run.nothing()


def _level(cursor: Cursor) -> StorageLevel:
    if not cursor.accept("OPTIONS"):
        return StorageLevel.MEMORY_AND_DISK_DESER
    (item, *others) = cursor.items("options")
    told = _OPTION.fullmatch(item.source)
    level = getattr(StorageLevel, told["level"].upper(), None) if told else None
    if others or not isinstance(level, StorageLevel):
        raise item.error("the option of CACHE TABLE is 'storageLevel', with a level of Spark's, as 'DISK_ONLY'")
    return level


def uncache(run: Run, cursor: Cursor) -> DataFrame | None:
    """``UNCACHE TABLE [IF EXISTS] t``; None if it is not ours."""
    cursor.expect("UNCACHE", "TABLE")
    cursor.accept("IF", "EXISTS")
    table = run.names.read(cursor.name().parts)
    cursor.finish()
    if table is None:
        return None
    if not run.explains:
        run.acid.kept.drop(table)
    return run.nothing()


def refresh(run: Run, cursor: Cursor) -> DataFrame | None:
    """``REFRESH [TABLE] t``: each statement sees a table as it is now, and what is kept of it is made anew.

    None if it is not ours.
    """
    cursor.expect("REFRESH")
    cursor.accept("TABLE")
    if cursor.sees("FUNCTION") or not cursor.sees_identifier():
        return None
    name = cursor.name()
    table = run.names.read(name.parts) if cursor.at_end else None
    if table is None:
        return None
    if run.acid.kept.has(table) and not run.explains:
        run.acid.kept.drop(table)
        run.acid.kept.keep(table, run.acid.table(table), None)
    return run.nothing()


def clear(run: Run, cursor: Cursor) -> None:
    """``CLEAR CACHE``: of the metastore's tables, too; the rest is Spark's."""
    if cursor.sees("CLEAR", "CACHE") and not run.explains:
        run.acid.kept.clear()


def set_(run: Run, cursor: Cursor) -> DataFrame | None:
    """``SET`` is Spark's, but for AUTOCOMMIT and what Spark cannot do with the metastore's tables.

    Names with ``-`` are Hive's, too. Raises SqlError.
    """
    cursor.expect("SET")
    if (done := set_autocommit(run, cursor)) is not None:
        return done
    if cursor.sees("ROLE"):
        raise cursor.error("SET ROLE: all roles of a user count at any time, so there is none to set")
    if cursor.peek() in ("VAR", "VARIABLE") and mentions_ours(run.names, cursor.text):
        raise cursor.error(
            "a variable's value is computed by Spark, which does not find tables of the metastore: take the value by "
            "acid.sql(…).first(), and give it to the next statement as an argument"
        )
    found = _DASHED.fullmatch(cursor.text)
    return None if found is None else run.untouched(f"{run.explains}SET {quoted(found[1])}{found[2]}")
