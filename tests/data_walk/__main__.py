"""``python -m tests.data_walk --steps 1000 --seed 7``: long walks, seeds counted up until one breaks."""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from tests.data_walk.story import Stage
from tests.served import migrated
from tests.spark.conftest import started

TEMPLATE = "template_walk"


def main() -> None:
    """Walk in pieces, so that a story stays short; each piece has fresh tables and the next seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.data_walk", description=__doc__)
    parser.add_argument("--steps", type=int, default=200, help="statements in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first piece")
    parser.add_argument("--piece", type=int, default=40, help="statements on one pair of tables")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        migrated(Path(directory), TEMPLATE) as url,
    ):
        spark, walks = started(), Path(directory) / "walks"
        walks.mkdir()
        began, done = time.monotonic(), 0
        for seed in itertools.count(options.seed):
            if done >= options.steps:
                break
            played = Stage(spark, url, TEMPLATE, walks).run(seed, options.piece)
            done += options.piece
            each_s = (time.monotonic() - began) / done
            print(f"seed {seed}: {done} steps as they ought to be, {each_s:.1f} s each; {played}", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
