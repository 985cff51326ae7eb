"""Conditions on partitions: what filter texts and Hive's expressions say, and the same in SQL.

A key compares by the value of its type (wire.md §5.5): integers, decimals and floating numbers as
numbers, dates and timestamps as moments, all others as text. A constant of another type is text,
to which such a key may only be equal or not.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Numeric,
    Text,
    and_,
    any_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    null,
    or_,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from hive_acid.errors import MetaError
from hive_acid.format.partitions import DEFAULT_PARTITION
from metastore.catalog.models import Column
from metastore.catalog.schema import PARTITION

INTEGRAL = frozenset({"tinyint", "smallint", "int", "integer", "bigint"})
_NUMERIC = INTEGRAL | {"decimal", "numeric", "float", "double"}
_MOMENTS = frozenset({"date", "timestamp"})

_NUMBER = re.compile(r"[-+]?\d{1,1000}(\.\d{1,1000})?([eE][-+]?\d{1,3})?", re.ASCII)
_STORED_INTEGER = r"^[-+]?[0-9]+$"
_STORED_NUMBER = r"^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$"
_MOMENT = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d):(\d\d(?:\.\d{1,9})?))?", re.ASCII)
# Midnight is its day, and zeros that end a fraction do not count: so the order of the text is that of time.
_MIDNIGHT_OR_ZEROS = r"( 00:00:00)?(\.0*)?$|(\.\d*[1-9])0+$"

OPERATORS: dict[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Literal:
    """True, false, or neither (a comparison with null)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A key, one of ``= != < <= > >= like``, and a constant as text."""

    key: str
    sign: str
    constant: str


@dataclass(frozen=True, slots=True)
class Membership:
    """The values of the keys, together, are those of one of the rows."""

    keys: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The key has the default partition's value."""

    key: str


@dataclass(frozen=True, slots=True)
class Negation:
    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


Condition = Literal | Comparison | Membership | IsNull | Negation | AllOf | AnyOf


def between(key: str, low: str, high: str) -> Condition:
    """From `low` to `high`, both included."""
    return AllOf((Comparison(key, ">=", low), Comparison(key, "<=", high)))


def base_type(kind: str) -> str:
    """The name of a type without its parameters."""
    return kind.lower().partition("(")[0].strip()


class KeyNames:
    """The partition columns by name, whose case does not count."""

    def __init__(self, keys: Sequence[Column]) -> None:
        self._keys = {key.name.lower(): (position, key) for position, key in enumerate(keys, start=1)}

    def checked(self, name: str) -> str:
        """The name as it is stored. Raises MetaError for what is not a partition column."""
        if name.lower() not in self._keys:
            raise MetaError(f"'{name}' in the partition filter is not a partition column: those are {list(self._keys)}")
        return name.lower()

    def position(self, name: str) -> int:
        """Where the key's value is among a partition's values, from 1."""
        return self._keys[name][0]

    def type(self, name: str) -> str:
        """The key's type without parameters."""
        return base_type(self._keys[name][1].type)


def as_any_of(parts: Sequence[Condition]) -> Condition:
    """The parts joined by OR; equalities of one key, as Spark writes a list of values, become one membership."""
    if len(parts) == 1:
        return parts[0]
    rows: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    others: list[Condition] = []
    for part in _flat(parts, AnyOf):
        if isinstance(part, Comparison) and part.sign == "=":
            rows.setdefault((part.key,), []).append((part.constant,))
        elif isinstance(part, Membership):
            rows.setdefault(part.keys, []).extend(part.rows)
        else:
            others.append(part)
    joined = [*(Membership(keys, tuple(found)) for keys, found in rows.items()), *others]
    return joined[0] if len(joined) == 1 else AnyOf(tuple(joined))


def as_all_of(parts: Sequence[Condition]) -> Condition:
    """The parts joined by AND."""
    found = tuple(_flat(parts, AllOf))
    return found[0] if len(found) == 1 else AllOf(found)


