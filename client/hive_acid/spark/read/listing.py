"""What a snapshot sees of a table on the file system: one state per partition directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hive_acid.catalog.table import Table
from hive_acid.errors import TableNotAcidError, UnsupportedTableError, ViewError
from hive_acid.filesystem import files
from hive_acid.format.names import DirectoryKind, parse_bucket_file
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DataFile, DirectoryState, directory_state, stamp_of
from hive_acid.spark.limits import DEFAULT, Limits
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import Analysis, DirectoriesPlan, LeftOut, PlacePlan, ReadPlan
from hive_acid.spark.read.open_files import closed_files
from hive_acid.spark.read.scan import ScanDirectory

_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

UNPARTITIONED = ""
"""The name under which an unpartitioned table's one directory is listed."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition directory of a table, or the table directory itself, as a snapshot sees it.

    Unless `is_told_by_path`, the partition lies elsewhere than its name says, and only the name tells its values.
    """

    name: str
    location: str
    state: DirectoryState
    is_told_by_path: bool = True
    is_vacant: bool = False
    """Whether nothing at all lies there, nor anything that the snapshot does not see."""

    def with_data(self, wanted: Callable[[DataDirectory], bool], *, originals: bool) -> PartitionState:
        """It with the directories of rows that are `wanted` alone, and with `originals` the original files, if any."""
        base = self.state.base
        return replace(
            self,
            state=replace(
                self.state,
                base=base if base is not None and wanted(base) else None,
                insert_deltas=tuple(filter(wanted, self.state.insert_deltas)),
                originals=self.state.originals if originals else (),
            ),
        )

    @property
    def values(self) -> tuple[str | None, ...]:
        """The texts of its keys."""
        return tuple(value for _, value in parse_partition_name(self.name)) if self.name else ()

    def scan_directories(self, directories: Sequence[DataDirectory]) -> list[ScanDirectory]:
        """The files with ACID columns in `directories`, which are some of this partition's, for `scan`."""
        found = []
        for directory in directories:
            chosen = [file for file in directory.files if not is_raw(file)]
            if not chosen:
                continue
            # Spark reads a whole directory, but not what is below it, and takes a side file for data.
            flat = all(file.path.count("/") == 1 for file in directory.files)
            whole = directory.is_whole and not directory.unfinished and flat
            found.append(
                ScanDirectory(
                    files.join(self.location, directory.name),
                    directory.directory,
                    directory.validity is RangeValidity.ALL,
                    tuple(files.join(self.location, file.path) for file in chosen),
                    whole,
                    stamp_of(chosen),
                )
            )
        return found

    def raw_files(self, directories: Iterable[DataDirectory]) -> list[DataFile]:
        """The files without ACID columns in `directories`, which LOAD DATA has left there; none that is empty."""
        return [file for directory in directories for file in directory.files if is_raw(file) and file.size]

    @property
    def directory(self) -> str:
        """The directories of the partition's keys, ``k=v/k2=v2``, where it is told by its path."""
        depth = self.name.count("/") + 1
        return "/".join(self.location.rstrip("/").split("/")[-depth:])

    @property
    def data_files(self) -> list[DataFile]:
        """All files with rows."""
        return [*self.state.originals, *(file for found in self.state.data for file in found.files)]

    @property
    def with_ids(self) -> list[DataDirectory]:
        """The directories with rows whose files have ACID columns."""
        return [found for found in self.state.data if not any(map(is_raw, found.files))]


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as one snapshot sees it: its definition, its write ids, and the state of each partition directory.

    Without `skipping` all of it is read, whatever is wanted and whatever statistics say; `limits` say how it is read.
    """

    table: Table
    write_ids: ValidWriteIdList
    partitions: tuple[PartitionState, ...]
    skipping: bool = True
    limits: Limits = DEFAULT
    left_out: LeftOut = field(default=LeftOut(), compare=False)
    """What is not listed here, or not any more, since no row of it was wanted."""

    def plan(
        self,
        places: Iterable[PlacePlan | DirectoriesPlan],
        *,
        skips_groups: bool,
        analysis: Choice[Analysis] | None = None,
    ) -> ReadPlan:
        """The plan of a read of all of this."""
        found = [file for partition in self.partitions for file in partition.data_files]
        return ReadPlan(
            self.table.full_name,
            len(self.partitions),
            len(found),
            sum(file.size for file in found),
            self.left_out,
            skips_groups,
            tuple(places),
            analysis,
        )


def is_raw(file: DataFile) -> bool:
    """Whether a file of a full-ACID table has no ACID columns, by its name (acid-format.md §1.2)."""
    return parse_bucket_file(file.path.rpartition("/")[2]) is None


def check_full_acid(table: Table) -> None:
    """Raise TableNotAcidError unless rows of the table can be read and changed by write id."""
    check_transactional(table)
    if not table.is_full_acid:
        raise TableNotAcidError(
            f"{table.full_name} is an insert-only table (transactional_properties=insert_only), not a full-ACID one: "
            "its rows have no ids by which they could be changed or deleted"
        )


def check_transactional(table: Table) -> None:
    """Raise TableNotAcidError unless a snapshot decides what is seen of the table."""
    if table.is_view:
        raise ViewError(f"{table.full_name} is a view: it has no rows of its own")
    if not table.is_transactional:
        raise TableNotAcidError(
            f"{table.full_name} is not an ACID table: its property 'transactional' is not 'true'. It is read, and "
            "filled by INSERT, INSERT OVERWRITE and LOAD DATA; for all else acid.convert_table makes it an ACID table"
        )


def table_state(
    table: Table,
    partitions: Mapping[str, str],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    only_these: bool = False,
) -> TableState:
    """List a table and choose what the snapshot sees; `partitions` maps each partition's name to its location.

    They are listed one by one if they are not all of the table's (`only_these`), with one listing otherwise.

    Raises UnsupportedTableError for files that a streaming writer has not closed, and for such as must not be there.
    """
    entries = [] if only_these else files.list_tree(table.location)
    if not table.partition_keys:
        below = {UNPARTITIONED: entries}
        locations = {UNPARTITIONED: table.location}
        elsewhere: set[str] = set()
    else:
        locations = dict(partitions)
        roots: dict[str, str] = {}
        elsewhere = set()
        for name, location in partitions.items():
            directory = relative_directory(table, name, location)
            if directory is None:
                elsewhere.add(name)
            else:
                roots[directory] = name
        depth = len(table.partition_keys)
        apart = list(partitions) if only_these else sorted(elsewhere)
        below = {name: [] for name in partitions}
        below |= dict(zip(apart, files.list_trees([partitions[name] for name in apart]), strict=True))
        for entry in entries:
            parts = entry.path.split("/", depth)
            at = roots.get("/".join(parts[:depth]))
            if at is not None and len(parts) > depth and parts[depth]:
                below[at].append(files.FileEntry(parts[depth], entry.size, entry.modified_ms))
    found = []
    for name, location in locations.items():
        state = directory_state(
            below[name], write_ids, txns, lambda path, at=location: files.read(files.join(at, path))
        )
        if table.is_full_acid:
            state = _readable(location, state)
        found.append(PartitionState(name, location, state, name not in elsewhere, is_vacant=not below[name]))
    return TableState(table, write_ids, tuple(found))


def directory_of(table: Table, name: str, location: str) -> str:
    """The directory relative to the table's. Raises UnsupportedTableError if it does not tell the values."""
    relative = relative_directory(table, name, location)
    if relative is None:
        raise UnsupportedTableError(
            f"partition {name} of {table.full_name} lies at {location}, not at {table.location}/{name}: "
            "the values of partition columns come from the path there"
        )
    return relative


