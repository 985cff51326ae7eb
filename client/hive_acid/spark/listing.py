"""What a snapshot sees of a table on the file system: one state per partition directory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hive_acid import files
from hive_acid.catalog import Table
from hive_acid.errors import TableNotAcidError, UnsupportedTableError
from hive_acid.format.names import parse_bucket_file
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DirectoryState, directory_state
from hive_acid.spark.scan import ScanDirectory

_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

UNPARTITIONED = ""
"""The name under which an unpartitioned table's one directory is listed."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition directory of a table, or the table directory itself, as a snapshot sees it."""

    name: str
    location: str
    state: DirectoryState

    def scan_directories(self, directories: Sequence[DataDirectory]) -> list[ScanDirectory]:
        """`directories`, which are some of this partition's, for `hive_acid.spark.scan`."""
        return [
            ScanDirectory(files.join(self.location, found.name), found.directory, found.validity is RangeValidity.ALL)
            for found in directories
            if found.files
        ]


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as one snapshot sees it: its definition, its write ids, and the state of each partition directory."""

    table: Table
    write_ids: ValidWriteIdList
    partitions: tuple[PartitionState, ...]


def check_full_acid(table: Table) -> None:
    """Raise TableNotAcidError unless rows of the table can be read and changed by write id."""
    if not table.is_transactional:
        raise TableNotAcidError(
            f"{table.full_name} is not an ACID table: its property 'transactional' is not 'true'. Read it with Spark, "
            "or create it with acid.create_table"
        )
    if not table.is_full_acid:
        raise TableNotAcidError(
            f"{table.full_name} is an insert-only table (transactional_properties=insert_only), not a full-ACID one"
        )


def table_state(
    table: Table, partitions: Mapping[str, str], write_ids: ValidWriteIdList, txns: ValidTxnList
) -> TableState:
    """List a table and choose what the snapshot sees; `partitions` maps each partition's name to its location.

    Raises UnsupportedTableError for partitions outside the table's directory, for files from before the table was
    ACID, and for files that a streaming writer has not closed.
    """
    entries = files.list_tree(table.location)
    if not table.partition_keys:
        below = {UNPARTITIONED: [(entry.path, entry.size) for entry in entries]}
        locations = {UNPARTITIONED: table.location}
    else:
        locations = dict(partitions)
        roots = {directory_of(table, name, location): name for name, location in partitions.items()}
        depth = len(table.partition_keys)
        below = {name: [] for name in partitions}
        for entry in entries:
            parts = entry.path.split("/", depth)
            name = roots.get("/".join(parts[:depth]))
            if name is not None and len(parts) > depth and parts[depth]:
                below[name].append((parts[depth], entry.size))
    found = []
    for name, location in locations.items():
        state = directory_state(
            below[name], write_ids, txns, lambda path, at=location: files.read(files.join(at, path))
        )
        _check_files(table, location, state)
        found.append(PartitionState(name, location, state))
    return TableState(table, write_ids, tuple(found))


def directory_of(table: Table, name: str, location: str) -> str:
    """The partition's directory relative to the table's; it has to tell the partition's values."""
    root, at = _path(table.location) + "/", _path(location)
    relative = at.removeprefix(root)
    if (
        not at.startswith(root)
        or relative.count("/") != name.count("/")
        or parse_partition_name(relative) != parse_partition_name(name)
        or _STRAY_PERCENT.search(relative)
    ):
        raise UnsupportedTableError(
            f"partition {name} of {table.full_name} lies at {location}, not at {table.location}/{name}: "
            "hive-acid takes the values of partition columns from the path"
        )
    return relative


def _path(location: str) -> str:
    """A location without its trailing slash, and the same for ``/a``, ``file:/a`` and ``file:///a``."""
    return "/" + location[5:].strip("/") if location.startswith("file:") else location.rstrip("/")


def _check_files(table: Table, location: str, state: DirectoryState) -> None:
    if state.originals:
        raise UnsupportedTableError(
            f"{table.full_name} has files from before it was ACID ({files.join(location, state.originals[0].path)}): "
            "run a major compaction in Hive first"
        )
    for found in (*state.data, *state.delete_deltas):
        if found.unfinished:
            raise UnsupportedTableError(
                f"{files.join(location, found.name)} has files that a streaming writer has not closed yet"
            )
        for file in found.files:
            below = file.path.removeprefix(found.name + "/")
            if parse_bucket_file(below) is None:
                raise UnsupportedTableError(
                    f"{files.join(location, file.path)} is no ACID file (LOAD DATA leaves such): run a major "
                    "compaction in Hive first"
                )
