"""Compactions asked for by verbs of the session: CONCATENATE is one (acid-format.md §6)."""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.spark.values.specs import PartitionSpec, matching_names


def request(connection: Connection, table: Table, kind: str, partition: PartitionSpec | None = None) -> list[int]:
    """Queue compactions, ``major`` or ``minor``, of the table or of the partitions that `partition` covers.

    Returns the ids of those queued: one that is queued or under way already is not queued again.
    """
    names: Sequence[str] = ()
    if table.partition_keys:
        names = list(connection.partitions(table))
        names = matching_names(table, partition, names) if partition else names
        if not names:
            return []
    return connection.compact(table.database, table.name, kind, names)
