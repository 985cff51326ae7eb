"""The form in which names of databases, tables and partitions are stored and compared (transactions.md §1.12)."""

from __future__ import annotations

import functools

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.partitions import parse_partition_name, partition_name

TablePart = tuple[str, str, str | None]
"""Database, table, and a partition or None, as stored."""


def stored_name(name: str) -> str:
    """A database's or table's name in lower case; a database of another catalog than hive keeps it, ``@cat#db``."""
    return name.strip().lower().removeprefix("@hive#")


@functools.lru_cache(maxsize=16_384)
def stored_partition(name: str) -> str:
    """A partition's name with its keys in lower case; the values keep theirs.

    Raises MetaError if it is not of the form ``key=value/key2=value2``.
    """
    try:
        parts = parse_partition_name(name)
    except FormatError as error:
        raise MetaError(str(error)) from None
    return partition_name([key for key, _ in parts], [value for _, value in parts])


def split_table(full_name: str) -> tuple[str, str]:
    """Database and table of ``db.table``.

    Raises MetaError for another form.
    """
    db, dot, table = full_name.partition(".")
    if not dot or not db or not table:
        raise MetaError(f"'{full_name}' is not a table name of the form database.table")
    return stored_name(db), stored_name(table)
