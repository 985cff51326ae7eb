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

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.references import TableReference
from hive_acid.connection import Connection, connect
from hive_acid.errors import ScriptError, SqlError
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.format.progress import progress_parameter
from hive_acid.login import DelegationToken, Kerberos
from hive_acid.settings import TransactionManager, transaction_manager
from hive_acid.spark.jvm.forked import check_spark
from hive_acid.spark.jvm.interrupts import watch
from hive_acid.spark.jvm.running import check_running
from hive_acid.spark.limits import DEFAULT, Limits
from hive_acid.spark.read.listing import check_full_acid, check_transactional
from hive_acid.spark.snapshots.block import Block
from hive_acid.spark.snapshots.blocks import Blocks
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.statements.dispatch import Sql
from hive_acid.spark.sql.statements.script import statements_of
from hive_acid.spark.values.argument_checks import check_frame, names_of
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.timezone import ZoneGuard
from hive_acid.spark.verbs.keys import KeyVerbs
from hive_acid.spark.verbs.multi_insert import MultiInsert
from hive_acid.spark.verbs.stream import Sink, SinkMode, SinkPlan
from hive_acid.spark.write.distribution import TARGET_FILE_SIZE_BYTES
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.states import isolation_of


class AcidSession(KeyVerbs):
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
        idle_in_transaction_timeout_ms: int = 0,
        target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES,
        statistics: bool = False,
        skipping: bool = True,
        limits: Limits = DEFAULT,
        manager: TransactionManager = TransactionManager.DB,
        isolation: str = "snapshot",
    ) -> None:
        check_spark(spark)
        watch(spark)
        zones = ZoneGuard(spark)
        where = Context(spark, connection, zones, compression, target_file_size_bytes, statistics, skipping, limits)
        blocks = Blocks(spark, connection, lock_timeout_ms, idle_in_transaction_timeout_ms, isolation_of(isolation))
        super().__init__(where, blocks, manager)
        self._sql = Sql(self, self._blocks)
        self._derived: Callable[[SparkSession, Connection], AcidSession] = partial(
            AcidSession,
            compression=compression,
            lock_timeout_ms=lock_timeout_ms,
            idle_in_transaction_timeout_ms=idle_in_transaction_timeout_ms,
            target_file_size_bytes=target_file_size_bytes,
            statistics=statistics,
            skipping=skipping,
            limits=limits,
            isolation=isolation,
        )

    def _shown_by_view(self, view: TableReference) -> DataFrame:
        return self._sql.run(f"SELECT * FROM {quoted(view.database)}.{quoted(view.name)}")

    def sql(self, text: str, args: Arguments = None, **frames: Any) -> DataFrame:
        """Run one SQL statement: Spark's queries and Hive's and Spark's statements on ACID tables, as a transaction.

        A name means a CTE, else a temporary view, else the metastore's table, else what Spark knows. All tables that a
        statement reads are read in one snapshot, which a query's frame keeps as `table` does. Changes run at once and
        give a row of counts. `args` stand for ``:name``, or in a list for ``?``; `frames` for what the text names in
        braces, as in ``spark.sql("SELECT * FROM {rows}", rows=frame)``. Raises SqlError for what is not understood, and
        what the verb behind the statement raises.
        """
        check_running(self.spark)
        return self._sql.run(text, args, frames)

    def sql_script(self, script: str, args: Mapping[str, Any] | None = None, **frames: Any) -> list[DataFrame]:
        """Run the statements of a text one after the other, with semicolons between; what `sql` returns of each.

        Each is a transaction of its own, unless it runs behind BEGIN or inside ``with acid.transaction():``. `args` are
        by name, and as `frames` those of all statements. Raises ScriptError for the first that fails, with its number
        and line; a transaction that the script has begun, and not ended, is then rolled back.
        """
        if not isinstance(script, str):
            raise SqlError(f"a script is a text, and not of type {type(script).__name__}")
        if not (args is None or isinstance(args, Mapping)):
            raise SqlError("arguments of a script are a dict of names to values: a list would be of one statement")
        done = []
        before = self._blocks.by_words
        for statement in statements_of(script):
            try:
                done.append(self.sql(statement.text, args, **frames))
            except BaseException as error:
                ended = self._roll_back_begun_after(before)
                if not isinstance(error, Exception):
                    raise
                raise ScriptError(statement.failed(error) + ended, statement.number, statement.line) from error
        return done

    def _roll_back_begun_after(self, before: Block | None) -> str:
        """End the transaction that SQL has begun since the thread was in `before`; what to say of it, if there is."""
        block = self._blocks.by_words
        if block is None or block is before:
            return ""
        self._blocks.end(commit=False)
        return f". Transaction {block.transaction.id}, which the script had begun, was rolled back"

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

    # --- life ----------------------------------------------------------------------------------

    def roll_back_open(self) -> None:
        """Abort the transactions that BEGIN has begun, on whatever thread, and that nobody has ended."""
        self._blocks.roll_back_all()

    def close(self) -> None:
        """Close the connection. Snapshots that are still held end with it, open transactions are aborted, and temporary
        tables are dropped.
        """
        with suppress(PySparkException, Py4JError):  # Spark may have been stopped before
            self.kept.clear()
        self.roll_back_open()
        self._end_temporary()
        self.connection.close()

    def _end_temporary(self) -> None:
        self.temporary.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def session(
    spark: SparkSession,
    metastore: str | Connection = "thrift://localhost:9083",
    *,
    compression: str = DEFAULT_COMPRESSION,
    lock_timeout_ms: int = 300_000,
    idle_in_transaction_timeout_ms: int = 0,
    target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES,
    statistics: bool = False,
    skipping: bool = True,
    settings: Mapping[str, str] | None = None,
    isolation: str = "snapshot",
) -> AcidSession:
    """ACID tables of the `metastore` for `spark`.

    `metastore` is an address or an open connection; `compression` of new files is ``zstd``, ``zlib``, ``snappy``,
    ``lz4`` or ``none``, and a table's ``orc.compress`` goes before it; `lock_timeout_ms` is how long a statement
    waits for its lock; `idle_in_transaction_timeout_ms` how long a transaction of several statements, by BEGIN or
    ``with acid.transaction()``, may be without one before it is aborted, 0 for as long as it likes;
    `target_file_size_bytes` about how large new files should be, where there is so much to
    write. With `statistics` each statement tells the metastore what rows, files and bytes it adds, by two more
    calls; without it, `analyze` counts them. Without `skipping` each statement reads all partitions, files and row
    groups of a table, whatever its condition and the files' statistics say: slower, and its rows are the same. To
    compare both is the way to find out whether a file's statistics are wrong. `settings` are Hive's
    ``hive.support.concurrency`` and ``hive.txn.manager`` (`hive_acid.settings`), by default true and DbTxnManager:
    with transactions. `isolation` is that of transactions that do not say it: ``snapshot``, where the first of two that
    change the same rows wins, or ``read committed``, where the second waits. Raises MetastoreUnreachableError, and
    ValueError for another isolation, other settings or ones that contradict each other.
    """
    manager = transaction_manager(settings or {})
    check_running(spark)
    return AcidSession(
        spark,
        connected(spark, metastore),
        compression=compression,
        lock_timeout_ms=lock_timeout_ms,
        idle_in_transaction_timeout_ms=idle_in_transaction_timeout_ms,
        target_file_size_bytes=target_file_size_bytes,
        statistics=statistics,
        skipping=skipping,
        manager=manager,
        isolation=isolation,
    )


def connected(
    spark: SparkSession, metastore: str | Connection, login: Kerberos | DelegationToken | None = None
) -> Connection:
    """An open connection as it is, or one to an address, which calls us as the Spark application is called."""
    if isinstance(metastore, Connection):
        return metastore
    return connect(metastore, application=spark.conf.get("spark.app.name", None), login=login)
