"""Giving out write ids and saying which of them a snapshot sees; each a single round trip to the database."""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.errors import MetaError, MetastoreError
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.ids import TxnId, WriteId
from metastore.store.database import Database
from metastore.store.hot.connection import Rows
from metastore.txn.models import TableWriteIds
from metastore.txn.names import split_table, stored_name
from metastore.txn.write_ids.aborted_ids import AbortedIds
from metastore.txn.write_ids.calls import AllocateCall, Allocation, CurrentWriteIdsCall, PastWriteIds, PastWriteIdsCall


class WriteIdService:
    """Write ids (transactions.md §2)."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.aborted_ids = aborted_ids = AbortedIds()
        self._allocate = AllocateCall()
        self._current, self._past = CurrentWriteIdsCall(aborted_ids), PastWriteIdsCall(aborted_ids)

    async def allocate_soon(
        self, db: str, table: str, txn_ids: Sequence[TxnId], reallocate: bool = False
    ) -> list[tuple[TxnId, WriteId]]:
        """The write id of each transaction in the table, ascending by transaction; the same again when repeated.

        With `reallocate` they get new ones, and the ones they had never become valid. Raises TxnAbortedError,
        NoSuchTxnError (committed or unknown) or MetaError (read-only, or no transactions named) for the first that may
        not write; nothing is allocated then.
        """
        if not txn_ids:
            raise MetaError(f"write ids of {db}.{table} were asked for without naming a transaction")
        question = Allocation(stored_name(db), stored_name(table), tuple(sorted(set(txn_ids))))
        if not reallocate:
            return await self._db.ask_soon(self._allocate, question)
        ids = list(question.txn_ids)
        rows: Rows = await self._db.run(self._db.call, "reallocate_write_ids", question.db, question.table, ids)
        given = self._allocate.answers([question], rows)[0]
        if isinstance(given, MetastoreError):
            raise given
        return given

    def allocate(
        self, db: str, table: str, txn_ids: Sequence[TxnId], reallocate: bool = False
    ) -> list[tuple[TxnId, WriteId]]:
        """See `allocate_soon`."""
        return self._db.wait(self.allocate_soon(db, table, txn_ids, reallocate))

    async def get_valid_soon(
        self, full_names: Sequence[str], snapshot: ValidTxnList | None = None, as_of: WriteId | None = None
    ) -> list[TableWriteIds]:
        """What each table ``db.table`` shows to a snapshot; None is the present one.

        With `as_of` it is the snapshot of the transaction that owns this write id of the first table; MetaError if
        nobody does.
        """
        tables = tuple(split_table(name) for name in full_names)
        if not tables:
            return []
        if snapshot is None and as_of is None:
            return await self._db.ask_soon(self._current, tables)
        found = await self._db.ask_soon(self._past, PastWriteIds(tables, snapshot, as_of))
        if found is None:
            raise MetaError(f"invalid write id {as_of} for table {full_names[0]}")
        return found

    def get_valid(
        self, full_names: Sequence[str], snapshot: ValidTxnList | None = None, as_of: WriteId | None = None
    ) -> list[TableWriteIds]:
        """See `get_valid_soon`."""
        return self._db.wait(self.get_valid_soon(full_names, snapshot, as_of))

    def get_max_allocated(self, db: str, table: str) -> WriteId:
        """The last write id given out for a table, 0 for one never written."""
        row = self._db.call_one("get_max_write_id", stored_name(db), stored_name(table))
        assert row is not None
        return WriteId(row[0])

    def seed(self, db: str, table: str, last: WriteId) -> None:
        """Let the write ids of a table begin after `last`.

        Raises MetaError if it has some already, or for a negative number.
        """
        if last < 0:
            raise MetaError(f"write ids of {db}.{table} cannot begin after {last}")
        row = self._db.call_one("seed_write_id", stored_name(db), stored_name(table), last)
        assert row is not None
        if not row[0]:
            raise MetaError(f"{db}.{table} has write ids already: they cannot be seeded with {last}")
