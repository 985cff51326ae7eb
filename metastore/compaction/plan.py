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
6. Where rows get other ids (a rebalance) nobody may write meanwhile: `CompactionPlan.exclusive_write`.
7. Of more deltas than one job is to merge the oldest come first, as a whole of their own up to some write id; see
   `metastore.compaction.worker.rounds`. A base has everything below it, so only a minor compaction may begin beyond
   others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import (
    MAX_BUCKET,
    ORIGINALS_WRITE_ID,
    Directory,
    DirectoryKind,
    base_name,
    delete_delta_name,
    delta_name,
    parse_bucket_file,
    parse_directory,
)
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DataFile, DirectoryState, Metadata, directory_state
from hive_acid.ids import TxnId, WriteId
from metastore.compaction.states import CompactionType

BEGINNING = WriteId(0)
"""Before every write."""


class CompactionRefusedError(Exception):
    """The compaction is not possible, or there is nothing to do; the sentence is for the user."""


@dataclass(frozen=True, slots=True)
class CompactionInput:
    """What a compaction sees: the directory's state up to `highest_write_id`, and the list that says so.

    `later` are directories with committed writes beyond that, of which a reader sees something. Of deltas only those
    that begin beyond `after` are in the state: it is 0 where they all are.
    """

    write_ids: ValidWriteIdList
    state: DirectoryState
    later: tuple[str, ...] = ()
    after: WriteId = BEGINNING

    @property
    def highest_write_id(self) -> WriteId:
        """All up to here is resolved, and in no directory that reaches beyond."""
        return WriteId(self.write_ids.high_water_mark)

    @property
    def deltas(self) -> tuple[DataDirectory, ...]:
        """The deltas of both kinds."""
        return self.state.insert_deltas + self.state.delete_deltas

    def beyond(self, after: WriteId) -> CompactionInput:
        """The same without the deltas that begin at or below a write id; of use for minor compactions alone."""
        inserts, deletes = (
            tuple(delta for delta in deltas if delta.directory.min_write_id > after)
            for deltas in (self.state.insert_deltas, self.state.delete_deltas)
        )
        return replace(self, state=replace(self.state, insert_deltas=inserts, delete_deltas=deletes), after=after)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Directories to merge, and the names of the results; a name is None where that kind is not in the input.

    `raw` are files without ACID columns: those from before the table was transactional, and those of LOAD DATA, whose
    directories are not in `data`. `buckets` is the number of files to which a rebalance brings the rows. The files of
    an `insert_only` table have rows alone, in the table's format.
    """

    data: tuple[DataDirectory, ...]
    raw: tuple[DataFile, ...]
    deletes: tuple[DataDirectory, ...]
    insert_output: str | None
    delete_output: str | None
    buckets: int | None = None
    insert_only: bool = False

    @property
    def exclusive_write(self) -> bool:
        """Whether nobody else may write from the snapshot to the commit."""
        return self.buckets is not None

    @property
    def kind(self) -> CompactionType:
        """What it is, whatever was asked for: only a major one and a rebalance make a base."""
        if self.buckets is not None:
            return CompactionType.REBALANCE
        is_base = self.insert_output is not None and self.insert_output.startswith(DirectoryKind.BASE.value)
        return CompactionType.MAJOR if is_base else CompactionType.MINOR

    @property
    def input_files(self) -> int:
        """How many files it replaces."""
        return sum(len(of.files) for of in (*self.data, *self.deletes)) + len(self.raw)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the directories to be made."""
        return tuple(name for name in (self.insert_output, self.delete_output) if name)


