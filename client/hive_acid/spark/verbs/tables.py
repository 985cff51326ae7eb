"""The verbs of a session that deal with whole tables and whole files; `AcidSession` has them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.storage_formats import StorageFormat
from hive_acid.catalog.table import Skew, Table, table_parts
from hive_acid.errors import TransactionClosedError, UnsupportedTableError
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.operators import compactions
from hive_acid.spark.change.insert import overwrite
from hive_acid.spark.snapshots.block import Begun
from hive_acid.spark.tables import requests as compaction
from hive_acid.spark.tables.convert import convert
from hive_acid.spark.tables.create_as import create_with_rows
from hive_acid.spark.tables.definition import Replacement, new_table, redefined, replacement, successor
from hive_acid.spark.tables.export import export_table, read_export
from hive_acid.spark.tables.load import load
from hive_acid.spark.tables.partitions import add_partitions, register_found
from hive_acid.spark.tables.plain import create_filled
from hive_acid.spark.tables.statistics.analyze import TableStatistics, analyze
from hive_acid.spark.tables.truncate import truncate
from hive_acid.spark.tables.upgrade import UpgradeFinding, upgrade_check
from hive_acid.spark.values.argument_checks import check_partition, names_of
from hive_acid.spark.values.specs import PartitionSpec
from hive_acid.spark.verbs.changes import ChangeVerbs
from hive_acid.spark.verbs.definitions import DefinitionVerbs
from hive_acid.spark.write import insert_only
from hive_acid.spark.write.overwrite import overwriting
from hive_acid.spark.write.planned import Planned
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.table_write import Intent, TableWrite

COMPACTION_TIMEOUT_MS = 3_600_000
"""How long a compaction is waited for."""

Result = TypeVar("Result")


class TableVerbs(DefinitionVerbs, ChangeVerbs):
    """What a session does with tables as a whole."""

    # --- making and filling --------------------------------------------------------------------

    def create_table_as(
        self,
        name: str,
        frame: DataFrame,
        *,
        partitioned_by: Sequence[str] = (),
        clustered_by: Sequence[str] = (),
        buckets: int | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        sorted_by: Sequence[tuple[str, bool]] = (),
        skew: Skew | None = None,
        stored_as: str | StorageFormat = "ORC",
        serde_properties: Mapping[str, str] | None = None,
        external: bool = False,
        constraints: Sequence[Constraint] = (),
        temporary: bool = False,
    ) -> int:
        """Create a table with the columns and rows of `frame`; returns the number of rows.

        The rows are visible at once, with the commit; a failure leaves no table. A plain one (``transactional=false``,
        or `external`) of ORC or Parquet files is seen without rows before, and stays so if the client dies. Arguments
        are those of `create_table`. Raises AlreadyExistsError, ColumnError for types that a table cannot have,
        UnsupportedTableError for a plain table at a place with files; TransactionClosedError for one within a block.
        """
        full_name = ".".join(table_parts(name))
        if not temporary:
            self.temporary.refuse_hidden(full_name)
        place = self.temporary.prepared(full_name) if temporary else full_name
        database, table = table_parts(place)
        words: dict[str, Any] = {
            "partitioned_by": partitioned_by,
            "clustered_by": clustered_by,
            "buckets": buckets,
            "sorted_by": sorted_by,
            "skew": skew,
            "location": location,
            "stored_as": stored_as,
            "serde_properties": serde_properties,
            "external": external,
            "constraints": constraints,
        }
        definition = new_table(place, frame.schema, properties=properties, **words)
        if not definition.is_transactional:
            if self._blocks.is_within:
                raise TransactionClosedError(
                    f"{definition.full_name} is a plain table, whose rows would stay if the block aborts: make it "
                    "before the block or after it"
                )
            self._forget(definition.full_name)
            rows = create_filled(self._context, definition, frame)
            if temporary:
                self.temporary.add(full_name, place)
            return rows

        def create(marks: Mapping[str, str]) -> None:
            given = {**(properties or {}), **marks}
            self.create_table(full_name, frame.schema, properties=given, temporary=temporary, **words)

        def run(transaction: Transaction) -> int:
            transaction.on_abort(lambda: self.temporary.forget(place))
            return create_with_rows(
                self.connection, transaction, database, table, create, lambda: self.insert(self._lookup(place), frame)
            )

        return self._in_transaction(run, [place])

    def replace_rows(self, table: str | Table, frame: DataFrame) -> int:
        """Have the rows of `frame` in the place of all of a table's, also in partitions that no new row falls into.

        Returns how many there are. Raises UnsupportedTableError for an insert-only table with partitions.
        """
        found = self._known(table)
        if not found.partition_keys:
            return self.overwrite(table, frame)
        if found.is_full_acid or found.is_plain:
            return self.overwrite(table, frame, where="true")
        raise self._only_some_replaced(found)

    def _only_some_replaced(self, table: Table) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"{table.full_name} is insert-only and has partitions, of which an overwrite replaces those that rows fall "
            "into: TRUNCATE TABLE removes all others before it"
        )

    def replace_table_as(
        self, table: Table, wanted: Table, frame: DataFrame, *, properties: Mapping[str, str] | None = None
    ) -> int:
        """Have the rows of `frame` in a table, as if it were dropped and made as `wanted`; returns their number.

        Rows and definition are replaced in one transaction. With other columns or buckets the table stays the same one,
        with other partition columns, constraints or another place a new one takes its place: it has the former one's
        owner and privileges, frames of the former one keep its rows, and `metastore.catalog.undrop.window` keeps it.
        `properties` are set, others stay. `frame` may be of the table itself.

        Raises UnsupportedTableError if format or kind differ from those of the table, and for a plain one that would
        differ in anything. TransactionClosedError within a block, but for rows alone.
        """
        given = dict(properties or {})
        way = replacement(table, wanted)
        if way is Replacement.ROWS:
            rows = self.replace_rows(table, frame)
            if given:
                self.set_properties(table, given)
            return rows
        if (block := self._blocks.current()) is not None and block.begun is not Begun.BY_STATEMENT:
            raise TransactionClosedError(
                f"{table.full_name} gets another definition with a commit of its own: replace it before the block or "
                "after it"
            )
        is_succeeded = way is Replacement.SUCCEEDED

        def definition(there: Table) -> Table:
            # Behind the lock it may be another one than was seen before.
            if is_succeeded or replacement(there, wanted) is Replacement.SUCCEEDED:
                return successor(there, wanted, given)
            return redefined(there, wanted, given)

        def intent(transaction: Transaction, meant: TableReference) -> Intent:
            about = overwriting(self.connection, transaction, meant, {}, with_rows=not is_succeeded)
            return replace(about, redefined=definition)

        def plan(begun: TableWrite) -> Planned[int]:
            if begun.table.is_full_acid:
                return overwrite(self._context, begun, frame, everything=True)
            return insert_only.overwrite(self._context, begun, frame)

        # By its name: of two that replace it at a time the second one replaces what the first one has made.
        rows = self._change(table.full_name if is_succeeded else table, intent, plan, by_files=True)
        self._forget(table.full_name)
        return rows

    def load_data(
        self,
        table: str | Table,
        path: str,
        *,
        overwrite: bool = False,
        partition: PartitionSpec | None = None,
        copy: bool = False,
    ) -> int:
        """Make the file at `path`, or all files of that directory, part of a table without reading them; their number.

        `partition` names the one partition of a partitioned table; with `overwrite` the files replace what is there.
        They are moved, which means that they go from their old place after the commit, or stay there with `copy`.
        Full-ACID tables take ORC files that have the table's columns at their places, plain ones of other formats
        whatever is given. Raises NoFilesError, and
        FormatError, ColumnError and UnsupportedTableError for files that do not fit.
        """
        check_partition(partition)

        def run(transaction: Transaction, meant: TableReference) -> int:
            intent = Intent(Operation.INSERT)
            if overwrite:
                intent = overwriting(self.connection, transaction, meant, partition or {})
            begun = self._context.begin(transaction, meant, intent)
            self._check_fillable(begun.table)
            return load(self._context, begun, path, partition=partition, copy=copy)

        return self._on(table, run)

    def add_partitions(
        self, table: str | Table, partitions: Mapping[str, str | None], *, if_not_exists: bool = False
    ) -> int:
        """Add partitions (``k=v/…``), each with the files at a location, or empty (None); the number of files.

        The files are copied into the table, as by `load_data`. Raises AlreadyExistsError unless `if_not_exists`.
        """
        return self._on(
            table,
            lambda transaction, of: add_partitions(
                self._context, transaction, of, partitions, if_not_exists=if_not_exists
            ),
        )

    def register_partitions(self, table: str | Table, found: Mapping[str, str]) -> None:
        """Register partitions (``k=v/…``) that lie at directories which are there, of a plain table with their files.

        Those of an ACID table have to be empty: raises FormatError for files, of which it is not known which write of
        the table they are.
        """
        if not (plain := self._lookup(table)).is_transactional:
            self.connection.add_partitions(plain, found)
            return
        self._on(table, lambda transaction, of: register_found(self._context, transaction, of, found))

    def exchange_partition(self, table: str | Table, source: str | Table, partition: PartitionSpec) -> None:
        """Move the partitions of `source` that `partition` covers to `table`, both plain ones, with their files.

        Raises MetaError for ACID tables, tables that differ in their columns, and a partition that is there already.
        """
        check_partition(partition)
        giving, taking = self._lookup(source), self._lookup(table)
        spec = {key: DEFAULT_PARTITION if value is None else str(value) for key, value in partition.items()}
        self.connection.call("exchange_partitions", spec, giving.database, giving.name, taking.database, taking.name)

    def truncate(self, table: str | Table, partition: PartitionSpec | None = None) -> None:
        """Remove all rows of a table, or of the partitions that `partition` covers; readers keep their snapshots.

        It waits for writers under way, and raises LockTimeoutError if they do not end; NoSuchObjectError for an unknown
        partition.
        """
        check_partition(partition)
        meant = self._meant(table)
        if self._blocks.current() is None and meant.known is not None and not meant.known.is_transactional:
            truncate(self.connection, self._definitions, None, meant, partition)
        else:
            self._on(
                table,
                lambda transaction, meant: truncate(self.connection, self._definitions, transaction, meant, partition),
            )

    # --- moving in and out ---------------------------------------------------------------------

    def export_table(self, table: str | Table, location: str, *, partition: PartitionSpec | None = None) -> int:
        """Write the rows of one snapshot as plain ORC files below `location`, with the definition; their number.

        `partition` limits it to some partitions. `location` must be free; what is there without a definition is the
        rest of an export that failed. Raises FilesInTheWayError.
        """
        check_partition(partition)
        self._refuse_without_transactions()
        meant = self._definitions.reference(table)
        with self._blocks.reading([meant.full_name]) as transaction:
            return export_table(self._context, transaction, meant, location, partition)

    def import_table(
        self, source: str, name: str, *, location: str | None = None, properties: Mapping[str, str] | None = None
    ) -> int:
        """Make the table `name` of what `export_table` has written at `source`, or fill an empty one with its columns.

        The rows are written anew, in one transaction. Returns their number. `location` is the new table's place.

        Raises FormatError for an export that is not complete, ColumnError for a table with other columns,
        AlreadyExistsError for one with rows.
        """
        found = read_export(source)
        meant = self._definitions.reference(name)
        database, table = meant.database, meant.name

        def create(marks: Mapping[str, str]) -> None:
            self.create_table(
                name,
                found.columns,
                partitioned_by=found.partition_keys,
                clustered_by=found.bucket_columns,
                buckets=found.buckets if found.bucket_columns else None,
                properties={**found.parameters, **(properties or {}), **marks},
                location=location,
            )

        def fill() -> int:
            return found.fill(self._context.spark, self.connection, self._lookup(name), self.insert)

        def run(transaction: Transaction) -> int:
            if found.is_target(self.connection, database, table):
                # Of two imports at a time the second one finds the rows of the first.
                self._alterations.held(transaction, self._meant(meant.full_name))
                found.is_target(self.connection, database, table)
                return fill()
            return create_with_rows(self.connection, transaction, database, table, create, fill)

        return self._in_transaction(run, [f"{database}.{table}"])

    def convert_table(self, table: str | Table, *, insert_only: bool = False, compact: bool = True) -> list[int]:
        """Make a plain table transactional, with the files that it has; ids of the major compactions then queued.

        It is a change of metadata for a full-ACID table; for an `insert_only` one, of any format, files are moved into
        their place. Without `compact` engines that cannot number the rows of plain files, as Trino, must wait for a
        compaction. Writers that know of no transactions must have stopped. Raises UnsupportedTableError and MetaError
        for tables that cannot be converted, with the way out; TransactionClosedError within a longer transaction for
        an `insert_only` one, whose files would be nowhere if that aborted.
        """
        if insert_only and self._blocks.current() is not None:
            raise TransactionClosedError(
                f"{TableReference.of(table).full_name} is not made insert-only within a longer transaction: if that "
                "aborted, no file would be part of the table. Convert it before"
            )
        converted = self._on(
            table, lambda transaction, of: convert(self._context, transaction, of, insert_only=insert_only)
        )
        if insert_only or not compact:
            return []
        return compaction.request(self.connection, converted, "major")

    # --- keeping in shape ----------------------------------------------------------------------

    def concatenate(
        self,
        table: str | Table,
        partition: PartitionSpec | None = None,
        *,
        wait: bool = False,
        timeout_ms: int = COMPACTION_TIMEOUT_MS,
    ) -> list[int]:
        """Ask for a major compaction of the table or of the partitions that `partition` covers; ids of those queued.

        With `wait` it returns when they have merged the files. Raises CompactionFailedError.
        """
        check_partition(partition)
        ids = compaction.request(self.connection, self._lookup(table), "major", partition)
        if wait:
            compactions.wait(self.connection, ids, timeout_ms)
        return ids

    def upgrade_check(self, name: str) -> list[UpgradeFinding]:
        """What Hive 2 has left in a table (``db.table``) or in all of a database that must be compacted first.

        Look before other engines than Hive 2 write to such tables: there must be no finding.
        """
        if "." in name or name not in self.connection.call("get_all_databases"):
            tables = [self._lookup(name)]
        else:
            tables = [self.connection.table(name, found) for found in self.connection.call("get_all_tables", name)]
        return [finding for table in tables for finding in upgrade_check(self.connection, table)]

    def analyze(
        self, table: str | Table, *, columns: Sequence[str] | None = None, partition: PartitionSpec | None = None
    ) -> TableStatistics:
        """Count rows, files and bytes of a table and its partitions, and tell the metastore.

        Of `columns`, if any are named, also minima, maxima, nulls and numbers of distinct values; all of one snapshot.
        """
        check_partition(partition)
        named = names_of("columns", columns or ())
        return self._on(table, lambda transaction, of: analyze(self._context, transaction, of, named, partition))

    # --- transactions --------------------------------------------------------------------------

    def _on(self, table: str | Table, run: Callable[[Transaction, TableReference], Result]) -> Result:
        self._refuse_without_transactions()
        meant = self._meant(table)
        return self._in_transaction(lambda transaction: run(transaction, meant), [meant.full_name])

    def _in_transaction(self, run: Callable[[Transaction], Result], tables: Sequence[str]) -> Result:
        self._refuse_without_transactions()
        return self._blocks.changing(run, tables)
