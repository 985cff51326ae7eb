"""A server behind a proxy that checks its replies, and the JVMs of the releases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.checking import CheckingProxy, checked
from tests.clients.java.client import JavaHive
from tests.clients.java.maven import HIVE_3, HIVE_4, NotFetchedError, jars_of
from tests.clients.java.process import PYSPARK_JARS
from tests.clients.walks import Walk
from tests.served import Served, served

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests here, each of which has databases of its own."""
    with served(postgres_url, template, tmp_path_factory.mktemp("clients") / "warehouse") as running:
        yield running


@pytest.fixture(scope="session")
def proxy(server: Served) -> Iterator[CheckingProxy]:
    with checked(server.uri) as running:
        yield running


@pytest.fixture(autouse=True)
def _replies_are_complete(proxy: CheckingProxy) -> Iterator[None]:
    yield
    problems, proxy.problems = proxy.problems, []
    assert not problems


@pytest.fixture(scope="session")
def hive_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], JavaHive]]:
    """The release of a generation, 2, 3 or 4; skips when it is not on this machine and cannot be fetched."""
    running: dict[int, JavaHive] = {}
    missing: dict[int, str] = {}  # a network that does not answer is waited for once
    with ExitStack() as stack:

        def hive(generation: int) -> JavaHive:
            if generation in missing:
                pytest.skip(missing[generation])
            if generation not in running:
                try:
                    jars = jars_of_generation(generation)
                except NotFetchedError as error:
                    missing[generation] = str(error)
                    pytest.skip(missing[generation])
                made = JavaHive(generation, jars, tmp_path_factory.mktemp(f"hive{generation}"))
                running[generation] = stack.enter_context(made)
            return running[generation]

        yield hive


@pytest.fixture
def walk_of(
    hive_of: Callable[[int], JavaHive], proxy: CheckingProxy, tmp_path: Path
) -> Iterator[Callable[[int], Walk]]:
    """A connected client of a generation, in a database of its own."""
    with ExitStack() as stack:

        def walk(generation: int) -> Walk:
            hive = hive_of(generation)
            client = hive.connect(proxy.uri)
            stack.callback(client.close)
            name = f"walk_{next(_numbers)}_of_{generation}"
            client.createDatabase(hive.struct("Database", name=name, description="", parameters={}))
            return Walk(hive, client, name, tmp_path, proxy.uri)

        yield walk


def jars_of_generation(generation: int) -> list[Path]:
    if generation == 2:
        return sorted(PYSPARK_JARS.glob("*.jar"))
    return jars_of(HIVE_3 if generation == 3 else HIVE_4)
