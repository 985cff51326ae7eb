"""A table's life with writers, readers, compactions, faults and the Cleaner in any order.

Whatever happens, every snapshot that is still held reads exactly the rows it saw when it was taken: the Cleaner never
removes a directory that such a snapshot selects.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from hive_acid.errors import TxnAbortedError
from hive_acid.format.rows import RowId
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId
from metastore.compaction.states import CompactionState, CompactionType
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.store.database import Database
from metastore.txn.states import TxnType

from .world import World, fail

Snapshot = tuple[ValidWriteIdList, ValidTxnList]


class Killed(BaseException):
    """The server dies in the middle of a compaction."""


def _kill(*_: object) -> None:
    raise Killed


class Life(RuleBasedStateMachine):
    """One table; `tables` gives it a name of its own in the shared database."""

    db: Database
    warehouse: Path
    tables: Iterator[int]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.db, self.warehouse, f"t{next(self.tables)}")
        self.world.configure(max_deltas=3)
        self.rows: set[RowId] = set()
        self.writers: dict[TxnId, tuple[set[RowId], set[RowId]]] = {}
        self.readers: dict[TxnId, tuple[Snapshot, set[RowId]]] = {}

    @precondition(lambda self: len(self.writers) + len(self.readers) < 2)
    @rule(inserts=st.integers(0, 3), deletes=st.integers(0, 2))
    def write(self, inserts: int, deletes: int) -> None:
        txn_id = self.world.open()
        targets = sorted(self.world.read(self.world.snapshot(txn_id)))[:deletes]
        write_id = self.world.write(txn_id, inserts, targets)
        new = {RowId(write_id, 536870912, row_id) for row_id in range(inserts)}
        self.writers[txn_id] = (new, set(targets))

    @rule(fates=st.lists(st.sampled_from([True, True, True, False]), min_size=1, max_size=3))
    def write_and_end(self, fates: list[bool]) -> None:
        for commits in fates:
            txn_id = self.world.open()
            write_id = self.world.write(txn_id, inserts=1)
            self.writers[txn_id] = ({RowId(write_id, 536870912, 0)}, set())
            self.end(txn_id, commits)

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), commits=st.sampled_from([True, True, False]))
    def end_writer(self, data: st.DataObject, commits: bool) -> None:
        self.end(data.draw(st.sampled_from(sorted(self.writers))), commits)

    def end(self, txn_id: TxnId, commits: bool) -> None:
        inserted, deleted = self.writers.pop(txn_id)
        try:
            if not commits:
                self.world.txns.abort_txn(txn_id)
                return
            self.world.txns.commit_txn(txn_id)
        except TxnAbortedError:
            return  # a conflict: the other one was first
        assert not deleted - self.rows
        self.rows = self.rows - deleted | inserted

    @precondition(lambda self: not self.writers)
    @rule(inserts=st.integers(0, 2))
    def overwrite(self, inserts: int) -> None:
        """Its exclusive lock keeps everybody out, so it is alone."""
        if self.readers:
            return
        write_id = self.world.write(inserts=inserts, overwrite=True)
        self.rows = {RowId(write_id, 536870912, row_id) for row_id in range(inserts)}

    @precondition(lambda self: len(self.readers) < 3)
    @rule(txn_type=st.sampled_from([TxnType.DEFAULT, TxnType.READ_ONLY]))
    def open_reader(self, txn_type: TxnType) -> None:
        txn_id = self.world.open(txn_type)
        self.readers[txn_id] = (self.world.snapshot(txn_id), set(self.rows))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def end_reader(self, data: st.DataObject) -> None:
        txn_id = data.draw(st.sampled_from(sorted(self.readers)))
        self.readers.pop(txn_id)
        self.world.txns.commit_txn(txn_id)

    @rule(kind=st.sampled_from([CompactionType.MINOR, CompactionType.MAJOR]), reads=st.booleans())
    def compact(self, kind: CompactionType, reads: bool) -> None:
        """There is something to compact if no writer is open; perhaps a reader comes while Spark works."""
        self.write_and_end([True, True])
        if reads and len(self.readers) < 3:
            self.world.executor.before = lambda job, cancelled: self.open_reader(TxnType.DEFAULT)
        answer = self.world.request(kind)
        self.world.worker().run_once()
        self.world.executor.before = lambda job, cancelled: None
        state = self.world.service.get(answer.id).state
        assert state in (CompactionState.READY_FOR_CLEANING, CompactionState.REFUSED)

    @rule(after=st.booleans(), dies=st.booleans())
    def compact_with_a_fault(self, after: bool, dies: bool) -> None:
        fault = _kill if dies else fail
        setattr(self.world.executor, "after" if after else "before", fault)
        self.world.request(CompactionType.MAJOR)
        try:
            self.world.worker().run_once()
        except Killed:
            for compaction in self.world.service.show(table=self.world.table, state=CompactionState.WORKING):
                self.world.txns.abort_txn(compaction.txn_id or TxnId(0))
            self.world.service.requeue()
        self.world.executor.before = lambda job, cancelled: None
        self.world.executor.after = lambda job: None

    @rule()
    def clean(self) -> None:
        run = self.world.cleaner().run_once()
        assert not run.failed

    @rule()
    def keep_house(self) -> None:
        AcidTxnCleaner(self.db, HousekeepingConfig(finished_retention_ms=0)).run_once()

    @invariant()
    def everybody_reads_what_they_saw(self) -> None:
        assert self.world.read() == self.rows
        for snapshot, rows in self.readers.values():
            assert self.world.read(snapshot) == rows

    def teardown(self) -> None:
        """With everybody gone, one more compaction and cleaning leaves a single directory."""
        for txn_id in (*self.writers, *self.readers):
            self.world.txns.abort_txn(txn_id)
        for _ in range(2):
            self.world.request(CompactionType.MAJOR)
            while self.world.worker().run_once():
                pass
            while self.world.cleaner().run_once().cleaned:
                pass
        assert self.world.read() == self.rows
        assert len(self.world.directories()) <= 1
        assert self.world.service.aborts_to_clean() == []


@pytest.mark.slow
def test_life(db: Database, tmp_path: Path) -> None:
    machine = type("LifeHere", (Life,), {"db": db, "warehouse": tmp_path, "tables": itertools.count(1)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR")
