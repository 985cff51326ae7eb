"""No table grows without bound: each has an owner, and housekeeping keeps up with what clients do."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import CompactionRequest
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.states import CompactionType
from metastore.events.config import EventsConfig
from metastore.housekeeping.compaction_housekeeper import CompactionHouseKeeper
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.event_cleaner import EventCleaner
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.recording import switch_recording
from metastore.txn.states import Operation, TxnType

from .conftest import OWNER, Clients

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "architecture" / "rows.md"


class World:
    """Clients that do a bit of everything, and all housekeeping; time passes where the database keeps it."""

    def __init__(self, db: Database, clients: Clients) -> None:
        self.db, self.clients = db, clients
        config = HousekeepingConfig(finished_retention_ms=0)
        self.compactions = CompactionService(db, CompactionConfig())
        self.housekeepers = (
            AcidHouseKeeper(db, config, TxnConfig()),
            AcidTxnCleaner(db, config),
            CompactionHouseKeeper(db, config, self.compactions),
            EventCleaner(db, EventsConfig(retention_ms=0), config),
        )
        switch_recording(db, True)
        self.number = 0

    def round(self) -> None:
        """Each kind of end that a transaction, a lock or a compaction can come to, on several tables."""
        clients, locks = self.clients, self.clients.locks
        for table in ("t", "u"):
            clients.cycle(table)
            clients.cycle(table, Operation.INSERT)
            for partition in ("p=1", "p=2"):
                clients.cycle(table, Operation.DELETE, partition)
            clients.commit(clients.open(TxnType.READ_ONLY))
            both = clients.write(clients.write(None, "t"), "u")
            clients.commit(both)
        clients.txns.abort_txns([clients.open()])
        never_asked = clients.open()
        component = LockComponent(LockType.SHARED_WRITE, "db", "t", None, Operation.INSERT)
        locks.lock(LockRequest((component,), OWNER, never_asked))
        clients.commit(never_asked)
        locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, "db", "silent"),), OWNER))
        self.silence("lock_component", "txn_id = 0")
        silent = clients.open()
        self.silence("txn", f"txn_id = {silent}")
        self.compact()

    def compact(self) -> None:
        answer = self.compactions.compact(CompactionRequest(CompactionType.MINOR, "db", "t"))
        if answer.accepted:
            self.compactions.find_next("worker")
            self.compactions.mark_failed(answer.id, "no memory")

    def silence(self, table: str, which: str) -> None:
        with self.db.engine.begin() as connection:
            connection.exec_driver_sql(
                f"UPDATE {table} SET heartbeat_at = heartbeat_at - interval '1 hour'"
                f" WHERE state IN ('o', 'a') AND {which}"
            )

    def keep_house(self) -> None:
        for housekeeper in self.housekeepers:
            housekeeper.run_once()

    def rows(self) -> dict[str, int]:
        with self.db.engine.connect() as connection:
            return {
                table: int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() or 0)
                for table in tables(self.db)
            }


@pytest.fixture
def world(db: Database, clients: Clients) -> World:
    return World(db, clients)


def test_nothing_piles_up(world: World) -> None:
    assert_bounded(world)
    rows = world.rows()
    left = {table: rows[table] for table in ("txn", "write_id", "write_set", "txn_component", "lock_component")}
    assert set(left.values()) == {0}, "with nothing open all is gone"
    assert rows["completed_component"] <= 8


def test_nothing_piles_up_behind_an_old_transaction_and_an_unclean_abort(world: World) -> None:
    clients = world.clients
    clients.cycle("u")
    clients.write(None, "t")
    clients.txns.abort_txns([clients.write(None, "aborted")])
    assert_bounded(world)


def test_nothing_piles_up_behind_a_write_that_is_aborted_where_all_write(world: World) -> None:
    world.clients.txns.abort_txns([world.clients.write(None, "t")])
    assert_bounded(world)


def test_nothing_piles_up_behind_readers(world: World) -> None:
    abandoned = world.clients.open(TxnType.READ_ONLY)
    world.clients.cycle()
    reader = world.clients.open(TxnType.READ_ONLY)
    assert_bounded(world)
    world.silence("txn", f"txn_id = {abandoned}")
    world.keep_house()
    assert world.clients.txns.get_open_txns(()).open_ids == [reader]


def assert_bounded(world: World) -> None:
    """After as many rounds again there are no more rows than after the first few."""
    for _ in range(4):
        world.round()
        world.keep_house()
    few = world.rows()
    for _ in range(12):
        world.round()
        world.keep_house()
    many = world.rows()
    grown = {table: (few[table], many[table]) for table in many if many[table] > few[table]}
    # Where something is pinned one row more or less may be so.
    assert {table: sizes for table, sizes in grown.items() if sizes[1] > sizes[0] + 2} == {}


def test_a_burst_is_worked_off_in_one_run(db: Database, clients: Clients, count: Callable[[str], int]) -> None:
    """More than a batch of each."""
    reader = clients.open(TxnType.READ_ONLY)
    for _ in range(40):
        clients.cycle()
    config = HousekeepingConfig(finished_retention_ms=0, purge_batch=7)
    AcidTxnCleaner(db, config).run_once()
    assert count("write_set") == 0
    assert count("write_id") <= 40 // 7 + 1
    assert count("txn") == count("write_id") + 1
    clients.commit(reader)
    AcidTxnCleaner(db, config).run_once()
    assert (count("txn"), count("write_id")) == (0, 0)
    compactions = CompactionService(db, CompactionConfig())
    run = CompactionHouseKeeper(db, config, compactions).run_once()
    assert run.purged_duplicates == 39


def test_every_table_has_an_owner_in_the_document(db: Database) -> None:
    text = DOCUMENT.read_text().partition("<!-- tables: begin -->")[2].partition("<!-- tables: end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(tables(db))
    assert all(owner and end for _, owner, end in rows)


def tables(db: Database) -> list[str]:
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname = 'hive_acid'")
        return list(found.scalars())
