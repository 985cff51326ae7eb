"""Search arguments: a predicate in the form in which ORC takes it from a job's options, and skips row groups by it.

Spark makes such arguments of filters, but names columns from the root of a file, and ORC looks for names within the row
of an ACID file: it finds none and reads everything (data-path.md §1.2). So the argument is made here. ORC reads it from
two options: the names of columns, and the object itself as Java's Kryo writes it, in base64.

Kryo writes of an object a marker (1 for a new one, 2 + n for the n-th of the stream again) and then its fields in the
order of their names; where a field's type does not tell the class, the class stands before it. Numbers are varints.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from hive_acid.format.orc.protobuf import varint
from hive_acid.format.orc.statistics import FIRST_PLAIN_DAY, Bound
from hive_acid.spark.conditions.predicates import AllOf, AnyOf, Comparison, NullTest, OneOf, Operator, Predicate

ARGUMENT_OPTION = "orc.kryo.sarg"
NAMES_OPTION = "orc.sarg.column.names"

MOST_LEAVES = 200
"""A predicate with more comparisons is not worth its evaluation for each row group."""

_FIRST_SURROGATE = "\ud800"
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SARG = "org.apache.hadoop.hive.ql.io.sarg."
_TREE = _SARG + "ExpressionTree"
_LEAF = _SARG + "SearchArgumentImpl$PredicateLeafImpl"
_LIST = "java.util.ArrayList"
_DATE = "java.sql.Date"
_TIMESTAMP = "java.sql.Timestamp"
_DECIMAL = "org.apache.hadoop.hive.serde2.io.HiveDecimalWritable"

_OR, _AND, _NOT, _IS_LEAF = 1, 2, 3, 4
_EQUALS, _LESS_THAN, _AT_MOST, _IN, _IS_NULL = 1, 3, 4, 5, 7
_TYPES: dict[type, int] = {int: 1, float: 2, str: 3, date: 4, Decimal: 5, datetime: 6, bool: 7}
"""Constants of Java's enumerations as Kryo counts them: from 1."""

_ASKED_BY_RANGE = frozenset({date, Decimal})
"""Equality would be asked of bloom filters, in which writers have such values in several forms."""

Node = tuple[int, list["Node"]] | int
"""An operator over nodes, or the place of a leaf."""

Leaf = tuple[str, int, int, tuple[Bound, ...]]
"""Column, operator, type, values."""


def search_options(predicate: Predicate, columns: Collection[str]) -> dict[str, str]:
    """The options of a reader by which ORC skips the row groups in which no row meets the predicate.

    `columns` are those of the files' row that may be asked, by their names there. Empty if nothing can be said.
    """
    builder = _Builder({name for name in columns if _PLAIN_NAME.fullmatch(name)})
    root = builder.node(predicate)
    if root is None or len(builder.leaves) > MOST_LEAVES:
        return {}
    names = ",".join(dict.fromkeys(leaf[0] for leaf in builder.leaves))
    argument = base64.b64encode(_KryoWriter().argument(root, builder.leaves)).decode()
    return {ARGUMENT_OPTION: argument, NAMES_OPTION: names}


