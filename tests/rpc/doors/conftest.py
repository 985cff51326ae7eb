"""A CA, its certificate for this machine, and servers behind doors."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid.connection import Connection
from metastore.config import Config
from metastore.rpc.doors.doors import Doors
from tests.authority import Authority, Pair
from tests.rpc.test_server import Running, base_handlers

NAMES = ("DNS:localhost", "IP:127.0.0.1")


@pytest.fixture(scope="session")
def pair(authority: Authority) -> Pair:
    return authority.issue("metastore", *NAMES)


@pytest.fixture
def guarded(pair: Pair) -> Iterator[Callable[..., Running]]:
    """Servers with the settings of doors that are given; with TLS if nothing else is said."""
    started: list[tuple[Running, Doors]] = []

    def start(*settings: str, handlers: Any = None, tls: bool = True, **limits: Any) -> Running:
        given = [*tls_settings(pair), *settings] if tls else list(settings)
        doors = Doors(Config.parse(given).doors)
        started.append((Running(handlers or base_handlers(), doors=doors, **limits), doors))
        return started[-1][0]

    yield start
    for server, doors in started:
        server.close()
        doors.close()


def tls_settings(pair: Pair) -> list[str]:
    return [f"{key}={value}" for key, value in pair.shown_by_a_server.items()]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines of the log about connections so far."""
    caplog.set_level("INFO", logger="metastore.rpc")
    return lambda: [one.getMessage() for one in caplog.records if one.getMessage().startswith("connection")]


def wrong_answers_to_threads(connection: Connection) -> list[str]:
    """What threads that share a connection have asked for and not got back."""
    wrong: list[str] = []

    def ask(name: str) -> None:
        wrong.extend(text for number in range(30) if connection.call("getOption", text := f"{name}{number}") != text)

    threads = [threading.Thread(target=ask, args=(f"t{number}-",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong
