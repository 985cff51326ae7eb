"""RPCs of transactions and write ids (transactions.md §11)."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.snapshot import ValidTxnList, encode_bits
from hive_acid.ids import TxnId, WriteId
from hive_acid.wire import ttypes
from metastore.rpc.call import Call, Handler
from metastore.txn.models import OpenTxns, TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnState, TxnType
from metastore.txn.write_ids import WriteIdService

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


def handlers(txns: TxnService, write_ids: WriteIdService) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def open_txns(call: Call, request: Any) -> Any:
        _refuse_replication(request.replPolicy, request.replSrcTxnIds)
        owner = TxnOwner(request.user or "", request.hostname or "", request.agentInfo or "Unknown")
        return ttypes.OpenTxnsResponse(
            txn_ids=list(txns.open_txns(request.num_txns, owner, _txn_type(request.txn_type)))
        )

    def get_open_txns(call: Call) -> Any:
        return _open_txns_response(txns.get_open_txns())

    def get_open_txns_req(call: Call, request: Any) -> Any:
        excluded = [_txn_type(number) for number in request.excludeTxnTypes or ()]
        return _open_txns_response(txns.get_open_txns(excluded))

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

    def heartbeat(call: Call, ids: Any) -> None:
        txns.heartbeat(ids.txnid, ids.lockid)

    def heartbeat_txn_range(call: Call, request: Any) -> Any:
        found = txns.heartbeat_txn_range(TxnId(request.min), TxnId(request.max))
        return ttypes.HeartbeatTxnRangeResponse(aborted=found.aborted, nosuch=found.nosuch)

    def abort_txn(call: Call, request: Any) -> None:
        _refuse_replication(request.replPolicy)
        txns.abort_txn(request.txnid, request.errorCode)

    def abort_txns(call: Call, request: Any) -> None:
        txns.abort_txns(request.txn_ids or [], request.errorCode)

    def commit_txn(call: Call, request: Any) -> None:
        _refuse_replication(request.replPolicy, request.replLastIdInfo, request.writeEventInfos)
        if request.keyValue is not None:
            raise MetaError(
                f"transaction {request.txnid} is not committed: this version cannot set the table parameter"
                f" '{request.keyValue.key}' with a commit; commit without keyValue"
            )
        txns.commit_txn(request.txnid, skip_conflict_check=bool(request.exclWriteEnabled))

    def allocate_table_write_ids(call: Call, request: Any) -> Any:
        _refuse_replication(request.replPolicy, request.srcTxnToWriteIdList)
        given = write_ids.allocate(request.dbName, request.tableName, request.txnIds or [], bool(request.reallocate))
        return ttypes.AllocateTableWriteIdsResponse(
            txnToWriteIds=[ttypes.TxnToWriteId(txnId=txn_id, writeId=write_id) for txn_id, write_id in given]
        )

    def get_valid_write_ids(call: Call, request: Any) -> Any:
        snapshot = None
        as_of = WriteId(request.writeId) if request.writeId else None
        if as_of is None and request.validTxnList is not None:
            snapshot = _parse_snapshot(request.validTxnList)
        return ttypes.GetValidWriteIdsResponse(
            tblValidWriteIds=[
                ttypes.TableValidWriteIds(
                    fullTableName=f"{found.db}.{found.table}",
                    writeIdHighWaterMark=found.high_water_mark,
                    invalidWriteIds=list(found.invalid),
                    minOpenWriteId=found.min_open,
                    abortedBits=_bits(found.invalid, found.aborted),
                )
                for found in write_ids.get_valid(request.fullTableNames or [], snapshot, as_of)
            ]
        )

    def get_max_allocated_table_write_id(call: Call, request: Any) -> Any:
        return ttypes.MaxAllocatedTableWriteIdResponse(
            maxWriteId=write_ids.get_max_allocated(request.dbName, request.tableName)
        )

    def seed_write_id(call: Call, request: Any) -> None:
        write_ids.seed(request.dbName, request.tableName, request.seedWriteId)

    def add_dynamic_partitions(call: Call, request: Any) -> None:
        if request.operationType not in _OPERATIONS:
            raise MetaError(f"operation type {request.operationType} writes nothing: INSERT, UPDATE or DELETE do")
        txns.add_dynamic_partitions(
            request.txnid,
            request.writeid,
            request.dbname,
            request.tablename,
            request.partitionnames or [],
            _OPERATIONS[request.operationType],
        )

    def get_latest_txnid_in_conflict(call: Call, txn_id: int) -> int:
        return txns.get_latest_txnid_in_conflict(TxnId(txn_id))

    def add_write_ids_to_min_history(call: Call, txn_id: int, ids: dict[str, int]) -> None:
        """Accepted and ignored: what a reader needs is known from its transaction (transactions.md §2.4)."""

    served = (
        *(open_txns, get_open_txns, get_open_txns_req, get_open_txns_info, heartbeat, heartbeat_txn_range),
        *(abort_txn, abort_txns, commit_txn, allocate_table_write_ids, get_valid_write_ids),
        *(get_max_allocated_table_write_id, seed_write_id, add_dynamic_partitions),
        *(get_latest_txnid_in_conflict, add_write_ids_to_min_history),
    )
    return {handler.__name__: handler for handler in served}


def _open_txns_response(snapshot: OpenTxns) -> Any:
    ids = sorted(snapshot.open_ids + snapshot.aborted_ids)
    return ttypes.GetOpenTxnsResponse(
        txn_high_water_mark=snapshot.high_water_mark,
        open_txns=ids,
        min_open_txn=snapshot.min_open,
        abortedBits=_bits(ids, snapshot.aborted_ids),
    )


def _bits(ids: list[Any], aborted: list[Any]) -> bytes:
    marked = set(aborted)
    return encode_bits(id_ in marked for id_ in ids)


def _txn_type(number: int | None) -> TxnType:
    try:
        return TxnType(number or 0)
    except ValueError:
        raise MetaError(f"there is no transaction type {number}") from None


def _parse_snapshot(text: str) -> ValidTxnList:
    try:
        return ValidTxnList.parse(text)
    except FormatError as error:
        raise MetaError(str(error)) from None


def _refuse_replication(*fields: object) -> None:
    """Replay of another warehouse's events is not served: refuse before anything is done.

    Raises MetaError if any of the fields is there.
    """
    if any(fields):
        raise MetaError("replication is not served: leave replPolicy and the fields that go with it out")
