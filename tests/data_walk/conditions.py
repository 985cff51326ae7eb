"""Conditions and assignments that SQL and plain Python understand alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.data_walk.tables import FIELDS, STRUCT, Columns, Row, key_value, literal, value_of


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
    """A column's new value: a constant, or `v` and something; or that of a field of a struct."""

    role: str
    value: Any
    adds: bool = False
    field: str | None = None

    def target(self, columns: Columns) -> str:
        """What is assigned, as the verbs take it."""
        name = columns.name(self.role)
        return name if self.field is None else f"`{name}`.{self.field}"

    def sql(self, columns: Columns, alias: str = "") -> str:
        if self.adds:
            return f"{alias}`{columns.name(self.role)}` + {self.value}"
        return literal(self.value, columns.type(self.role) if self.field is None else FIELDS[self.field])

    def applied(self, row: Row) -> Any:
        if self.field is not None:
            old = dict(zip(FIELDS, row[self.role] or (None, None), strict=True))
            return tuple((old | {self.field: self.value}).values())
        if not self.adds:
            return self.value
        return None if row[self.role] is None else row[self.role] + self.value


def fulfilling(chance: random.Random, condition: Condition, row: Row, new_id: Callable[[], int]) -> Row:
    """`row` with a value for which the condition is true; its id is a new one."""
    if condition.kind == "mod":
        return {**row, "id": next(number for number in iter(new_id, None) if condition.holds({"id": number}))}
    value = chance.randrange(condition.value) if condition.kind == "below" else condition.value
    return {**row, condition.role: value, "id": new_id()}


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
    """New values for one or two columns, of a partition key as well; never for the id."""
    roles = [role for role in columns.roles if role != "id"]
    return tuple(_assignment(chance, columns, role) for role in chance.sample(roles, chance.randint(1, 2)))


def _assignment(chance: random.Random, columns: Columns, role: str) -> Assignment:
    kind = columns.type(role)
    if role in columns.keys:
        return Assignment(role, key_value(chance, kind))
    if role == "v" and chance.random() < 0.6:
        return Assignment("v", chance.randint(1, 9), adds=True)
    if kind == STRUCT and chance.random() < 0.7:
        field = chance.choice(list(FIELDS))
        return Assignment(role, value_of(chance, FIELDS[field]), field=field)
    return Assignment(role, value_of(chance, kind))
