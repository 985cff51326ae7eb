"""LOAD DATA, EXPORT and IMPORT."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.spark.sql.partitions import parenthesized_partition, static_values
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor


def load_data(run: Run, cursor: Cursor) -> DataFrame | None:
    """``LOAD DATA [LOCAL] INPATH 'path' [OVERWRITE] INTO TABLE t [PARTITION (…)]``; None if the table is not ours.

    Files of LOCAL paths are copied, others are moved, as Hive has it.
    """
    cursor.expect("LOAD", "DATA")
    local = cursor.accept("LOCAL")
    cursor.expect("INPATH")
    path = cursor.string("a path")
    overwrite = cursor.accept("OVERWRITE")
    cursor.expect("INTO", "TABLE")
    table = run.names.written(cursor.name())
    if table is None:
        return None
    inside = parenthesized_partition(cursor)
    cursor.finish()
    partition = static_values(run, table, inside)
    run.acid.load_data(table, path, overwrite=overwrite, partition=partition, copy=local)
    return run.nothing()


def export(run: Run, cursor: Cursor) -> DataFrame:
    """``EXPORT TABLE t [PARTITION (…)] TO 'location'``."""
    cursor.expect("EXPORT", "TABLE")
    table = run.names.known(cursor.name())
    inside = parenthesized_partition(cursor)
    cursor.expect("TO")
    location = cursor.string("a location")
    cursor.finish()
    partition = static_values(run, table, inside)
    run.acid.export_table(table, location, partition=partition)
    return run.nothing()


def import_(run: Run, cursor: Cursor) -> DataFrame:
    """``IMPORT TABLE t FROM 'location' [LOCATION 'place']``."""
    cursor.expect("IMPORT")
    if not cursor.accept("TABLE"):
        raise cursor.error("IMPORT TABLE name FROM 'location' [LOCATION 'place'] makes an ACID table, and no other")
    name = run.names.full(cursor.name())
    if cursor.sees("PARTITION"):
        raise cursor.error("IMPORT takes the whole of an export: EXPORT TABLE t PARTITION (…) writes one partition")
    cursor.expect("FROM")
    source = cursor.string("a location")
    place = cursor.string("a location") if cursor.accept("LOCATION") else None
    cursor.finish()
    run.acid.import_table(source, name, location=place)
    return run.nothing()
