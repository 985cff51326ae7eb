"""transactions.md §9, items 54 to 65: compaction, over the wire, beside the server's own services.

That a service has *not* done something is shown by a second table beside the first: once its turn has come, the service
has passed the first one by. Not here: the soft delete of item 65 and item 66 belong to the crash tests of compaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hive_acid.format.names import delta_name
from hive_acid.wire import ttypes
from tests.caller import Caller
from tests.checklist.compactor import MAJOR, MINOR, Table
from tests.checklist.tables import create_database, create_table
from tests.served import Served, served
from tests.waiting import until

Make = Callable[..., Table]
BUSY = {
    "metastore.housekeeping.threads.on": "true",
    "metastore.compactor.worker.threads": "0",
    "metastore.compactor.policy": "hive",
    "hive.compactor.check.interval": "100ms",
    "hive.compactor.cleaner.run.interval": "100ms",
    "metastore.compaction.housekeeper.interval": "100ms",
    "metastore.acid.housekeeper.interval": "100ms",
    "metastore.acid.txn.cleaner.interval": "100ms",
    "metastore.txn.finished.retention": "0ms",
    "hive.compactor.abortedtxn.threshold": "3",
}


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(postgres_url, template, tmp_path_factory.mktemp("warehouse"), BUSY) as running:
        yield running


@pytest.fixture
def make(ann: Caller, name: str) -> Make:
    """Makes tables in the test's database; the server's own Initiator queues them in the table's pool."""
    create_database(ann, name)

    def table(table_name: str = "t", automatic: bool = True, **parameters: str) -> Table:
        parameters.setdefault("hive.compactor.worker.pool", f"{name}.{table_name}")
        if not automatic:
            parameters["no_auto_compaction"] = "true"
        location = create_table(ann, name, table_name, parameters).sd.location
        return Table(ann, name, table_name, location)

    return table


@pytest.fixture
def initiator_has_passed(make: Make) -> Callable[[], None]:
    """Returns when the Initiator has looked at everything written before."""
    tables = iter(range(1000))

    def wait() -> None:
        beside = make(f"beside{next(tables)}")
        beside.write(11)
        until(beside.states)

    return wait


@pytest.fixture
def cleaner_has_passed(make: Make) -> Callable[[], None]:
    """Returns when the Cleaner has looked at everything that was ready before; all readers must have been known."""
    tables = iter(range(1000))

    def wait() -> None:
        beside = make(f"dropped{next(tables)}", automatic=False)
        for _ in range(2):  # the first may be seen by a run that had passed the other table too early
            txn_id = beside.ann.begin()
            beside.ann.write(txn_id, f"{beside.database}/{beside.name}", "i")
            staging = f"_tmp_spark_{txn_id}_x"
            beside.put(staging)
            for _ in range(int(BUSY["hive.compactor.abortedtxn.threshold"])):
                beside.write(commit=False)
            beside.ann.abort(txn_id)  # the first beyond the threshold: no run takes the others before
            until(lambda staging=staging: staging not in beside.directories())

    return wait


def test_54_compact2(make: Make) -> None:
    table = make(automatic=False)
    first = table.request(MINOR)
    assert (first.state, first.accepted) == ("initiated", True)

    def refused(state: str, compaction_id: int = first.id, kinds: Sequence[int] = (MINOR, MAJOR)) -> None:
        for kind in kinds:
            again = table.request(kind)
            assert (again.id, again.state, again.accepted) == (-1, "refused", False)
            assert again.errormessage == f"Compaction is already scheduled with state='{state}' and id={compaction_id}"

    refused("initiated")
    assert table.shown(id=first.id)[0].state == "initiated"
    reader = table.ann.begin()  # keeps the Cleaner away
    table.write(2)
    with table.compacting():
        refused("working")
    refused("ready for cleaning", kinds=[MINOR])  # a major one would have something to do
    table.write()
    assert table.request().accepted
    table.ann.commit(reader)


def test_55_workers_take_each_compaction_once(make: Make, server: Served) -> None:
    tables = [make(f"t{number}", automatic=False) for number in range(12)]
    pool = tables[0].database
    queued = [table.request(poolName=pool).id for table in tables]
    elsewhere = make("elsewhere", automatic=False)
    other = elsewhere.request().id

    def work(worker: int) -> list[int]:
        taken: list[Any] = []
        with server.caller() as caller:
            while True:
                request = ttypes.FindNextCompactRequest(workerId=f"worker-{worker}", poolName=pool)
                info = caller.call("find_next_compact2", request).ci
                if info is None:
                    return taken
                taken.append(info.id)

    with ThreadPoolExecutor(3) as workers:
        found = list(workers.map(work, range(3)))
    assert sorted(itertools.chain(*found)) == queued
    assert all(taken == sorted(taken) for taken in found)
    assert elsewhere.claim().id == other
    assert elsewhere.claim() is None


