"""What Hive 2 has left behind: directories that readers of today understand differently (acid-format.md §5.7).

Before Hive 3 an UPDATE or DELETE wrote its events beside the inserts, into ``delta_…``; today they are looked for in
``delete_delta_…`` alone. A major compaction, by Hive 2 or by us, leaves none.
"""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import DirectoryKind, parse_bucket_file, parse_directory
from hive_acid.format.orc.tail import Tail

_STATS = "hive.acid.stats"


@dataclass(frozen=True, slots=True)
class UpgradeFinding:
    """A directory that must be compacted away (major) before the table is used; `partition` is "" for the table's own.

    `reason` says what is in it.
    """

    table: str
    partition: str
    directory: str
    reason: str


def upgrade_check(connection: Connection, table: Table) -> list[UpgradeFinding]:
    """The directories of one table with changes as Hive 2 wrote them; none for other than full-ACID tables.

    Reads the footers of insert deltas, no rows.
    """
    if not table.is_full_acid:
        return []
    places = connection.partitions(table) if table.partition_keys else {"": table.location}
    found: list[UpgradeFinding] = []
    for name, location in places.items():
        found += _of_directory(table, name, location)
    return found


def _of_directory(table: Table, partition: str, location: str) -> list[UpgradeFinding]:
    deltas: dict[str, list[DataFilePath]] = {}
    for entry in files.list_tree(location, max_depth=2):
        top, _, name = entry.path.partition("/")
        directory = parse_directory(top)
        if directory is None or directory.kind is not DirectoryKind.INSERT_DELTA or parse_bucket_file(name) is None:
            continue
        deltas.setdefault(top, []).append(DataFilePath.of(location, entry))
    found = []
    for directory_name, of_directory in sorted(deltas.items()):
        for file in of_directory:
            reason = _reason(file)
            if reason:
                found.append(UpgradeFinding(table.full_name, partition, directory_name, reason))
                break
    return found


def _reason(file: DataFilePath) -> str | None:
    try:
        (tail,) = SHARED.read([file])
    except FormatError as error:
        return f"it cannot be looked into: {error}"
    counts = _counts(tail)
    if counts is not None:
        _, updates, deletes = counts
        return f"{updates} updates and {deletes} deletes lie beside the inserts" if updates or deletes else None
    operation = tail.column("operation")
    if operation is None:
        return None
    known = tail.statistics(operation)
    if known.maximum is None:
        return "its files do not say whether updates and deletes lie beside the inserts" if tail.rows else None
    return "updates or deletes lie beside the inserts" if known.maximum != 0 else None


def _counts(tail: Tail) -> tuple[int, ...] | None:
    """Inserts, updates and deletes as Hive's writer counts them; None if the file does not say."""
    parts = tail.user_metadata.get(_STATS, b"").decode(errors="replace").split(",")
    return tuple(map(int, parts)) if len(parts) == 3 and all(part.isdigit() for part in parts) else None
