"""Random filters over random partitions: Postgres finds what a plain evaluation in Python finds."""

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from tests.catalog.conftest import Rpc, column, partition, table

NULL = "__HIVE_DEFAULT_PARTITION__"
KEYS = {"s": "string", "i": "int", "d": "date", "t": "timestamp", "n": "decimal(10,2)", "v": "varchar(20)"}
VALUES: dict[str, list[str]] = {
    "s": ["a", "b", "A", "a b", "a/b", "it's", "2020-01-01", "10", "9", "ü", "%", "a_b", "\\", NULL],
    "i": ["0", "1", "9", "10", "-3", "05", "+7", "2147483647", NULL],
    "d": ["2019-12-31", "2020-01-01", "2020-01-02", "2021-06-30", NULL],
    "t": ["2020-01-01 00:00:00", "2020-01-01 00:00:00.5", "2020-01-01 12:30:00.25", "2020-01-02 00:00:00.0", NULL],
    "n": ["0", "1.5", "1.50", "-2.25", "10", NULL],
    "v": ["x", "y", "xy", NULL],
}
CONSTANTS = VALUES | {
    "i": ["0", "1", "5", "05", "1.0", "1.5", "7", "10", "-3", "99999999999999999999"],
    "d": ["2020-01-01", "2020-01-02", "2019-1-5"],
    "t": ["2020-01-01 00:00:00", "2020-01-01 12:30:00.250", "2020-01-02", "2020-01-01 00:00:00.500000"],
    "n": ["0", "1.5", "-2.250", "10.00", "3"],
    "s": ["a", "b", "a b", "a/b", "2020-01-01", "10", "9", "ü", NULL],
    "v": ["x", "y", "z"],
}
PATTERNS = {"s": ["a%", "%b", "a_b", "a.*", r"a\_b", "2020%", ".*"], "v": ["x%", "_"], "i": ["1%", "%"]}
PATTERNS |= {"d": ["2020%"], "t": ["%12:30%"], "n": ["1.5%"]}

Row = dict[str, str]


