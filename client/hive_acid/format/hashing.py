"""Hive's hash of bucket columns, version 2: which bucket of a CLUSTERED table a row belongs to (acid-format.md §3.7).

And Spark's own, `hash`, of the few types by which rows are looked up.

The scalar form, for writers without Spark and as the measure of the column expression in
`hive_acid.spark.values.hashing`. A column's hash is Murmur3 of 32 bits over bytes that depend on its type; hashes of
several columns are put together as Java does with those of a list.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hive_acid.errors import FormatError

SEED = 104729
SPARK_SEED = 42
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_MASK = 0xFFFFFFFF
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_SECONDS_FIT = range(1 << 31)


def bucket_number(types: Sequence[str], values: Sequence[Any], buckets: int) -> int:
    """The bucket, 0 to `buckets` - 1, of a row whose bucket columns have Hive types `types` and these `values`.

    Values are those of Python: datetime without zone for a timestamp, list, dict (struct). None is null. Raises
    FormatError for types that cannot be hashed (maps, unions, intervals).
    """
    return (combined([hash_of(kind, value) for kind, value in zip(types, values, strict=True)]) & 0x7FFFFFFF) % buckets


def combined(hashes: Sequence[int]) -> int:
    """One hash of several, signed."""
    total = 0
    for one in hashes:
        total = total * 31 + one & _MASK
    return _signed(total)


def hash_of(kind: str, value: Any) -> int:
    """The hash of one value of Hive type `kind`, signed; 0 for null."""
    name, inner = type_parts(kind)
    if value is None:
        return 0
    if name == "array":
        return combined([hash_of(inner[0], element) for element in value])
    if name == "struct":
        fields = [field.partition(":") for field in inner]
        return combined([hash_of(of, value[field.strip()]) for field, _, of in fields])
    if name in ("boolean", "tinyint"):
        return int(value)
    if name not in _BYTES:
        raise FormatError(f"Hive's hash of a bucket column is not known for type '{kind}'")
    return murmur3(_BYTES[name](value))


def type_parts(kind: str) -> tuple[str, list[str]]:
    """The name of a Hive type, and what stands between its angle brackets, cut at the outermost commas."""
    name, _, rest = kind.strip().lower().partition("<")
    parts, depth, start = [], 0, 0
    inner = rest.rstrip()[:-1]
    for at, char in enumerate(inner):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(inner[start:at])
            start = at + 1
    return name.partition("(")[0].strip(), [*parts, inner[start:]] if inner else []


def murmur3(data: bytes) -> int:
    """Murmur3 of 32 bits with Hive's seed, signed."""
    state = SEED
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        state = _joined(state, word)
    if tail := data[whole:]:
        state ^= _mixed(_tail_word(tail))
    return _signed(_finished(state, len(data)))


def spark_hash(values: Iterable[int | str | None]) -> int:
    """What Spark's ``hash`` is of strings and ints, signed."""
    state = SPARK_SEED
    for value in values:
        if isinstance(value, str):
            data = value.encode()
            whole = len(data) & ~3
            for (word,) in struct.iter_unpack("<I", data[:whole]):
                state = _joined(state, word)
            # Spark takes each byte that is left for a word, with its sign.
            for byte in data[whole:]:
                state = _joined(state, (byte - 256 if byte > 127 else byte) & _MASK)
            state = _finished(state, len(data))
        elif value is not None:
            state = _finished(_joined(state, value & _MASK), 4)
    return _signed(state)


def _finished(state: int, length: int) -> int:
    state ^= length
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _joined(state: int, word: int) -> int:
    return (_rotated(state ^ _mixed(word), 13) * 5 + 0xE6546B64) & _MASK


def _tail_word(tail: bytes) -> int:
    """The last one to three bytes as a word; Hive extends each one's sign."""
    word = 0
    for place, byte in enumerate(tail):
        word ^= (byte - 256 if byte > 127 else byte) << 8 * place
    return word & _MASK


def _mixed(word: int) -> int:
    return _rotated(word * _C1 & _MASK, 15) * _C2 & _MASK


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _MASK


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


# --- values as bytes ---------------------------------------------------------------------------


def _float_bytes(value: float) -> bytes:
    """The bits of a float, taken for a number, as a float again: so Hive does."""
    (bits,) = struct.unpack(">i", struct.pack(">f", _one_nan(value)))
    return struct.pack(">f", float(bits))


def _double_bytes(value: float) -> bytes:
    (bits,) = struct.unpack(">q", struct.pack(">d", _one_nan(value)))
    return struct.pack(">d", float(bits))


def _one_nan(value: float) -> float:
    """`value`; of all bits that are no number the same ones."""
    return float("nan") if value != value else value


def _decimal_bytes(value: Decimal) -> bytes:
    """The unscaled number without zeros at the end of the fraction, in as few bytes as hold it with its sign."""
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    assert isinstance(exponent, int)
    while exponent < 0 and unscaled % 10 == 0:
        unscaled, exponent = unscaled // 10, exponent + 1
    unscaled *= int(10 ** max(exponent, 0)) * (-1 if sign else 1)
    positive = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(positive.bit_length() // 8 + 1, "big", signed=True)


def _timestamp_bytes(value: datetime) -> bytes:
    """Hive's serialised timestamp: 31 bits of seconds, a flag for more, nanoseconds reversed digit by digit, the rest.

    `value` is a wall clock, which counts as if it were in UTC.
    """
    seconds, micros = divmod((value - _EPOCH) // timedelta(microseconds=1), 1_000_000)
    fits = seconds in _SECONDS_FIT
    if fits and not micros:
        return struct.pack(">I", seconds)
    reversed_nanos = int(f"{micros:06d}000"[::-1])
    data = struct.pack(">I", seconds & 0x7FFFFFFF | 1 << 31)
    if fits:
        return data + _vint(reversed_nanos)
    return data + _vint(-1 - reversed_nanos) + _vint(seconds >> 31)


def _vint(value: int) -> bytes:
    """A number as Hadoop writes it in as few bytes as possible."""
    if -112 <= value <= 127:
        return struct.pack(">b", value)
    marker, positive = (-112, value) if value >= 0 else (-120, ~value)
    size = (positive.bit_length() + 7) // 8
    return struct.pack(">b", marker - size) + positive.to_bytes(size, "big")


_BYTES: Mapping[str, Callable[[Any], bytes]] = {
    "smallint": lambda value: struct.pack(">h", value),
    "int": lambda value: struct.pack(">i", value),
    "integer": lambda value: struct.pack(">i", value),
    "bigint": lambda value: struct.pack(">q", value),
    "float": _float_bytes,
    "double": _double_bytes,
    "double precision": _double_bytes,
    "string": lambda value: str(value).encode(),
    "varchar": lambda value: str(value).encode(),
    "char": lambda value: str(value).rstrip(" ").encode(),
    "binary": bytes,
    "date": lambda value: struct.pack(">i", (value - _EPOCH_DAY).days),
    "decimal": _decimal_bytes,
    "numeric": _decimal_bytes,
    "timestamp": _timestamp_bytes,
}
