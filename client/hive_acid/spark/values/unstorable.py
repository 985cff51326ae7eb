"""Days and times that Spark's ORC files cannot hold: they would come back as others, without an error.

Its writer counts days by the Julian calendar up to 1582-10-04, which 1582-10-15 follows: all between become that day.
And it puts times of the last second before 1970 UTC a second later, if they have a fraction of a millisecond or more.
Before 1900 it knows times by their wall clocks alone: of two that clocks of the zone show alike, as they were put back
between them, the earlier one becomes the later. In many zones Java's older calendar, by which the writer counts, puts
clocks forward at the end of 1899 UTC, from a standard time of later years to the local mean time that was shown still
(by 309 s in Cairo): a time that clocks showed so is read as one of 1900, later by as much.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.timezone import is_offset, session_zone

_FIRST_LOST, _FIRST_KEPT = "1582-10-05", "1582-10-15"
_EARLY = "TIMESTAMP_LTZ'1970-01-01 00:00:00+00:00'"
_LATE_MICROS = -999_000, -1
_BY_WALL_CLOCK = "TIMESTAMP_LTZ'1900-01-01 00:00:00+00:00'"
"""Up to here Java's older calendar, by which the writer counts, knows one offset of a zone."""

_BY_WALL_CLOCK_MICROS = -2_208_988_800_000_000
_REBASE = "org.apache.spark.sql.catalyst.util.RebaseDateTime", "rebaseGregorianToJulianMicros"
_PUT_FORWARD: dict[str, int] = {}
"""By zone, for all sessions."""

_DAY_MICROS = 86_400_000_000
"""Clocks were put back by no more, and not twice in that time."""


def put_forward(spark: SparkSession) -> int | None:
    """By how many microseconds the writer's calendar puts clocks of the session's zone forward at 1900; 0 if it does
    not, and None if the zone is but an offset, so that its clocks are never changed.
    """
    zone = session_zone(spark)
    if is_offset(zone):
        return None
    if zone not in _PUT_FORWARD:
        last = _BY_WALL_CLOCK_MICROS - 1
        counted = F.call_function("java_method", *map(F.lit, (*_REBASE, zone)), F.lit(last).cast("bigint"))
        _PUT_FORWARD[zone] = max(0, int(spark.range(1).select(counted).collect()[0][0]) - last)
    return _PUT_FORWARD[zone]


def holds_unstorable(value: str, of: t.DataType, forward: int | None, depth: int = 0) -> str | None:
    """The SQL of whether `value`, SQL of a type, holds a day or time that would be stored as another one.

    None if no value of the type does. `forward` is what `put_forward` says of the session.
    """
    if isinstance(of, t.DateType):
        return f"({value} >= DATE'{_FIRST_LOST}' AND {value} < DATE'{_FIRST_KEPT}')"
    if isinstance(of, t.TimestampType):
        first, last = _LATE_MICROS
        lost = f"{value} >= TIMESTAMP_LTZ'{_FIRST_LOST}' AND {value} < TIMESTAMP_LTZ'{_FIRST_KEPT}'"
        early = f"unix_micros({value}) BETWEEN {first} AND {last} OR {lost}"
        if forward is None:
            return f"({value} < {_EARLY} AND ({early}))"
        others = _is_shown_again(value, depth)
        if forward:
            others = f"(unix_micros({value}) >= {_BY_WALL_CLOCK_MICROS - forward} OR {others})"
        by_clock = f"{value} < {_BY_WALL_CLOCK} AND {others}"
        return f"({value} < {_EARLY} AND ({early} OR {by_clock}))"
    if isinstance(of, t.StructType):
        # A field of Spark's SQL is taken by its name, whatever that contains.
        fields = ((f"({value}).{quoted(field.name)}", field.dataType) for field in of.fields)
        return _any(holds_unstorable(field, kind, forward, depth) for field, kind in fields)
    if isinstance(of, t.ArrayType):
        return _exists(value, of.elementType, forward, depth)
    if isinstance(of, t.MapType):
        return _any(
            (
                _exists(f"map_keys({value})", of.keyType, forward, depth),
                _exists(f"map_values({value})", of.valueType, forward, depth),
            )
        )
    return None


def _is_shown_again(value: str, depth: int) -> str:
    """The SQL of whether clocks of the session's zone, once put back, show a time for the second time."""
    back, day_later = f"__acid_back_{depth}", f"timestamp_micros(unix_micros({value}) + {_DAY_MICROS})"
    again = f"{_wall_micros(f'timestamp_micros(unix_micros({value}) + {back})')} = {_wall_micros(value)}"
    by = f"{_DAY_MICROS} + {_wall_micros(value)} - {_wall_micros(day_later)}"
    return f"exists(array({by}), {back} -> {back} > 0 AND {again})"


def _wall_micros(value: str) -> str:
    return f"unix_micros(from_utc_timestamp({value}, current_timezone()))"


def _exists(array: str, of: t.DataType, forward: int | None, depth: int) -> str | None:
    one = f"__acid_one_{depth}"
    condition = holds_unstorable(one, of, forward, depth + 1)
    return condition and f"exists({array}, {one} -> {condition})"


def _any(conditions: Iterable[str | None]) -> str | None:
    return " OR ".join(f"({condition})" for condition in conditions if condition) or None
