"""Allocation of write ids and what snapshots see of them (transactions.md §9, 20 to 31, and §10)."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hive_acid.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList, encode_bits
from hive_acid.ids import TxnId, WriteId
from metastore.store.database import Database
from metastore.txn.models import TableWriteIds
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType
from metastore.txn.write_ids.service import WriteIdService
from tests.txn.conftest import OWNER

OpenOne = Callable[..., TxnId]


def text_of(found: TableWriteIds) -> str:
    """The list as a client writes it."""
    bits = encode_bits(write_id in found.aborted for write_id in found.invalid)
    name = f"{found.db}.{found.table}"
    return str(ValidWriteIdList.from_invalid(name, found.high_water_mark, found.invalid, bits, found.min_open))


def snapshot_of(txns: TxnService, own: int = 0) -> ValidTxnList:
    """The caller's snapshot, as a client makes it."""
    found = txns.get_open_txns()
    ids, aborted = sorted(found.open_ids + found.aborted_ids), set(found.aborted_ids)
    bits = encode_bits(id_ in aborted for id_ in ids)
    return ValidTxnList.from_open_txns(found.high_water_mark, ids, bits, own)


def test_allocation_is_idempotent_and_per_table(write_ids: WriteIdService, open_one: OpenOne) -> None:
    first, second = open_one(), open_one()
    assert write_ids.allocate("db", "t", [first]) == [(first, 1)]
    assert write_ids.allocate("DB", "T", [first]) == [(first, 1)]
    assert write_ids.allocate("db", "t", [second]) == [(second, 2)]
    assert write_ids.allocate("db", "other", [second]) == [(second, 1)]
    assert write_ids.get_max_allocated("db", "t") == 2


def test_smallest_transaction_gets_smallest_id(txns: TxnService, write_ids: WriteIdService) -> None:
    txns.open_txns(18, OWNER)
    assert write_ids.allocate("db", "t", [TxnId(18), TxnId(16), TxnId(17)]) == [(16, 1), (17, 2), (18, 3)]
    assert write_ids.allocate("db", "t", [TxnId(17), TxnId(5)]) == [(5, 4), (17, 2)]


def test_concurrent_first_allocations(txns: TxnService, write_ids: WriteIdService) -> None:
    ids = txns.open_txns(40, OWNER)
    with ThreadPoolExecutor(8) as pool:
        given = [pair for pairs in pool.map(lambda id_: write_ids.allocate("db", "t", [id_]), ids) for pair in pairs]
    assert sorted(write_id for _, write_id in given) == list(range(1, 41))


def test_concurrent_allocations_for_one_transaction_agree(write_ids: WriteIdService, open_one: OpenOne) -> None:
    txn_id = open_one()
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: write_ids.allocate("db", "t", [txn_id]), range(16)))
    assert len({str(pairs) for pairs in given}) == 1


def test_only_open_writers_get_ids(txns: TxnService, write_ids: WriteIdService, open_one: OpenOne) -> None:
    fine, aborted, committed, reader = open_one(), open_one(), open_one(), open_one(TxnType.READ_ONLY)
    txns.abort_txn(aborted)
    txns.commit_txn(committed)
    for txn_id, error in (
        (aborted, TxnAbortedError),
        (committed, NoSuchTxnError),
        (TxnId(99), NoSuchTxnError),
        (reader, MetaError),
    ):
        with pytest.raises(error):
            write_ids.allocate("db", "t", [fine, txn_id])
    with pytest.raises(MetaError):
        write_ids.allocate("db", "t", [])
    assert write_ids.get_max_allocated("db", "t") == 0


def test_no_abort_slips_into_an_allocation(txns: TxnService, write_ids: WriteIdService) -> None:
    """Whoever is given an id was open; after the abort nobody is given one."""
    ids = txns.open_txns(60, OWNER)

    def allocate(txn_id: TxnId) -> bool:
        try:
            write_ids.allocate("db", "t", [txn_id])
        except TxnAbortedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        aborts = [pool.submit(txns.abort_txn, txn_id) for txn_id in ids]
        granted = list(pool.map(allocate, ids))
        for abort in aborts:
            abort.result()
    assert write_ids.get_max_allocated("db", "t") == sum(granted)
    rows = txns._db.engine.connect().exec_driver_sql("SELECT count(*) FROM txn_component").scalar()
    assert rows == sum(granted)


