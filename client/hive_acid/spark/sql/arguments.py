"""Arguments of a statement in the place of their marks: ``:name``, or ``?`` one after the other.

Queries hand their arguments to Spark. A statement that changes a table is taken apart, so there they become literals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hive_acid.errors import SqlError
from hive_acid.spark.assign import text_value
from hive_acid.spark.sql.tokens import Token, tokens_of

Arguments = Mapping[str, object] | Sequence[object] | None
"""Values by name, or in the order of the marks; Python's, as `pyspark.sql.functions.lit` takes them."""

_INT = range(-(1 << 31), 1 << 31)
_BIGINT = range(-(1 << 63), 1 << 63)
_NUMBERS = frozenset("biuf")
"""Kinds of numpy's: booleans, whole numbers, floats."""


def bound(text: str, arguments: Arguments) -> str:
    """`text` with literals for its marks. Raises SqlError for a value without literal, and for missing ones."""
    if arguments is None:
        return text
    if isinstance(arguments, str):
        raise SqlError("arguments are a dict of names to values, or a list of values")
    tokens = tokens_of(text)
    parts, at, count = [], 0, 0
    for number, token in enumerate(tokens):
        if isinstance(arguments, Mapping):
            if not _is_named_mark(tokens, number):
                continue
            name, end = tokens[number + 1].value, tokens[number + 1].end
            if name not in arguments:
                raise SqlError(f"the statement has a parameter :{name}, for which no argument is given")
            value = arguments[name]
        else:
            if token.word != "?":
                continue
            if count >= len(arguments):
                raise SqlError(f"the statement has more parameters than the {len(arguments)} arguments given")
            value, end = arguments[count], token.end
            count += 1
        parts += [text[at : token.start], literal(value)]
        at = end
    return "".join((*parts, text[at:]))


def _is_named_mark(tokens: list[Token], at: int) -> bool:
    """Whether a colon begins a parameter; behind a name, without space, it would be a path into a variant."""
    if tokens[at].word != ":" or at + 1 == len(tokens) or tokens[at + 1].start != tokens[at].end:
        return False
    before = tokens[at - 1] if at else None
    is_path = before is not None and before.end == tokens[at].start and (before.word[-1:].isalnum() or not before.word)
    return not is_path and tokens[at + 1].word[:1].isidentifier()


def literal(value: object) -> str:
    """A Python value in Spark's SQL. Raises SqlError if it has no literal."""
    value = _plain(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() if value in _INT:
            return f"({value})" if value < 0 else str(value)
        case int() if value in _BIGINT:
            return f"CAST('{value}' AS BIGINT)"
        case float():
            return f"{value!r}D" if math.isfinite(value) and value >= 0 else f"CAST('{value!r}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            return f"({value:f}BD)"
        case str():
            return text_value(value)
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case datetime():
            return f"timestamp_micros({_micros(value)})"
        case date():
            return f"DATE'{value.isoformat()}'"
        case _:
            raise SqlError(f"an argument of type {type(value).__name__} can be given to queries only")


def _plain(value: object) -> object:
    """A number of numpy as Python's, which Spark takes it for as well; anything else as it is."""
    found: Any = value
    is_number = getattr(getattr(value, "dtype", None), "kind", None) in _NUMBERS and found.shape == ()
    return found.item() if is_number else value


def _micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly; without a zone it is in that of the process, as to Spark."""
    if moment.tzinfo is None:
        return int(time.mktime(moment.timetuple())) * 1_000_000 + moment.microsecond
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1) - (moment.utcoffset() or timedelta())
    return since // timedelta(microseconds=1)
