"""Files joined by their bytes: the same values, under the same properties, and nothing that would mix two meanings."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.errors import FormatError
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.filesystem.joining import join_files
from hive_acid.format import avro_file, parquet_file
from hive_acid.format.orc.protobuf import signed_varint

LARGE = 1 << 30
TOKYO, PARIS = ({"writer.time.zone": zone} for zone in ("Asia/Tokyo", "Europe/Paris"))


def unheard(*_: int) -> None:
    pass


def paths(*found: Path) -> list[DataFilePath]:
    return [DataFilePath(str(path), path.stat().st_size) for path in found]


# --- Parquet -------------------------------------------------------------------------------------


def rows(first: int, number: int, properties: dict[str, str] | None = None) -> pa.Table:
    numbers = range(first, first + number)
    columns = {
        "id": pa.array(numbers, pa.int32()),
        "at": pa.array([n * 10**15 + n for n in numbers], pa.timestamp("ns")),
        "day": pa.array([n * 1000 - 700_000 for n in numbers], pa.date32()),
        "name": pa.array([None if n % 7 == 0 else f"n{n % 5}" for n in numbers], pa.string()),
        "tags": pa.array([[n, n + 1] if n % 3 else [] for n in numbers], pa.list_(pa.int64())),
    }
    return pa.table(columns).replace_schema_metadata(properties)


def write(path: Path, table: pa.Table, **options: object) -> Path:
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=100, **options)
    return path


@pytest.mark.parametrize(
    "options", [{}, {"write_page_index": True}, {"compression": "zstd"}, {"use_dictionary": False}]
)
def test_row_groups_stay_as_they_are(tmp_path: Path, options: dict[str, object]) -> None:
    tables = [rows(0, 250), rows(250, 1), rows(300, 0), rows(400, 130)]
    written = [write(tmp_path / f"f{n}", table, **options) for n, table in enumerate(tables)]
    told: list[tuple[int, ...]] = []
    assert join_files("parquet", paths(*written), str(tmp_path / "to"), LARGE, lambda *made: told.append(made)) == 381
    (made,) = (tmp_path / "to").iterdir()
    file = pq.ParquetFile(made)
    assert made.name == "000000_0"
    assert file.read().equals(pa.concat_tables(tables))
    groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
    assert [group.num_rows for group in groups if group.num_rows] == [100, 100, 50, 1, 100, 30]
    assert file.metadata.created_by == pq.ParquetFile(written[0]).metadata.created_by
    assert [rows for rows, _, _ in told] == [250, 251, 251, 381]
    # A single row group is found by its place, as Spark and Hive divide a file among tasks.
    assert file.read_row_group(len(groups) - 1).column("id").to_pylist() == list(range(500, 530))


def test_joined_files_are_joined_again(tmp_path: Path) -> None:
    written = [write(tmp_path / f"f{n}", rows(n * 100, 100)) for n in range(3)]
    join_files("parquet", paths(*written[:2]), str(tmp_path / "one"), LARGE, unheard)
    join_files("parquet", paths(tmp_path / "one" / "000000_0", written[2]), str(tmp_path / "two"), LARGE, unheard)
    assert pq.read_table(tmp_path / "two" / "000000_0").equals(rows(0, 300))


def test_what_means_something_else_stays_apart(tmp_path: Path) -> None:
    """Two writers' zones, another type, another writer: an instant is read by the properties of its own file."""
    tables = [rows(0, 10, TOKYO), rows(10, 10, PARIS), rows(20, 10, TOKYO), rows(30, 10).drop(["name"]), rows(40, 10)]
    written = [write(tmp_path / f"f{n}", table) for n, table in enumerate(tables)]
    assert join_files("parquet", paths(*written), str(tmp_path / "to"), LARGE, unheard) == 50
    made = [pq.ParquetFile(path) for path in sorted((tmp_path / "to").iterdir())]
    zones = [(file.metadata.metadata or {}).get(b"writer.time.zone") for file in made]
    assert zones == [b"Asia/Tokyo", b"Europe/Paris", None, None]
    assert [file.read().column("id").to_pylist() for file in made] == [
        [*range(10), *range(20, 30)],
        [*range(10, 20)],
        [*range(30, 40)],
        [*range(40, 50)],
    ]


def test_a_file_that_is_large_enough_takes_no_more(tmp_path: Path) -> None:
    written = [write(tmp_path / f"f{n}", rows(n * 100, 100)) for n in range(4)]
    size = written[0].stat().st_size
    join_files("parquet", paths(*written), str(tmp_path / "to"), 2 * size - 100, unheard)
    made = sorted((tmp_path / "to").iterdir())
    assert [pq.ParquetFile(path).metadata.num_rows for path in made] == [200, 200]


