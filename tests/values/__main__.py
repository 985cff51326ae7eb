"""``python -m tests.values --steps 100 --seed 7``: random conditions on tables, and all that does not agree."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from hive_acid.connection import connect
from hive_acid.errors import TimeZoneMismatchError
from tests.served import migrated, served
from tests.spark.conftest import started
from tests.values.forms import wrong_forms
from tests.values.nested import Nested
from tests.values.rows.tables import Tables
from tests.values.sessions.settings import MEANINGS, SETTINGS, TOGETHER
from tests.values.sessions.under import wrong_under
from tests.values.sessions.zones import ZONES
from tests.values.verbs import Verbs
from tests.values.walk import Walk

TEMPLATE = "template_values"

_EVERY = [(name, of) for name, of in (SETTINGS | MEANINGS).items() if name != "another zone"]
"""Settings that a walk may be under; by the first of them it is not."""


def main() -> None:
    """Walk, tell what was found, and end with 1 if anything was."""
    parser = argparse.ArgumentParser(prog="python -m tests.values", description=__doc__)
    parser.add_argument("--steps", type=int, default=50, help="tables that are asked, with many conditions each")
    parser.add_argument("--seed", type=int, default=1, help="of the first step")
    parser.add_argument(
        "--layout", help="of all tables, as 'one' or 'plain orc by date'; of --verbs 'buckets', of --nested 'date'"
    )
    parser.add_argument("--verbs", action="store_true", help="walk all verbs by keys of all types instead")
    parser.add_argument("--nested", action="store_true", help="walk all verbs by what lies in structs, arrays and maps")
    parser.add_argument("--zones", action="store_true", help="walk the times of many zones instead")
    parser.add_argument("--tables", nargs="*", default=[], help="kinds of tables of --zones, all by default")
    parser.add_argument("--only", default="", help="what is in the names of --zones")
    parser.add_argument("--forms", action="store_true", help="write and read all forms of tables under each setting")
    parser.add_argument("--settings", action="store_true", help="ask under settings, and tell the story under each")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        migrated(Path(directory), TEMPLATE) as url,
        served(url, TEMPLATE, Path(directory) / "warehouse") as server,
    ):
        if options.forms:
            told = _forms(started(), server.uri, Path(directory))
        elif options.zones:
            zones = [zone for zone in ZONES if options.only in zone]
            if not zones:
                parser.error(f"no zone of {', '.join(ZONES)} has {options.only} in its name")
            told = sum(_zone(server.uri, zone, options.seed, options.steps, options.tables) for zone in zones)
        else:
            spark = started()
            told = _walked(spark, server.uri, Path(directory), options)
            told += _settings(spark, server.uri) if options.settings else 0
            spark.stop()
    if told:
        raise SystemExit(f"{told} findings")


def _walked(spark: SparkSession, uri: str, directory: Path, options: argparse.Namespace) -> int:
    """Walk; how many findings there are."""
    walk: Walk | Verbs | Nested
    if options.nested:
        walk = Nested(spark, uri)
    else:
        walk = Verbs(spark, uri) if options.verbs else Walk(spark, uri, directory)
    began, told = time.monotonic(), 0
    for seed in range(options.seed, options.seed + options.steps):
        if options.settings and seed % len(_EVERY):
            name, settings = _EVERY[seed % len(_EVERY)]
            print(f"seed {seed}: {name}", flush=True)
            walk.step(seed, options.layout, settings=settings)
        else:
            walk.step(seed, options.layout)
        for finding in walk.findings.found[told:]:
            print(f"seed {seed}: {finding}", flush=True)
        told = len(walk.findings.found)
        each_s = (time.monotonic() - began) / (seed - options.seed + 1)
        print(f"seed {seed}: {walk.findings}, {each_s:.1f} s a step", flush=True)
    walk.close()
    return told


def _zone(uri: str, zone: str, seed: int, conditions: int, kinds: list[str]) -> int:
    """Walk the times of a zone, in a process with a Spark of its own; how many findings there are."""
    words = [sys.executable, "-m", "tests.values.sessions.zones", uri, zone, str(seed), str(conditions), *kinds]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return done.stdout.count("FINDING") + done.returncode


def _forms(spark: SparkSession, uri: str, directory: Path) -> int:
    """Write and read all forms of tables under settings; how many of them are wrong."""
    tables, bad, compared = Tables(spark, uri, directory), 0, 0
    for number, names in enumerate(TOGETHER):
        settings = {key: value for name in names for key, value in SETTINGS[name].items()}
        for form, count, wrong in wrong_forms(tables, settings, f"d.form_{number}"):
            compared += count
            bad += bool(wrong)
            print(f"{form} under {number}, {compared:,} values compared: {wrong or 'as they were'}", flush=True)
    tables.close()
    return bad


def _settings(spark: SparkSession, uri: str) -> int:
    """Tell the story under each setting alone; how many of them it goes wrong under."""
    bad = 0
    with connect(uri) as connection:
        for number, (name, settings) in enumerate(SETTINGS.items()):
            try:
                wrong = ", ".join(wrong_under(spark, connection, settings, f"d.setting_{number}"))
            except TimeZoneMismatchError as error:
                print(f"{name}: refused, {error}", flush=True)
                continue
            except Exception as error:  # whatever it is: it tells what is wrong
                wrong = f"{type(error).__name__}: {error}"
            bad += bool(wrong)
            print(f"{name}: {wrong or 'as without it'}", flush=True)
    return bad


if __name__ == "__main__":
    main()
