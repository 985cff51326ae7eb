"""What a run has measured, as it is kept in JSON: all figures of each step, states of the tables, date and versions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from tests.bench.data.lifecycle import Cost, State

_FIGURES = [figure.name for figure in fields(Cost)]


@dataclass(frozen=True)
class Section:
    """What one PySpark has measured, as JSON has it, of some of the contestants that were `asked` for."""

    title: str
    asked: Sequence[str]
    kept: Mapping[str, Any]

    @property
    def contestants(self) -> list[str]:
        """Their names, in the order in which they were asked for: in each turn another one is the first."""
        stages: list[Mapping[str, object]] = [*self.costs.values(), *self.states.values()]
        return [name for name in self.asked if any(name in found for found in stages)]

    @cached_property
    def costs(self) -> dict[str, dict[str, list[Cost]]]:
        """What each step took each contestant, each time."""
        return {
            step: {name: _costs(figures) for name, figures in found.items()}
            for step, found in self.kept["costs"].items()
        }

    @cached_property
    def states(self) -> dict[str, dict[str, State]]:
        """What the tables of contestants were at each stage."""
        return {stage: {name: State(**one) for name, one in of.items()} for stage, of in self.kept["states"].items()}

    @property
    def others(self) -> list[dict[str, Any]]:
        """What writers at the same time got done, and how long planning took."""
        return list(self.kept["others"])

    def unequal(self) -> list[str]:
        """The stages at which not all contestants have the same rows."""
        return [stage for stage, of in self.states.items() if len({one[:2] for one in of.values()}) > 1]


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The sections of a file, each by a title that says when, with what and of how many rows it was measured."""
    options = found["options"]
    settings = "two settings of the JVM's side" if options["tuned"] else "the JVM's defaults"
    where = " in twelve partitions" if options["partitioned"] else ""
    lives = f"{_lives(options['warm_ups'])} to warm up, {_lives(options['lives'])} measured"
    how = f"{options['rows']:,} rows{where}, zstd, {settings}, {lives}"
    asked = options["contestants"].split(",")
    return [
        Section(f"{found['date']}, {_told(section['versions'])}, {how}", asked, section)
        for section in found["sections"]
    ]


def _told(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _lives(number: int) -> str:
    return f"{number} {'life' if number == 1 else 'lives'} of each table"


def kept(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A section of a file, of the lines of the programs that measured."""
    versions: dict[str, str] = {}
    costs: dict[str, dict[str, dict[str, list[float]]]] = {}
    states: dict[str, dict[str, dict[str, Any]]] = {}
    others = []
    for line in lines:
        if "versions" in line:
            versions = line["versions"]
        elif "step" in line:
            figures = costs.setdefault(line["step"], {}).setdefault(line["contestant"], {})
            for name in _FIGURES:
                figures.setdefault(name, []).append(round(line[name], 0 if name.endswith("_mb") else 3))
        elif "stage" in line:
            states.setdefault(line["stage"], {})[line["contestant"]] = {of: line[of] for of in State._fields}
        else:
            others.append(dict(line))
    return {"versions": versions, "costs": costs, "states": states, "others": others}


def _costs(figures: Mapping[str, list[float]]) -> list[Cost]:
    return [Cost(*of) for of in zip(*(figures[name] for name in _FIGURES), strict=True)]


def median(costs: Iterable[Cost], attribute: str) -> float:
    """The median of one figure."""
    return statistics.median(getattr(cost, attribute) for cost in costs)
