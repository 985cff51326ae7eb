"""Readers that say which tables they read, so that the Cleaner need not wait for them on others (transactions.md §2.4).

Ours say it when they are opened (`metastore.txn.models.Intent`), other engines' behind their locks.
Hive would compare the write ids too, and remove files under a reader whose snapshot is older than the compaction that
replaced them. Here a reader that named the table is always waited for, and so is one that has named none: a client may
take its snapshot first and lock later, or not at all, so only its own word says what it does not read. Whoever sends
that word means it, so it always counts; of Hive's clients those send it that hive.txn.use.minhistorywriteid tells to.
"""

from __future__ import annotations

from collections.abc import Mapping

from hive_acid.errors import MetaError
from hive_acid.ids import TxnId, WriteId
from metastore.store.database import Database
from metastore.txn.names import split_table
from metastore.txn.service import refuse


class MinHistory:
    """What readers need of which tables."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, txn_id: TxnId, write_ids: Mapping[str, WriteId]) -> None:
        """Note the tables ``db.table`` that a transaction reads, each with the write id below which nothing is open.

        Raises MetaError for a name of another form or a negative write id, and if it has named others before and files
        of a new one may be gone that it could see; TxnAbortedError, or NoSuchTxnError if the transaction is committed
        or unknown.
        """
        tables = [split_table(name) for name in write_ids]
        if not tables:
            return
        if min(write_ids.values()) < 0:
            raise MetaError(f"transaction {txn_id} needs a negative write id: there is none")
        names = [db for db, _ in tables], [table for _, table in tables]
        row = self._db.call_one("add_min_history", txn_id, *names, list(write_ids.values()))
        assert row is not None
        outcome, db, table = row
        if outcome == "replaced":
            raise MetaError(
                f"transaction {txn_id} has named its tables before, and {db}.{table} was none of them: files of that"
                " may be gone that it could see, since a compaction has replaced some meanwhile; name all at once"
            )
        refuse(outcome, txn_id)
