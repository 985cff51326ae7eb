"""Files as other engines write them: Hive's attempts and streams, Hive before version 3, Trino's deletes."""

import struct
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.format.rows import encode_bucket
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.spark.placed import BUCKET_0, acid_shaped, commit_writes, place, write_events

ROW = pyarrow.struct([("id", pyarrow.int64())])


@pytest.fixture
def at(acid: AcidSession) -> Any:
    """The directory of a table with ten committed writes."""
    acid.create_table("d.t", {"id": "bigint"})
    return commit_writes(acid, "d.t", 10)


def ids(acid: AcidSession) -> Any:
    return sorted(row.id for row in acid.table("d.t").collect())


def inserts(write_id: Any, first: Any, last: Any, bucket: Any = BUCKET_0) -> Any:
    return [(0, write_id, bucket, n - first, write_id, {"id": n}) for n in range(first, last)]


def test_attempts_nested_directories_and_a_missing_marker(acid: AcidSession, at: Any) -> None:
    write_events(at / "delta_0000001_0000001_0000" / "bucket_00000_0", inserts(1, 0, 3), ROW)
    write_events(at / "delta_0000002_0000002_0000" / "HIVE_UNION_SUBDIR_1" / "bucket_00000", inserts(2, 3, 5), ROW)
    write_events(
        at / "delta_0000002_0000002_0000" / "HIVE_UNION_SUBDIR_2" / "bucket_00001",
        inserts(2, 5, 7, encode_bucket(1)),
        ROW,
    )
    assert ids(acid) == list(range(7))
    assert acid.delete("d.t", "id IN (1, 4, 5)") == 3
    assert ids(acid) == [0, 2, 3, 6]


def test_names_of_the_six_columns_in_another_case(acid: AcidSession, at: Any) -> None:
    events = pyarrow.table(
        {
            "operation": pyarrow.array([0, 0], pyarrow.int32()),
            "originaltransaction": pyarrow.array([1, 1], pyarrow.int64()),
            "bucket": pyarrow.array([BUCKET_0] * 2, pyarrow.int32()),
            "rowid": pyarrow.array([0, 1], pyarrow.int64()),
            "currenttransaction": pyarrow.array([1, 1], pyarrow.int64()),
            "row": pyarrow.array([{"ID": 1}, {"ID": 2}], pyarrow.struct([("ID", pyarrow.int64())])),
        }
    )
    (at / "delta_0000001_0000001_0000").mkdir()
    pyarrow.orc.write_table(events, at / "delta_0000001_0000001_0000" / "bucket_00000")
    assert ids(acid) == [1, 2]
    assert acid.table("d.t").count() == 2
    assert acid.delete("d.t", "id = 1") == 1
    assert ids(acid) == [2]


def test_deletes_of_all_buckets_in_the_file_of_bucket_0(acid: AcidSession, at: Any) -> None:
    """As Trino writes them (acid-format.md §2.8)."""
    write_events(at / "delta_0000001_0000001_0000" / "bucket_00000", inserts(1, 0, 3), ROW)
    write_events(at / "delta_0000001_0000001_0000" / "bucket_00001", inserts(1, 3, 6, encode_bucket(1)), ROW)
    gone = [(2, 1, BUCKET_0, 1, 2, None), (2, 1, encode_bucket(1), 0, 2, None), (2, 1, encode_bucket(1), 2, 2, None)]
    write_events(at / "delete_delta_0000002_0000002_0000" / "bucket_00000", gone, ROW)
    assert ids(acid) == [0, 2, 4]
    assert acid.table("d.t").count() == 3


def test_delete_events_without_the_row_column(acid: AcidSession, at: Any) -> None:
    write_events(at / "delta_0000001_0000001_0000" / "bucket_00000", inserts(1, 0, 4), ROW)
    gone = [(2, 1, BUCKET_0, 2, 2)]
    write_events(at / "delete_delta_0000002_0000002_0000" / "bucket_00000", gone, None)  # type: ignore[arg-type]
    assert ids(acid) == [0, 1, 3]


