"""More deltas than one job merges: rounds, each right by itself, the next one queued by the commit of the last."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from hive_acid.connection import Connection
from hive_acid.errors import CompactionFailedError
from hive_acid.filesystem import files
from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import parse_directory
from hive_acid.format.rows import RowId
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId, WriteId
from hive_acid.operators import compactions
from hive_acid.operators.show import compactions_asked_for
from hive_acid.operators.statements import ShowCompactions
from hive_acid.wire import ttypes
from metastore.compaction.models import Compaction, CompactionRequest
from metastore.compaction.plan import TableKind, compaction_input, plan_compaction
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.rounds import Round, next_round
from metastore.config import Config
from metastore.settings import SettingError
from tests.compaction.crash.table import CrashTable
from tests.compaction.test_why import why
from tests.compaction.world import World, fail, nothing_left
from tests.served import Served

MINOR, MAJOR, REBALANCE = CompactionType.MINOR, CompactionType.MAJOR, CompactionType.REBALANCE
ALL_IDS = 9223372036854775807


# --- what the rounds are -------------------------------------------------------------------------


def rounds_of(
    names: Sequence[str], kind: CompactionType, at_most: int, aborted: Sequence[int] = (), **table: bool
) -> list[tuple[Round, list[str], tuple[str, ...]]]:
    """Go through all rounds of a listing: each round, what it merges, and what comes of it; then clean."""
    found, after, txn_id = list(names), WriteId(0), 100
    of = TableKind(**table)
    highest = max(parsed.max_write_id for name in names if (parsed := parse_directory(name)) is not None)
    write_ids = ValidWriteIdList("d.t", highest, (), tuple(aborted))
    done: list[tuple[Round, list[str], tuple[str, ...]]] = []
    while not done or done[-1][0].has_more:
        assert len(done) < 2 * len(names)
        txns = ValidTxnList(txn_id, (), ())
        entries = [FileEntry(f"{name}/bucket_00000", 1) for name in found]
        look = partial(compaction_input, entries, write_ids, txns, lambda _: b'{"dataFormat": "compacted"}')
        this = next_round(look, kind, of, after=after, at_most=at_most)
        plan = plan_compaction(this.found, this.kind, TxnId(txn_id), of)
        if plan is None:
            assert not this.has_more
            break
        merged = [directory.name for directory in (*plan.data, *plan.deletes)]
        done.append((this, merged, plan.outputs))
        found = [name for name in found if name not in merged] + list(plan.outputs)
        after, txn_id = this.found.highest_write_id, txn_id + 1
    return done


def deltas(first: int, last: int, *, deletes: bool = False) -> list[str]:
    kinds = ("delta", "delete_delta") if deletes else ("delta",)
    return [f"{kind}_{one:07}_{one:07}_0000" for one in range(first, last + 1) for kind in kinds]


def test_each_delta_is_merged_once_by_a_minor_compaction() -> None:
    names = deltas(1, 2_020)
    done = rounds_of(names, MINOR, 500)
    assert len(done) == 5
    assert [name for _, merged, _ in done for name in merged] == names
    assert done[0][2] == ("delta_0000001_0000500_v0000100",)
    assert done[-1][2] == ("delta_0002001_0002020_v0000104",)


def test_520_deltas() -> None:
    first, last = rounds_of(deltas(1, 520), MINOR, 500)
    assert (len(first[1]), first[0].found.highest_write_id, first[0].has_more) == (500, 500, True)
    assert (last[2], last[0].has_more) == (("delta_0000501_0000520_v0000101",), False)
    (only,) = rounds_of(deltas(1, 500), MINOR, 500)
    assert not only[0].has_more
    (only,) = rounds_of(deltas(1, 501), MINOR, 500)
    assert not only[0].has_more, "a single delta is not worth another round"


def test_a_base_is_written_once() -> None:
    """The rounds before put deltas together; so the rows of deltas are written twice, whatever there is in the base."""
    names = ["base_0000010_v0000009", *deltas(11, 1910)]
    *former, last = rounds_of(names, MAJOR, 500)
    assert [len(merged) for _, merged, _ in former] == [500, 500, 500]
    assert all(this.kind is MINOR for this, _, _ in former)
    assert last[2] == ("base_0001910_v0000103",)
    assert last[1][0] == "base_0000010_v0000009"
    assert len(last[1]) == 1 + 3 + 400


def test_what_the_rounds_have_made_may_be_too_much_as_well() -> None:
    done = rounds_of(deltas(1, 40), MAJOR, 3)
    assert done[-1][2][0].startswith("base_0000040")
    assert all(len(merged) <= 3 for _, merged, _ in done)
    assert [name for _, merged, _ in done for name in merged if "_v" not in name] == deltas(1, 40)


def test_nothing_of_one_write_is_torn_apart() -> None:
    """Twins, and the statements of one write, whatever the number says."""
    twins = deltas(1, 10, deletes=True)
    for this, merged, outputs in rounds_of(twins, MINOR, 3):
        assert len(merged) == 4
        assert len(outputs) == 2
        assert this.found.highest_write_id % 2 == 0
    statements = [f"delta_0000001_0000001_{number:04}" for number in range(6)]
    (only,) = rounds_of([*statements, *deltas(2, 2)], MINOR, 3)
    assert len(only[1]) == 7
    first, _ = rounds_of([*statements, *deltas(2, 4)], MINOR, 3)
    assert first[0].found.highest_write_id == 2


def test_a_pair_that_stays_a_pair_is_no_round() -> None:
    """An insert and a delete are as many deltas merged: the round has to take in a third one."""
    names = ["delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000", *deltas(3, 5)]
    first, _ = rounds_of(names, MINOR, 2)
    assert first[0].found.highest_write_id == 3


def test_no_round_ends_within_a_directory() -> None:
    """Of an aborted streaming delta, which nobody reads."""
    names = [*deltas(1, 2), "delta_0000003_0000005", *deltas(6, 9)]
    aborted = rounds_of([*deltas(1, 4), "delta_0000004_0000006", *deltas(7, 9)], MINOR, 3, (4, 5, 6))
    assert [this.found.highest_write_id for this, _, _ in aborted] == [3, 9]
    assert [this.found.highest_write_id for this, _, _ in rounds_of(names, MINOR, 3)] == [5, 8]


def test_where_only_bases_take_effect_at_once() -> None:
    """Apache Hive 3.1 and Trino would see the two directories of a minor compaction one after the other."""
    for table in ({"in_one_bucket": True}, {"hive_3": True}):
        done = rounds_of(deltas(1, 8, deletes=True), MAJOR, 6, **table)  # type: ignore[arg-type]
        assert [this.kind for this, _, _ in done] == [MAJOR] * 3
        assert [this.found.highest_write_id for this, _, _ in done] == [3, 6, 8]
    assert [this.kind for this, _, _ in rounds_of(deltas(1, 8), MINOR, 6, hive_3=True)] == [MAJOR] * 2


def test_insert_only_tables_go_by_rounds() -> None:
    assert len(rounds_of(deltas(1, 9), MINOR, 3, insert_only=True)) == 3
    done = rounds_of(deltas(1, 9), MAJOR, 3, insert_only=True)
    assert done[-1][2] == ("base_0000009_v0000103",)


def test_a_rebalance_is_never_divided() -> None:
    (only,) = rounds_of(deltas(1, 9), REBALANCE, 3)
    assert len(only[1]) == 9


def test_a_part_makes_no_base() -> None:
    """A base hides all below it."""
    entries = [FileEntry(f"{name}/bucket_00000", 1) for name in deltas(1, 9)]
    found = compaction_input(entries, ValidWriteIdList("d.t", 9), ValidTxnList(9, (), ()), lambda _: b"")
    with pytest.raises(ValueError, match="hide the deltas up to write id 3"):
        plan_compaction(found.beyond(WriteId(3)), MAJOR, TxnId(10))


# --- queue and files -----------------------------------------------------------------------------


def write_many(world: World, number: int = 10) -> set[RowId]:
    """Deltas of inserts, and every third one with a delete; one write in the middle is aborted. The rows."""
    for count in range(1, number + 1):
        if count == number // 2:
            lost = world.open()
            world.write(lost, inserts=2)
            world.txns.abort_txn(lost)
        world.write(inserts=2, deletes=[min(world.read())] if count % 3 == 0 else [])
    return world.read()


def work(world: World) -> list[Compaction]:
    """Let a worker do all there is; the compactions, the first one first."""
    while world.worker().run_once():
        pass
    return sorted(world.service.show(), key=lambda compaction: compaction.id)


def test_minor_rounds(world: World) -> None:
    world.configure(max_deltas=3)
    rows = write_many(world)
    asked = world.service.compact(
        CompactionRequest(MINOR, "db", "t", pool="p", properties={"compactor.a": "b"}, initiator="ann-manual",
                          run_as="ann", head_start_s=600)
    )  # fmt: skip
    assert world.service.find_next("w") is None
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE compaction SET enqueued_at = enqueued_at - interval '1 day'")
    found = work(world)
    assert len(found) > 2
    assert found[0].id == asked.id
    assert [one.round for one in found] == list(range(1, len(found) + 1))
    assert [one.next_id for one in found] == [*(one.id for one in found[1:]), None]
    assert [one.after_write_id for one in found] == [None, *(one.highest_write_id for one in found[:-1])]
    same = {
        (one.type, one.pool, one.run_as, one.initiator, one.head_start_s, one.enqueued_at, *one.properties.items())
        for one in found
    }
    assert len(same) == 1
    assert {one.state for one in found} == {CompactionState.READY_FOR_CLEANING}
    inputs = [name for job in world.executor.jobs for name, _ in (*job.data, *job.deletes)]
    assert len(inputs) == len(set(inputs))
    assert not [name for name in inputs if "_v" in name], "what a round has made is not merged again"
    assert world.read() == rows
    assert len(world.cleaner().run_once().cleaned) == 1, "the one that reaches least far comes first"
    while world.cleaner().run_once().cleaned:
        pass
    assert all("_v" in name for name in world.directories())
    assert world.read() == rows
    assert nothing_left(world)


def test_major_rounds(world: World) -> None:
    world.configure(max_deltas=3)
    rows = write_many(world)
    world.request(MAJOR)
    found = work(world)
    assert {one.type for one in found} == {MAJOR}
    assert [job.type for job in world.executor.jobs] == ["minor"] * (len(found) - 1) + ["major"]
    assert world.read() == rows
    while world.cleaner().run_once().cleaned:
        pass
    assert len(world.directories()) == 1
    assert world.read() == rows
    assert nothing_left(world)


@pytest.mark.parametrize("kind", [MINOR, MAJOR])
def test_readers_between_the_rounds(world: World, kind: CompactionType) -> None:
    """Each reads what it saw, and the Cleaner takes of each round what nobody needs any more."""
    world.configure(max_deltas=3)
    readers = [(world.open(), world.snapshot(), write_many(world, 0) or world.read())]
    for _ in range(3):
        rows = write_many(world, 3)
        readers.append((world.open(), world.snapshot(), rows))
    world.request(kind)
    while world.worker().run_once():
        readers.append((world.open(), world.snapshot(), rows))
        world.cleaner().run_once()
        for _, snapshot, expected in readers:
            assert world.read(snapshot) == expected
    while readers:
        world.txns.commit_txn(readers.pop(0)[0])
        world.cleaner().run_once()
        for _, snapshot, expected in readers:
            assert world.read(snapshot) == expected
    while world.cleaner().run_once().cleaned:
        pass
    assert world.read() == rows
    assert nothing_left(world)


def test_writers_between_the_rounds_do_not_make_more_of_them(world: World) -> None:
    world.configure(max_deltas=4)
    write_many(world, 6)
    world.request(MINOR)
    world.executor.before = lambda job, cancelled: [world.write() for _ in range(2)]  # type: ignore[assignment]
    found = work(world)
    assert len(found) <= 5, "each round sees two deltas more, and merges four"
    assert not found[-1].has_more


def test_other_tables_have_their_turn_between_the_rounds(world: World) -> None:
    """The next round is as old as the first, but its table has just been served."""
    world.configure(max_deltas=3)
    write_many(world)
    first = world.request(MINOR)
    other = world.service.compact(CompactionRequest(MINOR, "db", "u"))
    assert world.worker().run_once()
    taken = [world.service.find_next(f"worker-{number}") for number in range(2)]
    assert [one and (one.id, one.round) for one in taken] == [(other.id, 1), (other.id + 1, 2)]
    assert world.service.get(first.id).next_id == other.id + 1


# --- faults --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The worker ends here."""


