"""Hive's hash of bucket columns, version 2, as a Spark column: in which bucket of a CLUSTERED table a row lies.

It is Murmur3, which Spark has too (``hash``), with two differences: Hive starts from another seed and takes bytes in
the other order, and it ends texts whose length is no multiple of four in the usual way, which Spark does not. So
Spark's own function does the long part, started from a number whose hash is Hive's seed; for texts its last step is
undone and made anew with the last bytes (acid-format.md §3.7). Everything is compiled with the query, no Python runs.
The scalar form is in `hive_acid.format.hashing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from hive_acid import catalog
from hive_acid.catalog import Table
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.format.hashing import SEED, type_parts
from hive_acid.format.names import MAX_BUCKET
from hive_acid.spark.types import check_distinct, spark_type

_HASHED_TO_SEED = 1867871456
"""The int whose hash in Spark is `SEED`; behind it ``hash`` goes on from there."""

_C1, _C2 = 0xCC9E2D51, 0x1B873593
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35
_INVERSE_OF_F1, _INVERSE_OF_F2 = pow(_F1, -1, 1 << 32), pow(_F2, -1, 1 << 32)


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
        _hash(types[name], F.lit(None).cast(spark_type(types[name])))
    return Clustering(names, buckets, {"bucketing_version": "2"})


def check_version(table: Table, verb: str) -> None:
    """Raise UnsupportedTableError if `verb` would place rows by the older hash, which hive-acid does not have."""
    if table.bucket_columns and table.bucketing_version != 2:
        raise UnsupportedTableError(
            f"{verb} into {table.full_name} is not possible: it is CLUSTERED BY ({', '.join(table.bucket_columns)}) "
            "with bucketing_version 1, the hash of Hive 2. Its rows can be read and deleted; to write, copy them into "
            "a table with bucketing_version=2"
        )


def bucket_of(table: Table, columns: Mapping[str, Column]) -> Column:
    """The bucket of a row of a CLUSTERED table, an int from 0; `columns` are its values by name, of their types.

    Raises UnsupportedTableError for bucketing version 1 and for bucket columns that hold maps.
    """
    check_version(table, "INSERT")
    types = {column.name: column.type for column in table.columns}
    try:
        hashes = [_hash(types[name], columns[name]) for name in table.bucket_columns]
    except ColumnError as error:
        raise UnsupportedTableError(f"{table.full_name} cannot be written to: {error}") from error
    return F.pmod(_combined(hashes).bitwiseAND(0x7FFFFFFF), F.lit(table.buckets))


def _combined(hashes: list[Column]) -> Column:
    """As Java combines the hashes of a list, wrapping round like its ints."""
    return reduce(lambda total, one: _int(total.cast("bigint") * 31 + one), hashes)


def _hash(kind: str, value: Column) -> Column:
    """The hash of a value of Hive type `kind`, an int; 0 for null."""
    name, inner = type_parts(kind)
    if name == "array":
        hashed = F.aggregate(
            value,
            F.lit(0),
            lambda total, element: _int(total.cast("bigint") * 31 + _hash(inner[0], element)),
        )
    elif name == "struct":
        fields = [field.partition(":") for field in inner]
        hashed = F.when(
            value.isNotNull(), _combined([_hash(of, value.getField(field.strip())) for field, _, of in fields])
        )
    elif name in _HASHES:
        hashed = _HASHES[name](value)
    elif name in ("decimal", "numeric", "dec"):
        decimal = spark_type(kind)
        assert isinstance(decimal, DecimalType)
        hashed = _of_bytes(_decimal_bytes(value.cast(decimal), decimal.scale))
    else:
        raise ColumnError(f"Hive's hash of a bucket column is not known for type '{kind}'")
    return F.coalesce(hashed, F.lit(0))


# --- Murmur3 -----------------------------------------------------------------------------------


def _of_int(value: Column) -> Column:
    return F.when(value.isNotNull(), F.hash(F.lit(_HASHED_TO_SEED), _swapped_int(value)))


def _of_long(value: Column) -> Column:
    swapped = value
    for by, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF)):
        high = F.shiftleft(swapped.bitwiseAND(F.lit(mask)), by)
        swapped = high.bitwiseOR(F.shiftrightunsigned(swapped, by).bitwiseAND(F.lit(mask)))
    swapped = F.shiftleft(swapped, 32).bitwiseOR(F.shiftrightunsigned(swapped, 32))
    return F.when(value.isNotNull(), F.hash(F.lit(_HASHED_TO_SEED), swapped))


def _of_bytes(data: Column) -> Column:
    """The hash of a binary: Spark's of the whole words, its end undone, then the last bytes and the end."""
    length = F.octet_length(data)
    whole = length.bitwiseAND(~3)
    ended = F.hash(F.lit(_HASHED_TO_SEED), F.substring(data, F.lit(1), whole))
    tail = F.decode(F.substring(data, whole + 1, F.lit(3)), "ISO-8859-1")
    word = reduce(Column.bitwiseXOR, (F.shiftleft(_signed_byte(tail, place), 8 * place) for place in range(3)))
    return _end(_before_end(ended).bitwiseXOR(whole).bitwiseXOR(_mixed(word)).bitwiseXOR(length))


