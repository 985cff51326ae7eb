"""What a walk has compared, and what did not agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.values.rows.conditions import Condition, Row

_SHOWN = 3


class Finding(NamedTuple):
    """Two ways that do not agree on a condition: which way on which table, and rows that show it."""

    way: str
    table: str
    kinds: tuple[str, ...]
    condition: str
    detail: str

    def __str__(self) -> str:
        return f"{self.way} of {self.table}, {' and '.join(self.kinds)}: {self.condition}\n    {self.detail}"


@dataclass
class Findings:
    """All of them; `compared` counts, by way, the rows for which a way's answer was compared with another's."""

    found: list[Finding] = field(default_factory=list)
    compared: Counter[str] = field(default_factory=Counter)

    def judge(
        self,
        way: str,
        table: str,
        condition: Condition,
        kinds: Mapping[str, str],
        rows: Mapping[int, Row],
        expected: Collection[int],
        got: Collection[int],
    ) -> None:
        """Compare the rows, by their ids, for which a condition ought to be true with those that a way gives."""
        self.compared[way] += len(rows)
        expected, got = set(expected), set(got)
        if expected == got:
            return
        parts = []
        for words, ids in (("missing", expected - got), ("too many", got - expected)):
            shown = [{name: rows.get(of, {}).get(name) for name in condition.columns} for of in sorted(ids)[:_SHOWN]]
            parts += [f"{words}: {len(ids)}, such as {_short(shown)}"] if ids else []
        self.tell(way, table, condition, kinds, "; ".join(parts))

    def tell(self, way: str, table: str, condition: Condition, kinds: Mapping[str, str], detail: str) -> None:
        """A finding in words."""
        of = tuple(sorted(kinds[name] for name in condition.columns if name in kinds))
        self.found.append(Finding(way, table, of, condition.text, detail))

    def __str__(self) -> str:
        counted = ", ".join(f"{way} {count:,}" for way, count in sorted(self.compared.items()))
        return f"{sum(self.compared.values()):,} comparisons ({counted})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "…"
