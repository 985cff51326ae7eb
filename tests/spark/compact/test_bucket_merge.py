"""Compactions bucket by bucket, without shuffle and sort: what is written, what is kept, and in which order."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import FormatError
from hive_acid.filesystem.footers import DataFilePath, Footers
from hive_acid.format.orc.join import orc_part
from hive_acid.format.orc.patch import second_tail
from hive_acid.spark import AcidSession
from hive_acid.spark.compact import bucket_merge, stripe_concatenation
from hive_acid.spark.compact.file_order import out_of_order
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.read_plan import DeleteFacts
from hive_acid.spark.read.deleted import Deleted
from hive_acid.spark.write.stage import SparkStaging
from tests.spark.by_spark import MERGED, limited
from tests.spark.checker import check_table, events, location_of
from tests.spark.compact.rows import COLUMNS, content, insert
from tests.spark.compaction import compact_table
from tests.spark.placed import BUCKET_0, commit_writes, write_events


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The numbers of the files of each compaction that were looked at afterwards, whether they are in order."""
    numbers = []

    def look(paths: Any) -> Any:
        numbers.append(len(paths))
        return out_of_order(paths)

    monkeypatch.setattr(stripe_concatenation, "out_of_order", look)
    return numbers


@pytest.fixture
def by_bucket(acid: AcidSession, looked: Any) -> Iterator[Any]:
    """Spark writes every compaction bucket by bucket; as `looked`."""
    with limited(acid, **MERGED, by_bucket_bytes=-1, runs_per_job=2):
        yield looked


@pytest.fixture(params=["by_arrow", "by_bucket"])
def by_either(request: pytest.FixtureRequest, looked: Any) -> Any:
    """Compactions go bucket by bucket, by pyarrow or by Spark; as `looked`."""
    if request.param == "by_bucket":
        request.getfixturevalue("by_bucket")
    return looked


