"""``make bench-data``: hive-acid beside plain ORC and Parquet, Delta and Iceberg: same rows, same Spark, same run.

Delta and Iceberg are measured on the newest Spark that both have a release for, ours and the plain formats on the
newest as well. A figure is the median of the warm runs; the first lives of every contestant are not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.calls.servers import Machine
from tests.bench.data import pages
from tests.bench.data.contestants import Acid, AcidSql
from tests.bench.data.record import kept
from tests.bench.data.report import PLAIN, show
from tests.bench.data.statements import FIRST
from tests.clients.java.maven import Jar, NotFetchedError, cache_directory

HOUSE = Path(__file__).parents[3]
RIVALS_SPARK = "4.1"
RIVALS_JARS = (
    Jar(
        "org/apache/iceberg/iceberg-spark-runtime-4.1_2.13/1.12.0/iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Jar(
        "io/delta/delta-spark_4.1_2.13/4.4.0/delta-spark_4.1_2.13-4.4.0.jar",
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Jar(
        "io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)
OURS, RIVALS = (Acid.name, AcidSql.name), ("delta", "iceberg")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-data", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the table (2,000,000)")
    parser.add_argument("--lives", type=int, default=3, help="measured lives of a table (3)")
    parser.add_argument("--warm-ups", type=int, default=3, help="lives before them, until little is compiled anew (3)")
    parser.add_argument("--reads", type=int, default=3, help="measured runs of each read in a life (3)")
    parser.add_argument("--changes", type=int, default=3, help="measured runs of each change in a life (3)")
    parser.add_argument("--partitioned", action="store_true", help="by month, twelve partitions")
    parser.add_argument("--deleted", action="store_true", help="also reads with 1 %% and 10 %% deleted")
    parser.add_argument(
        "--planning", action="store_true", help="also planning over 1,000 partitions with 5 deltas each"
    )
    parser.add_argument("--conditions", action="store_true", help="also UPDATE and DELETE by conditions of every type")
    parser.add_argument("--merges", action="store_true", help="also MERGE of all columns, of two, from Parquet, cached")
    parser.add_argument("--bulk", action="store_true", help="also MERGE of a third as many rows, and INSERT of queries")
    parser.add_argument("--small", action="store_true", help="also statements on a table of 1,000 rows")
    parser.add_argument("--first", action="store_true", help="also the first statement of sessions of their own")
    parser.add_argument(
        "--tuned",
        action="store_true",
        help="with two settings of the JVM's side (docs/benchmarks.md)",
    )
    parser.add_argument("--json", type=Path, help="a file for all that was measured, with date and versions")
    parser.add_argument("--show", type=Path, help="measure nothing: show the tables of such a file")
    parser.add_argument(
        "--pages", action="store_true", help="measure nothing: make the documents' tables of docs/measured anew"
    )
    parser.add_argument("--writers", type=int, default=0, help="also so many writers at once, each of rows of its own")
    parser.add_argument("--contestants", default="orc,hive-acid,parquet,delta,iceberg")
    parser.add_argument("--rivals-python", help=f"a Python that has PySpark {RIVALS_SPARK}, for Delta and Iceberg")
    parser.add_argument("--rivals-spark-only", action="store_true", help="all on that PySpark, nothing on the newest")
    options = parser.parse_args()
    if options.show:
        show(json.loads(options.show.read_text()))
        return 0
    if options.pages:
        pages.make()
        return 0
    names = options.contestants.split(",")
    if {*OURS} <= {*names}:
        parser.error(f"{' and '.join(OURS)} would warm each other up: measure them in two runs")
    rivals = [name for name in names if name in RIVALS]
    ours = [name for name in names if name not in RIVALS]
    if rivals and not options.rivals_python:
        parser.error(f"{' and '.join(rivals)} need --rivals-python: `make test-spark VERSION={RIVALS_SPARK}` makes one")
    found: dict[str, Any] = {"date": f"{datetime.now(tz=UTC):%Y-%m-%d}", "options": _words(options), "sections": []}
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    try:
        with Machine(work) as machine, machine.server() as server:
            if rivals:
                jars = [str(jar.fetch(cache_directory())) for jar in RIVALS_JARS]
                asked = [name for name in names if name in (PLAIN, *OURS, *RIVALS)]
                found["sections"].append(_run(options.rivals_python, options, asked, work, server.uri, jars))
            if ours and not options.rivals_spark_only:
                found["sections"].append(_run(sys.executable, options, ours, work, server.uri, []))
    except NotFetchedError as error:
        print(f"Delta and Iceberg cannot be measured: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        options.json.write_text(_text(found))
    show(found)
    return 0


def _words(options: argparse.Namespace) -> dict[str, Any]:
    """The options that say what was measured."""
    return {
        name: value for name, value in vars(options).items() if name not in ("json", "show", "pages", "rivals_python")
    }


def _run(
    python: str, options: argparse.Namespace, names: list[str], work: Path, uri: str, jars: list[str]
) -> dict[str, Any]:
    """What the program of one PySpark tells, and behind it those that measure the first statement of a session."""
    order = _order(options, names, work, uri, jars) | {"planning": options.planning and python == sys.executable}
    lines = _told(python, order)
    for name in names if options.first else ():
        for what in FIRST if name in (*OURS, *RIVALS) else ():
            lines += _told(python, order | {"contestants": [name], "first": what, "last": what == FIRST[-1]})
    return kept(lines)


def _text(found: dict[str, Any]) -> str:
    """JSON in which a list of numbers is one line."""
    return re.sub(r"\[[\d.\s,]*\]", lambda numbers: re.sub(r"\s+", "", numbers[0]), json.dumps(found, indent=1)) + "\n"


def _order(options: argparse.Namespace, names: list[str], work: Path, uri: str, jars: list[str]) -> dict[str, Any]:
    return {
        "contestants": names,
        "rows": options.rows,
        "lives": options.lives,
        "warm_ups": options.warm_ups,
        "reads": options.reads,
        "changes": options.changes,
        "partitioned": options.partitioned,
        "deleted": options.deleted,
        "writers": options.writers,
        "conditions": options.conditions,
        "merges": options.merges,
        "bulk": options.bulk,
        "small": options.small,
        "tuned": options.tuned,
        "first_statements": options.first,
        "first": None,
        "root": str(Path(tempfile.mkdtemp(prefix="data-", dir=work))),
        "uri": uri,
        "jars": jars,
    }


def _told(python: str, order: dict[str, Any]) -> list[dict[str, Any]]:
    with subprocess.Popen(
        [python, "-m", "tests.bench.data.program"],
        cwd=HOUSE,
        env={**os.environ, "PYTHONPATH": str(HOUSE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        found = [json.loads(line) for line in process.stdout if line.startswith("{")]
    if process.returncode:
        raise SystemExit(f"the program that measures ended with {process.returncode}")
    return found


if __name__ == "__main__":
    sys.exit(main())
