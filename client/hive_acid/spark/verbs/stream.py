"""A sink of Structured Streaming: each micro-batch is one transaction, and is in the table once.

    query = (
        stream.writeStream.foreachBatch(acid.sink("d.clicks", query="clicks"))
        .option("checkpointLocation", "…").start()
    )

Spark gives a batch again when it was killed before it had noted the batch's end. So the commit that makes a batch's
rows visible also puts the batch's number into a parameter of the table (`hive_acid.format.progress`), and is refused
unless the number grows: a batch that comes again is passed by, and of two drivers with one batch one commits.

Spark Connect runs the function in a process of its own on the server. What is sent there is the address of the
metastore and no socket: a sink connects where it runs.
"""

from __future__ import annotations

import enum
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import ColumnError, MetaError, MetastoreInternalError, StreamFencedError, WriteConflictError
from hive_acid.format.progress import last_batch, progress_parameter
from hive_acid.spark.values.assign import assign, is_stored_as_is
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import is_char
from hive_acid.spark.values.types import check_distinct
from hive_acid.spark.verbs.changes import ChangeVerbs

LOG = logging.getLogger(__name__)

ATTEMPTS = 5
"""So often a batch is tried that meets the changes of others."""

FIRST_PAUSE_S = 0.2
"""Before the second attempt; doubled before each further one, and shortened by chance."""

_PLACE = "__acid_place"
_SAME = "__acid_same"


class SinkMode(enum.Enum):
    """What the rows of a batch do to the table."""

    APPEND = "append"
    UPSERT = "upsert"
    CHANGES = "changes"


