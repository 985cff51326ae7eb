"""Whether a condition can fail: one that cannot may be asked of rows that are gone, before it is known which they are.

What is not surely understood may fail. With ``spark.sql.ansi.enabled`` that is most of what is computed: sums may be
too large, texts may be no numbers, and nothing can be divided by 0. What is left are comparisons of values that Spark
compares as they are, or after a cast that holds them all, functions that are defined for all values of their types, and
sums that have room for all values that the columns have (`arithmetic.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from functools import partial

from pyspark.sql import Column
from sqlglot import exp

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.spark.conditions.arithmetic import (
    Exact,
    Floating,
    Number,
    Span,
    Whole,
    any_of_bits,
    are_comparable,
    number_of_column,
    number_of_literal,
    result_of,
)
from hive_acid.spark.conditions.literals import INTEGERS, digits_of, kind_of, type_name
from hive_acid.spark.conditions.trees import DAY, DAY_OR_TIME, bare, column_named, condition_tree

_DEEPEST = 50
"""What is nested more deeply may fail."""

_WHOLE_DIGITS, _FRACTION_DIGITS, _MOST_DIGITS = 20, 16, 38
"""Those that numbers of SQL may have here before and behind the point, and those of the widest decimal."""

DAYS_AS_TEXTS = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"
"""The setting by which a date is made a text where it is compared with one, not the other way round."""

_SHORT_NUMBER = re.compile(r"(?=.{1,16}\Z)(\d+(\.\d*)?|\.\d+)")
"""Beside each whole number there is a decimal that holds both."""


class _Kind(Enum):
    """What is compared with what: values of one kind never fail to be, of whatever width."""

    INTEGER = auto()
    FRACTION = auto()
    DECIMAL = auto()
    STRING = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    NULL = auto()


_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(INTEGERS, _Kind.INTEGER),
    **dict.fromkeys(("float", "double", "double precision"), _Kind.FRACTION),
    **dict.fromkeys(("decimal", "numeric", "dec"), _Kind.DECIMAL),
    **dict.fromkeys(("string", "varchar", "char"), _Kind.STRING),
    "boolean": _Kind.BOOLEAN,
    "date": _Kind.DATE,
    "timestamp": _Kind.TIMESTAMP,
}
_OF_ONE_TYPE = (
    {_Kind.INTEGER, _Kind.FRACTION},
    {_Kind.INTEGER, _Kind.FRACTION, _Kind.DECIMAL},
    {_Kind.DATE, _Kind.STRING},
    {_Kind.TIMESTAMP, _Kind.STRING},
)
"""Kinds whose values fit into one type, if each can be compared with the first of a list."""

_HASHES: Mapping[str, int] = {"hash": 32, "xxhash64": 64}
"""How many bits their whole numbers have."""

_KINDS_OF_NUMBERS: Mapping[type, _Kind] = {
    Whole: _Kind.INTEGER,
    Exact: _Kind.DECIMAL,
    Floating: _Kind.FRACTION,
}
_PARTS_OF_DATES = (exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear)
_PARTS_OF_TIMES = (exp.Hour, exp.Minute, exp.Second)
_OF_STRINGS = (exp.Upper, exp.Lower, exp.Trim, exp.Length)
_NUMBERS: Sequence[tuple[type | tuple[type, ...], Whole]] = (
    (exp.Length, Whole(32, 0, 2**31 - 1)),
    ((*_PARTS_OF_DATES, exp.Quarter, *_PARTS_OF_TIMES), Whole(32, -(10**7), 10**7)),
)
"""What functions of other values give: a day is a number of 32 bits, so no year has more digits."""

_QUOTIENTS = (exp.Div, exp.IntDiv, exp.Mod, exp.Anonymous)
_SUMS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_TESTS_OF_STRINGS = (exp.Like, exp.ILike, exp.StartsWith, exp.EndsWith, exp.Contains)


def cannot_fail(
    condition: Column | str, table: Table, alias: str, span: Callable[[str], Span | None] = lambda column: None
) -> bool:
    """Whether `condition` has a value for every row that there could be, under all settings of a session.

    It may name columns of the table alone or by `alias`. Where `span` tells between which values a column of whole
    numbers is, only rows with such values are meant; it is asked where sums are made.
    """
    columns = {column.name: column for column in table.all_columns}
    tree = condition_tree(condition, list(columns))
    return tree is not None and _Reader(columns, alias.lower(), span).is_test(tree, _DEEPEST)


def compares_as_they_are(condition: str, table: Table, alias: str) -> bool:
    """Whether whole numbers and dates in `condition` are only compared with values of their own kind.

    Numbers and dates are meant that stand alone on a side of a comparison or BETWEEN: Spark casts none of them to a
    type that depends on its digits. The condition has none that it would refuse.
    """
    return _all_sides(condition, table, alias, _Reader.is_of_kind_of)


def texts_beside(condition: str, table: Table, alias: str) -> str | None:
    """The type, ``date`` or ``timestamp``, beside which all texts are that stand alone on a side of a comparison and
    look like one; None if they are beside several, or what is compared is not known.

    Spark makes a value of the type of such a text, unless `DAYS_AS_TEXTS` is set.
    """
    for kind in (_Kind.DATE, _Kind.TIMESTAMP):
        if _all_sides(condition, table, alias, partial(_Reader.is_beside, kind=kind)):
            return kind.name.lower()
    return None


def _all_sides(
    condition: str, table: Table, alias: str, holds: Callable[[_Reader, exp.Expr | None, exp.Expr | None], bool]
) -> bool:
    """Whether something holds of each side of each comparison in `condition`, and what is on the other side."""
    columns = {column.name: column for column in table.all_columns}
    tree = condition_tree(condition, list(columns))
    if tree is None or tree.find(exp.Query, exp.Lambda) is not None:  # in which names may be those of others
        return False
    reader = _Reader(columns, alias.lower())
    comparisons = tree.find_all(*_COMPARISONS, exp.Between)
    return all(holds(reader, side, other) for node in comparisons for side, other in _sides(node))


def _sides(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, exp.Between):
        return [(node.args["low"], node.this), (node.args["high"], node.this)]
    return [(node.this, node.expression), (node.expression, node.this)]


class _Reader:
    """From the tree of a condition to whether it cannot fail."""

    def __init__(
        self,
        columns: Mapping[str, catalog.Column],
        alias: str,
        span: Callable[[str], Span | None] = lambda column: None,
    ) -> None:
        self._columns = columns
        self._alias = alias
        self._span = span

    def is_of_kind_of(self, side: exp.Expr | None, other: exp.Expr | None) -> bool:
        """Whether a side of a comparison is no whole number and no date, or one beside a value that is one, too."""
        kind = _kind_of_constant(side)
        return kind not in (_Kind.INTEGER, _Kind.DATE) or self._kind(other, _DEEPEST) is kind

    def is_beside(self, side: exp.Expr | None, other: exp.Expr | None, *, kind: _Kind) -> bool:
        """Whether a side of a comparison is no text that looks like a time, or one beside a date or timestamp."""
        text = bare(side)
        if not isinstance(text, exp.Literal) or not text.is_string or not DAY_OR_TIME.fullmatch(text.this):
            return True
        fits = kind is not _Kind.DATE or DAY.fullmatch(text.this) is not None
        return fits and _is_time(text) and self._kind(other, _DEEPEST) is kind

    def is_test(self, tree: exp.Expr | None, depth: int) -> bool:
        """Whether a tree is a condition that cannot fail."""
        if depth < 0:
            return False
        tree = bare(tree)
        depth -= 1
        match tree:
            case exp.And() | exp.Or():
                return all(self.is_test(part, depth) for part in tree.flatten())
            case exp.Not():
                return self.is_test(tree.this, depth)
            case exp.Is():
                if isinstance(bare(tree.expression), exp.Boolean):
                    return self.is_test(tree.this, depth)
                return isinstance(bare(tree.expression), exp.Null) and self._is_known(tree.this, depth)
            case exp.Between():
                asked = [tree.args["low"], tree.args["high"]]
                return not tree.args.get("symmetric") and self._are_comparable(tree.this, asked, depth)
            case exp.In():
                others = ("query", "unnest", "field", "is_global")
                every = [tree.this, *tree.expressions]
                if any(map(tree.args.get, others)) or not self._are_of_one_type(every, depth):
                    return False
                return self._are_comparable(tree.this, tree.expressions, depth)
        if isinstance(tree, _COMPARISONS):
            return self._are_comparable(tree.this, [tree.expression], depth)
        if isinstance(tree, _TESTS_OF_STRINGS):
            pattern = bare(tree.expression)
            is_text = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.this
            return is_text and self._kind(tree.this, depth) is _Kind.STRING
        if isinstance(tree, exp.Anonymous):
            return tree.name.lower() in ("isnull", "isnotnull") and all(
                self._is_known(of, depth) for of in tree.expressions
            )
        return self._kind(tree, depth) is _Kind.BOOLEAN

    def _is_known(self, tree: exp.Expr | None, depth: int) -> bool:
        """Whether a tree is a value, of any type, that cannot fail to be computed."""
        return self._column(tree) is not None or self._kind(tree, depth) is not None

    def _are_comparable(self, left: exp.Expr | None, others: Sequence[exp.Expr], depth: int) -> bool:
        """Whether `left` can be compared with each of the others."""
        return bool(others) and all(
            self._is_comparable(left, other, depth) or self._is_comparable(other, left, depth) for other in others
        )

    def _are_of_one_type(self, trees: Sequence[exp.Expr], depth: int) -> bool:
        """Whether some type holds the values of all `trees`, which Spark casts to one for a list."""
        kinds = {self._kind(tree, depth) for tree in trees} - {_Kind.NULL}
        if _Kind.DECIMAL in kinds:
            column = self._column(trees[0])
            precision, scale = digits_of(column) if column is not None else (_MOST_DIGITS, 0)
            if max(precision - scale, _WHOLE_DIGITS) + max(scale, _FRACTION_DIGITS) > _MOST_DIGITS:
                return False
        if kinds & {_Kind.DATE, _Kind.TIMESTAMP} and _Kind.STRING in kinds:
            texts = [tree for tree in trees if self._kind(tree, depth) is _Kind.STRING]
            if not all(map(_is_time, texts)):
                return False
        return len(kinds) == 1 or any(kinds <= together for together in _OF_ONE_TYPE)

    def _is_comparable(self, left: exp.Expr | None, right: exp.Expr | None, depth: int) -> bool:
        column, kind = self._column(left), self._kind(left, depth)
        literals = kind_of(column) if column is not None else None
        if literals is not None and literals.of_literal(right) is not None:
            return True
        if kind is _Kind.TIMESTAMP and _is_time(right):
            return True
        other = self._kind(right, depth)
        if kind is None or other is None:
            return False
        if _Kind.DECIMAL in (kind, other) and _Kind.NULL not in (kind, other):
            # A decimal that holds all of both need not exist.
            one, beside = self._number(left, depth), self._number(right, depth)
            return one is not None and beside is not None and are_comparable(one, beside)
        return kind is other or {kind, other} == {_Kind.INTEGER, _Kind.FRACTION} or _Kind.NULL in (kind, other)

    def _kind(self, tree: exp.Expr | None, depth: int) -> _Kind | None:
        """Of what kind the value of a tree is that cannot fail; None where it may, or where there is no such kind."""
        tree = bare(tree)
        if depth < 0 or tree is None:
            return None
        depth -= 1
        column = self._column(tree)
        if column is not None:
            return _KINDS.get(type_name(column))
        if (constant := _kind_of_constant(tree)) is not None:
            return constant
        for known, build in _FUNCTIONS:
            if isinstance(tree, known):
                return build(self, tree, depth)
        return None

    def _column(self, tree: exp.Expr | None) -> catalog.Column | None:
        qualifier, name = column_named(tree) or ("", "")
        return self._columns.get(name) if qualifier in ("", self._alias) else None

    # --- functions -------------------------------------------------------------------------------

    def _of_number(self, tree: exp.Expr, depth: int) -> _Kind | None:
        number = self._number(tree, depth + 1)
        return None if number is None else _KINDS_OF_NUMBERS[type(number)]

    def _number(self, tree: exp.Expr | None, depth: int) -> Number | None:
        """What a tree's value is, if it is a number that cannot fail to be computed."""
        tree = bare(tree)
        if depth < 0 or tree is None:
            return None
        depth -= 1
        column = self._column(tree)
        if column is not None:
            return number_of_column(column, self._span)
        if isinstance(tree, exp.Literal):
            is_number = _kind_of_constant(tree) in (_Kind.INTEGER, _Kind.FRACTION)
            return number_of_literal(tree.this) if is_number else None
        if isinstance(tree, (exp.Neg, exp.Abs)):
            number = self._number(tree.this, depth)
            return None if number is None else result_of(tree, number, None)
        if isinstance(tree, _SUMS):
            return self._result(tree, tree.this, tree.expression, depth)
        if isinstance(tree, exp.Anonymous):
            name, given = tree.name.lower(), tree.expressions
            if name == "pmod":
                return self._result(tree, given[0], given[1], depth) if len(given) == 2 else None
            bits = _HASHES.get(name)
            return any_of_bits(bits) if bits and given and all(self._is_known(of, depth) for of in given) else None
        given_by = (number for functions, number in _NUMBERS if isinstance(tree, functions))
        return next(given_by, None) if self._kind(tree, depth) is _Kind.INTEGER else None

    def _result(self, operation: exp.Expr, left: exp.Expr | None, right: exp.Expr | None, depth: int) -> Number | None:
        """What an operation makes of two numbers. Nothing is divided by what may be 0."""
        divisor = bare(right)
        if isinstance(operation, _QUOTIENTS) and not (
            isinstance(divisor, exp.Literal) and not divisor.is_string and set(divisor.this) & set("123456789")
        ):
            return None
        one, other = self._number(left, depth), self._number(right, depth)
        return None if one is None or other is None else result_of(operation, one, other)

    def _part(self, tree: exp.Expr, depth: int) -> _Kind | None:
        """The year, the hour and the like, of dates and times."""
        of = tree.this.this if isinstance(tree.this, exp.TsOrDsToDate) else tree.this
        allowed = (_Kind.TIMESTAMP,) if isinstance(tree, _PARTS_OF_TIMES) else (_Kind.DATE, _Kind.TIMESTAMP)
        return _Kind.INTEGER if self._column(of) is not None and self._kind(of, depth) in allowed else None

    def _of_string(self, tree: exp.Expr, depth: int) -> _Kind | None:
        if tree.expression is not None or self._kind(tree.this, depth) is not _Kind.STRING:
            return None
        return _Kind.INTEGER if isinstance(tree, exp.Length) else _Kind.STRING

    def _substring(self, tree: exp.Expr, depth: int) -> _Kind | None:
        places = [tree.args.get(name) for name in ("start", "length", "expression")]
        known = (_kind_of_constant(of) is _Kind.INTEGER for of in places if of is not None)
        return _Kind.STRING if all(known) and self._kind(tree.this, depth) is _Kind.STRING else None

    def _concatenation(self, tree: exp.Expr, depth: int) -> _Kind | None:
        parts = tree.expressions if isinstance(tree, exp.Concat) else [tree.this, tree.expression]
        return _Kind.STRING if parts and {self._kind(of, depth) for of in parts} == {_Kind.STRING} else None

    def _first(self, tree: exp.Expr, depth: int) -> _Kind | None:
        """The first that is not null, of values of one kind."""
        kinds = {self._kind(of, depth) for of in (tree.this, *tree.expressions)} - {_Kind.NULL}
        kind = kinds.pop() if len(kinds) == 1 else None
        return None if kind is _Kind.DECIMAL else kind


