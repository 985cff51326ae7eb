"""``make bench``: ratios, each against something measured in the same run on the same machine."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from hive_acid.demo.daemon import Daemon
from metastore.store.embedded import EmbeddedPostgres
from tests.bench import rpc, scan


def main() -> int:
    """Print the figures of issue 3: write cycles and a full scan."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each RPC measurement")
    parser.add_argument("--only", choices=["rpc", "scan"], help="one of the two")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    postgres = EmbeddedPostgres(work / "postgres")
    url = postgres.start()
    daemon = Daemon(work, {"hive.compactor.initiator.on": "false"}, database_url=url)
    try:
        daemon.start()
        if options.only != "scan":
            print(
                "RPC write cycles (open, allocate, lock, heartbeat, commit: five durable calls but for the heartbeat)"
            )
            print(f"{'connections':>12} {'cycles/s':>10} {'inserts/s':>10} {'cycles per insert':>18}")
            for connections, cycles, inserts in rpc.run(daemon.uri, url, options.seconds):
                print(f"{connections:>12} {cycles:>10,.0f} {inserts:>10,.0f} {cycles / inserts:>18.3f}")
            print(f"daemon's memory: {daemon.memory_mb():.0f} MB")
        if options.only != "rpc":
            for line in scan.run(daemon.uri, work):
                print(line)
    finally:
        daemon.stop()
        postgres.stop()
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
