"""The commands that move catalogue and ACID state: import, export and hand-back."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

import hive_acid
from metastore.app import ServeOptions, open_database
from metastore.catalog.place.directories import warehouse_root
from metastore.catalog.place.places import Place
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.service import CatalogService
from metastore.observe import log
from metastore.store.connections.failures import cause_of
from metastore.transfer.exporting import export_to_file
from metastore.transfer.handing_back import HandBack, HandBackOptions
from metastore.transfer.importing import OPEN_POLICIES, REFUSE, Import, ImportOptions
from metastore.transfer.models import Selection, TransferError
from metastore.transfer.report import Report
from metastore.transfer.sources import places
from metastore.transfer.target import Target

_PROGRESS_S = 5.0

_SELECTION = (
    "Patterns have * and ?; each option may be repeated. Databases of other catalogs are named @catalog#database."
)


def add_commands(
    commands: Any,
    add_place: Callable[[argparse.ArgumentParser], None],
    options_of: Callable[[argparse.Namespace], ServeOptions],
) -> None:
    """Add the commands to the parser's; `add_place` adds the options that `options_of` reads."""

    def add(name: str, run: Callable[[argparse.Namespace, ServeOptions], int], words: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = commands.add_parser(name, help=words, description=f"{words}. {_SELECTION}")
        parser.add_argument("--json", action="store_true", help="report as JSON")
        parser.add_argument("--database", metavar="PATTERN", action="append", default=[], help="only these databases")
        parser.add_argument("--table", metavar="PATTERN", action="append", default=[], help="only these tables")
        parser.add_argument(
            "--open-transactions",
            choices=OPEN_POLICIES,
            default=REFUSE,
            help="what to do while transactions are open: refuse, wait for their end, or count them as aborted",
        )
        parser.add_argument(
            "--wait", metavar="SECONDS", type=_seconds, default=300.0, help="wait at most so long (300)"
        )
        add_place(parser)
        parser.set_defaults(run=lambda options: _quietly(run, options, options_of(options)))
        return parser

    moved_in = add("import", _import, "copy catalogue and ACID state from another metastore; run it again to resume")
    moved_in.add_argument(
        "source", help="thrift://host:port, postgresql://user@host/name of a Hive metastore, or a file"
    )
    moved_in.add_argument("--dry-run", action="store_true", help="only say what would be done")
    moved_in.add_argument("--update", action="store_true", help="replace what is different here")

    moved_out = add("export", _export, "write catalogue and ACID state into a file")
    moved_out.add_argument("file", type=Path, help="compressed if it ends with .gz")
    moved_out.add_argument("--from", dest="source", metavar="SOURCE", help="of another metastore, as for import")

    returned = add("hand-back", _hand_back, "create tables with their write ids at another metastore")
    returned.add_argument("tables", nargs="+", metavar="DATABASE.TABLE", help="the tables; patterns, too")
    returned.add_argument("to", metavar="thrift://HOST:PORT", help="the other metastore")
    returned.add_argument(
        "--forget", action="store_true", help="then take the tables out of this metastore, without their files"
    )
    returned.add_argument("--dry-run", action="store_true", help="only say what would be done")


def _seconds(text: str) -> float:
    """A length of time; argparse tells who gives another text."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 1e9")
    return value


def _quietly(run: Callable[[argparse.Namespace, ServeOptions], int], options: Any, place: ServeOptions) -> int:
    log.configure("warning")
    try:
        return run(options, place)
    except SQLAlchemyError as error:
        raise TransferError(
            f"the database failed: {cause_of(error)}. Run the same again, it goes on where it was"
        ) from error


def _import(options: argparse.Namespace, place: ServeOptions) -> int:
    chosen = ImportOptions(_selection(options), options.open_transactions, options.wait, options.dry_run)
    with places.source_of(options.source) as source:
        identity = source.identity  # a source that is not there is found before any data is made here
        schemes = (*place.config.catalog.schemes, Place.of(warehouse_root(place.warehouse)).scheme)
        with open_database(place) as db:
            removals = CatalogService(db, place.warehouse, place.config.catalog).removals
            target = Target(db, identity, removals, options.dry_run, options.update, schemes)
            return _show(Import(source, target, chosen, _Progress()).run(), options)


def _export(options: argparse.Namespace, place: ServeOptions) -> int:
    if options.file.is_dir():
        raise TransferError(f"{options.file} is a directory: give the name of a file to write to")
    policy = (options.open_transactions, options.wait)
    if options.source is not None:
        with places.source_of(options.source) as source:
            return _show(export_to_file(source, options.file, _selection(options), *policy, _Progress()), options)
    with open_database(place, must_exist=True) as db, places.own_source(db) as source:
        return _show(export_to_file(source, options.file, _selection(options), *policy, _Progress()), options)


def _hand_back(options: argparse.Namespace, place: ServeOptions) -> int:
    selection = Selection(tuple(options.database), (*options.table, *options.tables))
    chosen = HandBackOptions(selection, options.dry_run, options.forget)
    with (
        open_database(place, must_exist=True) as db,
        closing(hive_acid.connect(options.to, timeout_ms=places.TIMEOUT_MS)) as connection,
    ):
        catalog = CatalogService(db, place.warehouse, place.config.catalog)

        def forget(database: str, name: str) -> None:
            catalog.tables.drop(database, name, DropRequest(delete_data=False))

        return _show(HandBack(db, connection, chosen, forget, _Progress()).run(), options)


def _selection(options: argparse.Namespace) -> Selection:
    return Selection(tuple(options.database), tuple(options.table))


def _show(report: Report, options: argparse.Namespace) -> int:
    print(report.json() if options.json else report.text())
    return 0 if report.is_complete else 1


class _Progress:
    """Says from time to time how far it is, on stderr."""

    def __init__(self) -> None:
        self._tables = 0
        self._next = time.monotonic() + _PROGRESS_S

    def __call__(self, name: str) -> None:
        self._tables += 1
        if time.monotonic() >= self._next:
            print(f"{self._tables} tables done, the last one is {name}", file=sys.stderr, flush=True)
            self._next = time.monotonic() + _PROGRESS_S
