"""``make simulate-compaction``: each policy of compaction on each recorded workload, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tests.compaction.simulator.simulation import POLICIES, Outcome, simulated
from tests.compaction.simulator.workloads import workloads

_MB = 1 << 20
_HEAD = """\
| workload | policy | readings, CPU s | of these avoidable | compactions, CPU s | sum | MB rewritten | worst reading | \
minor / major |
|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate-compaction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    parser.add_argument("--only", default="", help="workloads with this in their names")
    options = parser.parse_args()
    found = [
        simulated(workload, policy, options.seed)
        for workload in workloads()
        if options.only in workload.name
        for policy in POLICIES
    ]
    found += [_together(policy, found) for policy in POLICIES]
    if options.json:
        print(json.dumps([outcome.to_json() for outcome in found], indent=2))
        return 0
    print(_HEAD)
    for of in found:
        print(
            f"| {of.workload} | {of.policy} | {of.read_s:,.1f} | {of.read_s - of.least_read_s:.1f} | "
            f"{of.rewrite_s:.1f} | {of.total_s:,.1f} | {of.rewritten_bytes / _MB:,.0f} | {of.worst_read_s:.2f} | "
            f"{of.minor} / {of.major} |"
        )
    return 0


def _together(policy: str, found: Sequence[Outcome]) -> Outcome:
    """All workloads of a policy."""
    own = [of for of in found if of.policy == policy]
    total = Outcome("together", policy, worst_read_s=max(of.worst_read_s for of in own))
    for of in own:
        total.readings += of.readings
        total.read_s += of.read_s
        total.least_read_s += of.least_read_s
        total.rewrite_s += of.rewrite_s
        total.written_bytes += of.written_bytes
        total.rewritten_bytes += of.rewritten_bytes
        total.minor += of.minor
        total.major += of.major
    return total


if __name__ == "__main__":
    sys.exit(main())
