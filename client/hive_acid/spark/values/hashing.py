"""Hive's hash of bucket columns, version 2, in Spark's SQL: in which bucket of a CLUSTERED table a row lies.

It is Murmur3, which Spark has too (``hash``), with two differences: Hive starts from another seed and takes bytes in
the other order, and it ends texts whose length is no multiple of four in the usual way, which Spark does not. So
Spark's own function does the long part, started from a number whose hash is Hive's seed; for texts its last step is
undone and made anew with the last bytes (acid-format.md §3.7). Everything is part of the query, no Python runs. It is
text, as Spark Connect's messages have no room for what is nested so deep.
The scalar form is in `hive_acid.format.hashing`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql.types import DecimalType

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.format.hashing import SEED, type_parts
from hive_acid.format.names import MAX_BUCKET
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import check_distinct, spark_type

_HASHED_TO_SEED = 1867871456
"""The int whose hash in Spark is `SEED`; behind it ``hash`` goes on from there."""

_C1, _C2 = 0xCC9E2D51, 0x1B873593
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35
_INVERSE_OF_F1, _INVERSE_OF_F2 = pow(_F1, -1, 1 << 32), pow(_F2, -1, 1 << 32)

_NESTED = 8
"""Of more hashes, each within the next, Spark's compiler and then its parser run out of stack."""


class Clustering(NamedTuple):
    """What a table's definition says of its buckets; -1 buckets for a table without."""

    columns: tuple[str, ...]
    buckets: int
    parameters: Mapping[str, str]


def clustering(by: Sequence[str], buckets: int | None, columns: Sequence[catalog.Column]) -> Clustering:
    """The buckets of a new table with `columns`. Raises ColumnError for names and numbers that make no sense."""
    if not by and buckets is None:
        return Clustering((), -1, {})
    names = tuple(name.lower() for name in by)
    check_distinct(names)
    types = {column.name: column.type for column in columns}
    if unknown := [name for name in names if name not in types]:
        raise ColumnError(f"clustered_by names {', '.join(unknown)}, which the columns of the files do not have")
    if not names or buckets is None or not 1 <= buckets <= MAX_BUCKET + 1:
        raise ColumnError(f"a clustered table has columns to be clustered by and 1 to {MAX_BUCKET + 1} buckets")
    for name in names:
        _hash(types[name], name)
    return Clustering(names, buckets, {"bucketing_version": "2"})


def check_version(table: Table, verb: str) -> None:
    """Raise UnsupportedTableError if `verb` would place rows by the older hash, which hive-acid does not have."""
    if table.bucket_columns and table.bucketing_version != 2:
        raise UnsupportedTableError(
            f"{verb} into {table.full_name} is not possible: it is CLUSTERED BY ({', '.join(table.bucket_columns)}) "
            "with bucketing_version 1, the hash of Hive 2. Its rows can be read and deleted; to write, copy them into "
            "a table with bucketing_version=2"
        )


def bucket_of(table: Table, columns: Mapping[str, str]) -> str:
    """The bucket of a row of a CLUSTERED table as SQL, an int from 0; `columns` are its values by name, as SQL.

    Raises UnsupportedTableError for bucketing version 1 and for bucket columns that hold maps.
    """
    check_version(table, "INSERT")
    types = {column.name: column.type for column in table.columns}
    try:
        hashes = [_hash(types[name], columns[name]) for name in table.bucket_columns]
    except ColumnError as error:
        raise UnsupportedTableError(f"{table.full_name} cannot be written to: {error}") from error
    return f"pmod({_combined(hashes)} & 2147483647, {table.buckets})"


def _combined(hashes: Sequence[str]) -> str:
    """As Java combines the hashes of a list, wrapping round like its ints."""
    if len(hashes) > _NESTED:
        every = ", ".join(hashes)
        total, one = _variable(f"total {every}"), _variable(f"one {every}")
        return f"aggregate(array({every}), 0, ({total}, {one}) -> {_combined([total, one])})"
    return reduce(lambda total, one: _int(f"bigint({total}) * 31 + {one}"), hashes)