def relative_directory(table: Table, name: str, location: str) -> str | None:
    """The partition's directory relative to the table's, if it tells the partition's values; else None."""
    root, at = files.plain(table.location) + "/", files.plain(location)
    relative = at.removeprefix(root)
    if not at.startswith(root) or relative.count("/") != name.count("/") or _STRAY_PERCENT.search(relative):
        return None
    if not all(
        key and equals and value for key, equals, value in (part.partition("=") for part in relative.split("/"))
    ):
        return None
    return relative if parse_partition_name(relative) == parse_partition_name(name) else None


def _readable(location: str, state: DirectoryState) -> DirectoryState:
    """The state without the files in which a streaming writer has put nothing yet. Raises UnsupportedTableError."""
    closed = [closed_files(location, found) for found in (*state.data, *state.delete_deltas)]
    for found in closed:
        raw = [file for file in found.files if is_raw(file)]
        if not raw:
            continue
        at, of = files.join(location, raw[0].path), found.directory
        if of.kind is DirectoryKind.DELETE_DELTA or len(raw) < len(found.files):
            raise UnsupportedTableError(f"{at} has no ACID columns by its name, as all files beside it have")
        if of.kind is DirectoryKind.INSERT_DELTA and of.min_write_id != of.max_write_id:
            raise UnsupportedTableError(f"{at} has no ACID columns: which of the writes its rows are of cannot be told")
    if not any(one is not other for one, other in zip(closed, (*state.data, *state.delete_deltas), strict=True)):
        return state
    known = {found.name: found for found in closed}
    return replace(
        state,
        base=known[state.base.name] if state.base else None,
        insert_deltas=tuple(known[found.name] for found in state.insert_deltas),
        delete_deltas=tuple(known[found.name] for found in state.delete_deltas),
    )