def compaction_input(
    entries: Sequence[FileEntry],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    metadata: Metadata,
    up_to: WriteId | None = None,
) -> CompactionInput:
    """What a compaction may merge of a directory, if need be no further than `up_to`. `write_ids` is the list as a
    reader has it.

    Raises NotEnoughHistoryError or FormatError as `directory_state` does.
    """
    limit = write_ids.for_compactor().high_water_mark
    if up_to is not None:
        limit = min(limit, up_to)
    deltas = _deltas(entries, txns)
    for directory in sorted(deltas, key=lambda found: found.min_write_id, reverse=True):
        if directory.min_write_id <= limit < directory.max_write_id:
            limit = directory.min_write_id - 1
    compactor_list = ValidWriteIdList(
        write_ids.table, min(limit, write_ids.high_water_mark), write_ids.open_ids, write_ids.aborted_ids, limit + 1
    ).for_compactor()
    later = (
        found.name
        for found in deltas
        if found.max_write_id > limit
        and write_ids.range_validity(found.min_write_id, found.max_write_id) is not RangeValidity.NONE
    )
    state = directory_state(entries, compactor_list, txns, metadata)
    return CompactionInput(compactor_list, state, tuple(sorted(later)))


def _deltas(entries: Iterable[FileEntry], txns: ValidTxnList) -> set[Directory]:
    """Every delta that is not an unfinished or failed compaction's."""
    names = {entry.path.partition("/")[0] for entry in entries}
    return {
        directory
        for directory in map(parse_directory, names)
        if directory is not None
        and directory.kind is not DirectoryKind.BASE
        and (not directory.visibility_txn_id or txns.is_valid(directory.visibility_txn_id))
    }


@dataclass(frozen=True, slots=True)
class TableKind:
    """What of a table decides how its directories are merged.

    A table of `hive_3` has results without a transaction's number; twins of that kind could not take effect at once, so
    a minor compaction is a major one there. `is_clustered` is what CLUSTERED BY says, `in_one_bucket` that all rows
    have to lie in bucket 0, as Trino wants it.
    """

    hive_3: bool = False
    insert_only: bool = False
    is_clustered: bool = False
    in_one_bucket: bool = False


FULL_ACID = TableKind()
"""A table with nothing special about it."""


def plan_compaction(
    found: CompactionInput,
    kind: CompactionType,
    txn_id: TxnId,
    table: TableKind = FULL_ACID,
    *,
    buckets: int | None = None,
) -> CompactionPlan | None:
    """How to compact, None if the input is as compact as this kind of compaction can make it.

    `buckets` is how many files a rebalance is asked to make, None for as many as there are.

    Raises CompactionRefusedError for what we do not compact.
    """
    if kind not in (CompactionType.MINOR, CompactionType.MAJOR, CompactionType.REBALANCE):
        raise CompactionRefusedError(f"a compaction of type {kind.name} merges nothing: ask for a minor or a major one")
    (_refuse_foreign if table.insert_only else _refuse_unreadable)(found)
    if kind is CompactionType.REBALANCE:
        return _rebalance(found, txn_id, table, buckets)
    if table.hive_3:
        kind, txn_id = CompactionType.MAJOR, TxnId(0)
    state, deltas = found.state, found.deltas
    if kind is CompactionType.MAJOR and found.after:
        raise ValueError(f"a base would hide the deltas up to write id {found.after}, which are not in it")
    if not is_enough(found, kind, insert_only=table.insert_only):
        return None
    if table.insert_only:
        return _insert_only(found, kind, txn_id)
    if kind is CompactionType.MAJOR:
        return _major(state, txn_id)
    lowest = min(delta.directory.min_write_id for delta in deltas)
    highest = max(delta.directory.max_write_id for delta in deltas)
    return CompactionPlan(
        data=_with_ids(state.insert_deltas),
        raw=_raw_files(state.insert_deltas),
        deletes=state.delete_deltas,
        insert_output=delta_name(lowest, highest, None, txn_id) if state.insert_deltas else None,
        delete_output=delete_delta_name(lowest, highest, None, txn_id) if state.delete_deltas else None,
    )


def _major(state: DirectoryState, txn_id: TxnId) -> CompactionPlan:
    return CompactionPlan(
        _with_ids(state.data),
        (*state.originals, *_raw_files(state.data)),
        state.delete_deltas,
        base_name(_highest(state), txn_id),
        None,
    )


def _highest(state: DirectoryState) -> int:
    found = (directory.directory.max_write_id for directory in (*state.data, *state.delete_deltas))
    return max(found, default=ORIGINALS_WRITE_ID)


