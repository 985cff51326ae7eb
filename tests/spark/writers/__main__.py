"""``python -m tests.spark.writers``: all cases, or those that are asked for, and what is wrong with them."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.served import migrated, served
from tests.spark.conftest import started
from tests.spark.writers.case import SETTINGS, Stage, cases

TEMPLATE = "template_writers"


def main() -> None:
    """Play them in an order that the seed gives; ends with status 1 if one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.writers", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("--most", type=int, default=None, help="how many to play, all by default")
    parser.add_argument(
        "--only", action="append", default=[], help="what must be in a case's words; may be given again"
    )
    parser.add_argument("--breadth", action="store_true", help="first each writer beside each change, at each moment")
    options = parser.parse_args()
    chosen = [case for case in cases() if all(word in str(case) for word in options.only)]
    random.Random(options.seed).shuffle(chosen)
    if options.breadth:
        met: Counter[object] = Counter()
        places = {}
        for case in chosen:
            facets = (case.writer, case.disturbance), (case.writer, case.disturbance, case.moment)
            places[case] = (met[facets[1]], met[facets[0]])
            met.update(facets)
        chosen.sort(key=places.__getitem__)
    chosen = chosen[: options.most]
    print(f"seed {options.seed}: {len(chosen)} cases", flush=True)
    wrong: Counter[str] = Counter()
    began, came = time.monotonic(), 0
    with (
        tempfile.TemporaryDirectory() as directory,
        migrated(Path(directory), TEMPLATE) as url,
    ):
        spark = started()
        with served(url, TEMPLATE, Path(directory) / "warehouse", SETTINGS) as server:
            stage = Stage(spark, server.uri, Path(directory) / "rooms")
            for number, case in enumerate(chosen, 1):
                verdict = stage.play(case)
                came += verdict.came
                if verdict.wrong:
                    wrong[case.disturbance] += 1
                    print(f"WRONG {case}: {verdict.outcome}", *verdict.wrong, sep="\n    ", flush=True)
                if number % 100 == 0:
                    print(f"{number} cases, {(time.monotonic() - began) / number:.2f} s each", flush=True)
        spark.stop()
    print(f"{came} cases were played, the moment of {len(chosen) - came} did not come; {sum(wrong.values())} are wrong")
    os._exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