def test_reallocation_burns_the_old_id(txns: TxnService, write_ids: WriteIdService, open_one: OpenOne) -> None:
    txn_id = open_one()
    write_ids.allocate("db", "t", [txn_id])
    before = snapshot_of(txns, txn_id)
    assert write_ids.allocate("db", "t", [txn_id], reallocate=True) == [(txn_id, 2)]
    assert write_ids.get_max_allocated("db", "t") == 2
    assert write_ids.allocate("db", "t", [txn_id]) == [(txn_id, 2)]
    txns.commit_txn(txn_id)
    after = write_ids.get_valid(["db.t"])[0]
    assert (after.high_water_mark, after.invalid, after.aborted) == (2, [1], [1])
    assert 1 in write_ids.get_valid(["db.t"], before)[0].invalid


def test_table_never_written(write_ids: WriteIdService) -> None:
    assert text_of(write_ids.get_valid(["db.none"])[0]) == "db.none:0:9223372036854775807::"


def test_golden_vectors(txns: TxnService, write_ids: WriteIdService) -> None:
    ids = txns.open_txns(12, OWNER)
    for txn_id in ids:
        write_ids.allocate("db", "e", [txn_id])
    txns.abort_txns([TxnId(id_) for id_ in (2, 3, 4, 5, 6, 9)])
    txns.commit_txn(TxnId(1))
    txns.commit_txn(TxnId(10))
    assert str(snapshot_of(txns)) == "12:7:7,8,11,12:2-6,9"
    assert str(snapshot_of(txns, 11)) == "11:7:7,8:2-6,9"
    assert text_of(write_ids.get_valid(["db.e"], snapshot_of(txns))[0]) == "db.e:12:7:7,8,11,12:2,3,4,5,6,9"
    assert text_of(write_ids.get_valid(["db.e"])[0]) == "db.e:12:7:7,8,11,12:2,3,4,5,6,9"
    as_seven = "db.e:7:9223372036854775807::2,3,4,5,6"
    assert text_of(write_ids.get_valid(["db.e"], snapshot_of(txns, 7))[0]) == as_seven
    assert text_of(write_ids.get_valid(["db.e"], as_of=WriteId(7))[0]) == as_seven


def test_tables_with_invalid_writes_only(txns: TxnService, write_ids: WriteIdService, open_one: OpenOne) -> None:
    aborted = open_one()
    write_ids.allocate("db", "ab", [aborted])
    txns.abort_txn(aborted)
    assert text_of(write_ids.get_valid(["db.ab"])[0]) == "db.ab:1:9223372036854775807::1"
    opened = open_one()
    write_ids.allocate("db", "ab", [opened])
    assert text_of(write_ids.get_valid(["db.ab"])[0]) == "db.ab:1:2::1"
    write_ids.allocate("db", "ow", [opened])
    assert text_of(write_ids.get_valid(["db.ow"])[0]) == "db.ow:1:1:1:"
    assert text_of(write_ids.get_valid(["db.ow"], snapshot_of(txns, opened))[0]) == "db.ow:1:9223372036854775807::"


def test_snapshot_keeps_later_commits_out(txns: TxnService, write_ids: WriteIdService) -> None:
    first, second, third = txns.open_txns(3, OWNER)
    for txn_id in (third, first):  # write ids 1 and 2, not in the order of the transactions
        write_ids.allocate("db", "t", [txn_id])
    txns.commit_txn(first)
    mine = snapshot_of(txns, second)
    txns.commit_txn(third)
    assert text_of(write_ids.get_valid(["db.t"], mine)[0]) == "db.t:2:1:1:"