def _signed_byte(tail: Column, place: int) -> Column:
    """A byte of a text in Latin 1, with its sign, as Hive takes it; 0 where there is none."""
    return F.shiftright(F.shiftleft(F.ascii(F.substring(tail, place + 1, 1)), 24), 24)


def _of_short(value: Column) -> Column:
    """Two bytes, the higher one first, each with its sign."""
    value = value.cast("int")
    word = F.shiftright(value, 8).bitwiseXOR(F.shiftleft(F.shiftright(F.shiftleft(value, 24), 24), 8))
    return _end(F.lit(SEED ^ 2).bitwiseXOR(_mixed(word)))


def _mixed(word: Column) -> Column:
    turned = _with(_times(word, _C1), lambda x: F.shiftleft(x, 15).bitwiseOR(F.shiftrightunsigned(x, 17)))
    return _times(turned, _C2)


def _end(state: Column) -> Column:
    return _shifted(_times(_shifted(_times(_shifted(state, 16), _F1), 13), _F2), 16)


def _before_end(ended: Column) -> Column:
    """What `_end` had been given."""
    state = _times(_shifted(ended, 16), _INVERSE_OF_F2)
    return _shifted(_times(_shifted(state, 13, 26), _INVERSE_OF_F1), 16)


def _shifted(state: Column, *by: int) -> Column:
    return _with(state, lambda x: reduce(Column.bitwiseXOR, (F.shiftrightunsigned(x, bits) for bits in by), x))


def _with(value: Column, use: Callable[[Column], Column]) -> Column:
    """``use(value)``, computed once however often it is used: else each step would double the expression."""
    return F.transform(F.array(value), use).getItem(0)


def _times(word: Column, factor: int) -> Column:
    """The product's lower 32 bits; with signed factors it has room in a bigint, so ANSI mode does not mind."""
    return _int(word.cast("bigint") * F.lit(factor - (1 << 32) if factor >> 31 else factor))


def _int(value: Column) -> Column:
    """The lower 32 bits of a bigint."""
    return F.shiftright(F.shiftleft(value, 32), 32).cast("int")


def _swapped_int(value: Column) -> Column:
    """The four bytes in the other order."""
    high = F.shiftleft(value, 24).bitwiseOR(F.shiftleft(value.bitwiseAND(0xFF00), 8))
    low = F.shiftrightunsigned(value, 8).bitwiseAND(0xFF00).bitwiseOR(F.shiftrightunsigned(value, 24))
    return high.bitwiseOR(low)


# --- values as bytes ---------------------------------------------------------------------------


def _of_float(value: Column) -> Column:
    """The bits of a float, taken for a number, as a float again: so Hive does."""
    return _with(_float_bits(value).cast("float"), lambda bits: _of_int(_float_bits(bits)))


def _of_double(value: Column) -> Column:
    return _with(_double_bits(value).cast("double"), lambda bits: _of_long(_double_bits(bits)))


def _float_bits(value: Column) -> Column:
    return _bits(value.cast("double"), 127, 23).cast("int")


def _double_bits(value: Column) -> Column:
    return _bits(value, 1023, 52)


def _bits(value: Column, bias: int, width: int) -> Column:
    """The bits of a double, or of a float in a double, by arithmetic with powers of two, which is exact."""
    two, size, lowest = F.lit(2.0), F.abs(value), F.lit(1 - bias)
    # The logarithm may miss by one next to a power of two.
    about = F.floor(F.log2(size)).cast("int")
    close = _with(
        about, lambda x: F.when(size < F.pow(two, x), x - 1).when(size >= F.pow(two, x + 1), x + 1).otherwise(x)
    )
    # 2^(width - exponent) in two factors, of which each is in range.
    finite = _with(
        F.greatest(close, lowest),
        lambda x: (
            (size * F.pow(two, F.floor((width - x) / 2)) * F.pow(two, F.ceil((width - x) / 2))).cast("bigint")
            + F.shiftleft((x + (bias - 1)).cast("bigint"), width)
        ),
    )
    infinite = F.lit((2 * bias + 1) << width)
    magnitude = (
        F.when(size == 0, F.lit(0).cast("bigint"))
        .when(F.isnan(value), infinite + (1 << width - 1))
        .when(size == float("inf"), infinite)
        .otherwise(finite)
    )
    negative = (value < 0) | (value.cast("string") == "-0.0")
    sign = F.lit(-(1 << 63)) if width == 52 else F.lit(-(1 << 31))
    return F.when(value.isNotNull(), magnitude + F.when(negative, sign).otherwise(0))


