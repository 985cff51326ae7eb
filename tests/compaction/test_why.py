"""Why something does not happen: each reason really produced by the services, each answer with what to do next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hive_acid.errors import NoSuchObjectError
from hive_acid.format.names import base_name, delta_name
from metastore.compaction.models import CompactionRequest
from metastore.compaction.queue.decisions import Decider, Look
from metastore.compaction.states import CompactionState, CompactionType
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.txn.config import TxnConfig
from metastore.txn.min_history import MinHistory
from metastore.txn.models import TxnOwner
from metastore.txn.states import Operation, TxnType
from metastore.why.cleaning import CleaningAnswers
from metastore.why.models import Answer
from metastore.why.service import WhyService
from metastore.why.words import span

from .world import OWNER, World, fail, removals

BOB = TxnOwner("bob", "host2", "report.py")


def why(world: World) -> WhyService:
    cleaning = CleaningAnswers(world.db, world.service, world.snapshots, world.catalogue, world.config)
    return WhyService(world.db, world.service, cleaning, world.catalogue, removals(world.db), world.config, TxnConfig())


def table(world: World) -> dict[str, Answer]:
    """The answers by code, each of which occurs once and says what to do."""
    answers = why(world).table("db", "t")
    assert len({answer.code for answer in answers}) == len(answers), answers
    assert all(answer.action and answer.message for answer in answers)
    return {answer.code: answer for answer in answers}


def give(world: World, **parameters: str) -> None:
    """Set parameters of the table."""
    info = world.catalogue.tables["db", "t"]
    world.catalogue.tables["db", "t"] = replace(info, parameters={"transactional": "true", **parameters})


def lock(world: World, kind: LockType, txn_id: int | None = None, owner: TxnOwner = OWNER) -> int:
    operation = Operation.UPDATE if txn_id and kind is not LockType.SHARED_READ else None
    component = LockComponent(kind, "db", "t", None, operation)
    return world.locks.lock(LockRequest((component,), owner, txn_id)).lock_id  # type: ignore[arg-type]


# --- compacting ----------------------------------------------------------------------------------


def test_nothing_is_known(world: World) -> None:
    (answer,) = why(world).table("DB", "T")
    assert (answer.subject, answer.code) == ("db.t", "not_looked_at")
    assert "which looks every 300 s" in answer.action


def test_what_there_is_not(world: World) -> None:
    with pytest.raises(NoSuchObjectError, match=r"no table db\.absent"):
        why(world).table("db", "absent")
    with pytest.raises(NoSuchObjectError, match="no partition p=1"):
        why(world).table("db", "t", "p=1")
    with pytest.raises(NoSuchObjectError, match="no compaction 7"):
        why(world).compaction(7)  # type: ignore[arg-type]
    with pytest.raises(NoSuchObjectError, match="lock 7 is not on record"):
        why(world).lock(7)  # type: ignore[arg-type]


def test_a_plain_table(world: World) -> None:
    world.catalogue.tables["db", "t"] = replace(world.catalogue.tables["db", "t"], parameters={})
    assert "TBLPROPERTIES ('transactional'='true')" in table(world)["not_transactional"].action


def test_nobody_works(world: World) -> None:
    world.configure(worker_threads=0)
    world.write()
    answer = world.request()
    told = table(world)["no_worker"]
    assert told.compaction_id == answer.id
    assert "major compaction 1 waits in the queue" in told.message
    assert "none was ever taken up" in told.message
    assert "metastore.compactor.worker.threads" in told.action


def test_it_waits_behind_others(world: World) -> None:
    world.write()
    world.request()
    told = table(world)["waiting"]
    assert "with 0 others" in told.message
    assert told.action.startswith("wait, or start more workers: metastore.compactor.worker.threads is 1")


def test_it_is_worked_on(world: World) -> None:
    world.write()
    world.write()
    world.request()
    found = world.service.find_next("host-1-0")
    assert found is not None
    assert why(world).compaction(found.id) == why(world).table("db", "t")
    world.service.set_progress(
        found.id, "host-1-0", job_id="app-7", progress={"phase": "merge", "rows": 12, "files": 3, "bytes_written": 450}
    )
    told = table(world)["compacting"]
    assert "worked on by host-1-0" in told.message
    assert "job app-7" in told.message
    assert "merge, 12 rows, 3 files and 450 bytes so far" in told.message


def test_it_failed(world: World) -> None:
    world.write()
    world.write()
    world.executor.after = fail
    assert world.compact().state is CompactionState.FAILED
    told = table(world)["failed"]
    assert "Spark has no memory" in told.message
    assert "ALTER TABLE ... COMPACT" in told.action
    # What came later counts.
    world.executor.after = lambda job: None
    world.compact()
    assert "failed" not in table(world)


def test_it_was_refused(world: World) -> None:
    assert world.compact().state is CompactionState.REFUSED
    assert "the major compaction 1 was refused" in table(world)["refused"].message


def test_what_the_initiator_has_put_down(world: World) -> None:
    message = "3 deltas, and a compaction is made of more than 10; all is well"
    world.service.set_decisions([Look("db", "t", None, "below_thresholds", message)], Decider.INITIATOR)
    told = table(world)["below_thresholds"]
    assert told.message == "the Initiator says: 3 deltas, and a compaction is made of more than 10"
    assert told.action == "all is well"
    assert told.since_ms is not None


def test_the_initiator_decides_and_is_quoted(world: World) -> None:
    world.write()
    assert world.initiator().run_once() == []
    told = table(world)
    assert "the Initiator says" in next(iter(told.values())).message
    give(world, NO_AUTO_COMPACTION="true")
    world.write()
    world.initiator().run_once()
    assert "set it to false" in table(world)["no_auto_compaction"].action


def test_what_is_switched_off(world: World) -> None:
    world.configure(initiator_on=False, cleaner_on=False)
    told = table(world)
    assert "metastore.compactor.initiator.on=true" in told["initiator_off"].action
    assert "metastore.compactor.cleaner.on=true" in told["cleaner_off"].action


# --- cleaning ------------------------------------------------------------------------------------


def test_a_reader_holds_files(world: World) -> None:
    first, second = world.write(), world.write()
    (reader,) = world.txns.open_txns(1, BOB)
    compaction = world.compact()
    assert compaction.state is CompactionState.READY_FOR_CLEANING
    told = table(world)["reader"]
    assert (told.txn_id, told.owner, told.compaction_id) == (reader, BOB, compaction.id)
    assert f"transaction {reader} of bob@host2 (report.py)" in told.message
    assert "has not said which tables it reads" in told.message
    assert f"ABORT TRANSACTIONS {reader}" in told.action
    assert sorted(told.files) == [f"{world.location}/{delta_name(n, n, 0)}" for n in (first, second)]
    # The same from the side of the transaction, and the Cleaner waits for just that one.
    held = {answer.code: answer for answer in why(world).transaction(reader)}
    assert held["reader"].files == told.files
    assert [row[7] for row in world.db.call("clean_outlook", 0)] == [reader]
    # It is as the answer says: with the reader gone, the files go.
    world.txns.abort_txn(reader)
    assert "to_clean" in table(world)
    world.cleaner().run_once()
    assert "reader" not in table(world)
    assert world.directories() == [f"{base_name(second)}_v{compaction.txn_id:07}"]


def test_only_those_who_may_need_it_are_named(world: World) -> None:
    world.write()
    world.write()
    named, other = world.txns.open_txns(2, BOB)
    history = MinHistory(world.db)
    history.add(named, {"db.t": 1})  # type: ignore[dict-item]
    history.add(other, {"db.other": 1})  # type: ignore[dict-item]
    world.compact()
    told = table(world)["reader"]
    assert told.txn_id == named
    assert "reads this table" in told.message
    assert "reader" not in {answer.code for answer in why(world).transaction(other)}
    assert {row[7] for row in world.db.call("clean_outlook", 0)} == {named}


def test_who_is_named_is_who_the_cleaner_waits_for(world: World) -> None:
    """The list of readers and the Cleaner's own look are two functions with one rule."""
    world.write()
    world.write()
    history = MinHistory(world.db)
    others, same, unnamed = world.open(), world.open(), world.open()
    history.add(others, {"db.u": 1})  # type: ignore[dict-item]
    history.add(same, {"db.t": 1, "db.u": 1})  # type: ignore[dict-item]
    compactors = {}
    for table_name in ("u", "t"):
        compactors[table_name] = world.open(TxnType.COMPACTION)
        request = CompactionRequest(CompactionType.MINOR, "db", table_name, "p=1", pool=table_name)
        answer = world.service.compact(request)
        assert world.service.find_next("other", pool=table_name) is not None
        world.service.update_state(answer.id, "other", compactors[table_name], 1)  # type: ignore[arg-type]
    compaction = world.compact()
    expected = [same, unnamed, compactors["t"]]
    while expected:
        readers = [row[0] for row in world.db.call("cleaning_readers", compaction.id, None)]
        assert readers == expected
        assert [row[7] for row in world.db.call("clean_outlook", 0)] == expected[:1]
        world.txns.commit_txn(expected.pop(0))
    assert not world.db.call("cleaning_readers", compaction.id, None)
    assert [row[5] for row in world.db.call("clean_outlook", 0)] == [None]