def comparisons(condition: Condition) -> int:
    """How many there are to be decided for each partition; a list of values is one."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return sum(map(comparisons, parts))
        case Negation(part):
            return comparisons(part)
    return 1


def _flat(parts: Iterable[Condition], kind: type[AllOf] | type[AnyOf]) -> Iterator[Condition]:
    """Brackets of the same kind make no difference, and Spark writes one for each pair."""
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


class Translation:
    """Conditions in SQL, on rows of `partition`.

    In a filter text the default partition's value is text like any other for keys that compare as text, and of no
    value for the others; in Hive's expressions (`default_is_null`) it is null for all.
    """

    def __init__(self, keys: KeyNames, *, default_is_null: bool = False) -> None:
        self._keys = keys
        self._default_is_null = default_is_null

    def sql(self, condition: Condition) -> ColumnElement[bool]:
        match condition:
            case Literal(value):
                return null() if value is None else true() if value else false()  # type: ignore[return-value]
            case Comparison(key, "like", constant):
                return self._text(key).regexp_match(like_regex(constant))
            case Comparison(key, "=", constant):
                return self._one_of(key, [constant])
            case Comparison(key, sign, constant):
                compared = self._compared(key, constant, sign)
                return OPERATORS[sign](self._value(key, compared), compared.constants()[0])
            case Membership((key,), rows):
                return self._one_of(key, [row[0] for row in rows])
            case Membership(keys, rows):
                return self._row_of(keys, rows)
            case IsNull(key):
                return _stored(self._keys.position(key)) == DEFAULT_PARTITION
            case Negation(part):
                return not_(self.sql(part))
            case AllOf(parts):
                return and_(true(), *map(self.sql, parts))
            case AnyOf(parts):
                return or_(false(), *map(self.sql, parts))

    def order(self, key: str) -> ColumnElement[Any]:
        """What partitions are ordered by when they are ordered by a key: numbers as such, all else as text."""
        kind = self._keys.type(key)
        compared = _Number(kind, ()) if kind in _NUMERIC else _Compared(kind, ())
        return self._value(key, compared)

    def _one_of(self, key: str, constants: Sequence[str]) -> ColumnElement[bool]:
        """Constants of the key's type and others are compared apart, each group as one array."""
        groups: dict[type[_Compared], list[str]] = {}
        for constant in constants:
            groups.setdefault(type(self._compared(key, constant)), []).append(constant)
        found = []
        for group, members in groups.items():
            compared = group(self._keys.type(key), members)
            is_one = self._value(key, compared) == any_(cast(compared.constants(), ARRAY(compared.sql_type)))
            usual = None if self._default_is_null else compared.usual_spellings()
            if usual is not None:
                # Text decides for all but oddly written ones, which begin with a sign or a zero.
                text = func.nullif(_stored(self._keys.position(key)), DEFAULT_PARTITION, type_=Text).collate("C")
                is_one = or_(text == any_(cast(usual, ARRAY(Text))), and_(text < "1", is_one))
            found.append(is_one)
        return found[0] if len(found) == 1 else or_(*found)

    def _row_of(self, keys: Sequence[str], rows: Sequence[Sequence[str]]) -> ColumnElement[bool]:
        groups: dict[tuple[type[_Compared], ...], list[Sequence[str]]] = {}
        for row in rows:
            types = (type(self._compared(key, constant)) for key, constant in zip(keys, row, strict=True))
            groups.setdefault(tuple(types), []).append(row)
        found = []
        for kinds, members in groups.items():
            columns = [
                group(self._keys.type(key), [row[place] for row in members])
                for place, (key, group) in enumerate(zip(keys, kinds, strict=True))
            ]
            left = tuple_(*(self._value(key, column) for key, column in zip(keys, columns, strict=True)))
            found.append(left.in_(list(zip(*(column.constants() for column in columns), strict=True))))
        return found[0] if len(found) == 1 else or_(*found)

    def _compared(self, key: str, constant: str, sign: str = "=") -> _Compared:
        """How they meet. Raises MetaError where text in place of a number or date would decide for all partitions."""
        kind = self._keys.type(key)
        compared = _Compared.of(kind, constant)
        is_foreign = type(compared) is _Compared and (kind in _NUMERIC or kind in _MOMENTS)
        if is_foreign and (self._default_is_null or sign not in ("=", "!=")):
            raise MetaError(f"the partition column {key} is of type {kind}: it does not compare with '{constant:.100}'")
        return compared

    def _text(self, key: str) -> ColumnElement[str]:
        stored = _stored(self._keys.position(key))
        return func.nullif(stored, DEFAULT_PARTITION, type_=Text) if self._default_is_null else stored

    def _value(self, key: str, compared: _Compared) -> ColumnElement[Any]:
        return compared.value(_stored(self._keys.position(key)), self._text(key))


