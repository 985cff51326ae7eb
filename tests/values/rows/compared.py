"""How values compare, in Python: by Spark's rules of ANSI mode.

NaN is equal to itself and greater than all else, zeros of both signs are equal, texts are ordered by their bytes in
UTF-8, and a char as if it had blanks without end behind.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.values.rows.hostile import INTEGER_BITS, MICROS_PER_DAY, is_text

Key = Callable[[Any], Any]
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_MOST_DIGITS = 38
_LONGEST = 500


def keys(left: str, right: str) -> tuple[Key, Key] | None:
    """What values of two types are compared by; None where the model does not know what Spark makes of them."""
    if is_number(left) and is_number(right):
        if is_exact(left) and is_exact(right):
            return (Decimal, Decimal) if _fit(left, right) else None
        return (_approximate, _approximate)
    if is_text(left) and is_text(right):
        key = _with_blanks if left.startswith("char") or right.startswith("char") else str.encode
        return (key, key)
    times = ("date", "timestamp")
    if left in times and right in times:
        return (_micros_of(left), _micros_of(right)) if left != right else (int, int)
    return (_itself, _itself) if left == right and left in ("boolean", "binary") else None


def can_be_merged(kind: str, other: str) -> bool:
    """Whether values of two types are of one kind, so that a MERGE may compare them."""
    times = ("date", "timestamp")
    same = (
        (kind in INTEGER_BITS and other in INTEGER_BITS)
        or (is_exact(kind) and is_exact(other))
        or (is_text(kind) and is_text(other))
        or (kind in times and other in times)
        or (kind in ("float", "double") and other in ("float", "double"))
    )
    return same and keys(kind, other) is not None


def is_number(kind: str) -> bool:
    """Whether values of the type are numbers."""
    return is_exact(kind) or kind in ("float", "double")


def is_exact(kind: str) -> bool:
    """Whether they are whole numbers or decimals."""
    return kind in INTEGER_BITS or kind.startswith("decimal")


def compared(left_kind: str, left: Any, operator: str, right_kind: str, right: Any) -> bool | None:
    """``left operator right`` as SQL has it: None for neither. Raises KeyError where the model does not know."""
    if operator == "<=>" and (left is None or right is None):
        return left is None and right is None
    if left is None or right is None:
        return None
    by = keys(left_kind, right_kind)
    if by is None:
        raise KeyError(f"{left_kind} {operator} {right_kind}")
    one, other = by[0](left), by[1](right)
    return OPERATORS[operator](one, other)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<=>": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def both(one: bool | None, other: bool | None) -> bool | None:
    """AND of three values."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def neither(one: bool | None) -> bool | None:
    """NOT of three values."""
    return None if one is None else not one


def either(one: bool | None, other: bool | None) -> bool | None:
    """OR of three values."""
    return neither(both(neither(one), neither(other)))


def like(text: str | None, pattern: str) -> bool | None:
    """``text LIKE pattern``, of which a backslash makes the next sign stand for itself."""
    if text is None:
        return None
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    signs = {"%": ".*", "_": "."}
    made = "".join(signs.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(made, text, re.DOTALL) is not None


def _fit(left: str, right: str) -> bool:
    """Whether there is a decimal that holds all values of both types, which Spark compares them as."""
    whole, scale = (max(of) for of in zip(_places(left), _places(right), strict=True))
    return whole + scale <= _MOST_DIGITS


def _places(kind: str) -> tuple[int, int]:
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    precision, scale = map(int, re.findall(r"\d+", kind))
    return precision - scale, scale


def _approximate(number: Any) -> tuple[bool, float]:
    value = float(number)
    return (True, 0.0) if math.isnan(value) else (False, value + 0.0)


def _with_blanks(text: str) -> bytes:
    return text.ljust(_LONGEST).encode()


def _micros_of(kind: str) -> Key:
    return (lambda days: days * MICROS_PER_DAY) if kind == "date" else int


def _itself(value: Any) -> Any:
    return value
