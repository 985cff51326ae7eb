"""The tables of a run: what each step took each contestant, and how often they got in each other's way."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import fields
from typing import Any

from tests.bench.data.lifecycle import CHANGES, Cost

PLAIN = "orc"
"""Whom the others are compared with."""


def show(found: dict[str, Any]) -> None:
    """Print the tables of what was measured, as `docs/benchmarks.md` has them."""
    for section in found["sections"]:
        versions = ", ".join(f"{name} {version}" for name, version in section["versions"].items())
        _show(f"{found['date']}, {versions}, {_shown(found['options'])}", section["lines"])


def _shown(options: dict[str, Any]) -> str:
    settings = "two settings of the JVM's side" if options["tuned"] else "the JVM's defaults"
    return f"{options['rows']:,} rows, zstd, {settings}, {options['warm_ups']} lives to warm up"


def _show(title: str, lines: list[dict[str, Any]]) -> None:
    """A table: a line per step, for each contestant CPU seconds and wall seconds, and ratios to plain ORC."""
    costs: dict[str, dict[str, list[Cost]]] = defaultdict(lambda: defaultdict(list))
    checks: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for line in lines:
        if "step" in line:
            costs[line["step"]][line["contestant"]].append(Cost(**{of.name: line[of.name] for of in fields(Cost)}))
        elif "stage" in line:
            checks[line["stage"]][line["contestant"]] = (line["rows"], line["checksum"])
    names = list(dict.fromkeys(line["contestant"] for line in lines if "contestant" in line))
    print(f"\n{title}: CPU s of the JVM + of the client / wall s, in brackets the ratios of their sum and of the wall")
    print("| step |" + "".join(f" {name} |" for name in names))
    print("|---|" + "---|" * len(names))
    for step, by_name in costs.items():
        plain = by_name.get(PLAIN) or costs[step.replace("changed:", "clean:")].get(PLAIN)
        cells = [_cell(by_name.get(name), plain if name != PLAIN else None) for name in names]
        shown = f"**{step}**" if step in CHANGES else step
        print(f"| {shown} |" + "".join(f" {cell} |" for cell in cells))
    print(
        f"\nPeaks of resident memory, MB of the JVM + of the client\n| step |{''.join(f' {name} |' for name in names)}"
    )
    print("|---|" + "---|" * len(names))
    for step, by_name in costs.items():
        print(f"| {step} |" + "".join(f" {_peaks(by_name.get(name))} |" for name in names))
    for stage, by_name in checks.items():  # type: ignore[assignment]
        equal = len(set(by_name.values())) == 1
        print(f"rows {stage}: {'equal for all' if equal else f'DIFFERENT: {by_name}'}")
    for line in lines:
        if "writers" in line:
            print(
                f"{line['writers']} writers of rows of their own, {line['contestant']}: "
                f"{line['commits'] / line['seconds']:.2f} commits/s, {line['conflicts']} conflicts beside "
                f"{line['commits']} commits"
            )
        if "planning" in line:
            print(f"1,000 partitions with 5 deltas each, {line['planning']}: {line['seconds']:.2f} s")


def _cell(own: list[Cost] | None, plain: list[Cost] | None) -> str:
    if not own:
        return "-"
    jvm_s, client_s = (_median(own, attribute) for attribute in ("jvm_cpu_s", "client_cpu_s"))
    shown = f"{jvm_s:.2f} + {client_s:.2f} / {_median(own, 'wall_s'):.2f}"
    if not plain:
        return shown
    cpu, wall = (_median(own, of) / max(0.01, _median(plain, of)) for of in ("cpu_s", "wall_s"))
    return f"{shown} ({cpu:.2f} / {wall:.2f})"


def _peaks(own: list[Cost] | None) -> str:
    """The most of all runs."""
    if not own:
        return "-"
    return " + ".join(f"{max(getattr(cost, of) for cost in own):.0f}" for of in ("jvm_peak_mb", "client_peak_mb"))


def _median(costs: list[Cost], attribute: str) -> float:
    return statistics.median(getattr(cost, attribute) for cost in costs)
