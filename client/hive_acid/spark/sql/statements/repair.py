"""MSCK REPAIR TABLE: partitions that the metastore and the file system do not both have."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.spark.sql.partitions import partitions_where
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.spark.tables.repair import astray


def repair(run: Run, cursor: Cursor) -> DataFrame | None:
    """``MSCK [REPAIR] TABLE t [ADD | DROP | SYNC PARTITIONS] [[PARTITION] (…)]``, ``REPAIR TABLE t …``.

    None if the table is not ours. Without REPAIR it is told what would be done.
    """
    tells = cursor.accept("MSCK") and not cursor.accept("REPAIR")
    if not tells:
        cursor.accept("REPAIR")
    cursor.expect("TABLE")
    table = run.names.written(cursor.name())
    if table is None:
        return None
    what = "ADD"
    if cursor.peek() in ("ADD", "DROP", "SYNC"):
        what = cursor.one_of("ADD", "DROP", "SYNC")
        cursor.expect("PARTITIONS")
    of_some = cursor.accept("PARTITION") or cursor.sees("(")
    inside = cursor.parentheses("a partition") if of_some else None
    cursor.finish()
    found = astray(run.acid.connection, table)
    added, dropped = dict(found.unregistered), list(found.gone)
    if inside is not None:
        meant = set(partitions_where(run, table, inside, [*added, *dropped]))
        added = {name: place for name, place in added.items() if name in meant}
        dropped = [name for name in dropped if name in meant]
    if tells:
        rows = [*((name, "the metastore") for name in added), *((name, "the file system") for name in dropped)]
        return run.rows(["partition", "missing_in"], sorted(rows))
    if what != "DROP":
        add_found(run, table, added)
    if what != "ADD" and dropped:
        run.acid.drop_partitions(table, sorted(dropped), if_exists=True)
    return run.nothing()


def add_found(run: Run, table: Table, found: Mapping[str, str]) -> None:
    """Register partitions that were found, each with its directory."""
    if found:
        run.acid.register_partitions(table, dict(sorted(found.items())))
