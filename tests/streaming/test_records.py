"""Record writers: what they make of bytes and Arrow, and what they refuse; none of a refused call is taken."""

from __future__ import annotations

import io
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import SerializationError
from hive_acid.streaming import ArrowWriter, DelimitedWriter, JsonWriter, records
from hive_acid.streaming.layout import Layout
from tests.streaming.conftest import House

PLAIN = {"i": "int", "d": "decimal(10,2)", "s": "string", "b": "boolean", "day": "date", "at": "timestamp"}
NESTED = {
    "l": "array<int>",
    "m": "map<string,bigint>",
    "t": "struct<a:int,b:string>",
    "deep": "array<struct<x:date,y:array<string>>>",
}
EVERYTHING = {
    "i8": "tinyint",
    "i16": "smallint",
    "i64": "bigint",
    "f": "float",
    "f64": "double",
    "v": "varchar(3)",
    "c": "char(4)",
    "raw": "binary",
}


def written(house: House, writer: Any, *given: Any, columns: Any = PLAIN, **options: Any) -> Any:
    house.create(columns)
    with house.stream(writer, **options) as stream, stream.transaction():
        for one in given:
            stream.write(one)
    return house.rows()


def placed(columns: Any, writer: Any, given: Any) -> Any:
    """What a stream does with records before it has anything to write them to."""
    table = Table("d", "t", tuple(Column(name, kind) for name, kind in columns.items()))
    layout = Layout(table, {})
    return [layout.place(parsed) for parsed in writer.parse(given, layout.columns, layout.defaults)]


# --- delimited text -------------------------------------------------------------------------------


def test_delimited_lines(house: House) -> None:
    given = "1|2.50|a|true|2024-02-29|2024-02-29 12:30:00.123456\r\n|\\N|||\\N|\n-3|7|\\N|false|1801-01-01|2199-12-31"
    assert written(house, DelimitedWriter("|"), given) == [
        (-3, Decimal("7.00"), None, False, date(1801, 1, 1), datetime(2199, 12, 31)),
        (1, Decimal("2.50"), "a", True, date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 123456)),
        (None, None, "", None, None, None),
    ]


def test_delimited_nested_values(house: House) -> None:
    columns = {"l": "array<int>", "m": "map<string,bigint>", "t": "struct<a:int,b:string>", "e": "array<string>"}
    given = b"1;2;\\N,a:1;b:\\N,7;x,\n\\N,\\N,\\N,\\N\n"
    found = written(house, DelimitedWriter(",", collection_delimiter=";", map_delimiter=":"), given, columns=columns)
    assert found == [(None, None, None, None), ([1, 2, None], [("a", 1), ("b", None)], {"a": 7, "b": "x"}, [])]


def test_a_file_of_lines_is_read_in_blocks(simple: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BLOCK_BYTES", 100)
    lines = "".join(f"{number},n{number}\n" for number in range(100)) + "100,last"
    with simple.stream() as stream, stream.transaction():
        assert stream.write(io.BytesIO(lines.encode())) == 101
    assert len(simple.rows()) == 101


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,2,3", "lines of 2 values are expected"),
        ("x,a", "record 2: x does not fit into d.t.id int"),
        ("3000000000,a", "record 2: 3000000000 does not fit"),
    ],
)
def test_a_wrong_line_takes_all_of_its_call_with_it(simple: House, line: str, words: str) -> None:
    with simple.stream() as stream, stream.transaction():
        stream.write("1,before")
        with pytest.raises(SerializationError, match=words):
            stream.write(f"2,beside\n{line}")
        stream.write("3,after")
    assert simple.rows() == [(1, "before"), (3, "after")]


@pytest.mark.parametrize("wrong", ["", ",,", "ä", "\x02"])
def test_delimiters_are_single_characters(wrong: str) -> None:
    with pytest.raises(ValueError, match="one character each"):
        DelimitedWriter(wrong)


def test_text_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(SerializationError, match="send JSON or Arrow"):
        placed({"l": "array<array<array<int>>>"}, DelimitedWriter(","), "1")


# --- JSON -----------------------------------------------------------------------------------------


def test_json_lines(house: House) -> None:
    rows = [
        {"I": 1, "d": 2.5, "s": "a", "b": True, "day": "2024-02-29", "at": "2024-02-29 12:30:00.5"},
        {"d": "123.45", "s": None},
        {"i": -1, "d": -3, "at": "2024-02-29T00:00:00"},
    ]
    found = written(house, JsonWriter(), "\n".join(map(json.dumps, rows)))
    assert found == [
        (-1, Decimal("-3.00"), None, None, None, datetime(2024, 2, 29)),
        (1, Decimal("2.50"), "a", True, date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 500000)),
        (None, Decimal("123.45"), None, None, None, None),
    ]


