"""Partitions that have the same values and other names: ``p=01`` for 1, ``c=ab`` for a CHAR that Hive writes padded.

A name is a partition's identity to the metastore, and its values are to whoever reads and writes rows. Others may have
named a partition otherwise than `canonical_text` would. So a write goes to the partition of its values that is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from hive_acid.catalog.partition_values import has_one_text, known_text
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.format.partitions import parse_partition_name


def may_be_named_otherwise(table: Table) -> bool:
    """Whether there is a key of whose values one may have several texts."""
    return not all(has_one_text(key.type) for key in table.partition_keys)


def key_is_of_partitions(table: Table) -> bool:
    """Whether rows of the same primary key are in the same partition: each partition column is in it, of such a type
    that partitions of the same values have the same name.
    """
    names = {column.name for column in table.key}
    return all(key.name in names and has_one_text(key.type) for key in table.partition_keys)


def by_values(table: Table, names: Iterable[str]) -> Mapping[tuple[str | None, ...], Sequence[str]]:
    """The names of partitions by the texts that we have for their values."""
    found: defaultdict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for name in names:
        found[values_of(table, name)].append(name)
    return found


def values_of(table: Table, name: str) -> tuple[str | None, ...]:
    """The values of a partition, as the texts that we have for them."""
    pairs = zip(table.partition_keys, parse_partition_name(name), strict=True)
    return tuple(known_text(key.type, text) for key, (_, text) in pairs)


def names_there(connection: Connection, table: Table, names: Iterable[str]) -> dict[str, str]:
    """For each name that of a partition with the same values: itself, if it is there or none is."""
    if not may_be_named_otherwise(table):
        return {name: name for name in names}
    there = by_values(table, connection.partition_names(table))
    same = {name: there.get(values_of(table, name), ()) for name in names}
    return {name: name if name in of else min(of, default=name) for name, of in same.items()}


def name_there(connection: Connection, table: Table, values: Sequence[str | None]) -> str:
    """The name of the partition of these values, as `names_there` has it."""
    name = table.partition_name(values)
    return names_there(connection, table, [name])[name]
