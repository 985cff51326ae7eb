"""What is wrong with database, warehouse, Java and Spark, said before a user finds out."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metastore.app import ServeOptions, StartError, open_database
from metastore.filework import files
from metastore.housekeeping.metrics import take_gauges
from metastore.store.embedded import DataDirectoryInUseError

JAVA_TIMEOUT_S = 30
_FIGURES = {
    "num_open_transactions": "transactions open",
    "num_aborted_transactions": "aborted",
    "num_locks": "locks",
    "compaction_num_txn_to_writeid": "write ids on record",
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    what: str
    fine: bool
    words: str


def examine(options: ServeOptions) -> list[Finding]:
    """Look at everything that serving and compacting need; nothing is left changed but missing directories."""
    checks: list[tuple[str, Callable[[ServeOptions], str]]] = [
        ("database", _database),
        ("warehouse", _warehouse),
        ("spark", _spark),
        ("java", _java),
    ]
    return [_run(what, check, options) for what, check in checks]


def _run(what: str, check: Callable[[ServeOptions], str], options: ServeOptions) -> Finding:
    try:
        return Finding(what, True, check(options))
    except (StartError, OSError, subprocess.SubprocessError, LookupError, ValueError) as error:
        return Finding(what, False, str(error))


def _database(options: ServeOptions) -> str:
    try:
        with open_database(options) as db, db.engine.connect() as connection:
            version = connection.exec_driver_sql("SHOW server_version").scalar_one()
            figures = take_gauges(db, options.config.housekeeping)
    except StartError as error:
        if isinstance(error.__cause__, DataDirectoryInUseError):
            return f"{str(error).partition(':')[0]}, a running metastore"
        raise
    where = "embedded" if options.database_url is None else "external"
    state = ", ".join(f"{figures[name]:.0f} {words}" for name, words in _FIGURES.items())
    return f"{where} Postgres {version} answers, its schema is up to date; {state}"


def _warehouse(options: ServeOptions) -> str:
    probe = files.join(options.warehouse, f".doctor-{os.getpid()}")
    files.make_directory(options.warehouse)
    with _cleaned(probe):
        files.write(probe, b"x")
    return f"{options.warehouse} is writable"


@contextlib.contextmanager
def _cleaned(location: str) -> Iterator[None]:
    try:
        yield
    finally:
        files.remove(location)


def _spark(options: ServeOptions) -> str:
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise LookupError("pyspark is not installed, so nothing compacts: pip install 'hive-acid[spark]'") from None
    return f"PySpark {version} is installed"


def _java(options: ServeOptions) -> str:
    # In a process of its own: the server side never imports the client's Spark code.
    code = "from hive_acid.spark.java import ensure_java; print(ensure_java())"
    with tempfile.TemporaryDirectory() as scratch:
        found = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=JAVA_TIMEOUT_S,
            cwd=scratch,
            check=False,
        )
    if found.returncode != 0:
        raise LookupError((found.stderr.strip().splitlines() or ["no Java found"])[-1])
    home = found.stdout.strip()
    return "the java on the PATH will do" if home == "None" else f"Java for Spark at {home}"
