"""Values of a frame on their way to Python, which cannot hold all that Spark can.

Days beyond Python's years and texts that are no UTF-8 would fail or be changed by `collect`. So days are sent as
numbers and texts as bytes.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pyspark.sql import types as t

_EPOCH_DAY = date(1970, 1, 1)


def sent(value: str, of: t.DataType) -> str:
    """The SQL of `value`, SQL of a type, in a form that `collect` keeps."""
    if isinstance(of, t.DateType):
        return f"unix_date({value})"
    return f"cast({value} AS binary)" if isinstance(of, t.StringType) else value


def received(value: Any, of: t.DataType) -> Any:
    """The value as Python has it, from what was `sent`; where it has none, what was sent."""
    try:
        if isinstance(of, t.DateType) and value is not None:
            return _EPOCH_DAY + timedelta(days=value)
        if isinstance(of, t.StringType) and value is not None:
            return bytes(value).decode()
    except (OverflowError, UnicodeDecodeError):
        pass
    return value
