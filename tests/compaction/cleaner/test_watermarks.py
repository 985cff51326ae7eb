"""Whom the Cleaner waits for on which table, and what it says meanwhile (transactions.md §4.8)."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hive_acid.errors import MetaError
from hive_acid.ids import TxnId, WriteId
from metastore.compaction.states import CompactionState, CompactionType
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.min_history import MinHistory
from metastore.txn.models import Intent
from metastore.txn.states import TxnType
from tests.compaction.world import OWNER, World


class Two:
    """Two tables in one metastore, each with two writes; `a` is read."""

    def __init__(self, db: Database, warehouse: Path) -> None:
        self.a, self.b = (World(db, warehouse, name) for name in ("a", "b"))
        self.history = MinHistory(db)
        for world in (self.a, self.b):
            world.write()
            world.write()

    def reader(self, *tables: str, txn_type: TxnType = TxnType.READ_ONLY) -> TxnId:
        txn_id = self.a.open(txn_type)
        if tables:
            self.history.add(txn_id, {f"db.{table}": 3 for table in tables})
        return txn_id

    def replace(self) -> None:
        """Compact both tables."""
        for world in (self.a, self.b):
            assert world.compact(CompactionType.MAJOR).state is CompactionState.READY_FOR_CLEANING

    def cleaned(self) -> set[str]:
        """The tables that are clean after a run of the Cleaner that knows both."""
        self.a.catalogue.tables.update(self.b.catalogue.tables)
        self.a.cleaner().run_once()
        return {world.table for world in (self.a, self.b) if len(world.directories()) == 1}

    def codes(self, table: str) -> list[tuple[str, int | None]]:
        return [(decision.code, decision.blocker) for decision in self.a.service.decisions("db", table)]


@pytest.fixture
def two(db: Database, tmp_path: Path) -> Two:
    return Two(db, tmp_path)


@pytest.mark.parametrize("txn_type", [TxnType.READ_ONLY, TxnType.DEFAULT])
def test_a_long_reader_of_one_table_delays_only_that(two: Two, txn_type: TxnType) -> None:
    reader = two.reader("a", txn_type=txn_type)
    snapshot = two.a.snapshot(reader)
    rows = two.a.read(snapshot)
    two.replace()
    assert two.cleaned() == {"b"}
    assert two.a.read(snapshot) == rows
    assert two.codes("a") == [("reader", reader)]
    assert two.codes("b") == []
    two.a.txns.commit_txn(reader)
    assert two.cleaned() == {"a", "b"}
    assert two.codes("a") == []


def test_who_has_named_nothing_may_read_anything(two: Two) -> None:
    """Its locks prove nothing: the snapshot may be older than they are, and reads need none at all."""
    reader = two.reader()
    component = LockComponent(LockType.SHARED_READ, "db", "a")
    two.a.locks.lock(LockRequest((component,), OWNER, reader))
    two.replace()
    assert two.cleaned() == set()
    assert two.codes("b") == [("reader", reader)]
    (decision,) = two.a.service.decisions("db", "b")
    assert "has not said which tables it reads" in decision.message
    assert f"transaction {reader} of ann on host1 with test" in decision.message
    assert f"ABORT TRANSACTIONS {reader}" in decision.message
    assert two.a.service.show(table="b")[0].reason == decision.message


def test_what_is_named_later_is_kept_from_then_on(two: Two) -> None:
    reader = two.reader("a")
    two.history.add(reader, {"db.b": 3})  # type: ignore[dict-item]
    two.replace()
    assert two.cleaned() == set()


@pytest.mark.parametrize("txn_type", [TxnType.READ_ONLY, TxnType.DEFAULT])
def test_what_is_named_with_the_opening_is_kept_and_nothing_else(two: Two, txn_type: TxnType) -> None:
    """From its first moment: no compaction fits in between."""
    (user,) = two.a.txns.open_txns(1, OWNER, txn_type, Intent((("db", "a"),)))
    snapshot = two.a.snapshot(user)
    rows = two.a.read(snapshot)
    two.replace()
    assert two.cleaned() == {"b"}
    assert two.a.read(snapshot) == rows
    assert two.codes("a") == [("reader", user)]
    two.a.txns.commit_txn(user)
    assert two.cleaned() == {"a", "b"}


@pytest.mark.parametrize("clean", [True, False])
def test_who_names_a_table_too_late_is_refused(two: Two, clean: bool) -> None:
    """Of a table that it had not named, files may be gone, or going, that its snapshot shows."""
    (user,) = two.a.txns.open_txns(1, OWNER, intent=Intent((("db", "a"),)))
    two.history.add(user, {"db.b": WriteId(3)})  # nothing has happened yet
    other = two.reader("a")
    two.replace()
    if clean:
        two.a.txns.commit_txn(user)
        assert two.cleaned() == {"b"}
        two.a.configure(keep_succeeded=0)
        two.a.service.purge_history()
    with pytest.raises(MetaError, match=r"has named its tables before, and db\.b was none of them"):
        two.history.add(other, {"db.a": WriteId(3), "db.b": WriteId(3)})
    two.history.add(other, {"db.a": WriteId(2)})
    two.a.txns.commit_txn(other)
    late = two.reader("a")
    two.history.add(late, {"db.b": WriteId(3)})  # it sees what the compaction made


def test_who_has_named_nothing_may_name_at_any_time(two: Two) -> None:
    """Until then everything has been kept for it."""
    user = two.reader()
    two.replace()
    assert two.cleaned() == set()
    two.history.add(user, {"db.b": WriteId(3)})
    assert two.cleaned() == {"a"}


def test_what_is_locked_is_kept_as_well_as_what_is_named(two: Two) -> None:
    reader = two.reader("b")
    two.a.locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, "db", "a"),), OWNER, reader))
    two.replace()
    assert two.cleaned() == set()
    two.a.txns.commit_txn(reader)
    assert two.cleaned() == {"a", "b"}


def test_who_came_after_the_commit_is_not_waited_for(two: Two) -> None:
    two.replace()
    two.reader()
    two.reader("a")
    assert two.cleaned() == {"a", "b"}


def test_a_long_compaction_holds_back_its_own_table_alone(two: Two) -> None:
    """Once it has said what it compacts; until then it might be anybody's."""
    two.a.write()
    two.a.write()
    seen: list[list[tuple[str, int | None]]] = []

    def meanwhile(*_: object) -> None:
        assert two.b.compact(CompactionType.MAJOR).state is CompactionState.READY_FOR_CLEANING
        two.a.catalogue.tables.update(two.b.catalogue.tables)
        two.a.cleaner().run_once()
        seen.append(two.codes("b"))

    two.a.executor.before = meanwhile
    two.a.compact(CompactionType.MINOR)
    assert seen == [[]]
    assert len(two.b.directories()) == 1


