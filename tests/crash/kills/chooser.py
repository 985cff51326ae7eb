"""Chooses statements and the moments of kills from a seed."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tests.crash.kills.content import FLAT, INSERT_ONLY, PARTITIONED, Content

ROWS_OF_IT = (1, 2, 5, 20)
MOST_LINES = 80
"""A table with more rows is emptied sooner or later."""


class Order(NamedTuple):
    """A statement: the name of its kind, and its arguments."""

    kind: str
    arguments: dict[str, Any]
    by_spark: bool
    """Whether Spark writes all files, also those of a few rows."""


class Chooser:
    """What happens in a run of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._next_id = 1
        self._left: list[str] = []

    def order(self, content: Content) -> Order:
        """The next statement; all kinds have their turn, in an order of chance."""
        if not self._left:
            self._left = [*_KINDS]
            self.chance.shuffle(self._left)
        kind = self._left.pop()
        table = self.chance.choice(_KINDS[kind])
        if len(content[table]) > MOST_LINES:
            return Order("truncate", {"table": table}, by_spark=False)
        arguments = getattr(self, f"_{kind.replace('-', '_')}")(table, content)
        return Order(kind, arguments, by_spark=self.chance.random() < 0.4)

    def _rows(self, number: int | None = None) -> list[tuple[int, int, int]]:
        number = number or self.chance.choice(ROWS_OF_IT)
        first, self._next_id = self._next_id, self._next_id + number
        return [(one, self.chance.randrange(100), self.chance.randrange(4)) for one in range(first, first + number)]

    def _insert(self, table: str, content: Content) -> dict[str, Any]:
        return {"table": table, "rows": self._rows()}

    _overwrite = _insert

    def _update(self, table: str, content: Content) -> dict[str, Any]:
        return {"plus": self.chance.randint(1, 9), **self._delete(table, content)}

    def _delete(self, table: str, content: Content) -> dict[str, Any]:
        of = self.chance.choice((2, 3, 7))
        return {"table": table, "of": of, "rest": self.chance.randrange(of)}

    def _merge(self, table: str, content: Content) -> dict[str, Any]:
        known = self.chance.sample([*content[table]], min(len(content[table]), 6))
        again = [(number, self.chance.randrange(100), self.chance.randrange(4)) for number in known]
        return {"table": table, "rows": [*again, *self._rows()]}

    def _load(self, table: str, content: Content) -> dict[str, Any]:
        return {"table": table, "rows": self._rows(), "p": self.chance.randrange(4)}

    def _truncate(self, table: str, content: Content) -> dict[str, Any]:
        return {"table": table}

    def _transaction(self, table: str, content: Content) -> dict[str, Any]:
        return {"rows": self._rows(), "more": self._rows(), "plus": self.chance.randint(1, 9)}

    def _multi_insert(self, table: str, content: Content) -> dict[str, Any]:
        return {"rows": self._rows()}

    def _stream(self, table: str, content: Content) -> dict[str, Any]:
        transactions = [self._rows(self.chance.choice((1, 5))) for _ in range(4)]
        return {"table": table, "transactions": transactions, "batch": self.chance.choice((1, 2, 4))}


_FULL = (PARTITIONED, FLAT)
_ALL = (*_FULL, INSERT_ONLY)
_KINDS: dict[str, tuple[str, ...]] = {
    "insert": _ALL,
    "update": _FULL,
    "delete": _FULL,
    "merge": _FULL,
    "overwrite": _ALL,
    "load": _ALL,
    "truncate": _ALL,
    "transaction": _FULL,
    "multi-insert": _FULL,
    "stream": _FULL,
}
