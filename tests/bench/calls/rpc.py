"""The transactional calls, measured: ours, another metastore's, and the floor of bare Postgres, in one run."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as TextTable

from hive_acid.operators.show import Listing
from tests.bench.calls import sections
from tests.bench.calls.measure import Options
from tests.bench.calls.servers import Machine, Server
from tests.bench.machine import allow_many_files

_WIDTH = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for and print it."""
    options = _parser().parse_args(arguments)
    allow_many_files()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started here is stopped on this way, too
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    found: list[dict[str, Any]] = []
    try:
        with contextlib.ExitStack() as stack:
            bench = sections.Bench(
                machine=None if options.uri else stack.enter_context(Machine(work)),
                others=_others(options),
                connections=[int(number) for number in options.connections.split(",")],
                options=Options(options.seconds, options.rounds, options.realtime),
            )
            if options.uri:
                bench.ours = Server("hive-acid", options.uri)
            for other in bench.others:
                sections.warm_up(other, bench.options)
            for section in sections.chosen(options.only.split(",") if options.only else []):
                result = section(bench)
                found += result.records
                if not options.json:
                    for listing in result.listings:
                        show(listing)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        print(json.dumps(found, indent=1))
    return 1 if any(record.get("failures") for record in found) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-rpc", description=__doc__)
    parser.add_argument("--only", metavar="NAME,…", help=f"some of: {', '.join(sections.NAMES)}")
    parser.add_argument("--connections", default="1,8,32,128", metavar="N,…", help="how many connections (1,8,32,128)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement (3)")
    parser.add_argument("--rounds", type=int, default=1, help="repetitions, interleaved; the median counts (1)")
    parser.add_argument(
        "--against", metavar="URL", help="another metastore to measure in the same run: thrift://host:port"
    )
    parser.add_argument(
        "--against-pids",
        default="0,0",
        metavar="PID,PID",
        help="its process and its Postgres', where they are on this machine",
    )
    parser.add_argument("--uri", metavar="URL", help="measure this running metastore as ours, without a floor")
    parser.add_argument("--realtime", action="store_true", help="driver, server and Postgres in SCHED_RR (takes root)")
    parser.add_argument("--json", action="store_true", help="figures for programs")
    return parser


def _others(options: argparse.Namespace) -> list[Server]:
    if not options.against:
        return []
    process, postgres = map(int, options.against_pids.split(","))
    return [Server("other", options.against, process, postgres)]


def show(listing: Listing) -> None:
    """Print a table."""
    table = TextTable(title=listing.title, title_justify="left", box=box.SIMPLE_HEAD)
    for number, column in enumerate(listing.columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in listing.rows:
        table.add_row(*row)
    Console(width=_WIDTH).print(table, markup=False)


if __name__ == "__main__":
    sys.exit(main())
