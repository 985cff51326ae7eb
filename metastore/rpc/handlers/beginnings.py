"""The RPC by which a statement begins in one call (transactions.md §3.11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.lock.beginning import Beginning, Beginnings, Seen
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.codec import encoded, spliced, struct_field, structs_field
from metastore.rpc.encoding.kept import Kept
from metastore.rpc.handlers.locks import lock_component, lock_response
from metastore.rpc.handlers.replication import is_replayed_opening
from metastore.rpc.handlers.transactions import opening, wire_write_ids
from metastore.rpc.structs.snapshots import SnapshotFields
from metastore.txn.models import OpenTxns, TableWriteIds
from metastore.txn.names import split_table

MAX_KEPT_SNAPSHOTS, MAX_KEPT_TABLES = 4, 32


def handlers(beginnings: Beginnings) -> dict[str, Handler]:
    """The handlers by RPC name."""
    # Those who begin together have the same snapshot, and mostly tables are as they were.
    snapshots, differences = Kept[bytes](MAX_KEPT_SNAPSHOTS), Kept[bytes](MAX_KEPT_SNAPSHOTS)
    tables, fields = Kept[bytes](MAX_KEPT_TABLES), SnapshotFields(ids_field=2, bits_field=3)

    def whole(snapshot: OpenTxns) -> bytes:
        rest = ttypes.HiveAcidSnapshot(highWaterMark=snapshot.high_water_mark)
        return fields.of(snapshot) + encoded(rest)

    def nothing_new(snapshot: OpenTxns) -> bytes:
        return beside(snapshot, [])

    def beside(snapshot: OpenTxns, new: Sequence[TxnId]) -> bytes:
        rest = ttypes.HiveAcidSnapshot(highWaterMark=snapshot.high_water_mark, isBesideKnown=True)
        return fields.with_new(snapshot, new) + encoded(rest)

    def shown(snapshot: OpenTxns, known: int | None) -> bytes:
        new = snapshot.aborted.since(known)
        if new is None:
            return snapshots.of(snapshot, whole)
        return beside(snapshot, new) if new else differences.of(snapshot, nothing_new)

    def seen_write_ids(table: TableWriteIds) -> bytes:
        return encoded(wire_write_ids(table))

    def seen_table(one: Seen) -> bytes:
        rest = encoded(ttypes.HiveAcidSeenTable(tableId=one.table_id))
        return struct_field(1, tables.of(one.write_ids, seen_write_ids)) + rest

    async def hive_acid_begin(call: Call, request: Any) -> Any:
        if is_replayed_opening(request.open):
            raise MetaError("what another warehouse has done is replayed by open_txns, not by hive_acid_begin")
        begun = await beginnings.begin_soon(
            Beginning(
                opening(request.open),
                tuple([lock_component(one, in_transaction=True) for one in request.component or ()]),
                tuple(dict.fromkeys(map(split_table, request.seen or ()))),
                tuple(dict.fromkeys(map(split_table, request.written or ()))),
            )
        )
        told = ttypes.HiveAcidBeginResponse(
            txnid=begun.txn_id,
            abortedVersion=begun.snapshot.aborted.number,
            lock=lock_response(begun.lock) if begun.lock is not None else None,
            written=[
                ttypes.HiveAcidWrittenTable(
                    fullTableName=".".join(one.table), writeId=one.write_id, tableId=one.table_id
                )
                for one in begun.written
            ],
            isOutdated=begun.is_outdated or None,
        )
        snapshot = shown(begun.snapshot, request.knownAborted)
        others = [] if begun.seen is None else [structs_field(5, list(map(seen_table, begun.seen)))]
        return spliced(told, struct_field(3, snapshot), *others)

    return {hive_acid_begin.__name__: hive_acid_begin}
