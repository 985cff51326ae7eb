"""Background services on several servers: each runs in one place, and a leader that was paused does no harm."""

import datetime
import threading
import time
from collections.abc import Iterator

import pytest

from hive_acid.ids import TxnId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.schedule import Schedule, Service
from metastore.store.database import Database
from metastore.store.leases import Fenced, Lease
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from tests.waiting import until

LENGTH_MS = 400


class Server:
    """A server's lease and schedule, with services made by the test."""

    def __init__(self, db: Database, name: str) -> None:
        self.lease = Lease(db, name, LENGTH_MS)
        self.fenced = Fenced(db, self.lease)
        self.runs: list[float] = []
        self.schedule: Schedule | None = None

    def start(self, *services: Service) -> None:
        self.schedule = Schedule(services or [Service("count", 50, self.count)], self.lease)
        self.schedule.start()

    def count(self) -> None:
        self.runs.append(time.monotonic())

    def stop(self) -> None:
        if self.schedule is not None:
            self.schedule.stop()
            self.schedule = None


@pytest.fixture
def servers(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Server]]:
    monkeypatch.setattr("metastore.schedule.FIRST_RUN_WITHIN_S", 0.0)
    both = Server(db, "first"), Server(db, "second")
    yield both
    for server in both:
        server.stop()


def test_each_service_runs_in_one_place_and_a_stopped_leader_is_followed(servers: tuple[Server, Server]) -> None:
    first, second = servers
    first.start()
    until(lambda: len(first.runs) >= 2)
    second.start()
    seen = len(first.runs)
    until(lambda: len(first.runs) >= seen + 5)
    assert second.runs == []
    first.stop()
    until(lambda: len(second.runs) >= 2)
    assert max(first.runs) < min(second.runs)


def test_a_service_is_due_when_the_lease_is_taken(servers: tuple[Server, Server]) -> None:
    """However long its interval; unless it asks for some delay."""
    first, _ = servers
    delayed: list[int] = []
    first.start(Service("hourly", 3_600_000, first.count), Service("later", 60_000, lambda: delayed.append(1), 60_000))
    until(lambda: len(first.runs) == 1)
    assert delayed == []


@pytest.mark.parametrize("hours", [-1, 1])
def test_services_go_on_when_the_clock_is_put_forward_or_back(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """APScheduler knows by the wall clock when they are due: it waited for an hour to come again."""
    first, _ = servers
    monkeypatch.setattr("metastore.schedule._LOOK_AT_CLOCK_S", 0.05)
    rare: list[float] = []
    first.start(Service("count", 50, first.count), Service("hourly", 7_200_000, lambda: rare.append(1)))
    until(lambda: len(first.runs) >= 2 and len(rare) == 1)
    moved = datetime.timedelta(hours=hours)

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.now(tz) + moved

    seconds = time.time
    monkeypatch.setattr("apscheduler.schedulers.base.datetime", Clock)
    monkeypatch.setattr("metastore.schedule.time.time", lambda: seconds() + moved.total_seconds())
    seen = len(first.runs)
    until(lambda: len(first.runs) >= seen + 5)
    assert len(rare) == 1


def test_a_run_that_wakes_another_service_while_the_server_stops(servers: tuple[Server, Server]) -> None:
    """APScheduler waits for runs with its locks held; what a run wakes then is not run, and nothing hangs."""
    first, _ = servers
    runs, stopping = threading.Event(), threading.Event()

    def run() -> None:
        runs.set()
        stopping.wait(10)
        assert first.schedule is not None
        time.sleep(0.2)  # the stop is under way
        first.schedule.wake("other")

    others: list[int] = []
    first.start(Service("wakes", 60_000, run), Service("other", 60_000, lambda: others.append(1), 60_000))
    assert runs.wait(10)
    assert first.schedule is not None
    stop = threading.Thread(target=first.schedule.stop, daemon=True)
    stop.start()
    stopping.set()
    stop.join(10)
    assert not stop.is_alive()
    assert others == []
    first.schedule = None


def test_a_paused_leader_that_wakes_up_changes_nothing(
    db: Database, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server stands still in the middle of a run, after it has looked and before it changes anything."""
    first, second = servers
    silent = open_silent(db)
    paused, awake = threading.Event(), threading.Event()
    ran: list[BaseException | None] = []
    compete = first.lease.compete

    def stand_still() -> None:
        monkeypatch.setattr(first.lease, "compete", lambda: awake.wait(30) and compete())
        paused.set()
        awake.wait(30)

    def keep_house() -> None:
        stand_still()
        try:
            AcidHouseKeeper(first.fenced, HousekeepingConfig(), TxnConfig()).run_once()
            ran.append(None)
        except BaseException as error:
            ran.append(error)
            raise

    first.start(Service("AcidHouseKeeper", 3_600_000, keep_house))
    assert paused.wait(10)
    second.start()
    until(lambda: len(second.runs) >= 1)
    awake.set()
    until(lambda: len(ran) == 1)
    assert type(ran[0]).__name__ == "LeaseLostError"
    assert TxnService(db, TxnConfig()).get_open_txns().open_ids == [silent], "it was not timed out by the first"
    with second.lease.term():
        keeper = AcidHouseKeeper(second.fenced, HousekeepingConfig(), TxnConfig())
        assert keeper.run_once().timed_out_txns == 1


def test_a_failing_service_is_tried_again(servers: tuple[Server, Server]) -> None:
    first, _ = servers

    def fail_twice() -> None:
        first.count()
        if len(first.runs) < 3:
            raise RuntimeError("not yet")

    first.start(Service("fails", 20, fail_twice))
    until(lambda: len(first.runs) >= 4)


def open_silent(db: Database) -> TxnId:
    """A transaction whose client has been gone for long."""
    (txn_id,) = TxnService(db, TxnConfig()).open_txns(1, TxnOwner("ann", "host1"))
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE txn SET heartbeat_at = heartbeat_at - interval '1 hour'")
    return txn_id
