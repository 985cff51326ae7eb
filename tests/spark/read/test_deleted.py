"""Deletes that are looked up instead of joined: the same rows, and a plan without a join."""

import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.filesystem.delete_files import SHARED, DeleteFiles
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.format.deletion_bitmap import NO_PLACE, bitmaps_of, layout_of
from hive_acid.format.rows import encode_bucket
from hive_acid.format.snapshot import RangeValidity
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.read import deleted
from hive_acid.spark.read.scan import PLACE_COLUMN
from tests.spark.by_spark import limited
from tests.spark.compaction import compact_table
from tests.spark.plans import scans

ROWS = 20_000


@pytest.fixture
def changed(acid: AcidSession, spark: SparkSession) -> Any:
    """Rows of two writes in several files, with deletes of several writes that reach both."""
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    for first in (0, ROWS):
        acid.insert("d.t", spark.range(first, first + ROWS, 1, 3).selectExpr("id", "concat('n', id) AS text"))
    acid.delete("d.t", "id % 7 = 3")
    acid.update("d.t", {"text": "'new'"}, "id % 1000 = 5")
    acid.delete("d.t", "id BETWEEN 4000 AND 8300 OR text = 'new' AND id > 30000")
    return acid.table("d.t")


def left() -> Any:
    return sorted(
        (i, "new" if i % 1000 == 5 else f"n{i}")
        for i in range(2 * ROWS)
        if i % 7 != 3 and not 4000 <= i <= 8300 and not (i % 1000 == 5 and i > 30000)
    )


def plan_of(frame: Any) -> Any:
    return frame._jdf.queryExecution().toString()


def rows_of(frame: Any) -> Any:
    return sorted((row.id, row.text) for row in frame.collect())


def test_a_look_up_finds_what_a_join_finds(changed: Any, acid: AcidSession) -> None:
    assert rows_of(changed) == left()
    assert changed.count() == len(left())
    assert changed.agg(F.sum("id")).collect()[0][0] == sum(i for i, _ in left())
    ids = {tuple(row["ROW__ID"]) for row in acid.table("d.t", row_id=True).collect()}
    acid.limits = Limits(delete_events=0)
    joined = acid.table("d.t", row_id=True)
    assert "LeftAnti" in plan_of(joined)
    assert rows_of(joined) == left()
    assert {tuple(row["ROW__ID"]) for row in joined.collect()} == ids


def test_the_plan_has_no_join_and_spells_nothing_out(changed: Any) -> None:
    plan = plan_of(changed)
    assert "LeftAnti" not in plan
    assert len(plan) < 40_000, "the bits alone would be more"
    assert not any("delete_delta" in one.text for one in scans(changed))
    assert all("Batched: true" in one.text for one in scans(changed))


