"""Time-outs and purges (transactions.md §9, 13 and 50; §5)."""

from collections.abc import Callable

import pytest

from hive_acid.errors import NoSuchTxnError, TxnAbortedError
from hive_acid.ids import TxnId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from metastore.txn.write_ids import WriteIdService

OWNER = TxnOwner("ann", "host1")


@pytest.fixture
def txns(db: Database) -> TxnService:
    return TxnService(db, TxnConfig())


@pytest.fixture
def locks(db: Database) -> LockService:
    return LockService(db)


@pytest.fixture
def keeper(db: Database) -> AcidHouseKeeper:
    """Forgets finished transactions at once."""
    return AcidHouseKeeper(db, HousekeepingConfig(finished_retention_ms=0), TxnConfig())


@pytest.fixture
def update(db: Database, txns: TxnService, locks: LockService) -> Callable[..., TxnId]:
    """A transaction that updates a table, left open."""

    def begin(table: str = "t") -> TxnId:
        txn_id = txns.open_txns(1, OWNER)[0]
        WriteIdService(db).allocate("db", table, [txn_id])
        component = LockComponent(LockType.SHARED_WRITE, "db", table, None, Operation.UPDATE)
        locks.lock(LockRequest((component,), OWNER, txn_id))
        return txn_id

    return begin


def test_txn_without_heartbeat_is_aborted(db: Database, txns: TxnService) -> None:
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig())
    silent, alive, replicated = (
        txns.open_txns(1, OWNER, kind)[0] for kind in (TxnType.READ_ONLY, TxnType.DEFAULT, TxnType.REPL_CREATED)
    )
    age(db, "txn", 301)
    txns.heartbeat(alive)
    assert keeper.run_once().timed_out_txns == 1
    assert txns.get_open_txns([]).open_ids == [alive, replicated]
    with pytest.raises(TxnAbortedError):
        txns.commit_txn(silent)
    age(db, "txn", 12 * 86_400)
    assert keeper.run_once().timed_out_txns == 2


def test_time_outs_go_in_batches(db: Database, txns: TxnService) -> None:
    keeper = AcidHouseKeeper(db, HousekeepingConfig(timeout_batch=10), TxnConfig())
    txns.open_txns(35, OWNER)
    age(db, "txn", 301)
    assert keeper.run_once().timed_out_txns == 35
    assert {info.abort_reason for info in txns.get_open_txns_info()[1]} == {"heartbeat time-out"}


def test_locks_outside_of_transactions_expire(db: Database, txns: TxnService, locks: LockService) -> None:
    freed: list[set[str]] = []
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), lambda databases: freed.append(set(databases)))
    txn_id = txns.open_txns(1, OWNER)[0]

    def lock(name: str, in_txn: TxnId | None) -> LockResult:
        return locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, name),), OWNER, in_txn))

    lock("silent", None)
    alive, held = lock("alive", None), lock("held", txn_id)
    age(db, "lock_component", 301)
    txns.heartbeat(None, alive.lock_id)
    assert keeper.run_once().expired_locks == 1
    assert {info.lock_id for info in locks.show_locks()} == {alive.lock_id, held.lock_id}
    assert {"silent"} in freed


def test_write_set_is_kept_for_open_transactions(
    txns: TxnService, keeper: AcidHouseKeeper, update: Callable[..., TxnId]
) -> None:
    old, winner = update(), update()
    txns.commit_txn(winner)
    assert keeper.run_once().purged_write_set == 0
    with pytest.raises(TxnAbortedError, match="write conflict"):
        txns.commit_txn(old)
    assert keeper.run_once().purged_write_set == 1


def test_finished_transactions_are_forgotten(
    db: Database, txns: TxnService, keeper: AcidHouseKeeper, update: Callable[..., TxnId]
) -> None:
    committed = txns.open_txns(1, OWNER)[0]
    txns.commit_txn(committed)
    assert AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig()).run_once().purged_txns == 0
    txns.commit_txn(committed)
    aborted, dirty = txns.open_txns(1, OWNER)[0], update()
    txns.abort_txns([aborted, dirty])
    assert keeper.run_once().purged_txns == 2
    assert txns.get_open_txns().aborted_ids == [dirty]
    with pytest.raises(NoSuchTxnError):
        txns.commit_txn(committed)
    with db.engine.begin() as connection:  # what the Cleaner does when it has removed the files
        connection.exec_driver_sql("DELETE FROM txn_component")
    assert keeper.run_once().purged_txns == 1
    assert txns.get_open_txns().aborted_ids == []
    assert count(db, "write_id") == 0
    assert txns.get_open_txns().high_water_mark == 3


def test_committed_write_ids_are_forgotten_up_to_the_first_unsettled(
    db: Database, txns: TxnService, keeper: AcidHouseKeeper, update: Callable[..., TxnId]
) -> None:
    for _ in range(3):
        txns.commit_txn(update())
    reader = txns.open_txns(1, OWNER, TxnType.READ_ONLY)[0]
    for _ in range(2):
        txns.commit_txn(update())
    write_ids = WriteIdService(db)
    before = write_ids.get_valid(["db.t"])[0]
    keeper.run_once()
    assert count(db, "write_id") == 2  # the reader's snapshot needs to tell these two apart
    assert write_ids.get_valid(["db.t"])[0] == before
    opened, done = update(), update()
    txns.commit_txn(done)
    txns.commit_txn(reader)
    keeper.run_once()
    assert count(db, "write_id") == 2  # the open one, and the one above it
    seen = write_ids.get_valid(["db.t"])[0]
    assert (seen.high_water_mark, seen.invalid, seen.min_open) == (7, [6], 6)
    txns.commit_txn(opened, skip_conflict_check=True)
    keeper.run_once()
    assert count(db, "write_id") == 0
    assert write_ids.get_valid(["db.t"])[0].high_water_mark == 7
    assert write_ids.allocate("db", "t", [txns.open_txns(1, OWNER)[0]])[0][1] == 8


def test_running_twice_changes_nothing_more(
    db: Database, txns: TxnService, keeper: AcidHouseKeeper, update: Callable[..., TxnId]
) -> None:
    txns.commit_txn(update())
    age(db, "txn", 301)
    keeper.run_once()
    again = keeper.run_once()
    assert (again.timed_out_txns, again.expired_locks, again.purged_write_set, again.purged_write_ids) == (0, 0, 0, 0)


def age(db: Database, table: str, seconds: int) -> None:
    """Let all heartbeats look older."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE {table} SET heartbeat_at = heartbeat_at - make_interval(secs => %s)", (seconds,)
        )


def count(db: Database, table: str) -> int:
    with db.engine.connect() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() or 0)