class Filters:
    """Makes a text and a function that says the same: true, false, or None where SQL says null."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def some(self, depth: int = 3) -> tuple[str, Any]:
        kind = self._dice.random()
        if depth == 0 or kind < 0.4:
            return self._leaf()
        if kind < 0.5:
            text, says = self.some(depth - 1)
            return f"not ({text})", lambda row: _not(says(row))
        parts = [self.some(depth - 1) for _ in range(self._dice.randint(2, 3))]
        joined, of = ("AND", _all) if kind < 0.75 else ("or", _any)
        text = f" {joined} ".join(f"({text})" for text, _ in parts)
        return text, lambda row: of([says(row) for _, says in parts])

    def _leaf(self) -> tuple[str, Any]:
        key = self._dice.choice(list(KEYS))
        kind = self._dice.randrange(6)
        if kind == 0:
            pattern = self._dice.choice(PATTERNS[key])
            return f"{self._key(key)} like {_quoted(pattern)}", lambda row: _like(row[key], pattern)
        if kind == 1:
            low, high = self._constant(key), self._constant(key)
            text = f"{self._key(key)} {{}}between {_literal(low)} and {_literal(high)}"
            return self._maybe_not(
                text, lambda row: _all([_compare(key, row, ">=", low), _compare(key, row, "<=", high)])
            )
        if kind == 2:
            chosen = [self._constant(key) for _ in range(self._dice.randint(1, 4))]
            name = self._key(key) if self._dice.random() < 0.5 else f"({self._key(key)})"
            text = f"{name} {{}}in ({', '.join(map(_literal, chosen))})"
            return self._maybe_not(text, lambda row: _any([_compare(key, row, "=", one) for one in chosen]))
        if kind == 3:
            keys = self._dice.sample(list(KEYS), 2)
            rows = [[self._constant(one) for one in keys] for _ in range(self._dice.randint(1, 3))]
            listed = ", ".join(f"const struct({', '.join(map(_literal, row))})" for row in rows)
            text = f"(struct({', '.join(keys)})) {{}}in ({listed})"
            return self._maybe_not(
                text,
                lambda row: _any(
                    [_all([_compare(k, row, "=", c) for k, c in zip(keys, one, strict=True)]) for one in rows]
                ),
            )
        if kind == 4:
            negated = self._dice.random() < 0.5
            text = f"{self._key(key)} is {'not ' if negated else ''}null"
            return text, lambda row: (row[key] == NULL) != negated
        sign, constant = self._dice.choice(["=", "==", "!=", "<>", "<", "<=", ">", ">="]), self._constant(key)
        says = lambda row: _compare(key, row, sign, constant)  # noqa: E731
        if self._dice.random() < 0.3:
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
            return f"{_literal(constant)} {flipped} {self._key(key)}", says
        return f"{self._key(key)} {sign} {_literal(constant)}", says

    def _maybe_not(self, text: str, says: Any) -> tuple[str, Any]:
        if self._dice.random() < 0.3:
            return text.format("not "), lambda row: _not(says(row))
        return text.format(""), says

    def _constant(self, key: str) -> str:
        return self._dice.choice(CONSTANTS[key])

    def _key(self, key: str) -> str:
        return self._dice.choice([key, key.upper(), f"`{key}`"])


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"


def _literal(constant: str) -> str:
    if constant.removeprefix("-").isdigit():
        return constant
    if len(constant) > 12 and constant[4] == "-":
        return f"TIMESTAMP '{constant}'"
    return _quoted(constant)


def _typed(key: str, text: str) -> Any:
    if KEYS[key] in ("string", "varchar(20)"):
        return text
    if text == NULL:
        return None
    if key in ("i", "n"):
        return Decimal(text)
    day, _, clock = text.partition(" ")
    year, month, date = map(int, day.split("-"))
    hours, minutes, seconds = (clock or "0:0:0").split(":")
    begin = datetime.datetime(year, month, date, int(hours), int(minutes))
    return begin + datetime.timedelta(seconds=float(seconds))


def _compare(key: str, row: Row, sign: str, constant: str) -> bool | None:
    left, right = _typed(key, row[key]), _typed(key, constant)
    if left is None or right is None:
        return None
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return {
        "=": left == right, "==": left == right, "!=": left != right, "<>": left != right,
        "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
    }[sign]  # fmt: skip


def _like(value: str, pattern: str) -> bool:
    """By trying, character after character."""
    if not pattern:
        return not value
    if pattern.startswith((".*", "%")):
        rest = pattern[2:] if pattern.startswith(".*") else pattern[1:]
        return any(_like(value[at:], rest) for at in range(len(value) + 1))
    if pattern.startswith("_"):
        return bool(value) and _like(value[1:], pattern[1:])
    letter, rest = (pattern[1], pattern[2:]) if pattern.startswith("\\") else (pattern[0], pattern[1:])
    return value.startswith(letter) and _like(value[1:], rest)


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


@pytest.mark.parametrize("seed", range(4))
def test_random_filters(rpc: Rpc, seed: int) -> None:
    dice = random.Random(seed)
    order = dice.sample(list(KEYS), len(KEYS))  # equalities of the first keys go by the index of names
    rpc.create_table(table("p", keys=tuple(column(name, KEYS[name]) for name in order)))
    chosen = {tuple(dice.choice(VALUES[name]) for name in order) for _ in range(150)}
    rpc.add_partitions([partition(list(values)) for values in chosen])
    rows = [dict(zip(order, values, strict=True)) for values in sorted(chosen)]
    filters = Filters(dice)
    matches = 0
    for _ in range(150):
        text, says = filters.some()
        expected = sorted(tuple(row.values()) for row in rows if says(row))
        found = rpc.get_partitions_by_filter("default", "p", text, -1)
        assert sorted(tuple(struct.values) for struct in found) == expected, text
        matches += bool(expected)
    assert matches > 50, "the filters say too little"