def _hash(kind: str, value: str) -> str:
    """The hash of a value of Hive type `kind`, an int; 0 for null."""
    name, inner = type_parts(kind)
    if name == "array":
        total, element = _variable(f"total {value}"), _variable(f"element {value}")
        hashed = f"aggregate({value}, 0, ({total}, {element}) -> {_combined([total, _hash(inner[0], element)])})"
    elif name == "struct":
        fields = [field.partition(":") for field in inner]
        combined = _combined([_hash(of, f"{value}.{quoted(field.strip())}") for field, _, of in fields])
        hashed = f"if({value} IS NULL, NULL, {combined})"
    elif name in _HASHES:
        hashed = _HASHES[name](value)
    elif name in ("decimal", "numeric", "dec"):
        decimal = spark_type(kind)
        assert isinstance(decimal, DecimalType)
        hashed = _of_bytes(_decimal_bytes(f"cast({value} AS {decimal.simpleString()})", decimal.scale))
    else:
        raise ColumnError(f"Hive's hash of a bucket column is not known for type '{kind}'")
    return f"coalesce({hashed}, 0)"


# --- Murmur3 -----------------------------------------------------------------------------------


def _of_int(value: str) -> str:
    return f"if({value} IS NULL, NULL, hash({_HASHED_TO_SEED}, {_swapped_int(value)}))"


def _of_long(value: str) -> str:
    swapped = value
    for by, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF)):
        swapped = f"(shiftleft({swapped} & {mask}L, {by}) | shiftrightunsigned({swapped}, {by}) & {mask}L)"
    swapped = f"shiftleft({swapped}, 32) | shiftrightunsigned({swapped}, 32)"
    return f"if({value} IS NULL, NULL, hash({_HASHED_TO_SEED}, {swapped}))"


def _of_bytes(data: str) -> str:
    """The hash of a binary: Spark's of the whole words, its end undone, then the last bytes and the end."""

    def hashed(x: str) -> str:
        length = f"octet_length({x})"
        whole = f"({length} & {~3})"
        ended = f"hash({_HASHED_TO_SEED}, substring({x}, 1, {whole}))"
        tail = f"decode(substring({x}, {whole} + 1, 3), 'ISO-8859-1')"
        word = " ^ ".join(f"shiftleft({_signed_byte(tail, place)}, {8 * place})" for place in range(3))
        return _end(f"{_before_end(ended)} ^ {whole} ^ {_mixed(word)} ^ {length}")

    return _with(data, hashed)


def _signed_byte(tail: str, place: int) -> str:
    """A byte of a text in Latin 1, with its sign, as Hive takes it; 0 where there is none."""
    return f"shiftright(shiftleft(ascii(substring({tail}, {place + 1}, 1)), 24), 24)"


def _of_short(value: str) -> str:
    """Two bytes, the higher one first, each with its sign."""

    def hashed(x: str) -> str:
        word = f"shiftright({x}, 8) ^ shiftleft(shiftright(shiftleft({x}, 24), 24), 8)"
        return _end(f"{SEED ^ 2} ^ {_mixed(word)}")

    return _with(f"int({value})", hashed)


def _mixed(word: str) -> str:
    turned = _with(_times(word, _C1), lambda x: f"shiftleft({x}, 15) | shiftrightunsigned({x}, 17)")
    return _times(turned, _C2)


def _end(state: str) -> str:
    return _shifted(_times(_shifted(_times(_shifted(state, 16), _F1), 13), _F2), 16)


def _before_end(ended: str) -> str:
    """What `_end` had been given."""
    state = _times(_shifted(ended, 16), _INVERSE_OF_F2)
    return _shifted(_times(_shifted(state, 13, 26), _INVERSE_OF_F1), 16)


def _shifted(state: str, *by: int) -> str:
    return _with(state, lambda x: " ^ ".join([x, *(f"shiftrightunsigned({x}, {bits})" for bits in by)]))