def test_updates_and_deletes_among_the_inserts(acid: AcidSession, spark: SparkSession, at: Any) -> None:
    """As Hive before version 3 writes them: no markers, buckets as they are, no statement ids."""
    write_events(at / "delta_0000001_0000001" / "bucket_00000", inserts(1, 0, 4, 0), ROW)
    write_events(at / "delta_0000001_0000001" / "bucket_00001", inserts(1, 4, 6, 1), ROW)
    changes = [(1, 1, 0, 0, 2, {"id": 100}), (2, 1, 0, 2, 2, None), *inserts(2, 6, 8, 0)]
    write_events(at / "delta_0000002_0000002_0000" / "bucket_00000", changes, ROW)
    again = [(1, 1, 0, 0, 3, {"id": 200}), (2, 1, 0, 3, 3, None), (1, 2, 0, 1, 3, {"id": 70})]
    write_events(at / "delta_0000003_0000003_0000" / "bucket_00000", again, ROW)
    write_events(at / "delta_0000099_0000099_0000" / "bucket_00000", [(2, 1, 0, 1, 99, None)], ROW)
    assert ids(acid) == [1, 4, 5, 6, 70, 200]
    table = acid.table("d.t", row_id=True)
    assert {row.id: tuple(row.ROW__ID) for row in table.collect()}[200] == (1, 0, 0), "an update kept the id"
    with pytest.raises(FormatError, match="merged by a major compaction"):
        compact_table(spark, acid, "d.t", "minor")
    assert acid.delete("d.t", "id IN (4, 200)") == 2
    assert ids(acid) == [1, 5, 6, 70]
    compact_table(spark, acid, "d.t", "major")
    assert ids(acid) == [1, 5, 6, 70]
    assert acid.update("d.t", {"id": "id + 1"}, "id = 70") == 1
    assert ids(acid) == [1, 5, 6, 71]


def test_files_of_streams(acid: AcidSession, spark: SparkSession, at: Any) -> None:
    """A batch of writes 3 to 6 in one file, of which 3 and 4 have committed and 5 and 6 have been aborted."""
    batch = at / "delta_0000003_0000006"
    batch.mkdir()
    place(acid_shaped(spark.range(0, 50, 1, 1), 3), batch / "bucket_00000")
    size = (batch / "bucket_00000").stat().st_size
    side = batch / "bucket_00000_flush_length"
    side.write_bytes(struct.pack(">qq", 100, size))
    assert ids(acid) == list(range(50)), "all is flushed"
    (batch / "bucket_00001").write_bytes(b"ORC")
    (batch / "bucket_00001_flush_length").write_bytes(b"")
    (batch / "bucket_00002").write_bytes(b"")
    assert ids(acid) == list(range(50)), "nothing is flushed in the others"
    with (batch / "bucket_00000").open("ab") as file:
        file.write(b"a stripe that is being written")
    with pytest.raises(UnsupportedTableError, match=f"{size} of its {size + 30} bytes are complete"):
        acid.table("d.t")
    place(acid_shaped(spark.range(0, 60, 1, 1), 3), batch / "bucket_00000")
    assert ids(acid) == list(range(60)), "closed: the length beside it is an old one"
    side.unlink()
    (batch / "bucket_00001").unlink()
    (batch / "bucket_00001_flush_length").unlink()
    assert ids(acid) == list(range(60))
    assert acid.delete("d.t", F.col("id") >= 10) == 50
    assert ids(acid) == list(range(10))


def test_files_that_must_not_be_there(acid: AcidSession, spark: SparkSession, at: Any) -> None:
    directory = at / "delta_0000001_0000001_0000"
    write_events(directory / "bucket_00000", inserts(1, 0, 1), ROW)
    place(spark.range(2), directory / "000000_0")
    with pytest.raises(UnsupportedTableError, match="as all files beside it have"):
        acid.table("d.t")
    directory.rename(at / "delta_0000001_0000002")
    (at / "delta_0000001_0000002" / "bucket_00000").unlink()
    with pytest.raises(UnsupportedTableError, match="which of the writes"):
        acid.table("d.t")


