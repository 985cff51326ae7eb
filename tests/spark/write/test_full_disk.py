"""A disk without room: the statement says so in a line, and neither a row of it nor a file is left behind."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from hive_acid.errors import StorageError
from hive_acid.spark import AcidSession
from hive_acid.spark.compact.jobs import failure
from tests.spark.conftest import OVER_CONNECT

pytestmark = pytest.mark.skipif(OVER_CONNECT, reason="over Connect it is Spark's own error: docs/limits.md")

MUCH = "SELECT id, concat(uuid(), uuid(), uuid(), uuid()) AS s FROM range(100000)"
STATEMENTS = (
    f"INSERT INTO d.t {MUCH}",
    f"INSERT OVERWRITE d.t {MUCH}",
    f"INSERT INTO d.i {MUCH}",
    f"MERGE INTO d.t USING ({MUCH}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    f"FROM ({MUCH}) m INSERT INTO d.t SELECT * INSERT INTO d.i SELECT *",
    f"CREATE TABLE d.made LOCATION '{{disk}}/made' AS {MUCH}",
    f"CREATE EXTERNAL TABLE d.made STORED AS PARQUET LOCATION '{{disk}}/made' AS {MUCH}",
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs to mount a file system")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_full_disk_is_told_and_leaves_nothing(
    acid: AcidSession, spark: SparkSession, disk: Path, statement: Any
) -> None:
    acid.sql(f"CREATE TABLE d.t (id bigint, s string) LOCATION '{disk}/t'")
    only = "TBLPROPERTIES ('transactional_properties'='insert_only')"
    acid.sql(f"CREATE TABLE d.i (id bigint, s string) LOCATION '{disk}/i' {only}")
    for name in ("d.t", "d.i"):
        acid.insert(name, spark.sql("SELECT 1L AS id, 'before' AS s"))
    before = {path for path in disk.rglob("*") if path.is_file()}
    with pytest.raises(StorageError, match=r"files cannot be written or read: .*No space left on device") as told:
        acid.sql(statement.format(disk=disk))
    assert "\n" not in str(told.value)
    cause = told.value.__cause__
    assert isinstance(cause, Py4JJavaError)
    assert failure(7, cause)["error"].endswith("No space left on device")  # as the operator has it of a compaction
    assert [tuple(row) for name in ("d.t", "d.i") for row in acid.table(name).collect()] == [(1, "before")] * 2
    assert {path for path in disk.rglob("*") if path.is_file()} == before
