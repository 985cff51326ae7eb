"""A table on disk with the services behind it, and a server for tests of whole processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hive_acid.connection import Connection, connect
from metastore.store.database import Database
from tests.served import Served, served

from .world import World


@pytest.fixture
def world(db: Database, tmp_path: Path) -> World:
    return World(db, tmp_path)


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(postgres_url, template, tmp_path_factory.mktemp("server") / "warehouse") as running:
        yield running


@pytest.fixture(scope="module")
def connection(server: Served) -> Iterator[Connection]:
    with connect(server.uri) as made:
        made.create_database("db")
        yield made