def test_snapshot_taken_before_a_commit_keeps_it_out(
    txns: TxnService, write_ids: WriteIdService, open_one: OpenOne
) -> None:
    old = open_one()
    write_ids.allocate("db", "t", [old])
    txns.commit_txn(old)
    writer = open_one()
    write_ids.allocate("db", "t", [writer])
    reader = open_one(TxnType.READ_ONLY)
    mine = snapshot_of(txns, reader)
    txns.commit_txn(writer)
    assert text_of(write_ids.get_valid(["db.t"], mine)[0]) == "db.t:2:2:2:"
    assert text_of(write_ids.get_valid(["db.t"])[0]) == "db.t:2:9223372036854775807::"


def test_several_tables_in_one_trip(db: Database, write_ids: WriteIdService, open_one: OpenOne) -> None:
    write_ids.allocate("db", "b", [open_one()])
    before = db.calls
    found = write_ids.get_valid(["DB.B", "db.a"])
    assert db.calls - before == 1
    assert [(one.table, one.high_water_mark, one.invalid) for one in found] == [("b", 1, [1]), ("a", 0, [])]
    with pytest.raises(MetaError, match=r"database\.table"):
        write_ids.get_valid(["nodot"])


def test_as_of_an_unknown_write_id(write_ids: WriteIdService) -> None:
    with pytest.raises(MetaError, match=r"invalid write id 7 for table db\.t"):
        write_ids.get_valid(["db.t"], as_of=WriteId(7))


def test_seed(write_ids: WriteIdService, open_one: OpenOne) -> None:
    write_ids.seed("db", "t", WriteId(10))
    assert write_ids.get_valid(["db.t"])[0].high_water_mark == 10
    assert write_ids.allocate("db", "t", [open_one()])[0][1] == 11
    with pytest.raises(MetaError, match="already"):
        write_ids.seed("db", "t", WriteId(10))


def test_rename_and_drop(db: Database, txns: TxnService, write_ids: WriteIdService, open_one: OpenOne) -> None:
    txn_id = open_one()
    write_ids.allocate("db", "t", [txn_id])
    txns.commit_txn(txn_id)
    db.call("txn_rename_table", "db", "t", "db2", "t2")
    assert write_ids.get_valid(["db2.t2"])[0].high_water_mark == 1
    assert write_ids.get_valid(["db.t"])[0].high_water_mark == 0
    db.call("txn_forget_table", "db2", "t2")
    assert write_ids.get_valid(["db2.t2"])[0].high_water_mark == 0
    assert write_ids.allocate("db2", "t2", [open_one()])[0][1] == 1


def test_a_hundred_thousand_aborted_ids(txns: TxnService, write_ids: WriteIdService, db: Database) -> None:
    """Made by SQL, read by the ordinary way; the walk must not be quadratic."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at,"
            " opened_snapshot, ended_at, ended_xid, abort_reason) SELECT id, 'a', 0, '', '', '', now(), now(),"
            " pg_current_snapshot(), now(), pg_current_xact_id(), 'x' FROM generate_series(1, 100000) AS id"
        )
        connection.exec_driver_sql(
            "INSERT INTO write_id SELECT 'db', 't', id, id FROM generate_series(1, 100000) AS id"
        )
        connection.exec_driver_sql("UPDATE txn_counter SET last_id = 100000, counted_at = 100000")
        connection.exec_driver_sql("INSERT INTO write_id_counter VALUES ('db', 't', 100000)")
        connection.exec_driver_sql(
            "INSERT INTO unresolved_write_id SELECT id, 'db', 't', id, true FROM generate_series(1, 100000) AS id"
        )
    txn_id = txns.open_txns(1, OWNER)[0]
    write_ids.allocate("db", "t", [txn_id])
    txns.commit_txn(txn_id)
    snapshot = snapshot_of(txns)
    started = time.monotonic()
    found = write_ids.get_valid(["db.t"], snapshot)[0]
    assert time.monotonic() - started < 5
    assert (found.high_water_mark, len(found.invalid), len(found.aborted)) == (100_001, 100_000, 100_000)
