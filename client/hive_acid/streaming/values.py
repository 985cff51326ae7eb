"""Arrow values as they are stored in a column: cast without loss, or refused.

The rules are those of the Spark client (`hive_acid.spark.values.assign`) but that nothing is rounded: a value that
does not fit fails the call.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hive_acid.errors import SerializationError
from hive_acid.streaming.types import arrow_type, element_types, text_length

_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
_FIRST_US, _LAST_US = _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1
_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError)


def stored(given: Any, hive_type: str, where: str) -> Any:
    """The Arrow array `given` as it is written into a column of `hive_type`; `where` names the column for errors.

    Raises SerializationError that names the first value that cannot be stored.
    """
    array = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        array = pc.take(array, pa.array(range(len(array))))  # without gaps: what follows looks at offsets
    if not _is_castable(array.type, arrow_type(hive_type)):
        raise SerializationError(f"{where} is {hive_type}: values of type {array.type} cannot be stored in it")
    return checked(lambda part: _converted(part, hive_type), array, f"{where} {hive_type}")


def checked(convert: Callable[[Any], Any], array: Any, where: str) -> Any:
    """What `convert` makes of an array. Raises SerializationError that names the first value which it refuses."""
    try:
        return convert(array)
    except _ERRORS as error:
        position = _first_failure(array, convert)
        raise SerializationError(
            f"record {position + 1}: {_text(array[position])} does not fit into {where} ({error})"
        ) from None


def _text(value: Any) -> str:
    try:
        return str(value)
    except (OverflowError, ValueError):  # Python has no such day or time
        return f"number {value.value} of type {value.type}"


def _first_failure(array: Any, convert: Callable[[Any], Any]) -> int:
    """The first position at which `convert` fails, known that it does for the whole."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        part = pc.take(array, pa.array(range(low, middle)))
        try:
            convert(part)
            low = middle
        except _ERRORS:
            high = middle
    return low


def _converted(array: Any, hive_type: str) -> Any:
    target = arrow_type(hive_type)
    inner = element_types(hive_type)
    if pa.types.is_struct(target):
        given, places = array.flatten(), _places(array.type, target)
        fields = [_converted(given[place], kind) for place, kind in zip(places or (), inner, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=nulls(array))
    if pa.types.is_map(target):
        keys, items = _converted(array.keys, inner[0]), _converted(array.items, inner[1])
        if keys.null_count:
            raise pa.ArrowInvalid("a key of a map is null")
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=nulls(array))
    if pa.types.is_list(target):
        values = _converted(array.values, inner[0])
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=nulls(array))
    cast = _cast(array, target)
    if pa.types.is_date(target) or pa.types.is_timestamp(target):
        _check_years(cast)
    if (limit := text_length(hive_type)) is not None:
        return _limited(cast, *limit)
    return cast


def nulls(array: Any) -> Any:
    """Which values are null, None if none is: as arrays are made of parts."""
    return pc.is_null(array) if array.null_count else None


def _cast(array: Any, target: Any) -> Any:
    if array.type == target:
        return array
    if pa.types.is_decimal(target) and pa.types.is_integer(array.type):
        # Wide enough for all integers, whatever the target has room for; the second cast looks at the values.
        array = array.cast(pa.decimal256(20 + target.scale, target.scale))
    return array.cast(target, safe=True)


def _check_years(times: Any) -> None:
    """Raise ArrowInvalid for days and times that Python has no value for, by which rows are placed."""
    ends = pc.min_max(times.cast(pa.int64() if pa.types.is_timestamp(times.type) else pa.int32())).as_py()
    first, last = (_FIRST_US, _LAST_US) if pa.types.is_timestamp(times.type) else (_FIRST_DAY, _LAST_DAY)
    if ends["min"] is not None and not first <= ends["min"] <= ends["max"] <= last:
        raise pa.ArrowInvalid("its year is not one of 1 to 9999")


def _limited(texts: Any, kind: str, length: int) -> Any:
    """Texts of at most `length` characters, blanks at the end aside; char ones filled up with blanks."""
    longest = pc.max(pc.utf8_length(pc.utf8_rtrim(texts, characters=" "))).as_py()
    if longest is not None and longest > length:
        raise pa.ArrowInvalid(f"a text has {longest} characters")
    if kind == "char":
        return pc.utf8_rpad(pc.utf8_rtrim(texts, characters=" "), width=length, padding=" ")
    return pc.utf8_slice_codeunits(texts, start=0, stop=length)


def _is_castable(source: Any, target: Any) -> bool:
    """Whether values of the one type can be stored as the other, by what they are; each value is looked at later."""
    types = pa.types
    if types.is_null(source) or source == target:
        return True
    if types.is_struct(target):
        if not types.is_struct(source) or (places := _places(source, target)) is None:
            return False
        given = list(source)
        return all(_is_castable(given[at].type, want.type) for at, want in zip(places, target, strict=True))
    if types.is_map(target):
        return (
            types.is_map(source)
            and _is_castable(source.key_type, target.key_type)
            and _is_castable(source.item_type, target.item_type)
        )
    if types.is_list(target):
        return types.is_list(source) and _is_castable(source.value_type, target.value_type)
    if types.is_timestamp(target) or types.is_timestamp(source):
        # A wall clock and an instant are two things: only the user knows by which zone one becomes the other.
        if types.is_timestamp(source) and types.is_timestamp(target):
            return (source.tz is None) == (target.tz is None)
        return _is_text(source) or _is_text(target) or (types.is_date(source) and target.tz is None)
    if _is_text(source) or types.is_binary(target):
        return _is_text(source) or types.is_binary(source) or types.is_large_binary(source)
    if _is_text(target):
        return _is_number(source) or types.is_boolean(source) or types.is_date(source)
    if _is_number(target):
        return _is_number(source)
    return bool(types.is_date(source) and types.is_date(target))


def _places(source: Any, target: Any) -> list[int] | None:
    """For each field of a struct the place of the one of its name, in any case; None unless they have the same."""
    names, wanted = [field.name.lower() for field in source], [field.name for field in target]
    if len(names) != len(wanted) or {*names} != {*wanted}:
        return None
    return [names.index(name) for name in wanted]


def _is_text(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_number(type_: Any) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
