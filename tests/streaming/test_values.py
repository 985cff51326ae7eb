"""Values on their way through pyarrow's ORC writer, whose three faults are worked around: none is shifted or lost."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from hive_acid.errors import UnsupportedTableError
from hive_acid.streaming import ArrowWriter
from hive_acid.streaming.orc_values import writable
from hive_acid.streaming.types import arrow_type
from hive_acid.streaming.values import stored
from tests.streaming.conftest import House

DEEP = (
    "struct<l:array<struct<a:smallint,s:struct<x:string,l2:array<int>>>>,"
    "m:map<string,struct<q:bigint,r:struct<z:double>>>,s:struct<t:struct<u:date,v:array<struct<w:boolean>>>>>"
)


def _value(kind: pa.DataType, chance: random.Random, *, is_key: bool = False) -> Any:
    if not is_key and chance.random() < 0.3:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _value(field.type, chance) for field in kind}
    if pa.types.is_map(kind):
        return [(f"k{number}", _value(kind.item_type, chance)) for number in range(chance.randrange(3))]
    if pa.types.is_list(kind):
        return [_value(kind.value_type, chance) for _ in range(chance.randrange(4))]
    if pa.types.is_string(kind):
        return f"s{chance.randrange(9)}"
    if pa.types.is_floating(kind):
        return chance.random()
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    return date(2020, 1, 1) + timedelta(chance.randrange(99)) if pa.types.is_date(kind) else chance.randrange(100)


@pytest.mark.parametrize("seed", range(3))
def test_nested_nulls_come_back(house: House, seed: int) -> None:
    chance = random.Random(seed)
    house.create({"id": "int", "deep": DEEP}, {"p": "int"})
    rows = [{"id": n, "deep": _value(arrow_type(DEEP), chance), "p": n % 3} for n in range(600)]
    schema = pa.schema([("id", pa.int32()), ("deep", arrow_type(DEEP)), ("p", pa.int64())])
    table = pa.Table.from_pylist(rows, schema)
    with house.stream(ArrowWriter()) as stream, stream.transaction():
        stream.write(table.slice(0, 333))
        stream.write(table.slice(333))
    found = {row[0]: row[1] for row in house.rows()}
    assert found == {row["id"]: row["deep"] for row in rows}


def test_the_workaround_is_needed(tmp_path: Path) -> None:
    """If this fails, pyarrow has mended its writer: fields of nulls need not be made null any more."""
    kind = pa.struct([("l", pa.list_(pa.struct([("a", pa.int16())])))])
    table = pa.table({"row": pa.array([{"l": [{"a": 1}, None]}, {"l": [{"a": 1}, None]}], kind)})
    orc.write_table(table, tmp_path / "raw.orc")
    assert orc.read_table(tmp_path / "raw.orc").to_pylist() != table.to_pylist()
    ready = pa.table({"row": writable(table.column("row").combine_chunks(), "row")})
    orc.write_table(ready, tmp_path / "ready.orc")
    assert orc.read_table(tmp_path / "ready.orc").to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("day", "shift"),
    [
        ("0001-01-01", -2),
        ("0999-12-31", 5),
        ("1500-02-28", 9),
        ("1500-03-01", 10),
        ("1582-10-04", 10),
        ("1582-10-15", 0),
    ],
)
def test_days_before_the_reform_are_counted_by_the_calendar_of_their_time(day: str, shift: int) -> None:
    number = (date.fromisoformat(day) - date(1970, 1, 1)).days + shift
    found = writable(stored(pa.array([day, None, "2024-02-29"]), "date", "v"), "v")
    assert found.cast(pa.int32()).to_pylist() == [number, None, 19782]
    moments = writable(stored(pa.array([f"{day} 01:02:03"]), "timestamp", "v"), "v")
    assert moments.cast(pa.int64()).to_pylist() == [(number * 86_400 + 3_723) * 1_000_000]


@pytest.mark.parametrize(
    ("hive", "arrow"),
    [
        ("DECIMAL( 10 , 2 )", pa.decimal128(10, 2)),
        ("decimal", pa.decimal128(10, 0)),
        ("double precision", pa.float64()),
        ("timestamp with local time zone", pa.timestamp("us", tz="UTC")),
        ("map<string,array<struct<a:int,b:map<int,date>>>>", None),
    ],
)
def test_types(hive: str, arrow: pa.DataType | None) -> None:
    assert arrow is None or arrow_type(hive) == arrow
    assert arrow_type(hive) is not None


@pytest.mark.parametrize("hive", ["uniontype<int>", "interval_day_time", "decimal(39,0)", "void", "array<void>"])
def test_types_that_cannot_be_streamed(hive: str) -> None:
    with pytest.raises(UnsupportedTableError, match="cannot be streamed into"):
        arrow_type(hive)
