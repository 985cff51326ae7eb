"""transactions.md §9, items 20 to 31: write ids and what a snapshot sees of them, over the wire."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, refused
from tests.checklist.tables import create_database, create_table, get_table
from tests.served import Served

UNKNOWN = 10**9


def bits(table: object) -> bytes:
    return table.abortedBits or b""  # type: ignore[attr-defined]


def test_20_allocate_twice(ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    assert ann.allocate(f"{name}.t", one) == [(one, 1)]
    assert ann.allocate(f"{name.upper()}.T", one) == [(one, 1)]
    assert ann.allocate(f"{name}.t", two) == [(two, 2)]
    assert ann.allocate(f"{name}.u", two) == [(two, 1)]
    assert ann.allocate(f"{name}.t", two, one) == [(one, 1), (two, 2)]


def test_21_order_of_transactions(ann: Caller, name: str) -> None:
    one, two, three = ann.open(3)
    assert ann.allocate(f"{name}.t", three, one, two) == [(one, 1), (two, 2), (three, 3)]


def test_22_two_first_allocations_at_once(server: Served, ann: Caller, name: str) -> None:
    start = Barrier(2)
    with server.caller("ben") as ben:

        def allocate(caller: Caller, table: str) -> int:
            txn_id = caller.begin()
            start.wait(5)
            return caller.allocate(table, txn_id)[0][1]

        with ThreadPoolExecutor(2) as pool:
            for number in range(20):
                tables = [f"{name}.t{number}"] * 2
                assert sorted(pool.map(allocate, (ann, ben), tables)) == [1, 2]


@pytest.mark.parametrize("state", ["aborted", "committed", "unknown", "read-only"])
def test_23_who_may_not_write(state: str, ann: Caller, name: str) -> None:
    good, bad = ann.begin(), ann.begin(txn_type=ttypes.TxnType.READ_ONLY if state == "read-only" else None)
    if state == "aborted":
        ann.abort(bad)
    elif state == "committed":
        ann.commit(bad)
    elif state == "unknown":
        bad = UNKNOWN
    kind = {"aborted": "TxnAbortedException", "read-only": "MetaException"}.get(state, "NoSuchTxnException")
    with refused(kind, str(bad)):
        ann.allocate(f"{name}.t", good, bad)
    assert ann.max_write_id(f"{name}.t") == 0
    assert ann.allocate(f"{name}.t", good) == [(good, 1)]
    with refused(kind, str(bad)):
        ann.allocate(f"{name}.t", good, bad, reallocate=True)
    assert ann.allocate(f"{name}.t", good) == [(good, 1)]


def test_24_reallocate(ann: Caller, name: str) -> None:
    one, two = ann.open(2)
    ann.allocate(f"{name}.t", one)
    ann.allocate(f"{name}.t", two)
    assert ann.allocate(f"{name}.t", one, reallocate=True) == [(one, 3)]
    assert ann.allocate(f"{name}.t", one) == [(one, 3)]
    assert ann.max_write_id(f"{name}.t") == 3
    ann.commit(one)
    ann.commit(two)
    found = ann.write_ids(f"{name}.t", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds, bits(found)) == (3, [1], b"\x01")
    assert ann.allocate(f"{name}.t", ann.begin())[0][1] == 4


def test_25_never_written_table(ann: Caller, name: str) -> None:
    found = ann.write_ids(f"{name}.t", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds, found.minOpenWriteId, bits(found)) == (0, [], None, b"")
    assert ann.max_write_id(f"{name}.t") == 0


def test_26_mixture(ann: Caller, name: str) -> None:
    ids = ann.open(6)
    ann.allocate(f"{name}.t", *ids)
    ann.abort_all(ids[0], ids[4])
    ann.commit(ids[1])
    ann.commit(ids[5])
    for snapshot in (ann.snapshot(), None):
        found = ann.write_ids(f"{name}.t", snapshot=snapshot)
        assert (found.writeIdHighWaterMark, found.invalidWriteIds) == (6, [1, 3, 4, 5])
        assert (bits(found), found.minOpenWriteId) == (b"\x09", 3)
    several = ann.write_ids(f"{name}.t", f"{name}.none", f"{name.upper()}.T", snapshot=ann.snapshot())
    assert [one.writeIdHighWaterMark for one in several] == [6, 0, 6]


def test_27_invalid_writes_only(ann: Caller, name: str) -> None:
    one, two, three = ann.open(3)
    ann.allocate(f"{name}.t", one, two, three)
    ann.abort(one)
    found = ann.write_ids(f"{name}.t", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds, bits(found)) == (1, [1], b"\x01")
    ann.commit(three)
    found = ann.write_ids(f"{name}.t", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds, bits(found)) == (3, [1, 2], b"\x01")


def test_28_snapshot_capped_at_own_transaction(ann: Caller, name: str) -> None:
    before, own, after, later = ann.open(4)
    for txn_id in (after, own, before, later):  # write ids in another order than transactions
        ann.allocate(f"{name}.t", txn_id)
    ann.commit(after)
    found = ann.write_ids(f"{name}.t", snapshot=ann.snapshot(own))
    valid = {n for n in range(1, 5) if n <= found.writeIdHighWaterMark and n not in found.invalidWriteIds}
    assert valid == {2}
    ann.commit(before)
    found = ann.write_ids(f"{name}.t", snapshot=ann.snapshot(own))
    valid = {n for n in range(1, 5) if n <= found.writeIdHighWaterMark and n not in found.invalidWriteIds}
    assert valid == {2, 3}


def test_29_as_of_a_write_id(ann: Caller, name: str) -> None:
    before, own, after = ann.open(3)
    ann.allocate(f"{name}.t", before, own, after)
    ann.commit(after)
    found = ann.write_ids(f"{name}.t", write_id=2)
    assert (found.writeIdHighWaterMark, found.invalidWriteIds, found.minOpenWriteId) == (2, [1], 1)
    with refused("MetaException", f"write id 9 .*{name}.t"):
        ann.write_ids(f"{name}.t", write_id=9)
    with refused("MetaException"):
        ann.write_ids(f"{name}.none", write_id=1)


def test_29_own_write_is_seen_whatever_became_of_it(ann: Caller, name: str) -> None:
    """A snapshot leaves its own transaction out of the exceptions (transactions.md §1.4), an aborted one as well."""
    before, own = ann.open(2)
    ann.allocate(f"{name}.t", before, own)
    snapshot = ann.snapshot(own)
    ann.abort(own)
    for found in (ann.write_ids(f"{name}.t", write_id=2), ann.write_ids(f"{name}.t", snapshot=snapshot)):
        assert (found.writeIdHighWaterMark, found.invalidWriteIds, found.minOpenWriteId) == (2, [1], 1)


def test_30_seed(ann: Caller, name: str) -> None:
    request = ttypes.SeedTableWriteIdsRequest(dbName=name, tableName="t", seedWriteId=10)
    ann.call("seed_write_id", request)
    assert ann.max_write_id(f"{name}.t") == 10
    assert ann.allocate(f"{name}.t", ann.begin())[0][1] == 11
    with refused("MetaException", f"{name}.t"):
        ann.call("seed_write_id", request)
    assert ann.max_write_id(f"{name}.t") == 11


def test_31_renamed_and_made_anew(ann: Caller, name: str) -> None:
    create_database(ann, name)
    table = create_table(ann, name)
    one, two = ann.open(2)
    ann.allocate(f"{name}.t", one, two)
    ann.abort(two)
    ann.commit(one)
    table.tableName = "renamed"
    ann.call("alter_table", name, "t", table)
    found = ann.write_ids(f"{name}.renamed", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds) == (2, [2])
    assert ann.max_write_id(f"{name}.t") == 0
    ann.call("drop_table", name, "renamed", True)
    create_table(ann, name, "renamed")
    assert get_table(ann, name, "renamed").tableName == "renamed"
    found = ann.write_ids(f"{name}.renamed", snapshot=ann.snapshot())
    assert (found.writeIdHighWaterMark, found.invalidWriteIds) == (0, [])
    assert ann.allocate(f"{name}.renamed", ann.begin())[0][1] == 1
