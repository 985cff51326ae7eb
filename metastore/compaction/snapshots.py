"""Snapshots for compactions, in the form in which the format's rules are written."""

from __future__ import annotations

from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId
from hive_acid.wire import table_name
from metastore.txn.service import TxnService
from metastore.txn.write_ids.service import WriteIdService


class Snapshots:
    """Which transactions and write ids a compaction or the Cleaner sees."""

    def __init__(self, txns: TxnService, write_ids: WriteIdService) -> None:
        self._txns = txns
        self._write_ids = write_ids

    def txns(self, own: TxnId | None = None) -> ValidTxnList:
        """The present snapshot, of any type of transaction; as transaction `own` sees it if given."""
        now = self._txns.get_open_txns(())
        txns = ValidTxnList(now.high_water_mark, tuple(now.open_ids), tuple(now.aborted_ids))
        if own is None:
            return txns
        open_ids = tuple(txn_id for txn_id in now.open_ids if txn_id < own)
        return ValidTxnList(own, open_ids, txns.up_to(own).aborted_ids)

    def write_ids(self, db: str, table: str, txns: ValidTxnList) -> ValidWriteIdList:
        """The write ids of a table that a snapshot sees, as a reader has them."""
        (found,) = self._write_ids.get_valid([f"{db}.{table}"], txns)
        aborted = tuple(found.aborted)
        open_ids = tuple(sorted(set(found.invalid) - set(aborted)))
        return ValidWriteIdList(table_name(db, table), found.high_water_mark, open_ids, aborted, found.min_open or 0)
