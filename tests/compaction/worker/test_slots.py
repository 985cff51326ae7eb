"""Worker slots: of which pools they are, what wakes them, and how they rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import CompactionRequest
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.job import BackendLostError
from metastore.compaction.worker.slots import WorkerSlot, slots_by_pool
from metastore.config import Config
from metastore.schedule import Schedule, Service
from metastore.settings import SettingError
from metastore.store.database import Database
from metastore.store.leases import Lease, LeaseLostError
from tests.compaction.world import World


def test_pools_are_a_part_of_the_threads() -> None:
    config = CompactionConfig(worker_threads=4, worker_pools={"etl": 2, "batch": 1})
    assert slots_by_pool(config) == [None, "batch", "etl", "etl"]
    assert slots_by_pool(CompactionConfig(worker_threads=0)) == []
    with pytest.raises(SettingError, match=r"have 3 slots, but metastore.compactor.worker.threads is 2"):
        slots_by_pool(CompactionConfig(worker_threads=2, worker_pools={"etl": 3}))


def test_without_a_slot_for_everybody_somebody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert slots_by_pool(CompactionConfig(worker_threads=1, worker_pools={"etl": 1})) == ["etl"]
    assert "nobody here takes compactions without a pool" in caplog.text


def test_the_setting_has_hives_name() -> None:
    config = Config.parse(
        [
            "hive.compactor.worker.Batch.threads=2",
            "hive.metastore.compactor.worker.etl.threads=1",
            "metastore.compactor.worker.threads=5",
        ]
    )
    assert config.compaction.worker_pools == {"Batch": 2, "etl": 1}
    assert config.compaction.worker_threads == 5
    assert config.values()["hive.compactor.worker.*.threads"] == "Batch=2, etl=1"
    assert Config.parse([]).compaction.worker_pools == {}
    with pytest.raises(SettingError, match="whole number"):
        Config.parse(["hive.compactor.worker.etl.threads=two"])


def test_each_slot_takes_what_is_its_own(world: World) -> None:
    """A slot without a pool takes what has none, and what its pool has left waiting too long."""
    ids = {
        pool: world.service.compact(CompactionRequest(CompactionType.MAJOR, "db", f"t_{pool}", pool=pool)).id
        for pool in (None, "etl", "forgotten")
    }
    found = world.service.find_next("etl-slot", pool="etl")
    assert found is not None
    assert found.id == ids["etl"]
    assert world.service.find_next("etl-slot", pool="etl") is None
    found = world.service.find_next("slot")
    assert found is not None
    assert found.id == ids[None]
    assert world.service.find_next("slot") is None
    world.configure(worker_pool_timeout_ms=0)
    found = world.service.find_next("slot")
    assert found is not None
    assert found.id == ids["forgotten"]


class Worker:
    """Answers each run by the next of a list of outcomes."""

    def __init__(self, *outcomes: bool | Exception) -> None:
        self.outcomes = list(outcomes)

    def run_once(self) -> bool:
        outcome = self.outcomes.pop(0) if self.outcomes else False
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_a_slot_rests_longer_each_time() -> None:
    """What waits in the queue is not tried to death while Spark is away."""
    now = [0.0]
    lost = BackendLostError("no Spark")
    worker = Worker(lost, lost, lost, lost, True, lost)
    config = CompactionConfig(worker_sleep_ms=10_000, worker_max_sleep_ms=35_000)
    slot = WorkerSlot(worker, config, lambda: now[0])  # type: ignore[arg-type]
    rests = []
    while worker.outcomes:
        slot.run_once()
        assert slot.run_once() == 0
        begun = now[0]
        while worker.outcomes and (left := len(worker.outcomes)) and slot._rests_until > now[0]:
            now[0] += 1.0
            assert len(worker.outcomes) == left
        rests.append(now[0] - begun)
    assert rests == [10, 20, 35, 35, 0]
    assert slot._rests_until - now[0] == 10  # a success in between: it begins anew


def test_other_errors_are_the_schedules_to_tell() -> None:
    slot = WorkerSlot(Worker(ConnectionError("no database")), CompactionConfig())  # type: ignore[arg-type]
    with pytest.raises(ConnectionError):
        slot.run_once()
    assert slot.run_once() == 0
    lost = WorkerSlot(Worker(LeaseLostError("gone"), True), CompactionConfig())  # type: ignore[arg-type]
    with pytest.raises(LeaseLostError):
        lost.run_once()
    assert lost.run_once() == 1


@pytest.fixture
def scheduled(db: Database) -> Iterator[Callable[[Service], Schedule]]:
    made: list[Schedule] = []

    def start(service: Service) -> Schedule:
        made.append(Schedule([service], Lease(db, "here", 60_000)))
        made[-1].start()
        return made[-1]

    yield start
    for schedule in made:
        schedule.stop()


def test_waking_runs_a_service_now_and_once_more_if_it_runs(scheduled: Callable[[Service], Schedule]) -> None:
    runs, going, extra = threading.Semaphore(0), threading.Event(), 0
    going.set()

    def run() -> None:
        runs.release()
        assert going.wait(10)

    schedule = scheduled(Service("Worker", 3_600_000, run))
    assert runs.acquire(timeout=5)
    time.sleep(0.1)
    going.clear()
    begun = time.monotonic()
    schedule.wake("Worker")
    assert runs.acquire(timeout=5)
    assert time.monotonic() - begun < 1
    schedule.wake("Worker")  # in the middle of a run
    schedule.wake("Cleaner")
    going.set()
    assert runs.acquire(timeout=5)
    while runs.acquire(timeout=0.3):  # at most one more for each call
        extra += 1
    assert extra <= 2


def test_what_is_queued_wakes_workers(world: World) -> None:
    woken: list[int] = []
    service = type(world.service)(world.db, world.config, lambda: woken.append(1))
    request = CompactionRequest(CompactionType.MAJOR, "db", "t")
    answer = service.compact(request)
    assert len(woken) == 1
    assert not service.compact(request).accepted
    assert len(woken) == 1
    world.configure(claim_timeout_ms=0)
    assert world.service.find_next("worker-1") is not None
    requeueing = type(world.service)(world.db, world.config, lambda: woken.append(1))
    assert requeueing.requeue() == [(answer.id, CompactionState.INITIATED)]
    assert len(woken) == 2
