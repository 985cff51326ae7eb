"""Fixtures for all tests: one Postgres per session, a fresh migrated database per test."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metastore.app import App, ServeOptions
from metastore.config import Config
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from tests.authority import Authority
from tests.databases import Databases, administer, url_of
from tests.sampling import TURN, Sample, sampled


def pytest_addoption(parser: pytest.Parser) -> None:
    """See `tests.sampling`."""
    parser.addoption("--sample", type=int, metavar="DAY", help="of tests marked `sampled` only the variants of a day")


def pytest_report_header(config: pytest.Config) -> str | None:
    """How to play the same again."""
    day = config.getoption("sample")
    return None if day is None else f"tests marked `sampled`: those of --sample={day}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has another day, and begin with the files of long tests: none is to be alone at the end."""
    day = config.getoption("sample")
    if day is not None:
        items[:], left_out = sampled(items, day)
        config.hook.pytest_deselected(items=left_out)
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample:
    """What the test's turn has of steps and cases of which there are many."""
    return Sample(request.node.stash.get(TURN, request.config.getoption("sample")))


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An embedded Postgres without fsync: the tests' data need not survive the machine.

    Nor does it look at tables by itself, after which it would plan otherwise.
    """
    settings = {"fsync": "off", "autovacuum": "off"}
    with EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), settings=settings) as url:
        yield url


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A CA for servers and clients."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def template(postgres_url: str) -> str:
    """Name of a migrated database to copy."""
    administer(postgres_url, "CREATE DATABASE template_metastore")
    db = Database(url_of(postgres_url, "template_metastore"))
    upgrade(db)
    db.close()
    return "template_metastore"


@pytest.fixture(scope="session")
def databases(postgres_url: str, template: str) -> Databases:
    """Copies of the migrated database."""
    return Databases(postgres_url, template)


@pytest.fixture
def db_url(databases: Databases) -> Iterator[str]:
    """URL of a migrated database of the test's own, in which nothing has happened."""
    with databases.one() as url:
        yield url


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
