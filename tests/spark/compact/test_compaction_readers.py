"""After every kind of compaction the table reads the same: for snapshots from long before, just before, and new ones.

Real files, Spark, server, Worker and Cleaner. What a snapshot sees is read by the product and by an independent reader
in plain Python (tests/spark/checker.py), row by row with ROW__IDs; a rebalance gives new ones, so there the rows count.
The Cleaner runs while the readers are there, and has to leave them what they need, and again when they have ended, and
then has to leave nothing but what the compaction made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.filesystem import files
from hive_acid.format.names import VERSION_CONTENT, VERSION_MARKER, delta_name
from hive_acid.format.rows import INSERT, encode_bucket
from hive_acid.format.state import DirectoryState, directory_state
from hive_acid.transactions.locks import Operation, write_component
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from metastore.compaction.states import CompactionState
from tests.served import served
from tests.spark.checker import check_table, check_visible, location_of
from tests.spark.house import House
from tests.spark.placed import place, write_events
from tests.waiting import until

NAME = "d.t"
COLUMNS = {"id": "int", "name": "string"}
ROW = pa.struct([("id", pa.int32()), ("name", pa.string())])
PARTITIONS = ("p=0", "p=1")

Rows = dict[str, list[Any]]
"""By partition: (ROW__ID, row), or rows alone."""


@dataclass(frozen=True)
class Case:
    """A kind of compaction and a table for it."""

    kind: str
    insert_only: bool = False
    converted: bool = False

    @property
    def keeps_ids(self) -> bool:
        """Whether the rows have the same ids afterwards; those of insert-only tables have none."""
        return self.kind != "rebalance" and not self.insert_only

    @property
    def has_raw_files(self) -> bool:
        """Whether there are files without ACID columns in the end."""
        return self.insert_only or (self.converted and self.kind == "minor")

    @property
    def partitions(self) -> tuple[str | None, ...]:
        return (None,) if self.converted else PARTITIONS


CASES = {
    "minor": Case("minor"),
    "major": Case("major"),
    "rebalance": Case("rebalance"),
    "minor, converted": Case("minor", converted=True),
    "major, converted": Case("major", converted=True),
    "minor, insert-only": Case("minor", insert_only=True),
    "major, insert-only": Case("major", insert_only=True),
}


class Scene:
    """A table with its writers."""

    def __init__(self, acid: Any, house: House, case: Case) -> None:
        self.acid, self.house, self.case = acid, house, case
        properties = {"transactional_properties": "insert_only"} if case.insert_only else {}
        keys = {} if case.converted else {"p": "int"}
        acid.create_table(NAME, COLUMNS, partitioned_by=keys, properties=properties)
        self.location = location_of(acid, NAME)
        if case.converted:
            place(self._numbers(900, 904), self.location / "000000_0")
            place(self._numbers(904, 907), self.location / "000000_0_copy_1")
            place(self._numbers(907, 910), self.location / "000001_0")

    def write_much(self, first: int, *, together: bool = False) -> None:
        """Deltas of both kinds in several buckets, an aborted write, and `together` statements of one transaction."""
        self.acid.insert(NAME, self._numbers(first, first + 40, files=3))
        self.write_one(first + 60).abort()
        if self.case.insert_only:
            self.acid.insert(NAME, self._numbers(first + 40, first + 44))
            return
        self.acid.update(NAME, {"name": "concat(name, '!')"}, "id % 10 = 3")
        if together:
            with self.acid.transaction():
                self.acid.insert(NAME, self._numbers(first + 40, first + 44))
                self.acid.update(NAME, {"name": "'again'"}, f"id >= {first + 38}")
                self.acid.delete(NAME, f"id = {first + 41}")

    def write_one(self, number: int) -> Transaction:
        """A row of a writer that has not committed; the files stay, whatever becomes of it."""
        partition = self.case.partitions[0]
        transaction: Transaction = self.acid.connection.begin()
        transaction.lock(write_component(*NAME.split("."), Operation.INSERT, partition=partition))  # type: ignore[arg-type]
        write_id = transaction.write_id(*NAME.split("."))
        directory = self.location / (partition or "") / delta_name(write_id, write_id, 0)
        row = {"id": number, "name": "by hand"}
        if self.case.insert_only:
            directory.mkdir(parents=True)
            pyarrow.orc.write_table(pa.Table.from_pylist([row], pa.schema(ROW)), directory / "000000_0")
        else:
            write_events(directory / "bucket_00000", [(INSERT, write_id, encode_bucket(0), 0, write_id, row)], ROW)
            (directory / VERSION_MARKER).write_bytes(VERSION_CONTENT)
        return transaction

    def compact(self) -> None:
        """It must be done, not refused."""
        assert self.house.compact(NAME, self.case.kind, self.case.partitions) == {CompactionState.READY_FOR_CLEANING}

    def compact_one(self) -> None:
        """The place where a writer was in the way, again; the others are compact."""
        done = self.house.compact(NAME, self.case.kind, self.case.partitions[:1])
        assert done == {CompactionState.READY_FOR_CLEANING}

    def states(self) -> list[tuple[Path, DirectoryState]]:
        """What a new snapshot finds in each place."""
        with self.acid.connection.begin(TransactionKind.READ) as transaction:
            write_ids = transaction.write_ids(*NAME.split("."))
            return [
                (at, directory_state(files.list_tree(str(at)), write_ids, transaction.snapshot, lambda _: b""))
                for at in (self.location / (partition or "") for partition in self.case.partitions)
            ]

    def _numbers(self, first: int, last: int, files: int = 1) -> Any:
        columns = ["int(id) id", "concat('n', id) name", *([] if self.case.converted else ["int(id % 2) p"])]
        return self.acid.spark.range(first, last, 1, files).selectExpr(*columns)


class Reader:
    """A snapshot, held: by a transaction of our own for the checker, and by a frame of the product."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._transaction = scene.acid.connection.begin(TransactionKind.READ)
        self._write_ids = self._transaction.write_ids(*NAME.split("."))
        self._frame = scene.acid.table(NAME, row_id=not scene.case.insert_only)
        self.rows = self._checked()
        self.check()

    def check(self) -> None:
        """It reads what it has read at first, both ways."""
        assert self._checked() == self.rows
        seen = sorted(str(row.asDict(recursive=True)) for row in self._frame.collect())
        assert seen == sorted(self._worded(at, row) for at, rows in self.rows.items() for row in rows)

    def end(self) -> None:
        self._transaction.commit()
        del self._frame

    def _checked(self) -> Rows:
        found: Rows = {}
        for partition in self._scene.case.partitions:
            place = self._scene.location / (partition or "")
            events = check_visible(place, self._write_ids, self._transaction.snapshot)
            if self._scene.case.insert_only:
                found[partition or ""] = sorted(event.row for event in events)
            else:
                found[partition or ""] = sorted((event.key, event.row) for event in events)
        return found

    def _worded(self, at: str, found: Any) -> str:
        if self._scene.case.insert_only:
            words, row = {}, found
        else:
            key, row = found
            words = {"ROW__ID": {"writeId": key.write_id, "bucketId": key.bucket_property, "rowId": key.row_id}}
        return str({**words, "id": row[0], "name": row[1], **({"p": int(at[2:])} if at else {})})


