"""Tails of files that an ORC library wrote: types, stripes, statistics, and what happens to bytes that are none."""

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from hive_acid.errors import FormatError
from hive_acid.filesystem.footers import DataFilePath, Footers
from hive_acid.format.orc.file import empty_acid_file
from hive_acid.format.orc.protobuf import bytes_field, number_field, unzigzag, varint
from hive_acid.format.orc.statistics import UNKNOWN, ColumnStatistics, column_statistics
from hive_acid.format.orc.tail import LONGEST_POSTSCRIPT_BYTES, read_tail, tail_length

COLUMNS = {
    "i": pa.array([5, None, -7], pa.int64()),
    "d": pa.array([1.5, 2.5, -3.0], pa.float64()),
    "nan": pa.array([1.5, float("nan"), 3.0], pa.float64()),
    "s": pa.array(["b", "é", "a"]),
    "bin": pa.array([b"12", None, b"345"]),
    "b": pa.array([True, True, None]),
    "day": pa.array([dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)]),
    "early": pa.array([dt.date(1500, 1, 1), None, dt.date(2021, 1, 1)]),
    "dec": pa.array([Decimal("1.20"), None, Decimal("-3.40")], pa.decimal128(10, 2)),
    "ts": pa.array([dt.datetime(2020, 1, 1, 1, 2, 3, 456789)] * 3, pa.timestamp("us")),
    "none": pa.array([None, None, None], pa.int32()),
    "row": pa.array([{"X": 1, "y": ["p"]}, {"X": 2, "y": []}, {"X": 3, "y": None}]),
}
EXPECTED = {
    "i": ColumnStatistics(2, True, -7, 5),
    "d": ColumnStatistics(3, False, -3.0, 2.5),
    "nan": ColumnStatistics(3, False),
    "s": ColumnStatistics(3, False, "a", "é", size=4),
    "bin": ColumnStatistics(2, True, size=5),
    "b": ColumnStatistics(2, True, True, True),
    "day": ColumnStatistics(2, True, dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
    "early": ColumnStatistics(2, True),
    "dec": ColumnStatistics(2, True, Decimal("-3.4"), Decimal("1.2")),
    "none": ColumnStatistics(0, True),
}


def written(compression: Any = "zlib", table: Any = None, **options: Any) -> Any:
    out = io.BytesIO()
    orc.write_table(pa.table(COLUMNS) if table is None else table, out, compression=compression, **options)
    return out.getvalue()


def tail_of(content: Any, decompress: Any = None) -> Any:
    return read_tail(content[-tail_length(content[-LONGEST_POSTSCRIPT_BYTES:]) :], decompress)


@pytest.fixture(scope="module")
def zlib() -> Any:
    return tail_of(written())


def test_types_and_names(zlib: Any) -> None:
    assert zlib.rows == 3
    assert zlib.compression == "zlib"
    assert zlib.names() == tuple(COLUMNS)
    assert zlib.hive_type(zlib.column("row")) == "struct<X:bigint,y:array<string>>"
    assert zlib.hive_type(zlib.column("DEC")) == "decimal(10,2)"
    assert zlib.column("row", "x") == zlib.column("row") + 1
    assert zlib.column("row", "z") is None
    assert zlib.column("i", "x") is None


def test_statistics_of_the_file_and_of_its_stripe(zlib: Any) -> None:
    for name, expected in EXPECTED.items():
        assert zlib.statistics(zlib.column(name)) == expected, name
        assert zlib.stripe_statistics(0, zlib.column(name)) == expected, name
    of_time = zlib.statistics(zlib.column("ts"))
    assert of_time.minimum <= dt.datetime(2020, 1, 1, 1, 2, 3, 456789) <= of_time.maximum
    assert zlib.statistics(zlib.column("row", "x")) == ColumnStatistics(3, False, 1, 3)
    assert zlib.stripe_statistics(1, 1) == UNKNOWN


def test_stripes_lie_one_behind_the_other() -> None:
    rows = 200_000
    content = written(
        table=pa.table({"k": pa.array(range(rows)), "s": [f"{i * 7919}" for i in range(rows)]}), stripe_size=1
    )
    tail = tail_of(content)
    assert len(tail.stripes) > 1
    assert sum(stripe.rows for stripe in tail.stripes) == tail.rows == rows
    first = 0
    for number, stripe in enumerate(tail.stripes):
        assert tail.stripe_statistics(number, 1)[2:4] == (first, first + stripe.rows - 1)
        first += stripe.rows
        if number:
            assert stripe.offset >= sum(tail.stripes[number - 1][:2])


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd", "lz4"])
def test_all_compressions_through_the_cache(tmp_path: Path, compression: str) -> None:
    (tmp_path / "f").write_bytes(written(compression))
    file = DataFilePath(str(tmp_path / "f"), (tmp_path / "f").stat().st_size, 1)
    footers = Footers()
    assert footers.missing([file]) == 1
    (tail,) = footers.read([file])
    assert tail.names() == tuple(COLUMNS)
    assert tail.statistics(1) == EXPECTED["i"]
    (tmp_path / "f").unlink()
    assert footers.missing([file]) == 0
    assert footers.read([file, file])[1] is tail


def test_a_file_of_unknown_time_is_not_kept_and_a_tail_longer_than_the_first_read_is_read(tmp_path: Path) -> None:
    table = pa.table({f"a_column_with_a_long_name_{i}": [f"text {i * 7919} {i * 104729}"] for i in range(2000)})
    (tmp_path / "f").write_bytes(written("uncompressed", table))
    footers = Footers()
    file = DataFilePath(str(tmp_path / "f"), (tmp_path / "f").stat().st_size)
    assert len(footers.read([file])[0].names()) == 2000
    assert footers.missing([file]) == 1


def test_the_cache_forgets_the_oldest(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(written())
    size = (tmp_path / "f").stat().st_size
    footers = Footers(limit=2)
    some = [DataFilePath(str(tmp_path / "f"), size, modified_ms) for modified_ms in (1, 2, 3)]
    footers.read(some)
    assert footers.missing(some) == footers.missing(some[:1]) == 1


def test_to_ask_of_one_file_does_not_take_a_look_at_all_that_are_kept(tmp_path: Path) -> None:
    looks: list[int] = []

    class Counted(DataFilePath):
        def __hash__(self) -> int:
            looks.append(1)
            return super().__hash__()

    (tmp_path / "f").write_bytes(written())
    size = (tmp_path / "f").stat().st_size
    footers = Footers()
    some = [Counted(str(tmp_path / "f"), size, modified_ms) for modified_ms in range(1, 101)]
    footers.read(some)
    looks.clear()
    assert footers.missing(some[:1]) == 0
    assert len(looks) < 10


def test_files_without_rows() -> None:
    tail = tail_of(empty_acid_file([("a", "int"), ("b", "decimal(12,3)"), ("c", "char(3)")]))
    assert tail.rows == 0
    assert tail.stripes == ()
    assert tail.names()[-1] == "row"
    assert tail.hive_type(tail.column("row")) == "struct<a:int,b:decimal(12,3),c:char(3)>"
    assert tail.user_metadata["hive.acid.version"] == b"2"
    assert tail.statistics(tail.column("row", "a")).minimum is None


def test_a_compression_that_nobody_can_read_says_so(tmp_path: Path) -> None:
    content = written("snappy")
    with pytest.raises(FormatError, match=r"snappy.*pyarrow"):
        tail_of(content)
    for other in (b"no orc at all", *(b"rows of text,1\n" * 20 + bytes([last]) for last in (10, 65, 100, 255))):
        (tmp_path / "f").write_bytes(other)
        with pytest.raises(FormatError, match=r"f: this is no ORC file"):
            Footers().read([DataFilePath(str(tmp_path / "f"), len(other))])


def test_bounds_of_writers_that_are_not_to_be_trusted() -> None:
    bounds = bytes_field(2, number_field(1, 2) + number_field(2, 4))
    assert column_statistics("bigint", number_field(1, 9) + bounds) == ColumnStatistics(9, True, 1, 2)
    assert column_statistics("string", number_field(1, 9) + bounds) == ColumnStatistics(9, True)
    # Without a sum nobody knows whether there is a NaN.
    one = varint(1 << 3 | 1) + b"\0" * 8 + varint(2 << 3 | 1) + b"\0" * 8
    assert column_statistics("double", bytes_field(3, one)) == ColumnStatistics(None, True)
    # Older writers give instants of a zone that is not stated.
    assert column_statistics("timestamp", bytes_field(9, number_field(1, 2) + number_field(2, 4))).minimum is None
    far = bytes_field(7, number_field(1, 2) + number_field(2, 2**40))
    assert column_statistics("date", far) == ColumnStatistics(None, True, dt.date(1970, 1, 2), None)
    assert column_statistics("string", bytes_field(4, bytes_field(4, b"a") + bytes_field(5, b"b")))[2:4] == ("a", "b")
    assert column_statistics("string", bytes_field(4, bytes_field(1, b"\xff")))[2:4] == (None, None)
    assert column_statistics("decimal", bytes_field(6, bytes_field(1, b"x") + bytes_field(2, b"NaN")))[2:] == (
        None,
        None,
        None,
    )


def test_the_last_millisecond_of_all_has_none_after_it() -> None:
    last = 253_402_300_799_999
    message = bytes_field(9, number_field(3, unzigzag(0)) + number_field(4, unzigzag(last)))
    assert column_statistics("timestamp", message) == ColumnStatistics(None, True, dt.datetime(1970, 1, 1), None)


VALID = written("uncompressed")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_corrupt_and_cut_tails_are_read_or_refused(data: Any) -> None:
    content = bytearray(VALID)
    for _ in range(data.draw(st.integers(0, 4))):
        content[-1 - data.draw(st.integers(0, 1500))] = data.draw(st.integers(0, 255))
    end = bytes(content[data.draw(st.integers(0, len(content))) :])
    try:
        tail = read_tail(end[-tail_length(end) :])
        for column in range(len(tail.types)):
            tail.statistics(column)
            tail.hive_type(column)
            tail.stripe_statistics(0, column)
    except FormatError:
        pass
