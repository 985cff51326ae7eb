"""The verbs of a session that deal with primary keys that are enforced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError, TransactionClosedError, UnsupportedTableError
from hive_acid.spark.change.merge import RowCounts
from hive_acid.spark.change.source import joined
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.keys.duplicates import duplicates, refuse_duplicates
from hive_acid.spark.keys.key_columns import refuse_incomparable
from hive_acid.spark.read.listing import check_full_acid
from hive_acid.spark.read.table_frame import read_table
from hive_acid.spark.snapshots.block import Begun
from hive_acid.spark.values.argument_checks import check_condition, check_frame, check_values, names_of
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.verbs.reading import ReadVerbs
from hive_acid.spark.write.insert import stored
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ConstraintKind

_NEW = "excluded"
"""What a new row is called, as in Postgres."""


class KeyVerbs(ReadVerbs):
    """What a session does with primary keys."""

    def add_primary_key(
        self, table: str | Table, columns: Sequence[str], *, name: str | None = None, rely: bool = True
    ) -> None:
        """Have no two rows of a full-ACID table with the same values in `columns`, and none without, from now on.

        Nobody may use the table meanwhile, as its rows are looked at. Without a `name` the metastore gives the key one;
        `rely` tells Hive that it may rely on it. Raises DuplicateKeyError if the rows do not have it, ColumnError for
        columns that are not compared; LockTimeoutError, SnapshotInTheWayError for a frame of this thread;
        TransactionClosedError within a block.
        """
        self._refuse_without_transactions()
        meant = self._meant(table)
        if (block := self._blocks.current()) is not None and block.begun is not Begun.BY_STATEMENT:
            raise TransactionClosedError(
                f"{meant.full_name} gets a primary key at once, and keeps it if the block aborts: make it before the "
                "block or after it"
            )
        named = tuple(column.lower() for column in names_of("columns", columns))
        key = Constraint(ConstraintKind.PRIMARY_KEY, named, name, validated=True, rely=rely)
        self._alter(table, lambda transaction, of: self._add_key(transaction, of, key))

    def _add_key(self, transaction: Transaction, meant: TableReference, key: Constraint) -> None:
        there = self._alterations.held_alone(transaction, meant)
        wanted = there.with_constraints([key])
        refuse_incomparable(wanted)
        transaction.see_committed()  # who wrote before the lock has committed by now
        refuse_duplicates(read_table(self.spark, self._context.state(transaction, there)), wanted)
        transaction.check_alive()
        self.connection.add_constraints(there, [key])
        self._forget(there.full_name)

    def upsert(
        self,
        table: str | Table,
        frame: DataFrame,
        *,
        set: Mapping[str, Expression] | None = None,  # noqa: A002 - the name that Delta's users know
        where: Expression | None = None,
        target_alias: str | None = None,
    ) -> RowCounts:
        """Insert rows into a table with a primary key, or change the row that has the key already.

        Columns of `frame` meet the table's by name, in any case and order. A row that is there gets the new one's
        values, or those of `set`: SQL or Columns that call the new row ``excluded`` and the old one by `target_alias`,
        by default the table's name. An empty `set` leaves it as it is, and so does a `where` that is not true.

        Raises DuplicateKeyError if rows of `frame` are alike in the key and none is there, or lack a value in it;
        MergeCardinalityError if they would change one row twice. With an empty `set` one of them is inserted.
        """
        check_frame("frame", frame)
        check_condition("where", where)
        if set is not None:
            check_values("set", set)
        of = self._lookup(table)
        if not of.key:
            raise UnsupportedTableError(
                f"{of.full_name} has no primary key that is enforced, by which rows could be found: use merge, or "
                "add_primary_key before"
            )
        check_full_acid(of)
        given = {name.lower() for name in frame.columns}
        names = [column.name for column in of.key]
        rows = stored(of, frame)
        if set is None:
            others = (column.name for column in of.all_columns if column.name in given and column not in of.key)
            set = {quoted(name): f"{_NEW}.{quoted(name)}" for name in others}  # noqa: A001
        if not set:
            rows = rows.dropDuplicates(names)
        alias = target_alias or of.name
        same = " AND ".join(f"{quoted(alias)}.{quoted(name)} = {_NEW}.{quoted(name)}" for name in names)
        builder = self._merging("upsert", of, joined(rows, same, alias, _NEW))
        if set:
            builder = builder.whenMatchedUpdate(where, set)
        return builder.whenNotMatchedInsertAll().execute()

    def check_key(self, table: str | Table, columns: Sequence[str] = ()) -> DataFrame:
        """The keys that several rows of a table have, or in which a value is null, with the number of ``rows``.

        That is none unless others than hive-acid write to the table. `columns` are those of the key; by default those
        of the table's primary key, enforced or not. Raises ColumnError if it has none, or not these.
        """
        named = [name.lower() for name in names_of("columns", columns)]
        of = self._lookup(table)
        names = named or of.primary_key
        if not names:
            raise ColumnError(f"{of.full_name} has no primary key: name the columns that no two rows have alike")
        known = {column.name: column for column in of.all_columns}
        if unknown := [name for name in names if name not in known]:
            raise ColumnError(f"{of.full_name} has no column {', '.join(unknown)}")
        return duplicates(self.table(of), [known[name] for name in names])
