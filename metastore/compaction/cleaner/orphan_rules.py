"""Which directories in the place of a table are orphans: pure functions of a listing and of what is known of ids.

Certain is what no transaction can make visible any more. Uncertain is what nobody here knows, but somebody else may.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import DirectoryKind, claims_to_be_data, is_hidden, parse_directory, parse_staging
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList

_STAGING_OF_OTHERS = ("_tmp", ".hive-staging", "_task_tmp", ".spark-staging")
"""How hidden directories begin in which other programs make their output."""
_JUST_NOW_MS = 2**62


class Reason(enum.Enum):
    """Why something is an orphan."""

    STAGING = "staging"
    ABORTED = "aborted"
    COMPACTOR = "compactor"
    WRITE_ID = "write_id"
    PARTITION = "partition"
    TABLE = "table"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a directory is an orphan, in a word and for people; uncertain ones may be somebody's."""

    reason: Reason
    why: str
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a table's ids, asked for after its files were listed.

    `takes_foreign_ids` says that files come from another metastore, which may know ids that are unknown here.
    """

    txns: ValidTxnList
    write_ids: ValidWriteIdList
    takes_foreign_ids: bool = False

    @property
    def last_write_id(self) -> int:
        """The last one given out, 0 before the first."""
        return self.write_ids.high_water_mark


@dataclass(slots=True)
class Unit:
    """A directory with all below it: bytes and number of its files, and the newest change in it.

    `data` are the names of the data directories below one that is none itself.
    """

    size: int = 0
    files: int = 0
    modified_ms: int = 0
    data: set[str] = field(default_factory=set)

    def add(self, entry: FileEntry) -> None:
        """Count one thing below it, or itself; what was changed at an unknown time is as good as changed just now."""
        self.size += entry.size
        self.files += not entry.is_directory
        self.modified_ms = max(self.modified_ms, entry.modified_ms or _JUST_NOW_MS)


@dataclass(frozen=True, slots=True)
class Survey:
    """The directories below a location by their paths: hidden ones, data directories, and the places of these."""

    hidden: Mapping[str, Unit]
    data: Mapping[str, Unit]
    places: Mapping[str, Unit]

    @classmethod
    def of(cls, entries: Iterable[FileEntry]) -> Survey:
        """What a recursive listing shows; what lies in a hidden or a data directory is just part of that."""
        hidden: defaultdict[str, Unit] = defaultdict(Unit)
        data: defaultdict[str, Unit] = defaultdict(Unit)
        places: defaultdict[str, Unit] = defaultdict(Unit)
        for entry in entries:
            parts = entry.path.rstrip("/").split("/")
            directories = len(parts) if entry.is_directory else len(parts) - 1
            special = next(
                (at for at in range(directories) if is_hidden(parts[at]) or claims_to_be_data(parts[at])), directories
            )
            for depth in range(1, special + 1):
                place = places["/".join(parts[:depth])]
                place.add(entry)
                if special < directories and not is_hidden(parts[special]):
                    place.data.add(parts[special])
            if special < directories:
                found = hidden if is_hidden(parts[special]) else data
                found["/".join(parts[: special + 1])].add(entry)
        return cls(hidden, data, places)


def judge_hidden(name: str, evidence: Evidence) -> Judgement | None:
    """What to think of a hidden directory in the place of a table or partition."""
    txn_id = parse_staging(name)
    txns = evidence.txns
    if txn_id is None:
        # One of these may be at work behind any open write.
        if not name.startswith(_STAGING_OF_OTHERS) or evidence.write_ids.open_ids:
            return None
        return Judgement(Reason.UNKNOWN, "output of a program that did not tidy up, or is at work", is_certain=False)
    if txn_id > txns.high_water_mark:
        if evidence.takes_foreign_ids:
            return Judgement(Reason.UNKNOWN, f"output of transaction {txn_id} of another metastore", is_certain=False)
        return Judgement(Reason.STAGING, f"output of transaction {txn_id}, which never was")
    if txns.is_aborted(txn_id):
        return Judgement(Reason.STAGING, f"output of transaction {txn_id}, which was aborted")
    if txns.is_valid(txn_id):
        return Judgement(Reason.STAGING, f"output that transaction {txn_id}, which has ended, left behind")
    return None


def judge_data(name: str, evidence: Evidence) -> Judgement | None:
    """What to think of a data directory in the place of a table or partition."""
    directory = parse_directory(name)
    if directory is None:
        return Judgement(Reason.UNKNOWN, "named like a base or delta, but its numbers make no sense", is_certain=False)
    if directory.visibility_txn_id:
        return _judge_compacted(directory.visibility_txn_id, evidence)
    highest = directory.max_write_id
    lowest = highest if directory.kind is DirectoryKind.BASE else directory.min_write_id
    if lowest > evidence.last_write_id:
        if not evidence.last_write_id:
            words = f"write id {lowest}, though none was given out for this table yet"
            return Judgement(Reason.UNKNOWN, f"{words}: it may have been moved here", is_certain=False)
        words = f"write id {lowest} was never given out: the last one is {evidence.last_write_id}"
        if evidence.takes_foreign_ids:
            return Judgement(Reason.UNKNOWN, f"{words}; another metastore may have", is_certain=False)
        return Judgement(Reason.WRITE_ID, words)
    if evidence.write_ids.aborted_range(lowest, highest) is RangeValidity.ALL:
        which = f"write id {lowest}" if lowest == highest else f"write ids {lowest} to {highest}"
        return Judgement(Reason.ABORTED, f"{which} aborted")
    return None


def _judge_compacted(txn_id: int, evidence: Evidence) -> Judgement | None:
    if evidence.txns.is_aborted(txn_id):
        return Judgement(Reason.COMPACTOR, f"the compaction that made it, transaction {txn_id}, was aborted")
    if txn_id <= evidence.txns.high_water_mark:
        return None
    words = f"the compaction that made it would be transaction {txn_id}, which never was"
    if evidence.takes_foreign_ids:
        return Judgement(Reason.UNKNOWN, f"{words} here; another metastore may know it", is_certain=False)
    return Judgement(Reason.COMPACTOR, words)


def judge_place(path: str, unit: Unit, evidence: Evidence) -> Judgement | None:
    """What to think of a partition's directory whose partition the catalogue does not know."""
    open_ids, rows = 0, 0
    for name in unit.data:
        directory = parse_directory(name)
        if directory is None:
            rows += 1
            continue
        lowest = directory.max_write_id if directory.kind is DirectoryKind.BASE else directory.min_write_id
        open_ids += any(lowest <= one <= directory.max_write_id for one in evidence.write_ids.open_ids)
        rows += judge_data(name, evidence) is None
    if open_ids:
        return None  # its writer has still to tell the catalogue
    words = f"partition {path} is not in the catalogue"
    if rows or (unit.files and not unit.data):
        return Judgement(
            Reason.PARTITION, f"{words}; adding it would bring back what was committed there", is_certain=False
        )
    return Judgement(Reason.PARTITION, words)


def lost_partitions(survey: Survey, keys: Sequence[str], known: Collection[str]) -> dict[str, Unit]:
    """The directories named like partitions by `keys` that are none of the `known` paths, nor above one."""
    return {
        path: unit
        for path, unit in survey.places.items()
        if len(parts := path.split("/")) == len(keys)
        and all(part.partition("=")[0].lower() == key.lower() for part, key in zip(parts, keys, strict=True))
        and not any(one == path or one.startswith(f"{path}/") for one in known)
    }
