"""From a listing and a snapshot to the directories that hold the data (acid-format.md §2.2).

`directory_state` is a pure function of what lies below one table or partition directory and of two lists of ids. What
it returns keeps these promises:

1. The order of the listing has no influence.
2. A directory of an open write, above the high-water mark, or made by a compaction that has not committed for this
   snapshot, is not read and not called obsolete; it is called aborted only if that compaction is known to be.
3. No two selected insert deltas hold the same write id unless they are statements of one write; the same is true of
   delete deltas; none of either kind reaches into the base.
4. `obsolete` is replaced, for this very snapshot, by a selected directory; `aborted` holds data of aborted writes or
   compactions only. Neither is needed by this snapshot.
5. Where the rules of the format are broken so that rows would be lost or doubled, there is an error and no answer.

Where Hive 4 reads an open overwrite or a base whose own id is still open, we do not (vectors T16 and T19); where
two directories claim one range, the newer compaction's is read and not both (T35).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hive_acid.errors import FormatError, NotEnoughHistoryError
from hive_acid.format.names import (
    METADATA_MARKER,
    ORIGINALS_WRITE_ID,
    VERSION_MARKER,
    Directory,
    DirectoryKind,
    claims_to_be_data,
    is_hidden,
    is_side_file,
    parse_bucket_file,
    parse_directory,
    parse_original_file,
)
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList

OVERWRITE_FORMATS = ("truncated", "dropped")
"""What `_metadata_acid` says of an empty base that stands for TRUNCATE or DROP PARTITION."""


class ListedEntry(Protocol):
    """One entry of a recursive listing: `path` relative to the listed directory, ending in ``/`` for directories."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def modified_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with rows: path relative to the listed directory, size in bytes, and the bucket that its name gives.

    `modified_ms` is 0 where the listing did not say.
    """

    path: str
    size: int
    bucket: int | None
    modified_ms: int = field(default=0, compare=False)


def stamp_of(found: Iterable[DataFile]) -> int:
    """What tells files from others that have had their names: a number of their sizes and times."""
    return hash(tuple((file.size, file.modified_ms) for file in found))


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A selected directory and its files.

    `validity` is SOME where the rows have to be filtered by their current write id; of a base all rows are valid.
    `unfinished` says that a streaming writer still has a file open, whose readable length only its side file knows.
    `is_marked` is false where the version marker is missing: Hive before version 3 wrote so, updates among its inserts.
    `is_whole` is false where files have been left out that need not be read.
    """

    directory: Directory
    files: tuple[DataFile, ...]
    validity: RangeValidity
    unfinished: bool
    is_marked: bool = True
    is_whole: bool = True
    is_compacted: bool = False
    """Whether a base is known to be a compaction's, with the rows of all writes up to its own."""

    @property
    def name(self) -> str:
        """The directory's name, which is also its path relative to the listed directory."""
        return self.directory.name

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class DirectoryState:
    """What one snapshot sees of one directory.

    Data is `base` (or, where there is no base, `originals`) and `insert_deltas`, less what `delete_deltas` delete. Both
    are in reading order. `obsolete` and `aborted` are paths that this snapshot does not need: names of data
    directories, and paths of original files. `aborted_write_ids` are the aborted writes of directories in `aborted`;
    `uncompacted_aborts` says that a directory mixes aborted and other writes, so that their abort records must stay.
    """

    base: DataDirectory | None
    insert_deltas: tuple[DataDirectory, ...]
    delete_deltas: tuple[DataDirectory, ...]
    originals: tuple[DataFile, ...]
    obsolete: tuple[str, ...]
    aborted: tuple[str, ...]
    aborted_write_ids: tuple[int, ...]
    uncompacted_aborts: bool

    @property
    def data(self) -> tuple[DataDirectory, ...]:
        """The directories with rows: the base, if there is one, and the insert deltas."""
        return (self.base, *self.insert_deltas) if self.base else self.insert_deltas


Metadata = Callable[[str], bytes] | Mapping[str, bytes]
"""The content of a `_metadata_acid` file by its path relative to the listed directory."""