def _with(value: str, use: Callable[[str], str]) -> str:
    """``use(value)``, computed once however often it is used: else each step would double the expression."""
    variable = _variable(value)
    return f"transform(array({value}), {variable} -> {use(variable)})[0]"


def _variable(value: str) -> str:
    """The name of what stands for `value`: so a variable that hides another one is the same."""
    return f"x_{hashlib.blake2s(value.encode(), digest_size=8).hexdigest()}"


def _times(word: str, factor: int) -> str:
    """The product's lower 32 bits; with signed factors it has room in a bigint, so ANSI mode does not mind."""
    return _int(f"bigint({word}) * {factor - (1 << 32) if factor >> 31 else factor}")


def _int(value: str) -> str:
    """The lower 32 bits of a bigint."""
    return f"int(shiftright(shiftleft({value}, 32), 32))"


def _swapped_int(value: str) -> str:
    """The four bytes in the other order."""
    high = f"shiftleft({value}, 24) | shiftleft({value} & 65280, 8)"
    return f"({high} | shiftrightunsigned({value}, 8) & 65280 | shiftrightunsigned({value}, 24))"


# --- values as bytes ---------------------------------------------------------------------------


def _of_float(value: str) -> str:
    """The bits of a float, taken for a number, as a float again: so Hive does."""
    # Of two casts in a row, to float and to double, Spark's optimiser makes one, which does not round.
    return _with(_with(f"float({_float_bits(value)})", _float_bits), _of_int)


def _of_double(value: str) -> str:
    return _with(_double_bits(f"double({_double_bits(value)})"), _of_long)


def _float_bits(value: str) -> str:
    return f"int({_bits(f'double({value})', 127, 23)})"


def _double_bits(value: str) -> str:
    return _bits(value, 1023, 52)


def _bits(value: str, bias: int, width: int) -> str:
    """The bits of a double, or of a float in a double, by arithmetic with powers of two, which is exact."""
    return _with(value, lambda x: _bits_of(x, bias, width))


def _bits_of(value: str, bias: int, width: int) -> str:
    size = f"abs({value})"
    # The logarithm may miss by one next to a power of two.
    close = _with(
        f"int(floor(log2({size})))",
        lambda x: (
            f"CASE WHEN {size} < pow(2D, {x}) THEN {x} - 1 WHEN {size} >= pow(2D, {x} + 1) THEN {x} + 1 ELSE {x} END"
        ),
    )
    # 2^(width - exponent) in two factors, of which each is in range.
    finite = _with(
        f"greatest({close}, {1 - bias})",
        lambda x: (
            f"bigint({size} * pow(2D, floor(({width} - {x}) / 2)) * pow(2D, ceil(({width} - {x}) / 2))) "
            f"+ shiftleft(bigint({x} + {bias - 1}), {width})"
        ),
    )
    infinite = (2 * bias + 1) << width
    magnitude = (
        f"CASE WHEN {size} = 0 THEN 0L WHEN isnan({value}) THEN {infinite + (1 << width - 1)}L "
        f"WHEN {size} = double('infinity') THEN {infinite}L ELSE {finite} END"
    )
    sign = -(1 << 63) if width == 52 else -(1 << 31)
    is_negative = f"{value} < 0 OR string({value}) = '-0.0'"
    return f"if({value} IS NULL, NULL, {magnitude} + if({is_negative}, {sign}L, 0L))"


def _decimal_bytes(value: str, scale: int) -> str:
    """The unscaled number without zeros at the end of the fraction, in as few bytes as hold it with its sign."""
    text = f"replace(format_number({value}, {scale}), ',', '')"
    shown = f"trim(TRAILING '0' FROM {text})" if scale else text
    return _with(f"cast(replace({shown}, '.', '') AS decimal(38,0))", _bytes_of_unscaled)


