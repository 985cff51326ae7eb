"""Conditions and assignments that SQL and plain Python understand alike."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.data_walk.tables import Columns, Row, key_value, literal, value_of


@dataclass(frozen=True)
class Condition:
    """A condition on one row; with null it is not true."""

    kind: str
    role: str
    value: Any = None

    def sql(self, columns: Columns, alias: str = "") -> str:
        name = f"{alias}`{columns.name(self.role)}`"
        if self.kind == "mod":
            return f"{name} % {self.value[0]} = {self.value[1]}"
        if self.kind == "below":
            return f"{name} < {self.value}"
        if self.value is None:
            return f"{name} IS NULL"
        return f"{name} = {literal(self.value, columns.type(self.role))}"

    def holds(self, row: Row) -> bool:
        value = row[self.role]
        if self.kind == "mod":
            return bool(value % self.value[0] == self.value[1])
        if self.kind == "below":
            return value is not None and value < self.value
        return bool(value == self.value)


@dataclass(frozen=True)
class Assignment:
    """A column's new value: a constant, or `v` and something."""

    role: str
    value: Any
    adds: bool = False

    def sql(self, columns: Columns, alias: str = "") -> str:
        if self.adds:
            return f"{alias}`{columns.name(self.role)}` + {self.value}"
        return literal(self.value, columns.type(self.role))

    def applied(self, row: Row) -> Any:
        if not self.adds:
            return self.value
        return None if row[self.role] is None else row[self.role] + self.value


def some_condition(chance: random.Random, columns: Columns) -> Condition:
    """One that hits some rows."""
    dice = chance.random()
    if columns.keys and dice < 0.3:
        key = chance.choice(list(columns.keys))
        return Condition("is", key, key_value(chance, columns.keys[key]))
    if dice < 0.6:
        divisor = chance.choice((2, 3, 5))
        return Condition("mod", "id", (divisor, chance.randrange(divisor)))
    if dice < 0.85:
        return Condition("below", "v", chance.choice((5, 30, 60)))
    return Condition("is", "s", value_of(chance, "string"))


def some_assignments(chance: random.Random, columns: Columns) -> tuple[Assignment, ...]:
    """New values for one or two columns; never for the id."""
    roles = [role for role in columns.types if role != "id"]
    chosen = chance.sample(roles, chance.randint(1, min(2, len(roles))))
    return tuple(
        Assignment("v", chance.randint(1, 9), adds=True)
        if role == "v" and chance.random() < 0.6
        else Assignment(role, value_of(chance, columns.types[role]))
        for role in chosen
    )
