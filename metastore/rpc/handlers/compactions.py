"""RPCs of compactions (transactions.md §4, §11)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.ids import CompactionId, TxnId, WriteId
from hive_acid.wire import ttypes
from metastore.compaction.initiator.policy import manual_head_start_s
from metastore.compaction.metrics import CompactionMetrics, MetricTarget
from metastore.compaction.models import Compaction, CompactionAnswer, CompactionRequest
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.states import CompactionState, CompactionType
from metastore.rpc.call import Call, Handler
from metastore.txn.names import split_table

_TYPES = {
    ttypes.CompactionType.MINOR: CompactionType.MINOR,
    ttypes.CompactionType.MAJOR: CompactionType.MAJOR,
    ttypes.CompactionType.REBALANCE: CompactionType.REBALANCE,
    ttypes.CompactionType.ABORT_TXN_CLEANUP: CompactionType.ABORT_TXN_CLEANUP,
}
_WIRE_TYPES = {ours: wire for wire, ours in _TYPES.items()}
_ELDER_WIRE_TYPES = {
    **_WIRE_TYPES,
    CompactionType.REBALANCE: ttypes.CompactionType.MAJOR,
    CompactionType.ABORT_TXN_CLEANUP: ttypes.CompactionType.MINOR,
}
"""For clients before Hive 4: they read a value they do not know as an absent one, and fail (wire.md §1.3)."""
_METRIC_TYPES = (
    ttypes.CompactionMetricsMetricType.NUM_OBSOLETE_DELTAS,
    ttypes.CompactionMetricsMetricType.NUM_DELTAS,
    ttypes.CompactionMetricsMetricType.NUM_SMALL_DELTAS,
)
_DEFAULT_POOL = "default"
_REFUSED_ID = -1


def handlers(compactions: CompactionService, metrics: CompactionMetrics, crowded_deltas: int) -> dict[str, Handler]:
    """The handlers by RPC name; with more than `crowded_deltas` deltas a table has too many."""

    def compact(call: Call, request: Any) -> None:
        compactions.compact(_request(call, request))

    def compact2(call: Call, request: Any) -> Any:
        return _compaction_response(compactions.compact(_request(call, request)))

    def show_compact(call: Call, request: Any) -> Any:
        found = compactions.show(
            compaction_id=CompactionId(request.id) if request.id else None,
            db=request.dbName,
            table=request.tbName,
            partition=request.partName,
            state=_state(request.state) if request.state else None,
            type=_type(request.type) if request.type else None,
            pool=request.poolName,
            order=request.order,
            limit=request.limit,
        )
        # Every field of the request is of Hive 4; an elder client sends none.
        is_hive_4 = call.session.is_hive_4 or any(value is not None for value in vars(request).values())
        types = _WIRE_TYPES if is_hive_4 else _ELDER_WIRE_TYPES
        return ttypes.ShowCompactResponse(compacts=[_element(compaction, types) for compaction in found])

    def find_next_compact(call: Call, worker_id: str) -> Any:
        return _optional_info(compactions.find_next(_worker(worker_id)))

    def find_next_compact2(call: Call, request: Any) -> Any:
        worker = _worker(request.workerId)
        return _optional_info(compactions.find_next(worker, request.workerVersion, request.poolName))

    def update_compactor_state(call: Call, info: Any, txn_id: int) -> None:
        highest = WriteId(info.highestWriteId or 0)
        compactions.update_state(CompactionId(info.id), info.workerId, TxnId(txn_id), highest, info.runas)

    def set_hadoop_jobid(call: Call, job_id: str, compaction_id: int) -> None:
        compactions.set_job_id(CompactionId(compaction_id), job_id)

    def mark_compacted(call: Call, info: Any) -> None:
        compactions.mark_compacted(CompactionId(info.id), info.workerId)

    def mark_failed(call: Call, info: Any) -> None:
        message = info.errorMessage or "no reason given"
        if info.id:
            compactions.mark_failed(CompactionId(info.id), message, info.workerId)
        else:
            request = CompactionRequest(_type(info.type), info.dbname, info.tablename, info.partitionname or None)
            compactions.did_not_initiate(request, message)

    def mark_refused(call: Call, info: Any) -> None:
        compactions.mark_refused(CompactionId(info.id), info.errorMessage or "no reason given", info.workerId)

    def mark_cleaned(call: Call, info: Any) -> None:
        compactions.mark_cleaned(CompactionId(info.id))

    def abort_Compactions(call: Call, request: Any) -> Any:  # noqa: N802 - the RPC's own name
        done = compactions.abort([CompactionId(compaction_id) for compaction_id in request.compactionIds or ()])
        return ttypes.AbortCompactResponse(
            abortedcompacts={one.id: _aborted(one.id, one.found, one.aborted) for one in done}
        )

    def get_latest_committed_compaction_info(call: Call, request: Any) -> Any:
        after = CompactionId(request.lastCompactionId) if request.lastCompactionId else None
        found = compactions.latest_committed(request.dbname, request.tablename, request.partitionnames, after)
        return ttypes.GetLatestCommittedCompactionInfoResponse(compactions=[_info(compaction) for compaction in found])

    def submit_for_cleanup(call: Call, request: Any, highest_write_id: int, txn_id: int) -> bool:
        compactions.submit_for_cleanup(_request(call, request), WriteId(highest_write_id), TxnId(txn_id))
        return True

    def update_compaction_metrics_data(call: Call, data: Any) -> bool:
        target = _metric(data.dbname, data.tblname, data.partitionname, data.type)
        metrics.update(target, data.metricvalue, data.threshold)
        return True

    def remove_compaction_metrics_data(call: Call, request: Any) -> None:
        metrics.remove(_metric(request.dbName, request.tblName, request.partitionName, request.type))

    def hive_acid_pressure(call: Call, request: Any) -> Any:
        names = [split_table(name) for name in request.fullTableNames or ()]
        return ttypes.HiveAcidPressureResponse(
            tables=[
                ttypes.HiveAcidPressure(
                    dbname=table.db,
                    tablename=table.table,
                    partname=table.partition,
                    deltas=table.deltas,
                    threshold=crowded_deltas,
                    places=table.places,
                    message=table.decision,
                )
                for table in metrics.crowded(names, crowded_deltas)
            ]
        )

    served: tuple[Handler, ...] = (
        compact,
        compact2,
        show_compact,
        find_next_compact,
        find_next_compact2,
        update_compactor_state,
        set_hadoop_jobid,
        mark_compacted,
        mark_failed,
        mark_refused,
        mark_cleaned,
        abort_Compactions,
        get_latest_committed_compaction_info,
        submit_for_cleanup,
        update_compaction_metrics_data,
        remove_compaction_metrics_data,
        hive_acid_pressure,
    )
    return {handler.__name__: handler for handler in served}


def _request(call: Call, request: Any) -> CompactionRequest:
    kind = _type(request.type)
    if kind is CompactionType.ABORT_TXN_CLEANUP:
        raise MetaError("cleaning up after aborted transactions is the Cleaner's own work and cannot be asked for")
    initiator = request.initiatorId or f"{call.peer}-manual"
    return CompactionRequest(
        type=kind,
        db=request.dbname,
        table=request.tablename,
        partition=request.partitionname or None,
        pool=request.poolName,
        properties=request.properties or {},
        order_by=request.orderByClause,
        buckets=request.numberOfBuckets or None,
        run_as=request.runas or call.user,
        initiator=initiator,
        initiator_version=request.initiatorVersion,
        head_start_s=manual_head_start_s(initiator),
        reason=f"asked for by {call.user}",
    )


def _type(wire: int) -> CompactionType:
    if wire not in _TYPES:
        raise MetaError(f"there is no compaction type {wire}")
    return _TYPES[wire]


def _metric(db: str, table: str, partition: str | None, kind: int) -> MetricTarget:
    if kind not in _METRIC_TYPES:
        raise MetaError(f"there is no compaction metric type {kind}")
    return MetricTarget(db, table, partition or None, kind)


def _state(letter: str) -> CompactionState:
    try:
        return CompactionState(letter)
    except ValueError:
        known = ", ".join(f"{state.value} {state.words}" for state in CompactionState)
        raise MetaError(f"there is no compaction state '{letter}': {known}") from None


def _worker(worker_id: str | None) -> str:
    if not worker_id:
        raise MetaError("a worker must give its id")
    return worker_id


def _compaction_response(answer: CompactionAnswer) -> Any:
    if answer.accepted:
        return ttypes.CompactionResponse(id=answer.id, state=answer.state.words, accepted=True)
    return ttypes.CompactionResponse(
        id=_REFUSED_ID,
        state=CompactionState.REFUSED.words,
        accepted=False,
        errormessage=f"Compaction is already scheduled with state='{answer.state.words}' and id={answer.id}",
    )


def _optional_info(compaction: Compaction | None) -> Any:
    return ttypes.OptionalCompactionInfoStruct(ci=_info(compaction) if compaction else None)


def _info(compaction: Compaction) -> Any:
    return ttypes.CompactionInfoStruct(
        id=compaction.id,
        dbname=compaction.db,
        tablename=compaction.table,
        partitionname=compaction.partition,
        type=_WIRE_TYPES[compaction.type],
        runas=compaction.run_as,
        properties=_properties(compaction.properties),
        toomanyaborts=False,
        state=compaction.state.value,
        workerId=compaction.worker,
        start=_ms(compaction.started_at),
        highestWriteId=compaction.highest_write_id,
        errorMessage=compaction.error_message,
        hasoldabort=False,
        enqueueTime=_ms(compaction.enqueued_at),
        poolname=compaction.pool,
        numberOfBuckets=compaction.buckets,
        orderByClause=compaction.order_by,
    )


def _element(compaction: Compaction, types: Mapping[CompactionType, int]) -> Any:
    progress = compaction.progress or {}
    return ttypes.ShowCompactResponseElement(
        dbname=compaction.db,
        tablename=compaction.table,
        partitionname=compaction.partition,
        type=types[compaction.type],
        state=compaction.state.words,
        workerid=compaction.worker,
        start=_ms(compaction.started_at),
        runAs=compaction.run_as,
        hightestTxnId=compaction.highest_write_id,  # the field's name is of old, its content is the write id
        endTime=_ms(compaction.ended_at),
        hadoopJobId=compaction.job_id,
        id=compaction.id,
        errorMessage=compaction.error_message,
        enqueueTime=_ms(compaction.enqueued_at),
        workerVersion=compaction.worker_version,
        initiatorId=compaction.initiator,
        initiatorVersion=compaction.initiator_version,
        cleanerStart=_ms(compaction.cleaner_started_at),
        poolName=compaction.pool or _DEFAULT_POOL,
        nextTxnId=compaction.next_txn_id,
        txnId=compaction.txn_id,
        commitTime=_ms(compaction.committed_at),
        hightestWriteId=compaction.highest_write_id,
        progressPhase=progress.get("phase"),
        progressRows=progress.get("rows"),
        progressFiles=progress.get("files"),
        progressBytes=progress.get("bytes_written"),
        bytesBefore=compaction.bytes_before,
        bytesAfter=compaction.bytes_after,
        reason=": ".join(filter(None, (compaction.rounds, compaction.reason))) or None,
        filesBefore=compaction.files_before,
        filesAfter=compaction.files_after,
        round=compaction.round,
        nextId=compaction.next_id,
    )


def _aborted(compaction_id: CompactionId, found: CompactionState | None, done: bool) -> Any:
    if done:
        status, message = "Success", "Successfully aborted compaction"
    elif found is None:
        status, message = "Error", "No Such Compaction Id Available"
    else:
        status, message = "Error", f"Error while aborting compaction as compaction is in state-{found.words}"
    return ttypes.AbortCompactionResponseElement(compactionId=compaction_id, status=status, message=message)


def _properties(properties: Mapping[str, str]) -> str | None:
    """Properties in the one text that the struct has room for: ``key=value`` with line breaks between."""
    return "\n".join(f"{key}={value}" for key, value in properties.items()) or None


def _ms(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp() * 1000)
