"""The output of a compaction, looked into: tails of real ORC files."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from hive_acid.errors import FormatError
from hive_acid.format.orc.file import empty_acid_file
from metastore.compaction.worker.output import check_output, check_tails

BUCKET_0 = 536870912
BASE = "base_0000003_v0000004"


def write(staging: Path, keys: list[tuple[int, int, int]], bucket: int = 0) -> Path:
    (staging / BASE).mkdir(exist_ok=True)
    noise = random.Random(7)
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
    columns = [
        pa.array([0] * len(keys), pa.int32()),
        *(pa.array([key[at] for key in keys], kind) for at, kind in enumerate([pa.int64(), pa.int32(), pa.int64()])),
        pa.array([key[0] for key in keys], pa.int64()),
        pa.array([{"x": noise.randbytes(64)} for _ in keys], pa.struct([("x", pa.binary())])),
    ]
    path = staging / BASE / f"bucket_{bucket:05}"
    table = pa.table(columns, names)
    with orc.ORCWriter(path, compression="uncompressed", stripe_size=1024, batch_size=5000) as writer:
        for first in range(0, len(keys), 5000):
            writer.write(table.slice(first, 5000))
    return path


def rising(rows: int, property_: int = BUCKET_0) -> list[tuple[int, int, int]]:
    return [(1 + at // 9000, property_, at) for at in range(rows)]


def test_sorted_files_of_their_buckets(tmp_path: Path) -> None:
    path = write(tmp_path, rising(30_000))
    assert orc.ORCFile(path).nstripes > 2
    write(tmp_path, rising(10, BUCKET_0 + (1 << 16)), bucket=1)
    (tmp_path / BASE / "bucket_00002").write_bytes(empty_acid_file([("x", "bigint")]))
    check_tails(str(tmp_path), [BASE], 30_010, "zlib")
    with pytest.raises(FormatError, match="30011 rows and delete events, and 30010 are there"):
        check_tails(str(tmp_path), [BASE], 30_011, "zlib")


@pytest.mark.parametrize(
    ("keys", "bucket", "reason"),
    [
        (list(reversed(rising(30_000))), 0, "come before rows of the stripe above"),
        ([*rising(30_000), (1, BUCKET_0, 7)] * 2, 0, "come before rows of the stripe above"),
        (rising(10), 1, "rows of bucket 0 lie"),
        ([*rising(10), (9, BUCKET_0 + (2 << 16), 0)], 0, "rows of bucket 2 lie"),
    ],
)
def test_files_in_disorder(tmp_path: Path, keys: list[tuple[int, int, int]], bucket: int, reason: str) -> None:
    write(tmp_path, keys, bucket)
    with pytest.raises(FormatError, match=reason):
        check_tails(str(tmp_path), [BASE], len(keys), "zlib")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, rising(10)).write_bytes(b"no ORC file at all")
    with pytest.raises(FormatError, match="no ORC file"):
        check_tails(str(tmp_path), [BASE], 10, "zlib")


def test_insert_only_files_have_names_of_hives(tmp_path: Path) -> None:
    (tmp_path / BASE).mkdir()
    with pytest.raises(FormatError, match="without any file"):
        check_output(str(tmp_path), [BASE], insert_only=True)
    (tmp_path / BASE / "000000_0.gz").write_bytes(b"")
    check_output(str(tmp_path), [BASE], insert_only=True)
    (tmp_path / BASE / "part-00000").write_bytes(b"")
    with pytest.raises(FormatError, match="part-00000"):
        check_output(str(tmp_path), [BASE], insert_only=True)
