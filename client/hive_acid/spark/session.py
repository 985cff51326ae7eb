"""The door to ACID tables on Spark: `session` joins a Spark session to a metastore.

    acid = hive_acid.spark.session(spark, "thrift://localhost:9083")
    acid.create_table("db.t", {"id": "int", "name": "string"})
    acid.table("db.t").insert(frame)
    acid.table("db.t").update({"name": "upper(name)"}, "id = 1")
    acid.table("db.t").show()

Each verb is a transaction of its own, unless it runs inside ``with acid.transaction():``. Each frame is of the snapshot
that was current when `table` was called; the snapshot's files stay as long as the frame, or one derived from it, is in
use. ``with acid.snapshot():`` gives several reads the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Self, overload

from pyspark.sql import DataFrame, SparkSession

from hive_acid.alterations import Alterations, NewColumns
from hive_acid.catalog import Column, Table, table_parts
from hive_acid.connection import Connection, connect
from hive_acid.errors import ColumnError, TableNotAcidError, TransactionsOffError
from hive_acid.format.compression import DEFAULT_COMPRESSION
from hive_acid.format.progress import progress_parameter
from hive_acid.locks import Operation
from hive_acid.references import Definitions, TableReference
from hive_acid.settings import TransactionManager, transaction_manager
from hive_acid.spark import dml, insert_only, merge_job, plain, write
from hive_acid.spark import overwrite as overwriting
from hive_acid.spark.argument_checks import check_condition, check_frame, check_partition, check_values, names_of
from hive_acid.spark.blocks import Blocks, Result
from hive_acid.spark.char_conditions import without_blanks
from hive_acid.spark.counting import known_rows
from hive_acid.spark.definitions import DefinitionVerbs
from hive_acid.spark.expressions import Expression
from hive_acid.spark.forked import check_spark
from hive_acid.spark.frame import AcidTable, as_table
from hive_acid.spark.known_frames import KnownFrames
from hive_acid.spark.lease import Lease
from hive_acid.spark.listing import check_full_acid, check_transactional
from hive_acid.spark.merge import MergeBuilder, RowCounts
from hive_acid.spark.multi_insert import MultiInsert
from hive_acid.spark.narrowing import Family, Narrowing
from hive_acid.spark.plain import TURN_ON, refuse_acid
from hive_acid.spark.predicates import Predicate, predicate_of
from hive_acid.spark.read import ROW_ID, read_table
from hive_acid.spark.running import check_running
from hive_acid.spark.skipping import narrowed
from hive_acid.spark.source import Join, joined, joined_if_any
from hive_acid.spark.spread import TARGET_FILE_SIZE_BYTES
from hive_acid.spark.sql import Sql
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.statement import Context
from hive_acid.spark.stream import Sink, SinkMode, SinkPlan
from hive_acid.spark.tables import insert_only as insert_only_writes
from hive_acid.spark.tables.verbs import TableVerbs
from hive_acid.spark.timezone import ZoneGuard
from hive_acid.transaction import Transaction, TransactionKind
from hive_acid.write.table_write import Intent, TableWrite


class AcidSession(DefinitionVerbs, TableVerbs):
    """ACID tables for one Spark session; safe to share between threads, of which each has its own transaction.

    In a child that was forked verbs that need no Spark, as drops and renames, work; others raise OtherProcessError.
    """

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        *,
        compression: str = DEFAULT_COMPRESSION,
        lock_timeout_ms: int = 300_000,
        target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES,
        statistics: bool = False,
        skipping: bool = True,
        manager: TransactionManager = TransactionManager.DB,
    ) -> None:
        check_spark(spark)
        self.connection = connection
        self.manager = manager
        self._where = Context(
            spark, connection, ZoneGuard(spark), compression, target_file_size_bytes, statistics, skipping
        )
        self._blocks = Blocks(spark, connection, lock_timeout_ms)
        self._sql = Sql(self, self._blocks)
        self._known_frames = KnownFrames()
        # How a sink makes sessions, with whatever Spark session its batches come.
        self._derived = partial(
            AcidSession,
            compression=compression,
            lock_timeout_ms=lock_timeout_ms,
            target_file_size_bytes=target_file_size_bytes,
            statistics=statistics,
            skipping=skipping,
        )

    @property
    def spark(self) -> SparkSession:
        """The Spark session. Raises OtherProcessError in a child that was forked from its process."""
        return self._context.spark

    @property
    def _context(self) -> Context:
        check_spark(self._where.spark)
        return self._where

    @property
    def _definitions(self) -> Definitions:
        """What is known of tables: from the metastore, so that a child that was forked has it too."""
        return self._where.definitions

    # --- reading -------------------------------------------------------------------------------

    @overload
    def table(self, name: str | Table, *, row_id: bool = False) -> AcidTable: ...

    @overload
    def table(self, name: str | Table, *, row_id: bool = False, where: Expression | None) -> DataFrame: ...

    def table(
        self, name: str | Table, *, row_id: bool = False, where: Expression | None = None
    ) -> AcidTable | DataFrame:
        """The table ``db.name`` as the current snapshot sees it; with `row_id`, Hive's ROW__ID as first column.

        With `where`, the rows of it for which that is true: partitions and files that can have none are not even
        looked at.

        The snapshot's files are kept while the frame, or anything made of it that reads them, is alive: another frame,
        an RDD, an iterator, a writer, a temporary view until it is dropped, a streaming query until it ends. Whatever
        reads them after that raises SnapshotEndedError.

        Raises SparkStoppedError after ``spark.stop()``, NoSuchObjectError, TableNotAcidError, UnsupportedTableError for
        files that cannot be read yet, and TimeZoneMismatchError; TransactionsOffError for an ACID table in a session
        without transactions.
        """
        check_condition("where", where)
        if self._is_dummy:
            table = self._lookup(name)
            plain_frame = self._plain_frame(table, row_id=row_id)
            return plain_frame if where is None else plain_frame.filter(without_blanks(where, table))
        meant = TableReference.of(name)
        block = self._blocks.current()
        if block is not None:
            return self._frame(block.lease, block.transaction, meant, row_id=row_id, where=where)
        transaction = self._blocks.begin(TransactionKind.READ, [meant.full_name])
        try:
            lease = Lease(self.spark, transaction.end_later)
            return self._frame(lease, transaction, meant, row_id=row_id, where=where)
        except BaseException:
            transaction.end_later()
            raise

    @contextmanager
    def snapshot(self, tables: Iterable[str | Table] = ()) -> Iterator[None]:
        """All reads inside the block see the same snapshot.

        `tables` are all that the block reads: others are cleaned meanwhile, and not given to it (TableNotNamedError).
        Without them nothing is cleaned that was current when the block began, until it ends.
        """
        self._refuse_without_transactions()
        with self._blocks.entered(TransactionKind.READ, _names(tables)):
            yield

    def sql(self, text: str, args: Arguments = None) -> DataFrame:
        """Run one SQL statement: Spark's queries and Hive's and Spark's statements on ACID tables, as a transaction.

        A name means a CTE, else a temporary view, else the metastore's table, else what Spark knows. All tables that a
        statement reads are read in one snapshot, which a query's frame keeps as `table` does. Changes run at once and
        give a row of counts. `args` stand for ``:name``, or in a list for ``?``. Raises SqlError for what is not
        understood, and what the verb behind the statement raises.
        """
        check_running(self.spark)
        return self._sql.run(text, args)

    # --- changing ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, tables: Iterable[str | Table] = (), *, repeated: bool = False) -> Iterator[Transaction]:
        """One transaction over all reads and verbs inside the block, which see its own writes.

        It commits at the end, or aborts when an error leaves the block or a verb in it has failed. Raises
        WriteConflictError at the end if another transaction changed the same data first. `tables` are all that it
        reads and changes, as for `snapshot`. `repeated` says that the program runs the block again on a
        WriteConflictError: that comes as soon as it is known then, and no rebalance waits for the block.
        """
        self._refuse_without_transactions()
        with self._blocks.entered(TransactionKind.WRITE, _names(tables), may_begin_again=repeated) as transaction:
            yield transaction

    def insert(self, table: str | Table, frame: DataFrame, *, schema_evolution: bool = False) -> int:
        """As `AcidTable.insert`, without a read of the table."""
        check_frame("frame", frame)
        if self._is_dummy:
            found = self._lookup(table)
            refuse_acid(found)
            return plain.insert(self._context, found, frame)

        def run(begun: TableWrite) -> int:
            rows = write.with_nulls(begun.table, frame) if schema_evolution else frame
            by = write.insert if begun.table.is_full_acid else insert_only_writes.insert
            return by(self._context, begun, rows)

        evolving = write.evolving(frame) if schema_evolution else None
        return self._change(table, Intent(Operation.INSERT), run, also_insert_only=not evolving, evolving=evolving)

    def overwrite(
        self,
        table: str | Table,
        frame: DataFrame,
        *,
        partition: Mapping[str, str | None] | None = None,
        where: Expression | None = None,
    ) -> int:
        """As `AcidTable.overwrite`, without a read of the table."""
        check_frame("frame", frame)
        check_partition(partition)
        check_condition("where", where)
        if where is not None:
            return self._replace(table, frame, partition, where)

        def run(begun: TableWrite) -> int:
            by = overwriting.overwrite if begun.table.is_full_acid else insert_only_writes.overwrite
            return by(self._context, begun, frame, partition)

        def intent(transaction: Transaction, meant: TableReference) -> Intent:
            return overwriting.overwriting(self.connection, transaction, meant, partition or {})

        return self._change(table, intent, run, also_insert_only=True)

    def update(
        self,
        table: str | Table,
        set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
        where: Expression | None = None,
        *,
        source: DataFrame | None = None,
        on: Expression | None = None,
        target_alias: str | None = None,
        source_alias: str = "s",
    ) -> int:
        """As `AcidTable.update`, without a read of the table; SQL text may call the table by `target_alias`."""
        check_values("set", set)
        check_condition("where", where)
        join = joined_if_any(source, on, target_alias, source_alias)
        if join is not None:
            builder = self._merging("UPDATE", table, join)
            return builder.whenMatchedUpdate(where, set).execute().updated
        return self._change(
            table,
            Intent(Operation.UPDATE),
            lambda begun: dml.update(self._context, begun, set, where, target_alias=target_alias),
        )

    def delete(
        self,
        table: str | Table,
        where: Expression | None = None,
        *,
        source: DataFrame | None = None,
        on: Expression | None = None,
        target_alias: str | None = None,
        source_alias: str = "s",
    ) -> int:
        """As `AcidTable.delete`, without a read of the table; SQL text may call the table by `target_alias`."""
        check_condition("where", where)
        join = joined_if_any(source, on, target_alias, source_alias)
        return self._change(
            table,
            Intent(Operation.DELETE),
            lambda begun: dml.delete(self._context, begun, where, join=join, target_alias=target_alias),
        )

    def merge(
        self,
        table: str | Table,
        source: DataFrame,
        on: Expression,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> MergeBuilder:
        """As `AcidTable.merge`, without a read of the table."""
        return self._merging("MERGE", table, joined(source, on, target_alias, source_alias))

    def multi_insert(self, frame: DataFrame) -> MultiInsert:
        """Begin an INSERT of one frame into several tables, in one transaction: add `into` for each, then `execute`."""
        check_frame("frame", frame)
        self._refuse_without_transactions()
        return MultiInsert(self, self._held, self._blocks.changing, frame)

    def sink(
        self,
        table: str,
        *,
        query: str,
        mode: str = "append",
        keys: Sequence[str] = (),
        order_by: str | None = None,
        change_column: str = "change",
        schema_evolution: bool = False,
    ) -> Sink:
        """What ``writeStream.foreachBatch`` takes: each micro-batch is a transaction, and is in the table once.

        `query` names the stream; it belongs to the checkpoint, and a new checkpoint needs a new name. Mode ``append``
        inserts the rows; ``upsert`` updates the row that has the same `keys`, or inserts; ``changes`` does what
        `change_column` says: insert and update as upsert does, or delete. Of several rows with one key the last by
        `order_by` counts; without it they fail the batch. Columns that the table lacks fail an ``append`` and are left
        out else; with `schema_evolution` they are added, but for `change_column`, and those that a batch lacks stay as
        they are, or are null in new rows.

        Raises ColumnError for keys that do not fit the mode or the table, ValueError for another mode or name.
        """
        self._refuse_without_transactions()
        progress_parameter(query)
        found = self._lookup(table)
        (check_full_acid if schema_evolution else check_transactional)(found)
        plan = SinkPlan(SinkMode(mode), tuple(names_of("keys", keys)), order_by, change_column, schema_evolution)
        plan.check(found)
        return Sink(self.connection, found, query, plan, self._derived)

    def _replace(
        self, table: str | Table, frame: DataFrame, partition: Mapping[str, str | None] | None, where: Expression
    ) -> int:
        meant = TableReference.of(table)
        if partition is not None:
            raise ColumnError(
                f"an overwrite of {meant.full_name} is of a partition, or of rows by a condition: not both"
            )

        def insert(begun: TableWrite) -> int:
            return write.insert(self._context, begun, write.only_where(begun.table, frame, where))

        def run() -> int:
            self.delete(table, where)
            return self._change(table, Intent(Operation.INSERT), insert)

        if self._is_dummy:
            return run()
        return self._blocks.together(run, [meant.full_name])

    def _merging(self, verb: str, table: str | Table, join: Join) -> MergeBuilder:
        found = self._held(table)

        def run(builder: MergeBuilder) -> RowCounts:
            # Also where it only inserts: which rows are new depends on those that are there (as in Hive's
            # xlock.mergeinsert).
            return self._change(
                found,
                Intent(Operation.UPDATE, inserts_what_lacks=bool(builder.not_matched)),
                lambda begun: merge_job.merge(self._context, begun, builder, verb),
                evolving=builder.new_columns if builder.evolves else None,
            )

        return MergeBuilder(found, join, run)

    # --- life ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection; snapshots that are still held end with it."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- without transactions ------------------------------------------------------------------

    @property
    def _is_dummy(self) -> bool:
        return self.manager is TransactionManager.DUMMY

    def _refuse_without_transactions(self) -> None:
        if self._is_dummy:
            raise TransactionsOffError(f"this session has no transactions: {TURN_ON}")

    def _plain_frame(self, table: Table, *, row_id: bool) -> AcidTable:
        refuse_acid(table)
        if row_id:
            raise TableNotAcidError(f"{table.full_name} is a plain table: its rows have no {ROW_ID}")
        return as_table(plain.read_table(self._context, table), self, table)

    # --- transactions --------------------------------------------------------------------------

    def _change(
        self,
        table: str | Table,
        intent: Intent | Callable[[Transaction, TableReference], Intent],
        run: Callable[[TableWrite], Result],
        *,
        also_insert_only: bool = False,
        evolving: NewColumns | None = None,
    ) -> Result:
        """Begin a write, and let `run` do it; with `evolving` the table is given the columns that it lacks before."""
        check = check_transactional if also_insert_only else check_full_acid
        if self._is_dummy:
            found = self._lookup(table)
            refuse_acid(found)
            check(found)
        name = self._meant(table).full_name

        def begin(transaction: Transaction) -> Result:
            meant = self._meant(table)
            if evolving is not None:
                self._evolve(transaction, meant, check, evolving)
            about = intent if isinstance(intent, Intent) else intent(transaction, meant)
            begun = self._context.begin(transaction, meant, about)
            check(begun.table)
            if evolving is not None and evolving(begun.table):
                begun.table = self._alterations.add_missing_columns(transaction, meant, evolving)
            return run(begun)

        # What it takes rows from are frames, with snapshots of their own.
        return self._blocks.changing(begin, [name])

    def _evolve(
        self, transaction: Transaction, meant: TableReference, check: Callable[[Table], None], evolving: NewColumns
    ) -> None:
        """Add the columns that a table lacks. Its lock comes before that of the write, as in every alteration."""

        def missing(table: Table) -> Sequence[Column]:
            check(table)
            return evolving(table)

        assert meant.known is not None
        try:
            lacks = bool(missing(meant.known))
        except (ColumnError, TableNotAcidError):
            lacks = False  # so it was once: what is so now is found out behind the lock
        if lacks:
            self._alterations.add_missing_columns(transaction, meant, missing)

    def _frame(
        self,
        lease: Lease | None,
        transaction: Transaction,
        meant: TableReference,
        *,
        row_id: bool,
        where: Expression | None,
    ) -> AcidTable | DataFrame:
        table = self._context.locked_for_reading(transaction, meant)
        check_transactional(table)
        if not table.is_full_acid and row_id:
            raise TableNotAcidError(f"{table.full_name} is an insert-only table: its rows have no {ROW_ID}")
        family = Family()
        said = predicate_of(where, table, family.alias)
        state = self._context.state(transaction, table, wanted=said)

        def read(wanted: Predicate | None) -> DataFrame:
            some = state if wanted == said else narrowed(state, wanted)
            if not table.is_full_acid:
                return insert_only.read_table(self.spark, some)
            if wanted is None:
                return self._known_frames.table(self.spark, some, row_id=row_id)
            return read_table(self.spark, some, row_id=row_id, wanted=wanted)

        narrowing = Narrowing(table, read, partial(known_rows, state), lease, family=family)
        if where is not None and (found := narrowing.filtered(where)) is not None:
            return found
        frame = narrowing.frame()
        return as_table(frame, self, table, narrowing) if where is None else frame.filter(narrowing.meant(where))

    def _lookup(self, table: str | Table) -> Table:
        return self._definitions.now(TableReference.of(table))

    def _held(self, table: str | Table) -> Table:
        """What a builder keeps of a table, until it runs: by a name, the one that has it now."""
        return table if isinstance(table, Table) else self._lookup(table)

    def _forget(self, full_name: str) -> None:
        self._definitions.forget(full_name)

    def _meant(self, table: str | Table) -> TableReference:
        return self._definitions.meant(table)

    @property
    def _alterations(self) -> Alterations:
        return Alterations(self.connection, self._definitions)


def _names(tables: Iterable[str | Table]) -> list[str]:
    """Full names of tables that a block is begun for. Raises ValueError for what is no name."""
    if isinstance(tables, str):
        raise ValueError(f"tables are given as a list: ['{tables}']")
    return [one.full_name if isinstance(one, Table) else ".".join(table_parts(one)) for one in tables]


def session(
    spark: SparkSession,
    metastore: str | Connection = "thrift://localhost:9083",
    *,
    compression: str = DEFAULT_COMPRESSION,
    lock_timeout_ms: int = 300_000,
    target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES,
    statistics: bool = False,
    skipping: bool = True,
    settings: Mapping[str, str] | None = None,
) -> AcidSession:
    """ACID tables of the `metastore` for `spark`.

    `metastore` is an address or an open connection; `compression` of new files is ``zstd``, ``zlib``, ``snappy``,
    ``lz4`` or ``none``, and a table's ``orc.compress`` goes before it; `lock_timeout_ms` is how long a statement
    waits for its lock; `target_file_size_bytes` about how large new files should be, where there is so much to
    write. With `statistics` each statement tells the metastore what rows, files and bytes it adds, by two more
    calls; without it, `analyze` counts them. Without `skipping` each statement reads all partitions, files and row
    groups of a table, whatever its condition and the files' statistics say: slower, and its rows are the same. To
    compare both is the way to find out whether a file's statistics are wrong. `settings` are Hive's
    ``hive.support.concurrency`` and ``hive.txn.manager`` (`hive_acid.settings`), by default true and DbTxnManager:
    with transactions. Raises MetastoreUnreachableError, and ValueError for other settings or ones that contradict each
    other.
    """
    manager = transaction_manager(settings or {})
    check_running(spark)
    application = spark.conf.get("spark.app.name", None)
    connection = metastore if isinstance(metastore, Connection) else connect(metastore, application=application)
    return AcidSession(
        spark,
        connection,
        compression=compression,
        lock_timeout_ms=lock_timeout_ms,
        target_file_size_bytes=target_file_size_bytes,
        statistics=statistics,
        skipping=skipping,
        manager=manager,
    )
