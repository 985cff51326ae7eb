"""One statement of Spark's that changes one table, from what it reads to its files; the commit is the transaction's.

The order is the format's: snapshot, lock, reading, write id, job, touched partitions, renames (transactions.md §3.9).
What comes before the reading and after the job is that of all writers (`hive_acid.write.table_write`). Everything
written is removed if the transaction aborts; partitions that were new stay, empty.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.calls import PartitionPlace
from hive_acid.catalog.constraints import IS_BROKEN
from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Table
from hive_acid.catalog.temporary_tables import TemporaryTables
from hive_acid.connection import Connection
from hive_acid.errors import (
    ColumnError,
    ConstraintError,
    HiveAcidError,
    SnapshotOutdatedError,
    StorageError,
    TableChangedError,
    UnsupportedTableError,
)
from hive_acid.filesystem.files import LONGEST_NAME, LONGEST_PATH
from hive_acid.format.deletion_bitmap import DeletionBitmap, RowSource
from hive_acid.format.names import is_for_hive_3
from hive_acid.format.orc.bloom_filters import asked_filters
from hive_acid.format.orc.compression import COMPRESSIONS, DEFAULT_COMPRESSION, compression_of
from hive_acid.format.orc.deletes import DeleteEvents
from hive_acid.format.properties import replaced_by
from hive_acid.format.rows import RowId, encode_bucket
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.spark.conditions.arithmetic import Span
from hive_acid.spark.conditions.predicates import Predicate, longest_list
from hive_acid.spark.conditions.unfit_settings import refuse_unfit_settings
from hive_acid.spark.jvm.causes import is_of_files, last_cause
from hive_acid.spark.jvm.job_settings import (
    COMPILED_METHODS,
    INFERRED_COLUMNS,
    LISTS_AS_SETS,
    NOT_INFERRED,
    SHORT_LIST,
    configured,
)
from hive_acid.spark.jvm.unjoined import unjoined
from hive_acid.spark.keys.key_check import KeyCheck
from hive_acid.spark.limits import DEFAULT, Limits
from hive_acid.spark.plans.change_plan import DeletedBy, deleted_by
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import LeftOut
from hive_acid.spark.plans.tasks import FILES_PER_PARTITION, Tasks
from hive_acid.spark.read.listing import TableState, check_full_acid, check_transactional, table_state
from hive_acid.spark.read.literal_hoisting import with_literals_put_back
from hive_acid.spark.read.partitions.partition_listing import Listing, PartitionListing, WholeListing
from hive_acid.spark.read.skipping import chosen_partitions, with_files_pruned
from hive_acid.spark.read.table_frame import KEY_COLUMNS, Choosing, deleted_from, partition_columns, read_rows
from hive_acid.spark.read.totals.spans import spans_of
from hive_acid.spark.values.hashing import check_version
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.timezone import ZoneGuard
from hive_acid.spark.values.types import refuse_instants, row_type
from hive_acid.spark.write.distribution import BY_SIZE, TARGET_FILE_SIZE_BYTES, Distributor
from hive_acid.spark.write.events import Events
from hive_acid.spark.write.layout import Write, layout_of
from hive_acid.spark.write.stage import SparkStaging
from hive_acid.spark.write.upkeep import Written, keep_up
from hive_acid.transactions.locks import read_component
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import table_name
from hive_acid.write.same_partitions import values_of
from hive_acid.write.staging import DELETE, INSERT, StagedFiles, Values
from hive_acid.write.table_write import Check, Intent, TableWrite, refuse_moved_partitions

LOG = logging.getLogger(__name__)
_SHOWN_COLUMNS, _SHOWN_LETTERS = 3, 40
"""So many columns of a row are told by which a transaction conflicts, and so much of each."""
_LOOKS = 3
"""So often partitions are looked for beside somebody who drops and renames them."""
MANY_FILES, SMALL_FILES_BELOW = 64, 8
"""From so many files on, and below this part of the target size, a warning is due."""

DeletedRows = Mapping[Values, Mapping[RowSource, DeletionBitmap]]
"""The rows that are deleted, by the values of their partition."""

_OUR_WORDS = "[USER_RAISED_EXCEPTION] "
_OUR_NAMES = re.compile(r",? ?(?:`\w+`\.)?`__acid_\w*`")

_TOO_MANY_ROWS = re.compile(r"\[SCALAR_SUBQUERY_TOO_MANY_ROWS\] (.*?)(?: SQLSTATE.*)?$", re.MULTILINE)
_NO_DIRECTORY = ("Mkdirs failed to create", "maximum path component name limit", "File name too long")


@contextmanager
def column_errors(table: Table) -> Iterator[None]:
    """Spark's complaints about columns and values within the block become ColumnError, those about files StorageError.

    All others stay as they are.
    """
    try:
        yield
    except AnalysisException as error:
        words = _without_our_names(next(iter(str(error).strip().splitlines()), type(error).__name__))
        raise ColumnError(f"statement on {table.full_name}: {words}") from error
    except PySparkException as error:
        _refuse_long_names(table, error)
        _, raised, words = str(error).partition(_OUR_WORDS)
        if not raised:
            raise
        said = words.splitlines()[0].removesuffix(" SQLSTATE: P0001")
        kind = ConstraintError if said.startswith(IS_BROKEN) else ColumnError
        raise kind(said) from error
    except Py4JJavaError as error:
        _refuse_long_names(table, error)
        if (told := _TOO_MANY_ROWS.search(str(error))) is not None:
            raise ColumnError(f"statement on {table.full_name}: {told[1]}") from error
        if is_of_files(cause := last_cause(error)):
            raise StorageError(f"statement on {table.full_name}: files cannot be written or read: {cause}") from error
        raise


def _refuse_long_names(table: Table, error: Exception) -> None:
    """Raise ColumnError if a job has failed because it could not make the directory of a partition."""
    told = [line for line in str(error).split("\n") if any(words in line for words in _NO_DIRECTORY)]
    lines = [line.encode(errors="replace") for line in told]
    if any(len(line) > LONGEST_PATH or any(len(name) > LONGEST_NAME for name in line.split(b"/")) for line in lines):
        raise ColumnError(
            f"{table.full_name}: a value is too long for a partition key, since the file system takes no such name of "
            "its directory, or no such path"
        ) from error


def _without_our_names(words: str) -> str:
    """Spark's words on a statement without the columns that it does not know of."""
    return _OUR_NAMES.sub("", with_literals_put_back(words)).replace("[, ", "[")