class Change(enum.Enum):
    """What a row of mode `SinkMode.CHANGES` says of itself, in any case."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class _Columns(NamedTuple):
    """The columns that a plan names, in lower case, as tables and batches have them."""

    keys: tuple[str, ...]
    order_by: str | None
    change: str | None


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """What a sink does; `AcidSession.sink` has the meaning of each field. Names are spelt as its user spells them."""

    mode: SinkMode
    keys: tuple[str, ...]
    order_by: str | None
    change_column: str
    schema_evolution: bool = False

    @property
    def _columns(self) -> _Columns:
        return _Columns(
            tuple(key.lower() for key in self.keys),
            None if self.order_by is None else self.order_by.lower(),
            self.change_column.lower() if self.mode is SinkMode.CHANGES else None,
        )

    def check(self, table: Table) -> None:
        """Raise ColumnError unless the plan fits the table."""
        if self.mode is SinkMode.APPEND:
            if self.keys or self.order_by:
                raise ColumnError("a sink of mode append takes neither keys nor order_by: it adds all rows as they are")
            return
        known = {column.name for column in table.all_columns}
        if not self.keys:
            raise ColumnError(f"a sink of mode {self.mode.value} needs keys: the columns that identify a row")
        if unknown := [key for key, name in zip(self.keys, self._columns.keys, strict=True) if name not in known]:
            raise ColumnError(f"{table.full_name} has no column {', '.join(unknown)} to be a key")

    def write(self, acid: ChangeVerbs, table: Table, frame: DataFrame) -> None:
        """Write a batch within the transaction that is open. Raises ColumnError for a column that is there twice."""
        check_distinct(name.lower() for name in frame.columns)
        if self.mode is SinkMode.APPEND:
            acid.insert(table, frame, schema_evolution=self.schema_evolution)
            return
        if any(name != name.lower() for name in frame.columns):  # to Spark, they may be other names
            frame = frame.toDF(*(name.lower() for name in frame.columns))
        keys, _, change = self._columns
        on = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in keys)
        merging = acid.merge(table, self._distinct(table, self._typed(table, frame)), on)
        if self.schema_evolution:
            merging = merging.withSchemaEvolution()
            merging.left_out = frozenset([] if change is None else [change])
        if change is not None:
            deletes = _is_change(Change.DELETE, F.col(f"s.{quoted(change)}"))
            merging = merging.whenMatchedDelete(deletes).whenMatchedUpdateAll().whenNotMatchedInsertAll(~deletes)
        else:
            merging = merging.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        merging.execute()

    def _typed(self, table: Table, frame: DataFrame) -> DataFrame:
        """`frame`, its names in lower case, with keys of the table's types: the texts 1 and 01 are one key of numbers.

        Raises ColumnError for one that the frame lacks, or whose values the table cannot have, and for another column
        that the plan names and the frame lacks.
        """
        columns = {column.name: column for column in table.all_columns}
        given = {field.name: field for field in frame.schema.fields}
        keys, order_by, change = self._columns
        if missing := [key for key, name in zip(self.keys, keys, strict=True) if name not in given]:
            raise ColumnError(f"a batch for {table.full_name} has no column {', '.join(missing)}, which is a key")
        told = [("order_by", self.order_by, order_by), ("change_column", self.change_column, change)]
        if lacking := [f"{spelt}, its {what}" for what, spelt, name in told if name and name not in given]:
            raise ColumnError(f"a batch for {table.full_name} has no column {' and no '.join(lacking)}")
        fields = [(columns[key], given[key]) for key in keys]
        values = {
            field.name: F.expr(assign(frame.sparkSession, table, column, quoted(field.name), field.dataType))
            for column, field in fields
            if not is_stored_as_is(table, column, field.dataType)
        }
        return frame.withColumns(values) if values else frame

    def _distinct(self, table: Table, frame: DataFrame) -> DataFrame:
        """One row per key, the last if there is an order; the job fails for rows of which none is the last."""
        names, order_by, change = self._columns
        keys = [F.col(quoted(name)) for name in names]
        chars = {column.name for column in table.all_columns if is_char(column)}
        same = Window.partitionBy(
            *(F.rtrim(key) if name in chars else key for name, key in zip(names, keys, strict=True))
        )
        if order_by is not None:
            place = F.rank().over(same.orderBy(F.col(quoted(order_by)).desc_nulls_last()))
            frame = frame.withColumn(_PLACE, place).where(F.col(_PLACE) == 1).drop(_PLACE)
        counted = frame.withColumn(_SAME, F.count(F.lit(1)).over(same))
        spelt = ", ".join(self.keys)
        wrong = F.when(_any_null(keys), _failure(f"a row for {table.full_name} has no {spelt}, which identify rows"))
        wrong = wrong.when(
            F.col(_SAME) > 1,
            _failure(
                f"two rows of a batch for {table.full_name} have the same {spelt}"
                + (
                    f" and {self.order_by}" if self.order_by else ": name the column that tells the last one (order_by)"
                ),
                *keys,
            ),
        )
        if change is not None:
            said = F.col(quoted(change))
            known = [_is_change(change, said) for change in Change]
            words = f"column {self.change_column} says neither insert nor update nor delete, but "
            wrong = wrong.when(~F.coalesce(known[0] | known[1] | known[2], F.lit(False)), _failure(words, said))
        return counted.where(wrong.otherwise(F.lit(True))).drop(_SAME)


class Sink:
    """The function for ``foreachBatch``; make one with `AcidSession.sink`.

    It holds for one query at a time: give each query a sink, and a name, of its own.
    """

    def __init__(
        self,
        connection: Connection,
        table: Table,
        query: str,
        plan: SinkPlan,
        open_session: Callable[[SparkSession, Connection], ChangeVerbs],
    ) -> None:
        self.table = table.full_name
        self.query = query
        self.plan = plan
        self._meant = TableReference(table.database, table.name, table.id or None)
        self._open_session = open_session
        self._uri, self._user, self._tls = connection.uri, connection.user, connection.tls
        self._login = connection.login
        self._connection: Connection | None = connection
        self._attempted: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None, "_login": None}  # a password stays here: there, a file has it

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write batch `batch_id`, unless it is in the table.

        Raises StreamFencedError if another writer uses the name of the query, ColumnError for rows that do not fit,
        WriteConflictError if others change the same rows again and again, NoSuchObjectError and TableChangedError if
        the table was dropped or replaced since the sink was made.
        """
        if self._connection is None:
            self._connection = connect(self._uri, user=self._user, tls=self._tls, login=self._login)
        acid = self._open_session(frame.sparkSession, self._connection)
        for attempt in range(1, ATTEMPTS + 1):
            table = self._table()
            if self._is_there(table, batch_id, is_aborted=attempt > 1):
                LOG.info("batch %d of %s is in %s already: passed by", batch_id, self.query, self.table)
                return
            try:
                self._write(acid, table, frame, batch_id)
                return
            except WriteConflictError as error:
                if attempt == ATTEMPTS:
                    raise
                LOG.info("batch %d of %s is tried again: %s", batch_id, self.query, error)
                time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1))
            except (MetaError, MetastoreInternalError):
                last = last_batch(self._table().parameters, self.query)
                if last is not None and last >= batch_id:
                    raise self._fenced(batch_id, last) from None
                raise

    def _table(self) -> Table:
        """The table as it is now. Raises NoSuchObjectError, TableChangedError if it is not the sink's any more."""
        assert self._connection is not None
        return Definitions(self._connection).now(self._meant)

    def _write(self, acid: ChangeVerbs, table: Table, frame: DataFrame, batch_id: int) -> None:
        with acid.transaction([table], repeated=True) as transaction:
            transaction.set_with_commit(table.id, progress_parameter(self.query), str(batch_id))
            self.plan.write(acid, table, frame)

    def _is_there(self, table: Table, batch_id: int, *, is_aborted: bool) -> bool:
        """Whether the batch is in the table, by a commit of this sink or of a process before it.

        Spark gives at most the last batch again. One that is older, or that somebody else has written since this sink
        began, is another stream's of the same name; so is one whose transaction here `is_aborted`.
        """
        last = last_batch(table.parameters, self.query)
        before, self._attempted = self._attempted, batch_id
        if last is None or last < batch_id:
            return False
        if last > batch_id or is_aborted or before not in (None, batch_id):
            raise self._fenced(batch_id, last)
        return True

    def _fenced(self, batch_id: int, last: int) -> StreamFencedError:
        return StreamFencedError(
            f"batch {batch_id} of stream '{self.query}' is not written to {self.table}: batch {last} is there already, "
            "by another writer. Stop the other driver; or, if this stream has a new checkpoint and counts from 0 "
            "again, give it a new name"
        )


def _is_change(change: Change, said: Column) -> Column:
    return F.lower(said) == change.value


def _any_null(keys: list[Column]) -> Column:
    found = keys[0].isNull()
    for key in keys[1:]:
        found |= key.isNull()
    return found


def _failure(message: str, *values: Column) -> Column:
    shown = [F.coalesce(value.cast("string"), F.lit("null")) for value in values]
    return F.raise_error(F.concat(F.lit(message + (": " if values else "")), F.concat_ws(", ", *shown))).cast("boolean")
