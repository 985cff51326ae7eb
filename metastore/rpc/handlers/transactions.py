"""RPCs of transactions and write ids (transactions.md §11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.snapshot import ValidTxnList, encode_bits
from hive_acid.ids import TxnId, WriteId
from hive_acid.wire import ttypes
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.codec import Prepared, spliced
from metastore.rpc.encoding.generations import NO_WRITE_ID
from metastore.rpc.encoding.kept import Kept
from metastore.rpc.handlers.replication import (
    SpecialCalls,
    is_extended,
    is_replayed_allocation,
    is_replayed_end,
    is_replayed_opening,
    parameter_of,
)
from metastore.rpc.structs.snapshots import SnapshotFields
from metastore.txn.calls import Opening
from metastore.txn.models import Intent, OpenTxns, TableWriteIds, TxnOwner
from metastore.txn.names import split_table
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnState, TxnType
from metastore.txn.write_ids.service import WriteIdService

_WIRE_STATES = {
    TxnState.OPEN: ttypes.TxnState.OPEN,
    TxnState.ABORTED: ttypes.TxnState.ABORTED,
    TxnState.COMMITTED: ttypes.TxnState.COMMITTED,
}
_OPERATIONS = {
    ttypes.DataOperationType.INSERT: Operation.INSERT,
    ttypes.DataOperationType.UPDATE: Operation.UPDATE,
    ttypes.DataOperationType.DELETE: Operation.DELETE,
    ttypes.DataOperationType.UNSET: Operation.UPDATE,
    None: Operation.UPDATE,
}
"""Of add_dynamic_partitions; nothing said is taken for the worst (transactions.md §1.8)."""
MAX_KEPT_REPLIES = 16
MAX_KEPT_SNAPSHOTS = 4
_WORTH_KEEPING, _LONGEST_KEPT = 10_000, 4_000_000
"""Characters of a text that is kept, parsed."""
_MOST_IDS = 250_000
"""Ids that it may stand for, so that some ten MB are kept of each at most."""


class _Snapshots:
    """Lists of transactions that clients send as text: a long one comes many times, and is parsed once."""

    def __init__(self) -> None:
        self._kept: dict[str, ValidTxnList] = {}

    def of(self, text: str) -> ValidTxnList:
        """The list. Raises MetaError for what is none."""
        kept = self._kept.pop(text, None)
        if kept is None:
            try:
                kept = ValidTxnList.parse(text)
            except FormatError as error:
                raise MetaError(str(error)) from None
            ids = len(kept.aborted_ids) + len(kept.open_ids)
            if not _WORTH_KEEPING <= len(text) <= _LONGEST_KEPT or ids > _MOST_IDS:
                return kept
            if len(self._kept) >= MAX_KEPT_SNAPSHOTS:
                del self._kept[next(iter(self._kept))]
        self._kept[text] = kept
        return kept


def handlers(txns: TxnService, write_ids: WriteIdService, special: SpecialCalls) -> dict[str, Handler]:
    """The handlers by RPC name."""
    replies = Kept[Prepared](MAX_KEPT_REPLIES)
    snapshots, fields = _Snapshots(), SnapshotFields(2, 4, for_hive_2=True)

    def open_txns_reply(snapshot: OpenTxns) -> Prepared:
        rest = ttypes.GetOpenTxnsResponse(txn_high_water_mark=snapshot.high_water_mark, min_open_txn=snapshot.min_open)
        return spliced(rest, fields.of(snapshot))

    async def open_txns(call: Call, request: Any) -> Any:
        if is_replayed_opening(request):
            return await call.run(special.open_txns, request)
        asked = opening(request)
        txn_ids = await txns.open_soon(*asked)
        return ttypes.OpenTxnsResponse(txn_ids=txn_ids, tablesNamed=bool(asked.intent.tables) or None)

    async def get_open_txns(call: Call) -> Any:
        return replies.of(await txns.get_open_soon(), open_txns_reply)

    async def get_open_txns_req(call: Call, request: Any) -> Any:
        excluded = [_txn_type(number) for number in request.excludeTxnTypes or ()]
        return replies.of(await txns.get_open_soon(excluded), open_txns_reply)

    def get_open_txns_info(call: Call) -> Any:
        high_water_mark, infos = txns.get_open_txns_info()
        return ttypes.GetOpenTxnsInfoResponse(
            txn_high_water_mark=high_water_mark,
            open_txns=[
                ttypes.TxnInfo(
                    id=info.txn_id,
                    state=_WIRE_STATES[info.state],
                    user=info.owner.user,
                    hostname=info.owner.host,
                    agentInfo=info.owner.agent_info,
                    heartbeatCount=info.heartbeat_count,
                    metaInfo=info.abort_reason,
                    startedTime=info.started_ms,
                    lastHeartbeatTime=info.heartbeat_ms,
                )
                for info in infos
            ],
        )

    async def heartbeat(call: Call, ids: Any) -> None:
        await txns.heartbeat_soon(ids.txnid, ids.lockid)

    async def heartbeat_txn_range(call: Call, request: Any) -> Any:
        found = await txns.heartbeat_range_soon(TxnId(request.min), TxnId(request.max))
        return ttypes.HeartbeatTxnRangeResponse(aborted=found.aborted, nosuch=found.nosuch)

    def abort_txn(call: Call, request: Any) -> None:
        if is_replayed_end(request):
            special.abort_txn(request)
        else:
            txns.abort_txn(request.txnid, request.errorCode)

    def abort_txns(call: Call, request: Any) -> None:
        txns.abort_txns(request.txn_ids or [], request.errorCode)

    async def commit_txn(call: Call, request: Any) -> None:
        if is_extended(request):
            await call.run(special.commit_txn, request)
        else:
            await txns.commit_soon(request.txnid, skip_conflict_check=bool(request.exclWriteEnabled))

    def hive_acid_commit_rows(call: Call, request: Any) -> Any:
        checked = [TxnId(of) for of in request.checkedTxnIds]
        others = txns.commit_rows(TxnId(request.txnid), checked, parameter_of(request))
        return ttypes.HiveAcidCommitRowsResponse(
            unchecked=[
                ttypes.HiveAcidOtherChange(
                    dbname=of.db, tablename=of.table, partname=of.partition, txnid=of.txn_id, writeid=of.write_id
                )
                for of in others
            ]
        )

    async def allocate_table_write_ids(call: Call, request: Any) -> Any:
        if is_replayed_allocation(request):
            return await call.run(special.allocate_table_write_ids, request)
        given = await write_ids.allocate_soon(
            request.dbName, request.tableName, request.txnIds or [], bool(request.reallocate)
        )
        return ttypes.AllocateTableWriteIdsResponse(
            txnToWriteIds=[ttypes.TxnToWriteId(txnId=txn_id, writeId=write_id) for txn_id, write_id in given]
        )

    async def get_valid_write_ids(call: Call, request: Any) -> Any:
        snapshot = None
        as_of = WriteId(request.writeId) if request.writeId else None
        if as_of is None and request.validTxnList is not None:
            snapshot = snapshots.of(request.validTxnList)
        found = await write_ids.get_valid_soon(request.fullTableNames or [], snapshot, as_of)
        if len(found) == 1:
            return replies.of(found[0], lambda table: Prepared(_write_ids_response([table])))
        return _write_ids_response(found)

    def get_max_allocated_table_write_id(call: Call, request: Any) -> Any:
        return ttypes.MaxAllocatedTableWriteIdResponse(
            maxWriteId=write_ids.get_max_allocated(request.dbName, request.tableName)
        )

    def seed_write_id(call: Call, request: Any) -> None:
        write_ids.seed(request.dbName, request.tableName, request.seedWriteId)

    def add_dynamic_partitions(call: Call, request: Any) -> None:
        if request.operationType not in _OPERATIONS:
            raise MetaError(f"operation type {request.operationType} writes nothing: INSERT, UPDATE or DELETE do")
        write_id = request.writeid
        if write_id == NO_WRITE_ID:
            ((_, write_id),) = write_ids.allocate(request.dbname, request.tablename, [request.txnid])
        txns.add_dynamic_partitions(
            request.txnid,
            write_id,
            request.dbname,
            request.tablename,
            request.partitionnames or [],
            _OPERATIONS[request.operationType],
            also_whole_table=bool(request.alsoWholeTable),
        )

    def get_latest_txnid_in_conflict(call: Call, txn_id: int) -> int:
        return txns.get_latest_txnid_in_conflict(TxnId(txn_id))

    served = (
        *(open_txns, get_open_txns, get_open_txns_req, get_open_txns_info, heartbeat, heartbeat_txn_range),
        *(abort_txn, abort_txns, commit_txn, hive_acid_commit_rows, allocate_table_write_ids, get_valid_write_ids),
        *(get_max_allocated_table_write_id, seed_write_id, add_dynamic_partitions, get_latest_txnid_in_conflict),
    )
    return {handler.__name__: handler for handler in served}


def opening(request: Any) -> Opening:
    """What an OpenTxnRequest asks for. Raises MetaError for a type or a table's name that is none."""
    owner = TxnOwner(request.user or "", request.hostname or "", request.agentInfo or "Unknown")
    tables = tuple(dict.fromkeys(map(split_table, request.tables))) if request.tables else ()
    return Opening(request.num_txns, owner, _txn_type(request.txn_type), Intent(tables, request.mayBeginAgain))


def _write_ids_response(tables: Sequence[TableWriteIds]) -> Any:
    return ttypes.GetValidWriteIdsResponse(tblValidWriteIds=list(map(wire_write_ids, tables)))


def wire_write_ids(table: TableWriteIds) -> Any:
    """The struct of what a snapshot sees of a table."""
    return ttypes.TableValidWriteIds(
        fullTableName=f"{table.db}.{table.table}",
        writeIdHighWaterMark=table.high_water_mark,
        invalidWriteIds=list(table.invalid),
        minOpenWriteId=table.min_open,
        abortedBits=_bits(table.invalid, table.aborted),
    )


def _bits(ids: list[Any], aborted: list[Any]) -> bytes:
    if not aborted:
        return b""
    return encode_bits(map(set(aborted).__contains__, ids))


def _txn_type(number: int | None) -> TxnType:
    try:
        return TxnType(number or 0)
    except ValueError:
        raise MetaError(f"there is no transaction type {number}") from None
