"""Changes of a table's definition: of columns (acid-format.md §3.5), name and properties; partitions that are dropped.

Files stay as they are, readers find columns by their places. An alteration shows at once, also inside of a transaction
that is aborted later. The transaction's lock keeps two alterations apart, which would each undo the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hive_acid.catalog.calls import CatalogCalls
from hive_acid.catalog.constraints import names_in
from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Column, Table, folded, table_from_wire
from hive_acid.errors import ColumnError, ViewError
from hive_acid.format.properties import ACCURATE
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ConstraintKind, ttypes

_ALSO_IN_PARTITIONS = ttypes.EnvironmentContext(properties={"CASCADE": "true"})

NewColumns = Callable[[Table], Sequence[Column]]
"""The columns that a table, as it is, gets at its end, and those of its own whose structs get more fields."""


class Alterations:
    """Alterations of the tables of one metastore, each behind a lock, and of the definition that is found there.

    All raise NoSuchObjectError and TableChangedError if the table is not the one that is meant.
    """

    def __init__(self, calls: CatalogCalls, definitions: Definitions) -> None:
        self._calls = calls
        self._definitions = definitions

    def add_columns(self, transaction: Transaction, meant: TableReference, columns: Sequence[Column]) -> Table:
        """Add columns at the end, null in all rows so far; the table as it is then.

        Raises ColumnError for a name that it has.
        """

        def change(table: Table, fields: list[Any], names: list[str]) -> None:
            if there := [column.name for column in columns if column.name.lower() in names]:
                raise ColumnError(f"{table.full_name} has a column '{there[0]}' already")
            fields += map(_field, columns)

        return self._altered(transaction, meant, change)

    def add_missing_columns(self, transaction: Transaction, meant: TableReference, missing: NewColumns) -> Table:
        """Add what is `missing` in the table; the table as it is then.

        Of a column that is there the struct lacks fields: it gets the type that is given. Raises ColumnError for one by
        which the table is clustered.
        """

        def change(table: Table, fields: list[Any], names: list[str]) -> None:
            for column in missing(table):
                if column.name in names:
                    _refuse_clustered(table, column.name)
                    _found(table, fields, names, column.name).type = column.type
                else:
                    fields.append(_field(column))

        return self._altered(transaction, meant, change)

    def rename_column(self, transaction: Transaction, meant: TableReference, old: str, new: str) -> None:
        """Give a column another name.

        Raises ColumnError for a name that is unknown, taken, or a partition column's, and for one that a CHECK names.
        """

        def change(table: Table, fields: list[Any], names: list[str]) -> None:
            found = _found(table, fields, names, old)
            refuse_checked(table, old)
            if new.lower() in names:
                raise ColumnError(f"{table.full_name} has a column '{new}' already")
            found.name = new.lower()

        self._altered(transaction, meant, change)

    def change_column_type(self, transaction: Transaction, meant: TableReference, name: str, to: str) -> None:
        """Give a column a wider type, in Hive's words.

        Raises ColumnError for a column that is unknown, a partition's, or one by which the table is clustered,
        InvalidOperationError for a type that does not hold all values of the present one.
        """

        def change(table: Table, fields: list[Any], names: list[str]) -> None:
            _refuse_clustered(table, name)
            if name.lower() in {column.name for column in table.key}:
                raise ColumnError(
                    f"{name} is in the primary key of {table.full_name}, whose values would be others in another "
                    "type: drop the key before, and add it anew"
                )
            _found(table, fields, names, name).type = to

        self._altered(transaction, meant, change)

    def set_column_comment(
        self, transaction: Transaction, meant: TableReference, name: str, comment: str | None
    ) -> None:
        """Say what a column is for. Raises ColumnError for one that is unknown or a partition's."""

        def change(table: Table, fields: list[Any], names: list[str]) -> None:
            _found(table, fields, names, name).comment = comment

        self._altered(transaction, meant, change)

    def rename_partition(self, transaction: Transaction, meant: TableReference, old: str, new: str) -> None:
        """Give a partition (``k=v/…``) other values; its directory may move, so nobody may read the table meanwhile.

        Raises LockTimeoutError if somebody does, NoSuchObjectError, AlreadyExistsError, and ColumnError for a table
        with partition columns in its primary key.
        """
        table, _ = self._locked(transaction, meant, ttypes.LockType.EXCLUSIVE)
        if {column.name for column in table.key} & {key.name for key in table.partition_keys}:
            raise ColumnError(
                f"{table.full_name} has partition columns in its primary key: to rename a partition would give its "
                "rows other keys, which nobody compares. UPDATE the columns instead"
            )
        found = self._calls.call("get_partition_by_name", table.database, table.name, old)
        values, found.values = found.values, table.partition_values(new)
        self._alter(transaction, table, "rename_partition", values, found)

    def set_owner(self, transaction: Transaction, meant: TableReference, owner: str, kind: int) -> None:
        """Give a table to another owner, a user or a role as ``PrincipalType`` counts them."""
        table, wire = self._locked(transaction, meant, ttypes.LockType.EXCL_WRITE)
        wire.owner, wire.ownerType = owner, kind
        self._alter(transaction, table, "alter_table", wire)

    def rename(self, transaction: Transaction, meant: TableReference, database: str, name: str) -> None:
        """Give a table another name or database; its directory may move, so nobody may read it meanwhile.

        Raises LockTimeoutError if somebody does, AlreadyExistsError if there is such a table.
        """
        table, wire = self._locked(transaction, meant, ttypes.LockType.EXCLUSIVE)
        wire.dbName, wire.tableName = database, name
        self._alter(transaction, table, "alter_table", wire)

    def set_properties(
        self, transaction: Transaction, meant: TableReference, properties: Mapping[str, str | None]
    ) -> None:
        """Set a table's properties, or remove those whose value is None; what the metastore refuses changes none."""
        table, wire = self._locked(transaction, meant, ttypes.LockType.EXCL_WRITE)
        kept = {key: value for key, value in (wire.parameters or {}).items() if key not in properties}
        wire.parameters = kept | {key: value for key, value in properties.items() if value is not None}
        self._alter(transaction, table, "alter_table", wire)

    def set_figures(
        self, transaction: Transaction, meant: TableReference, figures: Mapping[str, str], partition: str | None
    ) -> None:
        """Store what somebody says of the rows and files of a table, or of a partition (``k=v/…``).

        Nobody takes it for counted: queries are not answered out of it. Raises NoSuchObjectError.
        """
        table, wire = self._locked(transaction, meant, ttypes.LockType.EXCL_WRITE)
        told = wire
        if partition is not None:
            told = self._calls.call("get_partition_by_name", table.database, table.name, partition)
        kept = {key: value for key, value in (told.parameters or {}).items() if key != ACCURATE}
        told.parameters = kept | dict(figures)
        self._alter(transaction, table, "alter_table" if partition is None else "alter_partition", told)

    def redefine_view(self, transaction: Transaction, meant: TableReference, view: Table) -> None:
        """Give a view the columns, the query and the properties of `view`. Raises ViewError if it is a table by now."""
        table, wire = self._locked(transaction, meant, ttypes.LockType.EXCL_WRITE)
        if not table.is_view:
            raise ViewError(f"{table.full_name} is a table by now, and no view")
        told = view.to_wire(wire.owner)
        wire.sd.cols, wire.parameters = told.sd.cols, told.parameters
        wire.viewOriginalText, wire.viewExpandedText = told.viewOriginalText, told.viewExpandedText
        self._alter(transaction, table, "alter_table", wire)

    def drop_partitions(
        self, transaction: Transaction, meant: TableReference, names: Sequence[str], *, if_exists: bool
    ) -> None:
        """Drop partitions (``k=v/…``) with their data when nobody changes rows of the table; readers go on.

        Rows that somebody is adding are waited for by the metastore. Raises NoSuchObjectError if a partition is not
        there, unless `if_exists`, LockTimeoutError, and TransactionInTheWayError for rows of a block of this thread.
        """
        table = self.held(transaction, meant)
        transaction.refuse_own_writes(table.database, table.name)
        transaction.check_alive()
        self._calls.drop_partitions(table, names, if_exists=if_exists, locked_by=transaction.id)

    def held(self, transaction: Transaction, meant: TableReference) -> Table:
        """Lock a table against all who change it, but not against who adds rows; the table as it is then."""
        return self._locked(transaction, meant, ttypes.LockType.EXCL_WRITE)[0]

    def held_alone(self, transaction: Transaction, meant: TableReference) -> Table:
        """Lock a table against everybody, until the transaction ends; the table as it is then."""
        return self._locked(transaction, meant, ttypes.LockType.EXCLUSIVE)[0]

    def _locked(self, transaction: Transaction, meant: TableReference, kind: int) -> tuple[Table, Any]:
        """Lock the table; what the metastore says of it behind the lock."""
        transaction.lock(
            ttypes.LockComponent(
                type=kind,
                level=ttypes.LockLevel.TABLE,
                dbname=meant.database,
                tablename=meant.name,
                operationType=ttypes.DataOperationType.NO_TXN,
                isTransactional=meant.known is None or meant.known.is_transactional,
            )
        )
        return self._definitions.told(meant, transaction)

    def _alter(self, transaction: Transaction, table: Table, method: str, *arguments: Any) -> None:
        """Make an alteration, which shows at once, unless the transaction whose lock it needs was given up."""
        transaction.check_alive()
        self._calls.call(method, table.database, table.name, *arguments)

    def _altered(
        self, transaction: Transaction, meant: TableReference, change: Callable[[Table, list[Any], list[str]], None]
    ) -> Table:
        """Lock the table, apply `change` to its columns (beside all names, partition keys included), and store it."""
        table, wire = self._locked(transaction, meant, ttypes.LockType.EXCL_WRITE)
        fields = [ttypes.FieldSchema(name=one.name.lower(), type=one.type, comment=one.comment) for one in wire.sd.cols]
        change(table, fields, [*(one.name for one in fields), *(key.name.lower() for key in wire.partitionKeys or ())])
        if fields == wire.sd.cols:
            return table
        alike = [folded(one.name) for one in (*fields, *(wire.partitionKeys or ()))]
        if twice := [one.name for one in fields if alike.count(folded(one.name)) > 1]:
            raise ColumnError(
                f"{table.full_name}: {' and '.join(twice)} would be one name to Spark, which compares letter by letter "
                "without regard to case"
            )
        renamed = {before.name.lower(): after.name for before, after in zip(wire.sd.cols, fields, strict=False)}
        wire.sd.bucketCols = [renamed.get(name.lower(), name) for name in wire.sd.bucketCols or ()]
        for order in wire.sd.sortCols or ():
            order.col = renamed.get(order.col.lower(), order.col)
        if (skewed := wire.sd.skewedInfo) is not None:
            skewed.skewedColNames = [renamed.get(name.lower(), name) for name in skewed.skewedColNames or ()]
        wire.sd.cols = fields
        self._alter(transaction, table, "alter_table_with_environment_context", wire, _ALSO_IN_PARTITIONS)
        altered = table_from_wire(wire)
        self._definitions.note(altered)
        return altered


def _field(column: Column) -> Any:
    return ttypes.FieldSchema(name=column.name.lower(), type=column.type, comment=column.comment)


def refuse_checked(table: Table, name: str) -> None:
    """Raise ColumnError for a column that a CHECK names: its text would name one that is not there any more."""
    checks = (one for one in table.constraints if one.kind is ConstraintKind.CHECK)
    if named := [one for one in checks if name.lower() in names_in(one.expression or "")]:
        raise ColumnError(
            f"{table.full_name}: CHECK ({named[0].expression}) names {name}: DROP CONSTRAINT {named[0].name} "
            "before it is renamed, and add it anew"
        )


def _refuse_clustered(table: Table, name: str) -> None:
    if name.lower() in table.bucket_columns:
        raise ColumnError(
            f"{table.full_name} is CLUSTERED BY {name}: values of another type would fall into other buckets"
        )


def _found(table: Table, fields: Sequence[Any], names: Sequence[str], wanted: str) -> Any:
    at = names.index(wanted.lower()) if wanted.lower() in names else len(fields)
    if at >= len(fields):
        kind = "partition column" if wanted.lower() in names else "unknown column"
        raise ColumnError(f"{kind} '{wanted}' of {table.full_name} cannot be altered")
    return fields[at]
