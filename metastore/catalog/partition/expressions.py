"""Hive's partition expressions, as its drops and its planner send them: Kryo bytes, or filter text in their place.

Column, constant, field of a struct, AND, OR, NOT, the comparisons, IN, BETWEEN, IS NULL (wire.md §5.6);
all else is refused, since a drop that goes by a half-understood condition loses data, and a
query rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hive_acid.errors import MetaError
from metastore.catalog.models import Column
from metastore.catalog.partition.conditions import (
    Comparison,
    Condition,
    IsNull,
    KeyNames,
    Literal,
    Membership,
    Negation,
    as_all_of,
    as_any_of,
    between,
)
from metastore.catalog.partition.filters import FLIPPED, filter_condition
from metastore.catalog.partition.kryo import decimal_of, read_expression
from metastore.catalog.partition.kryo_classes import FUNCTION, PLAN
from metastore.catalog.partition.kryo_reader import JavaObject, KryoError

_SIGNS = {
    "OPEqual": "=",
    "OPEqualNS": "=",
    "OPNotEqual": "!=",
    "OPLessThan": "<",
    "OPEqualOrLessThan": "<=",
    "OPGreaterThan": ">",
    "OPEqualOrGreaterThan": ">=",
}
_MAX_NODES = 20_000
"""Parts are shared by reference, so a few bytes can stand for very many."""
_STRUCT_FIELD = "col"
_KRYO = b"\x01"
"""Kryo's mark of an object or a class, with which no filter text begins."""


class UndecidedError(MetaError):
    """Hive's expression is not understood here."""


def filter_text(data: bytes | str) -> str | None:
    """The filter text that stands in place of Hive's expression; None for what is none."""
    if isinstance(data, str):
        return data
    if data.startswith(_KRYO):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def expression_condition(data: bytes | str, keys: Sequence[Column]) -> tuple[Condition, bool]:
    """The condition that the bytes hold, and whether it is Hive's expression (or a filter text, which says false).

    Raises MetaError for a malformed filter text, UndecidedError for an expression that cannot be decided here.
    """
    text = filter_text(data)
    if text is not None:
        return filter_condition(text, keys), False
    assert isinstance(data, bytes)
    try:
        return _Reading(keys).condition(read_expression(data)), True
    except KryoError as error:
        raise UndecidedError(f"cannot decide Hive's partition expression: {error}") from None


class _Reading:
    def __init__(self, keys: Sequence[Column]) -> None:
        self._keys = KeyNames(keys)
        self._nodes = 0

    def condition(self, node: Any) -> Condition:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise KryoError(f"it has more than {_MAX_NODES} parts")
        if _is(node, "ExprNodeConstantDesc") and (node["value"] is None or isinstance(node["value"], bool)):
            return Literal(node["value"])
        function, arguments = _call(node)
        if function in _SIGNS:
            return self._comparison(function, *_exactly(2, function, arguments))
        match function:
            case "OPAnd":
                return as_all_of(list(map(self.condition, arguments)))
            case "OPOr":
                return as_any_of(list(map(self.condition, arguments)))
            case "OPNot":
                return Negation(self.condition(*_exactly(1, function, arguments)))
            case "OPNull":
                return IsNull(self._key(*_exactly(1, function, arguments)))
            case "OPNotNull":
                return Negation(IsNull(self._key(*_exactly(1, function, arguments))))
            case "Between":
                negated, operand, low, high = _exactly(4, function, arguments)
                return self._between(_value(negated), self._key(operand), _constant(low), _constant(high))
            case "In" if len(arguments) > 1:
                return self._membership(arguments[0], arguments[1:])
        raise KryoError(f"it has the function {function}, which is not known here")

    def _comparison(self, function: str, left: Any, right: Any) -> Condition:
        sign = _SIGNS[function]
        if _is(left, "ExprNodeConstantDesc"):
            left, right, sign = right, left, FLIPPED.get(sign, sign)
        key, constant = self._key(left), _constant(right)
        if function == "OPEqualNS":  # never neither true nor false
            if constant is None:
                return IsNull(key)
            return as_all_of([Negation(IsNull(key)), Comparison(key, sign, constant)])
        return Literal(None) if constant is None else Comparison(key, sign, constant)

    def _between(self, negated: Any, key: str, low: str | None, high: str | None) -> Condition:
        if not isinstance(negated, bool):
            raise KryoError("its BETWEEN does not say whether it is negated")
        if low is None or high is None:
            raise KryoError("its BETWEEN has a null bound")
        return Negation(between(key, low, high)) if negated else between(key, low, high)

    def _membership(self, operand: Any, choices: Sequence[Any]) -> Condition:
        if _is(operand, "ExprNodeGenericFuncDesc"):
            function, arguments = _call(operand)
            if function != "Struct":
                raise KryoError(f"it compares the function {function}, which is not known here")
            keys = tuple(self._key(argument) for argument in arguments)
            rows = [_row(choice) for choice in choices]
        else:
            keys = (self._key(operand),)
            rows = [(_constant(choice),) for choice in choices]
        complete = [row for row in rows if None not in row]
        if any(len(row) != len(keys) for row in rows):
            raise KryoError("its IN has rows of different lengths")
        found = Membership(keys, tuple(complete))  # type: ignore[arg-type] # no None is left
        # With a null among the choices, IN is never false: who is not in it is neither.
        return found if len(complete) == len(rows) else as_any_of([found, Literal(None)])

    def _key(self, node: Any) -> str:
        if _is(node, "ExprNodeFieldDesc"):
            return self._key(_field(node))
        if not _is(node, "ExprNodeColumnDesc") or not isinstance(node["column"], str):
            raise KryoError(f"it has {_named(node)} where a partition column is needed")
        return self._keys.checked(node["column"])


