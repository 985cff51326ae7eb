"""Fixtures for all tests: one Postgres per session, a fresh migrated database per test."""

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
import pytest

from metastore.app import App, ServeOptions
from metastore.config import Config
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.migrate import upgrade
from tests.sampling import sampled

_names = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """See `tests.sampling`."""
    parser.addoption("--sample", type=int, metavar="DAY", help="of tests marked `sampled` only the variants of a day")


def pytest_report_header(config: pytest.Config) -> str | None:
    """How to play the same again."""
    day = config.getoption("sample")
    return None if day is None else f"tests marked `sampled`: those of --sample={day}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has another day."""
    day = config.getoption("sample")
    if day is not None:
        items[:], left_out = sampled(items, day)
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An embedded Postgres without fsync: the tests' data need not survive the machine."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), settings={"fsync": "off"}) as url:
        yield url


@pytest.fixture(scope="session")
def template(postgres_url: str) -> str:
    """Name of a migrated database to copy."""
    _admin(postgres_url, "CREATE DATABASE template_metastore")
    db = Database(url_of(postgres_url, "template_metastore"))
    upgrade(db)
    db.close()
    return "template_metastore"


@pytest.fixture
def db_url(postgres_url: str, template: str) -> Iterator[str]:
    """URL of a fresh migrated database of the test's own."""
    with fresh_database(postgres_url, template) as url:
        yield url


@contextmanager
def fresh_database(postgres_url: str, template: str) -> Iterator[str]:
    """URL of a migrated database that lasts as long as the body."""
    name = f"test_{next(_names)}"
    _admin(postgres_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield url_of(postgres_url, name)
    _admin(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def db(db_url: str) -> Iterator[Database]:
    """A fresh migrated database."""
    database = Database(db_url)
    yield database
    database.close()


@pytest.fixture
def metastore(db_url: str, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a metastore on the test's database, over a real socket; called with settings, returns its address."""
    apps: list[App] = []

    def start(**settings: str) -> str:
        config = Config.parse([f"{key}={value}" for key, value in settings.items()])
        options = ServeOptions("127.0.0.1", 0, None, db_url, str(tmp_path / "warehouse"), config)
        apps.append(App(options))
        return apps[-1].start()

    yield start
    for app in apps:
        app.stop()


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Commands that run in the tests' own process set up the log; afterwards it is pytest's again."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def url_of(postgres_url: str, database: str) -> str:
    """URL of another database of the same server."""
    return postgres_url.replace("/metastore?", f"/{database}?")


def _admin(url: str, statement: str) -> None:
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()