def test_files_that_are_not_parquet(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", rows(0, 10)).read_bytes()
    empty, short, cut, long, encrypted = (tmp_path / name for name in ("empty", "short", "cut", "long", "encrypted"))
    empty.write_bytes(b"")
    short.write_bytes(b"PAR1")
    cut.write_bytes(whole[:-20])
    long.write_bytes(whole[:-8] + b"\xff\xff\xff\x0fPAR1")
    encrypted.write_bytes(whole[:-4] + b"PARE")
    assert join_files("parquet", paths(empty), str(tmp_path / "to"), LARGE, unheard) == 0
    for path, words in ((short, "no Parquet"), (cut, "no Parquet"), (long, "footer has"), (encrypted, "encrypted")):
        with pytest.raises(FormatError, match=f"{path.name} cannot be joined with others: .*{words}"):
            join_files("parquet", paths(path), str(tmp_path / "to"), LARGE, unheard)


@given(st.data())
def test_a_footer_of_chance_is_read_or_refused(data: st.DataObject) -> None:
    """Whatever bytes stand there, nothing but a FormatError comes."""
    with io.BytesIO() as made:
        pq.write_table(pa.table({"id": [1, 2]}), made)
        content = bytearray(made.getvalue())
    length = parquet_file.footer_length(bytes(content[-8:]))
    footer = content[-8 - length : -8]
    for _ in range(data.draw(st.integers(0, 4))):
        footer[data.draw(st.integers(0, length - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parquet_file.parsed(bytes(footer), len(content))
        parquet_file.joined_end([(found, 4)])
    except FormatError:
        pass


# --- Avro ----------------------------------------------------------------------------------------

SCHEMA = b'{"type":"record","name":"r","fields":[{"name":"id","type":"long"}]}'


def avro(path: Path, blocks: list[list[int]], marker: bytes, **properties: str) -> Path:
    """A file of longs as the specification has it; `blocks` are their values."""
    written = avro_file.header(
        {b"avro.schema": SCHEMA, **{name.encode(): value.encode() for name, value in properties.items()}}, marker
    )
    for block in blocks:
        content = b"".join(map(_long, block))
        written += _long(len(block)) + _long(len(content)) + content + marker
    path.write_bytes(written)
    return path


def longs(path: Path) -> tuple[dict[bytes, bytes], list[list[int]]]:
    with path.open("rb") as file:
        properties, marker = avro_file.read_header(file)
        found = []
        for number, block in avro_file.blocks(file, marker):
            content = io.BytesIO(block)
            assert avro_file.read_number(content) == number
            avro_file.read_number(content)
            found.append([avro_file.read_number(content) or 0 for _ in range(number)])
    return properties, found


def _long(value: int) -> bytes:
    return signed_varint(value)


def test_blocks_stay_as_they_are(tmp_path: Path) -> None:
    one = avro(tmp_path / "a", [[1, -2, 300], [4]], b"a" * 16, **{"avro.codec": "null"})
    two = avro(tmp_path / "b", [[5, 6]], b"b" * 16, **{"avro.codec": "null"})
    none = avro(tmp_path / "c", [], b"c" * 16, **{"avro.codec": "null"})
    assert join_files("avro", paths(none, one, two), str(tmp_path / "to"), LARGE, unheard) == 6
    (made,) = (tmp_path / "to").iterdir()
    assert longs(made) == ({b"avro.schema": SCHEMA, b"avro.codec": b"null"}, [[1, -2, 300], [4], [5, 6]])


def test_avro_files_with_other_properties_stay_apart(tmp_path: Path) -> None:
    written = [
        avro(tmp_path / f"f{n}", [[n]], bytes([n]) * 16, **(zone or {})) for n, zone in enumerate((TOKYO, PARIS, TOKYO))
    ]
    assert join_files("avro", paths(*written), str(tmp_path / "to"), LARGE, unheard) == 3
    made = [longs(path) for path in sorted((tmp_path / "to").iterdir())]
    assert [(properties[b"writer.time.zone"], found) for properties, found in made] == [
        (b"Asia/Tokyo", [[0], [2]]),
        (b"Europe/Paris", [[1]]),
    ]


def test_a_header_in_parts_is_read() -> None:
    """Maps may come in parts, and tell the size of a part."""
    pair = b"\x02a\x02b"
    whole = io.BytesIO(b"Obj\x01" + _long(-1) + _long(len(pair)) + pair + _long(1) + b"\x02c\x00" + b"\x00" + b"m" * 16)
    assert avro_file.read_header(whole) == ({b"a": b"b", b"c": b""}, b"m" * 16)


def test_files_that_are_not_avro(tmp_path: Path) -> None:
    whole = avro(tmp_path / "whole", [[1, 2], [3]], b"m" * 16).read_bytes()
    other = tmp_path / "other"
    for content in (b"Obj", b"PAR1", whole[:10], whole[:-1], whole[:-17], whole + b"\x80", whole[:-16] + b"x" * 16):
        other.write_bytes(content)
        with pytest.raises(FormatError, match="other cannot be joined with others"):
            join_files("avro", paths(other), str(tmp_path / "to"), LARGE, unheard)
    with pytest.raises(FormatError, match="has a part of"):
        avro_file.read_header(io.BytesIO(b"Obj\x01" + _long(1) + _long(1 << 40)))
