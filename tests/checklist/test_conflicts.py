"""transactions.md §9, items 32 to 40: the first to commit wins, over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, Refused, component, refused

CONFLICTING = [("u", "u"), ("u", "d"), ("d", "u"), ("d", "d")]
ONE_INSERTS = [("i", "i"), ("i", "u"), ("i", "d"), ("u", "i"), ("d", "i")]


def commits(ann: Caller, txn_id: int, **fields: Any) -> bool:
    """Whether the commit succeeds; otherwise it must say that it is a conflict."""
    try:
        ann.commit(txn_id, **{"exclWriteEnabled": False, **fields})
    except Refused as error:
        error.require("TxnAbortedException", f"txnid:{txn_id},", "write conflict")
        return False
    return True


@pytest.mark.parametrize(("first", "second"), CONFLICTING)
def test_32_overlapping_changes(first: str, second: str, ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    ann.write(one, f"{name}/t", first)
    ann.write(two, f"{name}/t", second)
    ann.commit(one, exclWriteEnabled=False)
    message = (
        rf"Aborting \[txnid:{two},{two}\] due to a write conflict on {name}/t"
        rf" committed by \[txnid:{one},{two}\] {second}/{first}"
    )
    with refused("TxnAbortedException", message):
        ann.commit(two, exclWriteEnabled=False)
    assert ann.snapshot().is_aborted(two)
    assert ann.locks(txnid=two) == []
    assert "conflict" in ann.info()[two].metaInfo


@pytest.mark.parametrize(("first", "second"), ONE_INSERTS)
def test_33_inserts_conflict_with_nothing(first: str, second: str, ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    ann.write(one, f"{name}/t", first)
    ann.write(two, f"{name}/t", second)
    assert commits(ann, one)
    assert commits(ann, two)


def test_34_partitions(ann: Caller, name: str) -> None:
    one, two, three, four = ann.open(4)
    ann.write(one, f"{name}/t/p=1", "u")
    ann.write(two, f"{name}/t/p=2", "u")
    for txn_id in (three, four):
        write_id = ann.write(txn_id, f"{name}/t", "u", isDynamicPartitionWrite=True)
        ann.add_partitions(txn_id, write_id, f"{name}.t", "p=3" if txn_id == three else "p=1")
    assert commits(ann, one)
    assert commits(ann, two)
    assert commits(ann, three)
    assert not commits(ann, four)


def test_34_table_and_partition_meet(ann: Caller, name: str) -> None:
    """Ours; in Hive they pass each other (transactions.md §8.3)."""
    for first, second in (("t", "t/p=1"), ("t/p=1", "t")):
        one, two = ann.open(2)
        ann.write(one, f"{name}/{first}", "u")
        ann.write(two, f"{name}/{second}", "d")
        assert commits(ann, one)
        assert not commits(ann, two)


def test_35_later_opened_commits_first(ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    ann.write(one, f"{name}/t")
    ann.write(two, f"{name}/t")
    assert commits(ann, two)
    assert not commits(ann, one)


def test_36_no_overlap(ann: Caller, name: str) -> None:
    for operation in "uduu":
        txn_id = ann.begin()
        ann.write(txn_id, f"{name}/t", operation)
        assert commits(ann, txn_id)


def test_37_three_values_of_excl_write_enabled(ann: Caller, name: str) -> None:
    first, explicit, absent, false, last = ann.open(5)
    for txn_id in (first, explicit, absent, false, last):
        ann.write(txn_id, f"{name}/t")
    assert commits(ann, first)
    assert commits(ann, explicit, exclWriteEnabled=True)
    with refused("TxnAbortedException", "write conflict"):
        ann.commit(absent)  # Hive 4.0.1 takes absence for true
    assert not commits(ann, false)
    assert commits(ann, last, exclWriteEnabled=True)


def test_37_an_unchecked_commit_is_seen_by_later_checks(ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    ann.write(one, f"{name}/t")
    ann.write(two, f"{name}/t")
    assert commits(ann, one, exclWriteEnabled=True)
    assert not commits(ann, two)


def test_38_after_a_conflict(ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    ann.write(one, f"{name}/t")
    write_id = ann.write(two, f"{name}/t")
    assert commits(ann, one)
    assert not commits(ann, two)
    found = ann.call("get_open_txns")
    place = found.open_txns.index(two)
    assert found.abortedBits[place // 8] >> place % 8 & 1
    for _ in range(2):
        with refused("TxnAbortedException", f"{two} already aborted"):
            ann.commit(two)
    assert write_id in ann.write_ids(f"{name}.t").invalidWriteIds


def test_39_latest_in_conflict(ann: Caller, name: str) -> None:
    one, two, three, other = ann.open(4)
    for txn_id, target in ((one, "t/p=1"), (two, "t/p=1"), (three, "t"), (other, "t/p=2")):
        ann.write(txn_id, f"{name}/{target}")
    assert ann.call("get_latest_txnid_in_conflict", three) == 0
    assert commits(ann, two)
    assert ann.call("get_latest_txnid_in_conflict", three) == two
    assert ann.call("get_latest_txnid_in_conflict", one) == two
    assert ann.call("get_latest_txnid_in_conflict", other) == 0
    assert commits(ann, other)
    assert ann.call("get_latest_txnid_in_conflict", three) == other
    assert ann.call("get_latest_txnid_in_conflict", ann.begin()) == 0


def test_40_dynamic_partitions_replace_the_table(ann: Caller, name: str) -> None:
    one, two, three = ann.open(3)
    write_ids = [ann.write(txn_id, f"{name}/t", "u", isDynamicPartitionWrite=True) for txn_id in (one, two, three)]
    ann.add_partitions(one, write_ids[0], f"{name}.t", "p=1", "p=2")
    ann.add_partitions(one, write_ids[0], f"{name}.t", "p=1")
    ann.add_partitions(two, write_ids[1], f"{name}.t", "p=3")
    ann.add_partitions(three, write_ids[2], f"{name}.T", "P=2", operation=None)  # nothing said: an update
    assert commits(ann, one)
    assert commits(ann, two)
    assert not commits(ann, three)


def test_40_dynamic_insert_conflicts_with_nothing(ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    for txn_id in (one, two):
        write_id = ann.write(txn_id, f"{name}/t", "i", isDynamicPartitionWrite=True)
        ann.add_partitions(txn_id, write_id, f"{name}.t", "p=1", operation="i")
    assert commits(ann, one)
    assert commits(ann, two)


def test_40_one_dynamic_row_per_table(ann: Caller, name: str) -> None:
    """Of an insert and an update into partitions not known yet the update counts."""
    one, two = ann.open(2)
    for txn_id in (one, two):
        ann.allocate(f"{name}.t", txn_id)
        wanted = [component(f"w {name}/t {letter}", isDynamicPartitionWrite=True) for letter in "iu"]
        request = ttypes.LockRequest(component=wanted, txnid=txn_id, user="ann", hostname="host1")
        ann.call("lock", request)
    assert commits(ann, one)
    assert not commits(ann, two)
