"""First committer wins (transactions.md §9, 32 to 40; §10)."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hive_acid.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import TxnId, WriteId
from metastore.lock.service import LockService
from metastore.store.database import Database
from metastore.txn.service import TxnService
from metastore.txn.states import Operation
from tests.txn.conftest import OWNER

OpenOne = Callable[..., TxnId]
Write = Callable[..., None]
INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE


def commits(txns: TxnService, txn_id: TxnId, **options: bool) -> bool:
    try:
        txns.commit_txn(txn_id, **options)
    except TxnAbortedError:
        return False
    return True


@pytest.mark.parametrize(("one", "other"), list(itertools.product((INSERT, UPDATE, DELETE), repeat=2)))
def test_matrix(one: Operation, other: Operation, txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second = open_one(), open_one()
    write(first, one)
    write(second, other)
    assert commits(txns, first)
    assert commits(txns, second) == (INSERT in (one, other))


def test_message_and_aftermath(txns: TxnService, locks: LockService, open_one: OpenOne, write: Write) -> None:
    first, second = open_one(), open_one()
    write(first, UPDATE)
    write(second, DELETE)
    txns.commit_txn(first)
    assert txns.get_latest_txnid_in_conflict(second) == first
    with pytest.raises(TxnAbortedError) as caught:
        txns.commit_txn(second)
    assert str(caught.value) == ("Aborting [txnid:2,2] due to a write conflict on db/t committed by [txnid:1,2] d/u")
    assert txns.get_open_txns().aborted_ids == [second]
    assert txns.get_open_txns_info()[1][0].abort_reason == "write conflicts"
    assert locks.show_locks() == []
    with pytest.raises(TxnAbortedError, match="already aborted"):
        txns.commit_txn(second)


def test_later_opened_commits_first(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second = open_one(), open_one()
    write(first, UPDATE)
    write(second, UPDATE)
    assert commits(txns, second)
    assert not commits(txns, first)


def test_no_overlap_in_time(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    for _ in range(3):
        txn_id = open_one()
        write(txn_id, UPDATE)
        assert txns.get_latest_txnid_in_conflict(txn_id) == 0
        assert commits(txns, txn_id)


def test_explicit_exclusive_writes_skip_the_check(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second, third = open_one(), open_one(), open_one()
    for txn_id in (first, second, third):
        write(txn_id, UPDATE)
    assert commits(txns, first, skip_conflict_check=True)
    assert commits(txns, second, skip_conflict_check=True)
    assert not commits(txns, third)


def test_partitions(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second, third = open_one(), open_one(), open_one()
    write(first, UPDATE, partition="p=1")
    write(second, UPDATE, partition="p=2")
    write(third, UPDATE, partition="P=1")
    assert commits(txns, first)
    assert commits(txns, second)
    with pytest.raises(TxnAbortedError, match="on db/t/p=1 "):
        txns.commit_txn(third)


@pytest.mark.parametrize("levels", [("p=1", None), (None, "p=1")])
def test_table_meets_partition(
    levels: tuple[str | None, str | None], txns: TxnService, open_one: OpenOne, write: Write
) -> None:
    first, second = open_one(), open_one()
    write(first, UPDATE, partition=levels[0])
    write(second, UPDATE, partition=levels[1])
    assert commits(txns, first)
    assert not commits(txns, second)


def test_dynamic_partitions_replace_the_table(db: Database, txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second, third = open_one(), open_one(), open_one()
    for number, (txn_id, names) in enumerate(((first, ["p=1", "p=2"]), (second, ["p=3"]), (third, ["P=2"])), 1):
        write(txn_id, UPDATE, dynamic=True)
        for _ in range(2):  # a repetition changes nothing
            txns.add_dynamic_partitions(txn_id, WriteId(number), "DB", "T", names)
    assert partitions(db, "txn_component") == [(1, "p=1"), (1, "p=2"), (2, "p=3"), (3, "p=2")]
    assert commits(txns, first)
    assert commits(txns, second)
    assert not commits(txns, third)
    assert partitions(db, "completed_component") == [(1, "p=1"), (1, "p=2"), (2, "p=3")]


def test_a_change_of_the_whole_table_may_stay_beside_its_partitions(
    db: Database, txns: TxnService, open_one: OpenOne, write: Write
) -> None:
    """As of who compares keys over all of it: it conflicts with changes of other partitions, and inserts do not."""
    first, second, third, inserting = open_one(), open_one(), open_one(), open_one()
    for txn_id in (first, second, third):
        write(txn_id, UPDATE, dynamic=True)
    write(inserting, INSERT, dynamic=True)
    for number, (txn_id, name) in enumerate(((first, "p=1"), (second, "p=2"), (inserting, "p=2")), 1):
        for _ in range(2):
            txns.add_dynamic_partitions(txn_id, WriteId(number), "db", "t", [name], INSERT, also_whole_table=True)
    txns.add_dynamic_partitions(third, WriteId(4), "db", "t", ["p=3"])
    assert partitions(db, "txn_component") == [*((1, "p=1"), (1, None), (2, "p=2"), (2, None), (3, "p=3"), (4, "p=2"))]
    assert commits(txns, first)
    assert not commits(txns, second)
    assert not commits(txns, third)
    assert commits(txns, inserting)


def test_dynamic_partitions_of_what_is_not_open(txns: TxnService, open_one: OpenOne) -> None:
    aborted, committed = open_one(), open_one()
    txns.abort_txn(aborted)
    txns.commit_txn(committed)
    with pytest.raises(TxnAbortedError):
        txns.add_dynamic_partitions(aborted, WriteId(1), "db", "t", ["p=1"])
    for txn_id in (committed, TxnId(99)):
        with pytest.raises(NoSuchTxnError):
            txns.add_dynamic_partitions(txn_id, WriteId(1), "db", "t", ["p=1"])
    with pytest.raises(MetaError, match="key=value"):
        txns.add_dynamic_partitions(committed, WriteId(1), "db", "t", ["nonsense"])


def test_of_many_concurrent_updates_one_wins(txns: TxnService, write: Write) -> None:
    for _ in range(5):
        ids = txns.open_txns(8, OWNER)
        for txn_id in ids:
            write(txn_id, UPDATE)
        start = threading.Barrier(8)

        def race(txn_id: TxnId, start: threading.Barrier = start) -> bool:
            start.wait()
            return commits(txns, txn_id)

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(race, ids)) == 1


def test_lost_updates_never_happen(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    """Threads open, update and commit as they like: of two that overlap in time only one may succeed."""
    clock = itertools.count()
    succeeded: list[tuple[int, int]] = []

    def work(_: int) -> None:
        for _ in range(8):
            txn_id = open_one()
            opened = next(clock)
            write(txn_id, UPDATE)
            committing = next(clock)
            if commits(txns, txn_id):
                succeeded.append((opened, committing))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert succeeded
    # opened is noted after the open and committing before the commit, so these spans lie within the true ones.
    for (opened, ended), (other_opened, other_ended) in itertools.combinations(succeeded, 2):
        assert ended < other_opened or other_ended < opened


def test_flag_is_per_component(db: Database, txns: TxnService, open_one: OpenOne, write: Write) -> None:
    txn_id = open_one()
    write(txn_id, UPDATE, "changed")
    write(txn_id, INSERT, "grown")
    txns.commit_txn(txn_id)
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT tbl, write_id, update_delete FROM completed_component ORDER BY tbl")
        assert [tuple(row) for row in rows] == [("changed", 1, True), ("grown", 1, False)]
        assert connection.exec_driver_sql("SELECT count(*) FROM txn_component").scalar() == 0


def partitions(db: Database, table: str) -> list[tuple[int, str | None]]:
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"SELECT txn_id, partition FROM {table} ORDER BY 1, 2")
        return [(row[0], row[1]) for row in rows]
