"""A metastore on a database of its own, for tests that share one server between many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from metastore.app import App, ServeOptions
from metastore.config import Config
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from tests.caller import Caller
from tests.databases import administer, copied, url_of

ALONE = {"metastore.lock.poll.wait": "0ms", "metastore.housekeeping.threads.on": "false"}
"""Settings of a server that does nothing by itself and answers at once."""


@dataclass(frozen=True)
class Served:
    """A running server: its address, its database, and the names of what nobody else uses."""

    uri: str
    db_url: str
    db: Database

    def caller(self, name: str = "ann") -> Caller:
        return Caller(self.uri, name)


@contextmanager
def migrated(directory: Path, template: str) -> Iterator[str]:
    """The URL of a Postgres of its own in `directory`, in which `template` is a migrated database."""
    with EmbeddedPostgres(directory / "postgres", settings={"fsync": "off"}) as url:
        administer(url, f"CREATE DATABASE {template}")
        db = Database(url_of(url, template))
        upgrade(db)
        db.close()
        yield url


@contextmanager
def served(
    postgres_url: str, template: str, warehouse: Path | str, settings: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Serve a fresh copy of the migrated database `template`; `settings` come on top of `ALONE`."""
    config = Config.parse([f"{key}={value}" for key, value in {**ALONE, **(settings or {})}.items()])
    with copied(postgres_url, template) as url:
        app = App(ServeOptions("127.0.0.1", 0, None, url, str(warehouse), config))
        db = Database(url)
        try:
            yield Served(app.start(), url, db)
        finally:
            app.stop()
            db.close()