def test_the_commit_queues_the_next_round_and_nothing_else_does(world: World) -> None:
    """Killed between mark_compacted and the commit: it is done anew, and there is one row."""
    world.configure(max_deltas=3)
    rows = write_many(world)
    asked = world.request(MINOR)
    worker = world.worker()
    commit = world.txns.commit_txn

    def killed(*_: object) -> None:
        raise Killed

    world.txns.commit_txn = killed  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        worker.run_once()
    world.txns.commit_txn = commit  # type: ignore[method-assign]
    (found,) = world.service.show()
    assert (found.state, found.has_more, found.committed_at) == (CompactionState.READY_FOR_CLEANING, True, None)
    again = world.request(MAJOR)
    assert (again.accepted, again.id) == (False, asked.id), "its commit would queue the next round"
    assert found.txn_id is not None
    world.txns.abort_txn(found.txn_id)
    assert world.service.requeue() == [(asked.id, CompactionState.INITIATED)]
    (found,) = world.service.show()
    assert (found.has_more, found.next_id, found.round) == (False, None, 1)
    assert [one.round for one in work(world)][:2] == [1, 2]
    assert world.read() == rows


def test_a_later_round_that_is_lost_begins_where_it_began(world: World) -> None:
    world.configure(max_deltas=3)
    rows = write_many(world)
    world.request(MINOR)
    assert world.worker().run_once()
    world.executor.after = lambda job: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        world.worker().run_once()
    second = next(one for one in world.service.show() if one.round == 2)
    assert second.txn_id is not None
    world.txns.abort_txn(second.txn_id)
    world.service.requeue()
    world.executor.after = lambda job: None
    found = work(world)
    assert [one.id for one in found][:2] == [second.id - 1, second.id]
    assert found[1].after_write_id == found[0].highest_write_id
    assert world.read() == rows
    while world.cleaner().run_once().cleaned:
        pass
    assert nothing_left(world)


