"""What every verb of a session has: the connection, the tables that are known, and the transactions of its thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from hive_acid.catalog.alterations import Alterations
from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Table
from hive_acid.catalog.temporary_tables import TemporaryTables
from hive_acid.errors import TransactionsOffError
from hive_acid.settings import TransactionManager
from hive_acid.spark.conditions.booleans import refuse_non_boolean_of
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.jvm.forked import check_spark
from hive_acid.spark.limits import Limits
from hive_acid.spark.snapshots.blocks import Blocks
from hive_acid.spark.stream_source.connect_source import OpenSession
from hive_acid.spark.stream_source.table_source import Place
from hive_acid.spark.tables.plain import TURN_ON
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.states import TransactionKind, isolation_of
from hive_acid.transactions.transaction import Transaction


class SessionBase:
    """A Spark session that is joined to a metastore; its verbs are in the classes that are made of it."""

    _derived: OpenSession
    """How another one like it is made, with whatever Spark session: a server's, where sinks and streams run."""

    def __init__(self, where: Context, blocks: Blocks, manager: TransactionManager) -> None:
        self.connection = where.connection
        self.manager = manager
        self._where = where
        self._blocks = blocks

    @property
    def place(self) -> Place:
        """Where its statements run, as streams want it."""
        return Place(self._context, self._blocks)

    @property
    def spark(self) -> SparkSession:
        """The Spark session. Raises OtherProcessError in a child that was forked from its process."""
        return self._context.spark

    @property
    def limits(self) -> Limits:
        """Up to which sizes statements take the cheaper of two ways. Others may be set, for those of all threads."""
        return self._where.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._where.limits = limits

    @property
    def _context(self) -> Context:
        check_spark(self._where.spark)
        return self._where

    @property
    def _definitions(self) -> Definitions:
        """What is known of tables: from the metastore, so that a child that was forked has it too."""
        return self._where.definitions

    # --- transactions and snapshots ----------------------------------------------------------------

    @contextmanager
    def snapshot(self, tables: Iterable[str | Table] = ()) -> Iterator[None]:
        """All reads inside the block see the same snapshot.

        `tables` are all that the block reads: others are cleaned meanwhile, and not given to it (TableNotNamedError).
        Without them nothing is cleaned that was current when the block began, until it ends.
        """
        self._refuse_without_transactions()
        with self._blocks.entered(TransactionKind.READ, self._named(tables)):
            yield

    @contextmanager
    def transaction(
        self, tables: Iterable[str | Table] = (), *, repeated: bool = False, isolation: str | None = None
    ) -> Iterator[Transaction]:
        """One transaction over all reads and verbs inside the block, which see its own writes.

        It commits at the end, or aborts when an error leaves the block. A verb whose error stays in the block leaves
        nothing of itself, and the transaction goes on; but a conflict, an interrupt and files that cannot be removed
        abort it at once, and TransactionClosedError is then raised at the end. Raises WriteConflictError if another
        transaction changed the same data first, in the verb that finds it or at the end. `tables` are all that it reads
        and changes, as for `snapshot`. `repeated` says that the program runs the block again on a WriteConflictError:
        no rebalance waits for the block then. `isolation` is "snapshot" or "read committed", else the session's.
        """
        self._refuse_without_transactions()
        with self._blocks.entered(
            *(TransactionKind.WRITE, self._named(tables)),
            may_begin_again=repeated,
            isolation=None if isolation is None else isolation_of(isolation),
        ) as transaction:
            yield transaction

    @property
    def autocommit(self) -> bool:
        """Whether, on this thread, a statement in no transaction is one of its own, as it is at first."""
        return self._blocks.autocommit

    def set_autocommit(self, value: bool) -> None:
        """SQL's SET AUTOCOMMIT, for this thread; to set it anew commits what is open. Raises what a commit raises."""
        self._refuse_without_transactions()
        self._blocks.set_autocommit(value)

    def begin_transaction(self, *, read_only: bool = False, isolation: str | None = None) -> None:
        """SQL's BEGIN: what this thread does from now on is one transaction, until `end_transaction`.

        It is that of `transaction`, or of `snapshot` if it is to be `read_only`; so is `isolation`. Raises
        TransactionClosedError if the thread is in one already.
        """
        self._refuse_without_transactions()
        self._blocks.enter(read_only=read_only, isolation=None if isolation is None else isolation_of(isolation))

    def end_transaction(self, *, commit: bool) -> None:
        """SQL's COMMIT and ROLLBACK. The transaction is over, also if the commit fails.

        Raises TransactionClosedError if there is none, if it is a ``with`` block's, or if it was aborted and is to be
        committed; WriteConflictError.
        """
        self._refuse_without_transactions()
        self._blocks.end(commit=commit)

    # --- without transactions ------------------------------------------------------------------

    @property
    def _is_dummy(self) -> bool:
        return self.manager is TransactionManager.DUMMY

    def _refuse_without_transactions(self) -> None:
        if self._is_dummy:
            raise TransactionsOffError(f"this session has no transactions: {TURN_ON}")

    # --- tables --------------------------------------------------------------------------------

    def _check_boolean(self, table: str | Table, condition: Expression | None, alias: str | None = None) -> None:
        """Raise ColumnError for a condition on rows of a table, called `alias` or by its name, that is not one."""
        if condition is not None:
            known = self._known(table)
            refuse_non_boolean_of(self.spark, condition, known, alias or known.name)

    def _known(self, table: str | Table) -> Table:
        """A table as it was when this session saw it last. Raises NoSuchObjectError if it never did."""
        known = self._meant(table).known
        assert known is not None
        return known

    def _lookup(self, table: str | Table) -> Table:
        return self._definitions.now(self._definitions.reference(table))

    def _held(self, table: str | Table) -> Table:
        """What a builder keeps of a table, until it runs: by a name, the one that has it now."""
        return table if isinstance(table, Table) else self._lookup(table)

    def _forget(self, full_name: str) -> None:
        self._definitions.forget(full_name)

    def _meant(self, table: str | Table) -> TableReference:
        return self._definitions.meant(table)

    @property
    def temporary(self) -> TemporaryTables:
        """The temporary tables of the session."""
        temporary = self._definitions.temporary
        assert temporary is not None
        return temporary

    @property
    def _alterations(self) -> Alterations:
        return Alterations(self.connection, self._definitions)

    def _named(self, tables: Iterable[str | Table]) -> list[str]:
        """Full names of tables that a block is begun for. Raises ValueError for what is no name."""
        if isinstance(tables, str):
            raise ValueError(f"tables are given as a list: ['{tables}']")
        return [self._definitions.reference(one).full_name for one in tables]
