"""What lies in the directory of a table or partition, in the figures from which compactions are decided."""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.format.names import DirectoryKind, parse_directory
from hive_acid.format.state import DataDirectory, DirectoryState


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Numbers of directories and files, and bytes.

    A table without a base counts its files from before it was transactional as one. `merged_files` are the files that
    the insert deltas would be, merged: one for each bucket; `merged_delete_files` those of the delete deltas. `writes`
    are the write ids at which deltas end: statements of one write are not merged by a minor compaction.
    """

    base_bytes: int = 0
    insert_deltas: int = 0
    insert_bytes: int = 0
    insert_files: int = 0
    merged_files: int = 0
    delete_deltas: int = 0
    delete_bytes: int = 0
    delete_files: int = 0
    merged_delete_files: int = 0
    writes: int = 0
    obsolete_bases: int = 0
    obsolete_deltas: int = 0

    @classmethod
    def of(cls, state: DirectoryState) -> FileTotals:
        """The figures of a directory as a compaction, or a reader, sees it."""
        base_bytes = state.base.size if state.base else sum(file.size for file in state.originals)
        obsolete = [found.kind for name in state.obsolete if (found := parse_directory(name)) is not None]
        return cls(
            base_bytes,
            *_figures(state.insert_deltas),
            *_figures(state.delete_deltas),
            writes=len({delta.directory.max_write_id for delta in state.insert_deltas + state.delete_deltas}),
            obsolete_bases=sum(kind is DirectoryKind.BASE for kind in obsolete),
            obsolete_deltas=sum(kind is not DirectoryKind.BASE for kind in obsolete),
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


def _figures(deltas: tuple[DataDirectory, ...]) -> tuple[int, int, int, int]:
    """Directories, bytes, files, and buckets: files with rows of one bucket become one."""
    files = [file for delta in deltas for file in delta.files]
    return len(deltas), sum(delta.size for delta in deltas), len(files), len({file.bucket for file in files})
