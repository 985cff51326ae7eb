"""The contract between worker and Spark program: real ORC files, the real program, one process for all jobs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from hive_acid.filesystem import files
from hive_acid.format.names import VERSION_CONTENT, VERSION_MARKER, bucket_file_name
from hive_acid.format.rows import RowEvent, check_file
from metastore.compaction.models import Compaction
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.executor import CompactionExecutor, WarmSparkExecutor
from metastore.store.database import Database
from tests.compaction import world as tables
from tests.compaction.world import World
from tests.jvm import FOR_SPARK
from tests.waiting import until

BY_SPARK = {"tblprops.orc.stripe.size": str(64 * 1024 * 1024)}
"""Properties of a request that has Spark write, however few rows there are."""

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
    for name, value in FOR_SPARK.items():
        monkeypatch.setenv(name, value)
    return World(db, tmp_path)


def minor_then_major(world: World, executor: CompactionExecutor) -> Compaction:
    """A table with deletes and an aborted write is compacted twice, and reads the same; the last compaction."""
    left = {
        CompactionType.MINOR: ["delete_delta_0000001_0000003_v0000005", "delta_0000001_0000003_v0000005"],
        CompactionType.MAJOR: ["base_0000007_v0000010"],
    }
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
    assert done.job_id is not None
    return done


def by_rounds(world: World, executor: CompactionExecutor) -> None:
    """The same for more deltas than are merged at a time."""
    world.configure(max_deltas=4)
    for kind in (CompactionType.MINOR, CompactionType.MAJOR):
        for number in range(5):
            world.write(inserts=2, deletes=[min(world.read())] if number % 2 else [])
        rows = world.read()
        world.request(kind)
        while world.worker(executor=executor).run_once():
            assert world.read() == rows
        found = world.service.show()
        assert {one.state for one in found} <= {CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED}
        assert max(one.round for one in found) > 1
        while world.cleaner().run_once().cleaned:
            pass
        assert world.read() == rows
    assert len(world.directories()) == 1


@pytest.mark.spark
@pytest.mark.slow
def test_minor_then_major(spark_world: World) -> None:
    with contextlib.closing(WarmSparkExecutor()) as executor:
        minor_then_major(spark_world, executor)
        by_rounds(spark_world, executor)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.sampled(of="Sparks that compact")
def test_slots_share_one_spark_and_one_compaction_is_stopped(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction is aborted while Spark sorts: the job ends within seconds, and only that one."""
    monkeypatch.setattr(tables, "write_directory", write_orc)
    monkeypatch.setattr(tables, "read_directory", read_orc)
    small, large = World(db, tmp_path), World(db, tmp_path, "large")
    for _ in range(2):
        small.write(inserts=3)
        large.write(inserts=250_000)
    with contextlib.closing(WarmSparkExecutor()) as executor, ThreadPoolExecutor() as pool:
        asked = large.request(properties=BY_SPARK)
        stopping = pool.submit(large.worker("worker-2", executor).run_once)
        until(lambda: large.service.get(asked.id).job_id is not None)
        beside = small.request()
        working = pool.submit(small.worker("worker-1", executor).run_once)
        txn_id = large.service.get(asked.id).txn_id
        assert txn_id is not None
        large.txns.abort_txn(txn_id)
        begun = time.monotonic()
        assert stopping.result(60)
        assert time.monotonic() - begun < 45  # two seconds on a machine that has nothing else to do
        stopped = large.service.get(asked.id)
        assert (stopped.state, stopped.error_message) == (
            CompactionState.FAILED,
            "its transaction was aborted, or timed out",
        )
        assert working.result(60)
        done = small.service.get(beside.id)
        assert done.state is CompactionState.READY_FOR_CLEANING, done.error_message
        assert _application(done) == _application(stopped)


def _application(compaction: Compaction) -> str:
    assert compaction.job_id is not None
    return compaction.job_id.partition(":")[0]
