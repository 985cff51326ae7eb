"""The tables of what was measured, in the form of the documents: costs, memory, files, and who got in whose way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.bench.data.lifecycle import CHANGES, Cost
from tests.bench.data.record import Section, median, sections

PLAIN = "orc"
"""With whom the others are compared, where it can do a step."""

PEER = "iceberg"
"""With whom they are compared in other steps."""

LIFE = ("load", "clean:", *CHANGES, "changed:", "compaction", "compacted:")
DELETED = ("1 % deleted:", "1 % in a tenth of the files:", "10 % deleted:")
STATEMENTS = ("UPDATE by", "DELETE by", "MERGE of", "INSERT of", "small:", "first of a session:")
"""By what the names of steps begin that a table has."""

_ROUNDED = 0.005
"""Of shorter times no ratio is told: the clock of CPU time has steps of twice as much."""


def show(found: Mapping[str, Any]) -> None:
    """Print all tables of a file."""
    for section in sections(found):
        print(f"\n{section.title}\n")
        for words, table in (
            ("CPU s of JVM and client / wall s, in brackets the ratios to plain ORC or Iceberg", costs(section)),
            ("Peaks of resident memory, MB of the JVM + of the client", memory(section)),
            ("Files on disk / MB", files(section)),
            ("Writers at the same time", writers(section)),
        ):
            if table:
                print("\n".join((words, *table, "")))
        for stage, of in section.states.items():
            rows = {name: one[:2] for name, one in of.items()}
            print(f"rows {stage}: {f'DIFFERENT: {rows}' if stage in section.unequal() else 'equal for all'}")
        for line in section.others:
            if "planning" in line:
                print(f"1,000 partitions with 5 deltas each, {line['planning']}: {line['seconds']:.2f} s")


def costs(section: Section, steps: Sequence[str] = ()) -> list[str]:
    """CPU s of JVM and client together / wall s, medians; in brackets the ratios to plain ORC, or to Iceberg."""

    def cell(step: str, name: str) -> str:
        of = section.costs[step]
        beside = of.get(PLAIN) or section.costs.get(step.replace("changed:", "clean:"), {}).get(PLAIN) or of.get(PEER)
        return _cost(of.get(name), beside)

    return _table(section, steps, cell)


def memory(section: Section) -> list[str]:
    """The most of resident memory in each step, MB of the JVM + of the client."""
    return _table(section, (), lambda step, name: _peaks(section.costs[step].get(name)))


def files(section: Section) -> list[str]:
    """How many data files are on disk, and their MB, with those that a format has replaced and not removed yet."""
    names = section.contestants
    return [
        *_head("stage", names),
        *(
            _row(
                stage,
                (f"{len(of[name].files)} / {sum(of[name].files) / 1e6:.1f}" if name in of else "–" for name in names),
            )
            for stage, of in section.states.items()
        ),
    ]


def writers(section: Section) -> list[str]:
    """What writers at the same time, each of rows of its own, got done."""
    found = [line for line in section.others if "writers" in line]
    if not found:
        return []
    return [
        *_head("contestant", ("writers", "commits per second", "conflicts beside commits")),
        *(
            _row(
                line["contestant"],
                (
                    str(line["writers"]),
                    f"{line['commits'] / line['seconds']:.2f}",
                    f"{line['conflicts']} beside {line['commits']}",
                ),
            )
            for line in found
        ),
    ]


def _table(section: Section, steps: Sequence[str], cell: Callable[[str, str], str]) -> list[str]:
    """A line for each step whose name begins by one of `steps`, by their order, or for all; a column for each name."""
    begins = steps or (*LIFE, *DELETED, *STATEMENTS, "")
    wanted = list(dict.fromkeys(step for begin in begins for step in section.costs if step.startswith(begin)))
    names = [name for name in section.contestants if any(name in section.costs[step] for step in wanted)]
    return [*_head("step", names), *(_row(step, (cell(step, name) for name in names)) for step in wanted)]


def _head(first: str, names: Sequence[str]) -> list[str]:
    return [_row(first, names), f"|{'---|' * (len(names) + 1)}"]


def _row(first: str, cells: Iterable[str]) -> str:
    return f"| {' | '.join((first, *cells))} |"


def _cost(own: list[Cost] | None, beside: list[Cost] | None) -> str:
    if not own:
        return "–"
    shown = f"{median(own, 'cpu_s'):.2f} / {median(own, 'wall_s'):.2f}"
    if not beside or own is beside:
        return shown
    return f"{shown} ({' / '.join(_ratio(own, beside, of) for of in ('cpu_s', 'wall_s'))})"


def _ratio(own: list[Cost], beside: list[Cost], attribute: str) -> str:
    of_other = median(beside, attribute)
    return f"{median(own, attribute) / of_other:.2f}" if of_other > _ROUNDED else "–"


def _peaks(own: list[Cost] | None) -> str:
    """The most of all runs."""
    if not own:
        return "–"
    return " + ".join(f"{max(getattr(cost, of) for cost in own):,.0f}" for of in ("jvm_peak_mb", "client_peak_mb"))