def directory_state(
    entries: Iterable[tuple[str, int] | ListedEntry],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    metadata: Metadata | None = None,
) -> DirectoryState:
    """What the snapshot (`write_ids`, `txns`) sees of a directory.

    `entries` is everything below one table or partition directory, recursively, as (path, size) or as entries of
    `hive_acid.filesystem.files`. `metadata` is asked only for visible bases that have the marker and no visibility
    transaction.

    Raises NotEnoughHistoryError if the snapshot is older than the oldest base, FormatError if names contradict
    each other or a marker cannot be understood.
    """
    directories, contents, originals = _classify(entries)
    sweep = _Sweep(write_ids, contents)
    visible = [directory for directory in directories if _is_visible(directory, txns)]
    sweep.aborted += [directory.name for directory in directories if txns.is_aborted(directory.visibility_txn_id)]
    base = sweep.choose_base(visible, metadata)
    selected = sweep.select_deltas(visible, base)
    if base is not None:
        sweep.obsolete += [file.path for file in originals]
        originals = []
    return DirectoryState(
        base=sweep.data_directory(base) if base else None,
        insert_deltas=tuple(map(sweep.data_directory, (d for d in selected if d.kind is DirectoryKind.INSERT_DELTA))),
        delete_deltas=tuple(map(sweep.data_directory, (d for d in selected if d.kind is DirectoryKind.DELETE_DELTA))),
        originals=tuple(originals),
        obsolete=tuple(sorted(sweep.obsolete)),
        aborted=tuple(sorted(sweep.aborted)),
        aborted_write_ids=tuple(sorted(sweep.aborted_write_ids)),
        uncompacted_aborts=sweep.uncompacted_aborts,
    )


class _Content(NamedTuple):
    """What lies in one data directory."""

    files: list[DataFile]
    unfinished: bool
    has_metadata: bool
    is_marked: bool


def _classify(
    entries: Iterable[tuple[str, int] | ListedEntry],
) -> tuple[list[Directory], dict[str, _Content], list[DataFile]]:
    """The data directories, the contents of each by its name, and the original files in path order."""
    paths: dict[str, list[tuple[str, int, int]]] = {}
    originals: list[DataFile] = []
    for entry in entries:
        path, size, modified_ms = (
            (*entry, 0) if isinstance(entry, tuple) else (entry.path, entry.size, entry.modified_ms)
        )
        top, slash, below = path.partition("/")
        if slash and claims_to_be_data(top):
            paths.setdefault(top, []).append((below, size, modified_ms))
        elif not path.endswith("/") and not is_hidden(path):
            originals.append(DataFile(path, size, parse_original_file(path.rpartition("/")[2]), modified_ms))
    directories: list[Directory] = []
    for name in sorted(paths):
        directory = parse_directory(name)
        if directory is None:
            raise FormatError(f"directory '{name}' is named like a base or delta but its numbers make no sense")
        directories.append(directory)
    contents = {name: _content(name, below) for name, below in paths.items()}
    return directories, contents, sorted(originals, key=lambda file: file.path)


def _content(name: str, below: list[tuple[str, int, int]]) -> _Content:
    files: list[DataFile] = []
    unfinished = has_metadata = is_marked = False
    for path, size, modified_ms in below:
        if path == METADATA_MARKER:
            has_metadata = True
        elif path == VERSION_MARKER:
            is_marked = True
        elif not path or path.endswith("/") or is_hidden(path):
            continue
        else:
            last = path.rpartition("/")[2]
            bucket = parse_bucket_file(last)
            if bucket is None:
                if is_side_file(last):
                    unfinished = True
                    continue
                bucket = parse_original_file(last)
            files.append(DataFile(f"{name}/{path}", size, bucket, modified_ms))
    if len(files) > 1:
        files.sort(key=lambda file: file.path)
    return _Content(files, unfinished, has_metadata, is_marked)


def _is_visible(directory: Directory, txns: ValidTxnList) -> bool:
    return not directory.visibility_txn_id or txns.is_valid(directory.visibility_txn_id)


