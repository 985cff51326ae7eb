"""A real server, and clients that name a host which takes connections and says nothing."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, Refused
from tests.catalog.conftest import storage, table

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
