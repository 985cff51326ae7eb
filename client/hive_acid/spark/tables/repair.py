"""MSCK: partitions whose directories are there and which are not registered, and those whose directories are gone.

Of a plain table the files are all that there is to know of a partition, so it is registered as it lies there. What lies
in a directory of an ACID table says nothing without the write that it is of, so nothing there becomes rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.catalog.calls import CatalogCalls
from hive_acid.catalog.partition_values import partition_text
from hive_acid.catalog.table import Table
from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.names import is_hidden
from hive_acid.format.partitions import parse_partition_name


@dataclass(frozen=True, slots=True)
class Astray:
    """In what the metastore and the file system differ."""

    unregistered: Mapping[str, str]
    """Partitions (``k=v/…``) that the metastore does not have, each with its directory."""
    gone: tuple[str, ...]
    """Partitions that the metastore has, and whose directories are not there."""


def astray(connection: CatalogCalls, table: Table) -> Astray:
    """What is to be registered, and what to be dropped.

    Raises UnsupportedTableError for a table without partitions, and one whose own directory is not there; FormatError
    for directories of one partition by two names, ColumnError for one whose values are none of its keys' types.
    """
    if not table.partition_keys:
        raise UnsupportedTableError(f"{table.full_name} has no partitions that could be found or missed")
    if not files.exists(table.location):
        raise UnsupportedTableError(
            f"{table.location}, the directory of {table.full_name}, is not there: mount it, or drop the table"
        )
    known = {name: files.one_name(location) for name, location in connection.partitions(table).items()}
    directories = _directories(table)
    places = {files.one_name(place) for place in directories.values()}
    registered = set(known.values())
    gone = [name for name, place in known.items() if place not in places and not files.exists(place)]
    return Astray(
        {
            name: place
            for name, place in directories.items()
            if name not in known and files.one_name(place) not in registered
        },
        tuple(gone),
    )


def _directories(table: Table) -> dict[str, str]:
    """Directories below the table's that are called as its partitions are, by the names of these."""
    keys = [key.name for key in table.partition_keys]
    found: dict[str, str] = {}
    for entry in files.list_tree(table.location, max_depth=len(keys)):
        path = entry.path.rstrip("/")
        if not entry.is_directory or is_hidden(path):
            continue
        try:
            pairs = parse_partition_name(path)
        except FormatError:
            continue
        if [key for key, _ in pairs] != keys:
            continue
        place, values = files.join(table.location, path), [value for _, value in pairs]
        for key, value in zip(table.partition_keys, values, strict=True):
            partition_text(table, key, value)
        name = table.partition_name(values)
        if name in found:
            raise FormatError(f"{found[name]} and {place} are of one partition, {name}: put their files into one")
        found[name] = place
    return found