class _Compared:
    """How a key's value and constants meet: here as text."""

    sql_type: Any = Text

    def __init__(self, kind: str, texts: Iterable[str]) -> None:
        self.kind = kind
        self.texts = list(texts)

    @staticmethod
    def of(kind: str, text: str) -> _Compared:
        """As the key's type says, if the text is of it."""
        if kind in _NUMERIC and _NUMBER.fullmatch(text):
            return _Number(kind, [text])
        if kind in _MOMENTS and is_moment(text):
            return _Moment(kind, [text])
        return _Compared(kind, [text])

    def value(self, stored: ColumnElement[str], text: ColumnElement[str]) -> ColumnElement[Any]:
        """The key's value; `text` is it with null as the conditions see it, `stored` without."""
        return text.collate("C")

    def constants(self) -> list[Any]:
        return self.texts

    def usual_spellings(self) -> list[str] | None:
        """How such values are mostly stored; None if text does not decide."""
        return None


class _Number(_Compared):
    sql_type = Numeric

    def usual_spellings(self) -> list[str] | None:
        if self.kind not in INTEGRAL:
            return None
        return [spelled for spelled in map(usual_integer, self.texts) if spelled is not None]

    def value(self, stored: ColumnElement[str], text: ColumnElement[str]) -> ColumnElement[Any]:
        pattern = _STORED_INTEGER if self.kind in INTEGRAL else _STORED_NUMBER
        return case((stored.regexp_match(pattern), cast(stored, Numeric)))  # null for the default partition

    def constants(self) -> list[Any]:
        return [Decimal(text) for text in self.texts]


class _Moment(_Compared):
    def value(self, stored: ColumnElement[str], text: ColumnElement[str]) -> ColumnElement[Any]:
        known = func.nullif(stored, DEFAULT_PARTITION, type_=Text)
        if self.kind == "date":
            return known.collate("C")
        return func.regexp_replace(known, _MIDNIGHT_OR_ZEROS, r"\3", type_=Text).collate("C")

    def constants(self) -> list[Any]:
        return [normal_moment(text) for text in self.texts]


def usual_integer(text: str) -> str | None:
    """How an integer of this value is usually written; what is no number stays, and of a broken one there is none."""
    if not _NUMBER.fullmatch(text):
        return text
    number = Decimal(text)
    return f"{int(number)}" if number == number.to_integral_value() else None


def is_moment(text: str) -> bool:
    """Whether it is written as a date or time."""
    return _MOMENT.fullmatch(text) is not None


def normal_moment(text: str) -> str:
    """A date or time as it compares: ``2020-1-2`` with all digits, without midnight and zeros at the end."""
    match = _MOMENT.fullmatch(text)
    assert match is not None
    year, month, day, hour, minute, second = match.groups()
    found = f"{year}-{month:>02}-{day:>02}"
    if hour is not None:
        found += f" {hour:>02}:{minute}:{second}"
    return re.sub(_MIDNIGHT_OR_ZEROS, lambda end: end[3] or "", found, count=1)


def like_regex(pattern: str) -> str:
    """A LIKE pattern of either generation: ``%`` and ``_`` with backslash escapes, or Java's ``.*``."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith(".*", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            parts.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            parts.append({"%": ".*", "_": "."}.get(pattern[at]) or re.escape(pattern[at]))
            at += 1
    return f"^{''.join(parts)}$"


def _stored(position: int) -> ColumnElement[str]:
    return PARTITION.c["values"][literal(position)]
