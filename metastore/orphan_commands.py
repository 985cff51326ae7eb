"""The command that finds directories that no transaction can make visible any more, and removes them if asked to."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Any

import hive_acid
from hive_acid.operators import orphans
from metastore.operator_commands import DEFAULT_URI, print_listing
from metastore.settings import SettingError, parse_duration_ms

_TIMEOUT_MS = 3_600_000
"""For one call: to list a table of a million objects takes its time."""


def add_commands(commands: Any) -> None:
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "orphans",
        help="find directories that no transaction can make visible any more, and remove them with --remove",
        description="Lists what aborted and vanished writers, compactions and drops have left, with size, age and why.",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("table", nargs="?", metavar="DATABASE.TABLE", help="the orphans of this table")
    target.add_argument("--all", action="store_true", help="those of all tables, and what lies beside tables")
    parser.add_argument("--older-than", metavar="AGE", default="7d", help="only what has not changed for so long (7d)")
    parser.add_argument("--remove", action="store_true", help="remove those that are certain")
    parser.add_argument(
        "--uncertain",
        action="store_true",
        help="with --remove: also what may be somebody's, such as directories that the catalogue does not know",
    )
    parser.add_argument("--uri", default=DEFAULT_URI, help=f"the metastore ({DEFAULT_URI})")
    parser.set_defaults(run=_orphans)


def _orphans(options: argparse.Namespace) -> int:
    if options.uncertain and not options.remove:
        raise SettingError("--uncertain widens --remove: without that nothing is removed anyway")
    sweep = orphans.Sweep(parse_duration_ms(options.older_than, "d"), options.remove, options.uncertain)
    with closing(hive_acid.connect(options.uri, timeout_ms=_TIMEOUT_MS)) as connection:
        if options.all:
            found = list(orphans.of_all(connection, sweep))
        else:
            database, _, name = options.table.rpartition(".")
            found = orphans.of_table(connection, database or "default", name, sweep)
    print_listing(orphans.listing(found))
    return 0