def _field(node: JavaObject) -> Any:
    """What ``struct(a, b).col2`` stands for."""
    function, arguments = _call(node["desc"])
    name = node["fieldName"] or ""
    place = name.removeprefix(_STRUCT_FIELD)
    if function != "Struct" or not place.isdecimal() or not 0 < int(place) <= len(arguments):
        raise KryoError(f"it has a field {name}, which is not one of a struct of partition columns")
    return arguments[int(place) - 1]


def _call(node: Any) -> tuple[str, list[Any]]:
    if not _is(node, "ExprNodeGenericFuncDesc") or not isinstance(node["genericUDF"], JavaObject):
        raise KryoError(f"it has {_named(node)} where a condition is needed")
    name = node["genericUDF"].class_name
    if not name.startswith(FUNCTION):
        raise KryoError(f"it has a function {name}, which is not known here")
    children = node["children"]
    if not isinstance(children, list):
        raise KryoError("it has a function without arguments")
    return name.removeprefix(f"{FUNCTION}GenericUDF"), children


def _row(node: Any) -> tuple[str | None, ...]:
    if _is(node, "ExprNodeGenericFuncDesc"):
        function, arguments = _call(node)
        if function == "Struct":
            return tuple(map(_constant, arguments))
    value = _value(node)
    if not isinstance(value, list):
        raise KryoError(f"it has {_named(node)} where a struct of constants is needed")
    return tuple(map(_text, value))


def _constant(node: Any) -> str | None:
    return _text(_value(node))


def _value(node: Any) -> Any:
    if not _is(node, "ExprNodeConstantDesc"):
        raise KryoError(f"it has {_named(node)} where a constant is needed")
    return node["value"]


def _text(value: Any) -> str | None:
    """A constant as a partition's value is written."""
    if isinstance(value, JavaObject):
        kind = value.class_name.rpartition(".")[2]
        if kind == "HiveDecimal":
            value = decimal_of(value)
        elif kind == "HiveChar":
            value = (value["value"] or "").rstrip(" ")
        elif "value" in value.fields:
            value = value["value"]
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case float():
            return repr(value)
        case datetime.date():
            return value.isoformat()
        case (datetime.datetime() as moment, int() as nanoseconds):
            fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
            return f"{moment.isoformat(' ', 'seconds')}{fraction}"
    raise KryoError(f"it has a constant of type {_named(value)}")


def _exactly(number: int, function: str, arguments: list[Any]) -> list[Any]:
    if len(arguments) != number:
        raise KryoError(f"its {function} has {len(arguments)} arguments, not {number}")
    return arguments


def _is(node: Any, name: str) -> bool:
    return isinstance(node, JavaObject) and node.class_name == PLAN + name


def _named(node: Any) -> str:
    return node.class_name.rpartition(".")[2] if isinstance(node, JavaObject) else type(node).__name__
