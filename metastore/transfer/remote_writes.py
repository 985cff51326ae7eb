"""Brings the write ids of a table at another metastore to where they stand here.

A table that has none there begins by repl_tbl_writeid_state, or by seed_write_id where nothing was aborted. One that
has some, since it came from there, goes on: transactions are opened there, given the missing write ids, and ended as
ours have. Those to be aborted declare a write first, for without one the other's housekeeping forgets them, and their
files would count as committed.
"""

from __future__ import annotations

import socket
from typing import Any

from hive_acid.errors import UnknownMethodError
from hive_acid.format.snapshot import NONE_OPEN, ValidWriteIdList
from hive_acid.wire import table_name, ttypes
from metastore.catalog.models import Table
from metastore.catalog.names import split_key
from metastore.transfer.comparison import ranges
from metastore.transfer.models import TableWrites, TransferError
from metastore.transfer.sources.thrift import Peer

TXNS_PER_BATCH = 500
_US = "hive-acid"


class RemoteWrites:
    """The write ids of tables at another metastore."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def bring(self, table: Table, ours: TableWrites) -> bool:
        """Bring a table's write ids to ours; False if they stand there already.

        Raises TransferError if that cannot be: they are never taken back, and what is committed there stays so.
        """
        database = split_key(table.database)[1]
        theirs = self._now(database, table.name)
        if self._agree(theirs, ours):
            return False
        if theirs.high_water_mark == 0:
            self._begin(database, table.name, ours)
        else:
            self._check(theirs, ours)
            missing = range(theirs.high_water_mark + 1, ours.high_water_mark + 1)
            for first in range(0, len(missing), TXNS_PER_BATCH):
                self._go_on(database, table.name, list(missing[first : first + TXNS_PER_BATCH]), ours)
        if not self._agree(self._now(database, table.name), ours):
            raise TransferError(f"somebody writes to it at {self._peer.name}: stop that and try again")
        return True

    def _now(self, database: str, name: str) -> TableWrites:
        try:
            return self._peer.writes(database, name, self._peer.txns())
        except UnknownMethodError:
            raise TransferError(f"{self._peer.name} is older than Hive 3: it has no write ids of tables") from None

    def _agree(self, theirs: TableWrites, ours: TableWrites) -> bool:
        same_last = theirs.high_water_mark == ours.high_water_mark
        return same_last and theirs.aborted_ids == ours.aborted_ids and not theirs.unfinished

    def _check(self, theirs: TableWrites, ours: TableWrites) -> None:
        last = theirs.high_water_mark
        if theirs.unfinished:
            raise TransferError(f"is being written to at {self._peer.name}: wait for the end of that and try again")
        if last > ours.high_water_mark:
            here = ours.high_water_mark
            raise TransferError(f"has write ids up to {last} at {self._peer.name}, and up to {here} here")
        hidden = theirs.aborted_ids - ours.aborted_ids
        if hidden:
            raise TransferError(
                f"write ids {ranges(hidden)} are aborted at {self._peer.name}, not here: if they were cleaned up here,"
                " let its Cleaner do the same; if not, what they wrote would be lost"
            )
        shown = {one for one in ours.aborted_ids - theirs.aborted_ids if one <= last}
        if shown:
            raise TransferError(
                f"write ids {ranges(shown)} were aborted here and count as committed at {self._peer.name}: let the"
                " Cleaner remove what they left"
            )

    def _begin(self, database: str, name: str, ours: TableWrites) -> None:
        aborted = tuple(sorted(ours.aborted_ids))
        state = ValidWriteIdList(table_name(database, name), ours.high_water_mark, (), aborted, NONE_OPEN)
        request = ttypes.ReplTblWriteIdStateRequest(
            validWriteIdlist=str(state),
            user=_US,
            hostName=socket.gethostname(),
            dbName=database,
            tableName=name,
            partNames=sorted({one.partition for one in ours.aborted if one.partition}) or None,
        )
        seed = ttypes.SeedTableWriteIdsRequest(dbName=database, tableName=name, seedWriteId=ours.high_water_mark)
        if not aborted and self._peer.has(lambda: self._peer.call("seed_write_id", seed)):
            return
        self._peer.call("repl_tbl_writeid_state", request)

    def _go_on(self, database: str, name: str, write_ids: list[int], ours: TableWrites) -> None:
        opening = ttypes.OpenTxnRequest(num_txns=len(write_ids), user=_US, hostname=socket.gethostname())
        txn_ids = sorted(self._peer.call("open_txns", opening).txn_ids)
        request = ttypes.AllocateTableWriteIdsRequest(dbName=database, tableName=name, txnIds=txn_ids)
        given = self._peer.call("allocate_table_write_ids", request).txnToWriteIds
        if sorted(one.writeId for one in given) != write_ids:
            self._peer.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=txn_ids))
            raise TransferError(f"somebody writes to it at {self._peer.name}: stop that and try again")
        for one in given:
            if one.writeId in ours.aborted_ids:
                self._declare(database, name, one, ours)
                self._peer.call("abort_txn", ttypes.AbortTxnRequest(txnid=one.txnId))
            else:
                self._peer.call("commit_txn", ttypes.CommitTxnRequest(txnid=one.txnId))

    def _declare(self, database: str, name: str, given: Any, ours: TableWrites) -> None:
        """Have it on record what an aborted transaction may have written."""
        partitions = sorted({one.partition for one in ours.aborted if one.write_id == given.writeId and one.partition})
        if partitions:
            request = ttypes.AddDynamicPartitions(
                txnid=given.txnId,
                writeid=given.writeId,
                dbname=database,
                tablename=name,
                partitionnames=partitions,
                operationType=ttypes.DataOperationType.INSERT,
            )
            self._peer.call("add_dynamic_partitions", request)
            return
        component = ttypes.LockComponent(
            type=ttypes.LockType.SHARED_READ,
            level=ttypes.LockLevel.TABLE,
            dbname=database,
            tablename=name,
            operationType=ttypes.DataOperationType.INSERT,
            isTransactional=True,
        )
        request = ttypes.LockRequest(component=[component], txnid=given.txnId, user=_US, hostname=socket.gethostname())
        self._peer.call("lock", request)
