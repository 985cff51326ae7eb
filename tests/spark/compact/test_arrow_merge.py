"""What pyarrow merges: the same rows with the same ids as by Spark, and nothing that it does not keep as it is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath, Footers
from hive_acid.format.deletion_bitmap import bitmaps_of
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark import AcidSession
from hive_acid.spark.compact import arrow_merge
from hive_acid.spark.compact.arrow_merge import ArrowMerge, _without
from hive_acid.spark.compact.bucket_merge_plan import BucketMergePlan, Run
from hive_acid.spark.compact.jobs import CancelledError
from hive_acid.spark.limits import Limits
from tests.spark.by_spark import MERGED, WRITTEN, limited
from tests.spark.checker import check_table, events, location_of
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT
from tests.spark.placed import BUCKET_0, commit_writes, write_events

COLUMNS = {"id": "int", "name": "string"}
ROW = pa.struct([("id", pa.int32()), ("name", pa.string())])
ALL_WRITES = ValidWriteIdList.parse("d.t:100:100::")


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What pyarrow has written for each merge that was left to it: the number of files, None if it could not."""
    numbers = []
    written = ArrowMerge.written

    def told(merge: Any, plans: Any, directory: Any) -> Any:
        found = written(merge, plans, directory)
        numbers.append(None if found is None else len(found))
        return found

    monkeypatch.setattr(ArrowMerge, "written", told)
    return numbers


def insert(acid: AcidSession, spark: SparkSession, first: Any, rows: Any, files: Any = 1) -> None:
    frame = spark.range(first, first + rows, 1, files).selectExpr("int(id) id", "concat('n', id) name")
    acid.insert("d.t", frame.repartition(files) if files > 1 else frame)


def content(acid: AcidSession, name: Any = "d.t") -> Any:
    columns = acid.connection.table(*name.split(".")).columns
    # Bytes are no text: a client of Spark Connect would not take them for one.
    texts = [f"{'hex' if of.type == 'binary' else 'string'}(`{of.name}`) `{of.name}`" for of in columns]
    return sorted(map(str, acid.table(name, row_id=True).selectExpr("row__id", *texts).collect()))


def made(acid: AcidSession, kind: Any = "major", name: Any = "d.t") -> Any:
    """The files of the last compaction."""
    pattern = "base_*_v*/bucket_*" if kind == "major" else "delta_*_v*/bucket_*"
    return sorted(location_of(acid, name).glob(pattern))


def is_of_cpp(path: Any) -> Any:
    return orc.ORCFile(path).writer == "ORC_CPP"


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_both_write_the_same_events(acid: AcidSession, spark: SparkSession, merged: Any, kind: Any) -> None:
    """Of three buckets with updates, deletes and statements of one write."""
    found = []
    for name in ("a", "b"):
        acid.create_table(f"d.{name}", COLUMNS)
        for first in (0, 100, 200):
            frame = spark.range(first, first + 100, 1, 3).selectExpr("int(id) id", "concat('n', id) name")
            acid.insert(f"d.{name}", frame)
        acid.update(f"d.{name}", {"name": "'u'"}, "id % 10 = 0")
        acid.delete(f"d.{name}", "id % 7 = 0")
        with acid.transaction():
            acid.insert(f"d.{name}", spark.createDataFrame([(300, "x"), (301, None)], "id int, name string"))
            acid.insert(f"d.{name}", spark.createDataFrame([(302, "y")], "id int, name string"))
            acid.delete(f"d.{name}", "id = 301")
        before, old = content(acid, f"d.{name}"), acid.table(f"d.{name}")
        with limited(acid, **MERGED) if name == "b" else nullcontext():
            (result,) = compact_table(spark, acid, f"d.{name}", kind)
        assert content(acid, f"d.{name}") == before
        assert old.count() == len(before)
        check_table(location_of(acid, f"d.{name}"))
        paths = made(acid, kind, f"d.{name}")
        assert {is_of_cpp(path) for path in paths} == {name == "a"}
        found.append((result.rows, result.deletes, {path.name: events(path) for path in paths}))
    assert found[0] == found[1]
    assert len(merged) == 1
    assert acid.delete("d.a", "id = 1") == 1
    assert acid.table("d.a").where("id = 205").count() == 1


