"""One statement that changes one table, from its locks to its directories in place; the commit is the transaction's.

The order is the format's: snapshot, lock, reading, write id, job, renames, touched partitions (transactions.md §3.9).
Everything written is removed if the transaction aborts; partitions that were new stay, empty.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid import files
from hive_acid.catalog import Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.format.names import MAX_STATEMENT_ID, delete_delta_name, delta_name
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark.events import DELETE, INSERT, Events, Write
from hive_acid.spark.listing import UNPARTITIONED, TableState, check_full_acid, table_state
from hive_acid.spark.read import KEY_COLUMNS, partition_columns, read_rows
from hive_acid.spark.stage import StagedFiles, Staging
from hive_acid.spark.timezone import ZoneGuard
from hive_acid.spark.types import row_type
from hive_acid.transaction import Operation, Transaction, write_component

LOG = logging.getLogger(__name__)
COMPRESSIONS = ("zlib", "snappy")

_OUR_WORDS = "[USER_RAISED_EXCEPTION] "


@contextmanager
def column_errors(table: Table) -> Iterator[None]:
    """Spark's complaints about columns and values within the block become ColumnError, all others stay as they are."""
    try:
        yield
    except AnalysisException as error:
        words = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ColumnError(f"statement on {table.full_name}: {words}") from error
    except PySparkException as error:
        _, raised, words = str(error).partition(_OUR_WORDS)
        if not raised:
            raise
        raise ColumnError(words.splitlines()[0].removesuffix(" SQLSTATE: P0001")) from error


@dataclass(frozen=True, slots=True)
class Context:
    """Where statements run: Spark, the metastore, the guard over time zones, and how files are compressed."""

    spark: SparkSession
    connection: Connection
    zones: ZoneGuard
    compression: str = "zlib"

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise ValueError(f"compression '{self.compression}' is none of {', '.join(COMPRESSIONS)}")

    def state(self, transaction: Transaction, table: Table) -> TableState:
        """The table as the transaction sees it. Raises TableNotAcidError and what `table_state` raises."""
        check_full_acid(table)
        self.zones.check(row_type(table.columns))
        write_ids = transaction.write_ids(table.database, table.name)
        partitions = self.connection.partitions(table) if table.partition_keys else {}
        return table_state(table, partitions, write_ids, transaction.snapshot)


class EventCounts(NamedTuple):
    """How many events a statement has written; an update is one of each."""

    inserts: int
    deletes: int


class Statement:
    """One change to one table within an open transaction."""

    def __init__(self, context: Context, transaction: Transaction, table: Table) -> None:
        check_full_acid(table)
        context.zones.check(row_type(table.columns))
        self.context = context
        self.table = table
        self._transaction = transaction

    # --- before the job ------------------------------------------------------------------------

    def refuse_clustered(self, verb: str) -> None:
        """Raise UnsupportedTableError if new rows would have to be placed by a hash of their columns."""
        if self.table.bucket_columns:
            raise UnsupportedTableError(
                f"{verb} into {self.table.full_name} is not supported yet: it is CLUSTERED BY "
                f"({', '.join(self.table.bucket_columns)}), and rows would have to be placed by Hive's hash of these "
                "columns. DELETE works"
            )

    def lock(self, operation: Operation) -> None:
        """Take the writer's lock on the table; partitions follow when they are known."""
        dynamic = bool(self.table.partition_keys)
        self._transaction.lock(write_component(self.table.database, self.table.name, operation, dynamic=dynamic))

    def target(self) -> DataFrame:
        """The rows of the table that the transaction sees, with the hidden columns of `read_rows`."""
        return read_rows(self.context.spark, self.context.state(self._transaction, self.table))

    def write(self) -> Write:
        """The ids under which this statement writes: the transaction's write id and a statement id of its own.

        Raises UnsupportedTableError for more than 4096 statements in one transaction.
        """
        write_id = self._transaction.write_id(self.table.database, self.table.name)
        statement_id = self._transaction.next_statement_id()
        if statement_id > MAX_STATEMENT_ID:
            raise UnsupportedTableError(
                f"a transaction can have {MAX_STATEMENT_ID + 1} statements, as many as names have room for: commit it"
            )
        return Write(write_id, statement_id)

    @property
    def identity(self) -> list[Column]:
        """Columns of `target`: write id, bucket property and row id of each row."""
        return [F.col(name) for name in KEY_COLUMNS]

    @property
    def keys(self) -> list[Column]:
        """Columns of `target`: the text of each partition key."""
        return [F.col(name) for name in partition_columns(self.table)]

    # --- the job and after ---------------------------------------------------------------------

    def run(self, events: Events, write: Write, operation: Operation) -> EventCounts:
        """Write `events` and rename them into place; `operation` is what happens where rows are deleted.

        Raises ColumnError for a value that does not fit its column.
        """
        staging = Staging.below(self.table.location, self._transaction.id)
        self._transaction.on_abort(staging.undo)
        with column_errors(self.table):
            counts = staging.write(events, self.context.compression)
        found = staging.staged(len(self.table.partition_keys)) if any(counts.values()) else []
        names = self._register(found)
        # Whoever was given up meanwhile learns it here. Who is given up after this line finds its staging directory
        # removed by the Cleaner, before the record goes by which its writes count as aborted.
        self._transaction.check_alive()
        staging.publish(found, lambda staged: (names[staged.values][1], _directory_name(staged.kind, write)))
        self._report(found, names, operation)
        staging.remove()
        return EventCounts(counts.get(INSERT, 0), counts.get(DELETE, 0))

    def _register(self, found: Sequence[StagedFiles]) -> dict[tuple[str | None, ...], tuple[str, str]]:
        """Partition values to the partition's name and location, of all that were written to; new ones are added."""
        if not self.table.partition_keys:
            return {(): (UNPARTITIONED, self.table.location)}
        known: dict[tuple[str | None, ...], tuple[str, str]] = {}
        for name, location in self.context.connection.partitions(self.table).items():
            known[tuple(value for _, value in parse_partition_name(name))] = (name, location)
        new: dict[str, str] = {}
        names: dict[tuple[str | None, ...], tuple[str, str]] = {}
        for staged in found:
            if staged.values not in known:
                name = self.table.partition_name(staged.values)
                new[name] = files.join(self.table.location, name)
                known[staged.values] = (name, new[name])
            names[staged.values] = known[staged.values]
        if new:
            self.context.connection.add_partitions(self.table, new)
        return names

    def _report(
        self,
        found: Sequence[StagedFiles],
        names: Mapping[tuple[str | None, ...], tuple[str, str]],
        operation: Operation,
    ) -> None:
        """Tell the metastore which partitions were touched, for the conflict check at commit."""
        if not self.table.partition_keys:
            return
        changed = {names[staged.values][0] for staged in found if staged.kind == DELETE}
        added = {names[staged.values][0] for staged in found} - changed
        for touched, what in ((changed, operation), (added, Operation.INSERT)):
            # Nothing touched is told as well: until then the whole table counts as written to.
            if touched or not found:
                self._transaction.add_dynamic_partitions(self.table.database, self.table.name, sorted(touched), what)


def _directory_name(kind: str, write: Write) -> str:
    named = delete_delta_name if kind == DELETE else delta_name
    return named(write.write_id, write.write_id, write.statement_id)
