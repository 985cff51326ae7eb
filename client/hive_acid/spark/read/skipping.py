"""What a statement need not read: partitions by their names, data files by the statistics in their tails.

Both are hints by a predicate. Delete files are never left out, and neither is a file whose rows are counted or compared
with those of others: one without ACID columns, or of Hive before version 3. Statistics also tell which files have rows
that delete events may name: only they are joined with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from pyspark.sql import Column

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.errors import FormatError
from hive_acid.filesystem import delete_files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.deletion_bitmap import RowRange, merged, rows_within
from hive_acid.format.orc.deletes import told_runs
from hive_acid.format.orc.statistics import UNKNOWN, Bound, ColumnStatistics
from hive_acid.format.orc.tail import Tail
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.rows import KEY
from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DataDirectory, DataFile
from hive_acid.spark.conditions.literals import digits_of, type_name
from hive_acid.spark.conditions.predicates import (
    AllOf,
    Comparison,
    OneOf,
    Operator,
    Predicate,
    columns_of,
    is_beyond,
    may_match,
    refusal_of,
    restricted,
)
from hive_acid.spark.conditions.trees import DAY
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import UNKNOWN as NOT_KNOWN
from hive_acid.spark.plans.read_plan import LeftOut, Reach, footers_asked, reach_by
from hive_acid.spark.read.legacy.pre_hive_3_deltas import may_hold_updates
from hive_acid.spark.read.listing import PartitionState, TableState, is_raw
from hive_acid.spark.read.scan import ROW_COLUMN

_MOST_TOLD = 1_000
"""Of so many partitions it is found out whether a condition is true of all."""

_NO_VALUE = ColumnStatistics(0, has_null=True)
INTEGER_RANGES = {
    "tinyint": (-(2**7), 2**7 - 1),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
"""Between which values the types of whole numbers reach."""

_STORED_AS = {"integer": "int", "numeric": "decimal", "dec": "decimal", "double precision": "double"}
"""The types of ORC for names that it has others for."""

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


# --- partitions ----------------------------------------------------------------------------------


def chosen_partitions(table: Table, names: Iterable[str], wanted: Predicate | None) -> list[str]:
    """The partitions, of those named, in which rows may meet the predicate."""
    keys = {key.name: (position, key) for position, key in enumerate(table.partition_keys)}
    predicate = restricted(wanted, keys)
    if predicate is None:
        return list(names)
    refused = _refused_at_sight(predicate, keys)

    def statistics_of(name: str) -> Callable[[str], ColumnStatistics | None]:
        values = [value for _, value in parse_partition_name(name)]
        return lambda column: of_value(keys[column][1], values[keys[column][0]])

    return [name for name in names if not refused(name) and may_match(predicate, statistics_of(name))]


def meet_all(table: Table, names: Sequence[str], condition: Column | str, alias: str | None = None) -> bool:
    """Whether a condition is surely true of all rows of the partitions that are named; see `refusal_of`."""
    if len(names) > _MOST_TOLD:
        return False
    refusal = refusal_of(condition, table, alias)
    return refusal is not None and not chosen_partitions(table, names, refusal)


def _refused_at_sight(predicate: Predicate, keys: Mapping[str, tuple[int, catalog.Column]]) -> Callable[[str], bool]:
    """Which partitions surely have another value of a key than one that is asked for, by the text of their names.

    Of ten thousand partitions a query often names one. To take each name apart, with its values, takes ten times as
    long.
    """
    asked: list[tuple[int, frozenset[str], int]] = []
    for part in predicate.parts if isinstance(predicate, AllOf) else (predicate,):
        match part:
            case Comparison(column, Operator.EQUAL, value):
                values: Sequence[Bound] = (value,)
            case OneOf(column, values):
                pass
            case _:
                continue
        position, key = keys[column]
        if type_name(key) in INTEGER_RANGES and all(type(value) is int for value in values):
            _, greatest = INTEGER_RANGES[type_name(key)]
            asked.append((position, frozenset(map(str, values)), len(str(greatest)) - 1))

    def refused(name: str) -> bool:
        parts = name.split("/")
        for position, texts, digits in asked:
            text = parts[position].partition("=")[2] if position < len(parts) else ""
            # Other texts may be numbers as well: 007, -7, %37.
            if text not in texts and len(text) <= digits and text.isdecimal() and text.isascii() and text[0] != "0":
                return True
        return False

    return refused


def of_value(key: catalog.Column, text: str | None) -> ColumnStatistics | None:
    """What is known of a partition's rows in a key, as of a file with one row.

    None for a text that may or may not be a value of its type.
    """
    if text is None:
        return _NO_VALUE
    value = _value(key, text)
    return None if value is None else ColumnStatistics(1, False, value, value)


def _value(key: catalog.Column, text: str) -> Bound | None:
    kind = type_name(key)
    if kind == "string":
        return text
    if kind in INTEGER_RANGES and _INTEGER.fullmatch(text):
        least, greatest = INTEGER_RANGES[kind]
        return int(text) if least <= int(text) <= greatest else None
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "date" and DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    if kind == "decimal" and _DECIMAL.fullmatch(text):
        precision, scale = digits_of(key)
        whole, _, fraction = text.lstrip("-").partition(".")
        return Decimal(text) if len(fraction) <= scale and len(whole) <= precision - scale else None
    return None


def pruned(state: TableState, wanted: Predicate | None) -> TableState:
    """The state without partitions and data files in which surely no row meets the predicate."""
    if not state.skipping:
        return state
    named = set(chosen_partitions(state.table, (found.name for found in state.partitions), wanted))
    partitions = tuple(found for found in state.partitions if found.name in named)
    number = len(state.partitions) - len(partitions)
    left_out = replace(state.left_out, partitions=state.left_out.partitions + number)
    return with_files_pruned(replace(state, partitions=partitions, left_out=left_out), wanted)


# --- files ---------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """A file that may be left out, and where it belongs."""

    partition: PartitionState
    directory: DataDirectory
    file: DataFile

    @property
    def path(self) -> DataFilePath:
        return DataFilePath.of(self.partition.location, self.file)


def with_files_pruned(state: TableState, wanted: Predicate | None) -> TableState:
    """The state without the data files in which surely no row meets the predicate."""
    predicate = restricted(wanted, [column.name for column in state.table.columns])
    if predicate is None or not state.table.is_full_acid or not state.skipping:
        return state
    candidates = sorted(_candidates(state.partitions), key=lambda found: -found.file.size)
    number = footers_asked((SHARED.missing([candidate.path]) for candidate in candidates), state.limits)
    asked = candidates[:number]
    tails = tails_of([candidate.path for candidate in asked])
    if tails is None:
        return state
    pruned_files = {
        (candidate.partition.name, candidate.file.path)
        for candidate, tail in zip(asked, tails, strict=True)
        if not may_match(predicate, statistics_of(state.table, tail))
    }
    before = state.left_out
    left_out = LeftOut(before.partitions, before.files + len(pruned_files), len(candidates) - number)
    if not pruned_files:
        return replace(state, left_out=left_out)
    left = tuple(without_files(partition, pruned_files) for partition in state.partitions)
    return replace(state, partitions=left, left_out=left_out)


def stored_as_declared(state: TableState, predicate: Predicate | None) -> dict[str, bool]:
    """The columns of a predicate that all data files have in the table's own type, and whether one may be null.

    None are told if there is a file without ACID columns, one that is being written, or one whose tail is not known.
    """
    asked = restricted(predicate, [column.name for column in state.table.columns])
    if asked is None:
        return {}
    candidates = _candidates(state.partitions)
    files = sum(len(found.data_files) for found in state.partitions)
    if len(candidates) < files or any(found.directory.unfinished for found in candidates):
        return {}
    paths = [found.path for found in candidates]
    tails = None if SHARED.missing(paths) else tails_of(paths)
    if tails is None:
        return {}
    columns = {column.name: column for column in state.table.columns}
    nulls = {name: [_nulls(columns[name], tail) for tail in tails] for name in columns_of(asked)}
    return {name: True in found for name, found in nulls.items() if None not in found}


def _nulls(column: catalog.Column, tail: Tail) -> bool | None:
    """Whether a row of a file may have no value in a column; None if its values are of another type or not known."""
    at = tail.column(ROW_COLUMN, column.name)
    if at is None:
        return None
    stored, kind = tail.types[at], type_name(column)
    if stored.kind != _STORED_AS.get(kind, kind):
        return None
    if stored.kind == "decimal" and (stored.precision, stored.scale) != digits_of(column):
        return None
    found = tail.statistics(at)
    return found.has_null or found.values != tail.rows


class Touched(NamedTuple):
    """Data directories by whether a delete event may name a row of theirs, and how that was found out.

    Files of which all rows are deleted are in none of them: `gone` are these rows.
    """

    touched: list[DataDirectory]
    untouched: list[DataDirectory]
    reach: Choice[Reach]
    gone: Sequence[RowRange] = ()


def touched_by_deletes(
    partition: PartitionState, reached: Sequence[DataDirectory], limits: Limits, *, skips: bool
) -> Touched:
    """`reached`, data directories that are older than some delete delta, by whether a delete event may name a row.

    Each file says between which write ids, bucket properties and row ids its keys lie, and so do those of the events;
    they are asked if it `skips`.
    """
    by = partial(
        reach_by, skips=skips, raw=any(is_raw(file) for found in reached for file in found.files), limits=limits
    )
    reach = by(unopened=None)
    if reach.way is not Reach.KEYS:
        return Touched(list(reached), [], reach)
    data = [_Candidate(partition, found, file).path for found in reached for file in found.files]
    events = [
        _Candidate(partition, found, file).path for found in partition.state.delete_deltas for file in found.files
    ]
    reach = by(unopened=SHARED.missing([*data, *events]))
    if reach.way is not Reach.KEYS:
        return Touched(list(reached), [], reach)
    tails = tails_of([*data, *events])
    if tails is None:
        return Touched(list(reached), [], by(unopened=NOT_KNOWN))
    of_data = dict(zip(data, tails, strict=False))
    of_events = tails[len(data) :]
    gone = _gone(of_data, zip(events, of_events, strict=True), partition)
    ranges = [key_ranges(tail) for tail in of_events if tail.rows]
    unreached = {
        path
        for path, tail in of_data.items()
        if not any(_overlap(key_ranges(tail), of_deletes) for of_deletes in ranges)
    }

    def some(found: DataDirectory, wanted: Callable[[DataFilePath], bool]) -> list[DataDirectory]:
        left = tuple(file for file in found.files if wanted(_Candidate(partition, found, file).path))
        if len(left) == len(found.files):
            return [found]
        return [replace(found, files=left, is_whole=False)] if left else []

    touched = [of for found in reached for of in some(found, lambda path: path not in unreached and path not in gone)]
    untouched = [of for found in reached for of in some(found, unreached.__contains__)]
    return Touched(touched, untouched, reach, list(gone.values()))


def _gone(
    data: Mapping[DataFilePath, Tail], events: Iterable[tuple[DataFilePath, Tail]], partition: PartitionState
) -> dict[DataFilePath, RowRange]:
    """The files of which all rows are deleted, as the tails of delete files say, and these rows.

    None where another file may have a later version of a row.
    """
    state = partition.state
    if any(found.validity is not RangeValidity.ALL for found in state.delete_deltas):
        return {}
    if any(map(may_hold_updates, state.insert_deltas)):
        return {}
    told = delete_files.SHARED.read([path for path, tail in events if told_runs(tail.user_metadata, tail.rows)])
    deleted = merged(said.rows for said in told or ())
    if not deleted:
        return {}
    found = {path: rows for path, tail in data.items() if (rows := row_range(tail)) is not None}
    return {
        path: rows
        for path, rows in found.items()
        if rows[:2] in deleted and rows_within(deleted[rows[:2]], rows[2][0], rows[2][-1]) == len(rows[2])
    }


def row_range(tail: Tail) -> RowRange | None:
    """The rows of a file, if its tail tells them: they are of one write and bucket, and without gaps."""
    (write_id, last_write_id), (bucket, last_bucket), (first, last) = key_ranges(tail)
    numbers = write_id, bucket, first, last
    if not all(isinstance(number, int) for number in numbers) or (write_id, bucket) != (last_write_id, last_bucket):
        return None
    known = [int(number) for number in numbers]  # type: ignore[arg-type]
    return (known[0], known[1], range(known[2], known[3] + 1)) if known[3] - known[2] + 1 == tail.rows else None


def key_ranges(tail: Tail) -> list[tuple[Bound | None, Bound | None]]:
    """Least and greatest write id, bucket property and row id; None for what a file does not say."""
    columns = [tail.column(name) for name in KEY]
    known = [UNKNOWN if column is None else tail.statistics(column) for column in columns]
    return [(found.minimum, found.maximum) for found in known]


def _overlap(
    one: Sequence[tuple[Bound | None, Bound | None]], other: Sequence[tuple[Bound | None, Bound | None]]
) -> bool:
    return not any(
        is_beyond(low, highest) or is_beyond(lowest, high)
        for (low, high), (lowest, highest) in zip(one, other, strict=True)
    )


def _candidates(partitions: Iterable[PartitionState]) -> list[_Candidate]:
    return [
        _Candidate(partition, directory, file)
        for partition in partitions
        if not any(map(may_hold_updates, partition.state.insert_deltas))
        for directory in partition.state.data
        if not any(map(is_raw, directory.files))
        for file in directory.files
    ]


def tails_of(wanted: Sequence[DataFilePath]) -> list[Tail] | None:
    """The tails of files; None if one cannot be read here, which Spark may be able to do."""
    try:
        return SHARED.read(wanted)
    except (FormatError, OSError):
        return None


def statistics_of(table: Table, tail: Tail) -> Callable[[str], ColumnStatistics | None]:
    """What a file says of the table's columns, which are known by their places (acid-format.md §3.5)."""
    places = {column.name: position for position, column in enumerate(table.columns)}
    row = tail.column(ROW_COLUMN)
    children = tail.types[row].children if row is not None else None

    def statistics(column: str) -> ColumnStatistics | None:
        if children is None:
            return None
        place = places[column]
        return tail.statistics(children[place]) if place < len(children) else _NO_VALUE

    return statistics


def without_files(partition: PartitionState, pruned_files: set[tuple[str, str]]) -> PartitionState:
    def left(directory: DataDirectory) -> DataDirectory:
        kept = tuple(file for file in directory.files if (partition.name, file.path) not in pruned_files)
        return directory if len(kept) == len(directory.files) else replace(directory, files=kept, is_whole=False)

    state = partition.state
    return replace(
        partition,
        state=replace(
            state, base=left(state.base) if state.base else None, insert_deltas=tuple(map(left, state.insert_deltas))
        ),
    )
