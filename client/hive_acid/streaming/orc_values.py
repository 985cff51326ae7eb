"""Arrow values as pyarrow's ORC writer needs them, for other readers to find what was meant.

Each of three things was found by a run:

- The writer writes a struct's fields under a null of that struct as if they were there, when the struct lies in another
  one, and so shifts all that follows. So the fields of a null are made null before.
- It does not say by which calendar days are counted, and readers then take the Julian one for days before 1582-10-15.
  So these are counted by that.
- It writes a fraction of a second before 1970 as a negative one, at which readers fail. So that is refused.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hive_acid.streaming.values import checked, nulls

_CUTOVER_DAY = -141427
"""1582-10-15, the first day of the Gregorian calendar, in days since 1970-01-01."""

_DAY_US = 86_400_000_000
_FIRST_DAY = -719162
"""0001-01-01; earlier years have no form that all engines agree on."""


def writable(array: Any, where: str) -> Any:
    """`array`, of a type of `hive_acid.streaming.types`, as it is given to the writer.

    Raises SerializationError for a timestamp or date that cannot be written.
    """
    return checked(_writable, array, where)


def _writable(array: Any) -> Any:
    type_ = array.type
    if pa.types.is_struct(type_):
        # `flatten` takes the nulls of the struct over to its fields.
        fields = [_writable(field) for field in array.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(type_), mask=nulls(array))
    if pa.types.is_map(type_):
        keys, items = _writable(array.keys), _writable(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=type_, mask=nulls(array))
    if pa.types.is_list(type_):
        return pa.ListArray.from_arrays(array.offsets, _writable(array.values), type=type_, mask=nulls(array))
    if pa.types.is_date(type_):
        return _days(array.cast(pa.int32())).cast(type_)
    if pa.types.is_timestamp(type_):
        return _moments(array.cast(pa.int64())).cast(type_)
    return array


def _days(days: Any) -> Any:
    """Days of the proleptic calendar as those of the Julian one, before the latter ended."""
    first = pc.min(days).as_py()
    if first is None or first >= _CUTOVER_DAY:
        return days
    return pa.array([None if day is None else _julian(day) for day in days.to_pylist()], days.type)


def _moments(moments: Any) -> Any:
    """Microseconds, by the calendar that readers expect; refuses fractions before 1970."""
    first = pc.min(moments).as_py()
    if first is None or first >= 0:
        return moments
    early = moments.filter(pc.less(moments, 0))
    whole = pc.multiply(pc.divide(early, 1_000_000), 1_000_000)
    if not pc.all(pc.equal(early, whole)).as_py():
        raise pa.ArrowInvalid("a timestamp before 1970 cannot be streamed with a fraction of a second")
    if first >= _CUTOVER_DAY * _DAY_US:
        return moments
    return pa.array(
        [
            None if moment is None else _julian(moment // _DAY_US) * _DAY_US + moment % _DAY_US
            for moment in moments.to_pylist()
        ],
        moments.type,
    )


def _julian(day: int) -> int:
    """The number, counted by the Julian calendar, of the day that the proleptic one calls by the same date."""
    if day >= _CUTOVER_DAY:
        return day
    if day < _FIRST_DAY:
        raise pa.ArrowInvalid("a day before 0001-01-01")
    year, month, of_month = _civil(day)
    if (year, month) == (1582, 10) and of_month > 4:
        raise pa.ArrowInvalid("a day that the calendar of 1582 left out")
    shifted = (month + 9) % 12
    of_year = (153 * shifted + 2) // 5 + of_month - 1
    years = year - (month <= 2)
    return years * 365 + years // 4 + of_year - 719470


def _civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, of_era = divmod(day + 719468, 146097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1