def test_a_compactor_that_has_said_nothing_yet_is_waited_for(two: Two) -> None:
    compactor = two.a.open(TxnType.COMPACTION)
    two.replace()
    assert two.cleaned() == set()
    assert two.codes("a") == [("reader", compactor)]


def test_decisions_stay_as_they_are(two: Two) -> None:
    """Looking again every few seconds writes nothing."""
    two.reader("a")
    two.replace()
    cleaner = two.a.cleaner()
    cleaner.run_once()
    (before,) = two.a.service.decisions("db", "a")
    cleaner.run_once()
    two.a.cleaner().run_once()
    assert two.a.service.decisions("db", "a") == [before]


def test_retention_and_retries_are_explained(two: Two) -> None:
    two.a.configure(delayed_cleanup=True, cleaner_retention_ms=3_600_000)
    two.replace()
    two.a.cleaner().run_once()
    (decision,) = two.a.service.decisions("db", "a")
    assert decision.code == "retention"
    assert datetime.now(UTC).strftime("%Y-%m-") in decision.message
    assert "hive.compactor.cleaner.retention.time.seconds" in decision.message
    two.a.configure(delayed_cleanup=False, cleaner_retry_ms=60_000)
    (waiting,) = two.a.service.show(table="a")
    two.a.service.clean_failed(waiting, "the disk is away")
    two.a.cleaner().run_once()
    (decision,) = two.a.service.decisions("db", "a")
    assert decision.code == "retry"
    assert "the disk is away" in decision.message


def test_an_uncommitted_compaction_is_explained(two: Two) -> None:
    answer = two.a.request()
    assert two.a.service.find_next("worker-1") is not None
    txn_id = two.a.open(TxnType.COMPACTION)
    two.a.service.update_state(answer.id, "worker-1", txn_id, 2)  # type: ignore[arg-type]
    two.a.service.mark_compacted(answer.id, "worker-1")
    two.a.cleaner().run_once()
    assert two.codes("a") == [("uncommitted", None)]
