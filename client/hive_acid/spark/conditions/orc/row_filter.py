"""Row filters: a predicate as a condition that Spark asks of each row before all others.

ORC can be told to ask a search argument of each row, too: of the rows that do not meet it the other columns are not
decoded, and hold what was in their place before. So Spark has to leave these rows out before it looks at anything else
of them, by the very predicate.

In ORC 2.3 the fields of a struct lose two things once ORC has passed over rows: which of them are null, and that a
value stands for all rows of the batch, which only texts make use of (data-path.md §1.2). So no texts are asked, and
fields that may be null only if what is in the place of a null is refused, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from pyspark.sql import types as t

from hive_acid.format.orc.statistics import Bound, ColumnStatistics
from hive_acid.spark.conditions.predicates import (
    AllOf,
    AnyOf,
    Comparison,
    NullTest,
    OneOf,
    Predicate,
    columns_of,
    may_match,
)
from hive_acid.spark.jvm.job_settings import SHORT_LIST

ROW_FILTER_OPTIONS = {"orc.sarg.to.filter": "true"}
"""By which ORC asks its search argument of each row."""

_ASKED = (
    t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DecimalType,
    t.DateType,
)  # fmt: skip
_WHOLE_NUMBERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_SHOWN_FOR_NULL: Sequence[tuple[tuple[type[t.DataType], ...], Bound]] = (
    (_WHOLE_NUMBERS, 1),
    ((t.DateType,), date(1970, 1, 2)),
    ((t.BooleanType,), True),
)
"""What ORC has in its vectors where there is no value."""


def row_filter(
    predicate: Predicate,
    types: Mapping[str, t.DataType],
    nullable: Collection[str],
    column: Callable[[str], str],
    hoisted: Callable[[str], str],
) -> str | None:
    """The predicate as SQL; None if it speaks of others than `types` has, or ORC and Spark might see it in two ways.

    It may stand beside AND. It holds for each row that meets the predicate, and for none that does not meet the search
    argument made of it.
    `types` are those of fields, of which some are `nullable`. `column` is how one is called in SQL, `hoisted` a number
    that is kept out of generated code.
    """
    asked = columns_of(predicate)
    if not asked <= types.keys() or not all(
        _refuses_null(predicate, name, types[name]) for name in asked & set(nullable)
    ):
        return None
    return _Words(types, column, hoisted).beside_and(predicate)


def _refuses_null(predicate: Predicate, name: str, kind: t.DataType) -> bool:
    """Whether no row in which a field is null meets the predicate, even if Spark is shown what ORC has in its place."""
    shown = next((value for types, value in _SHOWN_FOR_NULL if isinstance(kind, types)), None)
    if shown is None:
        return False
    known = ColumnStatistics(1, False, shown, shown)
    parts = predicate.parts if isinstance(predicate, AllOf) else (predicate,)
    return any(
        isinstance(part, Comparison | OneOf) and part.column == name and not may_match(part, lambda _: known)
        for part in parts
    )


class _Words:
    """From a predicate to SQL, None for what has no words."""

    def __init__(
        self, types: Mapping[str, t.DataType], column: Callable[[str], str], hoisted: Callable[[str], str]
    ) -> None:
        self._types = types
        self._column = column
        self._hoisted = hoisted

    def beside_and(self, predicate: Predicate) -> str | None:
        """As it may stand beside AND, in no more parentheses than that takes: Spark's parser reads these twice."""
        words = self._of(predicate)
        return f"({words})" if words is not None and isinstance(predicate, AnyOf) else words

    def _of(self, predicate: Predicate) -> str | None:
        if isinstance(predicate, AllOf):
            return _joined(" AND ", map(self.beside_and, predicate.parts))
        if isinstance(predicate, AnyOf):
            return _joined(" OR ", map(self._of, predicate.parts))
        kind, column = self._types[predicate.column], self._column(predicate.column)
        if not isinstance(kind, _ASKED):
            return None
        if isinstance(predicate, NullTest):
            return f"{column} IS {'' if predicate.is_null else 'NOT '}NULL"
        if isinstance(predicate, Comparison):
            value = self._value(predicate.value, kind)
            return None if value is None else f"{column} {predicate.operator.value} {value}"
        return self._one_of(predicate, kind, column)

    def _one_of(self, predicate: OneOf, kind: t.DataType, column: str) -> str | None:
        values = predicate.values
        if isinstance(kind, t.DateType) and len(values) > SHORT_LIST:
            # ORC is asked for a range, too.
            return f"{column} BETWEEN {self._value(values[0], kind)} AND {self._value(values[-1], kind)}"
        if isinstance(kind, _WHOLE_NUMBERS) and len(values) > SHORT_LIST:
            # A set of BIGINTs is no code. Without the sum Spark would make it one of the column's type.
            return f"{column} + 0L IN ({', '.join(f'{value}L' for value in values)})"
        if isinstance(kind, t.FloatType | t.DoubleType):
            return None  # the zeros of both signs are two numbers to a set
        listed = _joined(", ", (self._value(value, kind) for value in values))
        return None if listed is None else f"{column} IN ({listed})"

    def _value(self, value: Bound, kind: t.DataType) -> str | None:
        if isinstance(value, bool):
            return str(value).lower() if isinstance(kind, t.BooleanType) else None
        if isinstance(value, int):
            return self._hoisted(f"{value}L") if isinstance(kind, _WHOLE_NUMBERS) else None
        if isinstance(value, float):
            return self._hoisted(f"{value!r}D") if isinstance(kind, t.FloatType | t.DoubleType) else None
        if isinstance(value, Decimal):
            return _decimal(value, kind) if isinstance(kind, t.DecimalType) else None
        if isinstance(value, date) and isinstance(kind, t.DateType):
            return self._hoisted(f"DATE'{value.isoformat()}'")
        return None


def _joined(by: str, parts: Iterable[str | None]) -> str | None:
    """The parts in one text, None if one is."""
    found = list(parts)
    return None if None in found else by.join(map(str, found))


def _decimal(value: Decimal, kind: t.DecimalType) -> str | None:
    """In the column's own type, with which Spark compares without a conversion."""
    fits = abs(value) < Decimal(10) ** (kind.precision - kind.scale)
    return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {kind.scale}))" if fits else None
