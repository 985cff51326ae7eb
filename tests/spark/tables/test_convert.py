"""Flat tables become transactional with the files they have, and the first compaction gives their rows ids for good."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import CompactionFailedError, FormatError, MetaError, UnsupportedTableError
from hive_acid.operators import compactions
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of
from tests.spark.compaction import compact_table

FLAT = {"transactional": "false"}


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


def ids(acid: AcidSession, name: Any = "d.t") -> Any:
    rows = acid.table(name, row_id=True).collect()
    return {row["id"]: tuple(row["ROW__ID"]) for row in rows}


def remove_replaced(location: Any) -> None:
    """What the Cleaner does: files from before a base are gone."""
    for path in location.rglob("*"):
        if path.is_file() and not path.parent.name.startswith("base_"):
            path.unlink()


@pytest.fixture
def flat(acid: AcidSession, spark: SparkSession) -> Any:
    """A table as stock Spark leaves it: files of its own names, in several tasks."""
    acid.create_table("d.t", {"id": "int", "name": "string"}, properties=FLAT)
    rows = spark.range(20, numPartitions=3).selectExpr("int(id) id", "concat('n', id) name")
    rows.write.mode("append").orc(str(location_of(acid, "d.t")))
    return acid


def test_conversion_changes_metadata_alone(flat: Any) -> None:
    location = location_of(flat, "d.t")
    before = {path: path.stat().st_mtime for path in location.iterdir()}
    (queued,) = flat.convert_table("d.t")
    assert queued > 0
    assert {path: path.stat().st_mtime for path in location.iterdir()} == before
    assert flat.connection.table("d", "t").is_full_acid
    assert read(flat) == [(i, f"n{i}") for i in range(20)]
    assert flat.convert_table("d.t", compact=False) == []


def test_the_first_compaction_keeps_the_ids_that_readers_gave(flat: Any, spark: SparkSession) -> None:
    flat.convert_table("d.t", compact=False)
    known = ids(flat)
    (result,) = compact_table(spark, flat, "d.t", "major")
    assert result.directories[0].startswith("base_-9223372036854775808_v")
    remove_replaced(location_of(flat, "d.t"))
    assert ids(flat) == known
    check_table(location_of(flat, "d.t"))


def test_changes_before_the_first_compaction_are_merged(flat: Any, spark: SparkSession) -> None:
    flat.convert_table("d.t", compact=False)
    known = ids(flat)
    assert flat.delete("d.t", "id % 5 = 0") == 4
    assert flat.update("d.t", {"name": "'new'"}, "id = 7") == 1
    flat.insert("d.t", spark.createDataFrame([(50, "n50")], "id int, name string"))
    expected = read(flat)
    compact_table(spark, flat, "d.t", "minor")
    assert read(flat) == expected
    (result,) = compact_table(spark, flat, "d.t", "major")
    remove_replaced(location_of(flat, "d.t"))
    assert read(flat) == expected
    assert result.rows == len(expected) == 17
    after = ids(flat)
    assert {key: after[key] for key in after if key not in (7, 50)} == {
        key: value for key, value in known.items() if key in after and key != 7
    }
    check_table(location_of(flat, "d.t"))
    assert flat.delete("d.t", "id = 1") == 1
    assert len(read(flat)) == 16


def test_loaded_files_are_compacted_with_their_ids(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"})
    for place, some in enumerate(([1, 2], [3])):
        path = tmp_path / f"{place}.orc"
        pyarrow.orc.write_table(pa.table({"id": pa.array(some, pa.int32()), "name": ["x"] * len(some)}), path)
        acid.load_data("d.t", str(path))
    known = ids(acid)
    compact_table(spark, acid, "d.t", "minor")
    assert ids(acid) == known
    acid.delete("d.t", "id = 2")
    compact_table(spark, acid, "d.t", "major")
    remove_replaced(location_of(acid, "d.t"))
    assert ids(acid) == {key: value for key, value in known.items() if key != 2}
    check_table(location_of(acid, "d.t"))


def test_partitioned_tables_are_converted_partition_by_partition(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"}, properties=FLAT)
    location = location_of(acid, "d.t")
    for p in (1, 2):
        (location / f"p={p}").mkdir()
        pyarrow.orc.write_table(pa.table({"id": pa.array([p, p + 10], pa.int32())}), location / f"p={p}" / "000000_0")
    table = acid.connection.table("d", "t")
    acid.connection.add_partitions(table, {f"p={p}": f"{table.location}/p={p}" for p in (1, 2)})
    assert len(acid.convert_table("d.t")) == 2
    assert acid.delete("d.t", "id = 1") == 1
    assert read(acid) == [(2, 2), (11, 1), (12, 2)]
    compact_table(spark, acid, "d.t", "major")
    assert read(acid) == [(2, 2), (11, 1), (12, 2)]


def test_tables_that_cannot_be_converted(acid: AcidSession, tmp_path: Path) -> None:
    acid.create_table("d.e", {"id": "int"}, properties={**FLAT, "EXTERNAL": "TRUE"}, location=str(tmp_path / "e"))
    with pytest.raises(UnsupportedTableError, match="external table"):
        acid.convert_table("d.e")
    acid.create_table("d.spark", {"col": "array<string>"}, properties={**FLAT, "spark.sql.sources.provider": "delta"})
    with pytest.raises(UnsupportedTableError, match="whose columns the metastore does not know"):
        acid.convert_table("d.spark")
    acid.create_table("d.odd", {"id": "int"}, properties=FLAT)
    odd = location_of(acid, "d.odd") / "data.orc"
    pyarrow.orc.write_table(pa.table({"id": pa.array([1], pa.int32())}), odd)
    with pytest.raises(MetaError, match=r"data\.orc is not named as Hive names files"):
        acid.convert_table("d.odd")
    odd.write_text("text")
    with pytest.raises(FormatError, match="no ORC file"):
        acid.convert_table("d.odd")
    odd.unlink()
    (location_of(acid, "d.odd") / "delta_0000001_0000001").mkdir()
    (location_of(acid, "d.odd") / "delta_0000001_0000001" / "bucket_00000").write_text("x")
    with pytest.raises(FormatError, match="named like one of an ACID table"):
        acid.convert_table("d.odd")
    assert not acid.connection.table("d", "odd").is_transactional


def test_concatenate_waits_for_a_compaction_that_runs(spark: SparkSession, metastore: Any) -> None:
    uri = metastore(**{"metastore.compactor.worker.threads": "0"})
    with hive_acid.spark.session(spark, uri) as acid:
        acid.create_database("d")
        acid.create_table("d.t", {"id": "int"})
        acid.insert("d.t", spark.createDataFrame([(1,)], "id int"))
        (queued,) = acid.concatenate("d.t")
        assert acid.concatenate("d.t") == []
        with pytest.raises(CompactionFailedError, match=f"compaction {queued} did not end within 300 ms"):
            compactions.wait(acid.connection, [queued], 300)
