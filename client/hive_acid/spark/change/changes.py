"""Changes of existing rows as events: what UPDATE, DELETE and MERGE write, where they are or in one shuffle of them.

A change is a row of its kind (insert or delete), its partition's keys, the identity of the row that is deleted, and the
new row. `hive_acid.spark.write.events` has the names of these columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.format import rows
from hive_acid.format.rows import KEY
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.tasks import FILES_PER_PARTITION, Distribution
from hive_acid.spark.read.scan import ROW_COLUMN
from hive_acid.spark.read.table_frame import KEY_COLUMNS
from hive_acid.spark.values.hashing import bucket_of
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.write.events import (
    BUCKET_COLUMN,
    FILE_OF_ROW,
    KIND_COLUMN,
    OWN_ROW_ID,
    Events,
    constant,
    insert_events,
    key_column,
    key_texts,
    sorted_by,
)
from hive_acid.spark.write.layout import Write
from hive_acid.write.staging import DELETE, INSERT

UPDATES = "updates"
"""The count of events that are new versions of rows: a row that is moved or changed, not one that is new."""

REPEATED = "repeated"
"""The count of rows that are deleted more than once, where `change_events` was asked for it."""

_KIND = "__acid_kind"
"""`KIND_COLUMN` beside the table's columns, one of which may be called `kind`."""

_DISTRIBUTION = "__acid_distribution"
_SORT = "__acid_sort_{}".format
_TURN = "__acid_turn"
_IS_NEW = f"{KIND_COLUMN} = '{INSERT}'"


def deletions(target: DataFrame, keys: Sequence[str], row: t.StructType) -> DataFrame:
    """The rows of `target` as changes that `change_events` takes: each one is deleted.

    `target` has the columns of `read_rows`, of which `keys` are the texts of partition keys; `row` is the type of what
    the file holds for each row.
    """
    no_row = F.lit(None).cast(row).alias(ROW_COLUMN)
    return target.select(F.expr(f"'{DELETE}' AS {KIND_COLUMN}"), *map(F.expr, (*key_texts(keys), *_identity())), no_row)