FRACTIONS = (0, 1, 999, 1_000, 1_001, 500_000, 998_999, 999_000, 999_001, 999_999)
MOMENTS = [
    # Before 1970 pyarrow has no fractions that others read.
    *(second * 1_000_000 for second in range(-40, 0)),
    *(second * 1_000_000 + fraction for second in range(3) for fraction in FRACTIONS),
]
DAYS = range(-141_470, -141_470 + len(MOMENTS))
"""From 1582-09-02 to 11-10 in a calendar without a gap."""


def stored(directories: Any) -> Any:
    """What pyarrow reads of the rows in the files of some directories, by id."""
    rows: dict[Any, Any] = {}
    for directory in directories:
        for path in () if directory.name.startswith("delete") else directory.glob("bucket_*"):
            rows |= {row.pop("id"): row for row in pyarrow.orc.read_table(path).column("row").to_pylist()}
    return {number: {name: value for name, value in row.items() if name != "v"} for number, row in rows.items()}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("change", ["minor", "major", "update", "update by Spark", "merge"])
def test_days_and_times_at_the_edges_stay_as_others_have_stored_them(
    acid: AcidSession, spark: SparkSession, change: Any, nested: Any, request: pytest.FixtureRequest
) -> None:
    """Java's writer cannot store all of them, but its reader never gives those; so they are rewritten as they were.

    Days are numbers in a file, and those that two calendars share no name for are others to Spark than to their writer.
    """
    inner = pyarrow.struct([("at", pyarrow.timestamp("us")), ("day", pyarrow.date32())])
    fields = [("id", pyarrow.int64()), ("v", pyarrow.int64()), *((of.name, of.type) for of in inner)]
    columns = {"id": "bigint", "v": "bigint", "at": "timestamp", "day": "date"}
    if nested:
        fields.append(("pairs", pyarrow.list_(inner)))
        columns["pairs"] = "array<struct<at:timestamp,day:date>>"
    acid.create_table("d.t", columns)
    at = commit_writes(acid, "d.t", 2)
    moments = pyarrow.array(MOMENTS, pyarrow.timestamp("us")).to_pylist()
    days = pyarrow.array(DAYS, pyarrow.int32()).cast(pyarrow.date32()).to_pylist()
    events = []
    for n, (moment, day) in enumerate(zip(moments, days, strict=True)):
        row = {"id": n, "v": 0, "at": moment, "day": day} | ({"pairs": [{"at": moment, "day": day}]} if nested else {})
        events.append((0, 1 + n % 2, BUCKET_0, n // 2, 1 + n % 2, row))
    for write in (1, 2):
        of_write = [event for event in events if event[1] == write]
        write_events(at / f"delta_000000{write}_000000{write}_0000" / "bucket_00000", of_write, pyarrow.struct(fields))

    def seen() -> Any:
        frame = acid.table("d.t").selectExpr("id", "unix_micros(at)", "unix_date(day)", "* EXCEPT (id, v, at, day)")
        return sorted(map(str, frame.collect()))

    before = {*at.iterdir()}
    seen_before, stored_before = seen(), stored(before)
    assert len(seen_before) == len(stored_before) == len(MOMENTS)
    if change == "update by Spark":
        request.getfixturevalue("written_by_spark")
    if change in ("minor", "major"):
        acid.delete("d.t", "id = 0")
        del seen_before[0], stored_before[0]
        assert compact_table(spark, acid, "d.t", change)
    elif change == "merge":
        every = acid.table("d.t").selectExpr("id", "1L AS v")
        assert acid.merge("d.t", every, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute().updated
    else:
        assert acid.update("d.t", {"v": "1"}, "v = 0") == len(MOMENTS)
    assert seen() == seen_before
    stored_now = stored({*at.iterdir()} - before)
    assert {number: stored_now[number] for number in stored_before} == stored_before
