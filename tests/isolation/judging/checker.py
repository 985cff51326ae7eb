"""The checker: finds in a history whatever snapshot isolation does not allow (of the Elle kind).

From the order of each list's versions follow the dependencies between transactions: ww (replaced what the other wrote),
wr (saw what the other wrote) and rw (did not see what the other wrote, having read before). Snapshot isolation allows
only cycles with two rw in a row, write skew; so a history is in order if these two have no cycle (Adya's G0, G1c,
G-single and, for the second, the long fork):

- ww and wr alone, and each of them closed by one rw;
- the compositions "ww or wr, then perhaps rw".

Beside that it knows of aborted, dirty, intermediate, non-repeatable and stale reads, lost updates and writes, and ids
given twice (`tests.isolation.judging.versions`).

One kind of long fork is Hive's own: a transaction is opened by one call and its snapshot taken by a second. Of what
committed between the two it sees the transactions with smaller ids and not those with larger ones (the cap at its own
id). Forks that need such a hidden commit are counted and not blamed; no update is lost by them, since what is hidden
conflicts at commit.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.isolation.judging import graph
from tests.isolation.judging.history import Transaction
from tests.isolation.judging.versions import Versions, Violation

Edges = dict[int, list[int]]
MOST_STORIES = 5
LONGEST_STORY = 12


@dataclass(slots=True)
class IsolationReport:
    """The judgement: `violations`, and how often what is allowed was seen."""

    violations: list[Violation] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)
    history: Sequence[Transaction] = ()

    @property
    def is_clean(self) -> bool:
        return not self.violations

    def counts(self) -> Counter[str]:
        """Name of an anomaly to how often it was found."""
        return Counter(violation.name for violation in self.violations)

    def story(self) -> str:
        """The shortest violations, each with the lives of the transactions involved."""
        shortest = sorted(self.violations, key=lambda one: (len(one.transactions), one.name != "lost update"))
        parts = []
        for violation in shortest[:MOST_STORIES]:
            lives = [self.history[number].story() for number in dict.fromkeys(violation.transactions[:LONGEST_STORY])]
            parts.append("\n  ".join([f"{violation.name}: {violation.words}", *lives]))
        found = ", ".join(f"{count} x {name}" for name, count in self.counts().most_common())
        return "\n\n".join([f"{len(self.violations)} violations: {found}", *parts])


def check(history: Sequence[Transaction]) -> IsolationReport:
    """Judge a history."""
    versions = Versions(history)
    report = IsolationReport(versions.violations, history=history)
    dependencies = Dependencies(versions)
    dependencies.find_cycles(report)
    return report


class Dependencies:
    """The three graphs between committed transactions."""

    def __init__(self, versions: Versions) -> None:
        self._history = versions.history
        self._committed = versions.committed
        self.ww: Edges = {}
        self.wr: Edges = {}
        self.rw: Edges = {}
        self._on: dict[tuple[int, int, str], str] = {}
        for key, line in versions.lines.items():
            for first, second in itertools.pairwise(line.writers):
                if min(first, second) >= 0:
                    self._add("ww", first, second, str(key))
        for number in versions.committed:
            for key, elements in versions.seen[number].items():
                line = versions.lines[key]
                if line.elements[: len(elements)] == elements:
                    self._add("wr", line.writer_of(len(elements)), number, str(key))
                    self._add("rw", number, line.next_writer(len(elements)), str(key))

    def _add(self, kind: str, source: int | None, target: int | None, key: str) -> None:
        if source is None or target is None or source == target or (source, target, kind) in self._on:
            return
        edges: Edges = getattr(self, kind)
        edges.setdefault(source, []).append(target)
        self._on[source, target, kind] = key

    def find_cycles(self, report: IsolationReport) -> None:
        """Add the cycles that are not allowed to a report, and count those that are."""
        certain = _union(self.ww, self.wr)
        circular = graph.components(self.ww) or graph.components(certain)
        for component in circular:
            cycle = graph.shortest_cycle(self.ww if graph.components(self.ww) else certain, component)
            report.violations.append(self._violation([(cycle[i], cycle[i + 1]) for i in range(len(cycle) - 1)]))
        if circular:
            return
        self._find_single(certain, report)
        if not report.violations:
            blamed = {reader: [w for w in writers if not self._hides(reader, w)] for reader, writers in self.rw.items()}
            for component in graph.components(_composed(certain, blamed)):
                report.violations.append(self._violation(self._expanded(certain, blamed, component)))
            report.allowed["long forks by Hive's two calls"] = len(graph.components(_composed(certain, self.rw)))
        report.allowed["groups in write skew"] = len(graph.components(_union(certain, self.rw)))

    def _find_single(self, certain: Edges, report: IsolationReport) -> None:
        """Cycles with one rw: from its target a path of ww and wr leads back to its source."""
        at = graph.topological_positions(certain, self._committed, lambda number: self._history[number].committing)
        for reader, writers in self.rw.items():
            limit = at[reader]
            for writer in writers:
                if at[writer] < limit:
                    path = graph.shortest_path(certain, writer, reader, lambda node, limit=limit: at[node] < limit)
                    if path is not None:
                        report.violations.append(
                            self._violation([(reader, writer), *itertools.pairwise(path)], single=True)
                        )

    def _hides(self, reader: int, writer: int) -> bool:
        """Whether the cap at the reader's own id may have hidden a commit that its snapshot would have shown."""
        first, second = self._history[reader], self._history[writer]
        return second.txn_id > first.txn_id and second.committing < first.snapshot_at

    def _expanded(self, certain: Edges, rw: Edges, component: list[int]) -> list[tuple[int, int]]:
        """The plain edges of a shortest cycle of composed ones."""
        cycle = graph.shortest_cycle(_composed(certain, rw), component)
        edges: list[tuple[int, int]] = []
        for source, target in itertools.pairwise(cycle):
            if target in certain.get(source, ()):
                edges.append((source, target))
            else:
                middle = next(node for node in certain[source] if target in rw.get(node, ()))
                edges += [(source, middle), (middle, target)]
        return edges

    def _violation(self, edges: Sequence[tuple[int, int]], single: bool = False) -> Violation:
        kinds = [self._kind(source, target, rw=single and at == 0) for at, (source, target) in enumerate(edges)]
        if "rw" not in kinds:
            name = "G1c, information flows in a circle" if "wr" in kinds else "G0, writes in a circle"
        elif kinds.count("rw") == 1:
            name = "G-single, read skew"
        else:
            name = "long fork"
        names = [self._history[source].name for source, _ in edges]
        steps = [
            f"{name} -{kind}-> ({self._on[source, target, kind]})"
            for name, kind, (source, target) in zip(names, kinds, edges, strict=True)
        ]
        return Violation(name, " ".join([*steps, names[0]]), tuple(source for source, _ in edges))

    def _kind(self, source: int, target: int, rw: bool) -> str:
        kinds = ("rw",) if rw else ("ww", "wr", "rw")
        return next(kind for kind in kinds if (source, target, kind) in self._on)


def _union(*graphs: Edges) -> Edges:
    joined: Edges = {}
    for edges in graphs:
        for source, targets in edges.items():
            known = joined.setdefault(source, [])
            known += [target for target in targets if target not in known]
    return joined


def _composed(certain: Edges, rw: Edges) -> Edges:
    """Edges "one of `certain`, then perhaps one of `rw`"."""
    composed: Edges = {}
    for source, middles in certain.items():
        targets: dict[int, None] = dict.fromkeys(middles)
        for middle in middles:
            targets.update(dict.fromkeys(_all(rw, middle)))
        composed[source] = list(targets)
    return composed


def _all(edges: Edges, node: int) -> Iterable[int]:
    return edges.get(node, ())
