"""The error table (transactions.md §1.10): each situation, the RPC that meets it, and what travels over Thrift.

The first table is of refusals, none of which changes anything; the second of repetitions and the like that succeed.
Together they call each method of transactions, locks and compactions. `INTERNAL` is a TApplicationException of type 6
with a text: all that is left for an error that the method does not declare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hive_acid.wire import ttypes
from tests.caller import INTERNAL, Caller, component

META, NO_TXN, ABORTED = "MetaException", "NoSuchTxnException", "TxnAbortedException"
NO_LOCK, TXN_OPEN = "NoSuchLockException", "TxnOpenException"
UNKNOWN = 999_999
T, C = ttypes.TxnType, ttypes.CompactionType


@dataclass(frozen=True)
class Stage:
    """What the situations are about; made once, and as it was at the end."""

    opened: int
    aborted: int
    committed: int
    reader: int
    lock: int
    lost_lock: int

    def state(self, ann: Caller) -> tuple[Any, ...]:
        listed = {txn_id: one.state for txn_id, one in ann.info().items() if txn_id <= self.reader}
        return listed, ann.max_write_id("d.t"), [one.lockid for one in ann.locks()]


@dataclass(frozen=True)
class Row:
    """One line of a table; `arguments` are made for the stage."""

    situation: str
    method: str
    arguments: Callable[[Stage], tuple[Any, ...]]
    kind: str = ""
    words: str = ""

    def __str__(self) -> str:
        return f"{self.method}-{self.situation}".replace(" ", "_")


# --- requests ---------------------------------------------------------------------------------------


def opening(number: int = 1, **fields: Any) -> Any:
    return ttypes.OpenTxnRequest(num_txns=number, user="ann", hostname="h", **fields)


def commit(txn_id: int | None, **fields: Any) -> Any:
    return ttypes.CommitTxnRequest(txnid=txn_id, **fields)


def abort(txn_id: int) -> Any:
    return ttypes.AbortTxnRequest(txnid=txn_id)


def beat(txn_id: int | None = None, lock_id: int | None = None) -> Any:
    return ttypes.HeartbeatRequest(txnid=txn_id, lockid=lock_id)


def partitions(txn_id: int, *names: str, operation: int | None = ttypes.DataOperationType.INSERT) -> Any:
    return ttypes.AddDynamicPartitions(
        txnid=txn_id, writeid=1, dbname="d", tablename="t", partitionnames=list(names), operationType=operation
    )


def allocation(*txn_ids: int, **fields: Any) -> Any:
    return ttypes.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=list(txn_ids), **fields)


def write_ids(*tables: str, **fields: Any) -> Any:
    return ttypes.GetValidWriteIdsRequest(fullTableNames=list(tables), **fields)


def seed(last: int, table: str = "t") -> Any:
    return ttypes.SeedTableWriteIdsRequest(dbName="d", tableName=table, seedWriteId=last)


def locks(txn_id: int | None, *components: Any) -> Any:
    return ttypes.LockRequest(component=list(components), txnid=txn_id, user="ann", hostname="h")


def wanted(**fields: Any) -> Any:
    """A shared lock on d.t whose fields are replaced by these."""
    plain = component("r d/t")
    for name, value in fields.items():
        setattr(plain, name, value)
    return plain


def compaction(kind: int = C.MAJOR, **fields: Any) -> Any:
    return ttypes.CompactionRequest(dbname="d", tablename="t", type=kind, **fields)


def info(compaction_id: int = UNKNOWN) -> Any:
    return ttypes.CompactionInfoStruct(id=compaction_id, dbname="d", tablename="t", type=C.MAJOR, workerId="w")


def metric(kind: int) -> Any:
    return ttypes.CompactionMetricsDataStruct(dbname="d", tblname="t", type=kind, metricvalue=1, version=1, threshold=9)


def source_ids(*pairs: tuple[int, int]) -> list[Any]:
    return [ttypes.TxnToWriteId(txnId=txn_id, writeId=write_id) for txn_id, write_id in pairs]


OVER, LATE, LOST = "already committed", "already aborted", f"No such transaction txnid:{UNKNOWN}"
TABLE_STATE = ttypes.ReplTblWriteIdStateRequest(
    validWriteIdlist="x", user="u", hostName="h", dbName="d", tableName="new"
)

REFUSALS = (
    # transactions.md §1.2
    Row("none", "open_txns", lambda s: (opening(0),), INTERNAL, "must be positive, not 0"),
    Row("less than none", "open_txns", lambda s: (opening(-3),), INTERNAL, "must be positive, not -3"),
    Row("unknown type", "open_txns", lambda s: (opening(txn_type=9),), INTERNAL, "no transaction type 9"),
    Row(
        "fewer sources than transactions",
        "open_txns",
        lambda s: (opening(2, replPolicy="d", replSrcTxnIds=[1], txn_type=T.REPL_CREATED),),
        INTERNAL,
        "names 1 of the source",
    ),
    Row(
        "sources without a policy",
        "open_txns",
        lambda s: (opening(replSrcTxnIds=[1], txn_type=T.REPL_CREATED),),
        INTERNAL,
        "name its replPolicy",
    ),
    # transactions.md §1.3
    Row("aborted", "heartbeat", lambda s: (beat(s.aborted),), ABORTED, LATE),
    Row("committed", "heartbeat", lambda s: (beat(s.committed),), NO_TXN, OVER),
    Row("unknown", "heartbeat", lambda s: (beat(UNKNOWN),), NO_TXN, LOST),
    Row("unknown lock", "heartbeat", lambda s: (beat(None, UNKNOWN),), NO_LOCK, f"No such lock: lockid:{UNKNOWN}"),
    Row("lock of an aborted one", "heartbeat", lambda s: (beat(None, s.lost_lock),), NO_LOCK, "No such lock"),
    Row("open with an unknown lock", "heartbeat", lambda s: (beat(s.opened, UNKNOWN),), NO_LOCK, "No such lock"),
    Row("aborted with a good lock", "heartbeat", lambda s: (beat(s.aborted, s.lock),), ABORTED, LATE),
    Row(
        "too long a range",
        "heartbeat_txn_range",
        lambda s: (ttypes.HeartbeatTxnRangeRequest(min=1, max=1001),),
        INTERNAL,
        "1001 transactions are too many",
    ),
    # transactions.md §1.4
    Row(
        "unknown type",
        "get_open_txns_req",
        lambda s: (ttypes.GetOpenTxnsRequest(excludeTxnTypes=[9]),),
        INTERNAL,
        "no transaction type 9",
    ),
    # transactions.md §1.5
    Row("aborted", "commit_txn", lambda s: (commit(s.aborted),), ABORTED, f"txnid:{{aborted}} {LATE}"),
    Row("unknown", "commit_txn", lambda s: (commit(UNKNOWN),), NO_TXN, LOST),
    Row("without its id", "commit_txn", lambda s: (commit(None),), INTERNAL, "CommitTxnRequest.txnid is required"),
    Row(
        "parameter of another name",
        "commit_txn",
        lambda s: (commit(s.opened, keyValue=ttypes.CommitTxnKeyValue(tableId=1, key="a", value="b")),),
        INTERNAL,
        "begin with _meta",
    ),
    Row(
        "parameter that is not there",
        "commit_txn",
        lambda s: (commit(s.opened, keyValue=ttypes.CommitTxnKeyValue(tableId=1, key="_meta", value="b")),),
        INTERNAL,
        "no parameter '_meta'",
    ),
    Row(
        "aborted with a parameter",
        "commit_txn",
        lambda s: (commit(s.aborted, keyValue=ttypes.CommitTxnKeyValue(tableId=1, key="_meta", value="b")),),
        ABORTED,
        LATE,
    ),
    Row(
        "replicated up to an event of no database",
        "commit_txn",
        lambda s: (commit(s.opened, replLastIdInfo=ttypes.ReplLastIdInfo(database="x", lastReplId=1)),),
        INTERNAL,
        "database x does not exist",
    ),
    # transactions.md §1.7
    Row("committed", "abort_txn", lambda s: (abort(s.committed),), NO_TXN, OVER),
    Row("unknown", "abort_txn", lambda s: (abort(UNKNOWN),), NO_TXN, LOST),
    Row("none", "abort_txns", lambda s: (ttypes.AbortTxnsRequest(txn_ids=[]),), NO_TXN, "is empty"),
    # transactions.md §1.8
    Row("aborted", "add_dynamic_partitions", lambda s: (partitions(s.aborted, "p=1"),), ABORTED, LATE),
    Row("committed", "add_dynamic_partitions", lambda s: (partitions(s.committed, "p=1"),), NO_TXN, OVER),
    Row("unknown", "add_dynamic_partitions", lambda s: (partitions(UNKNOWN, "p=1"),), NO_TXN, LOST),
    Row("read-only", "add_dynamic_partitions", lambda s: (partitions(s.reader, "p=1"),), INTERNAL, "read-only"),
    Row("no partition name", "add_dynamic_partitions", lambda s: (partitions(s.opened, "p"),), INTERNAL, "'p'"),
    Row(
        "a read",
        "add_dynamic_partitions",
        lambda s: (partitions(s.opened, "p=1", operation=ttypes.DataOperationType.SELECT),),
        INTERNAL,
        "writes nothing",
    ),
    # transactions.md §2.1
    Row("aborted", "allocate_table_write_ids", lambda s: (allocation(s.aborted),), ABORTED, LATE),
    Row("committed", "allocate_table_write_ids", lambda s: (allocation(s.committed),), NO_TXN, OVER),
    Row("unknown", "allocate_table_write_ids", lambda s: (allocation(UNKNOWN),), NO_TXN, LOST),
    Row("read-only", "allocate_table_write_ids", lambda s: (allocation(s.reader),), META, "read-only"),
    Row("none", "allocate_table_write_ids", lambda s: (allocation(),), META, "without naming a transaction"),
    Row("one of two", "allocate_table_write_ids", lambda s: (allocation(s.opened, s.aborted),), ABORTED, LATE),
    Row("again", "allocate_table_write_ids", lambda s: (allocation(s.aborted, reallocate=True),), ABORTED, LATE),
    Row(
        "no ids at the source",
        "allocate_table_write_ids",
        lambda s: (allocation(replPolicy="d", srcTxnToWriteIdList=source_ids((1, 0))),),
        META,
        "one, above 0, for each",
    ),
    # transactions.md §2.2
    Row("id of nobody", "get_valid_write_ids", lambda s: (write_ids("d.t", writeId=77),), META, r"write id 77.*d\.t"),
    Row("no table name", "get_valid_write_ids", lambda s: (write_ids("t"),), META, "not a table name"),
    Row(
        "no snapshot", "get_valid_write_ids", lambda s: (write_ids("d.t", validTxnList="x"),), META, "transaction list"
    ),
    # transactions.md §2.4
    Row("table has begun", "seed_write_id", lambda s: (seed(10),), META, "has write ids already"),
    Row("negative", "seed_write_id", lambda s: (seed(-1, "new"),), META, "cannot begin after -1"),
    Row("too low", "seed_txn_id", lambda s: (ttypes.SeedTxnIdRequest(seedTxnId=s.reader),), META, "high-water mark is"),
    Row("too high", "seed_txn_id", lambda s: (ttypes.SeedTxnIdRequest(seedTxnId=2**63 - 1),), META, "at most"),
    Row("no write-id list", "repl_tbl_writeid_state", lambda s: (TABLE_STATE,), INTERNAL, "not a write-id list"),
    Row("ended", "add_write_ids_to_min_history", lambda s: (s.committed, {"d.t": 1}), META, OVER),
    Row("no table name", "add_write_ids_to_min_history", lambda s: (s.opened, {"t": 1}), META, "not a table name"),
    # transactions.md §3
    Row("aborted", "lock", lambda s: (locks(s.aborted, wanted()),), ABORTED, LATE),
    Row("committed", "lock", lambda s: (locks(s.committed, wanted()),), NO_TXN, OVER),
    Row("unknown", "lock", lambda s: (locks(UNKNOWN, wanted()),), NO_TXN, LOST),
    Row("nothing", "lock", lambda s: (locks(s.opened),), INTERNAL, "without components"),
    Row("nothing outside of a transaction", "lock", lambda s: (locks(None),), INTERNAL, "without components"),
    Row("no operation", "lock", lambda s: (locks(s.opened, wanted(operationType=None)),), INTERNAL, "operationType"),
    Row("unknown type", "lock", lambda s: (locks(s.opened, wanted(type=9)),), INTERNAL, "no lock type 9"),
    Row("no database", "lock", lambda s: (locks(s.opened, wanted(dbname="")),), INTERNAL, "names a database"),
    Row(
        "partition without its table",
        "lock",
        lambda s: (locks(s.opened, wanted(tablename=None, partitionname="p=1")),),
        INTERNAL,
        "names a database",
    ),
    Row("no partition name", "lock", lambda s: (locks(s.opened, wanted(partitionname="p")),), INTERNAL, "'p'"),
    Row("read-only writes", "lock", lambda s: (locks(s.reader, component("w d/u u")),), INTERNAL, "read-only"),
    Row("unknown", "check_lock", lambda s: (ttypes.CheckLockRequest(lockid=UNKNOWN),), NO_LOCK, "No such lock"),
    Row(
        "of an aborted one",
        "check_lock",
        lambda s: (ttypes.CheckLockRequest(lockid=s.lost_lock, txnid=s.aborted),),
        ABORTED,
        LATE,
    ),
    Row("held", "unlock", lambda s: (ttypes.UnlockRequest(lockid=s.lock),), TXN_OPEN, "ends with it"),
    Row("no partition name", "show_locks", lambda s: (ttypes.ShowLocksRequest(partname="p"),), INTERNAL, "'p'"),
    # transactions.md §4
    Row("unknown type", "compact", lambda s: (compaction(9),), INTERNAL, "no compaction type 9"),
    Row("type of the Cleaner", "compact2", lambda s: (compaction(C.ABORT_TXN_CLEANUP),), INTERNAL, "Cleaner"),
    Row("no partition name", "compact2", lambda s: (compaction(partitionname="p"),), INTERNAL, "'p'"),
    Row("bad order", "show_compact", lambda s: (ttypes.ShowCompactRequest(order="1; DROP"),), INTERNAL, "ordered by"),
    Row("bad state", "show_compact", lambda s: (ttypes.ShowCompactRequest(state="z"),), INTERNAL, "state 'z'"),
    Row("no worker", "find_next_compact", lambda s: ("",), META, "must give its id"),
    Row("no worker", "find_next_compact2", lambda s: (ttypes.FindNextCompactRequest(),), META, "must give its id"),
    Row("unknown", "mark_compacted", lambda s: (info(),), META, f"compaction {UNKNOWN} is unknown"),
    Row("unknown", "mark_cleaned", lambda s: (info(),), META, "is unknown"),
    Row("unknown", "mark_failed", lambda s: (info(),), META, "is unknown"),
    Row("unknown", "mark_refused", lambda s: (info(),), META, "is unknown"),
    Row("unknown", "update_compactor_state", lambda s: (info(), s.opened), INTERNAL, "is unknown"),
    Row("unknown", "set_hadoop_jobid", lambda s: ("job", UNKNOWN), INTERNAL, "is unknown"),
    Row(
        "none", "abort_Compactions", lambda s: (ttypes.AbortCompactionRequest(compactionIds=[]),), INTERNAL, "is empty"
    ),
    Row("aborted", "submit_for_cleanup", lambda s: (compaction(), 1, s.aborted), META, LATE),
    Row("of another type", "submit_for_cleanup", lambda s: (compaction(), 1, s.opened), META, "SOFT_DELETE"),
    Row("unknown type", "update_compaction_metrics_data", lambda s: (metric(9),), META, "metric type 9"),
    Row(
        "unknown type",
        "remove_compaction_metrics_data",
        lambda s: (ttypes.CompactionMetricsDataRequest(dbName="d", tblName="t", type=9),),
        META,
        "metric type 9",
    ),
    # transactions.md §3.10
    Row("aborted", "get_lock_materialization_rebuild", lambda s: ("d", "v", s.aborted), INTERNAL, LATE),
)

SUCCESSES = (
    Row("nothing", "heartbeat", lambda s: (beat(),)),
    Row("both", "heartbeat", lambda s: (beat(s.opened, s.lock),)),
    Row("all sorts", "heartbeat_txn_range", lambda s: (ttypes.HeartbeatTxnRangeRequest(min=1, max=900),)),
    Row("backwards", "heartbeat_txn_range", lambda s: (ttypes.HeartbeatTxnRangeRequest(min=9, max=1),)),
    Row("committed", "commit_txn", lambda s: (commit(s.committed),)),
    Row("of no known source", "commit_txn", lambda s: (commit(5, replPolicy="x"),)),
    Row("aborted", "abort_txn", lambda s: (abort(s.aborted),)),
    Row(
        "none of them open",
        "abort_txns",
        lambda s: (ttypes.AbortTxnsRequest(txn_ids=[s.aborted, s.committed, UNKNOWN], errorCode=12),),
    ),
    Row("it has one", "allocate_table_write_ids", lambda s: (allocation(s.opened),)),
    Row(
        "of no known source",
        "allocate_table_write_ids",
        lambda s: (allocation(replPolicy="x", srcTxnToWriteIdList=source_ids((5, 1))),),
    ),
    Row("no table", "get_valid_write_ids", lambda s: (write_ids(),)),
    Row("never written", "get_valid_write_ids", lambda s: (write_ids("X.Y"),)),
    Row("no list of types", "get_open_txns_req", lambda s: (ttypes.GetOpenTxnsRequest(),)),
    Row("now", "get_open_txns", lambda s: ()),
    Row("now", "get_open_txns_info", lambda s: ()),
    Row("unknown", "get_latest_txnid_in_conflict", lambda s: (UNKNOWN,)),
    Row(
        "never written",
        "get_max_allocated_table_write_id",
        lambda s: (ttypes.MaxAllocatedTableWriteIdRequest(dbName="d", tableName="x"),),
    ),
    Row("nothing", "add_write_ids_to_min_history", lambda s: (s.committed, {})),
    Row("held", "check_lock", lambda s: (ttypes.CheckLockRequest(lockid=s.lock),)),
    Row("unknown", "unlock", lambda s: (ttypes.UnlockRequest(lockid=UNKNOWN),)),
    Row("of an aborted one", "unlock", lambda s: (ttypes.UnlockRequest(lockid=s.lost_lock),)),
    Row("unknown", "abort_Compactions", lambda s: (ttypes.AbortCompactionRequest(compactionIds=[UNKNOWN]),)),
    Row("no table", "find_columns_with_stats", lambda s: (info(),)),
    Row(
        "never compacted",
        "get_latest_committed_compaction_info",
        lambda s: (ttypes.GetLatestCommittedCompactionInfoRequest(dbname="d", tablename="t"),),
    ),
    Row("not the holder", "heartbeat_lock_materialization_rebuild", lambda s: ("d", "v", s.opened)),
)
