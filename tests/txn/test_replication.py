"""Replay of another warehouse's transactions over Thrift (transactions.md §1.2, §1.5, §1.7, §2.1, §2.4)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import INTERNAL, Caller, refused
from tests.checklist.tables import create_database, create_table, get_table
from tests.served import Served, served

REPL = ttypes.TxnType.REPL_CREATED


@pytest.fixture
def select(server: Served) -> Callable[[str], list[tuple[Any, ...]]]:
    """The rows of a query: what the wire does not show."""

    def run(query: str) -> list[tuple[Any, ...]]:
        with server.db.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    return run


def replay_open(ann: Caller, *sources: int, policy: str = "d.*", **fields: Any) -> list[int]:
    fields = {"txn_type": REPL} | fields
    return ann.open(len(sources), replPolicy=policy, replSrcTxnIds=list(sources), **fields)


def replay_allocate(ann: Caller, table: str, *pairs: tuple[int, int], policy: str = "d.*") -> list[tuple[int, int]]:
    source = [ttypes.TxnToWriteId(txnId=txn_id, writeId=write_id) for txn_id, write_id in pairs]
    return ann.allocate(table, replPolicy=policy, srcTxnToWriteIdList=source)


def written(write_id: int, partition: str | None = None) -> Any:
    return ttypes.WriteEventInfo(writeId=write_id, database="D", table="T", files="f", partition=partition)


def test_an_opening_replayed_twice_is_one(ann: Caller) -> None:
    first = replay_open(ann, 70, 50, 60)
    assert sorted(first) == [1, 2, 3]
    assert first[1] < first[2] < first[0], "the order of ids is that of the sources"
    assert replay_open(ann, 70, 50, 60) == first
    assert replay_open(ann, 50) == [first[1]]
    assert replay_open(ann, 60, 80) == [first[2], 4], "all sources have one, those that are new a new one"
    assert replay_open(ann, 50, policy="other") == [5]
    assert ann.snapshot().open_ids == (1, 2, 3, 4, 5)


def test_clients_without_types_replay_by_naming_sources(ann: Caller) -> None:
    assert replay_open(ann, 50, txn_type=None) == replay_open(ann, 50)
    ann.commit(50, replPolicy="d.*")
    assert ann.snapshot().open_ids == ()


def test_openings_replayed_at_the_same_time_are_one(server: Served) -> None:
    def replay(number: int) -> list[int]:
        with server.caller(f"replayer{number}") as caller:
            return replay_open(caller, *range(100, 120))

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(replay, range(6)))
    assert all(one == found[0] for one in found)
    with server.caller() as ann:
        assert ann.snapshot().high_water_mark == 20


def test_a_replay_is_not_cut_to_a_batch_but_limited(postgres_url: str, template: str, tmp_path: Any) -> None:
    limits = {"hive.txn.max.open.batch": "2", "hive.max.open.txns": "5"}
    with served(postgres_url, template, tmp_path, limits) as running, running.caller() as ann:
        assert len(replay_open(ann, 1, 2, 3, 4)) == 4
        with refused(INTERNAL, "hive.max.open.txns is 5"):
            replay_open(ann, 5, 6)
        assert replay_open(ann, 1, 2, 3, 4) == [1, 2, 3, 4], "a repetition opens nothing"


def test_openings_that_make_no_sense(ann: Caller) -> None:
    with refused(INTERNAL, "names 1 of the source"):
        ann.open(2, replPolicy="d.*", replSrcTxnIds=[1], txn_type=REPL)
    with refused(INTERNAL, "name its replPolicy"):
        ann.open(1, replSrcTxnIds=[1], txn_type=REPL)
    assert ann.snapshot().high_water_mark == 0


def test_commit_by_the_source_id(ann: Caller, select: Callable[..., Any]) -> None:
    (target,) = replay_open(ann, 500)
    ((_, write_id),) = replay_allocate(ann, "d.t", (500, 7))
    ann.commit(500, replPolicy="d.*", txn_type=REPL, writeEventInfos=[written(7), written(7, "P=A")])
    assert ann.snapshot().open_ids == ()
    assert write_id == 7
    ann.commit(500, replPolicy="d.*", txn_type=REPL)
    ann.commit(999, replPolicy="d.*", txn_type=REPL)
    components = select(
        "SELECT db, tbl, partition, txn_id, write_id FROM completed_component ORDER BY partition NULLS FIRST"
    )
    assert components == [("d", "t", None, target, 7), ("d", "t", "p=A", target, 7)]
    assert select("SELECT * FROM repl_txn_map") == []
    assert ann.write_ids("d.t", snapshot=ann.snapshot()).writeIdHighWaterMark == 7
    ann.commit(target)


def test_a_replayed_commit_never_conflicts(ann: Caller) -> None:
    """The source has checked; what it committed must be committed here."""
    replay_open(ann, 500)
    (local,) = ann.open()
    ann.write(local, "d/t")
    (target,) = replay_open(ann, 501)
    ann.write(target, "d/t")
    ann.commit(local)
    ann.commit(501, replPolicy="d.*")
    assert ann.snapshot().open_ids == (1,)
    assert ann.locks() == []


def test_the_replication_s_own_transactions_are_like_any_other(ann: Caller) -> None:
    """A policy with the type DEFAULT: ids are those of this warehouse."""
    default = ttypes.TxnType.DEFAULT
    first, second = ann.open(2, replPolicy="d.*", txn_type=default)
    ann.commit(first, replPolicy="d.*", txn_type=default)
    ann.abort(second, replPolicy="d.*", txn_type=default)
    assert (ann.snapshot().open_ids, ann.snapshot().aborted_ids) == ((), (second,))
    with refused("NoSuchTxnException"):
        ann.commit(99, replPolicy="d.*", txn_type=default)


def test_aborts(ann: Caller) -> None:
    create_database(ann, "d")
    replayed, timed_out, alone = replay_open(ann, 500, 501, 502)
    replay_allocate(ann, "d.t", (500, 1), (501, 2))
    ann.abort(500, replPolicy="d.*", txn_type=REPL)
    ann.abort(500, replPolicy="d.*", txn_type=REPL)
    ann.abort(12345, replPolicy="d.*")
    assert ann.snapshot().aborted_ids == (replayed,)
    assert "source" in ann.info()[replayed].metaInfo
    assert "repl.incompatible" not in (ann.call("get_database", "d").parameters or {})
    ann.abort(alone)
    assert "repl.incompatible" not in (ann.call("get_database", "d").parameters or {}), "it wrote nothing"
    ann.abort(timed_out)
    assert ann.call("get_database", "d").parameters["repl.incompatible"] == "true"
    assert replay_open(ann, 501) == [4], "the source's may be replayed anew"


def test_the_reaper_gives_replays_their_own_time(server: Served, ann: Caller) -> None:
    create_database(ann, "d")
    (replay,), (other,) = replay_open(ann, 500), ann.open()
    replay_allocate(ann, "d.t", (500, 1))
    server.db.call("expire_txns", 0, 3_600_000, "time-out", 100)
    assert (ann.snapshot().open_ids, ann.snapshot().aborted_ids) == ((replay,), (other,))
    server.db.call("expire_txns", 0, 0, "time-out", 100)
    assert ann.snapshot().aborted_ids == (replay, other)
    assert ann.call("get_database", "d").parameters["repl.incompatible"] == "true"


def test_write_ids_are_those_of_the_source(ann: Caller) -> None:
    first, second, third = replay_open(ann, 500, 501, 502)
    assert replay_allocate(ann, "D.T", (501, 6), (500, 5)) == [(first, 5), (second, 6)]
    assert replay_allocate(ann, "d.t", (501, 6), (500, 5)) == [(first, 5), (second, 6)]
    assert replay_allocate(ann, "d.t", (502, 7)) == [(third, 7)]
    assert ann.max_write_id("d.t") == 7
    assert ann.write_ids("d.t").minOpenWriteId == 5
    assert replay_allocate(ann, "d.t", (500, 5), (777, 8)) == [], "one of them has ended here"
    ann.commit(502, replPolicy="d.*")
    assert replay_allocate(ann, "d.t", (502, 7)) == []
    assert ann.allocate("d.t", ann.begin())[0][1] == 8


def test_a_replay_begun_anew_forgets_the_one_before(ann: Caller) -> None:
    replay_open(ann, 500, 501, 502)
    replay_allocate(ann, "d.t", (500, 5), (501, 6))
    third = replay_open(ann, 502)[0]
    assert replay_allocate(ann, "d.t", (502, 3)) == [(third, 3)]
    assert ann.max_write_id("d.t") == 3
    found = ann.write_ids("d.t")
    assert (found.invalidWriteIds, found.minOpenWriteId) == ([3], 3)


def test_impossible_allocations(ann: Caller) -> None:
    target, _ = replay_open(ann, 500, 501)
    for pairs in ((), ((500, 0),), ((500, 1), (500, 2)), ((500, 1), (501, 1))):
        with refused("MetaException", "one, above 0, for each"):
            replay_allocate(ann, "d.t", *pairs)
    ann.commit(target)
    assert replay_allocate(ann, "d.t", (500, 1)) == []
    assert ann.max_write_id("d.t") == 0


def test_last_event_with_a_commit(ann: Caller, select: Callable[..., Any]) -> None:
    create_database(ann, "d", kept="x")
    create_table(ann, "d", keys=["p"])
    ann.call("append_partition_by_name", "d", "t", "p=1")
    ann.call("append_partition_by_name", "d", "t", "p=2")
    for source, event in ((500, 41), (501, 42), (502, 43)):
        replay_open(ann, source)
        names = {41: {}, 42: {"table": "T"}, 43: {"table": "t", "partitionList": ["P=1", "p=9"]}}[event]
        state = ttypes.ReplLastIdInfo(database="D", lastReplId=event, **names)  # type: ignore[arg-type]
        ann.commit(source, replPolicy="d.*", replLastIdInfo=state)

    def last_id(parameters: dict[str, str]) -> str | None:
        return parameters.get("repl.last.id")

    assert ann.call("get_database", "d").parameters == {"kept": "x", "repl.last.id": "43"}
    assert last_id(get_table(ann, "d").parameters) == "43"
    partitions = ann.call("get_partitions", "d", "t", -1)
    assert {one.values[0]: last_id(one.parameters) for one in partitions} == {"1": "43", "2": None}
    replay_open(ann, 504)
    for names, words in (({"database": "x"}, "database x"), ({"database": "d", "table": "u"}, r"table d\.u")):
        with refused(INTERNAL, f"{words} does not exist"):
            ann.commit(504, replPolicy="d.*", replLastIdInfo=ttypes.ReplLastIdInfo(lastReplId=50, **names))
    assert len(ann.snapshot().open_ids) == 1
    ann.commit(999, replPolicy="d.*", replLastIdInfo=ttypes.ReplLastIdInfo(database="d", lastReplId=50))
    assert last_id(ann.call("get_database", "d").parameters) == "43", "a replay that is not known changes nothing"


def begin_table(ann: Caller, valid: str, table: str = "t", partitions: list[str] | None = None) -> None:
    request = ttypes.ReplTblWriteIdStateRequest(
        validWriteIdlist=valid, user="ann", hostName="h", dbName="D", tableName=table, partNames=partitions
    )
    ann.call("repl_tbl_writeid_state", request)


def test_a_copied_table_begins_where_its_source_stands(ann: Caller) -> None:
    begin_table(ann, "d.t:9:5:5,8:2,6")
    found = ann.write_ids("d.t", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds) == (9, [2, 6])
    assert ann.max_write_id("d.t") == 9
    (queued,) = ann.call("show_compact", ttypes.ShowCompactRequest()).compacts
    assert (queued.dbname, queued.tablename, queued.type) == ("d", "t", ttypes.CompactionType.MAJOR)
    begin_table(ann, "d.t:20:20::")
    assert ann.max_write_id("d.t") == 9, "it has begun"
    begin_table(ann, "d.u:4:4::", "u")
    assert ann.max_write_id("d.u") == 4
    assert len(ann.call("show_compact", ttypes.ShowCompactRequest()).compacts) == 1, "nothing aborted, nothing to do"
    with refused(INTERNAL, "not a write-id list"):
        begin_table(ann, "nonsense", "v")
    assert ann.allocate("d.t", ann.begin())[0][1] == 10


def test_a_copied_partitioned_table(ann: Caller) -> None:
    begin_table(ann, "d.t:3:3::1", partitions=["P=1", "p=2"])
    queued = ann.call("show_compact", ttypes.ShowCompactRequest()).compacts
    assert sorted(one.partitionname for one in queued) == ["p=1", "p=2"]
    assert ann.write_ids("d.t").invalidWriteIds == [1]


def test_aborted_writes_of_the_source_outlive_a_replay_begun_anew(ann: Caller) -> None:
    begin_table(ann, "d.t:5:4:4:2")
    (target,) = replay_open(ann, 500)
    assert replay_allocate(ann, "d.t", (500, 4)) == [(target, 4)]
    ann.commit(500, replPolicy="d.*")
    found = ann.write_ids("d.t", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds) == (4, [2])