@pytest.fixture
def scene(
    spark: SparkSession, postgres_url: Any, template: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    with (
        served(postgres_url, template, tmp_path / "warehouse") as server,
        hive_acid.spark.session(spark, server.uri) as acid,
    ):
        acid.create_database("d")
        yield Scene(acid, House(server.db, tmp_path / "warehouse", spark), CASES[request.param])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("scene", CASES, indirect=True)
def test_everybody_reads_on(scene: Scene) -> None:
    scene.write_much(0)
    early = Reader(scene)
    scene.write_much(100, together=True)
    late = Reader(scene)
    beside = None if scene.case.kind == "rebalance" else scene.write_one(800)
    scene.compact()
    new = Reader(scene)
    require_same(scene, late, new)
    assert scene.house.clean().cleaned == [], "there are readers from before"
    for reader in (early, late, new):
        reader.check()
    early.end()
    assert scene.house.clean().cleaned == [], "one is left"
    late.check()
    late.end()
    new.end()
    if beside is not None:
        assert scene.house.clean().cleaned == [], "the writer's snapshot is as old"
        beside.commit()
    clean_all(scene)
    last = Reader(scene)
    if beside is not None:
        assert count(last) == count(late) + 1
        last.end()
        scene.compact_one()
        clean_all(scene)
        last = Reader(scene)
        assert count(last) == count(late) + 1
    else:
        require_same(scene, late, last)
    require_compact(scene)
    last.end()


def clean_all(scene: Scene) -> None:
    """Nobody is in the way, as soon as the heartbeat threads have ended what the last frames held."""
    runs = [scene.house.clean()]
    until(lambda: runs[-1].cleaned, 10, between=lambda: runs.append(scene.house.clean()))
    assert not runs[-1].failed


def count(reader: Reader) -> int:
    return sum(map(len, reader.rows.values()))


def require_same(scene: Scene, before: Reader, after: Reader) -> None:
    """The same rows, and where they keep them, the same ids."""
    if scene.case.kind == "rebalance":
        rows = [{at: sorted(row for _, row in found) for at, found in one.rows.items()} for one in (before, after)]
    else:
        rows = [before.rows, after.rows]
    assert rows[0] == rows[1]


def require_compact(scene: Scene) -> None:
    """Nothing is left but the results: a base or a pair of deltas, a sorted file for each bucket."""
    if not scene.case.has_raw_files:
        check_table(scene.location)
    for place_, state in scene.states():
        assert not state.obsolete
        assert not state.aborted
        assert not state.originals or scene.case.has_raw_files
        kinds = [found.directory.kind for found in (*state.data, *state.delete_deltas)]
        assert len(kinds) == len(set(kinds)) <= 3, place_
        if scene.case.kind == "rebalance":
            rows = [pyarrow.orc.ORCFile(place_ / file.path).nrows for found in state.data for file in found.files]
            assert max(rows) - min(rows) <= 1