def test_it_has_not_committed(world: World) -> None:
    world.write()
    world.write()
    txn_id = world.open()
    answer = world.request()
    assert world.service.find_next("w") is not None
    world.service.update_state(answer.id, "w", txn_id, 2)  # type: ignore[arg-type]
    world.service.mark_compacted(answer.id, "w")
    told = table(world)["uncommitted"]
    assert told.txn_id == txn_id
    assert f"metastore why --txn {txn_id}" in told.action


def test_files_are_kept_on_purpose(world: World) -> None:
    world.configure(delayed_cleanup=True, cleaner_retention_ms=3_600_000)
    world.write()
    world.write()
    world.compact()
    told = table(world)["retention"]
    assert "is kept for 1 h" in told.message
    assert "hive.compactor.cleaner.retention.time.seconds" in told.action


def test_the_cleaner_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.configure(cleaner_retry_ms=60_000)
    world.write()
    world.write()
    world.compact()

    def broken(location: str) -> None:
        raise PermissionError(f"no right to remove {location}")

    with monkeypatch.context() as patch:
        patch.setattr("hive_acid.filesystem.files.remove", broken)
        world.cleaner().run_once()
    told = table(world)["retry"]
    assert "no right to remove" in told.message
    assert "after 5 times it is given up" in told.action