@pytest.fixture
def joined(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs are as short as can be; the numbers of the segments that became one file."""
    numbers = []
    acid.limits = replace(acid.limits, run_bytes=1, runs=1000)

    def join(of_bucket: Any, target: Any) -> Any:
        numbers.append(len(of_bucket))
        return stripe_concatenation.concatenate(of_bucket, target)

    monkeypatch.setattr(bucket_merge, "concatenate", join)
    return numbers


@pytest.mark.parametrize("kinds", [["minor", "major"], ["major"]])
def test_bucket_by_bucket_the_same_rows_have_the_same_ids(
    three_buckets: Any, spark: SparkSession, by_either: Any, kinds: Any
) -> None:
    before = content(three_buckets)
    old = three_buckets.table("d.t", row_id=True)
    for kind in kinds:
        (result,) = compact_table(spark, three_buckets, "d.t", kind)
        assert content(three_buckets) == before
        check_table(location_of(three_buckets, "d.t"))
        assert result.input_bytes > 0
    assert sum(by_either) == 3 * len(kinds), "each bucket's file was written, and looked at"
    assert sorted(map(str, old.collect())) == before
    three_buckets.delete("d.t", "id = 1")
    assert len(content(three_buckets)) == len(before) - 1


@pytest.mark.parametrize("kinds", [["minor", "major"], ["major"]])
def test_a_bucket_in_pieces_becomes_one_file(
    three_buckets: Any, spark: SparkSession, by_either: Any, joined: Any, kinds: Any
) -> None:
    before = content(three_buckets)
    old = three_buckets.table("d.t", row_id=True)
    for kind in kinds:
        (result,) = compact_table(spark, three_buckets, "d.t", kind)
        assert content(three_buckets) == before
        check_table(location_of(three_buckets, "d.t"))
        assert result.files == 3 + (kind == "minor") * len(
            list(location_of(three_buckets, "d.t").glob("delete_delta_*_v*/bucket_*"))
        )
    assert joined, "some bucket had several segments"
    assert sum(by_either) > 3
    assert sorted(map(str, old.collect())) == before
    assert three_buckets.table("d.t").where("id = 205").count() == 1, (
        "row groups are found by the statistics of the join"
    )
    assert not list(location_of(three_buckets, "d.t").rglob("joined"))
    three_buckets.delete("d.t", "id = 1")
    assert len(content(three_buckets)) == len(before) - 1


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_segments_of_one_bucket_have_all_types_and_their_statistics(
    acid: AcidSession, spark: SparkSession, by_bucket: Any, joined: Any, kind: Any
) -> None:
    columns = {
        "id": "bigint", "b": "boolean", "i": "int", "d": "double", "f": "float", "s": "string", "dec": "decimal(20,4)",
        "day": "date", "t": "timestamp", "bin": "binary", "li": "array<int>", "m": "map<string,int>",
        "st": "struct<x:int,y:string>",
    }  # fmt: skip
    acid.create_table("d.t", columns)
    values = (
        "id", "id % 2 = 0 b", "if(id % 9 = 0, null, int(id)) i", "if(id = 70, double('nan'), id / 7) d",
        "float(-id) f", "repeat(string(id), 700) s", "cast(id / 3 AS decimal(20,4)) dec",
        "date_add(date'1969-01-01', int(id)) day", "timestamp_micros(id * 1000000007 + 5) t",
        "cast(string(id) AS binary) bin", "sequence(0, int(id % 4)) li", "map(string(id), int(id)) m",
        "named_struct('x', int(id), 'y', if(id % 3 = 0, null, 'y')) st",
    )  # fmt: skip
    for first in (0, 60, 120):
        acid.insert("d.t", spark.range(first, first + 60, 1, 1).selectExpr(*values))
    acid.delete("d.t", "id % 10 = 3")
    before = content(acid)
    whole = {name: orc_bounds(location_of(acid, "d.t"), "delta_*", name) for name in ("id", "s", "dec", "day", "t")}
    compact_table(spark, acid, "d.t", kind)
    assert joined == [3]
    assert content(acid) == before
    check_table(location_of(acid, "d.t"))
    made = "base_*" if kind == "major" else "delta_*_v*"
    for name, bounds in whole.items():
        assert orc_bounds(location_of(acid, "d.t"), made, name) == bounds
    assert acid.table("d.t").where("t > timestamp'1970-01-03'").count() == 6
    assert acid.table("d.t").where("id BETWEEN 100 AND 109").count() == 9


@pytest.fixture
def kept(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, by_bucket: Any) -> Any:
    """Files stay as they are whatever the size of their stripes; the files that Spark has written."""
    written: list[Any] = []
    acid.limits = replace(acid.limits, kept_stripe_bytes=0, bucket_bytes=0)
    paths = SparkStaging.paths

    def told(staging: Any, step: Any) -> Any:
        found = paths(staging, step)
        written.extend(path.path for path in found)
        return found

    monkeypatch.setattr(SparkStaging, "paths", told)
    return written


def test_files_of_which_all_rows_stay_are_not_written_again(
    acid: AcidSession, spark: SparkSession, kept: Any, by_bucket: Any
) -> None:
    acid.create_table("d.t", COLUMNS)
    for first in (0, 100, 200):
        insert(acid, spark, first, 100, files=3)
    acid.delete("d.t", "id % 10 = 0")
    before, old = content(acid), acid.table("d.t", row_id=True)
    (result,) = compact_table(spark, acid, "d.t", "minor")
    assert not kept
    assert (result.rows, result.deletes) == (300, 30)
    assert by_bucket == [9], "that they are in order is looked at all the same"
    state = check_table(location_of(acid, "d.t"))
    assert sorted(len(found) for name, found in state.items() if name.startswith("delta_") and "_v" in name) == [3]
    assert content(acid) == sorted(map(str, old.collect())) == before
    assert acid.table("d.t").where("id = 205").count() == 1
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert kept, "now rows have to go"
    assert result.rows == 270
    assert content(acid) == before
    kept.clear()
    insert(acid, spark, 300, 50)
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert not kept
    assert result.rows == 320
    assert content(acid) == before
    check_table(location_of(acid, "d.t"))


def test_only_files_with_deleted_rows_are_written_again(acid: AcidSession, spark: SparkSession, kept: Any) -> None:
    acid.create_table("d.t", COLUMNS)
    for first in (0, 100, 200, 300):
        insert(acid, spark, first, 100)
    acid.delete("d.t", "id IN (110, 310)")
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert result.rows == 398
    assert len(kept) == 2
    assert content(acid) == before
    check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("kinds", [["minor", "major"], ["major"]])
def test_a_history_with_files_that_are_kept(three_buckets: Any, spark: SparkSession, kept: Any, kinds: Any) -> None:
    before = content(three_buckets)
    old = three_buckets.table("d.t", row_id=True)
    for kind in kinds:
        compact_table(spark, three_buckets, "d.t", kind)
        assert content(three_buckets) == before
        check_table(location_of(three_buckets, "d.t"))
    assert sorted(map(str, old.collect())) == before


def test_files_of_another_kind_are_written_again(acid: AcidSession, spark: SparkSession, kept: Any) -> None:
    """Of fewer columns, of another compression, of another writer; and what aborted writes have left is not kept."""
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 10)
    with hive_acid.spark.session(spark, acid.connection.uri, compression="snappy") as other:
        insert(other, spark, 10, 10)
    acid.sql("ALTER TABLE d.t ADD COLUMNS (more int)")
    acid.insert("d.t", spark.range(20, 30).selectExpr("int(id) id", "'m' name", "1 more"))
    acid.insert("d.t", spark.range(30, 40).selectExpr("int(id) id", "'m' name", "2 more"))
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "minor")
    assert len(kept) == 1
    assert (result.rows, content(acid)) == (40, before)
    check_table(location_of(acid, "d.t"))


def test_files_that_cannot_be_joined_are_written_again(
    acid: AcidSession, spark: SparkSession, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 10)
    insert(acid, spark, 10, 10)
    before = content(acid)
    monkeypatch.setattr(stripe_concatenation, "orc_part", cannot_be_joined_at_first(orc_part))
    (result,) = compact_table(spark, acid, "d.t", "minor")
    assert kept
    assert (result.rows, content(acid)) == (20, before)


def cannot_be_joined_at_first(orc_part: Any) -> Any:
    """As `orc_part`, which says of the first file that it is encrypted."""
    calls = []

    def part(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise FormatError("this ORC file is encrypted")
        return orc_part(*args)

    return part


def test_files_of_another_writer_are_found_out_in_time(
    acid: AcidSession, spark: SparkSession, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They say the same of their types, but something else of themselves."""
    acid.create_table("d.t", COLUMNS)
    for first in (0, 10, 20):
        insert(acid, spark, first, 10)
    path = location_of(acid, "d.t") / "delta_0000002_0000002_0000" / "bucket_00000"
    end = path.read_bytes()
    (path.parent / ".bucket_00000.crc").unlink(missing_ok=True)
    path.write_bytes(end + second_tail(end, properties={"writer": b"another"}))
    acid.delete("d.t", "id = 25")
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "minor")
    assert result.rows == 30
    assert len(kept) == 1, "two kinds are known before anything is written, and the one of two files stays"
    assert content(acid) == before
    kept.clear()
    (base,) = (location_of(acid, "d.t")).glob("delta_*_v*")
    end = (base / "bucket_00000").read_bytes()
    (base / "bucket_00000").write_bytes(end + second_tail(end, properties={"writer": b"another"}))
    insert(acid, spark, 30, 10)
    acid.delete("d.t", "id = 35")
    insert(acid, spark, 40, 10)
    monkeypatch.setattr(bucket_merge, "deleted_rows", lambda *_: Deleted(DeleteFacts(), [{(5, 536870912): {}}]))
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert result.rows == 48
    check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("read_here", [True, False])
