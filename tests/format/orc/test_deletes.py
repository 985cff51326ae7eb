"""Delete events as files, read by an ORC library and by the reader of tails."""

import random
from typing import Any

import pyarrow
import pytest
from pyarrow import orc

from hive_acid.errors import FormatError
from hive_acid.format.orc.deletes import DeleteEvents, delete_file, told_runs
from hive_acid.format.orc.patch import second_tail
from hive_acid.format.orc.tail import read_tail
from hive_acid.format.rows import decode_bucket, encode_bucket

COLUMNS = [
    ("a", "int"),
    ("b", "STRING"),
    ("c", "decimal(12, 3)"),
    ("d", "varchar(5)"),
    ("e", "map<string,array<struct<x:int,y:timestamp>>>"),
    ("f", "char(2)"),
    *((kind, kind) for kind in ("boolean", "tinyint", "smallint", "bigint", "float", "double", "binary", "date")),
    ("g", "timestamp with local time zone"),
]
IDS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")


def events(content: Any) -> Any:
    """The five ids of each event; the row of each is null."""
    table = orc.ORCFile(pyarrow.BufferReader(content)).read()
    assert table.column("row").null_count == table.num_rows
    return list(zip(*(table.column(name).to_pylist() for name in IDS), strict=True))


def by(write_id: Any, keys: Any) -> Any:
    return DeleteEvents(*map(list, zip(*keys, strict=True)), [write_id] * len(keys))  # type: ignore[call-arg]


def some_keys(random_: Any, count: Any, kind: Any) -> Any:
    """Keys in order: of one source, of several, and such as need all bits."""
    write_ids = [3] if kind == 0 else [0, 1, 3, 1 << 40]
    buckets = [encode_bucket(bucket, statement) for bucket in range(3 if kind else 1) for statement in range(2)]
    bits = random_.choice([62, 40]) if kind == 2 else 20
    keys = {
        (random_.choice(write_ids), random_.choice(buckets[: 1 + kind]), random_.getrandbits(bits))
        for _ in range(count)
    }
    return sorted(keys)


@pytest.mark.parametrize("compression", ["zlib", "none"])
@pytest.mark.parametrize("kind", range(3))
def test_an_ordinary_reader_finds_the_events(compression: str, kind: int) -> None:
    random_ = random.Random(kind)
    for count in (1, 2, 3, 9, 511, 512, 513, 1025, 9_999, 10_000, 10_001, 20_500):
        keys = some_keys(random_, count, kind)
        content = delete_file(COLUMNS, by(77, keys), compression)
        assert events(content) == [(2, *key, 77) for key in keys], count
    # Rows that follow each other, as those of a whole table do.
    keys = [(1, encode_bucket(0), row) for row in range(25_000)]
    content = delete_file(COLUMNS, by(2, keys), compression)
    assert events(content) == [(2, *key, 2) for key in keys]
    assert len(content) < 10_000


def test_what_the_tail_says() -> None:
    keys = [(1, encode_bucket(0), 5), (1, encode_bucket(1), 3), (4, encode_bucket(0), 9)]
    content = delete_file(COLUMNS, by(7, keys), "zlib")
    tail = read_tail(content)
    assert (tail.rows, tail.compression, tail.row_index_stride) == (3, "zlib", 10_000)
    assert tail.user_metadata == {
        "hive.acid.key.index": b"4,536870912,9;",
        "hive.acid.stats": b"0,0,3",
        "hive.acid.version": b"2",
    }
    assert [tail.hive_type(column) for column in tail.types[tail.column("row")].children[:4]] == [  # type: ignore[index]
        "int",
        "string",
        "decimal(12,3)",
        "varchar(5)",
    ]
    for which in (tail.statistics, lambda column: tail.stripe_statistics(0, column)):
        bounds = [(which(tail.column(name)).minimum, which(tail.column(name)).maximum) for name in IDS]  # type: ignore[arg-type]
        assert bounds == [(2, 2), (1, 4), (encode_bucket(0), encode_bucket(1)), (3, 9), (7, 7)]
        assert which(tail.column("row")).has_null  # type: ignore[arg-type]
    # A second tail, as other files get one, fits behind it.
    assert events(content + second_tail(content, properties={"more": b"x"})) == [(2, *key, 7) for key in keys]
    (stripe,) = tail.stripes
    assert (stripe.offset, stripe.rows) == (3, 3)


