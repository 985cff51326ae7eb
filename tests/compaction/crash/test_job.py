"""The Spark program of a compaction killed before every step: the table stays as it is, the next attempt succeeds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql import SparkSession

from hive_acid.filesystem import files
from hive_acid.format.rows import INSERT, RowEvent, encode_bucket
from metastore.compaction.models import Storage, TableInfo
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.executor import CompactionExecutor, WarmSparkExecutor
from metastore.compaction.worker.job import BackendLostError
from metastore.store.database import Database
from tests.compaction import world as tables
from tests.compaction.crash.points import JOB_UNREACHED, job_points
from tests.compaction.crash.steps import Point, points_of
from tests.compaction.worker.test_spark import BY_SPARK, read_orc, write_orc
from tests.compaction.world import ACID, World
from tests.crash.steps import ALL_STEPS
from tests.sampling import Sample
from tests.spark.read.test_insert_only import FORMATS

CASES = (  # type: ignore[var-annotated]
    (CompactionType.MINOR, True, {}),
    (CompactionType.MAJOR, True, {}),
    (CompactionType.MAJOR, False, {}),
    (CompactionType.MAJOR, True, BY_SPARK),
)
"""Kinds of compaction, whether rows are left, and properties of the request."""

INSERT_ONLY_FORMS = ("orc", "parquet")
"""The one is read and written, the other joined by its bytes, as it has dates."""


class Programs:
    """Spark programs over the tests' JVM; one that is never killed stays from attempt to attempt."""

    def __init__(self, world: World, scratch: Path) -> None:
        self.world = world
        self._told = scratch / "told"
        self._told.touch()
        self.properties: Mapping[str, str] = {}
        """Of requests."""
        self._lasting = self._program(None)

    def close(self) -> None:
        self._lasting.close()

    def compact(self, kind: CompactionType) -> list[str]:
        """Compact and clean, beyond the first kill of this test or none; the steps of it."""
        self._told.write_text("")
        assert self.world.request(kind, self.properties)
        assert self.world.worker(executor=self._lasting).run_once()
        steps = self._told.read_text().splitlines()
        assert not self.world.cleaner().run_once().failed
        assert {found.state for found in self.world.service.show()} == {CompactionState.SUCCEEDED}
        return steps

    def kill(self, kind: CompactionType, last: Point) -> None:
        """Begin a compaction whose program is killed."""
        executor = self._program(last)
        assert self.world.request(kind, self.properties).accepted
        with contextlib.closing(executor), pytest.raises(BackendLostError):
            self.world.worker(executor=executor).run_once()

    def _program(self, last: Point | None) -> CompactionExecutor:
        command = [sys.executable, "-m", "tests.compaction.crash.processes.job", str(self._told)]
        return WarmSparkExecutor([*command, *(map(str, last) if last else ())])


@pytest.fixture
def programs(spark: SparkSession, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    parameters = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", str(parameters.port))
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", parameters.auth_token)
    monkeypatch.setattr(tables, "write_directory", write_orc)
    monkeypatch.setattr(tables, "read_directory", read_orc)
    with contextlib.closing(Programs(World(db, tmp_path / "warehouse"), tmp_path)) as made:
        yield made


class RowFiles:
    """Files without ids, as those of insert-only tables; rows tell who wrote them, so that they can be told apart."""

    def __init__(self, form: str) -> None:
        self.form = form

    def write(self, location: str, events: Iterable[RowEvent]) -> None:
        files.make_directory(location)
        rows = [(event.original_write_id, event.row_id, date(2024, 1, 1)) for event in sorted(events)]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        table = pa.table(
            [
                pa.array(values, kind)
                for values, kind in zip(columns, (pa.int64(), pa.int64(), pa.date32()), strict=True)
            ],
            names=["write_id", "row_id", "day"],
        )
        (orc if self.form == "orc" else parquet).write_table(table, files.join(location, "000000_0"))

    def read(self, location: str) -> list[RowEvent]:
        found = []
        for entry in files.list_tree(location):
            path = files.join(location, entry.path)
            table = (orc if self.form == "orc" else parquet).read_table(path)
            found += [(row["write_id"], row["row_id"]) for row in table.to_pylist()]
        bucket = encode_bucket(0)
        return [RowEvent(INSERT, write_id, bucket, row_id, write_id, None) for write_id, row_id in found]


def insert_only(db: Database, warehouse: Path, form: str) -> World:
    """A world whose table has files of a format, with dates."""
    world = World(db, warehouse, f"t_{form}")
    columns = (("write_id", "bigint"), ("row_id", "bigint"), ("day", "date"))
    input_format, serde = FORMATS[form]
    storage = Storage(input_format, serde, {}, ())
    info = TableInfo(world.root, columns, (), {**ACID, "transactional_properties": "insert_only"}, {}, storage)
    world.catalogue.tables["db", world.table] = info
    return world


def write_history(world: World, *, leaves_rows: bool) -> None:
    """Deltas of both kinds, and an aborted one; perhaps all is deleted in the end."""
    world.write(inserts=3)
    world.write(inserts=2, deletes=[min(world.read())])
    lost = world.open()
    world.write(lost, inserts=2)
    world.txns.abort_txn(lost)
    world.write(inserts=1 if leaves_rows else 0, deletes=[max(world.read())] if leaves_rows else world.read())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kill(
    programs: Programs, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    found: set[str] = set()
    for kind, leaves_rows, programs.properties in CASES:
        history = partial(write_history, programs.world, leaves_rows=leaves_rows)
        kill_everywhere(programs, kind, history, found, sample)
    programs.properties = {}
    for form in INSERT_ONLY_FORMS:
        written = RowFiles(form)
        monkeypatch.setattr(tables, "write_directory", written.write)
        monkeypatch.setattr(tables, "read_directory", written.read)
        programs.world = insert_only(db, tmp_path / "warehouse", form)
        kill_everywhere(programs, CompactionType.MINOR, partial(write_inserts, programs.world), found, sample)
    reached = {step.partition(": ")[2].partition(".<locals>")[0] for step in found}
    assert job_points() - reached == JOB_UNREACHED.keys(), "steps are left out, or named as such without need"


def kill_everywhere(
    programs: Programs, kind: CompactionType, history: Callable[[], None], found: set[str], sample: Sample
) -> None:
    """Kill before each step of a compaction of what `history` writes; the names of the steps join `found`."""
    world = programs.world
    history()
    programs.compact(kind)  # a table that has been compacted is what all the others find, too
    history()
    rows = world.read()
    points = points_of(programs.compact(kind))
    compact = world.directories()
    assert world.read() == rows
    for point in _chosen(points, found, sample):
        history()
        rows, directories = world.read(), world.directories()
        programs.kill(kind, point)
        assert world.read() == rows, point
        assert world.directories() == directories, f"{point}: what the program made is gone"
        programs.compact(kind)
        assert world.read() == rows, point
        assert len(world.directories()) <= len(compact), point


def write_inserts(world: World) -> None:
    """Deltas, and an aborted one among them."""
    world.write(inserts=3)
    lost = world.open()
    world.write(lost, inserts=2)
    world.txns.abort_txn(lost)
    world.write(inserts=2)


def _chosen(points: list[Point], found: set[str], sample: Sample) -> list[Point]:
    """The steps before which to kill; in a short run the first of each name, whatever the kind, that the day has."""
    if not ALL_STEPS:
        points = [point for point in points if point.number == 1 and point.step not in found]
    found.update(point.step for point in points)
    return points if ALL_STEPS else sample.of(points)