PLAIN = {
    "b": "boolean", "ti": "tinyint", "si": "smallint", "i": "int", "bi": "bigint", "f": "float", "d": "double",
    "dec": "decimal(20,4)", "small": "decimal(5,0)", "s": "string", "bin": "binary", "day": "date", "at": "timestamp",
}  # fmt: skip
ROWS = (
    "(true, 127Y, -32768S, 2147483647, -9223372036854775808L, float('nan'), double('-inf'), 1234567890123456.7891,"
    " 99999, '', X'', date'1900-01-01', timestamp'1970-01-01 00:00:00')",
    "(false, -128Y, 32767S, -2147483648, 9223372036854775807L, float(-0.0), double('nan'), -0.0001, -1,"
    " 'ß 東 \\u0000 x', X'00FF', date'9999-12-31', timestamp'2261-12-31 23:59:59.999999')",
    "(null, null, null, null, null, null, null, null, null, null, null, null, null)",
    "(true, 0Y, 0S, 0, 0L, float(1e-45), double(4.9e-324), 0.0000, 0, ' a  ', X'61', date'2020-02-29',"
    " timestamp'2013-03-10 02:30:00.000001')",
)


def test_values_of_all_types_stay(acid: AcidSession, spark: SparkSession, merged: Any) -> None:
    acid.create_table("d.t", PLAIN)
    names = ", ".join(PLAIN)
    for row in ROWS:
        acid.insert("d.t", spark.sql(f"SELECT * FROM VALUES {row}, {ROWS[2]} AS v({names})"))
    acid.delete("d.t", "ti = 0")
    before = content(acid)
    compact_table(spark, acid, "d.t", "major")
    assert merged == [1]
    assert all(map(is_of_cpp, made(acid)))
    assert content(acid) == before
    check_table(location_of(acid, "d.t"))
    assert acid.table("d.t").where("at > timestamp'2200-01-01' AND day > date'9999-01-01'").count() == 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamp", "timestamp'1969-12-31 23:59:58.5'"),
        ("timestamp", "timestamp'1500-03-01 00:00:00'"),
        ("timestamp", "timestamp'2262-04-12 00:00:00'"),
        ("timestamp", "timestamp'9999-12-31 23:59:59.999999'"),
        ("date", "date'1582-10-04'"),
        ("date", "date'0001-01-01'"),
        ("char(3)", "'a'"),
        ("varchar(3)", "'a'"),
        ("array<int>", "array(1, null)"),
        ("map<string,int>", "map('a', 1)"),
        ("struct<x:int>", "named_struct('x', 1)"),
        ("string", "repeat('x', 5000)"),
        ("binary", "cast(repeat('x', 5000) AS binary)"),
    ],
)
def test_what_pyarrow_does_not_keep_is_left_to_spark(
    acid: AcidSession, spark: SparkSession, merged: Any, kind: Any, value: Any
) -> None:
    acid.create_table("d.t", {"id": "int", "v": kind})
    for number in range(3):
        acid.insert("d.t", spark.sql(f"SELECT {number} id, CAST(null AS {kind}) v"))
    acid.insert("d.t", spark.sql(f"SELECT 3 id, {value} v"))
    before = content(acid)
    compact_table(spark, acid, "d.t", "major")
    assert merged == []
    assert not any(map(is_of_cpp, made(acid)))
    assert content(acid) == before


