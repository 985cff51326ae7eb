"""The files of a table as one snapshot sees them, each with its kind, its write ids and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import DirectoryKind
from hive_acid.format.state import DataFile
from hive_acid.spark.read.listing import PartitionState, TableState

BASE, DELTA, DELETE_DELTA, ORIGINAL = "base", "delta", "delete_delta", "original"

KINDS = {
    DirectoryKind.BASE: BASE,
    DirectoryKind.INSERT_DELTA: DELTA,
    DirectoryKind.DELETE_DELTA: DELETE_DELTA,
}
"""What a file is called by the directory that it lies in."""


@dataclass(frozen=True, slots=True)
class FileOfTable:
    """A file that a snapshot reads; `rows` are events in a delete delta, and None where its tail does not tell.

    Write ids are those of its directory, None of an original file; `modified_ms` is 0 if the file system does not say.
    """

    kind: str
    partition: str | None
    min_write_id: int | None
    max_write_id: int | None
    bucket: int | None
    path: str
    rows: int | None
    size: int
    modified_ms: int

    @property
    def is_of_deletes(self) -> bool:
        """Whether it has delete events."""
        return self.kind == DELETE_DELTA


def files_of(state: TableState) -> list[FileOfTable]:
    """All files that the snapshot reads, by partition, then in reading order."""
    found = [file for partition in state.partitions for file in _of_partition(partition)]
    return counted(found) if state.table.is_orc else found


def counted(found: Sequence[FileOfTable]) -> list[FileOfTable]:
    """ORC files with their numbers of rows, where their tails can be read here."""
    wanted = [DataFilePath(file.path, file.size, file.modified_ms) for file in found]
    return [replace(file, rows=rows) for file, rows in zip(found, _rows_of(wanted), strict=True)]


def rows_in(found: Iterable[FileOfTable]) -> int | None:
    """The rows of all of them, None where those of one are not known."""
    known = [file.rows for file in found]
    return None if None in known else sum(rows for rows in known if rows is not None)


def _rows_of(wanted: Sequence[DataFilePath]) -> list[int | None]:
    """The number of rows of each; a file of no bytes has none."""
    there = [one for one in wanted if one.size]
    try:
        known: dict[DataFilePath, int | None] = {
            of: tail.rows for of, tail in zip(there, SHARED.read(there), strict=True)
        }
    except (FormatError, OSError):
        known = {of: _rows_alone(of) for of in there}
    return [known[of] if of.size else 0 for of in wanted]


def _rows_alone(of: DataFilePath) -> int | None:
    try:
        return SHARED.read([of])[0].rows
    except (FormatError, OSError):
        return None


def _of_partition(partition: PartitionState) -> Iterator[FileOfTable]:
    state = partition.state
    yield from _some(partition, ORIGINAL, None, None, state.originals)
    for directory in (*state.data, *state.delete_deltas):
        of = directory.directory
        lowest = None if of.kind is DirectoryKind.BASE else of.min_write_id
        yield from _some(partition, KINDS[of.kind], lowest, of.max_write_id, directory.files)


def _some(
    partition: PartitionState, kind: str, lowest: int | None, highest: int | None, found: Iterable[DataFile]
) -> Iterator[FileOfTable]:
    for file in found:
        path = files.join(partition.location, file.path)
        yield FileOfTable(
            kind, partition.name or None, lowest, highest, file.bucket, path, None, file.size, file.modified_ms
        )
