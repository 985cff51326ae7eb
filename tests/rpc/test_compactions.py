"""The RPCs of compactions: what goes over the wire (transactions.md §4.3, §11)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.compaction.config import CompactionConfig
from metastore.compaction.metrics import CompactionMetrics
from metastore.compaction.queue.service import CompactionService
from metastore.rpc.call import Call, Session
from metastore.rpc.handlers import compactions
from metastore.rpc.limits.workers import Workers
from metastore.store.database import Database

MINOR, MAJOR = ttypes.CompactionType.MINOR, ttypes.CompactionType.MAJOR


class Client:
    """Calls the handlers as the server does."""

    def __init__(self, db: Database) -> None:
        self._handlers = compactions.handlers(CompactionService(db, CompactionConfig()), CompactionMetrics(db), 200)
        self._session = Session("10.0.0.7", user="ann")

    def __getattr__(self, method: str) -> Any:
        with Workers(1) as workers:
            call = Call(method, self._session, workers)
        return lambda *args: self._handlers[method](call, *args)


@pytest.fixture
def client(db: Database) -> Client:
    return Client(db)


def request(kind: int = MINOR, **fields: object) -> Any:
    return ttypes.CompactionRequest(dbname="DB", tablename="T", type=kind, **fields)


def test_compact2(client: Client) -> None:
    first = client.compact2(request())
    assert (first.id, first.state, first.accepted, first.errormessage) == (1, "initiated", True, None)
    again = client.compact2(request(MAJOR))
    assert (again.id, again.state, again.accepted) == (-1, "refused", False)
    assert again.errormessage == "Compaction is already scheduled with state='initiated' and id=1"


def test_show_compact_of_a_waiting_one(client: Client) -> None:
    client.compact(request(MAJOR, partitionname="p=1", properties={"a": "b"}))
    (shown,) = client.show_compact(ttypes.ShowCompactRequest()).compacts
    assert (shown.dbname, shown.tablename, shown.partitionname) == ("db", "t", "p=1")
    assert (shown.type, shown.state, shown.poolName, shown.runAs) == (MAJOR, "initiated", "default", "ann")
    assert shown.initiatorId == "10.0.0.7-manual"
    assert (shown.endTime, shown.workerid, shown.start) == (None, None, None)
    assert abs(shown.enqueueTime - time.time() * 1000) < 60_000


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"id": 1}, 1),
        ({"id": 2}, 0),
        ({"dbName": "db"}, 1),
        ({"tbName": "u"}, 0),
        ({"state": "i"}, 1),
        ({"state": "w"}, 0),
        ({"type": MINOR}, 1),
        ({"type": MAJOR}, 0),
        ({"limit": 5, "order": "CC_START desc"}, 1),
        # As Hive 4's SHOW COMPACTIONS … ORDER BY starttime DESC, poolname sends it.
        ({"order": '"CC_START"\tDESC,"CC_POOL_NAME"\tASC'}, 1),
        ({"poolName": "default"}, 1),
        ({"poolName": "other"}, 0),
    ],
)
def test_show_compact_filters(client: Client, fields: dict[str, object], count: int) -> None:
    client.compact(request())
    assert len(client.show_compact(ttypes.ShowCompactRequest(**fields)).compacts) == count


@pytest.mark.parametrize(
    "fields", [{"state": "z"}, {"type": 9}, {"order": "1; DROP"}, {"order": "CC_ID desc, (SELECT 1)"}]
)
def test_show_compact_refuses_what_it_does_not_know(client: Client, fields: dict[str, object]) -> None:
    with pytest.raises(MetaError):
        client.show_compact(ttypes.ShowCompactRequest(**fields))


def test_life_of_a_foreign_worker(client: Client, db: Database) -> None:
    """As a worker in HiveServer2 calls."""
    client.compact(request(properties={"a": "b"}))
    assert client.find_next_compact2(ttypes.FindNextCompactRequest(workerId="hs2-1", poolName="other")).ci is None
    info = client.find_next_compact2(ttypes.FindNextCompactRequest(workerId="hs2-1", workerVersion="4.0.1")).ci
    assert (info.id, info.dbname, info.tablename, info.type, info.state) == (1, "db", "t", MINOR, "w")
    assert (info.workerId, info.properties) == ("hs2-1", "a=b")
    db.call("open_txns", [1], [3], ["hive"], ["hs2"], [""], [None], [], [], [], 1000)
    info.highestWriteId = 4
    client.update_compactor_state(info, 1)
    client.set_hadoop_jobid("job_1", info.id)
    client.mark_compacted(info)
    db.call("commit_txns", [1], [False], "")
    (shown,) = client.show_compact(ttypes.ShowCompactRequest()).compacts
    assert (shown.state, shown.txnId, shown.nextTxnId, shown.hightestWriteId) == ("ready for cleaning", 1, 1, 4)
    assert (shown.hadoopJobId, shown.workerVersion) == ("job_1", "4.0.1")
    (latest,) = client.get_latest_committed_compaction_info(
        ttypes.GetLatestCommittedCompactionInfoRequest(dbname="db", tablename="t")
    ).compactions
    assert (latest.id, latest.state) == (1, "r")
    client.mark_cleaned(info)
    (shown,) = client.show_compact(ttypes.ShowCompactRequest()).compacts
    assert shown.state == "succeeded"
    assert shown.endTime >= shown.start


@pytest.mark.parametrize(("method", "state"), [("mark_failed", "failed"), ("mark_refused", "refused")])
def test_bad_ends(client: Client, method: str, state: str) -> None:
    client.compact(request())
    info = client.find_next_compact("hs2-1").ci
    info.errorMessage = "no queue"
    getattr(client, method)(info)
    (shown,) = client.show_compact(ttypes.ShowCompactRequest()).compacts
    assert (shown.state, shown.errorMessage) == (state, "no queue")


def test_failure_without_an_id_did_not_initiate(client: Client) -> None:
    client.mark_failed(ttypes.CompactionInfoStruct(id=0, dbname="db", tablename="t", type=MAJOR, errorMessage="why"))
    (shown,) = client.show_compact(ttypes.ShowCompactRequest()).compacts
    assert (shown.state, shown.errorMessage) == ("did not initiate", "why")


def test_nothing_to_do(client: Client) -> None:
    assert client.find_next_compact("hs2-1").ci is None
    with pytest.raises(MetaError, match="must give its id"):
        client.find_next_compact("")


def test_abort(client: Client) -> None:
    client.compact(request())
    client.compact(request(partitionname="p=1"))
    client.find_next_compact("hs2-1")
    answer = client.abort_Compactions(ttypes.AbortCompactionRequest(compactionIds=[1, 2, 3])).abortedcompacts
    assert {number: (one.status, one.message) for number, one in answer.items()} == {
        1: ("Error", "Error while aborting compaction as compaction is in state-working"),
        2: ("Success", "Successfully aborted compaction"),
        3: ("Error", "No Such Compaction Id Available"),
    }


def test_type_of_the_cleaner_cannot_be_asked_for(client: Client) -> None:
    with pytest.raises(MetaError, match="Cleaner"):
        client.compact2(request(ttypes.CompactionType.ABORT_TXN_CLEANUP))
    with pytest.raises(MetaError, match="no compaction type"):
        client.compact2(request(42))
