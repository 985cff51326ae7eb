"""The lease on background services: one holder at a time, and no change by one that has lost it."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from metastore.store.database import Database
from metastore.store.leases import Fenced, Lease, LeaseLostError
from tests.waiting import stays, until

LENGTH_MS = 60_000
SHORT_MS = 300


@pytest.fixture
def new_lease(db: Database) -> Iterator[Callable[..., Lease]]:
    made: list[Lease] = []

    def new(length_ms: int = LENGTH_MS) -> Lease:
        made.append(Lease(db, f"server{len(made) + 1}", length_ms))
        return made[-1]

    yield new
    for lease in made:
        lease.stop()


def test_one_server_holds_it_and_renews_it(db: Database, new_lease: Callable[..., Lease]) -> None:
    first, second = new_lease(), new_lease()
    assert first.compete()
    assert not second.compete()
    assert (first.is_held, second.is_held) == (True, False)
    before = row(db)
    assert not first.compete(), "it was not taken anew"
    after = row(db)
    assert after[:2] == before[:2]
    assert after[2] > before[2]  # type: ignore[operator]
    assert after[0].startswith("server1-")


def test_an_expired_one_is_taken_over_under_the_next_epoch(db: Database, new_lease: Callable[..., Lease]) -> None:
    first, second = new_lease(), new_lease()
    first.compete()
    expire(db)
    assert second.compete()
    assert row(db)[1] == 2
    assert not first.compete()
    assert not first.is_held


def test_one_that_was_renewed_before_the_clock_was_put_back_is_free_soon(
    db: Database, new_lease: Callable[..., Lease]
) -> None:
    first, second = new_lease(SHORT_MS), new_lease(SHORT_MS)
    assert first.compete()
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lease SET expires_at = expires_at + interval '1 hour'")
    assert not second.compete()
    first.compete()
    assert not second.compete()
    until(second.compete)


@pytest.mark.parametrize("is_released", [True, False])
def test_the_clock_was_put_back_while_nobody_had_it(
    db: Database, new_lease: Callable[..., Lease], is_released: bool
) -> None:
    """What was given up is free at once; of a killed one it is known when it had the lease, so times are put right."""
    first = new_lease(SHORT_MS)
    first.compete()
    if is_released:
        first.release()
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lease SET expires_at = expires_at + interval '5 hours'")
    second, third = new_lease(SHORT_MS), new_lease(SHORT_MS)
    started = time.monotonic()
    assert second.compete() == is_released
    if not is_released:
        until(lambda: second.compete() or third.compete())
        assert time.monotonic() - started >= 3 * SHORT_MS / 1000
    found = next(lease for lease in (second, third) if lease.is_held).first_look()
    (shown_ms,) = db.call("database_clock")[0]
    assert found is not None
    assert -5 * 3_600_000 - 10_000 < shown_ms - found.expected_ms() < -5 * 3_600_000 + 10_000


def test_a_late_renewal_is_fine_if_nobody_was_faster(db: Database, new_lease: Callable[..., Lease]) -> None:
    lease = new_lease()
    lease.compete()
    expire(db)
    assert not lease.compete()
    assert lease.is_held
    assert row(db)[1] == 1


@pytest.mark.parametrize("is_late", [True, False])
def test_a_time_in_which_nobody_had_it_is_known(db: Database, new_lease: Callable[..., Lease], is_late: bool) -> None:
    """No server ran, or none reached the database."""
    first = new_lease()
    first.compete()
    look = first.first_look()
    first.compete()
    assert first.first_look() is look
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lease SET expires_at = clock_timestamp() - interval '1 hour'")
    if is_late:
        first._trusted_until = 0
    taker = first if is_late else new_lease()
    assert taker.compete() != is_late
    found = taker.first_look()
    assert found is not None
    assert found is not look
    (shown_ms,) = db.call("database_clock")[0]
    assert 3_590_000 < shown_ms - found.expected_ms() < 3_610_000


def test_given_up_it_is_free_at_once(db: Database, new_lease: Callable[..., Lease]) -> None:
    first, second = new_lease(), new_lease()
    first.compete()
    first.stop()
    assert not first.is_held
    assert second.compete()
    assert row(db)[1] == 3, "an epoch of nobody's lies between, for what the first began and has not ended"


def test_a_lost_answer_is_given_again(db: Database) -> None:
    assert db.call("hold_lease", "services", "me", 0, LENGTH_MS) == [(1, "me")]
    assert db.call("hold_lease", "services", "me", 0, LENGTH_MS) == [(1, "me")]
    assert db.call("hold_lease", "services", "you", 0, LENGTH_MS) == [(None, "me")]


def test_what_was_begun_under_an_earlier_epoch_changes_nothing(db: Database, new_lease: Callable[..., Lease]) -> None:
    first, second = new_lease(), new_lease()
    first.compete()
    fenced = Fenced(db, first)
    with first.term():
        assert fenced.call_one("seed_write_id", "db", "before", 1) == (True,)
        expire(db)
        second.compete()
        with pytest.raises(LeaseLostError, match="not held under epoch 1"):
            fenced.call("seed_write_id", "db", "after", 1)
        with pytest.raises(LeaseLostError):
            first.check()
        # It comes to hold the lease again, but the run is of its first epoch.
        expire(db)
        first.compete()
        assert first.is_held
        with pytest.raises(LeaseLostError):
            fenced.call("seed_write_id", "db", "after", 1)
    assert db.call_one("get_max_write_id", "db", "after") == (0,)
    with first.term():
        assert fenced.call_one("seed_write_id", "db", "after", 1) == (True,)


def test_without_a_term_nothing_passes(db: Database, new_lease: Callable[..., Lease]) -> None:
    lease = new_lease()
    with pytest.raises(LeaseLostError), lease.term():
        pass
    lease.compete()
    with pytest.raises(LeaseLostError, match="does not hold"):
        Fenced(db, lease).call("seed_write_id", "db", "t", 1)


def test_an_expired_one_is_not_held_even_if_nobody_has_taken_it(db: Database, new_lease: Callable[..., Lease]) -> None:
    lease = new_lease()
    lease.compete()
    with lease.term():
        expire(db)
        with pytest.raises(LeaseLostError):
            Fenced(db, lease).call("seed_write_id", "db", "t", 1)


def test_a_take_over_waits_for_changes_under_way_a_renewal_does_not(
    db: Database, new_lease: Callable[..., Lease]
) -> None:
    first, second = new_lease(), new_lease()
    first.compete()
    at_work = db.dedicated_connection()
    at_work.autocommit = False
    with at_work.cursor() as cursor:
        cursor.execute("SELECT check_lease('services', 1)")
    first.compete()
    expire(db)
    taking = threading.Thread(target=second.compete)
    taking.start()
    taking.join(0.3)
    assert taking.is_alive()
    at_work.commit()
    at_work.close()
    taking.join(10)
    assert second.is_held


def test_the_timer_keeps_it_and_another_follows_a_paused_one(
    db: Database, new_lease: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = new_lease(SHORT_MS), new_lease(SHORT_MS)
    taken = threading.Event()
    first.start()
    until(lambda: first.is_held)
    second.start(taken.set)
    assert not taken.wait(3 * SHORT_MS / 1000), "it is renewed in time"
    awake = threading.Event()
    compete = first.compete
    monkeypatch.setattr(first, "compete", lambda: awake.wait(30) and compete())
    assert taken.wait(10)
    assert not first.is_held
    awake.set()
    stays(lambda: (first.is_held, second.is_held) == (False, True), SHORT_MS / 1000)


def test_a_killed_process_is_followed(db: Database, db_url: str, new_lease: Callable[..., Lease]) -> None:
    script = (
        "import signal, sys; from metastore.store.database import Database; from metastore.store.leases import Lease\n"
        "Lease(Database(sys.argv[1]), 'killed', 1000).start(lambda: print('held', flush=True)); signal.pause()"
    )
    process = subprocess.Popen([sys.executable, "-c", script, db_url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    lease = new_lease(1000)
    assert not lease.compete()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    lease.start()
    began = time.monotonic()
    until(lambda: lease.is_held)
    assert time.monotonic() - began < 2
    assert row(db)[1] == 2


def test_a_database_that_is_away_ends_it_and_it_comes_back(db: Database, new_lease: Callable[..., Lease]) -> None:
    lease = new_lease(SHORT_MS)
    lease.start()
    until(lambda: lease.is_held)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    renewed_at = row(db)[2]
    until(lambda: row(db)[2] > renewed_at)  # type: ignore[operator]
    until(lambda: lease.is_held)


def row(db: Database) -> tuple[str, int, object]:
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT holder, epoch, expires_at FROM lease").one()
    return found[0], found[1], found[2]


def expire(db: Database) -> None:
    """Let the lease's time be over."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lease SET expires_at = clock_timestamp() - interval '1 second'")
