"""Services of the compaction slice under the lease: one that has lost it changes nothing and removes nothing."""

from collections.abc import Iterator

import pytest

from hive_acid.filesystem import files
from metastore.compaction.cleaner.cleaner import Cleaner
from metastore.compaction.initiator.initiator import Initiator
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.worker import CompactionWorker
from metastore.store.database import Database
from metastore.store.leases import Fenced, Lease, LeaseLostError

from .world import World


class Servers:
    """The services of one server, fenced, and another server that may take the lease over."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lease, self.other = (Lease(world.db, name, 60_000) for name in ("first", "second"))
        self.lease.compete()
        self.fenced = CompactionService(Fenced(world.db, self.lease), world.config)

    def take_over(self) -> None:
        """The first server is paused for longer than the lease, and the other one follows."""
        with self.world.db.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE lease SET expires_at = clock_timestamp()")
        assert self.other.compete()

    def cleaner(self) -> Cleaner:
        world = self.world
        return Cleaner(self.fenced, world.snapshots, world.catalogue, world.config, self.lease.check)

    def worker(self) -> CompactionWorker:
        world = self.world
        return CompactionWorker(
            world.service,
            world.txns,
            world.snapshots,
            world.locks,
            world.catalogue,
            world.executor,
            world.config,
            "worker-1",
            heartbeat_ms=1000,
            queue=self.fenced,
        )


@pytest.fixture
def servers(db: Database, world: World) -> Iterator[Servers]:
    made = Servers(world)
    yield made
    made.lease.stop()
    made.other.stop()


def test_the_leader_works_as_usual(world: World, servers: Servers) -> None:
    world.write()
    world.write()
    answer = world.request()
    with servers.lease.term():
        assert servers.worker().run_once()
        assert servers.cleaner().run_once().cleaned == [answer.id]
    assert world.directories() == ["base_0000002_v0000003"]


def test_a_woken_cleaner_removes_nothing(world: World, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has looked what there is to remove, and is paused before it begins."""
    world.write()
    world.write()
    done = world.compact()
    before = world.directories()
    cleaner = servers.cleaner()
    remove = cleaner._remove

    def paused(*args: object) -> None:
        servers.take_over()
        remove(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(cleaner, "_remove", paused)
    with servers.lease.term(), pytest.raises(LeaseLostError):
        cleaner.run_once()
    assert world.directories() == before
    assert world.service.get(done.id).state is CompactionState.READY_FOR_CLEANING
    assert world.service.get(done.id).error_message is None, "and it counts as no failure"


def test_the_lease_is_asked_for_before_each_directory(
    world: World, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The take-over comes between two removals: the second one does not happen."""
    world.write()
    world.write()
    world.compact()
    before = world.directories()
    remove = files.remove

    def removed_and_paused(location: str) -> bool:
        gone = remove(location)
        servers.take_over()
        return gone

    with servers.lease.term(), monkeypatch.context() as patch:
        patch.setattr(files, "remove", removed_and_paused)
        with pytest.raises(LeaseLostError):
            servers.cleaner().run_once()
    assert len(world.directories()) == len(before) - 1


def test_a_cleaner_paused_behind_its_last_look_does_no_harm(
    world: World, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was allowed to remove and sleeps; another server cleans, clients write, and then it goes on."""
    world.write()
    world.write()
    done = world.compact()
    remove = files.remove

    def paused(location: str) -> bool:
        if not servers.other.is_held:
            servers.take_over()
            with servers.other.term():
                fenced = CompactionService(Fenced(world.db, servers.other), world.config)
                other = Cleaner(fenced, world.snapshots, world.catalogue, world.config, servers.other.check)
                assert other.run_once().cleaned == [done.id]
            world.write()
            world.compact()
            world.write()
        return remove(location)

    with servers.lease.term(), monkeypatch.context() as patch:
        patch.setattr(files, "remove", paused)
        with pytest.raises(LeaseLostError):
            servers.cleaner().run_once()
    assert len(world.read()) == 4


def test_a_woken_cleaner_marks_nothing_as_cleaned(
    world: World, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write()
    world.write()
    done = world.compact()
    cleaner = servers.cleaner()
    remove = cleaner._remove

    def removed_and_paused(*args: object) -> None:
        remove(*args)  # type: ignore[arg-type]
        servers.take_over()

    monkeypatch.setattr(cleaner, "_remove", removed_and_paused)
    with servers.lease.term(), pytest.raises(LeaseLostError):
        cleaner.run_once()
    assert world.service.get(done.id).state is CompactionState.READY_FOR_CLEANING
    with servers.other.term():
        fenced = CompactionService(Fenced(world.db, servers.other), world.config)
        other = Cleaner(fenced, world.snapshots, world.catalogue, world.config, servers.other.check)
        assert other.run_once().cleaned == [done.id]


def test_a_woken_initiator_queues_nothing(world: World, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    world.configure(delta_num_threshold=0)
    world.write()
    world.write()
    initiator = Initiator(servers.fenced, world.snapshots, world.catalogue, world.config, "initiator-1")
    looks = servers.fenced.looks
    candidates = looks.candidates

    def paused(*args: object) -> object:
        found = candidates(*args)  # type: ignore[arg-type]
        servers.take_over()
        return found

    monkeypatch.setattr(looks, "candidates", paused)
    with servers.lease.term(), pytest.raises(LeaseLostError):
        initiator.run_once()
    assert world.service.show() == []
    assert world.service.decisions("db", "t") == []


def test_a_woken_worker_claims_nothing_but_ends_what_it_has(world: World, servers: Servers) -> None:
    """Its claim and its transaction stand for themselves: hours of work are not lost with the leadership."""
    world.write()
    world.write()
    first = world.request(CompactionType.MAJOR)
    world.executor.before = lambda job, cancelled: servers.take_over()
    worker = servers.worker()
    with servers.lease.term():
        assert worker.run_once()
        assert world.service.get(first.id).state is CompactionState.READY_FOR_CLEANING
        world.write()
        second = world.request(CompactionType.MAJOR)
        with pytest.raises(LeaseLostError):
            worker.run_once()
    assert world.service.get(second.id).state is CompactionState.INITIATED
