"""What a `StreamingConnection` has written, read and changed by Spark like all other rows."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hive_acid.spark import AcidSession
from hive_acid.streaming import ArrowWriter, DelimitedWriter, JsonWriter, StreamingConnection
from metastore.compaction.states import CompactionState
from tests.spark.checker import check_snapshot, check_table, location_of
from tests.spark.house import House

pytestmark = pytest.mark.spark


def test_every_type_arrives(acid: AcidSession) -> None:
    columns = {
        "i8": "tinyint", "i16": "smallint", "i32": "int", "i64": "bigint", "f": "float", "d": "double", "b": "boolean",
        "dec": "decimal(20,3)", "s": "string", "v": "varchar(5)", "c": "char(4)", "raw": "binary", "day": "date",
        "at": "timestamp", "l": "array<struct<a:smallint,t:date>>", "m": "map<string,decimal(5,1)>",
        "t": "struct<x:int,y:array<string>>",
    }  # fmt: skip
    acid.create_table("d.t", columns)
    rows = [
        (1, 2, 3, 4, 0.5, 1.25, True, Decimal("12345678901234567.125"), "ä", "abc", "x   ", b"\x00\xff",
         date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 123456), [{"a": 1, "t": date(2020, 1, 1)}, None],
         {"k": Decimal("1.5"), "n": None}, {"x": 1, "y": ["a", None]}),
        (None,) * 17,
        (-1, -2, -3, -4, float("nan"), float("-inf"), False, Decimal("-0.001"), "", "", "    ", b"", date(1, 1, 1),
         datetime(1500, 3, 1, 1, 2, 3), [], {}, {"x": None, "y": None}),
        (0, 0, 0, 0, 0.0, -0.0, False, Decimal("0.000"), "z", "z", "z   ", b"z", date(1582, 10, 4),
         datetime(9999, 12, 31, 23, 59, 59, 999999), [None], {"": Decimal("0.0")}, {"x": 0, "y": []}),
        (5, 5, 5, 5, 5.0, 5.0, True, Decimal("5.000"), "z", "z", "z   ", b"z", date(1582, 10, 15),
         datetime(1969, 12, 31, 23, 59, 59), None, None, None),
    ]  # fmt: skip
    table = pa.table({name: pa.array([row[at] for row in rows]) for at, name in enumerate(columns) if name != "m"})
    maps = [None if row[15] is None else list(row[15].items()) for row in rows]
    table = table.append_column("m", pa.array(maps, pa.map_(pa.string(), pa.decimal128(5, 1))))
    with StreamingConnection(acid.connection, "d.t", ArrowWriter()) as stream, stream.transaction():
        stream.write(table)
    found = [tuple(_plain(value) for value in row) for row in acid.table("d.t").collect()]
    assert repr(found) == repr(rows)


def _plain(value: Any) -> Any:
    """Spark's rows and byte arrays as the plain values that they stand for."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return dict(sorted(value.items()))
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def test_streamed_rows_are_changed_and_compacted(acid: AcidSession, db: Any, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    with StreamingConnection(acid.connection, "d.t", DelimitedWriter(","), transaction_batch_size=3) as stream:
        for number in range(3):
            with stream.transaction():
                stream.write("\n".join(f"{number * 10 + i},n{i},{i % 2}" for i in range(10)))
    assert acid.update("d.t", {"name": "'changed'"}, "id % 5 = 0") == 6
    assert acid.delete("d.t", "id % 3 = 0") == 10
    acid.insert("d.t", acid.spark.sql("SELECT 100 id, 'inserted' name, 1 p"))
    expected = {(i, "changed" if i % 5 == 0 else f"n{i % 10}", i % 2) for i in range(30) if i % 3} | {
        (100, "inserted", 1)
    }
    assert {tuple(row) for row in acid.table("d.t").collect()} == expected
    assert acid.table("d.t").where("p = 1").count() == len([row for row in expected if row[2] == 1])
    house = House(db, tmp_path / "warehouse", acid.spark)
    assert house.compact("d.t", "major", ["p=0", "p=1"]) == {CompactionState.READY_FOR_CLEANING}
    assert {tuple(row) for row in acid.table("d.t").collect()} == expected
    check_table(location_of(acid, "d.t"))
    seen = check_snapshot(acid, "d.t")
    assert sum(map(len, seen.values())) == len(expected)


def test_streams_and_spark_place_rows_of_clustered_tables_alike(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, clustered_by=("name", "id"), buckets=3)
    rows = [(number, f"n{number % 5}") for number in range(60)]
    acid.insert("d.t", acid.spark.createDataFrame(rows, "id int, name string"))
    with StreamingConnection(acid.connection, "d.t", JsonWriter()) as stream, stream.transaction():
        stream.write("\n".join(f'{{"id": {number}, "name": "{name}"}}' for number, name in rows))
    one, other = check_table(location_of(acid, "d.t")).values()
    assert {name: {event.row for event in events} for name, events in one.items()} == {
        name: {event.row for event in events} for name, events in other.items()
    }
    assert len(other) == 3
