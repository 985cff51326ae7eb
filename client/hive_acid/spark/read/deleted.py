"""Delete events that the client knows: rows are left out by a look-up in bits instead of a join.

A join costs a job of its own for the delete files, a broadcast and a stage more, whatever is read. The delete files of
most tables are small, and never change: they are read here, by pyarrow, and what they say is kept. Where they are not,
or are not to be read, the reader joins them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import NamedTuple

from pyspark.sql import DataFrame

from hive_acid.filesystem import files
from hive_acid.filesystem.delete_files import SHARED, events_of
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.format.deletion_bitmap import (
    BLOCK_BITS,
    BUCKET_VERSION,
    HALF_BUCKET_BITS,
    LOW_WRITE_ID_BITS,
    MOST_BLOCKS,
    MOST_DIRECT_WRITE_ID,
    MOST_WRITE_ID_BITS,
    NO_PLACE,
    WORDS_PER_BLOCK,
    DeletionBitmap,
    Layout,
    RowRange,
    RowSource,
    layout_of,
    merged,
    without_runs,
)
from hive_acid.format.orc.deletes import DeleteEvents, told_runs
from hive_acid.format.rows import KEY
from hive_acid.format.snapshot import RangeValidity, ValidWriteIdList
from hive_acid.format.state import DataDirectory
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.compaction_plan import why_not_merged_here
from hive_acid.spark.plans.read_plan import UNKNOWN, DeleteFacts, why_not_looked_up
from hive_acid.spark.read.listing import PartitionState
from hive_acid.spark.read.scan import PLACE_COLUMN
from hive_acid.spark.read.skipping import tails_of


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a reader asks: an array as SQL, and how a row's bit is found in it."""

    words: str
    layout: Layout

    @property
    def hidden(self) -> list[str]:
        """The columns of `scan` that it asks for beside the ids."""
        return [PLACE_COLUMN] if self.layout.slots else []

    def without_deleted(self, rows: DataFrame, ids: Sequence[str] = KEY) -> DataFrame:
        """Those of `rows` that are not deleted; `ids` are the names of those of `KEY` in it."""
        return rows.where(_is_left(self.words, self.layout, ids))

    def of_chosen(self, rows: DataFrame, ids: Sequence[str]) -> DataFrame:
        """As `without_deleted`, of what has been chosen of `rows`: without the columns that it takes."""
        left = self.without_deleted(rows, ids)
        return left.drop(*self.hidden) if self.hidden else left


Deletes = tuple[PartitionState, Sequence[DataDirectory]]
"""Delete deltas of a partition."""


class Asked(NamedTuple):
    """What is known of some `Deletes`, and how to ask of an event whether they delete its row, if that was found."""

    known: DeleteFacts
    look_up: LookUp | None


class Deleted(NamedTuple):
    """What is known of some `Deletes`, and the rows that each of them deletes, if these were found."""

    known: DeleteFacts
    rows: list[Mapping[RowSource, DeletionBitmap]] | None


def look_up_of(
    deletes: Sequence[Deletes],
    write_ids: ValidWriteIdList,
    limits: Limits,
    places: Sequence[str] = (),
    gone: Sequence[Sequence[RowRange]] = (),
) -> Asked:
    """How to find out whether an event is of a row that some of `deletes` delete; nothing if that takes a join.

    All events are in the partition of the only one of them; or the `PLACE_COLUMN` of each is among `places`, which
    begin with those of `deletes`. `gone` are rows of each of them that are in no file that is read.
    """
    known, found = deleted_rows(deletes, write_ids, limits)
    if found is None:
        return Asked(known, None)
    left = [without_runs(rows, of) for rows, of in zip(found, gone, strict=True)] if gone else found
    of_places = dict(zip(places or [NO_PLACE], left, strict=False))
    layout = layout_of(of_places, places[len(deletes) :], limits.delete_words)
    known = replace(known, fits=layout is not None)
    return Asked(known, None if layout is None else LookUp(_words(layout), layout))


def facts_of(deletes: Iterable[Deletes], *, placed: bool = True) -> DeleteFacts:
    """What listings say of `deletes`."""
    found = [file for _, deltas in deletes for delta in deltas for file in delta.files]
    return DeleteFacts(len(found), sum(file.size for file in found), placed)


def deleted_rows(deletes: Sequence[Deletes], write_ids: ValidWriteIdList, limits: Limits) -> Deleted:
    """The rows that each of `deletes` deletes; none if there are too many to be read here, or it cannot be.

    Nor can it where only some of the events in a file are visible: what is known of a file is known for all snapshots.
    A compacted delta may span aborted writes of which it has no events.
    """
    wanted = _event_files(deletes)
    known = replace(facts_of(deletes), finished=wanted is not None)
    if wanted is None:
        return Deleted(known, None)
    every = [file for of in wanted for file in of]
    known = replace(known, unread=SHARED.missing(every))
    if why_not_looked_up(known, limits):
        return Deleted(known, None)
    known = _counted(known, every)
    if why_not_looked_up(known, limits):
        return Deleted(known, None)
    said = SHARED.read(every)
    known = replace(known, readable=said is not None)
    if said is None:
        return Deleted(known, None)
    if any(found.validity is not RangeValidity.ALL for _, deltas in deletes for found in deltas):
        writes = frozenset[int]().union(*(of.by for of in said))
        known = replace(known, visible=all(map(write_ids.is_valid, writes)))
        if why_not_looked_up(known, limits):
            return Deleted(known, None)
    left = (of.rows for of in said)
    return Deleted(known, [merged(islice(left, len(of))) for of in wanted])