def test_a_round_that_is_aborted_or_fails_ends_the_rounds(world: World) -> None:
    world.configure(max_deltas=3)
    rows = write_many(world)
    world.request(MAJOR)
    assert world.worker().run_once()
    (waiting,) = world.service.show(state=CompactionState.INITIATED)
    world.service.abort([waiting.id])
    assert not world.worker().run_once()
    assert world.read() == rows
    assert world.request(MAJOR).accepted
    assert [one.round for one in work(world)][2:5] == [1, 2, 3]


def test_a_request_that_is_faster_takes_the_rest(world: World) -> None:
    """It can only come by a way that asks nobody, as a row of another server's release."""
    world.configure(max_deltas=3)
    write_many(world)
    asked = world.request(MINOR)
    commit = world.txns.commit_txn

    def other_first(txn_id: TxnId, *args: object) -> object:
        with world.db.engine.begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO compaction (state, type, db, tbl, enqueued_at) VALUES ('i', 'a', 'db', 't', now())"
            )
        return commit(txn_id, *args)  # type: ignore[arg-type]

    worker = world.worker()
    world.txns.commit_txn = other_first  # type: ignore[method-assign, assignment]
    assert worker.run_once()
    world.txns.commit_txn = commit  # type: ignore[method-assign]
    (other,) = world.service.show(state=CompactionState.INITIATED)
    assert (other.round, world.service.get(asked.id).next_id) == (1, other.id)


