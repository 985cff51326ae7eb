"""A commit that tells whose changes are of other rows (transactions.md §1.6)."""

import random
from collections.abc import Callable

import pytest

from hive_acid.errors import NoSuchTxnError, TxnAbortedError
from hive_acid.ids import TxnId, WriteId
from hive_acid.wire import ttypes
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.store.database import Database
from metastore.txn.models import OtherChange
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnState, TxnType
from tests.caller import Caller

OpenOne = Callable[..., TxnId]
Write = Callable[..., None]
INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE


def state(txns: TxnService, txn_id: TxnId) -> TxnState:
    found = {info.txn_id: info.state for info in txns.get_open_txns_info()[1]}
    return found.get(txn_id, TxnState.COMMITTED)


def test_those_that_are_checked_are_no_conflict(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second, third = open_one(), open_one(), open_one()
    for txn_id in (first, second, third):
        write(txn_id, UPDATE)
    assert txns.commit_rows(first, []) == []
    assert txns.commit_rows(second, []) == [OtherChange("db", "t", None, first, WriteId(1))]
    assert state(txns, second) is TxnState.OPEN
    assert txns.commit_rows(third, [first]) == []
    assert txns.commit_rows(second, [first]) == [OtherChange("db", "t", None, third, WriteId(3))]
    assert txns.commit_rows(second, [first, third]) == []
    assert txns.commit_rows(second, []) == []  # it is committed
    assert {state(txns, one) for one in (first, second, third)} == {TxnState.COMMITTED}


def test_who_checks_nothing_is_refused_as_ever(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second, third = open_one(), open_one(), open_one()
    for txn_id in (first, second, third):
        write(txn_id, UPDATE)
    txns.commit_rows(first, [])
    assert len(txns.commit_rows(second, [])) == 1
    with pytest.raises(TxnAbortedError, match="write conflict on db/t committed by"):
        txns.commit_txn(second)
    with pytest.raises(TxnAbortedError, match="already aborted"):
        txns.commit_rows(second, [first])
    with pytest.raises(TxnAbortedError, match="write conflict"):
        txns.commit_txn(third)
    with pytest.raises(NoSuchTxnError):
        txns.commit_rows(TxnId(99), [])


def test_partitions_and_the_whole_table(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second, other, whole = open_one(), open_one(), open_one(), open_one()
    write(first, UPDATE, partition="p=1")
    write(second, DELETE, partition="P=1")
    write(other, UPDATE, partition="p=2")
    write(whole, UPDATE)
    assert txns.commit_rows(first, []) == txns.commit_rows(other, []) == []
    assert txns.commit_rows(second, []) == [OtherChange("db", "t", "p=1", first, WriteId(1))]
    assert {of.txn_id for of in txns.commit_rows(whole, [])} == {first, other}
    assert [of.txn_id for of in txns.commit_rows(whole, [first])] == [other]
    assert txns.commit_rows(whole, [first, other]) == []


def test_all_tables_are_told_of(txns: TxnService, open_one: OpenOne, write: Write) -> None:
    first, second = open_one(), open_one()
    for txn_id in (first, second):
        write(txn_id, UPDATE, "a")
        write(txn_id, DELETE, "b")
        write(txn_id, INSERT, "c")
    txns.commit_txn(first)
    assert sorted(of.table for of in txns.commit_rows(second, [])) == ["a", "b"]
    assert txns.commit_rows(second, [first]) == []


def test_a_rebalance_is_a_conflict_whatever_was_checked(
    db: Database, txns: TxnService, open_one: OpenOne, write: Write
) -> None:
    """Also when a later change of the same data stands for it."""
    waiting, other = open_one(), open_one()
    write(waiting, UPDATE)
    rebalance = open_one(TxnType.REBALANCE_COMPACTION)
    write(rebalance, UPDATE)
    txns.commit_txn(rebalance)
    assert state(txns, waiting) is TxnState.OPEN
    later = open_one()
    write(later, UPDATE)
    txns.commit_txn(later)
    cleaner = AcidTxnCleaner(db, HousekeepingConfig())
    assert cleaner.run_once().merged_write_set == 0
    with pytest.raises(TxnAbortedError, match="write conflict"):
        txns.commit_rows(waiting, [rebalance, later])
    assert state(txns, waiting) is TxnState.ABORTED
    write(other, DELETE)
    with pytest.raises(TxnAbortedError, match="write conflict"):
        txns.commit_rows(other, [])


def test_the_last_of_several_changes_stands_for_all(
    db: Database, txns: TxnService, open_one: OpenOne, write: Write
) -> None:
    waiting = open_one()
    write(waiting, UPDATE)
    for _ in range(3):
        last = open_one()
        write(last, UPDATE)
        txns.commit_txn(last)
    assert AcidTxnCleaner(db, HousekeepingConfig()).run_once().merged_write_set == 2
    assert [of.txn_id for of in txns.commit_rows(waiting, [])] == [last]
    assert txns.commit_rows(waiting, [last]) == []


@pytest.mark.parametrize("seed", range(6))
def test_of_two_that_change_one_row_one_commits(seed: int, txns: TxnService, open_one: OpenOne, write: Write) -> None:
    """Transactions that open, change rows and commit as chance has it, and tell apart what the model tells apart.

    The model knows who has changed which rows of which partition, and when. A commit must succeed if, and only if, no
    row of it was changed by one that committed since it was opened.
    """
    chance = random.Random(seed)
    opened: dict[TxnId, tuple[int, frozenset[tuple[str, int]]]] = {}
    committed: list[tuple[TxnId, frozenset[tuple[str, int]]]] = []
    conflicts = 0
    for _ in range(120):
        if len(opened) < 5 and chance.random() < 0.6:
            txn_id = open_one()
            rows = frozenset((f"p={chance.randrange(3)}", chance.randrange(6)) for _ in range(chance.randint(1, 3)))
            for partition in sorted({partition for partition, _ in rows}):
                write(txn_id, chance.choice([UPDATE, DELETE]), partition=partition)
            opened[txn_id] = len(committed), rows
        elif opened:
            txn_id = chance.choice(list(opened))
            since, rows = opened.pop(txn_id)
            later = committed[since:]
            apart = [other for other, theirs in later if not rows & theirs]
            is_apart = len(apart) == len(later)
            unchecked = txns.commit_rows(txn_id, apart)
            told = {of.txn_id for of in unchecked}
            touching = {other for other, theirs in later if {part for part, _ in rows} & {part for part, _ in theirs}}
            assert told == touching - set(apart)
            assert is_apart == (not unchecked)
            if unchecked:
                conflicts += 1
                with pytest.raises(TxnAbortedError, match="write conflict"):
                    txns.commit_txn(txn_id)
            else:
                committed.append((txn_id, rows))
    assert conflicts > 3
    assert len(committed) > 10


def test_over_thrift(ann: Caller, server: object) -> None:
    first, second = ann.call("open_txns", ttypes.OpenTxnRequest(num_txns=2, user="ann", hostname="h")).txn_ids
    for txn_id in (first, second):
        ann.call("allocate_table_write_ids", ttypes.AllocateTableWriteIdsRequest("db", "t", txnIds=[txn_id]))
        component = ttypes.LockComponent(
            type=ttypes.LockType.SHARED_WRITE,
            level=ttypes.LockLevel.TABLE,
            dbname="db",
            tablename="t",
            operationType=ttypes.DataOperationType.UPDATE,
            isTransactional=True,
        )
        ann.call("lock", ttypes.LockRequest(component=[component], txnid=txn_id, user="ann", hostname="h"))

    def commit(txn_id: int, *checked: int) -> list[tuple[object, ...]]:
        request = ttypes.HiveAcidCommitRowsRequest(txnid=txn_id, checkedTxnIds=list(checked))
        found = ann.call("hive_acid_commit_rows", request).unchecked
        return [(of.dbname, of.tablename, of.partname, of.txnid, of.writeid) for of in found]

    assert commit(first) == []
    assert commit(second) == [("db", "t", None, first, 1)]
    assert commit(second, first) == []
