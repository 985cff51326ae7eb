"""Sources by their names: ``thrift://host:port``, ``postgresql://user@host/name``, ``file:/path`` or a path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import hive_acid
from hive_acid.connection import DEFAULT_PORTS
from metastore.store.connections.address import without_password
from metastore.store.database import Database
from metastore.transfer.models import Source, TransferError
from metastore.transfer.sources.file import FileSource
from metastore.transfer.sources.hive_database import HiveDatabase
from metastore.transfer.sources.own import OwnSource
from metastore.transfer.sources.postgres import PostgresSource
from metastore.transfer.sources.thrift import ThriftSource

TIMEOUT_MS = 600_000
"""A Java metastore takes its time for thousands of partitions."""


@contextmanager
def source_of(place: str) -> Iterator[Source]:
    """The source that a command names, as long as the context. Raises HiveAcidError if it cannot be used."""
    scheme = place.partition("://")[0]
    if scheme in DEFAULT_PORTS:
        with hive_acid.connect(place, timeout_ms=TIMEOUT_MS) as connection:
            yield ThriftSource(connection)
    elif scheme in ("postgresql", "postgres"):
        with closing(HiveDatabase(place)) as hive:
            yield PostgresSource(hive)
    elif "://" in place or not place:
        shown = without_password(place) or "''"
        raise TransferError(f"{shown} is no source: give thrift://host:port, postgresql://user@host/name or a file")
    else:
        path = Path(place.removeprefix("file:"))
        if not path.is_file():
            shown = without_password(str(path))
            raise TransferError(
                f"there is no file {shown}: give thrift://host:port, postgresql://… or the file of an export"
            )
        yield FileSource(path)


@contextmanager
def own_source(db: Database) -> Iterator[OwnSource]:
    """Our own database as it is at this instant."""
    engine = db.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with engine.connect() as connection:
        yield OwnSource(connection)
