"""What a crash of Postgres takes, and that nobody is the worse for it: young transactions fail, ids stay unique."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from hive_acid.errors import TxnAbortedError
from hive_acid.ids import LockId, TxnId, WriteId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockType
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from metastore.txn.config import TxnConfig
from metastore.txn.models import TableWriteIds
from metastore.txn.replication import ReplicationService
from metastore.txn.service import TxnService
from metastore.txn.states import TIMEOUT_REASON, Operation, TxnType
from metastore.txn.write_ids.service import WriteIdService
from tests.txn.conftest import OWNER
from tests.waiting import until

pytestmark = pytest.mark.sampled


class World:
    """Services over a Postgres that can crash; nothing is flushed but by calls that flush."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.db = Database(url)
        upgrade(self.db)
        self.txns = TxnService(self.db, TxnConfig())
        self.write_ids = WriteIdService(self.db)
        self.locks = LockService(self.db)
        self.writer = 0
        self._stop_writing()

    def open(self, txn_type: TxnType = TxnType.DEFAULT) -> TxnId:
        return self.txns.open_txns(1, OWNER, txn_type)[0]

    def allocate(self, txn_id: TxnId, table: str = "t") -> WriteId:
        return self.write_ids.allocate("d", table, [txn_id])[0][1]

    def lock(self, txn_id: TxnId | None) -> LockId:
        component = LockComponent(LockType.SHARED_WRITE, "d", "t", None, Operation.UPDATE if txn_id else None)
        found = self.locks.lock(LockRequest((component,), OWNER, txn_id))
        assert found.answer is LockAnswer.ACQUIRED
        return found.lock_id

    def change(self, table: str = "t") -> WriteId:
        """A change that is committed, and with it flushed."""
        txn_id = self.open()
        write_id = self.allocate(txn_id, table)
        self.txns.commit_txn(txn_id)
        return write_id

    def table(self, name: str = "t") -> TableWriteIds:
        return self.write_ids.get_valid([f"d.{name}"])[0]

    def durability(self, txn_id: TxnId) -> str | None:
        rows = self.query(f"SELECT durability FROM txn WHERE txn_id = {txn_id}")
        return rows[0][0] if rows else None

    def forgotten(self) -> list[TxnId]:
        """Those that Postgres had no row of; they have one again."""
        rows = self.query("SELECT txn_id FROM txn WHERE state = 'o' AND agent_info LIKE 'may have been forgotten%%'")
        return [TxnId(row[0]) for row in rows]

    def query(self, text: str) -> list[tuple[Any, ...]]:
        with self.db.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(text)]

    def crash(self) -> None:
        """Kill a backend: Postgres ends all others and recovers from what is on disk."""
        victim = psycopg2.connect(self.url)
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        self._stop_writing()

    def _stop_writing(self) -> None:
        """Postgres' own writer of the log would flush what we do not, a moment later. Waits for a new one."""
        former = self.writer

        def is_new() -> bool:
            with contextlib.suppress(psycopg2.Error):
                self.writer = log_writer(self.url)
            return self.writer not in (0, former)

        until(is_new, told="no new walwriter")
        os.kill(self.writer, signal.SIGSTOP)