def _bytes_of_unscaled(unscaled: str) -> str:
    # Two words of 64 bits; the lower one is never negative.
    word = f"{1 << 64}BD"
    rest = f"{unscaled} % {word}"
    higher = f"bigint(({unscaled} - {rest}) / {word}) - if({rest} < 0, 1, 0)"
    lower = f"pmod({unscaled}, {word})"
    lower_bits = f"bigint(if({lower} >= {1 << 63}BD, {lower} - {word}, {lower}))"
    digits = f"concat({_hex(higher, 8)}, {_hex(lower_bits, 8)})"
    return _with(digits, lambda x: _fewest_bytes(x, f"if({unscaled} < 0, 'F', '0')"))


def _fewest_bytes(digits: str, sign: str) -> str:
    """The bytes of 32 hexadecimal digits without those at the front that only repeat the sign."""
    same = f"(octet_length({digits}) - octet_length(trim(LEADING {sign} FROM {digits})))"
    # The first digit that is kept has to show the sign, in its highest bit.
    first = f"int(conv(substring({digits}, {same} + 1, 1), 16, 10))"
    shows = f"CASE WHEN {same} = 32 THEN true WHEN {sign} = 'F' THEN {first} >= 8 ELSE {first} < 8 END"
    dropped = f"least(int(floor(if({shows}, {same}, {same} - 1) / 2)), 15)"
    return f"substring(unhex({digits}), {dropped} + 1, 16)"


def _timestamp_bytes(value: str) -> str:
    """Hive's serialised timestamp: 31 bits of seconds, a flag for more, nanoseconds reversed, the other seconds."""
    return _with(f"from_utc_timestamp({value}, current_timezone())", _bytes_of_wall_clock)


def _bytes_of_wall_clock(wall: str) -> str:
    seconds = f"unix_seconds({wall})"
    micros = f"(unix_micros({wall}) - {seconds} * 1000000)"
    fits = f"({seconds} >= 0 AND {seconds} < {1 << 31}L)"
    nanos = f"bigint(reverse(rpad(lpad(string({micros}), 6, '0'), 9, '0')))"
    flag = f"if({fits} AND {micros} = 0, 0L, {1 << 31}L)"
    head = _hex(f"{seconds} & 2147483647L | {flag}", 4)
    more = f"concat({_vint(f'-1 - {nanos}')}, {_vint(f'shiftright({seconds}, 31)')})"
    return f"unhex(concat({head}, CASE WHEN NOT {fits} THEN {more} WHEN {micros} = 0 THEN '' ELSE {_vint(nanos)} END))"


def _vint(value: str) -> str:
    """Hexadecimal digits of a number, up to 8 digits of size, as Hadoop writes it in as few bytes as possible."""
    return _with(value, _digits_of_vint)


def _digits_of_vint(value: str) -> str:
    positive = f"if({value} < 0, -1 - {value}, {value})"
    limits = " ".join(f"WHEN {positive} < {1 << 8 * size} THEN {size}" for size in (1, 2, 3))
    size = f"CASE {limits} ELSE 4 END"
    marker = f"bigint(if({value} < 0, -120, -112) - {size}) & 255L"
    body = f"lpad(hex({positive}), ({size}) * 2, '0')"
    alone = _hex(f"{value} & 255L", 1)
    return f"if({value} >= -112 AND {value} <= 127, {alone}, concat({_hex(marker, 1)}, {body}))"


def _hex(value: str, size: int) -> str:
    return f"lpad(hex({value}), {size * 2}, '0')"


_HASHES: Mapping[str, Callable[[str], str]] = {
    "boolean": lambda value: f"int({value})",
    "tinyint": lambda value: f"int({value})",
    "smallint": _of_short,
    "int": _of_int,
    "integer": _of_int,
    "bigint": _of_long,
    "float": _of_float,
    "double": _of_double,
    "double precision": _of_double,
    "string": lambda value: _of_bytes(f"binary({value})"),
    "varchar": lambda value: _of_bytes(f"binary({value})"),
    "char": lambda value: _of_bytes(f"binary(rtrim({value}))"),
    "binary": _of_bytes,
    "date": lambda value: _of_int(f"unix_date({value})"),
    "timestamp": lambda value: _of_bytes(_timestamp_bytes(value)),
}
