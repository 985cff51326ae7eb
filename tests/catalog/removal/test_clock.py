"""The database's clock is put forward or back: what is being removed, homes of dropped databases, the trash."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidOperationError
from metastore.catalog.removal import removals
from metastore.catalog.service import CatalogService
from metastore.filework import files
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.store.clock import ClockWatch, Look
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import Rpc, table
from tests.catalog.removal.test_homes import furnished
from tests.waiting import until

HOUR_S = 3600
TIMES = {
    "directory_removal": ("claimed_at", "next_at", "home_since"),
    "compaction": ("enqueued_at",),
    "dropped_table": ("purge_at",),
}


def put(db: Database, catalog: CatalogService, by_s: int) -> AcidHouseKeeper:
    """As if the clock had been put forward just now (or back), by so much; the services saw it before that."""
    catalog.removals.clock.look = saw = Look(time.monotonic(), db.call("database_clock")[0][0] - by_s * 1000)
    with db.engine.begin() as connection:
        for name, columns in TIMES.items():
            later = ", ".join(f"{column} = {column} - make_interval(secs => {by_s})" for column in columns)
            connection.exec_driver_sql(f"UPDATE {name} SET {later}")
    return AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), first_look=lambda: saw)


def test_a_directory_is_not_removed_twice_at_once(
    rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table took the place after the second removal, and the first went on in it."""
    rpc.create_table(table("t"))
    remove = files.remove
    begun, goes_on, others = threading.Event(), threading.Event(), list[str]()

    def slow(location: str, **named: Any) -> bool:
        if begun.is_set():
            others.append(location)
        else:
            begun.set()
            goes_on.wait(20)
        return remove(location, **named)

    monkeypatch.setattr(files, "remove", slow)
    monkeypatch.setattr(removals, "WAIT_S", 0.2)
    drop = threading.Thread(target=lambda: rpc.drop_table("default", "t", True))
    drop.start()
    try:
        assert begun.wait(10)
        put(db, catalog, HOUR_S)
        assert catalog.tidy() == 0
        assert others == []
        with pytest.raises(InvalidOperationError, match="still being removed"):
            Rpc(catalog).create_table(table("t"))
    finally:
        goes_on.set()
        drop.join()
    rpc.create_table(table("t"))
    assert (warehouse / "t").is_dir()


