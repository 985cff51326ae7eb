"""``python -m tests.walk --steps 100000 --seed 7 --together 4``: a long walk, seeds counted up until one breaks."""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.served import Served, migrated, served
from tests.walk.story import Plan, run

TEMPLATE = "template_walk"


def main() -> None:
    """Walk in pieces, so that a story stays short; each piece has a fresh database and the next seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.walk", description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="calls in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first piece")
    parser.add_argument("--piece", type=int, default=2_000, help="calls on one database")
    parser.add_argument("--together", type=int, default=1, help="calls sent at the same time, at most")
    parser.add_argument("--housekeeping", action="store_true", help="purge all the time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, migrated(Path(directory), TEMPLATE) as url:

        @contextmanager
        def fresh() -> Iterator[Served]:
            with served(url, TEMPLATE, Path(directory) / "warehouse") as server:
                yield server

        started, done = time.monotonic(), 0
        for seed in itertools.count(options.seed):
            if done >= options.steps:
                break
            run(Plan(seed, options.piece, options.together, options.housekeeping), fresh)
            done += options.piece
            print(
                f"seed {seed}: {done} calls as they ought to be, {done / (time.monotonic() - started):.0f}/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
