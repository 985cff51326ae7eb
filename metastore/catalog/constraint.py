"""Constraints of tables as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.wire import ConstraintKind


@dataclass(frozen=True, slots=True)
class Parent:
    """What a foreign key refers to; `columns` in the order of those that refer to them."""

    database: str
    table: str
    columns: list[str]
    key: str | None = None
    update_rule: int = 0
    delete_rule: int = 0


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of one table. Without a `name` it is given one; `columns` may be none for a check alone."""

    kind: ConstraintKind
    database: str
    table: str
    columns: list[str]
    name: str | None = None
    enabled: bool = False
    validated: bool = False
    rely: bool = False
    expression: str | None = None
    parent: Parent | None = None
