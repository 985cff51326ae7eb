"""transactions.md §9, items 1 to 16: the life of transactions, over the wire."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hive_acid.wire import ttypes
from metastore.store.database import Database
from tests.caller import INTERNAL, Caller, Refused, refused
from tests.checklist.tables import create_database, create_table, get_table
from tests.served import Served
from tests.waiting import until

UNKNOWN = 10**9

Alone = Callable[..., Served]


def test_01_fresh_store(alone: Alone) -> None:
    with alone().caller() as ann:
        found = ann.call("get_open_txns")
    assert (found.txn_high_water_mark, found.open_txns, found.min_open_txn) == (0, [], None)
    assert not found.abortedBits


def test_02_three_opened(ann: Caller) -> None:
    ids = ann.open(3)
    found = ann.call("get_open_txns")
    assert ids == [ids[0], ids[0] + 1, ids[0] + 2]
    assert set(ids) <= set(found.open_txns)
    assert not set(ids) & set(ann.snapshot().aborted_ids)
    assert (found.txn_high_water_mark, found.min_open_txn) == (ids[-1], ids[0])


def test_03_bad_and_large_numbers(ann: Caller) -> None:
    with refused(INTERNAL, "open_txns"):
        ann.open(0)
    with refused(INTERNAL, "-1"):
        ann.open(-1)
    ids = ann.open(1500)
    assert ids == list(range(ids[0], ids[0] + 1000))


def _until_after(txn: Any) -> None:
    """Until the clock, which is read in milliseconds, is behind the last heartbeat of a transaction."""
    until(lambda: 1000 * time.time() >= txn.lastHeartbeatTime + 1)


def test_04_heartbeat_advances(ann: Caller) -> None:
    txn_id, other = ann.open(2)
    before = ann.info()
    _until_after(before[txn_id])
    ann.heartbeat(txn_id)
    after = ann.info()
    assert after[txn_id].lastHeartbeatTime > before[txn_id].lastHeartbeatTime
    assert after[txn_id].startedTime == before[txn_id].startedTime
    assert after[other].lastHeartbeatTime == before[other].lastHeartbeatTime


def test_05_heartbeats_that_are_refused(ann: Caller) -> None:
    aborted, committed = ann.open(2)
    ann.abort(aborted)
    ann.commit(committed)
    with refused("TxnAbortedException", f"{aborted}.*aborted"):
        ann.heartbeat(aborted)
    with refused("NoSuchTxnException", str(committed)):
        ann.heartbeat(committed)
    with refused("NoSuchTxnException", str(UNKNOWN)):
        ann.heartbeat(UNKNOWN)
    ann.heartbeat(0, 0)
    ann.heartbeat()


def test_06_heartbeat_of_a_range(ann: Caller) -> None:
    ids = ann.open(6)
    ann.abort_all(ids[1], ids[4])
    ann.commit(ids[2])
    before = ann.info()
    _until_after(before[ids[-1]])
    assert ann.heartbeat_range(ids[0], ids[-1] + 2) == (
        {ids[1], ids[4]},
        {ids[2], ids[-1] + 1, ids[-1] + 2},
    )
    after = ann.info()
    for txn_id in (ids[0], ids[3], ids[5]):
        assert after[txn_id].lastHeartbeatTime > before[txn_id].lastHeartbeatTime
    assert ann.heartbeat_range(ids[5], ids[5]) == (set(), set())


def test_07_commit_leaves_the_open_list(ann: Caller, name: str) -> None:
    kept, txn_id = ann.open(2)
    assert ann.asks(f"r {name}/t", txn=txn_id) == "A"
    ann.commit(txn_id)
    found = ann.call("get_open_txns")
    assert kept in found.open_txns
    assert txn_id not in found.open_txns
    assert found.txn_high_water_mark == txn_id
    assert ann.locks(txnid=txn_id) == []


def test_08_commit_again(ann: Caller, name: str) -> None:
    committed, writer, aborted = ann.open(3)
    ann.write(writer, f"{name}/t")
    for _ in range(3):
        ann.commit(committed)
        ann.commit(writer)
    ann.abort(aborted)
    with refused("TxnAbortedException", str(aborted)):
        ann.commit(aborted)
    with refused("NoSuchTxnException", str(UNKNOWN)):
        ann.commit(UNKNOWN)
    assert aborted in ann.snapshot().aborted_ids


def test_09_abort(ann: Caller) -> None:
    txn_id, committed = ann.open(2)
    ann.commit(committed)
    for _ in range(2):
        ann.abort(txn_id)
        assert ann.snapshot().is_aborted(txn_id)
    with refused("NoSuchTxnException", str(committed)):
        ann.abort(committed)
    with refused("NoSuchTxnException", str(UNKNOWN)):
        ann.abort(UNKNOWN)
    assert ann.snapshot().is_valid(committed)


def test_10_abort_of_mixed_ids(ann: Caller) -> None:
    one, aborted, committed, two, kept = ann.open(5)
    ann.abort(aborted, errorCode=50001)
    ann.commit(committed)
    reason = ann.info()[aborted].metaInfo
    ann.abort_all(two, UNKNOWN, aborted, committed, one, two)
    found = ann.snapshot()
    assert {one, two, aborted} <= set(found.aborted_ids)
    assert found.is_valid(committed)
    assert kept in found.open_ids
    assert ann.info()[aborted].metaInfo == reason


def test_11_read_only_transactions_are_hidden(ann: Caller) -> None:
    reader = ann.begin(txn_type=ttypes.TxnType.READ_ONLY)
    writer = ann.begin()
    found = ann.call("get_open_txns")
    assert reader not in found.open_txns
    assert writer in found.open_txns
    assert found.min_open_txn == reader
    for request in (ttypes.GetOpenTxnsRequest(excludeTxnTypes=[]), ttypes.GetOpenTxnsRequest()):
        assert {reader, writer} <= set(ann.call("get_open_txns_req", request).open_txns)
    assert ann.info()[reader].state == ttypes.TxnState.OPEN


def test_12_excluded_types(alone: Alone) -> None:
    with alone().caller() as ann:
        for kind in (ttypes.TxnType.DEFAULT, ttypes.TxnType.COMPACTION, ttypes.TxnType.DEFAULT):
            ann.begin(txn_type=kind)
        compaction = ann.begin(txn_type=ttypes.TxnType.COMPACTION)
        ann.abort_all(1, compaction)

        def listed(*excluded: int) -> tuple[list[int], bytes]:
            found = ann.call("get_open_txns_req", ttypes.GetOpenTxnsRequest(excludeTxnTypes=list(excluded)))
            return found.open_txns, found.abortedBits or b""

        assert listed() == ([1, 2, 3, 4], b"\x09")
        assert listed(ttypes.TxnType.DEFAULT) == ([2, 4], b"\x02")
        assert listed(ttypes.TxnType.COMPACTION) == ([1, 3], b"\x01")
        assert listed(ttypes.TxnType.DEFAULT, ttypes.TxnType.COMPACTION) == ([], b"")


def test_13_time_out(alone: Alone) -> None:
    server = alone(**{"metastore.housekeeping.threads.on": "true", "metastore.acid.housekeeper.interval": "100ms"})
    with server.caller() as ann:
        quiet, beaten = ann.open(2)
        reader = ann.begin(txn_type=ttypes.TxnType.READ_ONLY)
        replay = ann.begin(txn_type=ttypes.TxnType.REPL_CREATED)
        assert ann.asks("e db/t", txn=quiet) == "A"
        _age(server.db, quiet, reader, replay)
        until(lambda: {quiet, reader} <= {one.id for one in ann.info().values() if one.state == _ABORTED})
        assert beaten in ann.snapshot().open_ids
        assert ann.info()[replay].state == ttypes.TxnState.OPEN
        assert "time-out" in ann.info()[quiet].metaInfo
        assert ann.asks("r db/t", txn=beaten) == "A"
        with refused("TxnAbortedException"):
            ann.commit(quiet)


def test_14_ids_become_visible_in_order(alone: Alone) -> None:
    """However the openers race: an id at or below the high-water mark is listed as open, so no window is needed."""
    server = alone()
    stop = False

    def opener(number: int) -> int:
        with server.caller(f"opener{number}") as caller:
            return sum(len(caller.open(1 + number % 3)) for _ in range(40))

    def watcher(_: int) -> int:
        highest = looks = 0
        with server.caller("watcher") as caller:
            while not stop:
                found = caller.call("get_open_txns")
                assert found.open_txns == list(range(1, found.txn_high_water_mark + 1))
                assert found.txn_high_water_mark >= highest
                highest, looks = found.txn_high_water_mark, looks + 1
        return looks

    with ThreadPoolExecutor(8) as pool:
        watchers = [pool.submit(watcher, number) for number in range(2)]
        opened = sum(pool.map(opener, range(6)))
        stop = True
        assert all(one.result() > 1 for one in watchers)
    with server.caller() as ann:
        assert ann.call("get_open_txns").txn_high_water_mark == opened


def test_15_limit(alone: Alone) -> None:
    with alone(**{"hive.max.open.txns": "10"}).caller() as ann:
        ids = ann.open(10)

        def is_refused() -> bool:
            try:
                ann.abort(ann.begin())
            except Refused as error:
                error.require(INTERNAL, "hive.max.open.txns")
                return True
            return False

        until(is_refused)  # Hive's limit is a gauge that is up to a second old
        ann.commit(ids[0])
        ann.abort_all(*ids[1:4])
        until(lambda: not is_refused())


def test_16_table_parameter_with_the_commit(ann: Caller, name: str) -> None:
    create_database(ann, name)
    table_id = create_table(ann, name, parameters={"_meta.offset": "4", "other": "x"}).id

    def parameters() -> dict[str, str]:
        return dict(get_table(ann, name).parameters)

    def offset(txn_id: int, key: str, table: int = table_id) -> None:
        ann.commit(txn_id, keyValue=ttypes.CommitTxnKeyValue(tableId=table, key=key, value="5"))

    txn_id = ann.begin()
    for key, table in (("other", table_id), ("_meta.unknown", table_id), ("_meta.offset", 10**8)):
        with refused(INTERNAL):
            offset(txn_id, key, table)
        assert txn_id in ann.snapshot().open_ids
        assert parameters()["_meta.offset"] == "4"
    offset(txn_id, "_meta.offset")
    assert parameters()["_meta.offset"] == "5"
    assert ann.snapshot().is_valid(txn_id)
    aborted = ann.begin()
    ann.abort(aborted)
    with refused("TxnAbortedException"):
        ann.commit(aborted, keyValue=ttypes.CommitTxnKeyValue(tableId=table_id, key="_meta.offset", value="6"))
    assert parameters()["_meta.offset"] == "5"


_ABORTED = ttypes.TxnState.ABORTED


def _age(db: Database, *txn_ids: int) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE txn SET heartbeat_at = heartbeat_at - interval '1 day' WHERE txn_id = ANY (%s)", (list(txn_ids),)
        )
