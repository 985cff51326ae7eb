"""A log on a fresh database."""

from collections.abc import Callable, Iterator

import pytest

from metastore.events.config import EventsConfig
from metastore.events.models import Event, EventType, Wanted
from metastore.events.recording import record
from metastore.events.service import EventLog
from metastore.store.database import Database

from .follower import Follower


class Writer:
    """Short ways to write to a log and to read it; what an event is called is its table."""

    def __init__(self, db: Database, log: EventLog) -> None:
        self.db, self.log = db, log

    def write(self, *names: str, database: str = "db", kind: EventType = EventType.CREATE_TABLE) -> None:
        """Several events in one database transaction."""
        with self.db.engine.begin() as connection:
            record(connection, *[event(name, database, kind) for name in names])

    def read(self, after_id: int = 0, at_most: int | None = None) -> list[tuple[int, str | None]]:
        return [(found.id, found.table) for found in self.log.events(Wanted(after_id), at_most)]


def event(name: str, database: str = "db", kind: EventType = EventType.CREATE_TABLE) -> Event:
    return Event(kind, database, name, {"name": name})


@pytest.fixture
def make_log(db: Database) -> Callable[..., EventLog]:
    return lambda **config: EventLog(db, EventsConfig(**config))


@pytest.fixture
def writer(db: Database, make_log: Callable[..., EventLog]) -> Writer:
    return Writer(db, make_log())


@pytest.fixture
def follower(metastore: Callable[..., str]) -> Iterator[Follower]:
    with Follower(metastore()) as client:
        client.create_database("db")
        yield client
