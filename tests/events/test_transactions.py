"""Events of transactions: there when the setting asks for them, in the database transaction of what they tell."""

from collections.abc import Iterator

import pytest

from hive_acid.ids import TxnId, WriteId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import CompactionRequest
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.states import CompactionType
from metastore.events.models import RecordedEvent, Wanted
from metastore.events.service import EventLog
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.recording import switch_recording
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType
from metastore.txn.write_ids.service import WriteIdService

from .conftest import Writer

OWNER = TxnOwner("ann", "host1")


@pytest.fixture
def txns(db: Database) -> TxnService:
    return TxnService(db, TxnConfig())


@pytest.fixture
def recorded(db: Database, writer: Writer) -> Iterator[EventLog]:
    switch_recording(db, True)
    yield writer.log
    switch_recording(db, False)


def told(log: EventLog) -> list[tuple[str, dict[str, object]]]:
    return [(event.type, event.details) for event in log.events(Wanted(0))]


def test_without_the_setting_transactions_are_not_recorded(txns: TxnService, writer: Writer, db: Database) -> None:
    txns.commit_txn(txns.open_txns(1, OWNER)[0])
    assert writer.read() == []
    with db.engine.connect() as connection:
        query = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = 'txn'::regclass"
        assert connection.exec_driver_sql(query).scalar_one() == 0


def test_the_life_of_transactions(txns: TxnService, recorded: EventLog, db: Database) -> None:
    first, second = txns.open_txns(2, OWNER)
    WriteIdService(db).allocate("db", "t", [first, second])
    txns.commit_txn(first)
    txns.abort_txns([second])
    assert told(recorded) == [
        ("OPEN_TXN", {"txn_ids": [first, second]}),
        ("ALLOC_WRITE_ID_EVENT", {"txn_ids": [first, second], "write_ids": [1, 2]}),
        ("COMMIT_TXN", {"txn_id": first}),
        ("ABORT_TXN", {"txn_id": second, "databases": ["db"]}),
    ]
    allocated: RecordedEvent = recorded.events(Wanted(0))[1]
    assert (allocated.database, allocated.table) == ("db", "t")


def test_what_did_not_happen_is_not_told(txns: TxnService, recorded: EventLog, db: Database) -> None:
    txn_id = txns.open_txns(1, OWNER)[0]
    txns.commit_txn(txn_id)
    txns.commit_txn(txn_id)  # repeated, as after a lost connection
    other = txns.open_txns(1, OWNER)[0]
    txns.heartbeat(other)
    db.wait(txns.heartbeats.flush())
    assert [kind for kind, _ in told(recorded)] == ["OPEN_TXN", "COMMIT_TXN", "OPEN_TXN"]


def test_readers_are_not_told_of(txns: TxnService, recorded: EventLog) -> None:
    txns.commit_txn(txns.open_txns(1, OWNER, TxnType.READ_ONLY)[0])
    assert told(recorded) == []


def test_a_time_out_is_an_abort(txns: TxnService, recorded: EventLog, db: Database) -> None:
    txn_id = txns.open_txns(1, OWNER)[0]
    assert db.call_one("expire_txns", -1000, -1000, "nobody heartbeats", 10) is not None
    assert told(recorded)[-1] == ("ABORT_TXN", {"txn_id": txn_id, "databases": []})


def test_the_switch_may_be_repeated(txns: TxnService, writer: Writer, db: Database) -> None:
    for is_on in (True, True, False, False):
        switch_recording(db, is_on)
    txns.commit_txn(TxnId(txns.open_txns(1, OWNER)[0]))
    assert writer.read() == []


def test_a_compaction_that_commits(txns: TxnService, recorded: EventLog, db: Database) -> None:
    compactions = CompactionService(db, CompactionConfig())
    compactions.compact(CompactionRequest(CompactionType.MAJOR, "db", "t"))
    found = compactions.find_next("worker")
    assert found is not None
    txn_id = txns.open_txns(1, OWNER, TxnType.COMPACTION)[0]
    compactions.update_state(found.id, "worker", txn_id, WriteId(1))
    compactions.mark_compacted(found.id, "worker")
    txns.commit_txn(txn_id)
    assert told(recorded)[-2:] == [
        ("COMMIT_TXN", {"txn_id": txn_id}),
        (
            "COMMIT_COMPACTION_EVENT",
            {"txn_id": txn_id, "compaction_id": found.id, "type": "a", "partition_name": None},
        ),
    ]
