"""ORC files that become one: the same rows, stripes and statistics, read by pyarrow."""

import contextlib
import datetime as dt
import io
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from hive_acid.errors import FormatError
from hive_acid.filesystem.footers import uncompressed
from hive_acid.format.orc.file import acid_types, orc_file
from hive_acid.format.orc.join import joined_statistics, joined_tail, orc_part
from hive_acid.format.orc.protobuf import bytes_field, number_field, unzigzag, varint, zigzag
from hive_acid.format.orc.statistics import column_statistics
from hive_acid.format.orc.tail import BLOCK_BYTES, MAGIC, read_tail

COMPRESSIONS = ("uncompressed", "zlib", "snappy", "zstd", "lz4")
TYPES = {
    "i": pa.int64(),
    "d": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "dec": pa.decimal128(20, 2),
    "ts": pa.timestamp("ns"),
    "bin": pa.binary(),
    "list": pa.list_(pa.int32()),
    "row": pa.struct({"x": pa.int32(), "y": pa.string()}),
}


def values(rows: Any, seed: Any) -> Any:
    chance = random.Random(seed)
    number = lambda: chance.randint(-(10**9), 10**9)  # noqa: E731
    makers = {
        "i": number,
        "d": lambda: chance.uniform(-5, 5),
        "s": lambda: "é" * chance.randint(0, 3) + str(number()),
        "b": lambda: chance.random() < 0.5,
        "day": lambda: dt.date(1970, 1, 1) + dt.timedelta(days=chance.randint(-20000, 20000)),
        "dec": lambda: Decimal(number()) / 100,
        "ts": lambda: 1_500_000_000_000_000_000 + number() * 1_000_003,
        "bin": lambda: bytes(chance.randrange(256) for _ in range(chance.randint(0, 5))),
        "list": lambda: [chance.randint(0, 9)] * chance.randint(0, 4),
        "row": lambda: {"x": chance.randint(0, 99), "y": None if chance.random() < 0.3 else str(number())},
    }
    columns = {name: [None if chance.random() < 0.1 else make() for _ in range(rows)] for name, make in makers.items()}
    return pa.table({name: pa.array(column, TYPES[name]) for name, column in columns.items()})


def written(table: Any, compression: Any = "zlib", **options: Any) -> Any:
    out = io.BytesIO()
    orc.write_table(table, out, compression=compression, **options)
    return out.getvalue()


def joined(contents: Any) -> Any:
    parts = [orc_part(content, uncompressed) for content in contents]
    bodies = [content[part.begin : part.end] for content, part in zip(contents, parts, strict=True)]
    return MAGIC + b"".join(bodies) + joined_tail(parts)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_rows_of_all_in_order(compression: Any) -> None:
    tables = [values(rows, seed) for seed, rows in enumerate((3000, 1, 5000, 0, 700))]
    made = joined([written(table, compression, stripe_size=1 << 16) for table in tables])
    whole = pa.concat_tables(tables)
    found = orc.ORCFile(io.BytesIO(made))
    assert found.read().equals(whole)
    assert found.nrows == whole.num_rows
    stripes = [found.read_stripe(number) for number in range(found.nstripes)]
    assert found.nstripes > 3
    assert pa.Table.from_batches(stripes).equals(whole)


def test_a_joined_file_is_joined_again() -> None:
    tables = [values(200, seed) for seed in range(4)]
    first, second = (joined([written(one) for one in two]) for two in (tables[:2], tables[2:]))
    assert orc.ORCFile(io.BytesIO(joined([first, second]))).read().equals(pa.concat_tables(tables))


def test_statistics_are_those_of_all_rows_together() -> None:
    tables = [values(rows, seed) for seed, rows in enumerate((300, 0, 500))]
    made = read_tail(joined([written(table) for table in tables]))
    whole = read_tail(written(pa.concat_tables(tables)))
    assert made.rows == whole.rows == 800
    for column in range(len(whole.types)):
        assert made.statistics(column) == whole.statistics(column), whole.types[column]
    assert made.statistics(1).minimum is not None
    first = read_tail(written(tables[0]))
    assert made.stripe_statistics(0, 1) == first.stripe_statistics(0, 1)
    assert [stripe.rows for stripe in made.stripes] == [300, 500]


