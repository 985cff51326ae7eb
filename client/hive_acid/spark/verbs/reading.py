"""The verb of a session that reads: a table as the frame of one snapshot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar, overload

from pyspark.sql import DataFrame

from hive_acid.catalog.about import COLUMNS, HISTORY, AboutTable
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.errors import (
    ColumnError,
    NoSuchObjectError,
    SnapshotEndedError,
    SnapshotOutdatedError,
    TableChangedError,
    TableNotAcidError,
    TransactionClosedError,
    ViewError,
)
from hive_acid.settings import TransactionManager
from hive_acid.spark.about.rows import rows_about
from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.conditions.predicates import Predicate, all_of, predicate_of
from hive_acid.spark.jvm.session_settings import SessionSettings
from hive_acid.spark.read import insert_only
from hive_acid.spark.read.filter_pushdown import Family, Pushdown
from hive_acid.spark.read.listing import check_transactional
from hive_acid.spark.read.partitions.reach import Reachable
from hive_acid.spark.read.plan_cache import PlanCache
from hive_acid.spark.read.table_frame import ROW_ID, columns_of_rows, has_row_ids, read_table
from hive_acid.spark.read.totals.extremes import Extreme, Totals, known_totals
from hive_acid.spark.snapshots.blocks import Blocks
from hive_acid.spark.snapshots.lease import Lease
from hive_acid.spark.stream_source.batch_limit import BatchLimit
from hive_acid.spark.stream_source.start import Start
from hive_acid.spark.stream_source.streams import read_stream
from hive_acid.spark.tables import plain
from hive_acid.spark.tables.plain import refuse_acid
from hive_acid.spark.values.argument_checks import check_condition
from hive_acid.spark.verbs.frame import AcidTable, as_table
from hive_acid.spark.verbs.kept_tables import KeptTables
from hive_acid.spark.verbs.tables import TableVerbs
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction

Frame = TypeVar("Frame", bound=DataFrame)
_LOOKS = 2
"""So often a read begins again at most, for a table that got other columns after its snapshot."""

_SURELY_OPEN_S = 0.1
"""So long no metastore gives up a transaction that it has just been asked about. By the clock of the wall: that of the
process stands still while the machine sleeps."""


class ReadVerbs(TableVerbs):
    """What a session does with tables, the frames of their rows as well."""

    def __init__(self, where: Context, blocks: Blocks, manager: TransactionManager) -> None:
        super().__init__(where, blocks, manager)
        self._plan_cache = PlanCache()
        self.kept = KeptTables()
        """What CACHE TABLE keeps."""

    @overload
    def table(self, name: str | Table, *, row_id: bool = False) -> AcidTable: ...

    @overload
    def table(self, name: str | Table, *, row_id: bool = False, where: Expression | None) -> DataFrame: ...

    def table(
        self, name: str | Table, *, row_id: bool = False, where: Expression | None = None
    ) -> AcidTable | DataFrame:
        """The table ``db.name`` as the current snapshot sees it; with `row_id`, Hive's ROW__ID as first column.

        ``db.t.history``, ``snapshots``, ``files``, ``partitions`` and ``deletes`` tell about ``db.t``, unless a table
        has that name; what they tell is a plain frame, without the verbs.

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
        try:
            return self._handed_out(self._read(name, row_id=row_id, where=where))
        except ViewError:
            if row_id:
                raise
        shown = self._shown_by_view(self._definitions.reference(name))
        return self._handed_out(shown if where is None else shown.filter(where))

    def _handed_out(self, frame: Frame) -> Frame:
        """A frame as the session gives it to its user."""
        return frame

    def _table_within(
        self, table: Table, reach: Predicate | None, *, row_id: bool = False, where: Expression | None = None
    ) -> AcidTable | DataFrame:
        """As `table`, for who does not need rows that do not meet `reach`: there may be some of them, or none."""
        return self._handed_out(self._read(table, row_id=row_id, where=where, reach=reach))

    def _shown_by_view(self, view: TableReference) -> DataFrame:
        """What a view shows. Raises ViewError where its query is not understood, as in a session without SQL."""
        raise ViewError(f"{view.full_name} is a view, and there is no SQL here")

    def _read(
        self, name: str | Table, *, row_id: bool, where: Expression | None, reach: Predicate | None = None
    ) -> AcidTable | DataFrame:
        if (about := self._about(name)) is not None:
            rows = self._rows_about(about)
            return rows if where is None else rows.filter(where)
        self._check_boolean(name, where)
        if self._is_dummy:
            table = self._lookup(name)
            refuse_acid(table)
            return self._plain_frame(table, row_id=row_id, where=where)
        meant = self._definitions.reference(name)
        block = self._blocks.current_or_begun()
        if block is not None:
            lease = block.lease(meant.full_name)
            # Frames of a transaction that writes end with it.
            writes = block.writable
            return self._frame(lease, block.transaction, meant, row_id=row_id, where=where, reach=reach, at_once=writes)
        for _ in range(_LOOKS):
            with suppress(SnapshotOutdatedError):
                return self._fresh_frame(meant, row_id=row_id, where=where, reach=reach)
        return self._fresh_frame(meant, row_id=row_id, where=where, reach=reach)

    def _fresh_frame(
        self, meant: TableReference, *, row_id: bool, where: Expression | None, reach: Predicate | None
    ) -> AcidTable | DataFrame:
        """The frame of a snapshot of its own. Raises SnapshotOutdatedError for a table that is replaced meanwhile."""
        transaction = self._blocks.begin(TransactionKind.READ, [meant.full_name], with_lock=True)
        try:
            lease = Lease(self.spark, transaction.end_later)
            return self._frame(lease, transaction, meant, row_id=row_id, where=where, reach=reach, at_once=False)
        except BaseException:
            transaction.end_later()
            raise

    def read_stream(
        self,
        table: str | Table,
        start: str | int = "earliest",
        *,
        max_files: int | None = None,
        max_bytes: int | str | None = None,
    ) -> DataFrame:
        """The stream of a table's new rows: what ``spark.readStream.table`` is in a session that is joined.

        Each batch has the rows that writes have put into the table since the batch before, the new versions of updated
        rows among them, as far as they are there still when the batch is read: each once. What is deleted is not told.
        A query without a checkpoint begins with all rows (``earliest``), with those of a write and of later ones (a
        write id, as `history` tells them), or with what is committed from then on (``latest``).

        With `max_files` or `max_bytes` (a number, or ``"512m"``) a batch has whole writes, the oldest first, as many as
        have so many files or bytes, and always one. What a compaction has put together is not divided.

        Over Spark Connect the server reads, and its Python needs hive-acid. Raises NoSuchObjectError,
        TableNotAcidError, UnsupportedTableError for a server that cannot, and ValueError for another start.
        """
        self._refuse_without_transactions()
        begins, limit = Start.of(start), BatchLimit.of(max_files, max_bytes)
        return self._handed_out(read_stream(self.place, self._lookup(table), begins, limit, self._derived))

    def history(self, table: str | Table) -> DataFrame:
        """The writes of a table, the newest first, as far as its files and the metastore tell of them (null where not).

        It is what `table` gives for ``db.t.history``. Raises NoSuchObjectError, TableNotAcidError.
        """
        return self._rows_about(AboutTable.of(self._lookup(table), HISTORY))

    def _about(self, name: str | Table) -> AboutTable | None:
        """What a name tells about a table, if it is no table's own: ``db.t.files``, or ``t.files`` of `default`."""
        if isinstance(name, Table):
            return name if isinstance(name, AboutTable) else None
        of, _, what = name.lower().rpartition(".") if isinstance(name, str) else ("", "", "")
        if not of or what not in COLUMNS or of.count(".") > 1:
            return None
        if "." not in of:
            with suppress(NoSuchObjectError):
                self._lookup(name)
                return None
        try:
            return AboutTable.of(self._lookup(of), what)
        except NoSuchObjectError:
            if "." in of:
                raise
            return None

    def _rows_about(self, about: AboutTable) -> DataFrame:
        self._refuse_without_transactions()
        with self._blocks.reading([about.full_name]) as transaction:
            return rows_about(self._context, transaction, about)

    def _plain_frame(self, table: Table, *, row_id: bool, where: Expression | None) -> AcidTable | DataFrame:
        """The rows that the files of a plain table have, whichever these are when they are read."""
        if row_id:
            raise TableNotAcidError(f"{table.full_name} is a plain table: its rows have no {ROW_ID}")
        pushdown = Pushdown(table, plain.reader(self._context, table), _not_known, SessionSettings.of(self.spark))
        frame = as_table(pushdown.frame(), self, table, pushdown)
        return frame if where is None else frame.filter(where)

    def _frame(
        self,
        lease: Lease,
        transaction: Transaction,
        meant: TableReference,
        *,
        row_id: bool,
        where: Expression | None,
        reach: Predicate | None,
        at_once: bool,
    ) -> AcidTable | DataFrame:
        """A frame of a transaction's snapshot, planned when it is used, or `at_once`."""
        table = self._context.locked_for_reading(transaction, meant)
        if table.is_plain:
            return self._plain_frame(table, row_id=row_id, where=where)
        check_transactional(table)
        if not table.is_full_acid and row_id:
            raise TableNotAcidError(f"{table.full_name} is an insert-only table: its rows have no {ROW_ID}")
        if row_id and not has_row_ids(table):
            raise ColumnError(f"{table.full_name} has a column {ROW_ID}, so there is no name for its rows' identity")
        family = Family()
        said = all_of((reach, predicate_of(where, table, family.alias, ask=ask_of(self.spark))))
        begun = time.time()
        listing = self._context.listing(transaction, table, wanted=said)

        def read(wanted: Predicate | None) -> DataFrame:
            try:
                some = listing.state(wanted)
                if not table.is_full_acid:
                    found = insert_only.read_table(self.spark, some, wanted=wanted)
                elif wanted is None:
                    found = self._plan_cache.table(self.spark, some, row_id=row_id)
                else:
                    found = read_table(self.spark, some, row_id=row_id, wanted=wanted)
            except Exception:
                _refuse_ended(transaction, table)
                raise
            if not 0 <= time.time() - begun < _SURELY_OPEN_S:
                _refuse_ended(transaction, table)
            return found

        def totals(asked: Sequence[Extreme]) -> Totals | None:
            lease.check()
            try:
                return known_totals(listing.state(None), asked)
            except TableChangedError:
                _refuse_ended(transaction, table)
                raise

        settings, reachable = SessionSettings.of(self.spark), None
        limits = self._context.limits
        if not at_once and table.partition_keys and listing.partitions >= limits.joined_partitions:
            reachable = Reachable(table, columns_of_rows(table, row_id=row_id), limits)
        pushdown = Pushdown(
            table,
            read,
            totals,
            settings,
            lease,
            reachable,
            listing.names if table.partition_keys and self._context.skipping else None,
            reach,
            family=family,
        )
        if where is not None and (found := pushdown.filtered(self.spark, where)) is not None:
            return found
        if where is None:
            at_once = at_once or "_jsparkSession" not in vars(self.spark)
            return as_table(pushdown.frame() if at_once else None, self, table, pushdown)
        return pushdown.frame().filter(pushdown.meant(where))


def _refuse_ended(transaction: Transaction, table: Table) -> None:
    """Raise SnapshotEndedError if a snapshot has ended before it was planned.

    Spark lists the directories once more then, and may have met one that was being removed.
    """
    try:
        transaction.check_alive()
    except TransactionClosedError as error:
        raise SnapshotEndedError(
            f"the snapshot of {table.full_name} has ended before its frame was used: with `acid.close()`, or since the "
            "metastore has heard no heartbeat for hive.txn.timeout. Take acid.table again"
        ) from error


def _not_known(_: Sequence[Extreme]) -> None:
    """How many rows a plain table has is found out by reading them."""