def test_what_somebody_was_at_who_is_gone_is_taken_up_later(
    rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rpc.create_table(table("t"))
    with monkeypatch.context() as killed:
        killed.setattr(catalog.removals, "run", lambda planned: 0)
        rpc.drop_table("default", "t", True)
    assert catalog.tidy() == 0
    put(db, catalog, HOUR_S)
    assert catalog.tidy() == 0
    monkeypatch.setattr(catalog.removals.clock, "_doubted_until", time.monotonic())
    assert catalog.tidy() == 1
    assert not (warehouse / "t").exists()


@pytest.mark.parametrize("hours", [5, 48, 720])
def test_a_claim_from_before_the_clock_was_put_back(
    rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    rpc.create_table(table("t"))
    with monkeypatch.context() as killed:
        killed.setattr(catalog.removals, "run", lambda planned: 0)
        rpc.drop_table("default", "t", True)
    put(db, catalog, -hours * HOUR_S)
    assert catalog.tidy() == 0
    monkeypatch.setattr(catalog.removals.clock, "_doubted_until", time.monotonic())
    assert catalog.tidy() == 1
    assert not (warehouse / "t").exists()


def test_what_only_looks_left_is_done_by_who_claimed_it(
    rpc: Rpc, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was put forward between the claim and the work: nobody did it for ten minutes."""
    rpc.create_table(table("t"))
    monkeypatch.setattr(removals, "CLAIM", "0 seconds")
    rpc.drop_table("default", "t", True)
    assert not (warehouse / "t").exists()


def test_a_rename_that_fails_then_takes_its_directory_back(
    rpc: Rpc, catalog: CatalogService, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rpc.create_table(table("t"))
    (warehouse / "t" / "data").write_text("row")

    def settle(*_: Any) -> None:
        monkeypatch.setattr(removals, "CLAIM", "0 seconds")
        raise InvalidOperationError("it took too long")

    monkeypatch.setattr(catalog.removals, "settle", settle)
    with pytest.raises(InvalidOperationError, match="too long"):
        rpc.alter_table("default", "t", table("u"))
    assert (warehouse / "t" / "data").read_text() == "row"


@pytest.mark.parametrize("seen", ["never", "at once", "and as late again"])
def test_what_came_into_the_home_of_a_dropped_database_stays(
    rpc: Rpc, catalog: CatalogService, db: Database, world: AcidWorld, seen: str
) -> None:
    """By a clock that was put back it looked older than the drop."""
    home = furnished(rpc, None)
    (home / "stray").write_text("was there at the drop")
    reader = world.begin()
    rpc.drop_database("e", True, True)
    keeper = put(db, catalog, -HOUR_S)
    (home / "new").write_text("somebody's")
    if seen != "never":
        keeper.run_once()
    if seen == "and as late again":
        put(db, catalog, HOUR_S + 60)
        os.utime(home / "new", (time.time() - HOUR_S,) * 2)
    world.txns.commit_txn(reader)
    world.clean()
    catalog.tidy()
    assert (home / "new").read_text() == "somebody's"
    assert not (home / "a").exists()


def test_a_home_that_is_left_behind_goes_when_the_clock_was_put_forward(
    rpc: Rpc, catalog: CatalogService, db: Database, world: AcidWorld
) -> None:
    home = furnished(rpc, None)
    (home / "stray").write_text("was there at the drop")
    os.utime(home / "stray", (time.time() - 2 * HOUR_S,) * 2)
    reader = world.begin()
    rpc.drop_database("e", True, True)
    put(db, catalog, HOUR_S).run_once()
    world.txns.commit_txn(reader)
    world.clean()
    catalog.tidy()
    assert not home.exists()


@pytest.mark.parametrize("by_s", [24 * HOUR_S, -24 * HOUR_S])
def test_what_is_in_the_trash_stays_as_long_as_it_was_to(
    make_catalog: Callable[..., CatalogService], db: Database, warehouse: Path, by_s: int
) -> None:
    catalog = make_catalog(undrop_window_ms=HOUR_S * 1000)
    rpc = Rpc(catalog)
    rpc.create_table(table("t"))
    (warehouse / "t" / "data").write_text("row")
    rpc.drop_table("default", "t", True)
    (kept,) = (warehouse / ".trash").iterdir()
    keeper = put(db, catalog, by_s)
    assert catalog.tidy() == 0
    keeper.run_once()
    with db.engine.begin() as connection:
        (left_s,) = connection.exec_driver_sql("SELECT extract(epoch FROM purge_at - now()) FROM dropped_table").one()
        assert HOUR_S - 60 < left_s <= HOUR_S
        catalog.removals.clock = ClockWatch(0)
        assert catalog.tidy() == 0
        assert (kept / "data").read_text() == "row"
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE dropped_table SET purge_at = now()")
    assert catalog.tidy() == 1
    assert not kept.exists()


def test_what_another_server_has_settled_is_not_settled_again(
    make_catalog: Callable[..., CatalogService], db: Database
) -> None:
    """It takes over long after the clock was put forward, which it has seen as well."""
    catalog = make_catalog(undrop_window_ms=HOUR_S * 1000)
    rpc = Rpc(catalog)
    rpc.create_table(table("t"))
    rpc.drop_table("default", "t", True)
    (shown_ms,) = db.call("database_clock")[0]
    terms = [Look(time.monotonic(), shown_ms)]
    keeper = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig(), first_look=lambda: terms[-1])
    keeper.run_once()
    keeper._look = Look(time.monotonic(), shown_ms - HOUR_S * 1000)
    terms.append(Look(time.monotonic(), shown_ms))
    keeper.run_once()
    keeper.run_once()
    with db.engine.begin() as connection:
        (left_s,) = connection.exec_driver_sql("SELECT extract(epoch FROM purge_at - now()) FROM dropped_table").one()
    assert HOUR_S - 60 < left_s <= HOUR_S
    terms.append(Look(time.monotonic(), shown_ms - HOUR_S * 1000))
    keeper.run_once()
    keeper.run_once()
    with db.engine.begin() as connection:
        (left_s,) = connection.exec_driver_sql("SELECT extract(epoch FROM purge_at - now()) FROM dropped_table").one()
    assert 2 * HOUR_S - 60 < left_s <= 2 * HOUR_S


def test_the_watch_forgets_what_is_long_ago(db: Database) -> None:
    watch = ClockWatch(1)
    with db.engine.connect() as connection:
        assert watch.trusted_ms(connection) is not None
        assert watch.look is not None
        watch.look = replace(watch.look, shown_ms=watch.look.shown_ms - 61_000)
        assert watch.trusted_ms(connection) is None
        assert watch.trusted_ms(connection) is None
        until(lambda: watch.trusted_ms(connection) is not None, 5)
        watch.look = replace(watch.look, shown_ms=watch.look.shown_ms + 59_000)
        assert watch.trusted_ms(connection) is not None
