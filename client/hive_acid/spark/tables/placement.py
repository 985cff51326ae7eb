"""Files that become a table's as they are: whole directories put into place below a table and its partitions.

LOAD DATA and the writes of insert-only tables end here: their files have no ACID columns, so all that says which write
they are of is the directory (acid-format.md §2.4, §5.5). The order is that of every statement: lock, write id, files,
touched partitions; the commit is the transaction's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hive_acid import files
from hive_acid.catalog import Table
from hive_acid.errors import TableNotAcidError, UnsupportedTableError
from hive_acid.format.names import MAX_STATEMENT_ID, base_name, delta_name
from hive_acid.ids import WriteId
from hive_acid.locks import Operation, overwrite_component, write_component
from hive_acid.spark.overwrite import has_own_readers
from hive_acid.spark.patterns import refuse_patterns
from hive_acid.spark.stage import Staging
from hive_acid.spark.statement import Context
from hive_acid.spark.types import row_type
from hive_acid.transaction import Transaction

Values = tuple[str | None, ...]
"""The values of a partition as texts, in the order of the keys; empty for an unpartitioned table."""


@dataclass(frozen=True, slots=True)
class _Partition:
    name: str
    location: str


class Placement:
    """One write of whole files to a transactional table within an open transaction.

    First `lock`, then `publish`; what is made before lies below the staging directory of `staging`.
    """

    def __init__(self, context: Context, transaction: Transaction, table: Table, *, overwrite: bool = False) -> None:
        """`overwrite` says that the files replace what there is in each partition that is given some.

        Raises TableNotAcidError for a plain table, TimeZoneMismatchError.
        """
        if not table.is_transactional:
            raise TableNotAcidError(
                f"{table.full_name} is not an ACID table: its property 'transactional' is not 'true'. Write to it with "
                "Spark, or make it one with acid.convert_table"
            )
        context.zones.check(row_type(table.columns))
        refuse_patterns(context.spark, table)
        self.context = context
        self.table = table
        self.staging = Staging.below(table.location, transaction.id)
        self._transaction = transaction
        self._overwrite = overwrite

    def lock(self) -> None:
        """Take the lock: an overwrite keeps all others from the table, additions meet no one."""
        database, name = self.table.database, self.table.name
        dynamic = bool(self.table.partition_keys)
        if self._overwrite:
            beside = has_own_readers(self.context.connection, self.table, self._transaction.id)
            self._transaction.lock(overwrite_component(database, name, dynamic=dynamic, beside_readers=beside))
            self._transaction.wait_for_earlier_writes(database, name)
        else:
            self._transaction.lock(write_component(database, name, Operation.INSERT, dynamic=dynamic))
        self._transaction.on_abort(self.staging.undo)

    def publish(self, made: Mapping[Values, str]) -> None:
        """Put directories into place: `made` is from partition to the directory, below `staging`, with its files.

        Partitions that are not there are registered. What is in place is removed again if the transaction aborts.
        """
        write_id = self._transaction.write_id(self.table.database, self.table.name)
        directory = self._directory(write_id)
        partitions = self._register(list(made))
        again = self._transaction.note_directories(
            self.table.database,
            self.table.name,
            [partitions[values].name for values in made],
            overwrite=self._overwrite,
        )
        # Who was given up meanwhile learns it here, before anything is in place.
        self._transaction.check_alive()
        for values, source in made.items():
            target = files.join(partitions[values].location, directory)
            self.staging.published.append(target)
            if partitions[values].name in again:
                files.remove(target)
            files.rename(source, target)
        if self.table.partition_keys:
            names = sorted(partition.name for partition in partitions.values())
            operation = Operation.UPDATE if self._overwrite else Operation.INSERT
            self._transaction.add_dynamic_partitions(self.table.database, self.table.name, names, operation)
        self.staging.remove()

    def _directory(self, write_id: WriteId) -> str:
        statement_id = self._transaction.next_statement_id()
        if self._overwrite:
            return base_name(write_id)
        if statement_id > MAX_STATEMENT_ID:
            raise UnsupportedTableError(
                f"a transaction can have {MAX_STATEMENT_ID + 1} statements, as many as names have room for: commit it"
            )
        return delta_name(write_id, write_id, statement_id)

    def _register(self, wanted: Sequence[Values]) -> dict[Values, _Partition]:
        if not self.table.partition_keys:
            return {(): _Partition("", self.table.location)}
        connection, table = self.context.connection, self.table
        names = {values: table.partition_name(values) for values in wanted}
        known = connection.partitions_named(table, list(names.values()))
        new = {name: files.join(table.location, name) for name in names.values() if name not in known}
        if new:
            connection.add_partitions(table, new)
        return {values: _Partition(name, known.get(name) or new[name]) for values, name in names.items()}
