"""A server that is killed before a step of its work on the catalogue."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
from sqlalchemy import event

from metastore.catalog.config import CatalogConfig
from metastore.catalog.service import CatalogService
from metastore.filework import files
from metastore.store.database import Database
from tests.waiting import until


def killed_before(
    step: int,
    db_url: str,
    warehouse: Path,
    config: CatalogConfig,
    work: Callable[[CatalogService, Database], Any],
) -> bool:
    """Do work in a process of its own; whether that was killed before a step, and so has not come to the end.

    Steps are the ends of database transactions, and both sides of calls of the database's functions and of changes of
    files.
    """
    before = _backends(db_url)
    child = os.fork()
    if child == 0:
        try:
            _work(step, db_url, warehouse, config, work)
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    # What it had locked, others pass over until the Postgres has noticed.
    until(lambda: _backends(db_url) <= before, 20, "connections of the killed process stay")
    return os.WIFSIGNALED(status)


def _backends(db_url: str) -> set[int]:
    """The process ids of the connections to a database, but for that by which they are asked for."""
    with closing(psycopg2.connect(db_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return {pid for (pid,) in cursor.fetchall()}


def _work(
    step: int,
    db_url: str,
    warehouse: Path,
    config: CatalogConfig,
    work: Callable[[CatalogService, Database], Any],
) -> None:
    left = [step]

    def stepped(*_: Any) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            stepped()
            result = function(*args, **named)
            stepped()
            return result

        return called

    database = Database(db_url)
    event.listen(database.engine, "commit", stepped)
    for name in ("rename", "remove", "remove_empty"):
        setattr(files, name, around(getattr(files, name)))
    Database.call = around(Database.call)  # type: ignore[method-assign]
    work(CatalogService(database, str(warehouse), config), database)