def test_delete_events_are_merged(acid: AcidSession, spark: SparkSession, read_here: Any) -> None:
    """Of the events of one row the first stays, whoever merges them; and each keeps the write that it is of."""
    if not read_here:
        acid.limits = Limits(delete_events=0)
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 50, files=2)
    insert(acid, spark, 50, 50)
    acid.delete("d.t", "id % 10 = 3")
    acid.update("d.t", {"name": "'u'"}, "id % 20 = 5")
    acid.delete("d.t", "id % 20 = 5")
    location = location_of(acid, "d.t")
    with acid.connection.begin() as transaction:
        assert transaction.write_id("d", "t") == 6
    again = location / "delete_delta_0000006_0000006_0000"
    (first,) = location.glob("delete_delta_0000003_*")
    shutil.copytree(first, again, ignore=shutil.ignore_patterns(".*"))
    for path in again.glob("bucket_*"):
        found = orc.ORCFile(path).read()
        same = [*range(found.num_rows)]
        columns = [found.column(name) for name in found.column_names]
        columns[found.column_names.index("currentTransaction")] = pa.array([6 for _ in same], pa.int64())
        orc.write_table(pa.table(columns, found.column_names), path)
    old = [
        (event.key, event.current_write_id)
        for path in sorted(location.glob("delete_delta_*/bucket_*"))
        for event in events(path)
    ]
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "minor")
    made = [
        (event.key, event.current_write_id)
        for path in sorted(location.glob("delete_delta_*_v*/bucket_*"))
        for event in events(path)
    ]
    assert dict(made) == {key: min(by for other, by in old if other == key) for key, _ in old}
    assert result.deletes == len(made) < len(old)
    assert content(acid) == before
    check_table(location)