class SourceColumns(NamedTuple):
    """Columns of rows that come from a source: its row's number, and whether a row of the table goes with it."""

    row: str
    is_pair: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows of a table with what becomes of each: `frame` has the columns of `read_rows`, all else is SQL over it.

    `kinds` is an array of what happens to a row: `DELETE` from the partition of `keys`, its columns with the texts of
    partition keys, and `INSERT` with the columns `values`, or the struct `row` of them, into that of `new_keys`. One
    that is only inserted has no write id. With `source`, rows that are no pair are not meant if their source row is in
    one, and `kinds` is null for pairs that stay as they are.
    """

    frame: DataFrame
    kinds: str
    keys: Sequence[str]
    new_keys: Sequence[str]
    values: Sequence[str]
    row: str
    source: SourceColumns | None = None

    def changes(self) -> DataFrame:
        """As changes that `change_events` takes: one for each kind. New rows are in the order of what they replace."""
        twice = projected(self.frame, "*", f"explode({self.kinds}) AS {_KIND}")
        is_new = f"{_KIND} = '{INSERT}'"
        placed = [
            old if new == old else f"if({is_new}, {new}, {old})"
            for old, new in zip(self.keys, self.new_keys, strict=True)
        ]
        row = f"CASE WHEN {is_new} THEN {self.row} END AS {ROW_COLUMN}"
        return projected(twice, f"{_KIND} AS {KIND_COLUMN}", *key_texts(placed), *_identity(), row)

    def insertions(self, table: Table, write: Write) -> Events:
        """As events of an unpartitioned table, in the tasks in which they are, if all rows are only inserted."""
        columns = [column.name for column in table.columns]
        values = projected(
            self.frame, *(f"{of} AS {quoted(name)}" for of, name in zip(self.values, columns, strict=True))
        )
        return insert_events(values, columns, (), write, Distribution(None, shuffled=False), sorted_by(table))


def change_events(
    changes: DataFrame,
    table: Table,
    write: Write,
    *,
    deletes_only: bool = False,
    once: bool = False,
    in_place: bool = False,
) -> Events:
    """Changes as events in the order and in the tasks in which they are written.

    Delete events meet in one task per partition and bucket, which makes their one file, and so do new rows of a
    CLUSTERED table; other new rows are distributed as they came and take the writing task's number for bucket. That is
    one shuffle, of changed rows only.

    With `in_place` there is none, which for few rows is most of the work: each task writes the delete events that it
    has, so a bucket may have several files, which are statements of their own. That is only for changes that come in
    few tasks, and where rows need not meet: `plans.change_plan.placing_of` decides it.

    `deletes_only` says that there are no new rows, which would need a known hash in a CLUSTERED table. With `once`,
    rows are counted that are deleted more than once (`REPEATED`): such events may not be committed.
    """
    names = [key_column(position) for position in range(len(table.partition_keys))]
    hashed = bool(table.bucket_columns) and not deletes_only
    divided_by = (KIND_COLUMN, *names, BUCKET_COLUMN)
    # New rows of a table with a primary key are in its order; delete events, which have none, in that of their ids.
    sorts = {} if deletes_only else {_SORT(at): name for at, name in enumerate(sorted_by(table))}
    order = [*divided_by, *sorts, *KEY]
    sorting = [f"{ROW_COLUMN}.{quoted(name)} AS {at}" for at, name in sorts.items()]
    if in_place:
        # A plan with subqueries may come in more tasks than the table is read in.
        placed = changes.coalesce(FILES_PER_PARTITION)
        file = _file("spark_partition_id()", FILE_OF_ROW)
    else:
        order.insert(len(divided_by), _DISTRIBUTION)
        placed = _shuffled(changes, names, _bucket(table) if hashed else "spark_partition_id()")
        file = _file(_DISTRIBUTION if hashed else "spark_partition_id()", _DISTRIBUTION)
    counts = Observation()
    counted = {INSERT: _IS_NEW, DELETE: f"NOT {_IS_NEW}", UPDATES: f"{_IS_NEW} AND originalTransaction IS NOT NULL"}
    if once:
        # The rows are in this order already, and where the shuffle has put them: the window moves and sorts nothing.
        turn = F.row_number().over(Window.partitionBy(*order).orderBy(KEY[-1]))
        placed = projected(placed, "*", file, *sorting).sortWithinPartitions(*order).withColumn(_TURN, turn)
        counted[REPEATED] = f"NOT {_IS_NEW} AND {_TURN} = 2"
        placed = _counted(placed, counts, counted)
    else:
        # Counted first, as Spark makes a program for what is on either side of the counting.
        placed = projected(_counted(placed, counts, counted), "*", file, *sorting).sortWithinPartitions(*order)
    write_id = constant(write.write_id)
    frame = projected(
        placed,
        *divided_by,
        f"if({_IS_NEW}, {rows.INSERT}, {rows.DELETE}) AS operation",
        f"if({_IS_NEW}, {write_id}, originalTransaction) AS originalTransaction",
        f"if({_IS_NEW}, {write.bucket_property(BUCKET_COLUMN)}, bucket) AS bucket",
        f"if({_IS_NEW}, {OWN_ROW_ID}, rowId) AS rowId",
        f"{write_id} AS currentTransaction",
        ROW_COLUMN,
    )
    return Events(frame, divided_by, counts=counts)


def _shuffled(changes: DataFrame, names: Sequence[str], bucket: str) -> DataFrame:
    """The changes in the tasks of their files; `bucket` is that of new rows."""
    distributed = projected(changes, "*", f"if({_IS_NEW}, {bucket}, {FILE_OF_ROW}) AS {_DISTRIBUTION}")
    return distributed.repartition(KIND_COLUMN, *names, _DISTRIBUTION)


def _counted(changes: DataFrame, counts: Observation, counted: Mapping[str, str]) -> DataFrame:
    # Not count_if, for which Spark makes columns of their own.
    return changes.observe(counts, *(F.expr(f"count(if({of}, 1, null)) AS {name}") for name, of in counted.items()))


def _file(new: str, deleted: str) -> str:
    """The number of an event's file; Spark has to know that it is never null, or it would sort again to write it."""
    return f"coalesce(if({_IS_NEW}, {new}, {deleted}), 0) AS {BUCKET_COLUMN}"


def _identity() -> list[str]:
    return [f"{hidden} AS {name}" for hidden, name in zip(KEY_COLUMNS, KEY, strict=True)]


def _bucket(table: Table) -> str:
    """The bucket of a new row of a CLUSTERED table, by Hive's hash."""
    return bucket_of(table, {name: f"{ROW_COLUMN}.{quoted(name)}" for name in table.bucket_columns})
