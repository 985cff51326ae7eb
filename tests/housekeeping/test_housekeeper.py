"""Time-outs (transactions.md §9, 13 and 50)."""

import time

import psycopg2
import pytest

from hive_acid.errors import TxnAbortedError
from hive_acid.ids import LockId, TxnId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.clock import Look
from metastore.store.database import Database
from metastore.store.leases import Lease
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType

OWNER = TxnOwner("ann", "host1")


@pytest.fixture
def txns(db: Database) -> TxnService:
    return TxnService(db, TxnConfig())


@pytest.fixture
def locks(db: Database) -> LockService:
    return LockService(db)


def test_txn_without_heartbeat_is_aborted(db: Database, txns: TxnService) -> None:
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig())
    silent, alive, replicated = (
        txns.open_txns(1, OWNER, kind)[0] for kind in (TxnType.READ_ONLY, TxnType.DEFAULT, TxnType.REPL_CREATED)
    )
    age(db, "txn", 301)
    txns.heartbeat(alive)
    db.wait(txns.heartbeats.flush())
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
    freed: set[LockId] = set()
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), freed.update)
    txn_id = txns.open_txns(1, OWNER)[0]

    def lock(name: str, in_txn: TxnId | None) -> LockResult:
        return locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, name),), OWNER, in_txn))

    silent = lock("silent", None)
    alive, held = lock("alive", None), lock("held", txn_id)
    age(db, "lock_component", 301)
    txns.heartbeat(None, alive.lock_id)
    assert keeper.run_once().expired_locks == 1
    assert {info.lock_id for info in locks.show_locks()} == {alive.lock_id, held.lock_id}
    assert freed == {silent.lock_id}


def test_locks_expire_in_batches_and_as_a_whole(db: Database, locks: LockService) -> None:
    components = tuple(LockComponent(LockType.SHARED_READ, "db", f"t{i}") for i in range(5))
    for _ in range(3):
        locks.lock(LockRequest(components, OWNER))
    age(db, "lock_component", 301)
    keeper = AcidHouseKeeper(db, HousekeepingConfig(purge_batch=2), TxnConfig())
    assert keeper.run_once().expired_locks == 3
    assert locks.show_locks() == []


def test_one_heartbeated_at_this_moment_is_passed_over(db: Database, txns: TxnService) -> None:
    beaten, silent = txns.open_txns(2, OWNER)
    age(db, "txn", 301)
    heartbeat = db.dedicated_connection()
    heartbeat.autocommit = False
    with heartbeat.cursor() as cursor:
        cursor.execute("UPDATE txn SET heartbeat_at = clock_timestamp() WHERE txn_id = %s", (beaten,))
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig())
    assert keeper.run_once().timed_out_txns == 1
    heartbeat.commit()
    heartbeat.close()
    assert txns.get_open_txns().open_ids == [beaten]
    assert txns.get_open_txns().aborted_ids == [silent]


def test_what_has_outlived_its_transaction_goes(db: Database, txns: TxnService) -> None:
    opened, ended = txns.open_txns(2, OWNER)
    txns.commit_txn(ended)
    with db.engine.begin() as connection:
        for txn_id in (opened, ended):
            connection.exec_driver_sql("INSERT INTO repl_txn_map VALUES ('policy', %s, %s)", (txn_id, txn_id))
            connection.exec_driver_sql("INSERT INTO min_history_write_id VALUES (%s, 'db', 't', 1)", (txn_id,))
            connection.exec_driver_sql(
                "INSERT INTO materialization_rebuild_lock VALUES (%s, 'db', %s, now())", (txn_id, f"view{txn_id}")
            )
    assert AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig()).run_once().purged_dependents == 3
    for table in ("repl_txn_map", "min_history_write_id", "materialization_rebuild_lock"):
        with db.engine.connect() as connection:
            assert connection.exec_driver_sql(f"SELECT txn_id FROM {table}").scalars().all() == [opened]


def test_all_that_readers_have_left_goes_at_once(db: Database, txns: TxnService) -> None:
    """Each read leaves the names of its tables: more in a minute than one batch takes."""
    ended = txns.open_txns(5, OWNER)
    with db.engine.begin() as connection:
        for txn_id in ended:
            connection.exec_driver_sql("INSERT INTO min_history_write_id VALUES (%s, 'db', 't', 1)", (txn_id,))
    for txn_id in ended:
        txns.commit_txn(txn_id)
    assert AcidHouseKeeper(db, HousekeepingConfig(purge_batch=2), TxnConfig()).run_once().purged_dependents == 5


HOUR_MS = 3_600_000


