"""What a compaction reads and writes: pure functions from a listing and a snapshot (acid-format.md §6.1, §6.2).

A plan keeps to these rules:

1. Nothing open is inside its range, and no directory lies half inside.
2. Each kind of delta that is inside the range has its merged twin, even an empty one: a range that lacks one kind would
   hide what is left of it.
3. A minor compaction never merges the statements of a single write id: deletes would no longer apply to the rows that
   their own transaction inserted.
4. The output ends at the highest write id of its input, so that its name says what is in it; that of files from before
   the table was transactional, alone, has a name of its own (acid-format.md §1.1).
5. Rows without ids of their own get those by which readers know them, so deletes that name them stay right whoever
   commits them meanwhile: no lock is needed for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hive_acid.files import FileEntry
from hive_acid.format.names import (
    ORIGINALS_WRITE_ID,
    Kind,
    base_name,
    delete_delta_name,
    delta_name,
    parse_bucket_file,
    parse_directory,
)
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DataFile, DirectoryState, Metadata, directory_state
from hive_acid.ids import TxnId, WriteId
from metastore.compaction.states import CompactionType


class CompactionRefusedError(Exception):
    """The compaction is not possible, or there is nothing to do; the sentence is for the user."""


@dataclass(frozen=True, slots=True)
class CompactionInput:
    """What a compaction sees: the directory's state up to `highest_write_id`, and the list that says so."""

    write_ids: ValidWriteIdList
    state: DirectoryState

    @property
    def highest_write_id(self) -> WriteId:
        """All up to here is resolved, and in no directory that reaches beyond."""
        return WriteId(self.write_ids.high_water_mark)

    @property
    def deltas(self) -> tuple[DataDirectory, ...]:
        """The deltas of both kinds."""
        return self.state.insert_deltas + self.state.delete_deltas


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Directories to merge, and the names of the results; a name is None where that kind is not in the input.

    `raw` are files without ACID columns: those from before the table was transactional, and those of LOAD DATA, whose
    directories are not in `data`.
    """

    data: tuple[DataDirectory, ...]
    raw: tuple[DataFile, ...]
    deletes: tuple[DataDirectory, ...]
    insert_output: str | None
    delete_output: str | None

    @property
    def kind(self) -> CompactionType:
        """What it is, whatever was asked for: only a major one makes a base."""
        is_base = self.insert_output is not None and self.insert_output.startswith(Kind.BASE.value)
        return CompactionType.MAJOR if is_base else CompactionType.MINOR

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the directories to be made."""
        return tuple(name for name in (self.insert_output, self.delete_output) if name)


def compaction_input(
    entries: Sequence[FileEntry], write_ids: ValidWriteIdList, txns: ValidTxnList, metadata: Metadata
) -> CompactionInput:
    """What a compaction may merge of a directory. `write_ids` is the list as a reader has it.

    Raises NotEnoughHistoryError or FormatError as `directory_state` does.
    """
    limit = write_ids.for_compactor().high_water_mark
    for directory in sorted(_deltas(entries, txns), key=lambda pair: pair[0], reverse=True):
        lowest, highest = directory
        if lowest <= limit < highest:
            limit = lowest - 1
    compactor_list = ValidWriteIdList(
        write_ids.table, min(limit, write_ids.high_water_mark), write_ids.open_ids, write_ids.aborted_ids, limit + 1
    ).for_compactor()
    return CompactionInput(compactor_list, directory_state(entries, compactor_list, txns, metadata))


def _deltas(entries: Iterable[FileEntry], txns: ValidTxnList) -> set[tuple[int, int]]:
    """(lowest, highest) write id of every delta that is not an unfinished or failed compaction's."""
    names = {entry.path.partition("/")[0] for entry in entries}
    return {
        (directory.min_write_id, directory.max_write_id)
        for directory in map(parse_directory, names)
        if directory is not None
        and directory.kind is not Kind.BASE
        and (not directory.visibility_txn_id or txns.is_valid(directory.visibility_txn_id))
    }


def plan_compaction(
    found: CompactionInput, kind: CompactionType, txn_id: TxnId, *, hive_3: bool = False
) -> CompactionPlan | None:
    """How to compact, None if the input is as compact as this kind of compaction can make it.

    With `hive_3` the result bears no transaction's number. Twins of that kind could not take effect at once, so a minor
    compaction is a major one then.

    Raises CompactionRefusedError for what we do not compact.
    """
    if kind not in (CompactionType.MINOR, CompactionType.MAJOR):
        raise CompactionRefusedError(
            f"compactions of type {kind.name} are not supported: ask for a minor or a major one"
        )
    _refuse_unreadable(found)
    if hive_3:
        kind, txn_id = CompactionType.MAJOR, TxnId(0)
    state, deltas = found.state, found.deltas
    if not _is_enough(found, kind):
        return None
    if kind is CompactionType.MAJOR:
        highest = max((directory.directory.max_write_id for directory in (*state.data, *deltas)), default=None)
        output = base_name(ORIGINALS_WRITE_ID if highest is None else highest, txn_id)
        return CompactionPlan(
            _with_ids(state.data), (*state.originals, *_raw_files(state.data)), state.delete_deltas, output, None
        )
    lowest = min(delta.directory.min_write_id for delta in deltas)
    highest = max(delta.directory.max_write_id for delta in deltas)
    return CompactionPlan(
        data=_with_ids(state.insert_deltas),
        raw=_raw_files(state.insert_deltas),
        deletes=state.delete_deltas,
        insert_output=delta_name(lowest, highest, None, txn_id) if state.insert_deltas else None,
        delete_output=delete_delta_name(lowest, highest, None, txn_id) if state.delete_deltas else None,
    )


def _is_enough(found: CompactionInput, kind: CompactionType) -> bool:
    """Whether the compaction would leave fewer directories than there are (transactions.md §4.6)."""
    if kind is CompactionType.MAJOR:
        if found.state.originals or _raw_files(found.state.data):
            return True
        return len(found.deltas) + (found.state.base is not None) > 1
    if len({delta.directory.max_write_id for delta in found.deltas}) < 2:
        return False
    is_pair = len(found.state.insert_deltas) == len(found.state.delete_deltas) == 1
    return not is_pair


def _is_raw(directory: DataDirectory, file: DataFile) -> bool:
    return parse_bucket_file(file.path.removeprefix(f"{directory.name}/")) is None


def _with_ids(directories: Iterable[DataDirectory]) -> tuple[DataDirectory, ...]:
    return tuple(found for found in directories if not any(_is_raw(found, file) for file in found.files))


def _raw_files(directories: Iterable[DataDirectory]) -> tuple[DataFile, ...]:
    return tuple(file for found in directories for file in found.files if _is_raw(found, file))


def _refuse_unreadable(found: CompactionInput) -> None:
    for directory in (*found.state.data, *found.state.delete_deltas):
        if directory.unfinished:
            raise CompactionRefusedError(f"a streaming writer has not closed its files in {directory.name}")
        raw = [file for file in directory.files if _is_raw(directory, file)]
        if not raw:
            continue
        of = directory.directory
        if of.kind is Kind.DELETE_DELTA or len(raw) < len(directory.files):
            raise CompactionRefusedError(f"{raw[0].path} is not a file with ACID columns, as it must be there")
        if of.kind is Kind.INSERT_DELTA and of.min_write_id != of.max_write_id:
            raise CompactionRefusedError(f"{raw[0].path} has no ACID columns: which write its rows are of is not known")
