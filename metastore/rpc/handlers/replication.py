"""RPCs of replication, and the parts of other RPCs that only a replay or an exactly-once stream uses.

What makes a request of open_txns, commit_txn, abort_txn or allocate_table_write_ids a special one is asked here, and
served here, on a worker thread; all others are hot.
"""

from __future__ import annotations

from typing import Any

from hive_acid.errors import MetaError
from hive_acid.ids import TxnId, WriteId
from hive_acid.wire import ttypes
from metastore.rpc.call import Call, Handler
from metastore.txn.commits import CommitExtras, CommitParameter, ExtendedCommits, ReplayedWrite, ReplicationState
from metastore.txn.models import TxnOwner
from metastore.txn.replication import ReplicationService


def is_replayed_opening(request: Any) -> bool:
    """Whether open_txns is asked to open what replays transactions of another warehouse, of type REPL_CREATED.

    Clients before 4.0 know no types: with them policy and sources say it.
    """
    if request.txn_type is None:
        return bool(request.replPolicy and request.replSrcTxnIds)
    return request.txn_type == ttypes.TxnType.REPL_CREATED and bool(request.replPolicy or request.replSrcTxnIds)


def is_replayed_end(request: Any) -> bool:
    """Whether commit_txn or abort_txn names a transaction of another warehouse.

    With a policy and the type DEFAULT it is the replication's own work in a transaction like any other, for which
    Hive writes no events (transactions.md §1.2).
    """
    return bool(request.replPolicy) and request.txn_type in (None, ttypes.TxnType.REPL_CREATED)


def is_replayed_allocation(request: Any) -> bool:
    """Whether allocate_table_write_ids is asked for the write ids that another warehouse has given."""
    return bool(request.replPolicy) and request.srcTxnToWriteIdList is not None


def is_extended(request: Any) -> bool:
    """Whether a commit carries more than a transaction of this warehouse."""
    return is_replayed_end(request) or any(
        field is not None for field in (request.keyValue, request.replLastIdInfo, request.writeEventInfos)
    )


def parameter_of(request: Any) -> CommitParameter | None:
    """What a commit sets of a table, if it does."""
    given = request.keyValue
    return CommitParameter(given.tableId, given.key, given.value) if given else None


class SpecialCalls:
    """The special requests of RPCs that are hot otherwise: Thrift structs in and out."""

    def __init__(self, replication: ReplicationService, commits: ExtendedCommits) -> None:
        self._replication = replication
        self._commits = commits

    def open_txns(self, request: Any) -> Any:
        """Open for a replay. Raises MetaError without a policy, or unless there is a source for each transaction."""
        if not request.replPolicy:
            raise MetaError("transactions of type REPL_CREATED replay those of a source: name its replPolicy")
        sources = list(request.replSrcTxnIds or ())
        if len(sources) != request.num_txns:
            raise MetaError(
                f"policy {request.replPolicy} asks for {request.num_txns} transactions and names {len(sources)} of the"
                " source: name one for each in replSrcTxnIds"
            )
        owner = TxnOwner(request.user or "", request.hostname or "", request.agentInfo or "Unknown")
        return ttypes.OpenTxnsResponse(txn_ids=self._replication.open_txns(request.replPolicy, sources, owner))

    def abort_txn(self, request: Any) -> None:
        """Abort for a replay."""
        self._replication.abort_txn(request.replPolicy, TxnId(request.txnid), request.errorCode)

    def commit_txn(self, request: Any) -> None:
        """Commit with extras, or for a replay, or both."""
        self._commits.commit_txn(TxnId(request.txnid), _extras(request), bool(request.exclWriteEnabled))

    def allocate_table_write_ids(self, request: Any) -> Any:
        """Allocate for a replay."""
        pairs = [(TxnId(pair.txnId), WriteId(pair.writeId)) for pair in request.srcTxnToWriteIdList or ()]
        given = self._replication.allocate(request.replPolicy, request.dbName, request.tableName, pairs)
        return ttypes.AllocateTableWriteIdsResponse(
            txnToWriteIds=[ttypes.TxnToWriteId(txnId=txn_id, writeId=write_id) for txn_id, write_id in given]
        )


def handlers(replication: ReplicationService) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def repl_tbl_writeid_state(call: Call, request: Any) -> None:
        owner = TxnOwner(request.user or "", request.hostName or "")
        replication.begin_table(
            request.validWriteIdlist, request.dbName, request.tableName, request.partNames or (), owner
        )

    def seed_txn_id(call: Call, request: Any) -> None:
        replication.seed_txn_ids(TxnId(request.seedTxnId))

    return {handler.__name__: handler for handler in (repl_tbl_writeid_state, seed_txn_id)}


def _extras(request: Any) -> CommitExtras:
    state = request.replLastIdInfo
    is_replay = is_replayed_end(request)
    return CommitExtras(
        policy=request.replPolicy if is_replay else None,
        parameter=parameter_of(request),
        state=ReplicationState(state.lastReplId, state.database, state.table, tuple(state.partitionList or ()))
        if state
        else None,
        writes=tuple(
            ReplayedWrite(event.database, event.table, event.partition or None, WriteId(event.writeId))
            for event in (request.writeEventInfos or () if is_replay else ())
        ),
    )