class Moved:
    """A database whose clock has been put forward, or back, since it was seen: so heartbeats look old, or new."""

    def __init__(self, db: Database, by_ms: int) -> None:
        self.db = db
        (shown_ms,) = db.call("database_clock")[0]
        self.seen = Look(time.monotonic(), shown_ms - by_ms)
        for table in ("txn", "lock_component"):
            age(db, table, by_ms // 1000)

    def keeper(self, config: TxnConfig) -> AcidHouseKeeper:
        return AcidHouseKeeper(self.db, HousekeepingConfig(), config, first_look=lambda: self.seen)


@pytest.mark.parametrize("by_ms", [HOUR_MS, 72 * HOUR_MS, -HOUR_MS])
def test_when_the_clock_is_put_forward_or_back_silence_begins_anew(
    db: Database, txns: TxnService, locks: LockService, by_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = (TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.REPL_CREATED)
    alive, dead, _ = (txns.open_txns(1, OWNER, kind)[0] for kind in kinds)
    locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, "d"),), OWNER))
    keeper = Moved(db, by_ms).keeper(TxnConfig())
    run = keeper.run_once()
    assert (run.timed_out_txns, run.expired_locks) == (0, 0)
    assert "clock of the database moved" in caplog.text
    assert [since_ms // 1000 for since_ms in silences_ms(db)] == [0] * 4
    age(db, "txn", 301)
    age(db, "lock_component", 301)
    txns.heartbeat(alive)
    db.wait(txns.heartbeats.flush())
    run = keeper.run_once()
    assert (run.timed_out_txns, run.expired_locks) == (1, 1)
    with pytest.raises(TxnAbortedError):
        txns.commit_txn(dead)
    txns.commit_txn(alive)


def test_it_is_put_forward_between_a_look_and_the_time_out(db: Database, txns: TxnService) -> None:
    txns.open_txns(1, OWNER)
    (shown_ms,) = db.call("settle_clock", None, 2000)[0][:1]
    age(db, "txn", 3600)
    assert db.call("expire_txns", 300_000, 300_000, "silent", 10, shown_ms - HOUR_MS) == [([], [])]
    assert db.call("expire_txns", 300_000, 300_000, "silent", 10, shown_ms)[0][0] != []


@pytest.mark.parametrize("by_ms", [0, 1500, -1500])
def test_a_clock_that_is_adjusted_a_little_lets_nobody_live_longer(db: Database, txns: TxnService, by_ms: int) -> None:
    txns.open_txns(1, OWNER)
    age(db, "txn", 310)
    assert Moved(db, by_ms).keeper(TxnConfig()).run_once().timed_out_txns == 1


def test_heartbeats_from_the_future_are_corrected_by_a_server_that_saw_no_jump(db: Database, txns: TxnService) -> None:
    txns.open_txns(1, OWNER)
    age(db, "txn", -3600)
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig())
    assert keeper.run_once().timed_out_txns == 0
    age(db, "txn", 301)
    assert keeper.run_once().timed_out_txns == 1


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
def test_nobody_was_silent_while_no_server_ran(db: Database, txns: TxnService, by_ms: int) -> None:
    """The clock was put forward or back meanwhile, or it was just long: who is alive has not been heard yet."""
    txns.open_txns(1, OWNER)
    former = Lease(db, "former", 300_000)
    former.compete()
    former.release()
    age(db, "txn", by_ms // 1000)
    with db.engine.begin() as connection:
        moved = "UPDATE lease SET expires_at = expires_at - make_interval(secs => %s)"
        connection.exec_driver_sql(moved, (by_ms // 1000,))
    lease = Lease(db, "server", 300_000)
    lease.compete()
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), first_look=lease.first_look)
    assert keeper.run_once().timed_out_txns == 0
    assert [since_ms // 1000 for since_ms in silences_ms(db)] == [0]
    age(db, "txn", 301)
    assert keeper.run_once().timed_out_txns == 1


def test_who_was_silent_while_another_server_ran_is_gone(db: Database, txns: TxnService) -> None:
    txns.open_txns(1, OWNER)
    age(db, "txn", 3600)
    other, lease = Lease(db, "other", 300_000), Lease(db, "server", 300_000)
    other.compete()
    assert not lease.compete()
    other.release()
    assert lease.compete()
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), first_look=lease.first_look)
    assert keeper.run_once().timed_out_txns == 1


def test_nobody_was_silent_while_the_database_was_away(
    db: Database, txns: TxnService, monkeypatch: pytest.MonkeyPatch
) -> None:
    txns.open_txns(1, OWNER)
    (shown_ms,) = db.call("database_clock")[0]
    age(db, "txn", 3600)
    seen = Look(time.monotonic() - 3600, shown_ms - HOUR_MS)
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), first_look=lambda: seen)
    with monkeypatch.context() as away:

        def call_one(*_: object) -> None:
            raise psycopg2.OperationalError("it is away")

        away.setattr(db, "call_one", call_one)
        for _ in range(2):
            with pytest.raises(psycopg2.OperationalError):
                keeper.run_once()
    assert keeper.run_once().timed_out_txns == 0
    age(db, "txn", 301)
    assert keeper.run_once().timed_out_txns == 1


def silences_ms(db: Database) -> list[int]:
    """How long ago the last heartbeat of each open transaction, and of each lock outside of them, seems to be."""
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT extract(epoch FROM clock_timestamp() - heartbeat_at) * 1000 FROM"
            " (SELECT heartbeat_at FROM txn WHERE state = 'o' UNION ALL"
            " SELECT heartbeat_at FROM lock_component WHERE txn_id = 0) AS both_kinds"
        )
        return [int(row[0]) for row in found]


def age(db: Database, table: str, seconds: int) -> None:
    """Let all heartbeats look older."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE {table} SET heartbeat_at = heartbeat_at - make_interval(secs => %s)", (seconds,)
        )
