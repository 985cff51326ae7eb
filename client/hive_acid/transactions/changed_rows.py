"""Which rows a transaction has deleted or replaced, and whether others have changed the same ones since.

The metastore knows of changes by tables and partitions: two of one partition are a conflict to it. Who has changed
other rows of it can tell by the files: each change of a row is a delete event, which names the row. So they are looked
for in the directories that have become visible since the transaction's snapshot, and compared with its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hive_acid.filesystem import files
from hive_acid.filesystem.delete_files import SHARED, DeleteFiles
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.format.deletion_bitmap import BLOCK_ROWS, DeletionBitmap, RowSource, merged
from hive_acid.format.names import VERSION_MARKER, Directory, DirectoryKind, parse_directory
from hive_acid.format.rows import RowId
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList
from hive_acid.ids import WriteId

MOST_BYTES = 64 << 20
"""More of delete files is not read before a commit, compressed as they are: the transactions conflict then."""
_SAMPLES = 3
_ALL = ""
"""The partition of a table without partition keys."""


@dataclass(frozen=True, slots=True)
class Since:
    """What a transaction sees of a table, what there is by now, and the write id by which it writes."""

    own: WriteId
    before: ValidWriteIdList
    now: ValidWriteIdList
    snapshot: ValidTxnList
    """Of now."""

    def others(self, most: int) -> list[int] | None:
        """The writes of others that have become visible since, ascending; None if they are more than `most`.

        Of ten times as many ids none is looked at.
        """
        since = range(self.before.high_water_mark + 1, self.now.high_water_mark + 1)
        if len(since) + len(self.before.open_ids) > 10 * most:
            return None
        found = [one for one in sorted({*self.before.open_ids, *since}) if self.is_others(one, one)]
        return found if len(found) <= most else None

    def is_others(self, lowest: int, highest: int) -> bool:
        """Whether some write of ``lowest..highest`` has become visible since, and is not the transaction's own."""
        if lowest == highest:
            return lowest != self.own and self.now.is_valid(lowest) and not self.before.is_valid(lowest)
        return (
            self.now.range_validity(lowest, highest) is not RangeValidity.NONE
            and self.before.range_validity(lowest, highest) is not RangeValidity.ALL
        )


@dataclass
class _Found:
    """What a partition has of one transaction and of those that have become visible since its snapshot."""

    has_own: bool = False
    own: list[DataFilePath] = field(default_factory=list)
    others: list[DataFilePath] = field(default_factory=list)
    writes: set[int] = field(default_factory=set)
    """The writes of others that have left something there."""
    marked: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)
    """Directories of inserts of others, with and without the file that says that they hold no updates."""
    compacted: list[tuple[int, int]] = field(default_factory=list)
    """The first and the last write of each directory that a compaction has made."""
    is_unclear: bool = False
    """Whether something is there by which rows of before may be no more, or have other ids."""

    def may_have_had(self, write: int | None) -> bool:
        """Whether a write that has nothing there may have had something, which has been merged and removed since."""
        return write is None or any(first <= write <= last for first, last in self.compacted)


Show = Callable[[str, Sequence[RowId]], Mapping[RowId, str]]
"""Gives what rows of a partition have in them, of those that it finds."""

Look = Callable[[Since, Mapping[str, str]], str | None]
"""Says why rows that others have added since matter to a statement, in partitions by their places."""