class _Sweep:
    """The choice of base and deltas, collecting on its way what is not needed."""

    def __init__(self, write_ids: ValidWriteIdList, contents: Mapping[str, _Content]) -> None:
        self.write_ids = write_ids
        self.contents = contents
        self.obsolete: list[str] = []
        self.aborted: list[str] = []
        self.aborted_write_ids: set[int] = set()
        self.compacted: set[str] = set()
        self.uncompacted_aborts = False

    def data_directory(self, directory: Directory) -> DataDirectory:
        content = self.contents[directory.name]
        validity = RangeValidity.ALL
        if directory.kind is not DirectoryKind.BASE:
            validity = self.write_ids.range_validity(directory.min_write_id, directory.max_write_id)
            # A compactor's list calls the whole range valid, but rows of aborted writes still have to go.
            if self._aborted(directory) is RangeValidity.SOME:
                validity = RangeValidity.SOME
        return DataDirectory(
            directory,
            tuple(content.files),
            validity,
            content.unfinished,
            content.is_marked,
            is_compacted=directory.name in self.compacted,
        )

    def choose_base(self, visible: Iterable[Directory], metadata: Metadata | None) -> Directory | None:
        """The accepted base with the highest write id, a compacted one before an overwrite of the same id."""
        accepted: list[tuple[int, bool, int, Directory]] = []
        too_new: list[Directory] = []
        for base in visible:
            if base.kind is not DirectoryKind.BASE:
                continue
            write_id = base.max_write_id
            compacted = bool(base.visibility_txn_id) or (
                self.contents[base.name].has_metadata and _is_compacted(f"{base.name}/{METADATA_MARKER}", metadata)
            )
            if compacted:
                self.compacted.add(base.name)
            if not compacted and self.write_ids.is_aborted(write_id):
                self.aborted.append(base.name)
                self.aborted_write_ids.add(write_id)
            elif self._accepts(write_id, compacted):
                accepted.append((write_id, compacted, base.visibility_txn_id, base))
            elif compacted:
                too_new.append(base)
        if not accepted:
            if too_new:
                raise NotEnoughHistoryError(
                    f"the snapshot of {self.write_ids.table} (write ids up to {self.write_ids.high_water_mark}, lowest "
                    f"open {self.write_ids.min_open}) is older than {too_new[0].name}, the oldest base that is left"
                )
            return None
        accepted.sort(key=lambda candidate: candidate[:3])
        self.obsolete += [beaten.name for *_, beaten in accepted[:-1]]
        return accepted[-1][3]

    def _accepts(self, write_id: int, compacted: bool) -> bool:
        if write_id == ORIGINALS_WRITE_ID:
            return True
        return self.write_ids.is_valid_base(write_id) if compacted else self.write_ids.is_valid(write_id)

    def select_deltas(self, visible: Iterable[Directory], base: Directory | None) -> list[Directory]:
        """The deltas of both kinds that the snapshot reads, by write id and statement."""
        current = max(0, base.max_write_id) if base else 0
        replaced_by = base
        previous: list[Directory] = []
        selected: list[Directory] = []
        for delta in sorted(self._current_deltas(visible), key=_reading_order):
            if delta.max_write_id > current:
                if replaced_by is not None and delta.min_write_id <= current:
                    raise FormatError(
                        f"{delta.name} and {replaced_by.name} overlap without one containing the other: "
                        "reading both would double rows"
                    )
                current, replaced_by, previous = delta.max_write_id, delta, [delta]
                selected.append(delta)
            elif self._belongs_to(delta, current, replaced_by, previous):
                previous.append(delta)
                selected.append(delta)
            else:
                self.obsolete.append(delta.name)
        return selected

    def _current_deltas(self, visible: Iterable[Directory]) -> list[Directory]:
        current: list[Directory] = []
        for delta in visible:
            if delta.kind is DirectoryKind.BASE:
                continue
            lowest, highest = delta.min_write_id, delta.max_write_id
            aborted = self._aborted(delta)
            if aborted is RangeValidity.ALL:
                self.aborted.append(delta.name)
                self.aborted_write_ids.update(self.write_ids.aborted_in(lowest, highest))
                continue
            if aborted is RangeValidity.SOME:
                self.uncompacted_aborts = True
            if self.write_ids.range_validity(lowest, highest) is not RangeValidity.NONE:
                current.append(delta)
        return current

    def _belongs_to(self, delta: Directory, current: int, leader: Directory | None, previous: list[Directory]) -> bool:
        """Whether a delta is read beside its leader, which reached `current`: its twin, or a statement of one write."""
        if leader is None or leader.kind is DirectoryKind.BASE or delta.max_write_id != current:
            return False
        if delta.min_write_id != leader.min_write_id:
            return False
        if leader.statement_id is None and delta.statement_id is not None:
            return False
        for other in previous:
            if (other.kind, other.statement_id) == (delta.kind, delta.statement_id):
                if other.visibility_txn_id == delta.visibility_txn_id:
                    raise FormatError(f"{other.name} and {delta.name} are two directories for one and the same write")
                return False
        return True

    def _aborted(self, delta: Directory) -> RangeValidity:
        return self.write_ids.aborted_range(delta.min_write_id, delta.max_write_id)


def _reading_order(delta: Directory) -> tuple[int, int, int, int, str]:
    statement_id = -1 if delta.statement_id is None else delta.statement_id
    return delta.min_write_id, -delta.max_write_id, statement_id, -delta.visibility_txn_id, delta.name


def _is_compacted(path: str, metadata: Metadata | None) -> bool:
    """Whether the marker at `path` says that its base is a compaction's result."""
    if metadata is None:
        raise FormatError(f"the content of {path} is needed to read this directory")
    try:
        content = json.loads(metadata(path) if callable(metadata) else metadata[path])
    except (ValueError, KeyError) as error:
        raise FormatError(f"{path} cannot be read as JSON: {error}") from error
    data_format = content.get("dataFormat") if isinstance(content, dict) else None
    if data_format != "compacted" and data_format not in OVERWRITE_FORMATS:
        raise FormatError(f"{path} names the unknown format '{data_format}'")
    return bool(data_format == "compacted")