def analysed(frame: DataFrame) -> DataFrame:
    """`frame`, after a look at its schema: Connect finds out about names and types only then."""
    _ = frame.schema
    return frame


class Listed(NamedTuple):
    """What was found of a table, and where partitions are in which nothing lies, by their names."""

    state: TableState
    vacant: Mapping[str, str]


@dataclass(slots=True)
class Context:
    """Where statements run: Spark, the metastore, the guard over time zones, how files are compressed and how large.

    `distributor` decides in how many tasks an INSERT is written. Without `skipping` every statement reads all of a
    table.
    """

    session: SparkSession
    connection: Connection
    zones: ZoneGuard
    compression: str = DEFAULT_COMPRESSION
    target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES
    statistics: bool = False
    """Whether each statement tells the metastore what it has added (`hive_acid.spark.write.upkeep`)."""
    skipping: bool = True
    limits: Limits = DEFAULT
    """They may be changed between two statements."""
    computes_sources: bool = True
    """Whether the source of a join is computed before a statement is planned: not for EXPLAIN."""
    distributor: Distributor = field(init=False)
    definitions: Definitions = field(init=False)

    def __post_init__(self) -> None:
        self.definitions = Definitions(self.connection, TemporaryTables(self.connection))
        self.distributor = Distributor(self.session, self.target_file_size_bytes)
        if self.compression not in COMPRESSIONS:
            raise ValueError(f"compression '{self.compression}' is none of {', '.join(COMPRESSIONS)}")

    @property
    def spark(self) -> SparkSession:
        """The session of Spark in which statements run: one to which no metastore is joined."""
        return unjoined(self.session)

    def begin(self, transaction: Transaction, meant: TableReference, intent: Intent) -> TableWrite:
        """See `TableWrite.begin`."""
        return TableWrite.begin(self.connection, self.definitions, transaction, meant, intent)

    def locked_for_reading(self, transaction: Transaction, meant: TableReference) -> Table:
        """Take a reader's lock, which keeps a table from being dropped; the definition behind it.

        Raises NoSuchObjectError, TableChangedError.
        """
        return self.definitions.behind_lock(meant, transaction, read_component(meant.database, meant.name))

    def state(
        self,
        transaction: Transaction,
        table: Table,
        *,
        wanted: Predicate | None = None,
        compacted_by: ValidTxnList | None = None,
    ) -> TableState:
        """The table as the transaction sees it, without partitions and files in which surely no row is `wanted`.

        The rows are read where they lay in the snapshot `compacted_by`, if there is one: its owner keeps the files.

        It is looked for again when it is listed: clients that take no locks may have moved or replaced it, and where it
        was there may be nothing, or rows of another one. Raises TableNotAcidError, TableChangedError,
        NoSuchObjectError and what `table_state` raises.
        """
        self._check_readable(table)
        try:
            found = self.listed(transaction, table, wanted=wanted, compacted_by=compacted_by)
        except (HiveAcidError, ValueError):
            # What is told of another table by the name, such as its partitions, makes no sense for this one.
            self._refuse_moved(transaction, table, {})
            raise
        self._refuse_moved(transaction, table, found.vacant)
        return found.state

    def listing(self, transaction: Transaction, table: Table, *, wanted: Predicate | None = None) -> Listing:
        """As `state`, for who finds out later what is wanted of a table with partitions, beside what is `wanted` now.

        Where the metastore tells by what ids partitions are known they are listed when they are needed.
        """
        self._check_readable(table)
        places = self._places(transaction, table) if table.partition_keys else None
        if places is None:
            return WholeListing(self.state(transaction, table, wanted=wanted), wanted)
        write_ids = transaction.write_ids(table.database, table.name)
        _refuse_replaced(table, transaction, write_ids)
        return PartitionListing(
            self.connection,
            transaction.id,
            table,
            places,
            write_ids,
            transaction.snapshot,
            self.skipping,
            self.limits,
        )

    def _places(self, transaction: Transaction, table: Table) -> Sequence[PartitionPlace] | None:
        """Where the partitions are of this very table, by their ids; None if the metastore does not tell these."""
        try:
            places = self.connection.partition_places(table)
        except HiveAcidError:
            self._refuse_moved(transaction, table, {})
            raise
        if places is not None:
            self._refuse_moved(transaction, table, {})
        return places

    def _check_readable(self, table: Table) -> None:
        check_transactional(table)
        self.zones.check(row_type(table.columns))
        refuse_unfit_settings(self.spark, table)

    def listed(
        self,
        transaction: Transaction,
        table: Table,
        *,
        wanted: Predicate | None = None,
        compacted_by: ValidTxnList | None = None,
    ) -> Listed:
        """As `state`, for who looks himself whether the table is still what it was and where it was.

        Raises what `table_state` raises, and TableChangedError for partitions that come and go.
        """
        wanted = wanted if self.skipping else None
        write_ids = transaction.write_ids(table.database, table.name)
        _refuse_replaced(table, transaction, write_ids)
        partitions: Mapping[str, str] = {}
        pruned = 0
        if table.partition_keys:
            partitions, pruned = self._partitions(table, wanted)
        txns = compacted_by or transaction.snapshot
        state = table_state(table, partitions, write_ids, txns, only_these=pruned > 0)
        vacant = {of.name: of.location for of in state.partitions if of.name and of.is_vacant}
        found = replace(state, skipping=self.skipping, limits=self.limits, left_out=LeftOut(partitions=pruned))
        return Listed(with_files_pruned(found, wanted), vacant)

    def _partitions(self, table: Table, wanted: Predicate | None) -> tuple[Mapping[str, str], int]:
        """Where the partitions are that may have `wanted` rows, by their names; and how many others there are."""
        for _ in range(_LOOKS):
            names = self.connection.partition_names(table)
            chosen = chosen_partitions(table, names, wanted)
            found = self.connection.partitions_named(table, chosen)
            if len(found) == len(chosen):
                return found, len(names) - len(chosen)
            # One has gone since its name was told, and may be there by another name.
        gone = min(set(chosen) - found.keys())
        raise TableChangedError(
            f"partitions of {table.full_name} come and go while they are looked for, as {gone}: run it again"
        )

    def check_keys(self, begun: TableWrite) -> Check | None:
        """What compares the primary keys of new rows of a write with those of others; None without such a key."""
        table = begun.table
        if not table.key:
            return None

        def places(wanted: Predicate | None) -> Mapping[str, str]:
            return self._partitions(table, wanted)[0] if table.partition_keys else {}

        check = KeyCheck(self.spark, begun.transaction, table, places, self.skipping, self.limits)
        return check.check

    def _refuse_moved(self, transaction: Transaction, table: Table, vacant: Mapping[str, str]) -> None:
        """Raise TableChangedError, NoSuchObjectError if what was listed is not the table, or not where it was."""
        now = self.definitions.now(TableReference(table.database, table.name, table.id or None), transaction)
        if now.location != table.location:
            raise TableChangedError(
                f"{table.full_name} was moved to {now.location} while the statement looked for its files: run it again"
            )
        refuse_moved_partitions(self.connection, table, vacant, "while the statement looked for its files")


