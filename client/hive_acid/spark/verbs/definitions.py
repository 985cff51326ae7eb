"""The verbs of a session that define things: databases, tables, columns; `AcidSession` has them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import types as t

from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.storage_formats import StorageFormat
from hive_acid.catalog.table import Column, Skew, Table, table_parts
from hive_acid.errors import TransactionClosedError, TransactionExpiredError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.spark.tables.definition import new_table
from hive_acid.spark.tables.plain import refuse_acid
from hive_acid.spark.values.argument_checks import names_of
from hive_acid.spark.values.types import hive_columns
from hive_acid.spark.verbs.base import SessionBase
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes


class DefinitionVerbs(SessionBase):
    """What a session does with the catalogue; no file is read or written."""

    def create_database(
        self,
        name: str,
        *,
        location: str | None = None,
        managed_location: str | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a database, whose managed tables lie at `managed_location` if that is another place."""
        self.connection.create_database(
            name.lower(),
            location=location,
            managed_location=managed_location,
            comment=comment,
            properties=properties,
            if_not_exists=if_not_exists,
        )

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Drop a database, with `cascade` its tables and their data too.

        Raises TransactionClosedError within a block, which could not bring it back.
        """
        self._refuse_within_block(name)
        self.connection.drop_database(name.lower(), cascade=cascade, if_exists=if_exists)

    def create_table(
        self,
        name: str,
        columns: Mapping[str, str] | t.StructType | Sequence[Column],
        *,
        partitioned_by: Mapping[str, str] | Sequence[str] = (),
        clustered_by: Sequence[str] = (),
        buckets: int | None = None,
        sorted_by: Sequence[tuple[str, bool]] = (),
        skew: Skew | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        stored_as: str | StorageFormat = "ORC",
        serde_properties: Mapping[str, str] | None = None,
        external: bool = False,
        constraints: Sequence[Constraint] = (),
        if_not_exists: bool = False,
        temporary: bool = False,
    ) -> None:
        """Create a table, by default a full-ACID one.

        `columns` are names with Hive's types (``{"id": "int", "name": "varchar(20)"}``), a frame's schema, or columns
        with comments.
        `partitioned_by` gives the partition columns in the same way, or names some of `columns`. With `clustered_by`,
        rows are placed in `buckets` files by Hive's hash of these columns, version 2; `sorted_by` (``[("id", True)]``,
        the least first) says of a plain table in which order. `skew` names values that many rows have. `properties` are
        added
        to ``transactional=true``; ``{"transactional": "false"}`` makes it a plain one, and
        ``{"transactional_properties": "insert_only"}`` one that only grows. These may be `stored_as` PARQUET, AVRO,
        TEXTFILE or JSONFILE, too, and plain ones any classes of Hive's. `serde_properties` are told to the SerDe
        (``{"field.delim": ","}``). An `external` table is a plain one, whose files stay when it is dropped. Of the
        `constraints`, NOT NULL, CHECK, DEFAULT and PRIMARY KEY hold for all writers if they are enabled, other keys are
        only stored.
        A `temporary` table is this session's alone, hides a stored one of its name, and goes with the session.
        Raises AlreadyExistsError, ColumnError for types that are not supported, and UnsupportedTableError for a format
        that the kind of table cannot have.
        """
        full_name = ".".join(table_parts(name))
        if if_not_exists and self.temporary.place(full_name):
            return
        if not temporary:
            self.temporary.refuse_hidden(full_name)
        definition = new_table(
            self.temporary.prepared(full_name) if temporary else name,
            columns,
            partitioned_by=partitioned_by,
            clustered_by=clustered_by,
            buckets=buckets,
            sorted_by=sorted_by,
            skew=skew,
            properties=properties,
            location=location,
            stored_as=stored_as,
            serde_properties=serde_properties,
            external=external,
            constraints=constraints,
        )
        if self._is_dummy:
            refuse_acid(definition)
        if definition.key and location is not None and files.list_tree(location, max_depth=1):
            raise UnsupportedTableError(
                f"{definition.full_name} is to have a primary key, and {location} has files, of whose rows it is not "
                "known: make the table elsewhere, and insert them"
            )
        self._forget(definition.full_name)
        self.connection.create_table(definition, if_not_exists=if_not_exists)
        if temporary:
            self.temporary.add(full_name, definition.full_name)

    def drop_table(self, name: str, *, purge: bool = False, if_exists: bool = False) -> None:
        """Drop a table with its data, with `purge` past the metastore's trash.

        Raises TransactionClosedError within a block, which could not bring it back.
        """
        meant = self._definitions.reference(name)
        self._refuse_within_block(meant.full_name)
        self._forget(meant.full_name)
        may_be_gone = if_exists or self.temporary.called(meant.full_name) is not None
        self.connection.drop_table(meant.database, meant.name, purge=purge, if_exists=may_be_gone)
        self.temporary.forget(meant.full_name)

    def drop_partitions(self, table: str | Table, names: Sequence[str], *, if_exists: bool = False) -> None:
        """Drop partitions (``k=v/…``) with their data, all or none; readers keep their snapshots.

        It waits for those that change rows of the table. Raises NoSuchObjectError if a partition is not there, unless
        `if_exists`; LockTimeoutError; TransactionClosedError within a block, which could not bring them back.
        """
        named = names_of("names", names)
        known = self._known(table)
        self._refuse_within_block(f"a partition of {known.full_name}")
        if not known.is_transactional and not (found := self._lookup(table)).is_transactional:
            self.connection.drop_partitions(found, named, if_exists=if_exists)
            return
        self._alter(
            table,
            lambda txn, meant: self._alterations.drop_partitions(txn, meant, named, if_exists=if_exists),
        )

    def rename_table(self, table: str | Table, name: str) -> None:
        """Give a table another name, or another database; waits until nobody reads or writes it."""
        place = self._definitions.reference(table).full_name
        full_name = ".".join(table_parts(name))
        if self.temporary.called(place) is not None:
            full_name = self.temporary.prepared(full_name)
        else:
            self.temporary.refuse_hidden(full_name)
        database, to = table_parts(full_name)
        self._alter(table, lambda txn, meant: self._alterations.rename(txn, meant, database, to))
        self.temporary.moved(place, full_name)

    def rename_partition(self, table: str | Table, old: str, new: str) -> None:
        """Give a partition (``k=v/…``) other values; waits until nobody reads or writes the table.

        Raises NoSuchObjectError if it is not there, AlreadyExistsError if there is one of these values, ColumnError for
        a table with partition columns in its primary key.
        """
        names_of("old and new", [old, new])
        self._alter(table, lambda txn, meant: self._alterations.rename_partition(txn, meant, old, new))

    def create_view(self, view: Table, *, if_not_exists: bool = False) -> None:
        """Make a view of the definition `view`, with its columns, its query and its properties.

        Raises AlreadyExistsError.
        """
        self.temporary.refuse_hidden(view.full_name)
        self.connection.create_table(view, if_not_exists=if_not_exists)

    def redefine_view(self, view: Table) -> None:
        """Give the view of that name the columns, the query and the properties of `view`. Raises ViewError."""
        self._alter(view.full_name, lambda txn, meant: self._alterations.redefine_view(txn, meant, view))

    def set_owner(self, table: str | Table, owner: str, *, is_role: bool = False) -> None:
        """Give a table to another user, or to a role."""
        kind = ttypes.PrincipalType.ROLE if is_role else ttypes.PrincipalType.USER
        self._alter(table, lambda txn, meant: self._alterations.set_owner(txn, meant, owner, kind))

    def set_column_comment(self, table: str | Table, column: str, comment: str | None) -> None:
        """Say what a column is for, None for nothing. Raises ColumnError for one that is unknown or a partition's."""
        self._alter(table, lambda txn, meant: self._alterations.set_column_comment(txn, meant, column, comment))

    def set_properties(self, table: str | Table, properties: Mapping[str, str | None]) -> None:
        """Set a table's properties, or remove those whose value is None."""
        self._alter(table, lambda txn, meant: self._alterations.set_properties(txn, meant, properties))

    def set_figures(self, table: str | Table, figures: Mapping[str, str], partition: str | None = None) -> None:
        """Say how many rows, files and bytes (``numRows``, ``rawDataSize``, ``numFiles``, ``totalSize``) a table or a
        partition (``k=v/…``) has, for those who plan queries; `analyze` counts them.

        Raises NoSuchObjectError for a partition that is not there.
        """
        self._alter(table, lambda txn, meant: self._alterations.set_figures(txn, meant, figures, partition))

    def add_columns(self, table: str | Table, columns: Mapping[str, str] | t.StructType | Sequence[Column]) -> None:
        """Add columns at the end of a table, null in the rows that are there; no file is written.

        `columns` are given as to `create_table`. As all changes of columns it shows at once, also inside of
        ``with acid.transaction():``. Raises ColumnError for a column that is there already.
        """
        added = hive_columns(columns)
        self._alter(table, lambda txn, meant: self._alterations.add_columns(txn, meant, added))

    def rename_column(self, table: str | Table, old: str, new: str) -> None:
        """Give a column another name; no file is written. Raises ColumnError for names that are not, or are taken."""
        hive_columns({new: "string"})
        self._alter(table, lambda txn, meant: self._alterations.rename_column(txn, meant, old, new))

    def change_column_type(self, table: str | Table, column: str, type: str) -> None:  # noqa: A002 - SQL's word
        """Give a column a wider type: int to bigint, float to double, longer decimals and texts; no file is written.

        Raises InvalidOperationError for a type that does not hold all values of the present one.
        """
        (changed,) = hive_columns({column: type})
        self._alter(
            table, lambda txn, meant: self._alterations.change_column_type(txn, meant, changed.name, changed.type)
        )

    def compact(self, name: str, kind: str = "major", partitions: Sequence[str] = ()) -> list[int]:
        """Ask for compactions, ``major`` or ``minor``, of the table or of some partitions; ids of those queued."""
        meant = self._definitions.reference(name)
        return self.connection.compact(meant.database, meant.name, kind, names_of("partitions", partitions))

    def _alter(self, table: str | Table, run: Callable[[Transaction, TableReference], object]) -> None:
        """Alter a table in this thread's transaction, or in one of its own.

        The alteration stands as soon as it is made: that its own transaction is given up afterwards is no failure.
        """
        self._refuse_without_transactions()
        meant = self._meant(table)
        is_made = False

        def work(transaction: Transaction) -> None:
            nonlocal is_made
            run(transaction, meant)
            is_made = True

        try:
            self._blocks.changing(work, [meant.full_name])
        except TransactionExpiredError:
            if not is_made:
                raise

    def _refuse_within_block(self, what: str) -> None:
        """Raise TransactionClosedError for a drop within a block: it could not be undone with the block."""
        if self._blocks.is_within:
            raise TransactionClosedError(
                f"{what} is not dropped within a block: it would be gone at once, and also if the block aborts. Drop "
                "it before the block or after it, or truncate it, which is part of the block"
            )
