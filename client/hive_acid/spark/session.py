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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from hive_acid.catalog import Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import (
    ColumnError,
    TableNotAcidError,
    TransactionsOffError,
)
from hive_acid.settings import TransactionManager, transaction_manager
from hive_acid.spark import dml, plain, write
from hive_acid.spark import merge as merging
from hive_acid.spark.blocks import Blocks, Result
from hive_acid.spark.dml import Expression
from hive_acid.spark.frame import AcidTable, as_table, leased
from hive_acid.spark.listing import check_full_acid
from hive_acid.spark.merge import MergeBuilder, RowCounts
from hive_acid.spark.plain import TURN_ON, refuse_acid
from hive_acid.spark.read import ROW_ID, read_table
from hive_acid.spark.statement import Context, Statement
from hive_acid.spark.timezone import ZoneGuard
from hive_acid.spark.types import check_distinct, hive_columns
from hive_acid.transaction import Transaction, TransactionKind, read_component

DEFAULT_DATABASE = "default"


class AcidSession:
    """ACID tables for one Spark session; safe to share between threads, of which each has its own transaction."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        *,
        compression: str = "zlib",
        lock_timeout_ms: int = 300_000,
        manager: TransactionManager = TransactionManager.DB,
    ) -> None:
        self.spark = spark
        self.connection = connection
        self.manager = manager
        self._context = Context(spark, connection, ZoneGuard(spark), compression)
        self._blocks = Blocks(spark, connection, lock_timeout_ms)

    # --- reading -------------------------------------------------------------------------------

    def table(self, name: str, *, row_id: bool = False) -> AcidTable:
        """The table ``db.name`` as the current snapshot sees it; with `row_id`, Hive's ROW__ID as first column.

        The snapshot's files are kept while the frame, or one derived from it, is alive. A join keeps those of its left
        side, a temporary view keeps none: hold the frame itself, or read inside ``with acid.snapshot():``.

        Raises NoSuchObjectError, TableNotAcidError, UnsupportedTableError for files that cannot be read yet, and
        TimeZoneMismatchError; TransactionsOffError for an ACID table in a session without transactions.
        """
        table = self._lookup(name)
        if self._is_dummy:
            return self._plain_frame(table, row_id=row_id)
        block = self._blocks.current()
        if block is not None:
            return self._frame(block.session, block.transaction, table, row_id=row_id)
        transaction = self._blocks.begin(TransactionKind.READ)
        try:
            return self._frame(leased(self.spark, transaction.end_later), transaction, table, row_id=row_id)
        except BaseException:
            transaction.end_later()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside the block see the same snapshot."""
        self._refuse_without_transactions()
        with self._blocks.entered(TransactionKind.READ):
            yield

    # --- changing ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One transaction over all reads and verbs inside the block, which see its own writes.

        It commits at the end, or aborts when an error leaves the block or a verb in it has failed. Raises
        WriteConflictError at the end if another transaction changed the same data first.
        """
        self._refuse_without_transactions()
        with self._blocks.entered(TransactionKind.WRITE) as transaction:
            yield transaction

    def insert(self, table: str | Table, frame: DataFrame) -> int:
        """As `AcidTable.insert`, without a read of the table."""
        if self._is_dummy:
            found = self._lookup(table)
            refuse_acid(found)
            return plain.insert(self._context, found, frame)
        return self._change(table, lambda txn, of: write.insert(self._context, txn, of, frame))

    def update(self, table: str | Table, set: Mapping[str, Expression], where: Expression | None = None) -> int:  # noqa: A002
        """As `AcidTable.update`, without a read of the table."""
        return self._change(table, lambda txn, of: dml.update(self._context, txn, of, set, where))

    def delete(self, table: str | Table, where: Expression | None = None) -> int:
        """As `AcidTable.delete`, without a read of the table."""
        return self._change(table, lambda txn, of: dml.delete(self._context, txn, of, where))

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
        found = self._lookup(table)

        def run(builder: MergeBuilder) -> RowCounts:
            return self._change(found, lambda txn, of: merging.merge(Statement(self._context, txn, of), builder))

        return MergeBuilder(found, source, on, target_alias, source_alias, run)

    # --- the catalogue -------------------------------------------------------------------------

    def create_database(self, name: str, *, location: str | None = None, if_not_exists: bool = False) -> None:
        """Create a database."""
        self.connection.create_database(name.lower(), location=location, if_not_exists=if_not_exists)

    def create_table(
        self,
        name: str,
        columns: Mapping[str, str] | t.StructType,
        *,
        partitioned_by: Mapping[str, str] | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a full-ACID table.

        `columns` are names with Hive's types (``{"id": "int", "name": "varchar(20)"}``), or a frame's schema.
        `partitioned_by` gives the partition columns in the same way, or names some of `columns`. `properties` are added
        to ``transactional=true``; ``{"transactional": "false"}`` makes it a plain one. Raises AlreadyExistsError, and
        ColumnError for types that are not supported.
        """
        given = hive_columns(columns)
        if isinstance(partitioned_by, Mapping):
            keys = hive_columns(partitioned_by)
        else:
            by_name = {column.name: column for column in given}
            if unknown := [key for key in partitioned_by if key.lower() not in by_name]:
                raise ColumnError(f"partitioned_by names {', '.join(unknown)}, which the columns do not have")
            keys = tuple(by_name[key.lower()] for key in partitioned_by)
            given = tuple(column for column in given if column not in keys)
        check_distinct(column.name for column in (*given, *keys))
        if not given:
            raise ColumnError("a table needs a column beside its partition columns")
        database, table = _parts(name)
        definition = Table(
            database=database,
            name=table,
            columns=given,
            partition_keys=keys,
            parameters={"transactional": "true", **(properties or {})},
            location=location or "",
        )
        if self._is_dummy:
            refuse_acid(definition)
        self.connection.create_table(definition, if_not_exists=if_not_exists)

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a table with its data."""
        self.connection.drop_table(*_parts(name), if_exists=if_exists)

    def compact(self, name: str, kind: str = "major", partitions: Sequence[str] = ()) -> list[int]:
        """Ask for compactions, ``major`` or ``minor``, of the table or of some partitions; ids of those queued."""
        return self.connection.compact(*_parts(name), kind, partitions)

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

    def _change(self, table: str | Table, run: Callable[[Transaction, Table], Result]) -> Result:
        found = self._lookup(table)
        if self._is_dummy:
            refuse_acid(found)
        check_full_acid(found)
        return self._blocks.changing(lambda transaction: run(transaction, found))

    def _frame(self, spark: SparkSession, transaction: Transaction, table: Table, *, row_id: bool) -> AcidTable:
        check_full_acid(table)
        transaction.lock(read_component(table.database, table.name))
        state = self._context.state(transaction, table)
        return as_table(read_table(spark, state, row_id=row_id), self, table)

    def _lookup(self, table: str | Table) -> Table:
        return table if isinstance(table, Table) else self.connection.table(*_parts(table))


def session(
    spark: SparkSession,
    metastore: str | Connection = "thrift://localhost:9083",
    *,
    compression: str = "zlib",
    lock_timeout_ms: int = 300_000,
    settings: Mapping[str, str] | None = None,
) -> AcidSession:
    """ACID tables of the `metastore` for `spark`.

    `metastore` is an address or an open connection; `compression` of new files is ``zlib`` or ``snappy``;
    `lock_timeout_ms` is how long a statement waits for its lock. `settings` are Hive's ``hive.support.concurrency`` and
    ``hive.txn.manager`` (`hive_acid.settings`), by default true and DbTxnManager: with transactions. Raises
    MetastoreUnreachableError, and ValueError for other settings or ones that contradict each other.
    """
    manager = transaction_manager(settings or {})
    connection = metastore if isinstance(metastore, Connection) else connect(metastore)
    return AcidSession(spark, connection, compression=compression, lock_timeout_ms=lock_timeout_ms, manager=manager)


def _parts(name: str) -> tuple[str, str]:
    """Database and table of ``db.table`` or ``table``."""
    database, _, table = name.lower().rpartition(".")
    if not table or "." in database:
        raise ValueError(f"'{name}' is not a table's name: give database.table")
    return database or DEFAULT_DATABASE, table