def test_56_life_of_a_worker(make: Make) -> None:
    table = make(automatic=False)
    table.write(2)
    reader = table.ann.begin()
    assert table.request().accepted
    with table.compacting() as (info, txn_id):
        (shown,) = table.shown()
        assert (shown.state, shown.workerid, shown.txnId) == ("working", "worker-1", txn_id)
    (shown,) = table.shown()
    assert (shown.state, shown.workerid, shown.hightestWriteId) == ("ready for cleaning", None, 2)
    assert shown.nextTxnId >= txn_id
    assert shown.commitTime >= shown.start
    table.ann.call("mark_cleaned", info)
    (shown,) = table.shown()
    assert shown.state == "succeeded"
    assert shown.endTime >= shown.commitTime
    table.ann.commit(reader)


def test_56_nothing_is_stamped_before_the_commit(make: Make) -> None:
    table = make(automatic=False)
    table.write(2)
    table.request()
    info = table.claim()
    txn_id = table.ann.begin(txn_type=ttypes.TxnType.COMPACTION)
    info.highestWriteId = 2
    table.ann.call("update_compactor_state", info, txn_id)
    table.ann.call("mark_compacted", info)
    (shown,) = table.shown()
    assert (shown.state, shown.nextTxnId, shown.commitTime) == ("ready for cleaning", None, None)
    table.ann.commit(txn_id)
    until(lambda: table.states() == ["succeeded"])


def test_57_aborted_compaction(make: Make) -> None:
    table = make(automatic=False)
    table.write(2)
    table.request()
    info = table.claim()
    txn_id = table.ann.begin(txn_type=ttypes.TxnType.COMPACTION)
    info.highestWriteId = 2
    table.ann.call("update_compactor_state", info, txn_id)
    info.errorMessage = "no memory"
    table.ann.call("mark_failed", info)
    table.ann.abort(txn_id, errorCode=50006)
    (shown,) = table.shown()
    assert (shown.state, shown.errorMessage) == ("failed", "no memory")
    empty = table.ann.begin()
    table.ann.abort(empty)
    until(lambda: not table.ann.snapshot().is_aborted(empty))  # the housekeeper has been there
    assert table.ann.snapshot().is_aborted(txn_id)
    table.compact()
    until(lambda: not table.ann.snapshot().is_aborted(txn_id))
    assert table.states() == ["failed", "succeeded"]


@pytest.mark.parametrize("kind", [ttypes.TxnType.DEFAULT, ttypes.TxnType.READ_ONLY])
def test_58_reader_from_before(kind: int, make: Make, cleaner_has_passed: Callable[[], None]) -> None:
    table = make(automatic=False)
    table.write(2)
    reader = table.ann.begin(txn_type=kind)
    deltas = table.directories()
    table.compact()
    later = table.ann.begin(txn_type=kind)
    cleaner_has_passed()
    assert set(deltas) < set(table.directories())
    assert table.states() == ["ready for cleaning"]
    table.ann.commit(reader)
    until(lambda: table.states() == ["succeeded"])
    assert [one for one in table.directories() if one in deltas] == []
    assert len(table.directories()) == 1
    table.ann.commit(later)


def test_59_eleven_deltas_without_a_base(make: Make) -> None:
    table = make()
    table.write(11)
    until(table.states)
    assert [one.type for one in table.shown()] == [MAJOR]


def test_59_eleven_small_deltas_on_a_base(make: Make) -> None:
    table = make()
    table.write(size=100_000, base=True)
    table.write(11)
    until(table.states)
    assert [one.type for one in table.shown()] == [MINOR]


def test_59_large_deltas(make: Make) -> None:
    table = make(**{"compactorthreshold.hive.compactor.delta.num.threshold": "1"})
    table.write(size=1000, base=True)
    table.write(2, size=60)
    until(table.states)
    assert [one.type for one in table.shown()] == [MAJOR]


def test_59_ten_deltas(make: Make, initiator_has_passed: Callable[[], None]) -> None:
    bare, on_a_base = make("bare"), make("on_a_base")
    bare.write(10)
    on_a_base.write(size=100_000, base=True)
    on_a_base.write(10)
    initiator_has_passed()
    assert bare.states() == on_a_base.states() == []


def test_59_thresholds_of_the_table(make: Make, initiator_has_passed: Callable[[], None]) -> None:
    lower = make("lower", **{"compactorthreshold.hive.compactor.delta.num.threshold": "3"})
    higher = make("higher", **{"compactorthreshold.hive.compactor.delta.num.threshold": "100"})
    larger = make("larger", **{"compactorthreshold.hive.compactor.delta.pct.threshold": "5"})
    lower.write(4)
    higher.write(12)
    larger.write(size=100, base=True)
    larger.write(3, size=100)
    initiator_has_passed()
    assert lower.states() == ["initiated"]
    assert higher.states() == larger.states() == []