# --- what is said of them ------------------------------------------------------------------------


def test_tables_and_requests_have_limits_of_their_own(world: World) -> None:
    write_many(world)
    parameters = {"transactional": "true", "compactor.hive.compactor.max.num.delta": "4"}
    info = world.catalogue.tables["db", "t"]
    world.catalogue.tables["db", "t"] = type(info)(info.location, info.columns, parameters=parameters)
    request = CompactionRequest(MINOR, "db", "t", properties={"compactor.HIVE.compactor.max.num.delta": "6"})
    world.service.compact(request)
    assert world.worker().run_once()
    (job,) = world.executor.jobs
    assert len(job.data) + len(job.deletes) == 6
    (waiting,) = world.service.show(state=CompactionState.INITIATED)
    world.service.abort([waiting.id])
    world.request(MINOR)
    assert world.worker().run_once()
    assert len(world.executor.jobs[1].data) + len(world.executor.jobs[1].deletes) in (3, 4)


def test_an_unfit_limit_is_refused(world: World) -> None:
    write_many(world, 3)
    world.service.compact(
        CompactionRequest(MINOR, "db", "t", properties={"compactor.hive.compactor.max.num.delta": "x"})
    )
    (done,) = work(world)
    assert (done.state, "give a whole number" in (done.error_message or "")) == (CompactionState.REFUSED, True)
    assert world.txns.get_open_txns(()).open_ids == []


