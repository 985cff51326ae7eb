"""What lies at a location, as the Cleaner sees it: it decides the same on a disk and in an object store.

Object stores have no empty directories, so those of other file systems decide nothing here: an empty base would make
deltas obsolete on a disk alone (vector T45). And nothing is "gone" because nobody can look: a disk that is not mounted
lists like an empty table, and the record of aborted writes would go with their files still there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from hive_acid.errors import FormatError, HiveAcidError
from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import DirectoryKind, claims_to_be_data, is_hidden, parse_directory
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DirectoryState, directory_state
from metastore.filework import files


class LocationUnreachableError(HiveAcidError):
    """A location cannot be looked at, so nothing may be concluded from what is not seen there."""


def listed(location: str, max_depth: int | None = None, *, must_exist: bool = False) -> list[FileEntry]:
    """Everything below a location; nothing if it is not there in a place that is.

    Raises LocationUnreachableError if neither it nor the directory above, or in object stores the bucket, is there.
    With `must_exist` the directory itself has to be there, where there are directories.
    """
    entries = files.list_tree(location, max_depth)
    if not entries and not files.exists(location):
        is_store = files.rename_is_copy(location)
        above = _bucket(location) if is_store else files.parent(location)
        if (must_exist and not is_store) or not files.exists(above):
            raise LocationUnreachableError(f"{location} is not there: mount or restore it, or drop the table")
    return entries


def state_of(
    location: str, entries: Sequence[FileEntry], write_ids: ValidWriteIdList, txns: ValidTxnList
) -> DirectoryState:
    """What a snapshot sees of a listing, its empty directories left out. Raises as `directory_state` does."""
    empty = empty_directories(entries)
    solid = (entry for entry in entries if entry.path.partition("/")[0] not in empty)
    return directory_state(solid, write_ids, txns, lambda path: files.read(files.join(location, path)))


def needless_empties(
    location: str,
    entries: Sequence[FileEntry],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    aborted_only: bool = False,
) -> list[str]:
    """The empty directories that a snapshot takes for obsolete or aborted: they can go, and hold back nothing.

    With `aborted_only` those that are obsolete to this snapshot stay: an older one may still see them.
    """
    empty = empty_directories(entries)
    if not empty:
        return []
    with contextlib.suppress(FormatError):  # then they contradict what has files, and stay
        seen = directory_state(entries, write_ids, txns, lambda path: files.read(files.join(location, path)))
        return sorted(empty.intersection(seen.aborted if aborted_only else (*seen.obsolete, *seen.aborted)))
    return []


def empty_directories(entries: Iterable[FileEntry]) -> set[str]:
    """The data directories of a listing without any file."""
    named: set[str] = set()
    filled: set[str] = set()
    for entry in entries:
        top, slash, _ = entry.path.partition("/")
        if slash and claims_to_be_data(top):
            (named if entry.is_directory else filled).add(top)
    return named - filled


def by_parent(entries: Iterable[FileEntry]) -> dict[str, list[FileEntry]]:
    """The entries of data directories by the directory that these lie in, paths relative to that one."""
    found: dict[str, list[FileEntry]] = {}
    for entry in entries:
        parts = entry.path.split("/")
        for depth, part in enumerate(parts[:-1]):
            if is_hidden(part):
                break
            if claims_to_be_data(part):
                below = FileEntry("/".join(parts[depth:]), entry.size, entry.modified_ms)
                found.setdefault("/".join(parts[:depth]), []).append(below)
                break
    return found


def aborted_ids_in(entries: Iterable[FileEntry], write_ids: ValidWriteIdList) -> list[int]:
    """Aborted write ids that data directories may hold; compactions have left them out of theirs.

    Empty directories count: without the record of its abort an empty base would hide all rows below it.
    """
    held: set[int] = set()
    for name in {entry.path.partition("/")[0] for entry in entries}:
        directory = parse_directory(name)
        if directory is None or directory.visibility_txn_id:
            continue
        lowest = directory.max_write_id if directory.kind is DirectoryKind.BASE else directory.min_write_id
        held.update(write_ids.aborted_in(lowest, directory.max_write_id))
    return sorted(held)


def _bucket(location: str) -> str:
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc}"
