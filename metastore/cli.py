"""The ``metastore`` command: serve, doctor, what is going on and why (`operator_commands`), moving in and out."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

import hive_acid
from hive_acid.errors import HiveAcidError
from metastore import doctor, orphan_commands, password_commands, sources
from metastore import operator_commands as operators
from metastore import transfer_commands as transfer
from metastore.app import App, DatabaseLostError, ServeOptions, StartError
from metastore.config import Loaded, describe, load
from metastore.observe import log
from metastore.operator_commands import DEFAULT_URI
from metastore.settings import SettingError
from metastore.sources import read_text
from metastore.store.connections.address import with_password

DATABASE_URL = "HIVE_ACID_DATABASE_URL"
"""The variable of the environment that stands for --database-url."""
_LIBPQ = (
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGDATABASE",
    "PGUSER",
    "PGSERVICE",
    "PGOPTIONS",
    "PGTARGETSESSIONATTRS",
    "PGREQUIREAUTH",
    "PGCHANNELBINDING",
    "PGSSLMODE",
    "PGCLIENTENCODING",
    "PGDATESTYLE",
    "PGTZ",
    "PGGEQO",
)
"""Variables by which somebody reaches another Postgres: our own would not be found by them."""
LEAST_WIDTH_OF_SETTINGS = 160
"""Narrower, the long names would be folded and no search would find them; a pager scrolls to the side."""


def default_data_dir() -> Path:
    """Where the embedded Postgres and the default warehouse live when nothing is said.

    Raises SettingError if there is no home directory.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/hive-acid")
    try:
        return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "hive-acid"
    except RuntimeError:
        raise SettingError(
            "there is no home directory: set HOME, or give --data-dir (beside --database-url: --warehouse)"
        ) from None


def _default_words() -> str:
    try:
        return str(default_data_dir())
    except SettingError:
        return "in the home directory"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 when all is well, 1 with one sentence on stderr when not."""
    for number in range(3):  # where a standard stream is closed the next file or socket would come
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an argument that is not UTF-8 shall be shown in some way
            stream.reconfigure(errors="backslashreplace")
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except (StartError, DatabaseLostError, SettingError, HiveAcidError) as error:
        print(f"metastore: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # who reads our answer has enough of it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left is flushed there at the end
        return 1
    except OSError as error:
        print(f"metastore: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="metastore", description=__doc__)
    parser.add_argument("--version", action="version", version=f"hive-acid {hive_acid.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="run the metastore in the foreground")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, default=9083, help="port to listen on (9083); 0 takes a free one")
    _add_place(serve)
    serve.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    serve.set_defaults(run=_serve)

    check = commands.add_parser("doctor", help="check database, warehouse, Java and Spark")
    _add_place(check)
    check.add_argument("--uri", help="a running metastore to ask, too; one on the data directory is asked anyway")
    check.set_defaults(run=_doctor)

    transfer.add_commands(commands, _add_place, _options)

    settings = commands.add_parser("config", help="print every setting with its value, source and meaning")
    _add_settings(settings)
    settings.set_defaults(run=_config)

    undrop = commands.add_parser("undrop", help="bring back a table that was dropped within the undrop window")
    undrop.add_argument("table", metavar="DATABASE.TABLE", help="the table, as it was called")
    undrop.add_argument("--uri", default=DEFAULT_URI, help=f"the metastore ({DEFAULT_URI})")
    undrop.set_defaults(run=_undrop)

    password_commands.add_commands(commands)
    operators.add_commands(commands)
    orphan_commands.add_commands(commands)
    return parser


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--warehouse", metavar="DIR", help="root of the tables (DATA_DIR/warehouse)")
    database = parser.add_mutually_exclusive_group()
    database.add_argument("--data-dir", metavar="DIR", type=Path, help=f"embedded Postgres ({_default_words()})")
    database.add_argument(
        "--database-url",
        metavar="URL",
        help=f"an external Postgres: postgresql://user@host/name; else ${DATABASE_URL}. Its password may be in "
        "--database-password-file, $PGPASSWORD or ~/.pgpass",
    )
    parser.add_argument(
        "--database-password-file", metavar="FILE", type=Path, help="a file with the password of the external Postgres"
    )
    _add_settings(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "settings",
        "By Hive's names; `metastore config` lists them. A later source wins: hive-site.xml, TOML file, environment "
        f"({sources.ENVIRONMENT_PREFIX}HIVE_TXN_TIMEOUT=300s), --set.",
    )
    group.add_argument(
        "--hive-site",
        metavar="PATH",
        type=Path,
        action="append",
        default=[],
        help="a hive-site.xml, or a directory with hive-site.xml and metastore-site.xml; may be repeated",
    )
    group.add_argument("--config", metavar="FILE", type=Path, dest="toml", help="a TOML file")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="pairs", help="one setting; may be repeated"
    )


def _loaded(options: argparse.Namespace) -> Loaded:
    sites = [file for path in options.hive_site for file in sources.site_files(path)]
    levels = [sources.from_site(file, os.environ) for file in sites]
    if options.toml is not None:
        levels.append(sources.from_toml(options.toml))
    return load([*levels, sources.from_environment(os.environ), sources.from_pairs(options.pairs)])


def _options(options: argparse.Namespace) -> ServeOptions:
    loaded = _loaded(options)
    loaded.log()
    url = _database_url(options)
    data_dir = None if url else options.data_dir or default_data_dir()
    if data_dir is not None and getattr(options, "source", None) is None:
        for name in _LIBPQ:
            os.environ.pop(name, None)
    return ServeOptions(
        host=getattr(options, "host", "127.0.0.1"),
        port=getattr(options, "port", 9083),
        data_dir=data_dir,
        database_url=url,
        warehouse=options.warehouse or str((data_dir or default_data_dir()) / "warehouse"),
        config=loaded.config,
    )


def _database_url(options: argparse.Namespace) -> str | None:
    """The external Postgres, with its password if that is in a file of its own."""
    for name in ("database_url", "data_dir", "warehouse", "host"):
        given = getattr(options, name, None)
        if given is not None and str(given) in ("", "."):  # an empty path is shown as a dot
            raise SettingError(f"--{name.replace('_', '-')} is empty: name the place, or leave the option out")
    url: str | None = options.database_url
    if url is None and options.data_dir is None:
        url = os.environ.get(DATABASE_URL) or None
    file: Path | None = options.database_password_file
    if file is None:
        return url
    if url is None:
        raise SettingError("--database-password-file is for an external Postgres: give its --database-url, too")
    return with_password(url, read_text(file).strip())


def _serve(options: argparse.Namespace) -> int:
    log.configure(options.log_level)
    chosen = _options(options)
    log.configure(options.log_level, chosen.config.server.log_format)
    App(chosen).run(announce=lambda uri: print(f"listening on {uri}", flush=True))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    log.configure("error")
    console = Console()
    findings = doctor.examine(_options(options), options.uri)
    for finding in findings:
        mark = Text("ok  ", "green") if finding.fine else Text("BAD ", "red")
        console.print(mark.append(f" {finding.what}: {finding.words}", "default"), highlight=False, soft_wrap=True)
    return 0 if all(finding.fine for finding in findings) else 1


def _config(options: argparse.Namespace) -> int:
    for listing in describe(_loaded(options)):
        operators.print_listing(listing, LEAST_WIDTH_OF_SETTINGS)
    return 0


def _undrop(options: argparse.Namespace) -> int:
    database, _, name = options.table.rpartition(".")
    with hive_acid.connect(options.uri) as connection:
        connection.undrop_table(database or "default", name)
    print(f"{database or 'default'}.{name} is back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