def test_a_round_that_failed_is_followed_by_none(world: World) -> None:
    world.configure(max_deltas=3)
    write_many(world)
    world.executor.after = fail
    failed = world.compact(MINOR)
    assert (failed.state, failed.has_more, failed.rounds) == (CompactionState.FAILED, True, "round 1")
    assert len(world.service.show()) == 1
    done = world.service.get(world.request(MINOR).id)
    assert (done.label, done.rounds) == (f"the minor compaction {done.id}", None)


def test_why_tells_of_rounds(world: World) -> None:
    world.configure(max_deltas=3)
    write_many(world)
    asked = world.request(MINOR)
    assert world.worker().run_once()
    answers = {answer.code: answer.message for answer in why(world).table("db", "t")}
    assert f"the minor compaction {asked.id + 1} (round 2) waits" in answers["waiting"]
    assert f"because round 1, compaction {asked.id}, ended at write id" in answers["waiting"]
    told = [answer.message for answer in why(world).compaction(asked.id)]
    assert any(f"compaction {asked.id + 1} goes on behind write id" in message for message in told)


@pytest.fixture
def table(server: Served, connection: Connection, tmp_path: Path) -> Iterator[CrashTable]:
    made = CrashTable(server.db, connection, tmp_path, "rounds")
    yield made
    made.drop()


def test_clients_wait_for_the_last_round(table: CrashTable, connection: Connection) -> None:
    table.configure(max_deltas=3)
    for _ in range(8):
        table.write()
    answer = connection.compact("db", "rounds", "minor")
    seen: list[int] = []

    def work_slowly() -> None:
        worker = table.worker()
        while worker.run_once():
            seen.append(1)

    thread = threading.Thread(target=work_slowly)
    thread.start()
    compactions.wait(connection, answer, 30_000)
    thread.join()
    found = connection.call("show_compact", ttypes.ShowCompactRequest(dbName="db", tbName="rounds")).compacts
    by_round = {one.round: one for one in found}
    assert len(by_round) == len(seen) == 3
    assert by_round[1].nextId == by_round[2].id
    assert by_round[3].nextId is None
    assert by_round[1].reason.startswith(f"round 1: compaction {by_round[2].id} goes on behind write id 3")
    assert {one.state for one in found} == {"ready for cleaning"}
    assert len(files.list_tree(table.location, max_depth=1)) == 11
    listed = compactions_asked_for(connection, ShowCompactions(None))
    assert any("round 2" in (row[-1] or "") for row in listed.rows)


def test_clients_learn_that_a_later_round_has_failed(table: CrashTable, connection: Connection) -> None:
    table.configure(max_deltas=3)
    for _ in range(8):
        table.write()
    (asked,) = connection.compact("db", "rounds", "minor")
    worker = table.worker()
    assert worker.run_once()
    (waiting,) = table.service.show(table="rounds", state=CompactionState.INITIATED)
    table.service.mark_failed(waiting.id, "no memory")
    with pytest.raises(CompactionFailedError, match=f"compaction {waiting.id} is failed: no memory"):
        compactions.wait(connection, [asked], 30_000)


def test_the_setting_has_a_least_value() -> None:
    with pytest.raises(SettingError):
        Config.parse(["hive.compactor.max.num.delta=1"])
    assert Config.parse(["hive.compactor.max.num.delta=7"]).compaction.max_deltas == 7
    assert Config().compaction.max_deltas == 500
