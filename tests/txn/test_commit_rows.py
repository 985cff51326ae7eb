"""A commit that tells whose changes are of other rows (transactions.md §1.6)."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from hive_acid.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hive_acid.format.progress import progress_parameter
from hive_acid.ids import TxnId, WriteId
from hive_acid.wire import ttypes
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.store.database import Database
from metastore.txn.commits import CommitExtras, CommitParameter, ExtendedCommits
from metastore.txn.config import TxnConfig
from metastore.txn.models import OtherChange
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnState, TxnType
from tests.caller import Caller, refused
from tests.checklist.tables import create_database, create_table, get_table
from tests.served import Served

OpenOne = Callable[..., TxnId]
Write = Callable[..., None]
INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE
KEY = progress_parameter("clicks")


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


def changing(ann: Caller, number: int) -> list[int]:
    """So many open transactions that have changed ``d.t``."""
    txn_ids = ann.open(number)
    for txn_id in txn_ids:
        ann.write(txn_id, "d/t", "u")
    return txn_ids


def commit(ann: Caller, txn_id: int, *checked: int, parameter: object = None) -> list[tuple[object, ...]]:
    request = ttypes.HiveAcidCommitRowsRequest(txnid=txn_id, checkedTxnIds=list(checked), keyValue=parameter)
    found = ann.call("hive_acid_commit_rows", request).unchecked
    return [(of.dbname, of.tablename, of.partname, of.txnid, of.writeid) for of in found]


def test_over_thrift(ann: Caller) -> None:
    first, second = changing(ann, 2)
    assert commit(ann, first) == []
    assert commit(ann, second) == [("d", "t", None, first, 1)]
    assert commit(ann, second, first) == []


# --- with a batch of a stream -----------------------------------------------------------------------


def test_a_batch_is_noted_with_the_commit_or_not_at_all(ann: Caller) -> None:
    create_database(ann, "d")
    table_id = int(create_table(ann, "d").id)
    first, second, late, again = changing(ann, 4)

    def batch(number: str) -> object:
        return ttypes.CommitTxnKeyValue(tableId=table_id, key=KEY, value=number)

    def noted() -> str | None:
        found: str | None = get_table(ann, "d").parameters.get(KEY)
        return found

    assert commit(ann, first) == []
    assert commit(ann, second, parameter=batch("3")) == [("d", "t", None, first, 1)]
    assert noted() is None
    for _ in range(2):  # also where the answer was lost
        assert commit(ann, second, first, parameter=batch("3")) == []
        assert noted() == "3"
    with refused("MetaException", "batch 3 .* or a later one is in"):
        commit(ann, late, first, second, parameter=batch("3"))
    assert ann.snapshot().open_ids == (late, again)
    assert commit(ann, late, first, second, parameter=batch("4")) == []
    assert noted() == "4"
    for key, value, words in (
        (KEY, "x", "holds the number"),
        ("x", "1", "begin with _meta"),
        ("_meta.x", "1", "has no"),
    ):
        parameter = ttypes.CommitTxnKeyValue(tableId=table_id, key=key, value=value)
        with refused("MetaException", words):
            commit(ann, again, first, second, late, parameter=parameter)
    with refused("TxnAbortedException", "write conflict"):
        ann.commit(again, keyValue=batch("5"))
    with refused("TxnAbortedException", "already aborted"):
        commit(ann, again, first, second, late, parameter=batch("5"))
    assert noted() == "4"


def test_of_many_with_one_batch_at_once_one_commits(ann: Caller, server: Served) -> None:
    """Some by rows and some by partitions: nobody waits for another one for ever."""
    create_database(ann, "d")
    table_id = int(create_table(ann, "d").id)
    txns, commits = TxnService(server.db, TxnConfig()), ExtendedCommits(server.db)
    for number in range(12):
        some = changing(ann, 4)
        together = Barrier(len(some))

        def finish(
            txn_id: int, number: int = number, some: list[int] = some, together: Barrier = together
        ) -> int | None:
            parameter = CommitParameter(table_id, KEY, str(number))
            together.wait(30)
            try:
                if txn_id % 2:
                    commits.commit_txn(TxnId(txn_id), CommitExtras(parameter=parameter))
                else:
                    assert txns.commit_rows(TxnId(txn_id), list(map(TxnId, some)), parameter) == []
            except (MetaError, TxnAbortedError):
                return None
            return txn_id

        with ThreadPoolExecutor(len(some)) as pool:
            done = [one for one in pool.map(finish, some) if one is not None]
        assert len(done) == 1
        assert get_table(ann, "d").parameters[KEY] == str(number)
        for txn_id in set(ann.snapshot().open_ids):
            ann.abort(txn_id)
