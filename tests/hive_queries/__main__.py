"""``python -m tests.hive_queries /path/to/hive``: play Hive's query files about ACID tables, and count."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import hive_acid.spark
from tests.hive_queries.play import DIFFERS, FOLLOWS, OTHER, REFUSED, Outcome, played, query_files
from tests.served import migrated, served
from tests.spark.conftest import started

TEMPLATE = "template_queries"
_LONGEST = 300
"""So much is shown of a statement, and of what is said about it."""


def main() -> None:
    """Play all files, or those that are named; show the counts, and each statement of the kinds asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.hive_queries", description=__doc__)
    parser.add_argument("hive", type=Path, help="a checkout of Hive's repository")
    parser.add_argument("files", nargs="*", help="names of query files; by default all that are about ACID tables")
    parser.add_argument("--show", nargs="*", default=[OTHER, DIFFERS], help=f"of {REFUSED!r}, {FOLLOWS!r}, …")
    parser.add_argument("--ansi", action="store_true", help="with Spark's ANSI, which Hive has not")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory, migrated(Path(directory), TEMPLATE) as url:
        spark = started()
        spark.conf.set("spark.sql.ansi.enabled", options.ansi)
        for file in options.files or query_files(options.hive):
            scratch = Path(directory) / file
            scratch.mkdir()
            counts: Counter[str] = Counter()
            with served(url, TEMPLATE, scratch / "warehouse") as server:
                acid = hive_acid.spark.enable(spark, server.uri)
                for found in played(acid, options.hive, file, scratch):
                    counts.update(filter(None, (found.kind, found.rows)))
                    if {found.kind, found.rows} & {*options.show}:
                        print(_shown(found), flush=True)
                acid.disable()
            print(f"{file}: {', '.join(f'{count} {name}' for name, count in counts.items())}", flush=True)
            total += counts + Counter(files=1)
        spark.stop()
    for name, count in total.most_common():
        print(f"{count:>6} {name}")


def _shown(found: Outcome) -> str:
    statement, said = (" ".join(text.split())[:_LONGEST] for text in (found.statement, found.said))
    return f"{found.file}, statement {found.number}: {statement}\n    {found.rows or found.kind}: {said}"


if __name__ == "__main__":
    main()