def test_statistics_of_stripes_stay_with_their_stripes() -> None:
    """With a stripe more or less in them, those of one stripe would be taken for those of another."""
    types = acid_types([("a", "int")])

    def file(stripes: Any, told: Any) -> Any:
        messages = [number_field(1, 3) + number_field(3, 9) + number_field(5, 1) for _ in range(stripes)]
        metadata = b"".join(bytes_field(1, b"") for _ in range(told))
        return orc_file(
            types, [], [b""] * len(types), rows=stripes, body=bytes(9), stripes=messages, metadata=metadata,
            compression="none", block=BLOCK_BYTES,
        )  # fmt: skip

    with pytest.raises(FormatError, match="statistics of 2 of its 1 stripes"):
        orc_part(file(1, 2))
    silent, telling, empty = orc_part(file(1, 0)), orc_part(file(1, 1)), orc_part(file(0, 0))
    assert silent.kind != telling.kind == empty.kind
    with pytest.raises(FormatError, match="not joined"):
        joined_tail([telling, silent])


def test_a_nan_in_one_file_takes_the_bounds_away() -> None:
    tables = [pa.table({"d": pa.array([number])}) for number in (1.0, float("nan"), 2.0)]
    found = read_tail(joined([written(table) for table in tables])).statistics(1)
    assert (found.values, found.minimum, found.maximum) == (3, None, None)


def test_what_one_file_does_not_say_is_not_said() -> None:
    bounds = bytes_field(2, number_field(1, unzigzag(-3)) + number_field(2, unzigzag(9)))
    known, silent = number_field(1, 5) + bounds + number_field(10, 0), number_field(1, 5)
    assert column_statistics("bigint", joined_statistics([known, known])).minimum == -3
    mixed = column_statistics("bigint", joined_statistics([known, silent]))
    assert (mixed.values, mixed.has_null, mixed.minimum, mixed.maximum) == (10, True, None, None)
    empty = number_field(1, 0) + number_field(10, 1)
    with_nulls = column_statistics("bigint", joined_statistics([known, empty]))
    assert (with_nulls.values, with_nulls.has_null, with_nulls.minimum, with_nulls.maximum) == (5, True, -3, 9)


def test_long_texts_have_bounds_that_were_rounded() -> None:
    exact = bytes_field(4, bytes_field(1, b"b") + bytes_field(2, b"d"))
    rounded = bytes_field(4, bytes_field(4, b"a") + bytes_field(5, b"c"))
    of = [number_field(1, 1) + one for one in (exact, rounded)]
    found = column_statistics("string", joined_statistics(of))
    assert (found.minimum, found.maximum) == ("a", "d")


def test_a_sum_that_is_too_large_is_left_out() -> None:
    most = unzigzag((1 << 63) - 1)
    of = number_field(1, 1) + bytes_field(2, number_field(1, most) + number_field(2, most) + number_field(3, most))
    assert joined_statistics([of, of]).count(varint(3 << 3) + varint(most)) == 0
    assert column_statistics("bigint", joined_statistics([of, of])).maximum == (1 << 63) - 1


@pytest.mark.parametrize(
    "other",
    [
        written(pa.table({"x": pa.array([1], pa.int32())})),
        written(pa.table({"y": pa.array([1], pa.int64())})),
        written(pa.table({"x": pa.array([1], pa.int64())}), "snappy"),
        written(pa.table({"x": pa.array([1], pa.int64())}), row_index_stride=20_000),
    ],
)
def test_files_that_differ_are_not_joined(other: Any) -> None:
    first = written(pa.table({"x": pa.array([1], pa.int64())}))
    with pytest.raises(FormatError, match="not joined"):
        joined([first, other])


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_numbers(value: Any) -> None:
    assert zigzag(unzigzag(value)) == value


@settings(max_examples=50)
@given(st.data())
def test_broken_bytes_are_refused(data: Any) -> None:
    content = bytearray(written(values(50, 1), "uncompressed"))
    place = data.draw(st.integers(max(0, len(content) - 600), len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(FormatError):
        joined([bytes(content), bytes(content)])
