"""A real server, and clients that name a host which takes connections and says nothing."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.filework import files
from metastore.filework.pools import FILE_SYSTEMS
from metastore.store.database import Database
from tests.caller import Caller, Refused
from tests.catalog.conftest import Rpc, make_catalog, storage, table, warehouse

__all__ = ["make_catalog", "warehouse"]  # fixtures
pytest.importorskip("hdfs_native")
CLIENTS = 24
"""More than a server has threads."""


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a host that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield listener.getsockname()[1]


def test_a_silent_file_system_stops_nobody_else(metastore: Callable[..., str], silent: int, tmp_path: Path) -> None:
    uri = metastore(**{"metastore.filesystem.timeout": "3s"})
    outcomes: list[str] = []

    def attack(number: int) -> None:
        with Caller(uri) as mallory:
            try:
                location = f"hdfs://127.0.0.1:{silent}/x/{number}"
                mallory.call("create_table", table(f"m{number}", sd=storage(location=location)))
            except Refused as error:
                outcomes.append(str(error))

    attackers = [threading.Thread(target=attack, args=(number,)) for number in range(CLIENTS)]
    with Caller(uri) as ann:
        ann.call("get_all_databases")
        started = time.monotonic()
        for attacker in attackers:
            attacker.start()
        waits = []
        number = 0
        while any(attacker.is_alive() for attacker in attackers):
            for method, *arguments in (
                ("getStatus",),
                ("get_all_databases",),
                ("open_txns", ttypes.OpenTxnRequest(num_txns=1, user="ann", hostname="h")),
                ("create_table", table(f"t{number}")),
            ):
                called = time.monotonic()
                ann.call(method, *arguments)
                waits.append(time.monotonic() - called)
            number += 1
        assert time.monotonic() - started < 10
    assert len(outcomes) == CLIENTS
    assert all("answer" in outcome for outcome in outcomes), outcomes
    assert number > 3
    assert max(waits) < 1
    assert sorted(waits)[len(waits) * 9 // 10] < 0.25


def test_what_may_take_long_does_not_wait_long_for_a_silent_one(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FILE_SYSTEMS, "limit_ms", 300)
    for work in (files.list_tree, files.remove, lambda location: files.list_trees([location, location])):
        started = time.monotonic()
        with pytest.raises(TimeoutError, match=r"has not answered within 0\.3 s"):
            work(f"hdfs://127.0.0.1:{silent}/x")
        assert time.monotonic() - started < 3


def test_a_drop_there_ends_and_its_removal_keeps_no_other_one(
    make_catalog: Callable[..., CatalogService],
    db: Database,
    warehouse: Path,
    silent: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = make_catalog()
    rpc = Rpc(catalog)
    monkeypatch.setattr(FILE_SYSTEMS, "limit_ms", 500)
    for name in ("t", "u"):
        rpc.create_table(table(name))
        with db.engine.begin() as connection:  # its host was there when it was made
            place = f"hdfs://127.0.0.1:{silent}/{name}"
            connection.exec_driver_sql(f"UPDATE tbl SET location = '{place}' WHERE name = '{name}'")
    started = time.monotonic()
    rpc.drop_table("default", "t", True)
    assert time.monotonic() - started < 3
    (left,) = catalog.removals.waiting()
    assert "has not answered" in (left.error or "")
    with pytest.raises(MetaError, match="under way"):  # it may still come to its end
        catalog.removals.forget(left.id)
    with db.engine.begin() as connection:
        for location in (f"hdfs://127.0.0.1:{silent}/v", f"file:{warehouse}/t", f"hdfs://127.0.0.1:{silent}/w"):
            connection.exec_driver_sql(
                "INSERT INTO directory_removal (location, only_if_empty, next_at)"
                f" VALUES ('{location}', false, clock_timestamp())"
            )
    started = time.monotonic()
    assert catalog.tidy() == 1
    assert time.monotonic() - started < 4
    assert not (warehouse / "t").exists()
    assert len(catalog.removals.waiting()) == 3