def test_columns_with_the_names_that_a_look_up_has_within(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.n", {"words": "string", "v": "int"})
    acid.insert("d.n", spark.range(20).selectExpr("concat('[', id, ']') words", "int(id) v").coalesce(1))
    assert acid.delete("d.n", "v = 3") == 1
    assert acid.update("d.n", {"words": "concat(words, v)"}, "v.v = 4", target_alias="v") == 1
    found = {row.v: row.words for row in acid.table("d.n").alias("v").where("v.words <> '[5]'").collect()}
    assert found == {i: f"[{i}]" if i != 4 else "[4]4" for i in range(20) if i not in (3, 5)}


def test_what_is_deleted_later_is_seen_later(changed: Any, acid: AcidSession) -> None:
    before = changed.count()
    acid.delete("d.t", "id = 1")
    assert acid.table("d.t").count() == before - 1
    assert changed.count() == before
    acid.drop_table("d.t")
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    acid.insert("d.t", acid.spark.range(10).selectExpr("id", "'x' AS text"))
    acid.delete("d.t", "id = 2")
    assert acid.table("d.t").count() == 9


def test_deletes_are_joined_where_they_cannot_be_looked_up(
    changed: Any, acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without, limited(acid, cached_plan_files=-1):
        without.setattr(deleted, "SHARED", DeleteFiles())
        without.setitem(sys.modules, "pyarrow", None)
        found = acid.table("d.t")
        assert "LeftAnti" in plan_of(found)
        assert rows_of(found) == left()
    with limited(acid, delete_words=100):
        assert "LeftAnti" in plan_of(acid.table("d.t"))


def test_deletes_are_looked_up_where_the_parser_knows_no_parameters(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of Delta and Iceberg, which stand before Spark's."""
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100).coalesce(1))
    acid.delete("d.t", "id % 10 = 3")
    plain = type(spark).sql

    def sql(session: Any, text: Any, args: Any = None) -> Any:
        assert not args
        return plain(session, text)

    monkeypatch.setattr(type(spark), "sql", sql)
    found = acid.table("d.t")
    assert "LeftAnti" not in plan_of(found)
    assert found.count() == 90


NAMES = ["plain", "two words", "50%", None]


@pytest.fixture
def partitioned(acid: AcidSession, spark: SparkSession) -> Any:
    """Rows of eight partitions, numbered alike in all; deletes in most, of other rows in each."""
    acid.create_table("d.p", {"id": "bigint"}, partitioned_by={"name": "string", "k": "int"})
    rows = [(name, k, i) for i in range(40) for name in NAMES for k in (1, 2)]
    frame = spark.createDataFrame(rows, "name string, k int, id bigint")
    acid.insert("d.p", frame.selectExpr("id", "name", "k").coalesce(1))
    acid.delete("d.p", "k = 1 AND id % 10 = length(coalesce(name, ''))")
    acid.delete("d.p", "name = '50%' AND id % 7 = k")
    return {
        (name, k, i)
        for name, k, i in rows
        if not (k == 1 and i % 10 == len(name or "")) and not (name == "50%" and i % 7 == k)
    }


def keyed(frame: Any) -> Any:
    found = [(row.name, row.k, row.id) for row in frame.collect()]
    assert len({*found}) == len(found)
    return {*found}


def test_deletes_in_several_partitions_are_looked_up_by_partition(partitioned: Any, acid: AcidSession) -> None:
    found = acid.table("d.p")
    assert "LeftAnti" not in plan_of(found)
    assert not any("delete_delta" in one.text for one in scans(found))
    assert keyed(found) == partitioned
    assert keyed(acid.table("d.p").where("name = '50%'")) == {row for row in partitioned if row[0] == "50%"}
    assert acid.table("d.p").count() == len(partitioned)
    acid.limits = Limits(delete_events=0)
    joined = acid.table("d.p")
    assert "LeftAnti" in plan_of(joined)
    assert keyed(joined) == partitioned


def test_rows_that_are_changed_in_several_partitions(partitioned: Any, acid: AcidSession) -> None:
    acid.update("d.p", {"id": "id + 1000"}, "id % 3 = 0")
    acid.delete("d.p", "id > 1030")
    expected = {(name, k, i + 1000 if i % 3 == 0 else i) for name, k, i in partitioned}
    assert keyed(acid.table("d.p")) == {row for row in expected if row[2] <= 1030}


def test_partitions_without_deletes_are_read_with_the_others(partitioned: Any, acid: AcidSession) -> None:
    found = acid.table("d.p").where("name = 'two words' OR name IS NULL")
    assert keyed(found) == {row for row in partitioned if row[0] in (None, "two words")}
    assert len(scans(found)) == 1


def test_a_condition_is_not_asked_of_rows_that_are_gone_from_several_partitions(
    acid: AcidSession, spark: SparkSession
) -> None:
    acid.create_table("d.q", {"id": "int"}, partitioned_by={"k": "int"})
    acid.insert("d.q", spark.range(20).selectExpr("cast(id AS int) AS id", "cast(id % 4 AS int) AS k"))
    acid.delete("d.q", "id IN (0, 1, 2)")
    acid.insert("d.q", spark.sql("SELECT 7 AS id, 9 AS k"))
    acid.delete("d.q", "id = 3")
    assert ids_of(acid.table("d.q").where("10 / id > 1")) == [4, 5, 6, 7, 7, 8, 9]
    assert ids_of(acid.table("d.q").where("k < 3 AND 10 / (id - 3) > 1")) == [4, 5, 6, 8, 9, 10, 12]


def ids_of(frame: Any) -> Any:
    return sorted(row.id for row in frame.collect())


def test_a_partition_that_lies_elsewhere_is_looked_up_by_itself(
    partitioned: Any, acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    table = acid.connection.table("d", "p")
    acid.connection.add_partitions(table, {"name=moved/k=1": f"file:{tmp_path}/elsewhere"})
    acid.insert("d.p", spark.range(0, 20, 2).selectExpr("id", "'moved' AS name", "1 AS k"))
    acid.delete("d.p", "name = 'moved' AND id > 4")
    assert [*(tmp_path / "elsewhere").iterdir()]
    found = acid.table("d.p")
    assert "LeftAnti" not in plan_of(found)
    assert keyed(found) == partitioned | {("moved", 1, i) for i in (0, 2, 4)}


def test_names_that_are_not_ascii_are_joined(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.r", {"id": "int"}, partitioned_by={"name": "string"})
    acid.insert("d.r", spark.range(8).selectExpr("cast(id AS int) AS id", "if(id < 4, '\u00e9t\u00e9', 'c') AS name"))
    acid.delete("d.r", "id IN (1, 5)")
    found = acid.table("d.r")
    assert "LeftAnti" in plan_of(found)
    assert sorted(row.id for row in found.collect()) == [0, 2, 3, 4, 6, 7]


def test_names_of_all_printable_characters_are_known(acid: AcidSession, spark: SparkSession) -> None:
    """As Spark has them, above the escapes of the metastore."""
    names = ["".join(map(chr, range(first, first + 19))) for first in range(0x20, 0x7F, 19)]
    acid.create_table("d.r", {"id": "int"}, partitioned_by={"name": "string"})
    acid.insert("d.r", spark.createDataFrame([(i, name) for name in names for i in range(2)], "id int, name string"))
    acid.delete("d.r", "id = 0")
    found = acid.table("d.r")
    assert "LeftAnti" not in plan_of(found)
    assert sorted((row.name, row.id) for row in found.collect()) == sorted((name, 1) for name in names)


def test_partitions_that_are_not_told_apart_are_joined(
    partitioned: Any, acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hive_acid.format.deletion_bitmap._slot", lambda *_: 0)
    assert "LeftAnti" in plan_of(acid.table("d.p"))
    assert keyed(acid.table("d.p")) == partitioned


def test_what_an_expression_finds_is_what_a_layout_has(spark: SparkSession) -> None:
    """Bits of all places in a word, and rows that are near those that are deleted in any of their numbers."""
    rows = [0, 1, 62, 63, 64, 4095, 4096, 70_000]
    writes, buckets = (1, 5, 64, 1023, 1024, 70_000), [*map(encode_bucket, (0, 3, 4095)), encode_bucket(3, 1)]
    near = [(w, b, r) for w in (0, *writes, 2**33 + 1) for b in (3, *buckets) for r in (*rows, 2, 2**44, 2**45 + 63)]
    frame = spark.createDataFrame(
        [(place, *event) for place in ("a", "b", "c") for event in near],
        f"{PLACE_COLUMN} string, originalTransaction bigint, bucket int, rowId bigint",
    )
    for highest, of in ((1, 3), (1023, 4), (1024, 3), (70_000, 4)):
        gone = bitmaps_of((w, b, rows) for w in writes if w <= highest for b in buckets[:of])
        for places in ({NO_PLACE: gone}, {"a": gone, "b": {(5, buckets[1]): {0: -1 << 1 & (1 << 4096) - 1}}}):
            layout = layout_of(places, ["c"], Limits().delete_words)
            look_up = deleted.LookUp(deleted._words(layout), layout)  # type: ignore[arg-type]
            left = {tuple(row)[:4] for row in look_up.without_deleted(frame).collect()}
            assert left == {
                (place, *event)
                for place, *event in frame.collect()
                if not layout.has(*event, NO_PLACE if NO_PLACE in places else place)  # type: ignore[call-arg, union-attr]
            }
            assert len(left) < frame.count()


def test_no_more_files_are_opened_for_a_scan_than_it_may(
    partitioned: Any, acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleted, "SHARED", DeleteFiles())
    with limited(acid, delete_files=5):
        assert "LeftAnti" in plan_of(acid.table("d.p"))
    assert "LeftAnti" not in plan_of(acid.table("d.p"))


def test_only_what_is_known_to_all_is_looked_up(changed: Any, acid: AcidSession) -> None:
    """Delete files of partly visible directories are joined, unless all writes that are in them are visible."""
    state = _state_of(changed)
    (partition,) = state.partitions
    deltas = partition.state.delete_deltas
    assert deleted.look_up_of([(partition, deltas)], state.write_ids, state.limits).look_up is not None
    some = [replace(deltas[0], validity=RangeValidity.SOME), *deltas[1:]]
    assert deleted.look_up_of([(partition, some)], state.write_ids, state.limits).look_up is not None
    first = deltas[0].directory.min_write_id
    without_it = replace(state.write_ids, aborted_ids=(first,))
    assert deleted.look_up_of([(partition, some)], without_it, state.limits).look_up is None


def test_compacted_deletes_are_looked_up_though_a_write_among_them_was_aborted(
    acid: AcidSession, spark: SparkSession
) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(20))
    acid.delete("d.t", "id = 3")
    with acid.connection.begin() as lost:
        lost.write_id("d", "t")
        lost.abort()
    acid.delete("d.t", "id = 7")
    compact_table(spark, acid, "d.t", "minor")
    found = acid.table("d.t")
    (partition,) = _state_of(found).partitions
    assert [of.validity for of in partition.state.delete_deltas] == [RangeValidity.SOME]
    assert "LeftAnti" not in plan_of(found)
    assert sorted(row.id for row in found.collect()) == [i for i in range(20) if i not in (3, 7)]


def test_files_that_are_forgotten_are_read_again(changed: Any) -> None:
    few = DeleteFiles(most_blocks=1)
    state = _state_of(changed)
    (partition,) = state.partitions
    deltas = partition.state.delete_deltas
    paths = [
        DataFilePath(f"{partition.location}/{file.path}", file.size, file.modified_ms)
        for found in deltas
        for file in found.files
    ]
    first = few.read(paths)
    assert first == few.read(paths) == SHARED.read(paths)
    assert sum(bits.bit_count() for said in first for blocks in said.rows.values() for bits in blocks.values()) > 5000  # type: ignore[union-attr]
    assert [said.by for said in first] == [{found.directory.max_write_id} for found in deltas for _ in found.files]  # type: ignore[union-attr]


def _state_of(frame: Any) -> Any:
    """What a frame of a table knows of its files."""
    return inspect.getclosurevars(frame._pushdown.totals).nonlocals["listing"].state(None)