def test_json_nested_values(house: House) -> None:
    rows = [
        {"l": [1, None], "m": {"a": 1}, "t": {"A": 1}, "deep": [{"x": "2020-01-01", "y": ["u", None]}, None, {}]},
        {"l": [], "m": {}, "t": None, "deep": None},
    ]
    found = written(house, JsonWriter(), "\n".join(map(json.dumps, rows)), columns=NESTED)
    deep = [{"x": date(2020, 1, 1), "y": ["u", None]}, None, {"x": None, "y": None}]
    assert found == [([1, None], [("a", 1)], {"a": 1, "b": None}, deep), ([], [], None, None)]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ('{"i": 1', "record 1 is not JSON"),
        ("[1]", "record 1 is no JSON object"),
        ('{"j": 1}', "record 1 names j"),
        ('{"i": 1, "I": 2}', "gives a column twice"),
        ('{"i": 1, "i": 2}', "given twice"),
        ('{"i": 1.5}', "it has a fraction"),
        ('{"i": "1"}', "it is not a number"),
        ('{"i": true}', "it is not a number"),
        ('{"i": 3000000000}', "i int"),
        ('{"s": 1}', "it is not a str"),
        ('{"b": "true"}', "it is not a bool"),
        ('{"d": 1.005}', "more than 2 digits"),
        ('{"d": 123456789.5}', "d decimal"),
        ('{"day": "2023-02-29"}', "is no date"),
        ('{"at": "2024-01-01T00:00:00Z"}', "wall clocks"),
        ('{"at": "2024-01-01 00:00:00.1234567"}', "more than six digits"),
    ],
)
def test_json_that_does_not_fit_is_refused(house: House, record: str, words: str) -> None:
    house.create(PLAIN)
    with house.stream(JsonWriter()) as stream, stream.transaction(), pytest.raises(SerializationError, match=words):
        stream.write(record)
    assert house.rows() == []


def test_json_with_a_field_twice_is_refused(house: House) -> None:
    house.create(NESTED)
    with house.stream(JsonWriter()) as stream, stream.transaction():
        for record in ('{"t": {"a": 1, "A": 2}}', '{"t": {"a": 1, "a": 2}}', '{"m": {"k": 1, "k": 2}}'):
            with pytest.raises(SerializationError, match="given twice"):
                stream.write(record)
    assert house.rows() == []


# --- Arrow ----------------------------------------------------------------------------------------


def test_arrow_columns_meet_by_name_and_are_cast(house: House) -> None:
    table = pa.table(
        {
            "F64": pa.array([1, 2], pa.int32()),
            "i8": pa.array([1, None], pa.int64()),
            "i16": pa.array(["7", "-8"]),
            "i64": pa.array([Decimal("3"), None], pa.decimal128(20, 0)),
            "f": pa.array([0.5, float("inf")], pa.float64()),
            "v": pa.array(["abc", "ab   "]).dictionary_encode(),
            "c": pa.array(["x", None], pa.large_string()),
            "raw": pa.array([b"\x00\xff", None], pa.large_binary()),
        }
    )
    batch = table.to_batches()[0]
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch.slice(0, 1), batch.slice(1, 1)])
    one = (1, 7, 3, 0.5, 1.0, "abc", "x   ", b"\x00\xff")
    other = (None, -8, None, float("inf"), 2.0, "ab ", None, None)
    assert written(house, ArrowWriter(), table, batch, reader, columns=EVERYTHING) == [one] * 3 + [other] * 3


@pytest.mark.parametrize(
    ("kind", "array", "words"),
    [
        ("int", pa.array([1, 2**40]), "record 2: 1099511627776"),
        ("tinyint", pa.array([300]), "record 1: 300"),
        ("int", pa.array([1.0, 1.5]), "record 2: 1.5"),
        ("decimal(4,2)", pa.array([1, 100]), "record 2: 100"),
        ("decimal(4,2)", pa.array([Decimal("1.234")]), "record 1: 1.234"),
        ("varchar(2)", pa.array(["ab", "ab ", "abc"]), "record 3: abc"),
        ("char(2)", pa.array(["äöü"]), "record 1: äöü"),
        ("timestamp", pa.array([0], pa.timestamp("us", tz="UTC")), "cannot be stored"),
        ("timestamp with local time zone", pa.array([0], pa.timestamp("us")), "cannot be stored"),
        ("timestamp", pa.array([1], pa.timestamp("ns")), "record 1"),
        ("timestamp", pa.array([0, -1], pa.timestamp("us")), "record 2: 1969-12-31 .* before 1970"),
        ("date", pa.array([date(1582, 10, 10)]), "the calendar of 1582 left out"),
        ("int", pa.array([True]), "cannot be stored"),
        ("boolean", pa.array([1]), "cannot be stored"),
        ("array<int>", pa.array([1]), "cannot be stored"),
        ("struct<a:int>", pa.array([{"b": 1}]), "cannot be stored"),
        ("array<tinyint>", pa.array([[1], [1, 300]]), r"record 2: \[1, 300\]"),
    ],
)
def test_arrow_values_that_do_not_fit_are_refused(kind: str, array: pa.Array, words: str) -> None:
    with pytest.raises(SerializationError, match=words):
        placed({"v": kind}, ArrowWriter(), pa.table({"v": array}))


def test_other_columns_are_refused(simple: House) -> None:
    with simple.stream(ArrowWriter()) as stream, stream.transaction():
        for table in (pa.table({"id": [1]}), pa.table({"id": [1], "name": ["a"], "more": [2]})):
            with pytest.raises(SerializationError, match="are not those of the table: id, name"):
                stream.write(table)
        with pytest.raises(SerializationError, match="takes a pyarrow Table"):
            stream.write(b"1,a")