def _event_files(deletes: Iterable[Deletes]) -> list[list[DataFilePath]] | None:
    """The files of each of `deletes`; None if they are not finished."""
    wanted = []
    for partition, deltas in deletes:
        if any(found.unfinished for found in deltas):
            return None
        of = [DataFilePath.of(partition.location, file) for found in deltas for file in found.files if file.size]
        if not all(file.modified_ms for file in of):
            return None
        wanted.append(of)
    return wanted


def _counted(known: DeleteFacts, wanted: Sequence[DataFilePath]) -> DeleteFacts:
    """What is known, with how many events files have, `UNKNOWN` if they do not say."""
    tails = tails_of(wanted)
    if tails is None:
        return replace(known, events=UNKNOWN)
    told = sum(tail.rows for tail in tails if told_runs(tail.user_metadata, tail.rows) is not None)
    return replace(known, events=sum(tail.rows for tail in tails), told=told)


class Merged(NamedTuple):
    """What is known of delete files, and their events if these were merged."""

    known: DeleteFacts
    events: DeleteEvents | None


def merged_events(
    partition: PartitionState, deltas: Sequence[DataDirectory], write_ids: ValidWriteIdList, limits: Limits
) -> Merged:
    """The events of `deltas` that are visible, in the order of their keys, the first one of each row.

    None if there are none, or too many to be read here, or it cannot be.
    """
    found = _event_files([(partition, deltas)])
    known = replace(facts_of([(partition, deltas)]), finished=found is not None)
    if found is None:
        return Merged(known, None)
    (wanted,) = found
    known = _counted(known, wanted)
    if why_not_merged_here(known, limits):
        return Merged(known, None)
    said = files.side_by_side(_events, wanted, partition.location)
    known = replace(known, readable=all(of_file is not None for of_file in said))
    if not known.readable:
        return Merged(known, None)
    events = sorted(event for of_file in said for event in of_file or ())
    if any(found.validity is not RangeValidity.ALL for found in deltas):
        visible = {write_id for write_id in {event[3] for event in events} if write_ids.is_valid(write_id)}
        events = [event for event in events if event[3] in visible]
    # Hive 4 loses the events that follow a doubled one (acid-format.md §3.8).
    first_of_rows = dict(reversed([(event[:3], event) for event in events]))
    merged = list(reversed(first_of_rows.values()))
    known = replace(known, visible=bool(merged))
    if not merged:
        return Merged(known, None)
    return Merged(known, DeleteEvents(*([event[column] for event in merged] for column in range(4))))


def _events(file: DataFilePath) -> list[tuple[int, ...]] | None:
    """The delete events in a file, in its order; None as `events_of`."""
    table = events_of(file)
    if table is None:
        return None
    return list(zip(*(table.column(name).to_pylist() for name in (*KEY, "currentTransaction")), strict=True))


def _words(layout: Layout) -> str:
    """The tree of a layout as a subquery, which plans do not spell out, as SQL."""
    tree = json.dumps(layout.tree, separators=(",", ":"))
    kind = f"{'array<' * layout.levels}bigint{'>' * layout.levels}"
    # A text that Spark could not parse would be null, by which nothing would be deleted, unless it is told to fail. It
    # is not a parameter: the parsers that Delta and Iceberg put before Spark's lose them.
    parsed = f"from_json(words, '{kind}', map('mode', 'FAILFAST'))"
    return f"(SELECT {parsed} FROM VALUES ('{tree}') AS v(words))"


def _is_left(words: str, layout: Layout, ids: Sequence[str]) -> str:
    """That `Layout.has` is false of a row with the columns `ids` and `PLACE_COLUMN`, by an array, as SQL. Never null.

    It begins with a call: what stands in parentheses Spark's parser reads twice, which takes a new session 50 ms here.
    Nothing that costs something stands in it twice: before version 4.2.1 Spark evaluates that twice. Its numbers are
    part of the code that Spark generates: `Layout` sees to it that few change. Indices are cut to 32 bits by Spark, so
    none may have more.
    """
    write_id, bucket, row_id = ids
    high = f"shiftrightunsigned({bucket}, {HALF_BUCKET_BITS}) ^ {BUCKET_VERSION}"
    indices = [
        *([f"hash({PLACE_COLUMN}, {layout.seed}) & {layout.slots - 1}"] if layout.slots else []),
        *(
            (
                f"least(shiftright({write_id}, {LOW_WRITE_ID_BITS}), {1 << MOST_WRITE_ID_BITS - LOW_WRITE_ID_BITS}L)",
                f"{write_id} & {(1 << LOW_WRITE_ID_BITS) - 1}",
            )
            if layout.high_write_ids
            else (f"least({write_id}, {MOST_DIRECT_WRITE_ID + 1}L)",)
        ),
        *(
            (f"{bucket} & {(1 << HALF_BUCKET_BITS) - 1}", high)
            if layout.statements
            else (f"{high} | shiftleft({bucket}, {HALF_BUCKET_BITS})",)
        ),
        f"least(shiftright({row_id}, {BLOCK_BITS}), {MOST_BLOCKS}L)",
        f"shiftright({row_id}, 6) & {WORDS_PER_BLOCK - 1}",
    ]
    word = reduce(lambda node, index: f"get({node}, {index})", indices, words)
    return f"coalesce(getbit({word}, cast({row_id} & 63 AS int)), 0) = 0"