class ChangedRows:
    """What a transaction has changed of each table (``db.table``), by partitions and their places."""

    def __init__(self, delete_files: DeleteFiles = SHARED) -> None:
        self._delete_files = delete_files
        self._places: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._partitioned: set[str] = set()
        self._looks: defaultdict[str, dict[str, Look]] = defaultdict(dict)
        self._shows: defaultdict[str, list[Show]] = defaultdict(list)
        self._is_more = False

    @property
    def tables(self) -> Collection[str]:
        """The tables of which it has changed rows, and nothing that is more than its rows."""
        return () if self._is_more else self._places.keys()

    def begin(self, table: str, *, is_partitioned: bool) -> None:
        """Note that it is about to change rows of a table."""
        self._places[table].update({})
        if is_partitioned:
            self._partitioned.add(table)

    def begin_more(self) -> None:
        """Note that it is about to do what depends on all rows of a partition, such as to replace them."""
        self._is_more = True

    def put(self, table: str, partition: str, place: str) -> None:
        """Note where delete events of it are."""
        self._places[table][partition] = place

    def look_before_commit(self, table: str, look: Look, name: str | None = None) -> None:
        """Have rows looked at that others have added, too: a statement has added what the table lacked.

        A look takes the place of an earlier one of its `name`.
        """
        looks = self._looks[table]
        looks[f"{len(looks)}" if name is None else name] = look

    def show_by(self, table: str, show: Show) -> None:
        """Have rows of a table told by `show`, too, where they are why it conflicts."""
        self._shows[table].append(show)

    def why_not_apart(self, table: str, since: Since, others: Sequence[Any]) -> str | None:
        """Why it cannot be told that `others`, the metastore's ``HiveAcidOtherChange``, have changed other rows.

        None if they have. Raises OSError where files cannot be listed or read.
        """
        names = sorted(self._places[table])
        written: defaultdict[str, set[int | None]] = defaultdict(set)
        for of in others:
            if of.writeid is None or not since.before.is_valid(of.writeid):  # else it has seen what they wrote
                # Who has not said which partitions it has changed may have changed each.
                everywhere = of.partname is None and table in self._partitioned
                for name in names if everywhere else (of.partname or _ALL,):
                    written[name].add(of.writeid)
        places = [self._places[table][name] for name in names]
        for name, place, entries in zip(names, places, files.list_trees(places, max_depth=2), strict=True):
            found = _look(place, entries, since)
            if not found.has_own:
                continue
            why = self._why_not(found, written[name])
            if isinstance(why, list):
                why = self._told(table, name, why)
            if why is not None:
                return f"{why} in {name}" if name else why
        asked = (look(since, self._places[table]) for look in self._looks[table].values())
        return next((why for why in asked if why), None)

    def _why_not(self, found: _Found, written: Collection[int | None]) -> str | list[RowId] | None:
        """As `why_not_apart`, of a partition; or some rows that both have changed."""
        gone = any(of not in found.writes and found.may_have_had(of) for of in written)
        if gone or found.is_unclear or found.unmarked - found.marked:
            return "rows were replaced, or their changes are not to be found any more"
        wanted = [*found.own, *found.others]
        if any(not file.modified_ms for file in wanted) or sum(file.size for file in wanted) > MOST_BYTES:
            return "there are too many changes to compare them"
        said = self._delete_files.read(wanted)
        if said is None:
            return "their changes cannot be read here"
        own, theirs = (merged(of.rows for of in some) for some in (said[: len(found.own)], said[len(found.own) :]))
        return list(islice(_same_rows(own, theirs), _SAMPLES)) or None

    def _told(self, table: str, partition: str, same: Sequence[RowId]) -> str:
        """That both have changed some rows: each as Hive and Spark show its ``ROW__ID``, and what it has in it."""
        values = next((found for show in self._shows[table] if (found := show(partition, same))), {})
        told = [
            f"{{writeid: {row.write_id}, bucketid: {row.bucket_property}, rowid: {row.row_id}}}"
            + (f" ({values[row]})" if row in values else "")
            for row in same
        ]
        return f"both have changed the row{'s' if len(same) > 1 else ''} {', '.join(told)}"


def _look(place: str, entries: Sequence[files.FileEntry], since: Since) -> _Found:
    found = _Found()
    for entry in entries:
        name, _, file = entry.path.partition("/")
        directory = parse_directory(name)
        if directory is None:
            continue
        if not file:
            found.has_own |= directory.min_write_id == directory.max_write_id == since.own
            if directory.visibility_txn_id:
                found.compacted.append((directory.min_write_id, directory.max_write_id))
            found.is_unclear |= _is_unclear(directory, since)
            if _is_of_others(directory, since):
                found.writes.add(directory.min_write_id)
                if directory.kind is DirectoryKind.INSERT_DELTA:
                    found.unmarked.add(name)
        elif file == VERSION_MARKER:
            found.marked.add(name)
        elif directory.kind is DirectoryKind.DELETE_DELTA and entry.size and not file.endswith("/"):
            path = DataFilePath.of(place, entry)
            if directory.min_write_id == directory.max_write_id == since.own:
                found.own.append(path)
            elif _is_of_others(directory, since):
                found.others.append(path)
    return found


def _is_of_others(directory: Directory, since: Since) -> bool:
    """Whether it is what one other write has put there; compactions put no new changes there."""
    is_one = directory.min_write_id == directory.max_write_id and not directory.visibility_txn_id
    return is_one and since.is_others(directory.min_write_id, directory.max_write_id)


def _is_unclear(directory: Directory, since: Since) -> bool:
    if directory.visibility_txn_id:
        return False
    if directory.kind is DirectoryKind.BASE:
        return since.is_others(directory.max_write_id, directory.max_write_id)
    return directory.min_write_id < directory.max_write_id and since.is_others(
        directory.min_write_id, directory.max_write_id
    )


def _same_rows(own: Mapping[RowSource, DeletionBitmap], theirs: Mapping[RowSource, DeletionBitmap]) -> Iterator[RowId]:
    """The rows that both have, in the order of their ids."""
    for source in sorted(own.keys() & theirs.keys()):
        for number in sorted(own[source].keys() & theirs[source].keys()):
            both = own[source][number] & theirs[source][number]
            while both:
                lowest = both & -both
                yield RowId(*source, number * BLOCK_ROWS + lowest.bit_length() - 1)
                both ^= lowest
