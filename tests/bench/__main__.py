"""``make bench``: ratios, each against something measured in the same run on the same machine."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.bench import scan
from tests.bench.calls import rpc
from tests.bench.calls.servers import Machine


def main() -> int:
    """Print write cycles beside the floor, and a full scan beside plain ORC."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each RPC measurement (3)")
    parser.add_argument("--only", choices=["rpc", "scan"], help="one of the two")
    options = parser.parse_args()
    status = 0
    if options.only != "scan":
        status = rpc.main(["--only", "write", "--seconds", str(options.seconds)])
    if options.only != "rpc":
        work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
        try:
            with Machine(work) as machine, machine.server() as server:
                for line in scan.run(server.uri, work):
                    print(line)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