class _Builder:
    """From a predicate to nodes and leaves; what ORC cannot be asked falls out of an AND, and makes an OR unknown."""

    def __init__(self, columns: Collection[str]) -> None:
        self.leaves: list[Leaf] = []
        self._columns = columns

    def node(self, predicate: Predicate) -> Node | None:
        if isinstance(predicate, AllOf):
            known = [node for part in predicate.parts if (node := self.node(part)) is not None]
            return (_AND, known) if len(known) > 1 else next(iter(known), None)
        if isinstance(predicate, AnyOf):
            before = len(self.leaves)
            nodes = [self.node(part) for part in predicate.parts]
            if None in nodes:
                del self.leaves[before:]
                return None
            return (_OR, [node for node in nodes if node is not None])
        if predicate.column not in self._columns:
            return None
        if isinstance(predicate, NullTest):
            # Of the absence of values all types say the same.
            node = self._leaf(predicate.column, _IS_NULL, _TYPES[str])
            return node if predicate.is_null else (_NOT, [node])
        if isinstance(predicate, OneOf):
            return self._one_of(predicate)
        return self._comparison(predicate)

    def _one_of(self, predicate: OneOf) -> Node | None:
        kind = type(predicate.values[0])
        if kind not in _TYPES or kind is bool or not all(map(_is_in_order, predicate.values)):
            return None
        if kind in _ASKED_BY_RANGE or len(predicate.values) == 1:
            least = Comparison(predicate.column, Operator.AT_LEAST, predicate.values[0])
            return self.node(AllOf((least, Comparison(predicate.column, Operator.AT_MOST, predicate.values[-1]))))
        # Java takes the two zeros for two numbers.
        signs = [
            sign for value in predicate.values for sign in ((-0.0, 0.0) if value == 0 and kind is float else (value,))
        ]
        return self._leaf(predicate.column, _IN, _TYPES[kind], tuple(signs))

    def _comparison(self, predicate: Comparison) -> Node | None:
        column, operator, value = predicate.column, predicate.operator, predicate.value
        kind = type(value)
        if kind not in _TYPES or not _is_in_order(value):
            return None
        if operator is Operator.EQUAL and (kind in _ASKED_BY_RANGE or (kind is float and value == 0)):
            return self._one_of(OneOf(column, (value,)))
        if operator is Operator.EQUAL:
            return self._leaf(column, _EQUALS, _TYPES[kind], (value,))
        if kind is bool:
            return None
        up = operator in (Operator.LESS, Operator.AT_MOST)
        strict = operator in (Operator.LESS, Operator.AT_LEAST)
        limit = _widened(value, up=up)
        if limit is None:
            return None
        leaf = self._leaf(column, _LESS_THAN if strict else _AT_MOST, _TYPES[kind], (limit,))
        return leaf if up else (_NOT, [leaf])

    def _leaf(self, column: str, operator: int, kind: int, values: tuple[Bound, ...] = ()) -> Node:
        self.leaves.append((column, operator, kind, values))
        return len(self.leaves) - 1


def _is_in_order(value: Bound) -> bool:
    """Whether ORC finds the value's place among others where Spark has it.

    ORC's statistics count days before 1582-10-15 by another calendar. Java compares texts by units of UTF-16: those
    from surrogates on are in another order than the bytes of UTF-8, by which the bounds of a row group were found.
    """
    if isinstance(value, date):
        return (value.date() if isinstance(value, datetime) else value) >= FIRST_PLAIN_DAY
    return not isinstance(value, str) or max(value, default="") < _FIRST_SURROGATE


def _widened(value: Bound, *, up: bool) -> Bound | None:
    """A bound that no value beside it is beyond, None if there is none.

    A day is noon UTC of the next one (of the one before): that is beyond it in every time zone. So is a time UTC, a day
    later or earlier. Of the two zeros, which Java takes for two numbers, it is the outer one.
    """
    if isinstance(value, float) and value == 0:
        return 0.0 if up else -0.0
    if not isinstance(value, date):
        return value
    try:
        return value + timedelta(days=1 if up else -1)
    except OverflowError:
        return None


