"""Tables of Hive 2: which directories must be compacted before anybody else changes them."""

from typing import Any

import pyarrow as pa
import pyarrow.orc
from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession
from tests.spark.checker import COLUMNS, location_of


def write_events(directory: Any, operations: Any, *, bucket: Any = 0) -> None:
    """A delta as Hive 2 writes it: updates (1) and deletes (2) beside inserts, no marker, old bucket numbers."""
    directory.mkdir(parents=True, exist_ok=True)
    count = len(operations)
    columns = [
        pa.array(operations, pa.int32()),
        pa.array([1] * count, pa.int64()),
        pa.array([bucket] * count, pa.int32()),
        pa.array(range(count), pa.int64()),
        pa.array([1] * count, pa.int64()),
        pa.array([{"id": i} for i in range(count)], pa.struct([("id", pa.int32())])),
    ]
    pyarrow.orc.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), directory / f"bucket_{bucket:05d}")


def test_changes_beside_inserts_are_found(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.createDataFrame([(1, 1), (2, 2)], "id int, p int"))
    acid.delete("d.t", "id = 1")
    acid.create_table("d.plain", {"id": "int"}, properties={"transactional": "false"})
    assert acid.upgrade_check("d") == []
    location = location_of(acid, "d.t")
    write_events(location / "p=1" / "delta_0000003_0000003_0000", [0, 0])
    assert acid.upgrade_check("d.t") == []
    write_events(location / "p=1" / "delta_0000004_0000004", [0, 2])
    write_events(location / "p=2" / "delta_0000005_0000005", [1])
    found = acid.upgrade_check("d")
    assert [(one.table, one.partition, one.directory) for one in found] == [
        ("d.t", "p=1", "delta_0000004_0000004"),
        ("d.t", "p=2", "delta_0000005_0000005"),
    ]
    assert all("beside the inserts" in one.reason for one in found)
