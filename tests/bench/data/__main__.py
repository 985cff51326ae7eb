"""``make bench-data``: hive-acid beside plain ORC and Parquet, Delta and Iceberg: same rows, same Spark, same run.

Delta and Iceberg are measured on the newest Spark that both have a release for, ours and the plain formats on the
newest as well. A figure is the median of the warm runs; the first lives of every contestant are not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.bench.calls.servers import Machine
from tests.bench.data.lifecycle import CHANGES, Cost
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
PLAIN, OURS, RIVALS = "orc", "hive-acid", ("delta", "iceberg")


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
    parser.add_argument("--writers", type=int, default=0, help="also so many writers at once, each of rows of its own")
    parser.add_argument("--contestants", default="orc,hive-acid,parquet,delta,iceberg")
    parser.add_argument("--rivals-python", help=f"a Python that has PySpark {RIVALS_SPARK}, for Delta and Iceberg")
    options = parser.parse_args()
    names = options.contestants.split(",")
    rivals = [name for name in names if name in RIVALS]
    ours = [name for name in names if name not in RIVALS]
    if rivals and not options.rivals_python:
        parser.error(f"{' and '.join(rivals)} need --rivals-python: `make test-spark VERSION={RIVALS_SPARK}` makes one")
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    try:
        with Machine(work) as machine, machine.server() as server:
            if rivals:
                jars = [str(jar.fetch(cache_directory())) for jar in RIVALS_JARS]
                asked = [name for name in names if name in (PLAIN, OURS, *RIVALS)]
                _report(f"PySpark {RIVALS_SPARK}", _run(options.rivals_python, options, asked, work, server.uri, jars))
            if ours:
                _report("newest PySpark", _run(sys.executable, options, ours, work, server.uri, []))
    except NotFetchedError as error:
        print(f"Delta and Iceberg cannot be measured: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def _run(
    python: str, options: argparse.Namespace, names: list[str], work: Path, uri: str, jars: list[str]
) -> list[dict[str, Any]]:
    order = {
        "contestants": names,
        "rows": options.rows,
        "lives": options.lives,
        "warm_ups": options.warm_ups,
        "reads": options.reads,
        "changes": options.changes,
        "partitioned": options.partitioned,
        "deleted": options.deleted,
        "writers": options.writers,
        "planning": options.planning and python == sys.executable,
        "root": str(Path(tempfile.mkdtemp(prefix="data-", dir=work))),
        "uri": uri,
        "jars": jars,
    }
    found = []
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


def _report(title: str, lines: list[dict[str, Any]]) -> None:
    """A table: a line per step, for each contestant CPU seconds and wall seconds, and ratios to plain ORC."""
    costs: dict[str, dict[str, list[Cost]]] = defaultdict(lambda: defaultdict(list))
    checks: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for line in lines:
        if "planning" in line or "writers" in line:
            continue
        if "step" in line:
            cost = Cost(line["wall_s"], line["jvm_cpu_s"], line["client_cpu_s"])
            costs[line["step"]][line["contestant"]].append(cost)
        else:
            checks[line["stage"]][line["contestant"]] = (line["rows"], line["checksum"])
    names = list(dict.fromkeys(line["contestant"] for line in lines))
    print(f"\n{title}: CPU s of the JVM + of the client / wall s, in brackets the ratios of their sum and of the wall")
    print("| step |" + "".join(f" {name} |" for name in names))
    print("|---|" + "---|" * len(names))
    for step, by_name in costs.items():
        plain = by_name.get(PLAIN) or costs[step.replace("changed:", "clean:")].get(PLAIN)
        cells = [_cell(by_name.get(name), plain if name != PLAIN else None) for name in names]
        shown = f"**{step}**" if step in CHANGES else step
        print(f"| {shown} |" + "".join(f" {cell} |" for cell in cells))
    for stage, by_name in checks.items():  # type: ignore[assignment]
        equal = len(set(by_name.values())) == 1
        print(f"rows {stage}: {'equal for all' if equal else f'DIFFERENT: {by_name}'}")
    for line in lines:
        if "writers" in line:
            print(
                f"{line['writers']} writers of rows of their own, {line['contestant']}: "
                f"{line['commits'] / line['seconds']:.2f} commits/s, {line['conflicts']} conflicts beside "
                f"{line['commits']} commits"
            )
        if "planning" in line:
            print(f"1,000 partitions with 5 deltas each, {line['planning']}: {line['seconds']:.2f} s")


def _cell(own: list[Cost] | None, plain: list[Cost] | None) -> str:
    if not own:
        return "-"
    jvm_s, client_s = (_median(own, attribute) for attribute in ("jvm_cpu_s", "client_cpu_s"))
    shown = f"{jvm_s:.2f} + {client_s:.2f} / {_median(own, 'wall_s'):.2f}"
    if not plain:
        return shown
    cpu, wall = (_median(own, of) / max(0.01, _median(plain, of)) for of in ("cpu_s", "wall_s"))
    return f"{shown} ({cpu:.2f} / {wall:.2f})"


def _median(costs: list[Cost], attribute: str) -> float:
    return statistics.median(getattr(cost, attribute) for cost in costs)


if __name__ == "__main__":
    sys.exit(main())
