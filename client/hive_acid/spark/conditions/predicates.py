"""Predicates: what a condition surely says of single columns, so that data which cannot meet it need not be read.

A predicate is a hint. It is implied by the condition it comes from: rows that it refuses would be refused anyway, rows
that it lets pass are still asked by Spark. So what is not understood falls out of an AND, and makes an OR as a whole
unknown. A literal counts only if it is exactly a value of the column's type, and compares as the column's values do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial

from pyspark.sql import Column
from sqlglot import exp

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.format.orc.statistics import Bound, ColumnStatistics
from hive_acid.spark.conditions.constants import Ask, with_literals
from hive_acid.spark.conditions.literals import kind_of, type_name
from hive_acid.spark.conditions.trees import SINCE, bare, column_named, condition_tree, dated

MOST_VALUES = 1000
"""A list of more values is taken as the range from its least to its greatest."""


class Operator(Enum):
    """How a column compares with a value."""

    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Comparison:
    """The column compares so with the value, and is not null."""

    column: str
    operator: Operator
    value: Bound


@dataclass(frozen=True, slots=True)
class OneOf:
    """The column has one of the values, which are of one type, ascending and distinct."""

    column: str
    values: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class NullTest:
    """The column is null, or is not."""

    column: str
    is_null: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts hold."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A part holds."""

    parts: tuple[Predicate, ...]


Predicate = Comparison | OneOf | NullTest | AllOf | AnyOf

Statistics = Callable[[str], ColumnStatistics | None]
"""What is known of a column, by its name in the table; None for nothing."""


# --- asking --------------------------------------------------------------------------------------


def may_match(predicate: Predicate, statistics: Statistics) -> bool:
    """Whether rows with these statistics may meet the predicate; True when in doubt."""
    if isinstance(predicate, AllOf):
        return all(may_match(part, statistics) for part in predicate.parts)
    if isinstance(predicate, AnyOf):
        return any(may_match(part, statistics) for part in predicate.parts)
    known = statistics(predicate.column)
    if known is None:
        return True
    if isinstance(predicate, NullTest):
        return known.has_null if predicate.is_null else known.values != 0
    if known.values == 0:
        return False
    if isinstance(predicate, OneOf):
        return any(_may_equal(value, known) for value in predicate.values)
    value, operator = predicate.value, predicate.operator
    if operator is Operator.EQUAL:
        return _may_equal(value, known)
    if operator in (Operator.LESS, Operator.AT_MOST):
        return not is_beyond(known.minimum, value, or_equal=operator is Operator.LESS)
    return not is_beyond(value, known.maximum, or_equal=operator is Operator.GREATER)


def _may_equal(value: Bound, known: ColumnStatistics) -> bool:
    return not is_beyond(value, known.maximum) and not is_beyond(known.minimum, value)


def is_beyond(left: Bound | None, right: Bound | None, *, or_equal: bool = False) -> bool:
    """Whether `left` is surely greater than `right`, or as great where that is meant too."""
    if left is None or right is None or _order_of(left) is not _order_of(right):
        return False
    return left > right or (or_equal and left == right)  # type: ignore[operator]


