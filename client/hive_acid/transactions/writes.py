"""What a transaction writes: write ids, statement ids, and the directories and partitions that it has touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hive_acid.errors import NoSuchTxnError, TransactionClosedError, TxnAbortedError, UnsupportedTableError
from hive_acid.ids import WriteId
from hive_acid.transactions.beginning import Begun, Opening, Owner
from hive_acid.transactions.changed_rows import ChangedRows
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.reads import ReadingTransaction
from hive_acid.transactions.states import Isolation
from hive_acid.wire import table_name, ttypes


class WritingTransaction(ReadingTransaction):
    """A transaction with a write id for each table that it writes to."""

    def __init__(self, connection: Owner, opening: Opening) -> None:
        super().__init__(connection, opening)
        self.moved: set[str] = set()
        """The files that have become a table's, and go from their old place with the commit."""
        self.changes_rows = False
        """Whether it has locked rows to change or replace them, so that its commit may find a conflict."""
        self.changed = ChangedRows()
        """Which rows these are."""
        self._held: set[tuple[str, str | None]] = set()
        """The tables and partitions whose rows nobody else changes until its end."""
        self._given: dict[str, tuple[int | None, WriteId]] = {}
        """Write ids that its beginning has brought, of the tables of the ids beside them."""
        self._statements = 0
        self._overwritten: dict[str, set[str]] = {}
        self._replaced: set[str] = set()
        self._whole: set[str] = set()
        """The tables over all of which it compares keys."""

    def write_id(self, database: str, table: str) -> WriteId:
        """Its write id for the table, allocated at the first call unless its beginning has brought it."""
        name = table_name(database, table)
        if name not in self._written:
            table_id, given = self._given.pop(name, (None, None))
            if given is not None and table_id is not None and table_id == self._ids.get(name):
                self.check_open()
                self._writes_as(name, given)
            else:
                self.allocate_write_ids([self], database, table)
        return self._written[name]

    def _has_begun(self, begun: Begun) -> None:
        self._given = begun.written
        super()._has_begun(begun)

    def _writes_as(self, name: str, write_id: WriteId) -> None:
        self._written[name] = write_id
        self._read.pop(name, None)
        if self.isolation is Isolation.READ_COMMITTED:
            self._kept.setdefault(name, self.snapshot)

    def lend_write_id(self, database: str, table: str, to: str) -> None:
        """Have files of the table `to`, of the same database, under this one's write id: it is to get its name."""
        name = table_name(database, to)
        self._written[name] = self.write_id(database, table)
        self._lent.add(name)

    @classmethod
    def allocate_write_ids(cls, transactions: Sequence[WritingTransaction], database: str, table: str) -> None:
        """Allocate the write ids of all `transactions` for one table, in one call."""
        for transaction in transactions:
            transaction.check_open()
        name = table_name(database, table)
        of = {transaction.id: transaction for transaction in transactions}
        request = ttypes.AllocateTableWriteIdsRequest(
            dbName=database.lower(), tableName=table.lower(), txnIds=sorted(of)
        )
        for pair in transactions[0]._call("allocate_table_write_ids", request).txnToWriteIds:
            of[pair.txnId]._writes_as(name, WriteId(pair.writeId))

    def savepoint(self) -> Callable[[], None]:
        """As `TransactionLife.savepoint`. Statement ids are not given again."""
        of_life, moved = super().savepoint(), set(self.moved)
        overwritten = {name: set(partitions) for name, partitions in self._overwritten.items()}

        def roll_back() -> None:
            of_life()
            self.moved, self._overwritten = moved, overwritten

        return roll_back

    def has_there(self, database: str, table: str, write_id: WriteId) -> bool:
        """Whether this write id is its own in the table that has the name now; there it gets one if it has none."""
        request = ttypes.AllocateTableWriteIdsRequest(
            dbName=database.lower(), tableName=table.lower(), txnIds=[self.id]
        )
        try:
            pairs = self._connection.call("allocate_table_write_ids", request).txnToWriteIds
        except (TxnAbortedError, NoSuchTxnError):
            return False
        return any(pair.writeId == write_id for pair in pairs)

    def next_statement_id(self) -> int:
        """0, 1, 2, … within the transaction: rows of a later statement may be deletes of an earlier one's."""
        statement = self._statements
        self._statements += 1
        return statement

    def note_directories(
        self, database: str, table: str, partitions: Iterable[str], *, overwrite: bool = False
    ) -> set[str]:
        """Note that this transaction is about to write to `partitions` ("" is an unpartitioned table's one).

        Returns those that it has overwritten before: their base is to be replaced by the new one. Raises
        UnsupportedTableError for other writes to them, which readers would not see: a base hides all deltas of its
        own write (acid-format.md §2.2).
        """
        noted = self._overwritten.setdefault(table_name(database, table), set())
        again = noted.intersection(partitions)
        if again and not overwrite:
            where = ", ".join(sorted(again)) if again != {""} else "the table"
            raise UnsupportedTableError(
                f"this transaction has overwritten {where} of {database}.{table} already, and what it adds or changes "
                "there now would not be seen: put it into the overwrite, or commit first"
            )
        if overwrite:
            noted.update(partitions)
            self._replaced.update({table_name(database, table)} if again else ())
        return again

    def take_replaced(self) -> set[str]:
        """The tables (``db.table``) of which a base of its own has been replaced since the last call.

        Files by the same names have other rows then.
        """
        replaced, self._replaced = self._replaced, set()
        return replaced

    def use_statement_ids(self, first: int, last: int) -> None:
        """The statement that was given `first` has used all up to `last`; it has to be the latest one.

        Raises TransactionClosedError if another one was given an id meanwhile, which would then be used twice.
        """
        if last > first and self._statements != first + 1:
            raise TransactionClosedError(
                f"transaction {self.id} ran two statements at a time, of which one needs several statement ids: run "
                "them one after another"
            )
        self._statements = max(self._statements, last + 1)

    def add_dynamic_partitions(self, database: str, table: str, names: Sequence[str], operation: Operation) -> None:
        """Tell the metastore which partitions a dynamic write has touched; it checks conflicts on them at commit.

        Until it is told, by an empty list if need be, the whole table counts as touched; and after it, if
        `compares_keys_of`.
        """
        self.check_open()
        self._call(
            "add_dynamic_partitions",
            ttypes.AddDynamicPartitions(
                txnid=self.id,
                writeid=self.write_id(database, table),
                dbname=database,
                tablename=table,
                partitionnames=list(names),
                operationType=getattr(ttypes.DataOperationType, operation.value),
                alsoWholeTable=table_name(database, table) in self._whole or None,
            ),
        )

    def compares_keys_of(self, database: str, table: str) -> None:
        """Note that it brings keys that nobody else may bring meanwhile, to whatever partition of the table."""
        self._whole.add(table_name(database, table))
