"""Second tails: columns that move into `row`, and what Apache Hive 3.1 needs, read by pyarrow."""

import io
import random
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from hive_acid.errors import FormatError
from hive_acid.filesystem.footers import uncompressed
from hive_acid.format.orc.patch import hive_3_properties, second_tail
from hive_acid.format.orc.tail import read_tail

IDS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
COMPRESSIONS = ("uncompressed", "zlib", "snappy", "zstd", "lz4")
ROWS = 20_000
KINDS = [pyarrow.int32(), pyarrow.int64(), pyarrow.int32(), pyarrow.int64(), pyarrow.int64()]


def ids(rows: Any = ROWS, write_ids: Any = None, buckets: Any = None) -> Any:
    writes = write_ids or [7] * rows
    values = [[0] * rows, writes, buckets or [536870912] * rows, list(range(rows)), writes]
    return [pyarrow.array(column, kind) for column, kind in zip(values, KINDS, strict=True)]


def written(table: Any, compression: Any, stripe_size: Any = 1 << 26) -> Any:
    buffer = io.BytesIO()
    orc.write_table(table, buffer, compression=compression, stripe_size=stripe_size, dictionary_key_size_threshold=0.0)
    return buffer.getvalue()


def flat(compression: Any) -> Any:
    """A file as Spark writes it: an empty `row`, its columns behind it."""
    row = pyarrow.array([{}] * ROWS, pyarrow.struct([]))
    numbers = pyarrow.array(range(ROWS))
    texts = pyarrow.array([None if n % 7 == 0 else f"text {n}" for n in range(ROWS)])
    lists = pyarrow.array([[{"x": n}] for n in range(ROWS)])
    names = [*IDS, "row", "__acid_0", "__acid_1", "__acid_2"]
    table = pyarrow.Table.from_arrays([*ids(), row, numbers, texts, lists], names)
    return written(table, compression, 1 << 17), texts, lists


def reader(content: Any) -> Any:
    return orc.ORCFile(io.BytesIO(content))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_columns_move_into_the_row(compression: Any) -> None:
    content, texts, lists = flat(compression)
    patched = content + second_tail(content, row=["id", "te xt", "li"], decompress=uncompressed)
    table = reader(patched).read()
    assert table.schema.names == [*IDS, "row"]
    row = table.column("row").combine_chunks()
    assert [field.name for field in row.type] == ["id", "te xt", "li"]
    assert row.null_count == 0
    assert row.field(0).to_pylist() == list(range(ROWS))
    assert row.field(1).to_pylist() == texts.to_pylist()
    assert row.field(2).to_pylist() == lists.to_pylist()
    assert reader(patched).read(columns=["row.te xt"]).num_rows == ROWS
    tail = read_tail(patched, uncompressed)
    assert tail.names() == (*IDS, "row")
    assert tail.statistics(tail.column("row", "id")).maximum == ROWS - 1  # type: ignore[arg-type]
    again = patched + second_tail(patched, properties={"k": b"v"}, decompress=uncompressed)
    assert reader(again).read().equals(table)
    assert reader(again).metadata[b"k" if isinstance(next(iter(reader(again).metadata)), bytes) else "k"] in (b"v", "v")


@pytest.mark.parametrize("names", [["one"], ["a", "b"], ["a", "b", "c", "d"]])
def test_other_columns_are_refused(names: Any) -> None:
    content, *_ = flat("zlib")
    with pytest.raises(FormatError, match="not those"):
        second_tail(content, row=names)


def test_plain_files_are_refused() -> None:
    content = written(pyarrow.table({"a": [1]}), "zlib")
    with pytest.raises(FormatError, match="columns of ACID"):
        second_tail(content, row=["a"])
    with pytest.raises(FormatError, match="bytes, and"):
        second_tail(content[-60:], row=["a"])


@given(st.binary(max_size=300))
def test_bytes_that_are_no_tail_are_refused(content: Any) -> None:
    with pytest.raises(FormatError):
        second_tail(content, row=["a"])


def events(write_ids: Any, stripe_rows: Any) -> Any:
    """A file of events in several stripes."""
    rows = len(write_ids)
    dice = random.Random(7)
    noise = pyarrow.array([dice.randbytes(64) for _ in range(rows)])
    row = pyarrow.StructArray.from_arrays([noise], ["a"])
    table = pyarrow.Table.from_arrays([*ids(rows, write_ids), row], [*IDS, "row"])
    buffer = io.BytesIO()
    with orc.ORCWriter(buffer, compression="uncompressed", stripe_size=1024, batch_size=stripe_rows) as writer:
        for at in range(0, rows, stripe_rows):
            writer.write(table.slice(at, stripe_rows))
    return buffer.getvalue()


def properties(content: Any, *, deletes: Any) -> Any:
    return hive_3_properties(read_tail(content), deletes=deletes)


def test_inserts_end_with_their_last_row() -> None:
    content = events([7] * 12_000, 4_000)
    stripes = [stripe.rows for stripe in read_tail(content).stripes]
    ends = [sum(stripes[: place + 1]) - 1 for place in range(len(stripes))]
    assert len(stripes) > 1
    found = properties(content, deletes=False)
    assert found["hive.acid.key.index"].decode() == "".join(f"7,536870912,{end};" for end in ends)
    assert (found["hive.acid.stats"], found["hive.acid.version"]) == (b"12000,0,0", b"2")
    assert properties(content, deletes=True)["hive.acid.stats"] == b"0,0,12000"


def test_a_key_between_stripes_is_enough() -> None:
    """Where several writes are in a stripe, any key below the next stripe's first one separates them."""
    content = events([1] * 2_000 + [2] * 2_000 + [3] * 4_000, 4_000)
    index = properties(content, deletes=True)["hive.acid.key.index"].decode().rstrip(";").split(";")
    keys = [tuple(map(int, key.split(","))) for key in index]
    assert len(keys) == len(read_tail(content).stripes) > 1
    assert keys == sorted(keys)
    assert keys[-1][0] == 3


def test_a_key_that_the_statistics_do_not_tell_is_refused() -> None:
    content = events([1] * 2_000 + [2] * 6_000, 4_000)
    assert len(read_tail(content).stripes) == 2
    with pytest.raises(FormatError, match="stripe 0"):
        properties(content, deletes=True)