def _order_of(value: Bound) -> type:
    """The type among whose values this one has its place."""
    if isinstance(value, bool | datetime):
        return type(value)
    return int if isinstance(value, int | float | Decimal) else type(value)


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate speaks of."""
    if isinstance(predicate, AllOf | AnyOf):
        return frozenset().union(*map(columns_of, predicate.parts))
    return frozenset((predicate.column,))


def longest_list(predicate: Predicate | None) -> int:
    """How many values the longest list of a predicate has."""
    if isinstance(predicate, AllOf | AnyOf):
        return max(map(longest_list, predicate.parts), default=0)
    return len(predicate.values) if isinstance(predicate, OneOf) else 0


def restricted(predicate: Predicate | None, names: Collection[str]) -> Predicate | None:
    """What the predicate says of these columns alone."""
    return None if predicate is None else _restricted(predicate, frozenset(names))


def _restricted(predicate: Predicate, names: frozenset[str]) -> Predicate | None:
    if isinstance(predicate, AllOf):
        return all_of(_restricted(part, names) for part in predicate.parts)
    if isinstance(predicate, AnyOf):
        return any_of(_restricted(part, names) for part in predicate.parts)
    return predicate if predicate.column in names else None


# --- making --------------------------------------------------------------------------------------


def all_of(parts: Iterable[Predicate | None]) -> Predicate | None:
    """All of the parts that are known."""
    known = tuple(part for part in parts if part is not None)
    return AllOf(known) if len(known) > 1 else next(iter(known), None)


def any_of(parts: Iterable[Predicate | None]) -> Predicate | None:
    """One of the parts; unknown if one of them is."""
    found = tuple(parts)
    known = tuple(part for part in found if part is not None)
    if not known or len(known) < len(found):
        return None
    return AnyOf(known) if len(known) > 1 else known[0]


def one_of(column: catalog.Column, values: Iterable[object]) -> Predicate | None:
    """The column has one of these values of Python, as Spark collects them; nulls among them match nothing.

    None if a value is not exactly one of the column's type, or if no value is left.
    """
    kind = kind_of(column)
    given = [value for value in values if value is not None]
    known = [bound for value in given if (bound := kind.of_python(value)) is not None] if kind else []
    if not known or len(known) < len(given):
        return None
    ordered = sorted(set(known))
    if len(ordered) > MOST_VALUES:
        return between(column, ordered[0], ordered[-1])
    return OneOf(column.name, tuple(ordered))


def between(column: catalog.Column, least: object, greatest: object) -> Predicate | None:
    """The column lies within these two values of Python, both inclusive; a bound that is unknown counts as none."""
    kind = kind_of(column)
    if kind is None:
        return None
    bounds = ((Operator.AT_LEAST, least), (Operator.AT_MOST, greatest))
    return all_of(
        Comparison(column.name, operator, bound)
        for operator, value in bounds
        if (bound := kind.of_python(value)) is not None
    )


def predicate_of(
    condition: Column | str | None,
    table: Table,
    alias: str | None = None,
    beside: Sequence[str] = (),
    *,
    ask: Ask | None = None,
) -> Predicate | None:
    """What the condition surely says of the table's columns; None for nothing.

    Of rows that do not meet it this says nothing: see `refusal_of`.

    Columns are named alone, or by `alias` or, without one, the table's name. `beside` are the names of other columns
    that the condition may speak of, such as those of a source that is joined. Spark is asked by `ask` what expressions
    of literals are; without it they say nothing.
    """
    return _read(condition, table, alias, beside, ask, _Reader.read)


def refusal_of(
    condition: Column | str, table: Table, alias: str | None = None, *, ask: Ask | None = None
) -> Predicate | None:
    """What is surely said of the table's columns where the condition is false or null; None for nothing.

    So rows that do not meet this surely meet the condition. The rest is as for `predicate_of`.
    """
    return _read(condition, table, alias, (), ask, _Reader.refusal)


def _read(
    condition: Column | str | None,
    table: Table,
    alias: str | None,
    beside: Sequence[str],
    ask: Ask | None,
    reading: Callable[[_Reader, exp.Expr], Predicate | None],
) -> Predicate | None:
    if condition is None:
        return None
    columns = {column.name: column for column in table.all_columns}
    meant = None if ask is None else partial(with_literals, ask=ask)
    tree = condition_tree(condition, [*columns, *beside], meant=meant)
    if tree is None:
        return None
    others = {name.lower() for name in beside}
    return reading(_Reader(columns, {(alias or table.name).lower()}, others), tree)


_MIRRORED: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.EQ: exp.EQ, exp.NullSafeEQ: exp.NullSafeEQ, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
_OPERATORS: dict[type[exp.Binary], Operator] = {
    exp.EQ: Operator.EQUAL, exp.NullSafeEQ: Operator.EQUAL, exp.LT: Operator.LESS, exp.LTE: Operator.AT_MOST,
    exp.GT: Operator.GREATER, exp.GTE: Operator.AT_LEAST,
}  # fmt: skip
_FROM_BELOW = frozenset({Operator.EQUAL, Operator.GREATER, Operator.AT_LEAST})
_NEGATED: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def _day_since(tree: exp.Expr | None) -> date | None:
    """Of a day that is only known to be no earlier than another one (`SINCE`): that other one."""
    tree = bare(tree)
    if not isinstance(tree, exp.Anonymous) or str(tree.this).lower() != SINCE:
        return None
    return date.fromisoformat(tree.expressions[0].this)


def _since(column: catalog.Column, day: date) -> Predicate | None:
    """The column is no earlier than a day."""
    if type_name(column) == "timestamp":
        return Comparison(column.name, Operator.AT_LEAST, datetime(day.year, day.month, day.day))
    return Comparison(column.name, Operator.AT_LEAST, day) if type_name(column) == "date" else None


def _about(
    column: catalog.Column, operator: Operator, least: datetime, greatest: datetime, more: timedelta = timedelta()
) -> Predicate | None:
    """The column of times compares so with what lies between two of them, and some `more`.

    A day is added on either side, by which clocks are set: Spark compares moments, and bounds are what clocks show.
    """
    try:
        lower = Comparison(column.name, Operator.AT_LEAST, least - _CLOCKS)
        upper = Comparison(column.name, Operator.AT_MOST, greatest + more + _CLOCKS)
    except OverflowError:
        return None
    if operator is Operator.EQUAL:
        return AllOf((lower, upper))
    return lower if operator in _FROM_BELOW else upper


_CLOCKS = timedelta(days=1)
_NEVER = AnyOf(())
_UNTOLD = frozenset({"char", "varchar", "float", "double", "double precision"})
"""Types of which what is neither less nor greater than a value need not be it: by blanks, zeros and NaN."""
_CONNECTIVES = (exp.And, exp.Or)
_DEEPEST = 100
"""What is nested more deeply is not looked into."""


def _parts(tree: exp.Expr) -> Iterator[exp.Condition]:
    """What AND or OR connects: a chain of thousands, of which each is the left side of the next, as one list."""
    return (part for part in tree.flatten() if isinstance(part, exp.Condition))


class _Reader:
    """From the tree of a condition to a predicate."""

    def __init__(
        self, columns: dict[str, catalog.Column], qualifiers: Collection[str], others: Collection[str]
    ) -> None:
        self._columns = columns
        self._qualifiers = qualifiers
        self._others = others

    def read(self, tree: exp.Expr | None, depth: int = 0) -> Predicate | None:
        tree = bare(tree)
        if depth > _DEEPEST or tree is None:
            return None
        kind = type(tree)
        if kind in _CONNECTIVES:
            together = all_of if kind is exp.And else any_of
            return together(self.read(part, depth + 1) for part in _parts(tree))
        if kind is exp.Not:
            return self._not(tree.this, depth + 1)
        if isinstance(tree, exp.Binary) and kind in _OPERATORS:
            return self._comparison(tree.this, type(tree), tree.expression)
        if kind is exp.Between and not tree.args.get("symmetric"):
            low, high = tree.args["low"], tree.args["high"]
            return all_of((self._comparison(tree.this, exp.GTE, low), self._comparison(tree.this, exp.LTE, high)))
        if kind is exp.In and not any(tree.args.get(name) for name in ("query", "unnest", "field", "is_global")):
            return self._in(tree.this, tree.expressions)
        if kind is exp.Is and isinstance(tree.expression, exp.Null):
            return self._null_test(tree.this, is_null=True)
        return self._boolean(tree, is_true=True)

    def _not(self, tree: exp.Expr | None, depth: int) -> Predicate | None:
        tree = bare(tree)
        if depth > _DEEPEST or tree is None:
            return None
        kind = type(tree)
        if kind is exp.Not:
            return self.read(tree.this, depth + 1)
        if kind in _CONNECTIVES:
            together = all_of if kind is exp.Or else any_of
            return together(self._not(part, depth + 1) for part in _parts(tree))
        if isinstance(tree, exp.Binary) and kind in _NEGATED:
            return self._comparison(tree.this, _NEGATED[type(tree)], tree.expression)
        if kind is exp.Is and isinstance(tree.expression, exp.Null):
            return self._null_test(tree.this, is_null=False)
        return self._boolean(tree, is_true=False)

    def refusal(self, tree: exp.Expr | None) -> Predicate | None:
        """What is surely said where the tree is false or null."""
        return self._missed(tree, 0, by=False)

    def _missed(self, tree: exp.Expr | None, depth: int, *, by: bool) -> Predicate | None:
        """What is surely said where the tree is not true, or, with `by`, where it is not false."""
        tree = bare(tree)
        if depth > _DEEPEST or tree is None:
            return None
        kind = type(tree)
        if kind in _CONNECTIVES:
            together = all_of if (kind is exp.And) is by else any_of
            return together(self._missed(part, depth + 1, by=by) for part in _parts(tree))
        if kind is exp.Not:
            return self._missed(tree.this, depth + 1, by=not by)
        if isinstance(tree, exp.Boolean):
            return None if bool(tree.this) is by else _NEVER
        if kind is exp.Is and isinstance(tree.expression, exp.Null):
            return self._null_test(tree.this, is_null=by)
        if kind is exp.Between and not tree.args.get("symmetric"):
            low, high = (exp.GTE, tree.args["low"]), (exp.LTE, tree.args["high"])
            together = all_of if by else any_of
            return together(self._compared(tree.this, *side, by=by) for side in (low, high))
        if kind is exp.In and not any(tree.args.get(name) for name in ("query", "unnest", "field", "is_global")):
            together = any_of if by else all_of
            values = tree.expressions
            return together(self._compared(tree.this, exp.EQ, of, by=by) for of in values[:MOST_VALUES])
        if isinstance(tree, exp.NEQ):
            return self._compared(tree.this, exp.EQ, tree.expression, by=not by)
        if isinstance(tree, exp.Binary) and kind in _OPERATORS:
            return self._compared(tree.this, type(tree), tree.expression, by=by)
        column = self._column(tree)
        said = self._boolean(tree, is_true=by)
        return any_of((said, NullTest(column.name, is_null=True))) if column is not None else None

    def _compared(
        self, left: exp.Condition, kind: type[exp.Binary], right: exp.Condition, *, by: bool
    ) -> Predicate | None:
        """What is surely said where a comparison is not true, or, with `by`, where it is not false."""
        column = next(
            (found for of in (left, right) if (found := self._column(of) or self._column_of_day(of)) is not None), None
        )
        if column is None or type_name(column) in _UNTOLD:
            return None
        if kind is exp.NullSafeEQ and (isinstance(left, exp.Null) or isinstance(right, exp.Null)):
            return NullTest(column.name, is_null=by)
        if by:
            said = self._comparison(left, kind, right)
            if kind is exp.NullSafeEQ:
                return said
        else:
            opposite = (_NEGATED[kind],) if kind in _NEGATED else (exp.LT, exp.GT)
            said = any_of(self._comparison(left, of, right) for of in opposite)
        return any_of((said, NullTest(column.name, is_null=True)))

    def _boolean(self, tree: exp.Expr | None, *, is_true: bool) -> Predicate | None:
        """A boolean column as a condition by itself."""
        column = self._column(tree)
        if column is None or type_name(column) != "boolean":
            return None
        return Comparison(column.name, Operator.EQUAL, is_true)

    def _comparison(self, left: exp.Condition, kind: type[exp.Binary], right: exp.Condition) -> Predicate | None:
        column = self._column(left) or self._column_of_day(left)
        if column is None:
            left, right, kind = right, left, _MIRRORED[kind]
            column = self._column(left) or self._column_of_day(left)
        if column is None:
            return None
        operator, is_day = _OPERATORS[kind], self._column(left) is None
        if kind is exp.NullSafeEQ and isinstance(right, exp.Null):
            return None if is_day else NullTest(column.name, is_null=True)
        if (day := _day_since(right)) is not None:
            return _since(column, day) if operator in _FROM_BELOW else NullTest(column.name, is_null=False)
        of_column = kind_of(column)
        value = of_column.of_literal(right) if of_column else None
        if value is None:
            return None
        if isinstance(value, datetime):
            return _about(column, operator, value, value, timedelta(days=is_day))
        return Comparison(column.name, operator, value)

    def _in(self, left: exp.Condition, values: Sequence[exp.Condition]) -> Predicate | None:
        column = self._column(left)
        kind = kind_of(column) if column else None
        if column is None or kind is None:
            return None
        given = [value for value in values if not isinstance(value, exp.Null)]
        literals = [kind.of_literal(value) for value in given]
        days = [_day_since(value) or day for value, day in zip(given, literals, strict=True)]
        if days != literals:
            known = [day.date() if isinstance(day, datetime) else day for day in days if isinstance(day, date)]
            return _since(column, min(known)) if len(known) == len(days) else None
        if (times := [time for time in literals if isinstance(time, datetime)]) and len(times) == len(literals):
            return _about(column, Operator.EQUAL, min(times), max(times))
        return None if None in literals else one_of(column, literals)

    def _null_test(self, tree: exp.Condition, *, is_null: bool) -> Predicate | None:
        column = self._column(tree)
        return None if column is None else NullTest(column.name, is_null)

    def _column_of_day(self, tree: exp.Expr | None) -> catalog.Column | None:
        """A column of times, of which a tree is the day."""
        column = self._column(dated(tree))
        return column if column is not None and type_name(column) == "timestamp" else None

    def _column(self, tree: exp.Expr | None) -> catalog.Column | None:
        named = column_named(tree)
        if named is None:
            return None
        qualifier, name = named
        if qualifier not in self._qualifiers if qualifier else name in self._others:
            return None
        return self._columns.get(name)
