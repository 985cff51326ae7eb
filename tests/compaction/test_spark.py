"""The contract between worker and Spark program: real ORC files, the real program, one process for all jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyarrow import orc

from hive_acid import files
from hive_acid.format.names import VERSION_CONTENT, VERSION_MARKER, bucket_file_name
from hive_acid.format.rows import RowEvent, check_file
from hive_acid.spark.java import ensure_java
from metastore.compaction.executor import CompactionExecutor, SparkSubmitExecutor, WarmSparkExecutor
from metastore.compaction.states import CompactionState, CompactionType
from metastore.store.database import Database

from . import world as tables
from .world import World

SCHEMA = pa.schema(
    [
        ("operation", pa.int32()),
        ("originalTransaction", pa.int64()),
        ("bucket", pa.int32()),
        ("rowId", pa.int64()),
        ("currentTransaction", pa.int64()),
        ("row", pa.struct([("id", pa.int32()), ("name", pa.string())])),
    ]
)


def write_orc(location: str, events: Iterable[RowEvent]) -> None:
    rows = [
        dict(zip(SCHEMA.names, (*event[:5], event.row and {"id": event.row_id, "name": event.row}), strict=True))
        for event in sorted(events)
    ]
    files.make_directory(location)
    orc.write_table(pa.Table.from_pylist(rows, SCHEMA), files.join(location, bucket_file_name(0)), compression="zlib")
    files.write(files.join(location, VERSION_MARKER), VERSION_CONTENT)


def read_orc(location: str) -> list[RowEvent]:
    name = bucket_file_name(0)
    rows = orc.ORCFile(files.join(location, name)).read().to_pylist()
    events = [RowEvent(*(row[column] for column in SCHEMA.names)) for row in rows]
    check_file(name, events)
    return events


@pytest.fixture
def spark_world(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(tables, "write_directory", write_orc)
    monkeypatch.setattr(tables, "read_directory", read_orc)
    return World(db, tmp_path)


def spark_submit() -> SparkSubmitExecutor:
    """Spark's own launcher, from the wheel, as an operator would name it in the settings."""
    ensure_java()
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    return SparkSubmitExecutor([str(launcher), "--master", "local[1]", "--conf", "spark.ui.enabled=false"], 200)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("start", [lambda: WarmSparkExecutor(timeout_s=200), spark_submit], ids=["warm", "submit"])
def test_minor_then_major(spark_world: World, start: Callable[[], CompactionExecutor]) -> None:
    world, executor = spark_world, start()
    left = {
        CompactionType.MINOR: ["delete_delta_0000001_0000003_v0000005", "delta_0000001_0000003_v0000005"],
        CompactionType.MAJOR: ["base_0000007_v0000010"],
    }
    try:
        for kind, directories in left.items():
            world.write(inserts=3)
            world.write(inserts=2, deletes=[min(world.read())])
            world.write()
            lost = world.open()
            world.write(lost, inserts=2)
            world.txns.abort_txn(lost)
            rows = world.read()
            answer = world.request(kind)
            world.worker(executor=executor).run_once()
            done = world.service.get(answer.id)
            assert done.state is CompactionState.READY_FOR_CLEANING, done.error_message
            assert world.read() == rows
            world.cleaner().run_once()
            assert world.directories() == directories
            assert world.read() == rows
    finally:
        executor.close()