def test_events_of_several_writes() -> None:
    found = [(1, encode_bucket(0), row, 9 - row % 5) for row in range(1200)]
    content = delete_file(COLUMNS, DeleteEvents(*zip(*found, strict=True)), "zlib")
    assert events(content) == [(2, *event) for event in found]


def test_events_go_into_the_file_of_their_bucket() -> None:
    """Also those of rows that several statements of one transaction wrote into it."""
    of_one = by(7, [(1, encode_bucket(3, statement), row) for statement in range(2) for row in range(5)])
    assert of_one.by_bucket() == {3: of_one}
    keys = [(write_id, encode_bucket(b, b % 2), row) for write_id in (1, 4) for b in (0, 2, 1) for row in range(9)]
    assert by(7, keys).by_bucket() == {
        bucket: by(7, [key for key in keys if decode_bucket(key[1])[0] == bucket]) for bucket in range(3)
    }


def test_what_is_no_type() -> None:
    with pytest.raises(FormatError, match="is not a type"):
        delete_file([("a", "foo")], by(2, [(1, encode_bucket(0), 0)]), "zlib")


def some_runs(random_: Any) -> Any:
    """Rows one after the other, of several sources, between which others are left."""
    found = []
    for write_id in range(1, random_.randint(2, 4)):
        for bucket in (encode_bucket(0, 0), encode_bucket(1, 3)):
            begin = 0
            for _ in range(random_.randint(0, 3)):
                begin += random_.randint(0, 30)
                length = random_.choice([1, 2, 511, 512, 513, 9_999, 10_000, 10_001, 25_000])
                found.append((write_id, bucket, range(begin, begin + length)))
                begin += length + 1
    return found or [(1, encode_bucket(0, 0), range(3))]


@pytest.mark.parametrize("seed", range(8))
def test_runs_are_written_as_their_events_are(seed: int) -> None:
    random_ = random.Random(seed)
    runs = some_runs(random_)
    keys = sorted((write_id, bucket, row_id) for write_id, bucket, ids in runs for row_id in ids)
    found, single = DeleteEvents.of_runs(runs, 77), by(77, keys)
    assert len(found) == len(single)
    assert found.runs() == single.runs() == runs_in_order(runs)
    assert [list(column) for column in found.columns] == [list(column) for column in single.columns]
    buckets = single.by_bucket()
    assert found.by_bucket().keys() == buckets.keys()
    for number, of_bucket in found.by_bucket().items():
        content = delete_file(COLUMNS, of_bucket, random_.choice(["zlib", "none"]))
        assert events(content) == [(2, *key, 77) for key in zip(*buckets[number].columns[:3], strict=True)]
        tail = read_tail(content)
        assert told_runs(tail.user_metadata, tail.rows) == (of_bucket.runs(), 77)
        assert told_runs(tail.user_metadata, tail.rows + 1) is None
        assert told_runs({}, tail.rows) is None


def runs_in_order(runs: Any) -> Any:
    return sorted(runs, key=lambda run: (*run[:2], run[2].start))


def test_a_million_events_of_a_run_are_few_bytes() -> None:
    whole = delete_file(COLUMNS, DeleteEvents.of_runs([(5, encode_bucket(0, 0), range(1_000_000))], 6), "zlib")
    assert len(whole) < 100_000
    many = DeleteEvents.of_runs([(5, encode_bucket(0, 0), range(at, at + 1)) for at in range(0, 4_000, 2)], 6)
    tail = read_tail(delete_file(COLUMNS, many, "zlib"))
    assert tail.rows == 2_000
    assert told_runs(tail.user_metadata, tail.rows) is None
    assert told_runs({"hive-acid.deleted.runs": b"6;5,x,0,1"}, 2) is None