def log_writer(url: str) -> int:
    """The process that writes Postgres' log; 0 if there is none."""
    with contextlib.closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        return next((pid for (pid,) in cursor.fetchall()), 0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    # autovacuum would flush, too
    settings = {"autovacuum": "off", "checkpoint_timeout": "1h", "fsync": "off"}
    with EmbeddedPostgres(tmp_path / "postgres", settings) as url:
        world = World(url)
        yield world
        world.db.close()
        os.kill(world.writer, signal.SIGCONT)


def test_ids_that_a_crash_has_forgotten_are_not_given_out_again(world: World) -> None:
    committed = world.change()
    known = world.open()
    world.change("other")  # from here on nothing is flushed
    forgotten = [world.open() for _ in range(5)]
    write_ids = [world.allocate(txn_id) for txn_id in forgotten]
    lock_ids = [world.lock(txn_id) for txn_id in forgotten]
    world.crash()
    assert not set(forgotten) - set(world.forgotten())
    assert known not in world.forgotten()
    assert world.durability(known) == "l"
    later = world.open()
    assert later > forgotten[-1]
    assert world.lock(later) > max(lock_ids)
    assert world.allocate(later) > max(write_ids)
    for txn_id in forgotten:
        with pytest.raises(TxnAbortedError):
            world.txns.heartbeat(txn_id)
    # What clients may still write under these ids is not seen, while they may and after that.
    shown = world.table()
    assert set(write_ids) <= set(shown.invalid)
    assert committed not in shown.invalid
    assert set(write_ids).isdisjoint(shown.aborted)
    assert set(forgotten) <= set(world.forgotten())
    with pytest.raises(TxnAbortedError, match="crashed"):
        world.txns.commit_txn(forgotten[0])
    world.txns.commit_txn(later)
    world.db.call("expire_txns", 0, 0, TIMEOUT_REASON, 1000)
    assert set(write_ids) <= set(world.table().aborted)
    assert world.forgotten() == []
    # Their files go like those of any aborted transaction.
    recorded = world.query("SELECT write_id FROM txn_component WHERE db = 'd' AND tbl = 't' ORDER BY 1")
    assert set(write_ids) <= {row[0] for row in recorded}


def test_a_young_transaction_that_a_crash_may_have_robbed_fails(world: World) -> None:
    world.change()  # write ids of the table are reserved
    txn_id = world.open()
    world.change("other")  # flushes the opening as well
    write_id = world.allocate(txn_id)
    lock_id = world.lock(txn_id)
    world.crash()
    assert world.durability(txn_id) == "l"
    assert not world.query(f"SELECT 1 FROM write_id WHERE txn_id = {txn_id}")
    assert not world.query(f"SELECT 1 FROM lock_component WHERE lock_id = {lock_id}")
    for act in (
        lambda: world.txns.heartbeat(txn_id),
        lambda: world.allocate(txn_id),
        lambda: world.lock(txn_id),
    ):
        with pytest.raises(TxnAbortedError):
            act()
    assert world.txns.heartbeat_txn_range(txn_id, txn_id).aborted == {txn_id}
    with pytest.raises(TxnAbortedError, match="crashed"):
        world.txns.commit_txn(txn_id)
    with pytest.raises(TxnAbortedError, match="already aborted"):
        world.txns.commit_txn(txn_id)
    assert write_id in world.table().invalid


def test_a_transaction_that_was_kept_survives(world: World) -> None:
    txn_id = world.open()
    world.change("other")
    world.db.wait(world.txns.keeping.keep())  # sets it apart
    assert world.durability(txn_id) == "y"
    world.db.wait(world.txns.keeping.keep())
    assert world.durability(txn_id) == "d"
    write_id, lock_id = world.allocate(txn_id), world.lock(txn_id)
    world.crash()
    assert world.durability(txn_id) == "d"
    assert [row[0] for row in world.query(f"SELECT lock_id FROM lock_component WHERE txn_id = {txn_id}")] == [lock_id]
    world.txns.heartbeat(txn_id)
    world.txns.commit_txn(txn_id)
    assert write_id not in world.table().invalid


def test_a_heartbeat_keeps_a_transaction_too(world: World) -> None:
    """As when the server that opened it was killed."""
    txn_id = world.open()
    world.txns.heartbeat(txn_id)
    world.db.wait(world.txns.heartbeats.flush())
    assert world.durability(txn_id) == "d"
    write_id = world.allocate(txn_id)
    world.crash()
    assert world.allocate(txn_id) == write_id


def test_replicated_transactions_are_kept_from_the_start(world: World) -> None:
    replication = ReplicationService(world.db, TxnConfig())
    (txn_id,) = replication.open_txns("policy", [TxnId(7)], OWNER)
    world.crash()
    assert world.durability(txn_id) == "d"
    assert replication.open_txns("policy", [TxnId(7)], OWNER) == [txn_id]


def test_what_is_committed_stays(world: World) -> None:
    txn_id = world.open()
    write_id = world.allocate(txn_id)
    world.lock(txn_id)
    world.txns.commit_txn(txn_id)
    world.crash()
    world.txns.commit_txn(txn_id)  # a repetition is answered alike
    shown = world.table()
    assert write_id <= shown.high_water_mark
    assert write_id not in shown.invalid


def test_a_lock_outside_of_transactions_stays(world: World) -> None:
    lock_id = world.lock(None)
    world.crash()
    assert world.locks.check_lock(lock_id).answer is LockAnswer.ACQUIRED


def test_a_reader_holds_the_cleaner_back_until_it_can_know(world: World) -> None:
    reader = world.open(TxnType.READ_ONLY)
    world.change("other")
    forgotten = world.open(TxnType.READ_ONLY)
    world.crash()
    assert world.durability(reader) == "l"
    assert world.txns.get_open_txns(()).min_open == reader
    assert forgotten in world.forgotten()
    assert forgotten in world.txns.get_open_txns(()).open_ids
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(reader)


def test_reserved_write_ids_of_an_idle_table_are_given_back(world: World) -> None:
    busy, idle = world.open(), world.change("idle")
    write_id = world.allocate(busy, "busy")
    keeper = AcidHouseKeeper(world.db, HousekeepingConfig(), TxnConfig())
    assert keeper.run_once().returned_write_ids == 1
    assert keeper.run_once().returned_write_ids == 0
    world.crash()
    assert world.table("idle").invalid == []
    assert world.change("idle") == idle + 1
    assert world.change("busy") > write_id + 1


def test_of_two_crashes_each_is_recovered_from(world: World) -> None:
    seen: set[TxnId] = set()
    given: set[WriteId] = set()
    for _ in range(3):
        for _ in range(40):  # more than are reserved at a time
            txn_id = world.open()
            write_id = world.allocate(txn_id)
            assert txn_id not in seen
            assert write_id not in given
            seen.add(txn_id)
            given.add(write_id)
        world.crash()


def test_a_clean_restart_takes_nothing(tmp_path: Path) -> None:
    place = tmp_path / "postgres"
    with EmbeddedPostgres(place) as url:
        world = World(url)
        txn_id = world.open()
        write_id = world.allocate(txn_id)
        world.lock(txn_id)
        world.db.close()
        os.kill(world.writer, signal.SIGCONT)
    with EmbeddedPostgres(place) as url:
        db = Database(url)
        try:
            txns = TxnService(db, TxnConfig())
            txns.heartbeat(txn_id)
            assert txns.open_txns(1, OWNER)[0] == txn_id + 1
            assert WriteIdService(db).allocate("d", "t", [txn_id]) == [(txn_id, write_id)]
            txns.commit_txn(txn_id)
        finally:
            db.close()
