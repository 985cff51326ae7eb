"""Constraints of tables as the client sees them, and as they travel.

NOT NULL, CHECK, DEFAULT and primary keys that are enabled hold for all that is written; other keys, and what is
disabled, are only told.
The metastore tells them with the table: whoever reads a definition behind his lock has them, and asks nothing more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hive_acid.wire import CONSTRAINTS, ConstraintKind, ttypes

_NAMES = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`((?:[^`]|``)+)`|([^\W\d]\w*)""", re.DOTALL)
IS_BROKEN = "a row breaks constraint "
"""How the error begins for a row that breaks a constraint."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of a table; without a `name` the metastore gives it one.

    `columns` are those that it is of, none for a CHECK of the whole row. `expression` is what a CHECK asks, or the
    value of a DEFAULT. A foreign key refers to `parent_columns` of `parent`, a database and a table.
    """

    kind: ConstraintKind
    columns: tuple[str, ...] = ()
    name: str | None = None
    enabled: bool = True
    validated: bool = False
    rely: bool = True
    expression: str | None = None
    parent: tuple[str, str] | None = None
    parent_columns: tuple[str, ...] = ()

    @property
    def is_enforced(self) -> bool:
        """Whether a row that breaks it by itself is refused."""
        return self.enabled and self.kind in (ConstraintKind.NOT_NULL, ConstraintKind.CHECK)

    @property
    def is_enforced_key(self) -> bool:
        """Whether rows are refused that have the same values in its columns, or none."""
        return self.enabled and self.kind is ConstraintKind.PRIMARY_KEY

    @property
    def is_default(self) -> bool:
        """Whether it gives its column a value where a row has none."""
        return self.enabled and self.kind is ConstraintKind.DEFAULT and bool(self.expression)


def names_in(expression: str) -> set[str]:
    """All that may be a column's name in an expression, in lower case: its words, and what stands in backquotes."""
    return {
        (found[1] or found[2]).replace("``", "`").lower() for found in _NAMES.finditer(expression) if found.lastindex
    }


def in_parentheses(expression: str) -> str:
    """An expression of a constraint as a part of others; it may end with a comment."""
    return f"({expression}\n)" if "--" in expression else f"({expression})"


def told_with(table: Any) -> tuple[Constraint, ...]:
    """The constraints that came with a table's Thrift struct."""
    dictionary = getattr(table, "dictionary", None)
    told = (dictionary.values or {}).get(CONSTRAINTS) if dictionary is not None else None
    if not told:
        return ()
    text = told[0] if isinstance(told[0], str) else told[0].decode()
    return tuple(_told(one) for one in json.loads(text))


def _told(one: dict[str, Any]) -> Constraint:
    parent = (one["parent_database"], one["parent_table"]) if "parent_table" in one else None
    return Constraint(
        ConstraintKind(one["kind"]),
        tuple(name.lower() for name in one["columns"]),
        one["name"],
        one["enabled"],
        one["validated"],
        one["rely"],
        one.get("expression"),
        parent,
        tuple(one.get("parent_columns") or ()),
    )


def structs(database: str, table: str, constraints: Iterable[Constraint]) -> list[list[Any]]:
    """Thrift's structs in six lists, in the order in which ``create_table_with_constraints`` takes them."""
    found: list[list[Any]] = [[] for _ in ConstraintKind]
    for one in constraints:
        found[one.kind] += _structs(database, table, one)
    return found


def _structs(database: str, table: str, one: Constraint) -> list[Any]:
    said = {"enable_cstr": one.enabled, "validate_cstr": one.validated, "rely_cstr": one.rely, "catName": "hive"}
    own = {"table_db": database, "table_name": table}
    kind = one.kind
    if kind is ConstraintKind.FOREIGN_KEY:
        assert one.parent is not None
        return [
            ttypes.SQLForeignKey(
                pktable_db=one.parent[0],
                pktable_name=one.parent[1],
                pkcolumn_name=referred,
                fktable_db=database,
                fktable_name=table,
                fkcolumn_name=column,
                key_seq=place,
                update_rule=0,
                delete_rule=0,
                fk_name=one.name,
                **said,
            )
            for place, (column, referred) in enumerate(zip(one.columns, one.parent_columns, strict=True), 1)
        ]
    if kind is ConstraintKind.PRIMARY_KEY:
        return [
            ttypes.SQLPrimaryKey(column_name=column, key_seq=place, pk_name=one.name, **own, **said)
            for place, column in enumerate(one.columns, 1)
        ]
    if kind is ConstraintKind.UNIQUE:
        return [
            ttypes.SQLUniqueConstraint(column_name=column, key_seq=place, uk_name=one.name, **own, **said)
            for place, column in enumerate(one.columns, 1)
        ]
    column = one.columns[0] if one.columns else None
    if kind is ConstraintKind.NOT_NULL:
        return [ttypes.SQLNotNullConstraint(column_name=column, nn_name=one.name, **own, **said)]
    if kind is ConstraintKind.DEFAULT:
        value = one.expression
        return [ttypes.SQLDefaultConstraint(column_name=column, default_value=value, dc_name=one.name, **own, **said)]
    asked = one.expression
    return [ttypes.SQLCheckConstraint(column_name=column, check_expression=asked, dc_name=one.name, **own, **said)]
