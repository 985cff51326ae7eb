"""The queue and the history (transactions.md §4.1 to §4.3, §4.9, §4.11; checklist §9, 54 to 57, 63 to 65)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import pytest

from hive_acid.errors import MetaError, NoSuchCompactionError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import CompactionId, TxnId, WriteId
from metastore.compaction.models import Compaction, CompactionRequest, Weight
from metastore.compaction.states import ARROWS, CompactionState, CompactionType, Verb
from metastore.txn.states import TxnType
from tests.compaction.world import World

S, MINOR, MAJOR = CompactionState, CompactionType.MINOR, CompactionType.MAJOR


def ask(world: World, **fields: object) -> CompactionRequest:
    return dataclasses.replace(CompactionRequest(MINOR, "db", "t"), **fields)  # type: ignore[arg-type]


def take(world: World, worker: str = "worker-1") -> Compaction:
    found = world.service.find_next(worker)
    assert found is not None
    return found


def make(world: World, state: CompactionState | None) -> CompactionId:
    """A compaction in a state, by the shortest way."""
    if state is None:
        return CompactionId(0)
    if state is S.DID_NOT_INITIATE:
        return world.service.did_not_initiate(ask(world), "why")
    compaction_id = world.service.compact(ask(world)).id
    if state is S.ABORTED:
        world.service.abort([compaction_id])
    if state in (S.INITIATED, S.ABORTED):
        return compaction_id
    take(world)
    if state is S.FAILED:
        world.service.mark_failed(compaction_id, "why", "worker-1")
    elif state is S.REFUSED:
        world.service.mark_refused(compaction_id, "why", "worker-1")
    elif state in (S.READY_FOR_CLEANING, S.SUCCEEDED):
        world.service.mark_compacted(compaction_id, "worker-1")
    if state is S.SUCCEEDED:
        world.service.mark_cleaned(compaction_id)
    return compaction_id


VERBS: dict[Verb, Callable[[World, CompactionId], object]] = {
    Verb.FIND_NEXT: lambda world, _: world.service.find_next("worker-2"),
    Verb.MARK_COMPACTED: lambda world, id_: world.service.mark_compacted(id_),
    Verb.MARK_FAILED: lambda world, id_: world.service.mark_failed(id_, "why"),
    Verb.MARK_REFUSED: lambda world, id_: world.service.mark_refused(id_, "why"),
    Verb.ABORT: lambda world, id_: world.service.abort([id_]),
    Verb.RELEASE: lambda world, id_: world.service.release(id_, "worker-1"),
    Verb.RETRY: lambda world, id_: world.service.retry(id_, "worker-1", "why"),
    Verb.MARK_CLEANED: lambda world, id_: world.service.mark_cleaned(id_),
    Verb.FAIL_CLEANING: lambda world, id_: world.service.clean_failed(world.service.get(id_), "why"),
}
SILENT = {Verb.FIND_NEXT, Verb.ABORT, Verb.FAIL_CLEANING}
"""Verbs that answer with what they found instead of an error."""


@pytest.mark.parametrize("state", list(S), ids=lambda state: state.words)
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.value)
def test_every_verb_in_every_state(world: World, verb: Verb, state: CompactionState) -> None:
    """The database does what the table of arrows says, and nothing else."""
    compaction_id = make(world, state)
    arrows = [arrow for arrow in ARROWS if arrow.source is state and arrow.verb is verb]
    if arrows or verb in SILENT:
        VERBS[verb](world, compaction_id)
    else:
        with pytest.raises(MetaError, match=f"is {state.words}"):
            VERBS[verb](world, compaction_id)
    assert world.service.get(compaction_id).state is (arrows[0].target if arrows else state)


def test_what_was_not_initiated_is_put_on_record_once(world: World) -> None:
    """Behind the newest entry that is known; a client that knows of none is believed each time."""
    ids = {world.service.did_not_initiate(ask(world), "why", CompactionId(0)) for _ in range(3)}
    assert len(world.service.show()) == len(ids) == 1
    (first,) = ids
    second = world.service.did_not_initiate(ask(world), "why", first)
    assert second != first
    assert world.service.did_not_initiate(ask(world), "why", first) == second
    assert world.service.did_not_initiate(ask(world, partition="p=1"), "why", CompactionId(0)) > second
    assert len({world.service.did_not_initiate(ask(world), "why") for _ in range(2)}) == 2


def test_every_state_can_be_reached() -> None:
    assert {arrow.target for arrow in ARROWS} == set(S)
    assert [state for state in S if not state.is_history] == [S.INITIATED, S.WORKING, S.READY_FOR_CLEANING]


def test_rows_have_the_columns_of_the_model(world: World) -> None:
    with world.db.engine.connect() as connection:
        columns = connection.exec_driver_sql(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = 'compaction' ORDER BY ordinal_position"
        )
        names = ["table" if name == "tbl" else name for (name,) in columns]
    assert names == [field.name for field in dataclasses.fields(Compaction)]


def test_second_request_is_refused_while_the_first_is_in_its_way(world: World) -> None:
    """transactions.md §9, 54: waiting, under way, or ready for cleaning with nothing new since."""
    world.write()
    world.write()
    first = world.request(MINOR)
    assert first.accepted
    again = world.request(MAJOR)
    assert (again.accepted, again.id, again.state) == (False, first.id, S.INITIATED)
    reader = world.open()
    assert world.worker().run_once()
    again = world.request(MINOR)
    assert (again.accepted, again.id, again.state) == (False, first.id, S.READY_FOR_CLEANING)
    world.write()
    assert world.request(MINOR).accepted
    world.txns.abort_txn(reader)


def test_a_stronger_request_is_queued_behind_one_that_waits_for_the_cleaner(world: World) -> None:
    """A minor compaction leaves a major one something to do, both of them a rebalance; not the other way round."""
    world.write()
    world.write()
    reader = world.open()
    assert world.compact(MINOR).state is S.READY_FOR_CLEANING
    major = world.compact(MAJOR)
    assert major.state is S.READY_FOR_CLEANING
    for weaker in (MINOR, MAJOR):
        again = world.request(weaker)
        assert (again.accepted, again.state) == (False, S.READY_FOR_CLEANING)
    assert world.request(CompactionType.REBALANCE).accepted
    world.txns.abort_txn(reader)


def test_names_are_folded(world: World) -> None:
    first = world.service.compact(ask(world, db="DB", table="T", partition="Month=A"))
    again = world.service.compact(ask(world, db="db", table="t", partition="month=A"))
    assert (again.accepted, again.id) == (False, first.id)
    assert world.service.get(first.id).target == "db.t/month=A"
    assert world.service.compact(ask(world, partition="month=a")).accepted


def test_one_request_of_many_at_once_is_accepted(world: World) -> None:
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(world.service.compact(ask(world)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer.accepted for answer in answers) == 1
    assert len({answer.id for answer in answers}) == 1


def test_each_worker_gets_its_own_oldest_first(world: World) -> None:
    """transactions.md §9, 55."""
    ids = [world.service.compact(ask(world, table=f"t{number}")).id for number in range(20)]
    taken: list[CompactionId] = []

    def work(name: str) -> None:
        while found := world.service.find_next(name):
            taken.append(found.id)

    threads = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == ids


def test_pools(world: World) -> None:
    named = world.service.compact(ask(world, pool="night")).id
    plain = world.service.compact(ask(world, table="u")).id
    assert world.service.find_next("worker-1", pool="other") is None
    assert take(world).id == plain
    assert world.service.find_next("worker-1") is None
    found = world.service.find_next("worker-1", "1.0", pool="night")
    assert found is not None
    assert (found.id, found.worker, found.worker_version) == (named, "worker-1", "1.0")


def test_pool_that_does_not_work_loses_its_compactions(world: World) -> None:
    world.configure(worker_pool_timeout_ms=0)
    named = world.service.compact(ask(world, pool="night")).id
    assert take(world).id == named


def test_commit_stamps_the_row(world: World) -> None:
    """transactions.md §9, 56."""
    world.service.compact(ask(world))
    compaction_id = take(world).id
    txn_id = world.open(TxnType.COMPACTION)
    world.service.update_state(compaction_id, "worker-1", txn_id, WriteId(7), "ann")
    world.service.mark_compacted(compaction_id, "worker-1")
    later = world.open()
    before = world.service.get(compaction_id)
    assert (before.next_txn_id, before.committed_at, before.run_as) == (None, None, "ann")
    world.txns.commit_txn(txn_id)
    after = world.service.get(compaction_id)
    assert (after.txn_id, after.next_txn_id) == (txn_id, later)
    assert after.committed_at is not None


def test_aborted_compactor_stays_on_record(world: World) -> None:
    """transactions.md §9, 57: until its files are removed."""
    world.service.compact(ask(world))
    compaction_id = take(world).id
    txn_id = world.open(TxnType.COMPACTION)
    world.service.update_state(compaction_id, "worker-1", txn_id, WriteId(7))
    world.txns.abort_txn(txn_id)
    assert world.service.aborts_to_clean() == [("db", "t", None)]
    assert world.service.requeue() == [(compaction_id, S.INITIATED)]


def test_worker_that_lost_its_compaction_is_told(world: World) -> None:
    world.configure(claim_timeout_ms=0)
    world.service.compact(ask(world))
    compaction_id = take(world, "slow").id
    world.service.requeue()
    take(world, "fast")
    verbs: tuple[Callable[[], None], ...] = (
        lambda: world.service.mark_compacted(compaction_id, "slow"),
        lambda: world.service.mark_failed(compaction_id, "why", "slow"),
        lambda: world.service.update_state(compaction_id, "slow", TxnId(1), WriteId(1)),
        lambda: world.service.release(compaction_id, "slow"),
    )
    for verb in verbs:
        with pytest.raises(MetaError, match="with worker fast"):
            verb()


def test_the_transaction_of_a_compaction_must_be_open(world: World) -> None:
    world.service.compact(ask(world))
    compaction_id = take(world).id
    ended = world.open(TxnType.COMPACTION)
    world.txns.abort_txn(ended)
    for txn_id, error in ((ended, TxnAbortedError), (TxnId(99), NoSuchTxnError)):
        with pytest.raises(error):
            world.service.update_state(compaction_id, "worker-1", txn_id, WriteId(1))
    assert world.service.get(compaction_id).txn_id is None


def test_long_work_is_taken_away_only_after_the_timeout(world: World) -> None:
    world.service.compact(ask(world))
    compaction_id = take(world).id
    world.service.update_state(compaction_id, "worker-1", world.open(TxnType.COMPACTION), WriteId(1))
    assert world.service.requeue() == []
    world.configure(worker_timeout_ms=0)
    assert world.service.requeue() == []  # the worker itself gives up first
    world.configure(worker_timeout_ms=0, claim_timeout_ms=0)
    assert world.service.requeue() == [(compaction_id, S.INITIATED)]
    assert world.service.get(compaction_id).reason == "waits for a worker: its worker took too long (attempt 1 of 3)"


def test_mark_compacted_may_be_repeated(world: World) -> None:
    """By a worker that missed the answer, and by no other one."""
    compaction_id = make(world, S.READY_FOR_CLEANING)
    world.service.mark_compacted(compaction_id, "worker-1")
    world.service.mark_compacted(compaction_id)
    with pytest.raises(MetaError, match="ready for cleaning"):
        world.service.mark_compacted(compaction_id, "worker-2")
    assert world.service.get(compaction_id).last_worker == "worker-1"


def test_progress(world: World) -> None:
    """What is not told stays; only the worker may tell."""
    compaction_id = make(world, S.WORKING)
    world.service.set_progress(compaction_id, "worker-1", job_id="app-1:7", before=Weight(3, 900))
    world.service.set_progress(compaction_id, "worker-1", progress={"rows": 5, "phase": "inserts"})
    found = world.service.get(compaction_id)
    assert found.progress is not None
    assert (found.progress["rows"], found.progress["phase"], found.job_id) == (5, "inserts", "app-1:7")
    assert found.progress["at"] > 1_600_000_000_000
    assert (found.files_before, found.bytes_before, found.files_after, found.bytes_after) == (3, 900, None, None)
    with pytest.raises(MetaError, match="with worker worker-1"):
        world.service.set_progress(compaction_id, "worker-2", after=Weight(1, 1))
    world.service.release(compaction_id, "worker-1")
    found = world.service.get(compaction_id)
    assert (found.progress, found.job_id, found.bytes_before) == (None, None, None)


def test_attempts_are_counted(world: World) -> None:
    compaction_id = world.service.compact(ask(world)).id
    states = []
    for _ in range(3):
        take(world)
        states.append(world.service.retry(compaction_id, "worker-1", "no Spark"))
    assert states == [S.INITIATED, S.INITIATED, S.FAILED]
    found = world.service.get(compaction_id)
    assert (found.error_message, found.reason) == ("no Spark", "attempt 3 of 3 ended: no Spark")


def test_lost_compaction_beside_a_new_one_has_failed(world: World) -> None:
    first = make(world, S.READY_FOR_CLEANING)
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE compaction SET txn_id = 77")
    second = world.service.compact(ask(world)).id
    assert world.service.requeue() == [(first, S.FAILED)]
    assert world.service.get(second).state is S.INITIATED


def test_abort(world: World) -> None:
    """transactions.md §9, 63."""
    waiting, working = world.service.compact(ask(world, table="u")).id, world.service.compact(ask(world)).id
    world.service.abort([waiting])
    take(world)
    found = {one.id: (one.found, one.aborted) for one in world.service.abort([waiting, working, CompactionId(99)])}
    assert found == {waiting: (S.ABORTED, False), working: (S.WORKING, False), 99: (None, False)}
    with pytest.raises(NoSuchCompactionError, match="empty"):
        world.service.abort([])


def test_unknown_compaction(world: World) -> None:
    with pytest.raises(NoSuchCompactionError, match="no compaction 5"):
        world.service.get(CompactionId(5))
    with pytest.raises(MetaError, match="is unknown"):
        world.service.mark_compacted(CompactionId(5))


def test_show(world: World) -> None:
    first = world.service.compact(ask(world, properties={"a": "b"}, type=MAJOR)).id
    second = world.service.compact(ask(world, table="u", partition="p=1", pool="night")).id
    third = make_failed(world, "v")
    show = world.service.show
    assert [c.id for c in show()] == [second, first, third]
    assert [c.id for c in show(table="U")] == [second]
    assert [c.id for c in show(partition="P=1", db="DB")] == [second]
    assert [c.id for c in show(pool="night")] == [second]
    assert [c.id for c in show(type=MAJOR)] == [first]
    assert [c.id for c in show(state=S.FAILED)] == [third]
    assert [c.id for c in show(limit=1)] == [second]
    assert [c.id for c in show(order="CC_TABLE desc")] == [third, second, first]
    assert [c.id for c in show(order='"id"')] == [first, second, third]
    assert show(compaction_id=first)[0].properties == {"a": "b"}


def make_failed(world: World, table: str) -> CompactionId:
    compaction_id = world.service.did_not_initiate(ask(world, table=table), "why")
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE compaction SET state = 'f' WHERE id = {compaction_id}")
    return compaction_id


@pytest.mark.parametrize("order", ["cc_id; DROP TABLE compaction", "nothing", "id sideways", "id desc desc", " "])
def test_order_is_a_known_column(world: World, order: str) -> None:
    """What Hive pastes into its SQL (transactions.md §8.9)."""
    with pytest.raises(MetaError, match="cannot be ordered"):
        world.service.show(order=order)


def test_latest_committed(world: World) -> None:
    for partition in ("p=1", "p=1", "p=2"):
        compaction_id = world.service.compact(ask(world, partition=partition)).id
        take(world)
        world.service.mark_compacted(compaction_id)
        world.service.mark_cleaned(compaction_id)
    latest = world.service.latest_committed
    assert {c.partition: c.id for c in latest("DB", "T")} == {"p=1": 2, "p=2": 3}
    assert [c.id for c in latest("db", "t", ["P=1"])] == [2]
    assert [c.id for c in latest("db", "t", None, CompactionId(2))] == [3]
    assert latest("db", "u") == []


def test_history_is_kept_by_count(world: World) -> None:
    """transactions.md §9, 64."""
    world.configure(keep_succeeded=2, keep_failed=1, failed_threshold=3, keep_not_initiated=1, keep_refused=2)
    for table in ("t", "u"):
        for state, count in ((S.FAILED, 5), (S.REFUSED, 5), (S.DID_NOT_INITIATE, 5), (S.ABORTED, 5), (S.SUCCEEDED, 5)):
            for _ in range(count):
                world.service.did_not_initiate(ask(world, table=table), state.value)
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE compaction SET state = error_message")
    waiting = world.service.compact(ask(world)).id
    assert world.service.purge_history() == 2 * (2 + 3 + 4 + 3 + 3)
    left = world.service.show(table="t")
    counts = {state: sum(c.state is state for c in left) for state in S}
    assert (counts[S.SUCCEEDED], counts[S.FAILED], counts[S.DID_NOT_INITIATE], counts[S.REFUSED]) == (2, 3, 1, 2)
    assert waiting in {c.id for c in left}


def test_old_failures_go_once_something_succeeded(world: World) -> None:
    world.configure(history_timeout_ms=0)
    failed = make(world, S.FAILED)
    assert world.service.purge_history() == 0
    make(world, S.SUCCEEDED)
    assert world.service.purge_history() == 1
    with pytest.raises(NoSuchCompactionError):
        world.service.get(failed)


def test_dropped_and_renamed_tables(world: World) -> None:
    """transactions.md §9, 65."""
    compaction_id = make(world, S.READY_FOR_CLEANING)
    world.db.call("compaction_rename_table", "db", "t", "other", "u")
    assert world.service.get(compaction_id).target == "other.u"
    world.db.call("compaction_forget_table", "other", "u")
    assert world.service.show() == []
