"""``make fuzz``: a server of its own is sent hostile messages over several connections; findings come at once."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.fuzz.run import SERVED, run

CHUNK = 2_000
SETTINGS = {
    "metastore.lock.poll.wait": "0ms",
    "metastore.acid.truncate.wait": "0ms",
    "metastore.compactor.worker.threads": "0",
}


def main() -> int:
    """Send messages; the exit status is 1 if any answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--only", help="one method")
    options = parser.parse_args()
    kinds: Counter[tuple[str, str]] = Counter()
    outcomes: Counter[str] = Counter()
    fine: set[str] = set()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hive-acid-fuzz-") as home:
        place = Path(home) / "work" / "place"
        place.mkdir(parents=True)
        (place / "file").write_text("")
        log = open(Path(home) / "log", "w")  # noqa: SIM115 - as long as the server
        words = [word for pair in SETTINGS.items() for word in ("--set", "=".join(pair))]
        command = [sys.executable, "-m", "metastore.cli", "serve", "--port", "0", "--data-dir", f"{home}/data", *words]
        environment = {**os.environ, "PYTHONPATH": os.getcwd(), "HOME": str(place)}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=place, env=environment)
        try:
            assert server.stdout is not None
            uri = server.stdout.readline().strip().removeprefix("listening on ")
            seeds = range(options.seed, options.seed + max(1, options.messages // CHUNK))
            with ThreadPoolExecutor(options.connections) as pool:
                most = min(CHUNK, options.messages)
                runs = [pool.submit(run, uri, seed, most, str(place), options.only) for seed in seeds]
                for number, done in enumerate(as_completed(runs), 1):
                    report = done.result()
                    outcomes += report.outcomes
                    fine |= report.fine
                    for finding in report.findings:
                        kind = finding.method, finding.wrong[:100]
                        kinds[kind] += 1
                        if kinds[kind] == 1:
                            print(finding, flush=True)
                    if number % 20 == 0 or number == len(runs):
                        rate = outcomes.total() / (time.monotonic() - started)
                        print(f"{outcomes.total()} messages, {rate:.0f}/s, {sum(kinds.values())} findings", flush=True)
        finally:
            server.terminate()
            server.wait()
            log.close()
            if kinds:
                (Path.cwd() / "fuzz.log").write_text((Path(home) / "log").read_text())
    print(", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    print(f"never succeeded: {', '.join(sorted(set(SERVED) - fine)) or 'none'}")
    for (method, wrong), count in kinds.most_common():
        print(f"{count:6} {method}: {wrong}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