def test_60_failures_in_a_row(make: Make) -> None:
    table = make()
    for _ in range(2):
        table.fail()
    table.write(11)
    until(lambda: len(table.states()) == 3)
    assert table.states() == ["failed", "failed", "did not initiate"]
    table.compact()
    until(lambda: table.states()[-1] == "succeeded")
    table.write(11, size=50)
    until(lambda: table.states()[-1] == "initiated")


@pytest.mark.parametrize("level", ["table", "table in capitals", "database"])
def test_61_no_auto_compaction(
    level: str, ann: Caller, make: Make, name: str, initiator_has_passed: Callable[[], None]
) -> None:
    if level == "database":
        create_database(ann, f"{name}quiet", NO_AUTO_COMPACTION="true")
        location = create_table(ann, f"{name}quiet").sd.location
        table = Table(ann, f"{name}quiet", "t", location)
    else:
        table = make(**{"NO_AUTO_COMPACTION" if "capitals" in level else "no_auto_compaction": "TRUE"})
    table.write(12)
    initiator_has_passed()
    assert table.states() == []
    assert table.request().accepted


def test_62_aborted_transactions(make: Make) -> None:
    table = make(automatic=False)
    table.write()
    before = set(table.ann.snapshot().aborted_ids)
    table.write(3, commit=False)
    lost = set(table.ann.snapshot().aborted_ids) - before
    assert len(lost) == 3
    table.write(commit=False)
    until(lambda: table.directories() == [delta_name(1, 1, 0)])
    until(lambda: not lost & set(table.ann.snapshot().aborted_ids))
    assert table.states() == []
    assert table.ann.write_ids(table.full_name).invalidWriteIds == []
    assert table.ann.max_write_id(table.full_name) == 5


def test_63_abort_compactions(make: Make) -> None:
    waiting, taken = make("waiting", automatic=False), make("taken", automatic=False)
    one, two = waiting.request().id, taken.request().id
    taken.claim()
    request = ttypes.AbortCompactionRequest(compactionIds=[one, two, 10**9])
    answer = waiting.ann.call("abort_Compactions", request).abortedcompacts
    assert (answer[one].status, answer[one].message) == ("Success", "Successfully aborted compaction")
    assert (answer[two].status, answer[two].message) == (
        "Error",
        "Error while aborting compaction as compaction is in state-working",
    )
    assert (answer[10**9].status, answer[10**9].message) == ("Error", "No Such Compaction Id Available")
    assert (waiting.states(), taken.states()) == (["aborted"], ["working"])


def test_64_history(make: Make) -> None:
    table = make(automatic=False)

    def end(verb: str) -> None:
        assert table.request().accepted
        info = table.claim()
        info.errorMessage = "why not"
        table.ann.call(verb, info)

    for _ in range(5):
        end("mark_failed")
        end("mark_refused")
        table.write()
        table.compact()
        until(lambda: table.states()[-1] == "succeeded")
    until(lambda: len(table.states()) == 8)
    assert sorted(table.states()) == ["failed"] * 3 + ["refused"] * 2 + ["succeeded"] * 3
    newest = sorted(one.id for one in table.shown())
    assert newest[-1] - newest[0] == 8  # the newest of each


def test_65_drop(make: Make) -> None:
    table, kept = make("t", automatic=False), make("kept", automatic=False)
    for one in (table, kept):
        one.write(2)
        one.request()
    lost = table.ann.begin()
    table.ann.write(lost, f"{table.database}/t", "u")
    table.ann.abort(lost)
    table.ann.call("drop_table", table.database, "t", True)
    assert table.shown() == []
    assert table.ann.max_write_id(table.full_name) == 0
    assert table.ann.write_ids(table.full_name).invalidWriteIds == []
    until(lambda: not table.ann.snapshot().is_aborted(lost))
    assert kept.states() == ["initiated"]
    assert kept.ann.max_write_id(kept.full_name) == 2


def test_53_what_writes_nothing_is_no_candidate(make: Make, initiator_has_passed: Callable[[], None]) -> None:
    """The other half of item 53."""
    table = make()
    for number in range(1, 12):
        table.put(delta_name(number, number, 0))
    txn_id = table.ann.begin()
    _read(table, txn_id)
    table.ann.commit(txn_id)
    initiator_has_passed()
    assert table.states() == []


def _read(table: Table, txn_id: int) -> Any:
    assert table.ann.asks(f"r {table.database}/{table.name} s", txn=txn_id) == "A"
