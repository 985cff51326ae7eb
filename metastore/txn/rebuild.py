"""Rebuilding materialised views, one transaction at a time each (transactions.md §3.10)."""

from __future__ import annotations

from hive_acid.ids import TxnId
from metastore.store.database import Database
from metastore.txn.names import stored_name
from metastore.txn.service import refuse


class RebuildLocks:
    """Who rebuilds a view holds it until its transaction ends, in whatever way."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def lock(self, db: str, view: str, txn_id: TxnId) -> bool:
        """Take the rebuild of a view, or keep it; False while another open transaction has it.

        Raises TxnAbortedError, or NoSuchTxnError if the transaction is committed or unknown.
        """
        row = self._db.call_one("lock_materialization_rebuild", stored_name(db), stored_name(view), txn_id)
        assert row is not None
        refuse(row[0], txn_id)
        return bool(row[0] == "acquired")

    def heartbeat(self, db: str, view: str, txn_id: TxnId) -> bool:
        """Say that the rebuild goes on; False if the transaction does not have it any more."""
        row = self._db.call_one("heartbeat_materialization_rebuild", stored_name(db), stored_name(view), txn_id)
        assert row is not None
        return bool(row[0])
