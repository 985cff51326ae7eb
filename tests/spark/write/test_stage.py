"""Staged files on their way to their place, and back."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrameWriter, Observation, SparkSession

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.format.names import VERSION_MARKER
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.write.stage import SparkStaging
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_table, location_of

LATE = "_temporary/0/_temporary/attempt_202601010000000000000000_0001_m_000001_1"
"""Where a task writes that was started twice. It may do so still when the other one, and the job, are done."""

LEFT = (
    "part-00000-x-c000.zlib.orc",
    "part-00003-x-c000.zlib.orc",
    "_SUCCESS",
    ".part-00000-x-c000.zlib.orc.crc",
    f"{LATE}/part-00001-x-c000.zlib.orc",
)
"""What a job has left: two files of inserts, and what is none."""


def staged(root: Any) -> Any:
    staging = SparkStaging(f"{root}/t/_tmp_spark_1_a")
    files.make_directory(f"{staging.location}/written/job")
    for name in LEFT:
        files.make_directory(files.parent(f"{staging.location}/written/job/{name}"))
        files.write(f"{staging.location}/written/job/{name}", name.encode())
    return staging


def below(root: Any) -> Any:
    return [entry.path for entry in files.list_tree(root) if not entry.is_directory]


def test_a_file_that_is_not_called_as_spark_calls_them_is_not_left_behind(tmp_path: Path) -> None:
    staging = staged(tmp_path)
    files.write(f"{staging.location}/written/job/bucket-00000-x-c000.zlib.orc", b"rows")
    with pytest.raises(FormatError, match=r"bucket-00000-x-c000\.zlib\.orc is not called as the files"):
        staging.staged(0)


@pytest.mark.parametrize("is_copy", [False, True])
def test_files_are_put_into_place_and_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_copy: Any
) -> None:
    root = "memory://warehouse" if is_copy else str(tmp_path)
    monkeypatch.setattr(files, "rename_is_copy", lambda location: is_copy)
    staging = staged(root)
    steps = []
    for name in ("rename", "write", "remove"):
        run = getattr(files, name)
        monkeypatch.setattr(
            files, name, lambda *given, run=run, name=name, **how: (steps.append((name, *given)), run(*given, **how))[1]
        )
    (found,) = staging.staged(0)
    assert (list(found.buckets), found.size) == ([0, 3], 52)
    target = f"{root}/t/delta_0000001_0000001_0000"
    staging.publish([found], lambda _: (f"{root}/t", "delta_0000001_0000001_0000"))
    assert below(target) == [VERSION_MARKER, "bucket_00000", "bucket_00003"]
    if is_copy:  # each file once, the marker last
        assert [step for step, *_ in steps] == ["rename", "rename", "write"]
        assert all(given[1].startswith(target) for step, *given in steps if step == "rename")
    else:  # all is there before the directory is renamed
        assert [step for step, *_ in steps] == ["rename", "rename", "write", "rename"]
        assert steps[-1][2] == target
    staging.published.append(f"{root}/t/base_0000001")
    steps.clear()
    staging.undo()
    assert [path for _, path in steps] == [f"{root}/t/base_0000001", target, staging.location]
    assert below(f"{root}/t") == []


def test_two_files_for_one_bucket_are_refused(tmp_path: Path) -> None:
    staging = staged(str(tmp_path))
    files.write(f"{staging.location}/written/job/part-00003-y-c000.zlib.orc", b"again")
    with pytest.raises(FormatError, match="two files for bucket 3"):
        staging.staged(0)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["full", "insert_only"])
@pytest.mark.parametrize("keys", [{}, {"p": "int"}], ids=["flat", "partitioned"])
def test_what_a_late_task_still_writes_is_nothing_to_the_table(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: Any, keys: Any
) -> None:
    save = DataFrameWriter.save

    def saved(writer: Any, path: Any) -> None:
        save(writer, path)
        late = f"{path}/{LATE}/part-00001-x-c000.zstd.orc"
        files.make_directory(files.parent(late))
        files.write(late, b"half of a file")

    monkeypatch.setattr(DataFrameWriter, "save", saved)
    properties = {"transactional_properties": "insert_only"} if kind == "insert_only" else None
    acid.create_table("d.t", {"id": "int"}, partitioned_by=keys, properties=properties)
    frame = spark.range(4).selectExpr("int(id) id", *(["int(id % 2) p"] if keys else []))
    assert acid.insert("d.t", frame) == 4
    if kind == "full":
        with limited(acid, **WRITTEN):
            assert acid.update("d.t", {"id": "id + 10"}, "id > 1") == 2
        check_table(location_of(acid, "d.t"))
    assert sorted(row.id for row in acid.table("d.t").collect()) == ([0, 1, 12, 13] if kind == "full" else [0, 1, 2, 3])
    assert acid.overwrite("d.t", frame) == 4
    assert acid.table("d.t").count() == 4
    below = files.list_tree(str(location_of(acid, "d.t")))
    assert not [entry.path for entry in below if "attempt" in entry.path]


@pytest.mark.parametrize("keys", [{}, {"p": "int"}], ids=["whole", "partitioned"])
def test_rows_are_not_lost_with_their_counts(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, keys: dict[str, str]
) -> None:
    """Forced, as no way is known in which Spark loses what it observes."""
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by=keys)
    rows = spark.range(10).selectExpr("id", *(["int(id % 2) p"] if keys else []))
    acid.limits = Limits(driver_rows=0, driver_deletes=0)
    monkeypatch.setattr(Observation, "get", property(lambda self: {}))
    assert acid.insert("d.t", rows) == 10
    assert acid.insert("d.t", rows.where("id > 10")) == 0
    assert acid.update("d.t", {"id": "id + 100"}, "id % 3 = 0") == 4
    assert acid.delete("d.t", "id = 1 or id = 103") == 2
    monkeypatch.undo()
    assert sorted(row.id for row in acid.table("d.t").collect()) == [2, 4, 5, 7, 8, 100, 106, 109]
    check_table(location_of(acid, "d.t"))
