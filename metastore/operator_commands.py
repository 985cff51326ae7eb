"""Commands for a running metastore: statements of operators, what is going on, and why something does not happen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as TextTable

import hive_acid
from hive_acid.connection import Connection
from hive_acid.errors import SqlError
from hive_acid.format.partitions import parse_partition_name
from hive_acid.operators import execution as operators
from hive_acid.operators import removals, show, why
from hive_acid.operators.statements import ShowCompactions, ShowLocks, parse
from hive_acid.tokens import LARGEST_COUNT, LARGEST_ID

DEFAULT_URI = "thrift://127.0.0.1:9083"
MOST_COLUMNS = 12
"""Of a table whose cells are folded where they do not fit on a terminal; a wider one is not readable that way."""
_MISSING = "-"


def _number_to(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        """A whole number; argparse tells who gives another text."""
        value = int(text) if text.isdecimal() and len(text) <= len(str(most)) else -1
        if not 0 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {most}")
        return value

    return number


_id, _count = _number_to(LARGEST_ID), _number_to(LARGEST_COUNT)


def add_commands(commands: Any) -> None:
    """Add the commands to those of the parser."""
    sql = commands.add_parser(
        "sql",
        help="run SHOW TRANSACTIONS, LOCKS or COMPACTIONS, ABORT …, or ALTER TABLE … COMPACT",
        description="Runs one statement of Hive's operators and prints its rows in Hive's columns.",
    )
    sql.add_argument("statement", metavar="STATEMENT", help="such as \"SHOW COMPACTIONS d.t STATUS 'failed'\"")
    _finish(sql, _sql)

    reason = commands.add_parser("why", help="say why a table is not compacted or cleaned, or what blocks a lock")
    reason.add_argument("table", nargs="?", metavar="DATABASE.TABLE", help="the table")
    reason.add_argument("partition", nargs="?", metavar="PARTITION", help="one partition of it: k=v/k2=v2")
    reason.add_argument("--txn", type=_id, metavar="ID", help="a transaction instead")
    reason.add_argument("--lock", type=_id, metavar="ID", help="a lock instead")
    reason.add_argument("--compaction", type=_id, metavar="ID", help="a compaction instead")
    _finish(reason, _why)

    _finish(commands.add_parser("transactions", help="show open and aborted transactions"), _transactions)

    left = commands.add_parser("removals", help="show directories of dropped tables that are still to be removed")
    left.add_argument("--forget", type=_id, metavar="ID", help="give one up that has failed: its directory stays")
    _finish(left, _removals)

    locks = commands.add_parser("locks", help="show locks held and waited for")
    _add_target(locks)
    _finish(locks, _locks)

    compactions = commands.add_parser("compactions", help="show compactions queued, under way and ended")
    _add_target(compactions)
    compactions.add_argument("--id", type=_id, metavar="ID", help="this one only")
    compactions.add_argument("--pool", help="those of a pool of workers; 'default' for those of none")
    compactions.add_argument("--type", help="minor, major or rebalance")
    compactions.add_argument("--status", help="initiated, working, 'ready for cleaning', succeeded, failed, …")
    compactions.add_argument("--order-by", metavar="COLUMNS", help="as in SHOW COMPACTIONS: 'starttime DESC, dbname'")
    compactions.add_argument("--limit", type=_count, metavar="N", help="so many at most")
    _finish(compactions, _compactions)


def print_listing(listing: show.Listing, least_width: int = 0) -> None:
    """Print a table, never folded if not for a terminal; there, what has too many columns comes one below the other."""
    console = Console()
    table = TextTable(title=listing.title, title_justify="left")
    for number, column in enumerate(listing.columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in listing.rows:
        table.add_row(*(_MISSING if value is None else value for value in row))
    width = Measurement.get(console, console.options.update(max_width=sys.maxsize), table).maximum
    if console.is_terminal and width > max(console.width, least_width) and len(listing.columns) > MOST_COLUMNS:
        for row in listing.rows:
            print()
            for column, value in zip(listing.columns, row, strict=True):
                print(f"{column:>{max(map(len, listing.columns))}}  {_MISSING if value is None else value}")
        return
    console.width = max(console.width, least_width if console.is_terminal else width)
    console.print(table, markup=False)


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--database", metavar="DATABASE", help="those in a database")
    target.add_argument("--table", metavar="DATABASE.TABLE", help="those of a table")
    parser.add_argument("--partition", metavar="PARTITION", help="those of one partition of the table: k=v/k2=v2")


def _finish(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("--uri", default=DEFAULT_URI, help=f"the metastore ({DEFAULT_URI})")
    parser.set_defaults(run=run)


# --- statements ----------------------------------------------------------------------------------


def _sql(options: argparse.Namespace) -> int:
    with hive_acid.connect(options.uri) as connection:
        listing = operators.run_text(connection, options.statement)
    if listing.columns:
        print_listing(listing)
    return 0


def _transactions(options: argparse.Namespace) -> int:
    return _shown(options, show.transactions)


def _locks(options: argparse.Namespace) -> int:
    asked = parse(f"SHOW LOCKS {_target_words(options)}")
    assert isinstance(asked, ShowLocks)
    return _shown(options, lambda connection: show.locks_asked_for(connection, asked))


def _compactions(options: argparse.Namespace) -> int:
    words = _target_words(options)
    if options.id is not None:
        words = f"COMPACTIONID = {options.id}"
    for clause in ("pool", "type", "status"):
        if (value := getattr(options, clause)) is not None:
            words += f" {clause.upper()} {_quoted(value)}"
    if options.order_by is not None:
        words += f" ORDER BY {options.order_by}"
    if options.limit is not None:
        words += f" LIMIT {options.limit}"
    asked = parse(f"SHOW COMPACTIONS {words}")
    assert isinstance(asked, ShowCompactions)
    return _shown(options, lambda connection: show.compactions_asked_for(connection, asked))


def _shown(options: argparse.Namespace, listing: Callable[[Connection], show.Listing]) -> int:
    with hive_acid.connect(options.uri) as connection:
        print_listing(listing(connection))
    return 0


def _removals(options: argparse.Namespace) -> int:
    with hive_acid.connect(options.uri) as connection:
        asked = removals.waiting(connection) if options.forget is None else removals.forget(connection, options.forget)
    print_listing(removals.listing(asked))
    return 0


def _target_words(options: argparse.Namespace) -> str:
    """The options that say whose in the words of a statement, so that one parser judges both."""
    if options.partition is not None and options.table is None:
        raise SqlError("--partition needs the --table that it is of")
    if options.database is not None:
        return f"DATABASE {options.database}"
    if options.table is None:
        return ""
    if options.partition is None:
        return str(options.table)
    pairs = parse_partition_name(options.partition)
    return f"{options.table} PARTITION ({', '.join(f'`{k}` = {_quoted(v)}' for k, v in pairs)})"


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# --- reasons -------------------------------------------------------------------------------------


def _why(options: argparse.Namespace) -> int:
    asked = [name for name in ("table", "txn", "lock", "compaction") if getattr(options, name) is not None]
    if len(asked) != 1:
        raise SqlError("ask about one thing: DATABASE.TABLE [PARTITION], --txn ID, --lock ID or --compaction ID")
    with hive_acid.connect(options.uri) as connection:
        match asked[0]:
            case "table":
                answers = why.why_table(connection, tuple(options.table.split(".")), options.partition)
            case "txn":
                answers = why.why_transaction(connection, options.txn)
            case "lock":
                answers = why.why_lock(connection, options.lock)
            case _:
                answers = why.why_compaction(connection, options.compaction)
    for answer in answers:
        print(f"{answer.subject} [{answer.code}]\n  {answer.message}\n  next: {answer.action}")
        for location in answer.files:
            print(f"    {location}")
    return 0