def test_no_cleanup(world: World) -> None:
    world.write()
    world.write()
    world.compact()
    give(world, no_cleanup="true")
    assert "set it to false" in table(world)["no_cleanup"].action


# --- locks and transactions ----------------------------------------------------------------------


def test_a_lock_waits_for_a_holder_and_for_those_before_it(world: World) -> None:
    (holder,) = world.txns.open_txns(1, BOB)
    held = lock(world, LockType.EXCLUSIVE, holder, BOB)
    waiting = world.open()
    first = lock(world, LockType.EXCL_WRITE, waiting)
    second = lock(world, LockType.EXCL_WRITE)
    (told,) = why(world).lock(first)  # type: ignore[arg-type]
    assert (told.code, told.txn_id, told.lock_id, told.owner) == ("blocked", holder, held, BOB)
    assert f"EXCL_WRITE on db.t waits: transaction {holder} of bob@host2 (report.py) holds EXCLUSIVE" in told.message
    assert f"ABORT TRANSACTIONS {holder}" in told.action
    assert [answer.code for answer in why(world).transaction(waiting)] == ["open", "blocked"]
    behind = {answer.lock_id: answer for answer in why(world).lock(second)}  # type: ignore[arg-type]
    assert {number: answer.code for number, answer in behind.items()} == {held: "blocked", first: "queued_behind"}
    assert f"metastore why --lock {first}" in behind[first].action
    # What it says to do helps.
    world.txns.abort_txns([holder, waiting])
    (free,) = why(world).lock(second)  # type: ignore[arg-type]
    assert free.code == "free"
    world.locks.check_lock(second)  # type: ignore[arg-type]
    (got,) = why(world).lock(second)  # type: ignore[arg-type]
    assert got.code == "acquired"
    assert "db.t" in got.message


def test_a_lock_outside_of_transactions_is_in_the_way(world: World) -> None:
    held = lock(world, LockType.EXCLUSIVE, None, BOB)
    second = lock(world, LockType.SHARED_READ)
    (told,) = why(world).lock(second)  # type: ignore[arg-type]
    assert (told.code, told.txn_id, told.lock_id) == ("blocked", None, held)
    assert "unlock it" in told.action


def test_how_a_transaction_stands(world: World) -> None:
    txns = why(world)
    assert [answer.code for answer in txns.transaction(99)] == ["unknown"]  # type: ignore[arg-type]
    txn_id = world.open()
    (opened,) = txns.transaction(txn_id)
    assert opened.code == "open"
    assert "ann@host1 (test)" in opened.message
    assert "5 min without a heartbeat abort it" in opened.message
    world.txns.commit_txn(txn_id)
    assert [answer.code for answer in txns.transaction(txn_id)] == ["committed"]
    aborted = world.open()
    world.write(aborted, commit=False)
    world.txns.abort_txn(aborted, 50001)
    (told,) = txns.transaction(aborted)
    assert told.code == "aborted"
    assert "ABORT TRANSACTIONS" in told.message
    assert "may still lie in db.t" in told.message
    world.configure(aborted_age_ms=0)
    world.cleaner().run_once()
    (told,) = txns.transaction(aborted)
    assert "may still lie" not in told.message


def test_a_transaction_that_cannot_commit_any_more(world: World) -> None:
    world.write()
    slow, quick = world.open(), world.open()
    lock(world, LockType.SHARED_WRITE, slow)
    lock(world, LockType.SHARED_WRITE, quick)
    assert "conflict" not in {answer.code for answer in why(world).transaction(slow)}
    world.txns.commit_txn(quick)
    told = {answer.code: answer for answer in why(world).transaction(slow)}["conflict"]
    assert (told.subject, told.txn_id, told.owner) == ("db.t", quick, OWNER)
    said = f"transaction {slow} cannot commit, since transaction {quick} of ann@host1 (test) has changed db.t, too"
    assert told.message.startswith(said)
    world.txns.abort_txn(slow)
    assert [answer.code for answer in why(world).transaction(slow)] == ["aborted"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3700, "1 h 1 min"), (90_061, "1 d 1 h")]
)
def test_lengths_of_time(seconds: int, words: str) -> None:
    assert span(seconds) == words


def test_of_a_partition(db: object, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="p=1")  # type: ignore[arg-type]
    world.catalogue.partitions["db", "t"]["p=2"] = f"{world.root}/p=2"
    world.write()
    world.request(CompactionType.MINOR)
    (told,) = why(world).table("db", "t", "p=1")
    assert (told.subject, told.code) == ("db.t/p=1", "waiting")
    assert [answer.code for answer in why(world).table("db", "t", "p=2")] == ["not_looked_at"]
    assert [answer.subject for answer in why(world).table("db", "t")] == ["db.t/p=1"]
