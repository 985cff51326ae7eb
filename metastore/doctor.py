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

import hive_acid
from hive_acid.errors import HiveAcidError
from hive_acid.wire import ttypes
from metastore.app import ServeOptions, StartError, open_database
from metastore.filework import files
from metastore.housekeeping.metrics import take_gauges
from metastore.rpc.doors.config import JWT, KERBEROS, LDAP, PASSWORD
from metastore.rpc.doors.doors import Doors
from metastore.store.connections.failures import first_line
from metastore.store.embedded.server import ADDRESS_FILE, DataDirectoryInUseError, EmbeddedPostgres, has_data

JAVA_TIMEOUT_S = 30
ASK_MS = 5_000
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


def examine(options: ServeOptions, uri: str | None = None) -> list[Finding]:
    """Look at everything that serving and compacting need; nothing is left changed but missing directories.

    The metastore at `uri` is asked how it is, and one that has the data directory.
    """
    checks: list[tuple[str, Callable[[ServeOptions], str]]] = [
        ("database", _database),
        ("warehouse", _warehouse),
        ("doors", _doors),
        ("spark", _spark),
        ("java", _java),
    ]
    if uri is not None:
        checks.insert(0, ("metastore", lambda options: _asked(uri)))
    return [_run(what, check, options) for what, check in checks]


def _run(what: str, check: Callable[[ServeOptions], str], options: ServeOptions) -> Finding:
    try:
        return Finding(what, True, check(options))
    except Exception as error:  # whatever is wrong is what is asked for
        return Finding(what, False, first_line(error))


def _database(options: ServeOptions) -> str:
    if options.data_dir is not None and options.database_url is None and not has_data(options.data_dir):
        if (options.data_dir / ADDRESS_FILE).exists():  # the data was taken away under a running server
            return _running(options)
        with tempfile.TemporaryDirectory() as scratch, EmbeddedPostgres(scratch):
            return f"the embedded Postgres starts; there is no data in {options.data_dir} yet, the first start makes it"
    try:
        with open_database(options, must_exist=True) as db, db.engine.connect() as connection:
            version = connection.exec_driver_sql("SHOW server_version").scalar_one()
            figures = take_gauges(db, options.config.housekeeping)
    except StartError as error:
        if isinstance(error.__cause__, DataDirectoryInUseError):
            return _running(options)
        raise
    where = "embedded" if options.database_url is None else "external"
    state = ", ".join(f"{figures[name]:.0f} {words}" for name, words in _FIGURES.items())
    return f"{where} Postgres {version} answers, its schema is up to date; {state}"


def _running(options: ServeOptions) -> str:
    """What the metastore says that has the data directory."""
    assert options.data_dir is not None
    try:
        uri = (options.data_dir / ADDRESS_FILE).read_text().strip()
    except FileNotFoundError:
        raise LookupError(f"a metastore has {options.data_dir} and does not listen yet") from None
    return _asked(uri)


def _asked(uri: str) -> str:
    """What a metastore says of itself. Raises LookupError if it is not well."""
    try:
        with hive_acid.connect(uri, timeout_ms=ASK_MS) as connection:
            if connection.call("getStatus") == ttypes.fb_status.ALIVE:
                return f"the metastore at {uri} is alive, its database answers"
            raise LookupError(f"the metastore at {uri} is in trouble: {connection.call('getStatusDetails')}")
    except HiveAcidError as error:
        raise LookupError(str(error)) from None


def _warehouse(options: ServeOptions) -> str:
    probe = files.join(options.warehouse, f".doctor-{os.getpid()}")
    files.make_directory(options.warehouse)
    with _cleaned(probe):
        files.write(probe, b"x")
    return f"{options.warehouse} is writable"


def _doors(options: ServeOptions) -> str:
    config = options.config.doors
    Doors(config).close()
    asked = [
        name
        for name, is_asked in (
            ("TLS", config.use_tls),
            ("passwords", config.asks_for == PASSWORD),
            ("a directory", config.asks_for == LDAP),
            ("tokens", config.asks_for == JWT),
            ("Kerberos", config.asks_for == KERBEROS),
        )
        if is_asked
    ]
    return f"the files for {' and '.join(asked)} can be used" if asked else "clients have nothing to show"


@contextlib.contextmanager
def _cleaned(location: str) -> Iterator[None]:
    try:
        yield
    finally:
        files.remove(location)


def _spark(options: ServeOptions) -> str:
    return f"PySpark {_pyspark()} is installed"


def _pyspark() -> str:
    """Its version. Raises LookupError if there is none."""
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise LookupError("pyspark is not installed, so nothing compacts: pip install 'hive-acid[spark]'") from None


def _java(options: ServeOptions) -> str:
    _pyspark()
    # In a process of its own: the server side never imports the client's Spark code.
    code = "from hive_acid.spark.jvm.java import ensure_java; print(ensure_java())"
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
