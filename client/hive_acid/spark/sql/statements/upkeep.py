"""TRUNCATE and ANALYZE of tables that are there."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.spark.sql.partitions import parenthesized_partition, static_values
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor


def truncate(run: Run, cursor: Cursor) -> DataFrame | None:
    """``TRUNCATE TABLE t [PARTITION (…)]``; None if the table is not ours."""
    cursor.expect("TRUNCATE", "TABLE")
    table = run.names.written(cursor.name())
    if table is None:
        return None
    inside = parenthesized_partition(cursor)
    cursor.finish()
    run.acid.truncate(table, static_values(run, table, inside))
    return run.nothing()


def analyze(run: Run, cursor: Cursor) -> DataFrame | None:
    """``ANALYZE TABLE t [PARTITION (…)] COMPUTE STATISTICS [FOR [ALL] COLUMNS [a, b]]``; None if it is not ours."""
    if cursor.sees("ANALYZE", "TABLES"):
        return _analyze_all(run, cursor)
    cursor.expect("ANALYZE", "TABLE")
    table = run.names.written(cursor.name())
    if table is None:
        return None
    inside = parenthesized_partition(cursor)
    cursor.expect("COMPUTE", "STATISTICS")
    columns: list[str] = []
    if cursor.accept("FOR", "ALL", "COLUMNS"):
        columns = [column.name for column in table.columns]
    elif cursor.accept("FOR", "COLUMNS"):
        listed = [] if cursor.at_end else cursor.until().separated("columns")
        columns = [item.identifier("a column").lower() for item in listed] or [one.name for one in table.columns]
    else:
        cursor.accept("NOSCAN")
    cursor.finish()
    partition = static_values(run, table, inside)
    run.acid.analyze(table, columns=columns, partition=partition)
    return run.nothing()


def _analyze_all(run: Run, cursor: Cursor) -> DataFrame | None:
    """``ANALYZE TABLES [IN d] COMPUTE STATISTICS [NOSCAN]``, of those with transactions; None if Spark has them."""
    cursor.expect("ANALYZE", "TABLES")
    database = run.names.current_database
    if cursor.accept("IN") or cursor.accept("FROM"):
        database = run.names.database(cursor.name("a database's name"))
    cursor.expect("COMPUTE", "STATISTICS")
    cursor.accept("NOSCAN")
    cursor.finish()
    if run.beside_spark and not run.names.has_database(database):
        return None
    for name in sorted(run.acid.connection.call("get_tables", database, "*")):
        table = run.acid.connection.table(database, name)
        if table.is_transactional and not table.is_view:
            run.acid.analyze(table)
    return run.nothing()