class _KryoWriter:
    """One stream of Kryo."""

    def __init__(self) -> None:
        self._classes: dict[str, int] = {}
        self._objects = 0

    def argument(self, root: Node, leaves: list[Leaf]) -> bytes:
        """A SearchArgumentImpl: ``compactExpression``, ``leaves``, ``normalizedExpression`` (the same object)."""
        places: list[int] = [0] * len(leaves)
        begin = self._new()
        tree = self._objects
        expression = self._class(_TREE) + self._tree(root, leaves, places)
        listed = b"".join(self._class(_LEAF) + _again(place) for place in places)
        kept = self._class(_LIST) + self._new() + varint(len(leaves)) + listed
        return begin + expression + kept + self._class(_TREE) + _again(tree)

    def _tree(self, node: Node, leaves: list[Leaf], places: list[int]) -> bytes:
        """An ExpressionTree: ``children``, ``constant``, ``leaf``, ``operator``."""
        begin = self._new()
        if isinstance(node, int):
            leaf = self._class(_LEAF)
            places[node] = self._objects
            return begin + _NULL + _NULL + leaf + self._leaf(node, leaves[node]) + self._enum(_IS_LEAF)
        operator, inner = node
        children = self._class(_LIST) + self._new() + varint(len(inner))
        for child in inner:
            children += self._class(_TREE) + self._tree(child, leaves, places)
        return begin + children + _NULL + _NULL + self._enum(operator)

    def _leaf(self, number: int, leaf: Leaf) -> bytes:
        """A PredicateLeafImpl: ``columnName``, ``id``, ``literal``, ``literalList``, ``operator``, ``type``."""
        column, operator, kind, values = leaf
        parts = [self._new(), self._string(column), _signed(number)]
        if operator == _IN:
            parts += [_NULL, self._class(_LIST), self._new(), varint(len(values)), *map(self._value, values)]
        else:
            parts += [*(map(self._value, values) if values else [_NULL]), _NULL]
        return b"".join([*parts, self._enum(operator), self._enum(kind)])

    def _value(self, value: Bound) -> bytes:
        """A value behind its class, which is a number for the classes that Kryo knows."""
        if isinstance(value, bool):
            return varint(5) + bytes([value])
        if isinstance(value, int):
            return varint(9) + _signed(value)
        if isinstance(value, float):
            return varint(10) + struct.pack(">d", value)
        if isinstance(value, str):
            return varint(3) + self._string(value)
        if isinstance(value, Decimal):
            return self._class(_DECIMAL) + self._new() + _decimal(value)
        assert isinstance(value, date)
        if isinstance(value, datetime):
            return self._class(_TIMESTAMP) + self._new() + _unsigned(int(value.replace(tzinfo=UTC).timestamp() * 1000))
        noon = datetime.combine(value, time(12), UTC)
        return self._class(_DATE) + self._new() + _unsigned(int(noon.timestamp() * 1000))

    def _class(self, name: str) -> bytes:
        """A class by its name, at the first time, and by its number among those named."""
        if name in self._classes:
            return varint(1) + varint(self._classes[name])
        self._classes[name] = len(self._classes)
        return varint(1) + varint(self._classes[name]) + _text(name)

    def _new(self) -> bytes:
        self._objects += 1
        return varint(1)

    def _enum(self, constant: int) -> bytes:
        return self._new() + varint(constant)

    def _string(self, text: str) -> bytes:
        return self._new() + _text(text)


_NULL = b"\0"
_LONG_DIGITS = 10**16


def _again(place: int) -> bytes:
    return varint(place + 2)


def _signed(value: int) -> bytes:
    return _unsigned(value << 1 ^ value >> 63)


def _unsigned(value: int) -> bytes:
    """The 64 bits of a number in at most nine bytes, of which the last has eight bits of it."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F and len(encoded) < 8:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _decimal(value: Decimal) -> bytes:
    """The fields of a HiveDecimalWritable: three longs of 16 digits each, places on both sides of the point, sign.

    It has no zeros at its end, and none before the point alone.
    """
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    scale = -int(exponent)
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    number, scale = number * 10 ** max(-scale, 0), max(scale, 0)
    if not number:
        scale = 0
    whole = len(str(number // 10**scale)) if number >= 10**scale else 0
    longs = [number // _LONG_DIGITS**place % _LONG_DIGITS for place in range(3)]
    signum = (-1 if sign else 1) if number else 0
    not_serialized, scratch = -1, _NULL + _NULL
    numbers = (*longs, whole, scale, not_serialized, signum)
    return b"".join(map(_signed, numbers)) + scratch + b"\x01"


def _text(text: str) -> bytes:
    """A string: short ones of ASCII with the end marked in the last byte, others behind their length, plus one."""
    if 1 < len(text) < 64 and text.isascii():
        encoded = text.encode()
        return encoded[:-1] + bytes([encoded[-1] | 0x80])
    # Java counts and writes units of UTF-16, each on its own.
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    length = len(codes) + 1
    first = length & 0x3F | 0x80
    head = bytes([first]) if length >> 6 == 0 else bytes([first | 0x40]) + varint(length >> 6)
    return head + b"".join(chr(code).encode("utf-8", "surrogatepass") for code in codes)
