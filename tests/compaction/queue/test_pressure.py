"""Who writes is told when deltas pile up, and no call of a writer takes longer for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from hive_acid.connection import Connection, connect
from hive_acid.errors import UnknownMethodError
from hive_acid.transactions.heartbeats import Heartbeats
from hive_acid.transactions.pressure import ASK_AGAIN_S, WARN_AGAIN_S, Pressure
from hive_acid.wire import ttypes
from metastore.compaction.config import CompactionConfig
from metastore.compaction.queue.decisions import Decider, Look
from metastore.compaction.queue.looks import DeltaCount
from metastore.compaction.queue.service import CompactionService
from metastore.store.database import Database
from tests.waiting import until


@pytest.fixture
def client(metastore: Callable[..., str]) -> Iterator[Connection]:
    address = metastore(
        **{"metastore.housekeeping.threads.on": "false", "hive.compactor.active.delta.dir.threshold": "20"}
    )
    connection = connect(address)
    yield connection
    connection.close()


def crowd(db: Database, deltas: int, partition: str | None = None) -> None:
    """What the Initiator puts down after a look at the table."""
    service = CompactionService(db, CompactionConfig(crowded_deltas=20))
    service.looks.count_deltas([DeltaCount("db", "t", partition, 0, deltas, 0)])
    look = Look("db", "t", None, "no_auto_compaction", "the parameter of the table says so; set it to false")
    service.set_decisions([look], Decider.INITIATOR)


def ask(client: Connection, *names: str) -> list[tuple[object, ...]]:
    found = client.call("hive_acid_pressure", ttypes.HiveAcidPressureRequest(fullTableNames=list(names))).tables
    return [(one.tablename, one.partname, one.deltas, one.threshold, one.places, one.message) for one in found]


def test_only_tables_with_too_many_are_named(db: Database, client: Connection) -> None:
    assert ask(client, "db.t", "db.other") == []
    crowd(db, 20)
    assert ask(client, "db.t") == []
    crowd(db, 21)
    says = "the parameter of the table says so; set it to false"
    assert ask(client, "DB.T", "db.t", "db.other") == [("t", None, 21, 20, 1, says)]
    for number in range(5):
        crowd(db, 30 + number, f"p={number}")
    assert ask(client, "db.t") == [("t", "p=4", 34, 20, 6, says)]
    assert ask(client) == []


def commit(client: Connection, *, write: bool = True) -> None:
    with client.begin() as transaction:
        if write:
            transaction.write_id("db", "t")


def warnings(caplog: pytest.LogCaptureFixture, count: int) -> list[str]:
    """They come from another thread."""
    until(lambda: len(caplog.records) >= count)
    return [record.getMessage() for record in caplog.records]


def test_writers_are_warned(
    db: Database, client: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "hive_acid.transactions.pressure")
    now = 1000.0
    asked: list[int] = []

    class Counted(Heartbeats):
        def do_later(self, errand: Callable[[], None]) -> None:
            client.heartbeats.do_later(lambda: (errand(), asked.append(1))[1])

    client.pressure = Pressure(client, Counted(client), lambda: now)

    def settle(count: int) -> None:
        until(lambda: len(asked) >= count)
        assert len(asked) == count

    commit(client)
    settle(1)
    crowd(db, 312)
    commit(client)
    now += ASK_AGAIN_S - 1
    commit(client)
    settle(1)
    now += 1
    commit(client, write=False)
    settle(1)
    commit(client)
    (told,) = warnings(caplog, 1)
    settle(2)
    assert told == (
        "db.t has 312 deltas, more than 20: reading it is slow. Compaction: the parameter of the table says so; set it "
        "to false. Write fewer and larger transactions, give compactions more workers, or ask for one: "
        "ALTER TABLE db.t COMPACT 'major' (`metastore why db.t` tells more)"
    )
    now += WARN_AGAIN_S - 1
    commit(client)
    settle(2)
    now += 1
    crowd(db, 400, "p=1")
    commit(client)
    settle(3)
    assert warnings(caplog, 2)[1].startswith(
        "db.t/p=1 has 400 deltas, more than 20, and 1 more of its partitions have too many"
    )


def test_another_metastore_is_not_asked_again(
    client: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hive's does not know the call; trouble is no reason to disturb anybody."""
    calls: list[str] = []
    send = Connection.call

    def call(self: Connection, method: str, *args: object) -> object:
        calls.append(method)
        if method == "hive_acid_pressure":
            raise UnknownMethodError(f"Invalid method name: '{method}'")
        return send(self, method, *args)

    monkeypatch.setattr(Connection, "call", call)
    now = 0.0
    client.pressure = Pressure(client, client.heartbeats, lambda: now)
    for _ in range(3):
        commit(client)
        until(lambda: "hive_acid_pressure" in calls)
        now += ASK_AGAIN_S
    assert calls.count("hive_acid_pressure") == 1
    assert caplog.records == []


def test_a_closed_connection_has_told_all(db: Database, client: Connection, caplog: pytest.LogCaptureFixture) -> None:
    """So a program that writes once and ends is warned, too."""
    crowd(db, 312)
    commit(client)
    client.close()
    assert "db.t has 312 deltas" in caplog.text
