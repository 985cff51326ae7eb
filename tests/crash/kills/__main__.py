"""``python -m tests.crash.kills --seed 7 --kills 200 --queries 50``: writers and streams killed at random moments."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.crash.kills.client import Victims
from tests.crash.kills.run import Kills
from tests.crash.kills.streams import SETTINGS, StreamKills
from tests.served import migrated, served
from tests.spark.conftest import started

TEMPLATE = "template_kills"


def main() -> None:
    """Kill statements, then queries; ends at the first wrong row."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the statements and the moments")
    parser.add_argument("--kills", type=int, default=200, help="how many statements are killed")
    parser.add_argument("--queries", type=int, default=50, help="how often the streaming query is killed")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        migrated(Path(directory), TEMPLATE) as url,
    ):
        room = Path(directory)
        spark = started()
        print(f"seed {options.seed}", flush=True)
        with Victims(spark, room) as victims:
            began = time.monotonic()
            with served(url, TEMPLATE, room / "warehouse") as server:
                kills = Kills(spark, server, victims, room / "statements", options.seed)
                kills.run(options.kills, lambda line: print(line, flush=True))
            print(f"statements: {dict(kills.outcomes)}, {time.monotonic() - began:.0f} s", flush=True)
            began = time.monotonic()
            with served(url, TEMPLATE, room / "warehouse", SETTINGS) as server:
                streams = StreamKills(spark, server, victims, room / "streams", options.seed)
                streams.run(options.queries, lambda line: print(line, flush=True))
            print(f"queries: {streams.summary}, {time.monotonic() - began:.0f} s", flush=True)
        spark.stop()
    os._exit(0)


if __name__ == "__main__":
    main()