def test_files_of_spark_and_of_the_client_become_one(
    acid: AcidSession, spark: SparkSession, merged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's have notes at their texts, the client's have none; here each is a piece of its own, as large ones are."""
    acid.limits = Limits(run_bytes=1, runs=1 << 40)
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 1000)
    assert acid.update("d.t", {"name": "'new'"}, "id % 10 = 3") == 100
    before = content(acid)
    compact_table(spark, acid, "d.t", "major")
    assert merged == [2]
    assert [is_of_cpp(path) for path in made(acid)] == [True]
    assert content(acid) == before
    check_table(location_of(acid, "d.t"))


@contextmanager
def zone_of_all(spark: SparkSession, name: Any) -> Iterator[None]:
    """The zone of the JVM and of its session."""
    zones = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    zones.setDefault(zones.getTimeZone(name))
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        zones.setDefault(zones.getTimeZone("UTC"))
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.skipif(OVER_CONNECT, reason="sets the JVM's zone")
def test_files_of_another_zone_are_left_to_spark(acid: AcidSession, spark: SparkSession, merged: Any) -> None:
    """London and UTC agree when these were written, but not all year."""
    acid.create_table("d.t", {"id": "int", "at": "timestamp"})
    with zone_of_all(spark, "Europe/London"), hive_acid.spark.session(spark, acid.connection.uri) as there:
        for day in (1, 2):
            there.insert("d.t", spark.sql(f"SELECT {day} id, timestamp'2020-12-0{day} 12:00:00' at"))
    before = content(acid)
    compact_table(spark, acid, "d.t", "major")
    assert merged == [None]
    assert content(acid) == before
    assert [row.at for row in acid.table("d.t").selectExpr("string(at) at").collect()] == [
        "2020-12-01 12:00:00",
        "2020-12-02 12:00:00",
    ]


@pytest.mark.parametrize("limit", ["arrow_bytes", "arrow_columns"])
def test_what_is_much_is_left_to_spark(acid: AcidSession, spark: SparkSession, merged: Any, limit: Any) -> None:
    acid.limits = Limits(**{limit: 1})
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 10)
    insert(acid, spark, 10, 10)
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert (result.rows, merged) == (20, [])


def rows_of(write_ids: Any) -> Any:
    """Ten rows of each write, as events."""
    return [(0, of, BUCKET_0, n, of, {"id": n, "name": "n"}) for of in write_ids for n in range(10)]


def test_files_that_overlap_are_sorted(tmp_path: Path) -> None:
    for name, write_ids in (("a", (1, 3)), ("b", (2, 4))):
        write_events(tmp_path / name, rows_of(write_ids), ROW)
    ends = [DataFilePath(str(tmp_path / name), (tmp_path / name).stat().st_size) for name in ("a", "b")]
    tails = Footers().read(ends)
    assert all(arrow_merge.is_plain(tail, Limits()) for tail in tails)
    run = Run(("a", "b"), size=1, rows=40, in_order=False, overlap=True, plain=True)
    deleted = bitmaps_of([(2, BUCKET_0, [3]), (3, BUCKET_0, [0, 9])])
    merge = ArrowMerge(
        str(tmp_path), tails[0].types, "zlib", ALL_WRITES, frozenset(), deleted, lambda *_: None, Limits()
    )
    (path,) = merge.written([BucketMergePlan(0, (run,), 1)], str(tmp_path / "out"))
    keys = [(event.key.write_id, event.key.row_id) for event in events(Path(path.path))]
    gone = {(2, 3), (3, 0), (3, 9)}
    assert keys == [(of, n) for of in (1, 2, 3, 4) for n in range(10) if (of, n) not in gone]


def test_a_bucket_of_another_writer_is_taken_over(acid: AcidSession, spark: SparkSession, merged: Any) -> None:
    """Spark's files are copied where nothing is written beside them; where something is, pyarrow writes all."""
    acid.limits = Limits(kept_stripe_bytes=0)
    acid.create_table("d.t", COLUMNS)
    with limited(acid, **WRITTEN):
        insert(acid, spark, 0, 100, files=2)
        insert(acid, spark, 100, 10)
    for stripes, gone in ((2, 105), (3, 115)):
        acid.delete("d.t", f"id = {gone}")
        before = content(acid)
        compact_table(spark, acid, "d.t", "major")
        assert content(acid) == before
        first, second = made(acid)[-2:]
        assert (is_of_cpp(first), is_of_cpp(second)) == (True, False)
        assert len(orc_stripes(first)) == stripes
        check_table(location_of(acid, "d.t"))
        with limited(acid, **WRITTEN):
            insert(acid, spark, 110, 10)
    assert merged == [2, 1], "then only what is new"


def orc_stripes(path: Any) -> Any:
    return Footers().read([DataFilePath(str(path), path.stat().st_size)])[0].stripes


def test_files_of_whoever_has_written_most_are_kept(acid: AcidSession, spark: SparkSession, merged: Any) -> None:
    """Where there is too much for pyarrow to write all of it."""
    acid.limits = Limits(kept_stripe_bytes=0, taken_over_bytes=0)
    acid.create_table("d.t", COLUMNS)
    with limited(acid, **WRITTEN):
        acid.overwrite("d.t", spark.range(2000).selectExpr("int(id) id", "concat('n', id) name").coalesce(1))
        insert(acid, spark, 2000, 10)
        insert(acid, spark, 3000, 10)
    with limited(acid, kept_stripe_bytes=1 << 30):
        compact_table(spark, acid, "d.t", "minor")
    assert [is_of_cpp(path) for path in made(acid, "minor")] == [True]
    before = content(acid)
    compact_table(spark, acid, "d.t", "major")
    assert content(acid) == before
    (base,) = made(acid)
    assert not is_of_cpp(base)
    assert [stripe.rows for stripe in orc_stripes(base)] == [2000, 20]
    check_table(location_of(acid, "d.t"))


def test_files_of_pyarrow_are_kept(
    acid: AcidSession, spark: SparkSession, merged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And joined with what it writes; next to files of Spark that are kept Spark writes."""
    acid.limits = Limits(kept_stripe_bytes=0, taken_over_bytes=0)
    acid.create_table("d.t", COLUMNS)
    with limited(acid, **WRITTEN):
        insert(acid, spark, 0, 100)
        insert(acid, spark, 100, 100)
        acid.update("d.t", {"name": "'u'"}, "id = 150")
    before = content(acid)
    compact_table(spark, acid, "d.t", "major")
    assert merged == []
    assert not is_of_cpp(made(acid)[0])
    acid.update("d.t", {"name": "'v'"}, "id < 200")
    compact_table(spark, acid, "d.t", "major")
    assert merged == [0]
    assert is_of_cpp(made(acid)[-1])
    before = content(acid)
    with limited(acid, **WRITTEN):
        acid.insert("d.t", spark.sql("SELECT 300 id, 'x' name UNION ALL SELECT 301, 'y'").coalesce(1))
    acid.delete("d.t", "id = 300")
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert merged == [0, 1]
    assert (result.rows, content(acid)) == (201, before)
    assert len(orc_stripes(made(acid)[-1])) == 2, "the first as it was"
    check_table(location_of(acid, "d.t"))


def failing(batches: Any) -> Any:
    """As `_batches`, but the disk fails behind the first one of each file."""

    def read(merge: Any, path: Any) -> Iterator[Any]:
        yield from batches(merge, path)
        raise OSError("the disk has gone")

    return read


def one_batch_less(batches: Any) -> Any:
    def read(merge: Any, path: Any) -> Any:
        return (batch.slice(1) for batch in batches(merge, path))

    return read


def one_null(batches: Any) -> Any:
    def read(merge: Any, path: Any) -> Iterator[Any]:
        for batch in batches(merge, path):
            at = batch.schema.get_field_index("rowId")
            yield batch.set_column(at, "rowId", pa.array([None] * batch.num_rows, pa.int64()))

    return read


@pytest.mark.parametrize("fault", [failing, one_batch_less, one_null])
def test_what_fails_is_left_to_spark(
    acid: AcidSession, spark: SparkSession, merged: Any, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    monkeypatch.setattr(ArrowMerge, "_batches", fault(ArrowMerge._batches))
    acid.create_table("d.t", COLUMNS)
    for first in (0, 10, 20):
        insert(acid, spark, first, 10, files=2)
    before = content(acid)
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert merged == [None]
    assert (result.rows, result.files, content(acid)) == (30, 2, before)
    assert not [entry for entry in files.list_tree(str(location_of(acid, "d.t"))) if "merged" in entry.path]


def test_all_may_be_gone(acid: AcidSession, spark: SparkSession, merged: Any) -> None:
    acid.create_table("d.t", COLUMNS)
    insert(acid, spark, 0, 10)
    acid.delete("d.t", "true")
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert (merged, result.rows, content(acid)) == ([0], 0, [])
    check_table(location_of(acid, "d.t"))


def test_who_wants_the_rows_no_more_is_heard_at_once(tmp_path: Path) -> None:
    """Between two batches, of which a file has several."""
    limits = Limits(arrow_batch_values=0, arrow_batch_rows=10)
    write_events(tmp_path / "a", rows_of(range(1, 10)), ROW)
    tails = Footers().read([DataFilePath(str(tmp_path / "a"), (tmp_path / "a").stat().st_size)])
    told = []

    def cancelled(*done: Any) -> None:
        told.append(done)
        if len(told) == 3:
            raise CancelledError("cancelled")

    merge = ArrowMerge(str(tmp_path), tails[0].types, "zlib", ALL_WRITES, frozenset(), {}, cancelled, limits)
    run = Run(("a",), size=1, rows=90, in_order=True, overlap=False, plain=True)
    with pytest.raises(CancelledError):
        merge.written([BucketMergePlan(0, (run,), 1)], str(tmp_path / "out"))
    assert told == [(10, 0, 0), (20, 0, 0), (30, 0, 0)]


# --- which rows go ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_rows_of_aborted_writes_are_left_out(acid: AcidSession, spark: SparkSession, merged: Any, kind: Any) -> None:
    """Of a delta with those of other writes in it; and what has been compacted over one is merged here again."""
    acid.create_table("d.t", COLUMNS)
    location = commit_writes(acid, "d.t", 3, aborted=[2])
    write_events(location / "delta_0000001_0000003" / "bucket_00000", rows_of((1, 2, 3)), ROW)
    (location / "delta_0000001_0000003" / "_orc_acid_version").write_text("2")
    acid.delete("d.t", "id = 7")
    insert(acid, spark, 100, 10)
    before = content(acid)
    assert len(before) == 28
    for times in (1, 2):
        compact_table(spark, acid, "d.t", kind)
        assert merged == [1] * times
        assert content(acid) == before
        check_table(location)
        insert(acid, spark, 100 + 10 * times, 10)
        acid.delete("d.t", f"id = {times}")
        before = content(acid)
    assert len(before) == 44
    written = {event.key.write_id for event in events(made(acid, kind)[-1])}
    assert written >= {1, 3}
    assert 2 not in written


SOURCES = st.tuples(st.integers(1, 3), st.sampled_from([BUCKET_0, BUCKET_0 + 1]))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(SOURCES, st.tuples(st.integers(0, 20_000), st.integers(1, 300), st.integers(1, 700)), min_size=1),
    st.dictionaries(SOURCES, st.sets(st.integers(0, 30_000), max_size=40)),
    st.integers(0, 10_000),
)
def test_deleted_rows_are_left_out(sources: Any, deleted: Any, seed: Any) -> None:
    """Of runs of few rows and of many, near to each other and far apart."""
    keys = [(*of, first + n * step) for of, (first, count, step) in sorted(sources.items()) for n in range(count)]
    noise = random.Random(seed)
    gone = {(*of, row_id) for of, row_ids in deleted.items() for row_id in row_ids}
    gone |= set(noise.sample(keys, len(keys) // 5))
    blocks = bitmaps_of((write_id, bucket, [row_id]) for write_id, bucket, row_id in gone)
    columns = [
        pa.array(of, kind)
        for of, kind in zip(zip(*keys, strict=True), (pa.int64(), pa.int32(), pa.int64()), strict=True)
    ]
    batch = pa.record_batch(columns, ["originalTransaction", "bucket", "rowId"])
    left = _without(batch, blocks)
    assert list(zip(*(column.to_pylist() for column in left.columns), strict=True)) == [
        key for key in keys if key not in gone
    ]
