"""Rows as events: the six columns in which inserts and deletes are written (acid-format.md §3.1).

Buckets and row ids are given in the task that writes the file, after the last shuffle and sort, so a retried task
gives its own and only the committed attempt's file counts (data-path.md §3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.format import rows
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.tasks import Distribution
from hive_acid.spark.read.scan import ROW_COLUMN
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import key_text
from hive_acid.spark.write.layout import Write
from hive_acid.write.staging import INSERT

KIND_COLUMN = "kind"
BUCKET_COLUMN = "file"

# Expressions are SQL, since a call to the JVM for each part of each expression takes long.

FILE_OF_ROW = "CASE WHEN shiftright(bucket, 29) = 0 THEN bucket ELSE shiftright(bucket, 16) & 4095 END"
"""The number of the file to which an event belongs, decoded from its bucket property (acid-format.md §3.2)."""

OWN_ROW_ID = "monotonically_increasing_id() - shiftleft(cast(spark_partition_id() AS bigint), 33)"
"""0, 1, 2, … in this task."""

_SORTED_AS_NUMBERS = {"tinyint", "smallint", "int", "bigint", "date", "boolean"}

_DISTRIBUTION = "__acid_distribution"
_ORDER = "__acid_order"


@dataclass(frozen=True, slots=True)
class Events:
    """Events ready to be written: `frame` has the columns of `divided_by`, which become directories, and the six.

    `counts` knows the number of events per kind once they are written; `holds` is the kind if all are of one. These are
    counted by whoever writes the frame, as the last thing: where rows are counted Spark ends a program, and each copies
    every row. Of inserts alone `frame` may have the columns of `row` by themselves, as `row_part`, and `row` their
    names; or behind an empty one already, and `apart` their names (`row_columns`).
    """

    frame: DataFrame
    divided_by: tuple[str, ...]
    holds: str | None = None
    counts: Observation = field(default_factory=Observation)
    row: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


def key_column(position: int) -> str:
    """The column by which output is divided by partition key `position`; no name of the six ACID columns."""
    return f"key{position}"


def row_part(position: int) -> str:
    """The column that is to be column `position` of `row`."""
    return f"__acid_row_{position}"


def row_columns(parts: Sequence[str], names: Sequence[str], *, apart: bool) -> list[str]:
    """The SQL of `row` out of the SQL of its columns; with `apart` they stand behind it, and it is empty."""
    if apart:
        return [f"named_struct() AS {ROW_COLUMN}", *_row_parts(parts)]
    return [f"struct({', '.join(map('{} AS {}'.format, parts, map(quoted, names)))}) AS {ROW_COLUMN}"]


def _row_parts(parts: Sequence[str]) -> list[str]:
    return [f"{part} AS {row_part(position)}" for position, part in enumerate(parts)]


def sorted_by(table: Table) -> list[str]:
    """The columns by which rows of a file are sorted as they get their ids, so that a row group has few keys."""
    there = {column.name for column in table.columns}
    return [column.name for column in table.key if column.name in there]


def insert_events(
    values: DataFrame,
    row: Sequence[str],
    keys: Sequence[str],
    write: Write,
    distribution: Distribution,
    sorts: Sequence[str] = (),
) -> Events:
    """Rows of `values` as insert events, in tasks as `distribution` says; each task's number becomes that of its file.

    `row` are the columns of `values` that are stored, `keys` their `directory_keys`. Within a file rows
    keep the order they came in, unless it `sorts` them by some of their columns.
    """
    names = _names(keys)
    task = "spark_partition_id()"
    if not names and not distribution.shuffled:
        placed = values if distribution.tasks is None else values.coalesce(distribution.tasks)
        return _inserts(placed, names, write, task, [*map(quoted, sorts)], row, [quoted(name) for name in row])
    shaped = projected(
        values, *keys, *_row_parts([quoted(name) for name in row]), f"monotonically_increasing_id() AS {_ORDER}"
    )
    order = [*names, *_parts_of(sorts, row), _ORDER]
    return _inserts(_placed(shaped, names, distribution), names, write, task, order, row)


def _parts_of(names: Iterable[str], row: Sequence[str]) -> list[str]:
    return [row_part(row.index(name)) for name in names]


def clustered_events(
    values: DataFrame, row: Sequence[str], keys: Sequence[str], write: Write, bucket: str, sorts: Sequence[str] = ()
) -> Events:
    """Rows of `values` as insert events of a CLUSTERED table: those of each partition and `bucket` are one file.

    `bucket` is the SQL of its number, and `sorts` as for `insert_events`.
    """
    names = [*_names(keys), BUCKET_COLUMN]
    shaped = projected(
        values,
        *keys,
        # Spark has to know that it is never null, as with the texts of keys.
        f"coalesce({bucket}, 0) AS {BUCKET_COLUMN}",
        *_row_parts([quoted(name) for name in row]),
        f"monotonically_increasing_id() AS {_ORDER}",
    )
    placed = shaped.repartition(*names)
    return _inserts(placed, names, write, BUCKET_COLUMN, [*names, *_parts_of(sorts, row), _ORDER], row)


def _inserts(
    placed: DataFrame,
    names: Sequence[str],
    write: Write,
    file: str,
    order: Sequence[str],
    row: Sequence[str],
    parts: Sequence[str] | None = None,
) -> Events:
    """`placed` as events; `parts` is the SQL of the columns of `row`, which else are there as `row_part`."""
    ordered = placed.sortWithinPartitions(*order) if order else placed
    write_id = constant(write.write_id)
    frame = projected(
        ordered,
        *names,
        f"{rows.INSERT} AS operation",
        f"{write_id} AS originalTransaction",
        f"{write.bucket_property(file)} AS bucket",
        f"{OWN_ROW_ID} AS rowId",
        f"{write_id} AS currentTransaction",
        *(map(row_part, range(len(row))) if parts is None else _row_parts(parts)),
    )
    return Events(frame, tuple(names), INSERT, row=tuple(row))


def _placed(shaped: DataFrame, names: Sequence[str], distribution: Distribution) -> DataFrame:
    """Rows in the tasks that write them; after a shuffle those of a partition are together.

    Without columns to distribute by, Spark sorts all rows by their hash first, which takes twice the time and leaves an
    order that compresses badly. So rows are distributed by their content; a task that is run again sends each row where
    it went before.
    """
    if not distribution.shuffled:
        return shaped if distribution.tasks is None else shaped.coalesce(distribution.tasks)
    tasks = [] if distribution.tasks is None else [distribution.tasks]
    if names:
        return shaped.hint("rebalance", *tasks, *names)
    hashed = [field.name for field in shaped.schema.fields if field.name != _ORDER and _is_hashable(field.dataType)]
    if not hashed:
        return shaped.hint("rebalance", *tasks)
    return shaped.withColumn(_DISTRIBUTION, F.xxhash64(*hashed)).hint("rebalance", *tasks, _DISTRIBUTION)


def _is_hashable(type_: t.DataType) -> bool:
    """Whether Spark computes hashes of such values: of all that hold no maps."""
    if isinstance(type_, t.StructType):
        return all(_is_hashable(field.dataType) for field in type_.fields)
    if isinstance(type_, t.ArrayType):
        return _is_hashable(type_.elementType)
    return not isinstance(type_, t.MapType)


def _names(keys: Sequence[str]) -> list[str]:
    return [key_column(position) for position in range(len(keys))]


def directory_keys(keys: Iterable[Column]) -> list[str]:
    """Partition keys, columns of a frame, as SQL, under their names for the writer.

    Spark itself writes whole numbers, dates and booleans as Hive does, null included, and sorts them in less time than
    their texts.
    """
    return _keys(
        quoted(key.name) if key.type in _SORTED_AS_NUMBERS else _text_of(key_text(key, quoted(key.name)))
        for key in keys
    )


def key_texts(keys: Iterable[str]) -> list[str]:
    """Partition keys, texts as SQL, under their names for the writer."""
    return _keys(map(_text_of, keys))


def _text_of(key: str) -> str:
    """A text is never null: of a nullable one Spark makes a new column before it writes, does not see any more that the
    rows are sorted by it, and sorts again, by the directories alone; the order within a file would be left to chance.
    """
    return f"coalesce(nullif({key}, ''), '{DEFAULT_PARTITION}')"


def _keys(keys: Iterable[str]) -> list[str]:
    return [f"{key} AS {key_column(position)}" for position, key in enumerate(keys)]


def constant(write_id: int) -> str:
    """The SQL of a write id in a form that Spark does not write into the code it generates.

    Code that differs in one number is compiled anew, by Spark and then by the JVM: half of the cost of a small
    statement. A number is part of the code, a list is not; and a place in it that depends on the task is not computed
    beforehand.
    """
    return f"array({write_id}L)[spark_partition_id() & 0]"
