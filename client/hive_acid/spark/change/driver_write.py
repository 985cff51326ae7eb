"""The driver-side write path: few changed rows are brought to the client, and need no write by Spark.

To find a hundredth of a table's rows costs less than to have Spark write down what was found: in order, in files in
directories of their own, by code that is compiled for it, with a process of Hadoop's for each local file. So keys and
new rows come back as columns of Arrow, and the client writes the delete files (`hive_acid.format.orc.deletes`) and
those of new rows (`hive_acid.streaming.bucket_file`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import SerializationError
from hive_acid.format.deletion_bitmap import DeletionBitmap, RowSource, places_left
from hive_acid.format.orc.deletes import DeleteEvents
from hive_acid.spark.change.brought_rows import NUMBER_IN_TASK, brought_rows
from hive_acid.spark.change.changes import Replaced, SourceColumns
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import counted, size
from hive_acid.spark.read.table_frame import KEY_COLUMNS
from hive_acid.spark.values.assign import total
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import key_text
from hive_acid.spark.values.timezone import UTC, session_zone
from hive_acid.spark.write.events import row_part, sorted_by
from hive_acid.write.staging import DELETE, INSERT, Values

if TYPE_CHECKING:
    import pyarrow

_SIMPLE = re.compile(
    r"boolean|tinyint|smallint|int|integer|bigint|float|double|double precision|date|timestamp|string|binary"
    r"|(decimal|numeric|dec)\b.*|(char|varchar)\b.*",
    re.IGNORECASE,
)
"""Types of which the client knows how long a value is, and that pyarrow writes as Spark does."""

_TEXTS = re.compile(r"string|binary|(char|varchar)\b.*", re.IGNORECASE)
_NEW_KEY = "__acid_new_key_{}".format
_KIND = "__acid_is_{}".format
_IS_LONG = "__acid_is_long"
_TEXTS_OF_ROW = "__acid_texts"
_AS_THEY_ARE = {name: name for name in KEY_COLUMNS}


def driver_deletes(
    rows: DataFrame,
    partition_keys: Sequence[str],
    write_id: int,
    limits: Limits,
    deleted: Mapping[Values, Mapping[RowSource, DeletionBitmap]] | None = None,
) -> Mapping[Values, DeleteEvents] | GaveUp:
    """The events by which `write_id` deletes `rows`, a frame with the hidden columns of `read_rows`.

    They are by the values of their partition. Rows that are `deleted` already, if that is known of each
    partition, are left out.

    `partition_keys` are the columns with the texts of these values. It gives up if there are more than the `limits`
    say, of which no task brings many more, or rows of a partition that `deleted` does not know.
    """
    texts = {key: _text(key) for key in partition_keys}
    table = brought_rows(rows, {**_AS_THEY_ARE, **texts}, limits.driver_deletes)
    if table is None:
        return too_many(limits.driver_deletes)
    found = _events(table, partition_keys, write_id)
    if deleted is None:
        return found
    if not found.keys() <= deleted.keys():
        return GaveUp("rows came of a partition that was not listed")
    left = {of: events.at(places_left(deleted[of], *events.columns[:3])) for of, events in found.items()}
    return {of: events for of, events in left.items() if len(events)}


class GaveUp(NamedTuple):
    """That rows are not for the client to write, and why."""

    why: str


def too_many(most: int) -> GaveUp:
    """Why the client does not write more than `most` rows."""
    return GaveUp(f"there are more than {counted(most, 'row')}")


class Changes(NamedTuple):
    """What changes, by the values of its partition: delete events, and new rows in the order of the old ones.

    The new rows are Arrow arrays as `hive_acid.streaming.layout.row_array` makes them. `updates` is how many of them
    are new versions of rows, `repeated` the number of rows that are deleted more than once.
    """

    deletes: Mapping[Values, DeleteEvents]
    inserts: Mapping[Values, Any]
    updates: int
    repeated: int


def why_not_written_here(spark: SparkSession, table: Table) -> str | None:
    """Why the client cannot write new rows of a table; None if it can."""
    if table.bucket_columns:
        return "the table is CLUSTERED"
    if nested := [column.name for column in table.columns if not _SIMPLE.fullmatch(column.type.strip())]:
        return f"the client writes no columns of types such as that of {nested[0]}"
    if any(map(_is_timestamp, table.columns)) and session_zone(spark) not in UTC:
        return "the table has timestamps, and the session's zone is not UTC"
    return None


def driver_changes(rows: Replaced, table: Table, write_id: int, limits: Limits) -> Changes | GaveUp:
    """The delete events and new rows by which `write_id` makes the changes of `rows`.

    `table` is one of which new rows can be written here. It gives up if there are more than the `limits` say, or if a
    row is longer than they say or nothing for pyarrow's writer.
    """
    names = [_NEW_KEY(position) for position in range(len(rows.new_keys))]
    keys = zip((*rows.keys, *names), (*rows.keys, *rows.new_keys), strict=True)
    columns = {
        **_AS_THEY_ARE,
        **{name: _text(key) for name, key in keys},
        **{_KIND(kind): f"array_contains({rows.kinds}, '{kind}')" for kind in (DELETE, INSERT)},
        **_new_row(table, rows.values, limits.driver_row_bytes),
        **{name: name for name in rows.source or ()},
    }
    brought = brought_rows(rows.frame, columns, limits.driver_rows)
    if brought is None:
        return too_many(limits.driver_rows)
    whole = _with_texts(brought, limits)
    if isinstance(whole, GaveUp):
        return whole
    if rows.source is not None:
        whole = _without_met(whole, rows.source)
    old, new = (whole.filter(whole.column(_KIND(kind))) for kind in (DELETE, INSERT))
    array = new_rows(table, new)
    if isinstance(array, GaveUp):
        return array
    return Changes(
        _events(old, rows.keys, write_id),
        by_partition(array, new, names),
        updates=old.filter(old.column(_KIND(INSERT))).num_rows,
        repeated=_repeated(old, rows.keys),
    )


def driver_inserts(values: DataFrame, table: Table, limits: Limits) -> Mapping[Values, Any] | GaveUp:
    """The rows of `values`, a frame of `hive_acid.spark.write.insert.stored`, as new rows by the values of their
    partition, in the order of the table's key, if it has one, and else as they came.

    `table` and giving up are as for `driver_changes`.
    """
    keys = keys_of(table)
    columns = {
        **keys,
        **_new_row(table, [quoted(column.name) for column in table.columns], limits.driver_row_bytes),
        # What other new rows have of the rows in whose order they are.
        **dict.fromkeys(KEY_COLUMNS[:-1], "0"),
        KEY_COLUMNS[-1]: NUMBER_IN_TASK,
    }
    if order := sorted_by(table):
        values = values.coalesce(1).sortWithinPartitions(*map(quoted, order))
    # In one task they have one order. Spark takes the last of several `coalesce` for all.
    brought = brought_rows(values, columns, limits.driver_rows, tasks=1)
    if brought is None:
        return too_many(limits.driver_rows)
    whole = _with_texts(brought, limits)
    if isinstance(whole, GaveUp):
        return whole
    array = new_rows(table, whole)
    return array if isinstance(array, GaveUp) else by_partition(array, whole, list(keys))


def keys_of(table: Table) -> dict[str, str]:
    """The SQL of the texts of partition keys, of new rows in a frame of `hive_acid.spark.write.insert.stored`, by their
    names for `by_partition`.
    """
    return {_NEW_KEY(at): _text(key_text(key, quoted(key.name))) for at, key in enumerate(table.partition_keys)}


def too_long(limits: Limits) -> GaveUp:
    """Why the client does not write rows of which one has more than so many bytes of texts."""
    return GaveUp(f"the texts of a row have more than {size(limits.driver_row_bytes)}")


def _with_texts(brought: pyarrow.Table, limits: Limits) -> pyarrow.Table | GaveUp:
    """`brought` with each text in a column of its own; it gives up for rows that are long."""
    from pyarrow import compute

    if compute.any(brought.column(_IS_LONG)).as_py():
        return too_long(limits)
    flat = brought.flatten()
    return flat.rename_columns([name.removeprefix(f"{_TEXTS_OF_ROW}.") for name in flat.column_names])


def _without_met(brought: pyarrow.Table, source: SourceColumns) -> pyarrow.Table:
    """`brought` without what would be inserted for a source row that is in a pair."""
    from pyarrow import compute

    row, is_pair = brought.column(source.row), brought.column(source.is_pair)
    is_met = compute.is_in(row, value_set=row.filter(is_pair).combine_chunks())
    return brought.filter(compute.or_(is_pair, compute.invert(is_met)))


def _repeated(old: pyarrow.Table, partition_keys: Sequence[str]) -> int:
    """How many rows there are several times."""
    from pyarrow import compute

    counted = old.group_by([*KEY_COLUMNS, *partition_keys]).aggregate([([], "count_all")])
    return int(compute.sum(compute.greater(counted.column("count_all"), 1)).as_py() or 0)


def _new_row(table: Table, values: Sequence[str], most_bytes: int) -> dict[str, str]:
    """The SQL of a new row's columns and of whether it is long, by name.

    The texts are in one struct, null in a long row: by themselves each would have the lengths of all in its expression,
    which grows with their square. None of them may be a field that is never null, as Arrow has none in a null struct.
    """
    parts = {row_part(position): value for position, value in enumerate(values)}
    texts = {part: of for (part, of), column in zip(parts.items(), table.columns, strict=True) if in_texts(column)}
    others = {part: of for part, of in parts.items() if part not in texts}
    if not texts:
        return {**others, _IS_LONG: "false"}
    is_long = f"{total([f'coalesce(octet_length({of}), 0L)' for of in texts.values()])} > {most_bytes}"
    together = ", ".join(f"'{part}', if({of} IS NULL, NULL, {of})" for part, of in texts.items())
    return {**others, _TEXTS_OF_ROW: f"if({is_long}, null, named_struct({together}))", _IS_LONG: is_long}


def in_texts(column: Column) -> bool:
    """Whether values of a column are texts or bytes."""
    return _TEXTS.fullmatch(column.type.strip()) is not None


def _text(key: str) -> str:
    return f"coalesce({key}, '')"


def new_rows(table: Table, brought: pyarrow.Table) -> Any:
    """The array of new rows, whose columns are `row_part`s of `brought`; it gives up for a value that pyarrow's writer
    cannot write.
    """
    from pyarrow import timestamp

    from hive_acid.streaming.layout import row_array
    from hive_acid.streaming.values import stored

    typed = {}
    try:
        for position, column in enumerate(table.columns):
            given = brought.column(row_part(position))
            if _is_timestamp(column):
                given = given.cast(timestamp("us"))
            typed[column.name] = stored(given, column.type, f"{table.full_name}.{column.name}")
        return row_array(table, typed)
    except SerializationError as error:
        return GaveUp(str(error))


def _is_timestamp(column: Column) -> bool:
    return column.type.strip().lower() == "timestamp"


def _events(table: pyarrow.Table, partition_keys: Sequence[str], write_id: int) -> dict[Values, DeleteEvents]:
    """The events by which the rows of `table` are deleted, by the values of their partition."""
    found = {}
    for values, of in by_partition(table.select(KEY_COLUMNS), table, partition_keys).items():
        write_ids, buckets, row_ids = (of.column(name).to_pylist() for name in KEY_COLUMNS)
        found[values] = DeleteEvents(write_ids, buckets, row_ids, [write_id] * len(row_ids))
    return found


def by_partition(rows: Any, table: pyarrow.Table, partition_keys: Sequence[str]) -> dict[Values, Any]:
    """Rows, of which `table` has keys and texts in the same places, by the values of their partition; in the order of
    their keys.
    """
    import pyarrow
    from pyarrow import compute

    if not len(rows):
        return {}
    # Arrow sorts numbers ten times as fast as Python divides rows.
    codes = {name: table.column(name).combine_chunks().dictionary_encode().indices for name in partition_keys}
    by = pyarrow.table({**codes, **{name: table.column(name) for name in KEY_COLUMNS}})
    places = compute.sort_indices(by, sort_keys=[(name, "ascending") for name in by.column_names])
    ends = {end for of in codes.values() for end in compute.run_end_encode(of.take(places)).run_ends.to_pylist()}
    bounds = [0, *sorted(ends | {len(places)})]
    first = places.take(pyarrow.array(bounds[:-1]))
    texts = [table.column(name).take(first).to_pylist() for name in partition_keys]
    ordered = rows.take(places)
    return {
        tuple(text or None for text in of): ordered.slice(start, end - start)
        for start, end, *of in zip(bounds, bounds[1:], *texts, strict=False)
    }