def _refuse_replaced(table: Table, transaction: Transaction, write_ids: ValidWriteIdList) -> None:
    """Raise SnapshotOutdatedError if the definition, which was asked for behind the snapshot, is of rows after it."""
    replaced = replaced_by(table.parameters, table.id)
    if replaced and not write_ids.is_valid(replaced):
        raise SnapshotOutdatedError(
            f"{table.full_name} was given other columns, with all of its rows, after transaction {transaction.id} had "
            "begun, which does not see them: run it again"
        )


class Overwrite(NamedTuple):
    """That new rows replace what there is: in each partition they fall into, and in all of `whole`.

    `whole` are the values of partitions, () for an unpartitioned table; none where only the rows tell.
    """

    whole: Collection[Values]


class EventCounts(NamedTuple):
    """How many events a statement has written; an update is one of each."""

    inserts: int
    deletes: int


class Statement:
    """One change to one full-ACID table, which has begun: it is locked, and `table` is the definition behind the lock.

    Raises TableNotAcidError, TimeZoneMismatchError.
    """

    def __init__(self, context: Context, begun: TableWrite) -> None:
        check_full_acid(begun.table)
        context.zones.check(row_type(begun.table.columns))
        refuse_unfit_settings(context.spark, begun.table)
        self.context = context
        self.table = begun.table
        self._begun = begun
        self._found: tuple[Predicate | None, TableState] | None = None
        self._rest: TableState | None = None

    # --- before the job ------------------------------------------------------------------------

    def refuse_clustered(self, verb: str) -> None:
        """Raise UnsupportedTableError if new rows would have to be placed by the older hash of Hive."""
        check_version(self.table, verb)

    def target(
        self,
        *,
        wanted: Predicate | None = None,
        chosen: bool = False,
        early: Choosing | None = None,
        narrow: bool = False,
    ) -> DataFrame:
        """The rows of the table that the transaction sees, with the hidden columns of `read_rows`.

        Of rows that are not `wanted` there may be some, or none. `chosen` says that few of the rows are kept, `early`
        and `narrow` are what `read_rows` takes.
        """
        state = self._listed(wanted)
        return read_rows(self.context.spark, state, wanted=wanted, in_one_scan=chosen, early=early, narrow=narrow)

    def listed(self, wanted: Predicate | None) -> TableState:
        """What `target` reads if nothing is left out: within the statement always the same."""
        if self._found is None or self._found[0] is not wanted:
            # Whether it was the table that was listed is found out when it is written to.
            state, vacant = self.context.listed(self._begun.transaction, self.table, wanted=wanted)
            self._begun.reads({partition.name: partition.location for partition in state.partitions}, vacant)
            self._found = wanted, state
        return self._found[1]

    def read_only(self, rest: TableState | None) -> None:
        """Let `target` read the `rest` of what is listed, or, with None, all of it again."""
        self._rest = rest

    def spans(self, wanted: Predicate | None) -> Callable[[str], Span | None]:
        """Between which values a column of whole numbers is in all rows that `target` reads; None if not known."""
        return spans_of(self._listed(wanted))

    def target_with_deleted(
        self, wanted: Predicate | None
    ) -> tuple[tuple[DataFrame, DeletedRows] | None, Choice[DeletedBy]]:
        """As a narrow `target`, with rows that are deleted already, and which, by the values of their partition.

        None if that is not known without a query, or if many tasks would read the table; and why.
        """
        state = self._listed(wanted)
        decided = partial(deleted_by, may_fail=False, tasks=self.tasks, limits=self.context.limits)
        left_out = decided()
        if left_out.way is not DeletedBy.CLIENT:
            return None, left_out
        found = deleted_from(self.context.spark, state)
        left_out = decided(pre_hive_3=found is None, known=found.known if found else None)
        if found is None or found.rows is None:
            return None, left_out
        deleted = {of.values: rows for of, rows in zip(state.partitions, found.rows, strict=True)}
        target = read_rows(self.context.spark, state, wanted=wanted, in_one_scan=True, with_deleted=True, narrow=True)
        return (target, deleted), left_out

    def _listed(self, wanted: Predicate | None) -> TableState:
        """What `target` reads."""
        listed = self.listed(wanted)
        return listed if self._rest is None else self._rest

    @property
    def tasks(self) -> Choice[Tasks]:
        """Whether the files of `target` are so few or small that each task may write files of its own."""
        return self.context.distributor.reads_in(self._sizes)

    @property
    def reads_nothing(self) -> bool:
        """Whether no file is left that `target` reads, by what was wanted of it: so it has no row."""
        return self._found is not None and not self._sizes

    @contextmanager
    def reading(self, *, joined: bool = False) -> Iterator[None]:
        """Within the block a job reads `target` in tasks of even shares, and its plan is made soon, however wide it is.

        Values of long lists are not in its code. All unless the session has its own idea of it. `joined` says that all
        of its rows are asked for their match.
        """
        settings = BY_SIZE if len(self._sizes) > FILES_PER_PARTITION else {}
        is_wide = len(self.table.all_columns) > INFERRED_COLUMNS
        if self._found is not None and is_wide:
            settings = {**settings, **NOT_INFERRED}
        if (self._found is None or joined) and is_wide:
            settings = {**settings, **COMPILED_METHODS}
        if self._found is not None and longest_list(self._found[0]) > SHORT_LIST:
            settings = {**settings, **LISTS_AS_SETS}
        with configured(self.context.spark, settings, gives_way=True):
            yield

    @property
    def _sizes(self) -> list[int]:
        """Those of the files of `target`, in bytes."""
        partitions = self._listed(self._found[0]).partitions if self._found else ()
        return [file.size for partition in partitions for file in partition.data_files]

    def write(self) -> Write:
        """The ids under which this statement writes: the transaction's write id and a statement id of its own.

        Raises UnsupportedTableError for more than 4096 statements in one transaction.
        """
        write_id, statement_id = self._begun.ids()
        return Write(write_id, statement_id, layout_of(self.table))

    @property
    def keys(self) -> list[str]:
        """Columns of `target`: the text of each partition key."""
        return partition_columns(self.table)

    # --- the job and after ---------------------------------------------------------------------

    def run(
        self,
        events: Events,
        write: Write,
        *,
        overwrite: Overwrite | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> EventCounts:
        """Write `events` and put them into place, behind a `check` of what the job has told.

        With `overwrite`, new rows become bases, which replace what there is. Raises ColumnError for a value that does
        not fit its column, and what `TableWrite.publish` raises.
        """
        staging = self._begun.stage(SparkStaging)
        with column_errors(self.table), self.reading():
            counts = staging.write(
                events,
                self._compression,
                hive_3=is_for_hive_3(self.table.parameters),
                options=asked_filters(self.table.parameters),
            )
        check()
        if counts.get(INSERT):
            refuse_instants(self.table.columns)
        found = staging.staged(len(self.table.partition_keys)) if any(counts.values()) else []
        self._put_in_place(staging, found, write, overwrite)
        return EventCounts(counts.get(INSERT, 0), counts.get(DELETE, 0))

    def change(
        self,
        deletes: Mapping[Values, DeleteEvents],
        inserts: Mapping[Values, Any],
        write: Write,
        *,
        overwrite: Overwrite | None = None,
    ) -> EventCounts:
        """Delete the rows that `deletes` name and insert `inserts`, without a job; `overwrite` is as for `run`.

        Both are by the values of their partition, and as `SparkStaging.deletes` and `SparkStaging.inserts` take them.
        """
        if inserts:
            refuse_instants(self.table.columns)
        staging = self._begun.stage(SparkStaging)
        with ThreadPoolExecutor(1, thread_name_prefix="inserts") as pool:
            # While pyarrow writes new rows, Python has time for delete events.
            property_ = encode_bucket(0, write.statement_id)
            new = pool.submit(staging.inserts, self.table, inserts, write.write_id, property_, self._compression)
            found = [*staging.deletes(self.table, deletes, self._compression), *new.result()]
        self._put_in_place(staging, found, write, overwrite)
        return EventCounts(sum(map(len, inserts.values())), sum(map(len, deletes.values())))

    def _meaning(self, values: Values) -> Values:
        """A partition's values as the texts that we have for them: others may have named it in another way."""
        return values_of(self.table, self.table.partition_name(values)) if values else values

    @property
    def _compression(self) -> str:
        return compression_of(self.table.parameters, self.context.compression)

    def _put_in_place(
        self, staging: SparkStaging, found: Sequence[StagedFiles], write: Write, overwrite: Overwrite | None
    ) -> None:
        """Publish what is staged, tell the metastore of it, and end the staging."""
        if overwrite is not None:
            filled = {self._meaning(staged.values) for staged in found}
            empty = (values for values in overwrite.whole if self._meaning(values) not in filled)
            found = [*found, *(staging.nothing(self.table, values, number) for number, values in enumerate(empty))]
        overwrites = self._begun.intent.overwrites
        found = self._numbered(found, write, one_directory=overwrites)
        warn_of_small_files(self.table, found, self.context)
        published = self._begun.publish(staging, found, self.context.check_keys(self._begun))
        if any(one.files.kind == DELETE for one in published):
            name = table_name(self.table.database, self.table.name)
            self._begun.transaction.changed.show_by(name, self._shown)
        if self.context.statistics and not self.table.is_successor:
            written = [Written(one.partition, one.directory, one.files.kind == DELETE) for one in published]
            transaction = self._begun.transaction
            keep_up(self.context.connection, transaction, self.table, written, overwritten=overwrites)
        staging.remove()

    def _shown(self, partition: str, rows: Sequence[RowId]) -> dict[RowId, str]:
        """What some rows of a partition had in their first columns before the statement."""
        if self._found is None:
            return {}
        state = self._found[1]
        within = replace(state, partitions=tuple(one for one in state.partitions if one.name == partition))
        wanted = ", ".join(f"({row.write_id}L, {row.bucket_property}, {row.row_id}L)" for row in rows)
        names = [column.name for column in self.table.all_columns[:_SHOWN_COLUMNS]]
        try:
            found = read_rows(self.context.spark, within).where(f"({', '.join(KEY_COLUMNS)}) IN ({wanted})")
            told = found.selectExpr(
                *KEY_COLUMNS, *(f"left(CAST({quoted(name)} AS string), {_SHOWN_LETTERS})" for name in names)
            ).collect()
        except (HiveAcidError, OSError, PySparkException, Py4JJavaError):  # the conflict is told all the same
            LOG.debug("rows of %s cannot be shown", self.table.full_name, exc_info=True)
            return {}
        return {
            RowId(*row[:3]): ", ".join(f"{name} = {value}" for name, value in zip(names, row[3:], strict=True))
            for row in told
        }

    def _numbered(self, found: Sequence[StagedFiles], write: Write, *, one_directory: bool) -> list[StagedFiles]:
        """`found` with their statements: of new rows by the layout of the write, of delete events by their layer."""
        numbered: list[StagedFiles] = []
        for staged in found:
            if staged.kind == DELETE:
                numbered.append(replace(staged, statement_id=write.statement_id + staged.layer))
                continue
            by_statement = write.by_statement(staged.buckets)
            if one_directory and len(by_statement) > 1:
                raise UnsupportedTableError(
                    f"an overwrite of {self.table.full_name} has room for {write.layout.files_per_statement} files in "
                    "a partition, and the rows came in more parts: repartition them into fewer"
                )
            numbered += [replace(staged, buckets=of, statement_id=number) for number, of in by_statement.items()]
        return numbered


def warn_of_small_files(table: Table, found: Sequence[StagedFiles], context: Context) -> None:
    """Log a warning if a statement leaves many files that are far below the target size."""
    many = sum(len(staged.buckets) for staged in found if staged.kind == INSERT)
    if many < MANY_FILES:
        return
    average = sum(staged.size for staged in found if staged.kind == INSERT) // many
    if average * SMALL_FILES_BELOW < context.target_file_size_bytes:
        LOG.warning(
            "%s: this statement wrote %d files of %d bytes on average, far below the target of %d: repartition the "
            "rows before, or compact the table",
            *(table.full_name, many, average, context.target_file_size_bytes),
        )