_FUNCTIONS: Sequence[tuple[type | tuple[type, ...], Callable[[_Reader, exp.Expr, int], _Kind | None]]] = (
    ((exp.Anonymous, exp.Neg, exp.Abs, *_SUMS), _Reader._of_number),
    ((*_PARTS_OF_DATES, exp.Quarter, *_PARTS_OF_TIMES), _Reader._part),
    (_OF_STRINGS, _Reader._of_string),
    ((exp.Substring, exp.Left, exp.Right), _Reader._substring),
    ((exp.Concat, exp.DPipe), _Reader._concatenation),
    (exp.Coalesce, _Reader._first),
)


def _kind_of_constant(tree: exp.Expr | None) -> _Kind | None:
    tree = bare(tree)
    if isinstance(tree, exp.Neg):
        inner = bare(tree.this)
        return _kind_of_constant(inner) if isinstance(inner, exp.Literal) and not inner.is_string else None
    match tree:
        case exp.Null():
            return _Kind.NULL
        case exp.Boolean():
            return _Kind.BOOLEAN
        case exp.Literal() if tree.is_string:
            return _Kind.STRING
        case exp.Literal() if _SHORT_NUMBER.fullmatch(tree.this):
            return _Kind.INTEGER if tree.this.isdecimal() else _Kind.FRACTION
        case exp.Cast() if not isinstance(tree, exp.TryCast) and _is_time(tree.this):
            return _TIMES.get(tree.to.this)
    return None


_TIMES: Mapping[object, _Kind] = {
    exp.DataType.Type.DATE: _Kind.DATE,
    exp.DataType.Type.TIMESTAMP: _Kind.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: _Kind.TIMESTAMP,
}


def _is_time(tree: exp.Expr | None) -> bool:
    """Whether a tree is a text, or a date or time made of one, that surely is a time."""
    tree = bare(tree)
    if isinstance(tree, exp.Cast):
        return _kind_of_constant(tree) is not None
    if not isinstance(tree, exp.Literal) or not tree.is_string or not DAY_OR_TIME.fullmatch(tree.this):
        return False
    try:
        datetime.fromisoformat(tree.this)
    except ValueError:
        return False
    return True
