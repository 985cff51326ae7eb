"""What a compaction is told and what it answers: the other side of `metastore.compaction.worker.job`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.format.compression import DEFAULT_COMPRESSION
from hive_acid.format.names import parse_directory
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import directory_state
from hive_acid.spark.read.listing import UNPARTITIONED, PartitionState, TableState

MINOR, MAJOR, REBALANCE = "minor", "major", "rebalance"
KINDS = (MINOR, MAJOR, REBALANCE)
_ALL_TXNS = ValidTxnList.parse(f"{2**63 - 1}:{2**63 - 1}::")
"""A job names directories that its compaction sees: whose transactions they are of has been looked at."""


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What to compact; `from_json` documents the fields."""

    kind: str
    location: str
    staging: str
    columns: tuple[Column, ...]
    write_ids: ValidWriteIdList
    data: tuple[str, ...]
    raw: tuple[str, ...]
    deletes: tuple[str, ...]
    insert_output: str | None
    delete_output: str | None
    compression: str
    parameters: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict)
    buckets: int | None = None
    order_by: str | None = None
    insert_only: bool = False
    input_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, job: Mapping[str, Any]) -> CompactionJob:
        """The job of a JSON object.

        ``type`` is minor, major or rebalance; ``location`` the table's or partition's directory; ``staging`` a hidden
        directory for the output; ``schema`` the columns in the files as [name, Hive type]; ``write_ids`` the snapshot's
        text; ``data`` and ``deletes`` the directories to read, as [name, "all" or "some"] of their rows; ``raw`` the
        paths of files without ACID columns; ``insert_output`` and ``delete_output`` the names of the directories to
        make, or null; ``compression`` that of ORC files; ``parameters`` those of the table that tell how its files are
        read, ``options`` what else is said of ORC files to be written.

        A rebalance has ``buckets``, the number of files to make, and may have ``order_by``, a clause of SQL over the
        table's columns. Files of an ``insert_only`` table are told by Hive's ``input_format``, ``serde`` and
        ``serde_parameters``. ``settings`` are Spark's, for this job alone.

        Raises FormatError for a job that cannot be understood.
        """
        try:
            parsed = cls(
                kind=job["type"],
                location=job["location"],
                staging=job["staging"],
                columns=tuple(Column(name, type_) for name, type_ in job["schema"]),
                write_ids=ValidWriteIdList.parse(job["write_ids"]),
                data=tuple(_name(*found) for found in job["data"]),
                raw=tuple(job.get("raw") or ()),
                deletes=tuple(_name(*found) for found in job["deletes"]),
                insert_output=job.get("insert_output"),
                delete_output=job.get("delete_output"),
                compression=job.get("compression") or DEFAULT_COMPRESSION,
                parameters=dict(job.get("parameters") or {}),
                options=dict(job.get("options") or {}),
                buckets=job.get("buckets"),
                order_by=job.get("order_by"),
                insert_only=bool(job.get("insert_only")),
                input_format=job.get("input_format") or "",
                serde=job.get("serde") or "",
                serde_parameters=dict(job.get("serde_parameters") or {}),
                settings=dict(job.get("settings") or {}),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the compaction job lacks or misstates {error}") from error
        if parsed.kind not in KINDS:
            raise FormatError(f"a compaction is {' or '.join(KINDS)}, not '{parsed.kind}'")
        if parsed.kind != MINOR and (parsed.delete_output or not parsed.insert_output):
            raise FormatError(f"a {parsed.kind} compaction makes one base, and no delete delta")
        if (parsed.kind == REBALANCE) != (parsed.buckets is not None):
            raise FormatError("a rebalance has a number of buckets, and no other compaction has")
        return parsed

    def state(self) -> TableState:
        """What the job is to merge, as the state of a table of which that is all: the reader makes rows of it."""
        chosen = (*self.data, *self.deletes)
        entries = [
            entry
            for entry in files.list_tree(self.location)
            if entry.path in self.raw or entry.path.partition("/")[0] in chosen
        ]
        found = directory_state(
            entries, self.write_ids, _ALL_TXNS, lambda path: files.read(files.join(self.location, path))
        )
        table = Table(
            "",
            self.location,
            self.columns,
            parameters=dict(self.parameters),
            location=self.location,
            input_format=self.input_format,
            serde=self.serde,
            serde_parameters=dict(self.serde_parameters),
        )
        return TableState(table, self.write_ids, (PartitionState(UNPARTITIONED, self.location, found),))


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction has made: `files` of `size` bytes out of `input_bytes`, `directories` by name."""

    rows: int
    deletes: int
    size: int
    directories: tuple[str, ...]
    seconds: float
    files: int
    input_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: what it has written until now, and what it does."""

    rows: int
    files: int
    bytes_written: int
    phase: str


Report = Callable[[Progress], None]
"""What takes the progress of a job. It may raise, if the job is not wanted any more."""


def unheard(progress: Progress) -> None:
    """A `Report` for whoever does not want to know."""


def _name(name: str, visible: str) -> str:
    if parse_directory(name) is None or visible not in ("all", "some"):
        raise ValueError(f"directory {name} ({visible})")
    return name