def _rebalance(found: CompactionInput, txn_id: TxnId, table: TableKind, buckets: int | None) -> CompactionPlan | None:
    """All rows into even ranges, under other ids (transactions.md §4.7); None if there are no files."""
    if table.insert_only:
        raise CompactionRefusedError("an insert-only table has no buckets to rebalance: ask for a major compaction")
    if table.is_clustered:
        raise CompactionRefusedError("the table is CLUSTERED BY columns, whose hash says where each row has to lie")
    if table.hive_3:
        raise CompactionRefusedError("Apache Hive 3.1 reads the table, and would see the rows' other ids too early")
    if buckets is not None and not 1 <= buckets <= MAX_BUCKET + 1:
        raise CompactionRefusedError(f"a table has 1 to {MAX_BUCKET + 1} buckets, not {buckets}")
    if table.in_one_bucket and (buckets or 1) > 1:
        raise CompactionRefusedError("hive_acid.layout says that all rows lie in bucket 0: drop the property first")
    if found.later:
        # Its delete events name rows by the ids that they would lose.
        raise CompactionRefusedError(
            f"{found.later[0]} was committed while write id {found.highest_write_id + 1}, an earlier one, is open: ask "
            "again when that has ended"
        )
    plan = _major(found.state, txn_id)
    if not plan.data and not plan.raw:
        return None
    present = {file.bucket for directory in plan.data for file in directory.files if file.bucket is not None}
    present |= {file.bucket or 0 for file in plan.raw}
    return replace(plan, buckets=1 if table.in_one_bucket else buckets or len(present))


def _insert_only(found: CompactionInput, kind: CompactionType, txn_id: TxnId) -> CompactionPlan:
    """The files of whole directories, side by side (acid-format.md §6.2)."""
    merged = found.state.data if kind is CompactionType.MAJOR else found.state.insert_deltas
    highest = max(directory.directory.max_write_id for directory in merged)
    if kind is CompactionType.MAJOR:
        output = base_name(highest, txn_id)
    else:
        output = delta_name(min(one.directory.min_write_id for one in merged), highest, None, txn_id)
    return CompactionPlan(merged, (), (), output, None, insert_only=True)


def is_enough(found: CompactionInput, kind: CompactionType, *, insert_only: bool) -> bool:
    """Whether the compaction would leave fewer directories than there are (transactions.md §4.6)."""
    if kind is CompactionType.MAJOR:
        if not insert_only and (found.state.originals or _raw_files(found.state.data)):
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


def _refuse_foreign(found: CompactionInput) -> None:
    """Refuse what must not be in an insert-only table, and would be lost with its directories."""
    if found.state.delete_deltas:
        raise CompactionRefusedError(f"{found.state.delete_deltas[0].name} is in an insert-only table, whose rows stay")
    if found.state.originals:
        raise CompactionRefusedError(
            f"{found.state.originals[0].path} is in no directory of a write, so nobody reads it, and a base would have "
            "it removed: move it away, or load it by LOAD DATA"
        )
    for directory in found.state.data:
        if directory.unfinished:
            raise CompactionRefusedError(f"a streaming writer has not closed its files in {directory.name}")


def _refuse_unreadable(found: CompactionInput) -> None:
    for directory in (*found.state.data, *found.state.delete_deltas):
        if directory.unfinished:
            raise CompactionRefusedError(f"a streaming writer has not closed its files in {directory.name}")
        raw = [file for file in directory.files if _is_raw(directory, file)]
        if not raw:
            continue
        of = directory.directory
        if of.kind is DirectoryKind.DELETE_DELTA or len(raw) < len(directory.files):
            raise CompactionRefusedError(f"{raw[0].path} is not a file with ACID columns, as it must be there")
        if of.kind is DirectoryKind.INSERT_DELTA and of.min_write_id != of.max_write_id:
            raise CompactionRefusedError(f"{raw[0].path} has no ACID columns: which write its rows are of is not known")