def _decimal_bytes(value: Column, scale: int) -> Column:
    """The unscaled number without zeros at the end of the fraction, in as few bytes as hold it with its sign."""
    text = F.replace(F.format_number(value, scale), F.lit(","), F.lit(""))
    shown = F.rtrim(text, F.lit("0")) if scale else text
    unscaled = F.replace(shown, F.lit("."), F.lit("")).cast("decimal(38,0)")
    # Two words of 64 bits; the lower one is never negative.
    word = F.lit(Decimal(1 << 64))
    rest = unscaled % word
    higher = ((unscaled - rest) / word).cast("bigint") - F.when(rest < 0, 1).otherwise(0)
    lower = F.pmod(unscaled, word)
    lower_bits = F.when(lower >= F.lit(Decimal(1 << 63)), lower - word).otherwise(lower).cast("bigint")
    digits = F.concat(_hex(higher, 8), _hex(lower_bits, 8))
    return _fewest_bytes(F.unhex(digits), digits, F.when(unscaled < 0, F.lit("F")).otherwise(F.lit("0")))


def _fewest_bytes(data: Column, digits: Column, sign: Column) -> Column:
    """16 bytes without those at the front that only repeat the sign."""
    same = F.octet_length(digits) - F.octet_length(F.ltrim(digits, sign))
    # The first digit that is kept has to show the sign, in its highest bit.
    first = F.conv(F.substring(digits, same + 1, F.lit(1)), 16, 10).cast("int")
    shows = F.when(same == 32, True).when(sign == F.lit("F"), first >= 8).otherwise(first < 8)
    dropped = F.least(F.floor(F.when(shows, same).otherwise(same - 1) / 2).cast("int"), F.lit(15))
    return F.substring(data, dropped + 1, F.lit(16))


def _timestamp_bytes(value: Column) -> Column:
    """Hive's serialised timestamp: 31 bits of seconds, a flag for more, nanoseconds reversed, the other seconds."""
    wall = F.from_utc_timestamp(value, F.current_timezone())
    seconds = F.unix_seconds(wall)
    micros = F.unix_micros(wall) - seconds * 1_000_000
    fits = (seconds >= 0) & (seconds < 1 << 31)
    nanos = F.reverse(F.rpad(F.lpad(micros.cast("string"), 6, "0"), 9, "0")).cast("bigint")
    flag = F.when(fits & (micros == 0), F.lit(0)).otherwise(F.lit(1 << 31)).cast("bigint")
    head = _hex(seconds.bitwiseAND(F.lit(0x7FFFFFFF).cast("bigint")).bitwiseOR(flag), 4)
    more = F.when(fits, F.when(micros == 0, F.lit("")).otherwise(_vint(nanos))).otherwise(
        F.concat(_vint(-1 - nanos), _vint(F.shiftright(seconds, 31)))
    )
    return F.unhex(F.concat(head, more))


def _vint(value: Column) -> Column:
    """Hexadecimal digits of a number, up to 8 digits of size, as Hadoop writes it in as few bytes as possible."""
    positive = F.when(value < 0, -1 - value).otherwise(value)
    size = F.when(positive < 1 << 8, 1).when(positive < 1 << 16, 2).when(positive < 1 << 24, 3).otherwise(4)
    marker = F.when(value < 0, F.lit(-120)).otherwise(F.lit(-112)) - size
    body = F.lpad(F.hex(positive), size * 2, F.lit("0"))
    alone = (value >= -112) & (value <= 127)
    return F.when(alone, _hex(value.bitwiseAND(0xFF), 1)).otherwise(
        F.concat(_hex(marker.cast("bigint").bitwiseAND(0xFF), 1), body)
    )


def _hex(value: Column, size: int) -> Column:
    return F.lpad(F.hex(value), size * 2, "0")


_HASHES: Mapping[str, Callable[[Column], Column]] = {
    "boolean": lambda value: value.cast("int"),
    "tinyint": lambda value: value.cast("int"),
    "smallint": _of_short,
    "int": _of_int,
    "integer": _of_int,
    "bigint": _of_long,
    "float": _of_float,
    "double": _of_double,
    "double precision": _of_double,
    "string": lambda value: _of_bytes(value.cast("binary")),
    "varchar": lambda value: _of_bytes(value.cast("binary")),
    "char": lambda value: _of_bytes(F.rtrim(value).cast("binary")),
    "binary": _of_bytes,
    "date": lambda value: _of_int(F.unix_date(value)),
    "timestamp": lambda value: _of_bytes(_timestamp_bytes(value)),
}
