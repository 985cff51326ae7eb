"""What lies in the directory of a table or partition, in the figures from which compactions are decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hive_acid.format.names import DirectoryKind, parse_directory
from hive_acid.format.state import DataDirectory, DataFile, DirectoryState


@dataclass(frozen=True, slots=True)
class DeltaGroup:
    """Deltas that a compaction merges together or not at all: those of one write, or of ranges that overlap.

    `inserts` and `deletes` are their files; `is_merged` says that a compaction has made them.
    """

    first_write_id: int
    last_write_id: int
    insert_deltas: int
    delete_deltas: int
    inserts: tuple[DataFile, ...]
    deletes: tuple[DataFile, ...]
    is_merged: bool

    @property
    def deltas(self) -> int:
        """The deltas of both kinds."""
        return self.insert_deltas + self.delete_deltas


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Numbers of directories and files, bytes, and the deltas by groups, the oldest first.

    A table without a base counts its files from before it was transactional as one, of `base_write_id` 0, which a base
    of these alone has, too. `writes` are the write ids at which deltas end: statements of one write are not merged by a
    minor compaction.
    """

    base_bytes: int = 0
    base_files: tuple[DataFile, ...] = ()
    base_write_id: int = 0
    insert_deltas: int = 0
    insert_bytes: int = 0
    delete_deltas: int = 0
    delete_bytes: int = 0
    writes: int = 0
    obsolete_bases: int = 0
    obsolete_deltas: int = 0
    groups: tuple[DeltaGroup, ...] = ()

    @classmethod
    def of(cls, state: DirectoryState) -> FileTotals:
        """The figures of a directory as a compaction, or a reader, sees it."""
        base_files = state.base.files if state.base else state.originals
        deltas = state.insert_deltas + state.delete_deltas
        obsolete = [found.kind for name in state.obsolete if (found := parse_directory(name)) is not None]
        return cls(
            base_bytes=sum(file.size for file in base_files),
            base_files=base_files,
            base_write_id=max(0, state.base.directory.max_write_id) if state.base else 0,
            insert_deltas=len(state.insert_deltas),
            insert_bytes=sum(delta.size for delta in state.insert_deltas),
            delete_deltas=len(state.delete_deltas),
            delete_bytes=sum(delta.size for delta in state.delete_deltas),
            writes=len({delta.directory.max_write_id for delta in deltas}),
            obsolete_bases=sum(kind is DirectoryKind.BASE for kind in obsolete),
            obsolete_deltas=sum(kind is not DirectoryKind.BASE for kind in obsolete),
            groups=tuple(map(_group, _together(deltas))),
        )

    @property
    def deltas(self) -> int:
        """The deltas of both kinds."""
        return self.insert_deltas + self.delete_deltas

    @property
    def can_be_minor(self) -> bool:
        """Whether a minor compaction would leave fewer deltas (`metastore.compaction.plan`)."""
        return self.writes > 1 and not self.insert_deltas == self.delete_deltas == 1

    @property
    def delta_bytes(self) -> int:
        """The bytes of the deltas of both kinds."""
        return self.insert_bytes + self.delete_bytes


def small_deltas(state: DirectoryState, part_of_base: float) -> int:
    """How many deltas have less than a part of the base's bytes."""
    limit = part_of_base * FileTotals.of(state).base_bytes
    return sum(delta.size < limit for delta in state.insert_deltas + state.delete_deltas)


def _together(deltas: Iterable[DataDirectory]) -> list[list[DataDirectory]]:
    """Deltas by groups between which a compaction may begin, the oldest first."""
    groups: list[list[DataDirectory]] = []
    end = 0
    for delta in sorted(deltas, key=lambda delta: (delta.directory.min_write_id, delta.directory.max_write_id)):
        if groups and delta.directory.min_write_id <= end:
            groups[-1].append(delta)
        else:
            groups.append([delta])
        end = max(end, delta.directory.max_write_id)
    return groups


def _group(deltas: list[DataDirectory]) -> DeltaGroup:
    def files(kind: DirectoryKind) -> tuple[DataFile, ...]:
        return tuple(file for delta in deltas if delta.directory.kind is kind for file in delta.files)

    return DeltaGroup(
        min(delta.directory.min_write_id for delta in deltas),
        max(delta.directory.max_write_id for delta in deltas),
        sum(delta.directory.kind is DirectoryKind.INSERT_DELTA for delta in deltas),
        sum(delta.directory.kind is DirectoryKind.DELETE_DELTA for delta in deltas),
        files(DirectoryKind.INSERT_DELTA),
        files(DirectoryKind.DELETE_DELTA),
        any(delta.directory.visibility_txn_id for delta in deltas),
    )
