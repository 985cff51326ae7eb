"""``make isolation``: drive a metastore through every trouble we know and judge what its clients saw."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from pathlib import Path

from tests.isolation.run import RunConfig, run
from tests.isolation.world.chaos import ChaosConfig


def main() -> int:
    """Exit status 0 when all is as snapshot isolation wants it, 1 with seed and story when not."""
    parser = argparse.ArgumentParser(prog="make isolation", description=__doc__)
    parser.add_argument("--txns", type=int, default=10_000, help="transactions to run")
    parser.add_argument("--seed", type=int, default=None, help="of plans, faults and troubles (a random one)")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--width", type=int, default=16, help="lists of each table in use at a time")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--faults", type=float, default=0.02, help="part of the calls by proxy that is lost or doubled")
    parser.add_argument("--pauses", type=float, default=0.001, help="part of the clients' turns beyond the time-out")
    parser.add_argument("--lingering", type=float, default=0.005, help="part of the transactions that take seconds")
    parser.add_argument("--kill-every", type=float, default=20.0, help="seconds between kills of a server, 0 for never")
    parser.add_argument("--restart-every", type=float, default=45.0, help="the same for restarts of Postgres")
    parser.add_argument("--timeout", type=float, default=8.0, help="hive.txn.timeout in seconds")
    parser.add_argument("--min-history", action="store_true", help="clients name the tables that they read")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    config = RunConfig(
        transactions=options.txns,
        seed=seed,
        clients=options.clients,
        tables=options.tables,
        width=options.width,
        servers=options.servers,
        fault_rate=options.faults,
        pause_rate=options.pauses,
        lingering_rate=options.lingering,
        timeout_s=options.timeout,
        min_history=options.min_history,
        chaos=ChaosConfig(options.kill_every, options.restart_every, frozen_s=options.timeout),
    )
    logging.getLogger("hive_acid").setLevel(logging.ERROR)  # lost heartbeats and the like are what we are here for
    with tempfile.TemporaryDirectory(prefix="hive-acid-isolation-") as work:
        result = run(config, Path(work), lambda words: print(words, flush=True))
    print(result.summary())
    if result.is_clean:
        print("Nothing but what snapshot isolation allows.")
        return 0
    print(result.story())
    return 1


if __name__ == "__main__":
    sys.exit(main())
