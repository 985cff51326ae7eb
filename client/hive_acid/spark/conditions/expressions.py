"""Conditions and values as callers give them: a Column, or SQL text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from hive_acid.errors import ColumnError
from hive_acid.spark.conditions.sql_tokens import conjuncts, tokens_of
from hive_acid.spark.conditions.trees import column_named, condition_tree

Expression = Column | str
"""A condition or a value: a Column, or SQL text."""


def expression(value: object) -> Column:
    """A value to assign: a Column as it is, a text as SQL, anything else as the constant that it is.

    Raises ColumnError for what is none.
    """
    if isinstance(value, str):
        return F.expr(value)
    if isinstance(value, Column):
        return value
    kind = type(value).__name__
    if isinstance(value, Mapping | Set | tuple):
        raise ColumnError(f"{kind} is no value for a column: give a map, an array or a struct as SQL text or a Column")
    try:
        return F.lit(value)
    except Exception as error:  # of what it does not know, each kind has an error of its own
        raise ColumnError(f"{kind} is no value for a column: give SQL text, a Column or a constant") from error


def text_of(value: object) -> str | None:
    """A value to assign as SQL text: one that is, or a constant that is of the same type as SQL; None for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return str(int(value))
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    return None


def equal_columns(condition: Expression, left: str, right: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of a column of the alias `left` and one of `right` that are equal wherever the condition is true.

    The pairs are in lower case; `names` are those of all columns that the condition may mean. Only equations of two
    columns with their aliases, joined by AND, are understood.
    """
    tree = condition_tree(condition, names)
    found = []
    for part in tree.flatten() if isinstance(tree, exp.And) else (tree,):
        equation = part.unnest() if part is not None else None
        if isinstance(equation, exp.EQ):
            named = map(column_named, (equation.left, equation.right))
            sides = dict(side for side in named if side is not None and side[0])
            if sides.keys() == {left.lower(), right.lower()}:
                found.append((sides[left.lower()], sides[right.lower()]))
    return found


def left_of(condition: Expression, holds: Callable[[Expression], bool]) -> Expression | None:
    """A condition without the parts that AND joins, as text, and that hold; None if nothing is left of it."""
    text = text_of(condition)
    if text is None:
        return None if holds(condition) else condition
    parts = [said for of in conjuncts(tokens_of(text)) if (said := "".join(of).strip()).lower() != "and"]
    left = [part for part in parts if not holds(part)]
    if len(left) == len(parts):
        return condition
    return " AND ".join(f"({part})" for part in left) or None