@pytest.mark.parametrize("read_here", [True, False])
def test_events_of_aborted_writes_are_left_out(acid: AcidSession, spark: SparkSession, read_here: Any) -> None:
    """Those of a directory that has committed ones as well."""
    if not read_here:
        acid.limits = Limits(delete_events=0)
    acid.create_table("d.t", COLUMNS)
    location = commit_writes(acid, "d.t", 3, aborted=[2])
    row = pa.struct([("id", pa.int32()), ("name", pa.string())])
    rows = [(0, 1, BUCKET_0, number, 1, {"id": number, "name": "n"}) for number in range(10)]
    gone = [(2, 1, BUCKET_0, 3, 3, None), (2, 1, BUCKET_0, 4, 2, None), (2, 1, BUCKET_0, 5, 3, None)]
    for name, found in (("delta_0000001_0000001_0000", rows), ("delete_delta_0000002_0000003", gone)):
        write_events(location / name / "bucket_00000", found, row)
        (location / name / "_orc_acid_version").write_text("2")
    acid.delete("d.t", "id = 7")
    before = content(acid)
    assert len(before) == 7
    (result,) = compact_table(spark, acid, "d.t", "minor")
    assert (result.deletes, content(acid)) == (3, before)
    (made,) = location.glob("delete_delta_*_v*")
    assert [event.key.row_id for event in events(made / "bucket_00000")] == [3, 5, 7]


def orc_bounds(location: Any, pattern: Any, name: Any) -> Any:
    """The least minimum and the greatest maximum of a column that files state."""
    paths = [path for found in location.glob(pattern) for path in found.glob("bucket_*")]
    tails = Footers().read([DataFilePath(str(path), path.stat().st_size) for path in paths])
    found = [tail.statistics(tail.column("row", name)) for tail in tails]  # type: ignore[arg-type]
    return min(of.minimum for of in found), max(of.maximum for of in found)  # type: ignore[type-var]


def test_files_that_are_not_sorted_are_sorted_in_the_end(
    acid: AcidSession, spark: SparkSession, by_either: Any
) -> None:
    """Another writer has broken the rule that the way without a sort depends on: its file's rows stand backwards."""
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 50)
    insert(acid, spark, 50, 50)
    before = content(acid)
    path = location_of(acid, "d.t") / "delta_0000001_0000001_0000" / "bucket_00000"
    backwards = orc.ORCFile(path).read().sort_by([("rowId", "descending")])
    (path.parent / ".bucket_00000.crc").unlink(missing_ok=True)
    orc.write_table(backwards, path)
    assert out_of_order([str(path)]) == [str(path)]
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert by_either == [1]
    (base,) = location_of(acid, "d.t").glob("base_*")
    keys = [event.key for event in events(base / "bucket_00000")]
    assert keys == sorted(keys)
    assert len(keys) == result.rows == 100
    assert content(acid) == before


def test_order_is_looked_at_from_stripe_to_stripe(tmp_path: Path) -> None:
    noise = random.Random(7)

    def write(name: Any, keys: Any) -> Any:
        columns = [[key[place] for key in keys] for place in range(3)]
        names = ["originalTransaction", "bucket", "rowId"]
        types = [pa.int64(), pa.int32(), pa.int64()]
        bulk = pa.array([noise.randbytes(64) for _ in keys], pa.binary())
        table = pa.table([*(pa.array(c, t) for c, t in zip(columns, types, strict=True)), bulk], [*names, "bulk"])
        with orc.ORCWriter(tmp_path / name, compression="uncompressed", stripe_size=1024, batch_size=5000) as writer:
            for first in range(0, max(1, len(keys)), 5000):
                writer.write(table.slice(first, 5000))
        return str(tmp_path / name)

    rising = [(1 + n // 3000, 536870912 + n // 1500 % 2, n) for n in range(20_000)]
    swapped = rising.copy()
    swapped[12_345], swapped[12_346] = swapped[12_346], swapped[12_345]
    doubled = [*rising[:700], rising[699], *rising[700:]]
    good = [write("rising", rising), write("one", rising[:1]), write("none", [])]
    bad = [write("swapped", swapped), write("doubled", doubled), write("late", [*rising, rising[0]])]
    assert orc.ORCFile(good[0]).nstripes > 1
    assert out_of_order([*good, *bad]) == bad
