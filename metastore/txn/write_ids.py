"""Giving out write ids and saying which of them a snapshot sees; each a single trip to the database."""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.errors import MetaError
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.ids import TxnId, WriteId
from metastore.store.database import Database
from metastore.txn.models import TableWriteIds
from metastore.txn.names import split_table, stored_name
from metastore.txn.service import refuse


class WriteIdService:
    """Write ids (transactions.md §2)."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def allocate(
        self, db: str, table: str, txn_ids: Sequence[TxnId], reallocate: bool = False
    ) -> list[tuple[TxnId, WriteId]]:
        """The write id of each transaction in the table, ascending by transaction; the same again when repeated.

        With `reallocate` they get new ones, and the ones they had never become valid. Raises TxnAbortedError,
        NoSuchTxnError (committed or unknown) or MetaError (read-only, or no transactions named) for the first that may
        not write; nothing is allocated then.
        """
        if not txn_ids:
            raise MetaError(f"write ids of {db}.{table} were asked for without naming a transaction")
        ids = sorted(set(txn_ids))
        rows = self._db.call("allocate_write_ids", stored_name(db), stored_name(table), ids, reallocate)
        refuse(rows[0][0], rows[0][1])
        return [(TxnId(txn_id), WriteId(write_id)) for _, txn_id, write_id in rows]

    def get_valid(
        self, full_names: Sequence[str], snapshot: ValidTxnList | None = None, as_of: WriteId | None = None
    ) -> list[TableWriteIds]:
        """What each table ``db.table`` shows to a snapshot; None is the present one.

        With `as_of` it is the snapshot of the transaction that owns this write id of the first table; MetaError if
        nobody does.
        """
        tables = [split_table(name) for name in full_names]
        if not tables:
            return []
        dbs, names = [db for db, _ in tables], [table for _, table in tables]
        if snapshot is not None:
            ids = snapshot.high_water_mark, list(snapshot.open_ids), list(snapshot.aborted_ids)
            rows = self._db.call("get_valid_write_ids", dbs, names, *ids, None)
        else:
            rows = self._db.call("get_valid_write_ids", dbs, names, None, None, None, as_of)
        if rows[0][0] is None:
            raise MetaError(f"invalid write id {as_of} for table {full_names[0]}")
        return [TableWriteIds(*row) for row in rows]

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
