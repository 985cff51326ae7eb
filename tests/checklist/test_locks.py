"""transactions.md §9, items 41 to 53: locks, over the wire."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from hive_acid.wire import ttypes
from tests.caller import STATES, Caller, component, refused
from tests.served import Served
from tests.waiting import until

UNKNOWN = 10**9

Alone = Callable[..., Served]

# held: answers to r, w, x and e on the database, on the table, on the partition (transactions.md §3.3)
MATRIX = {
    "r {}": "AAAW AAAA AAAA",
    "w {}": "AAWW AAWW AAWW",
    "x {}": "AWWW AWWW AWWW",
    "e {}": "WWWW WWWW WWWW",
    "r {}/t": "AAAW AAAW AAAW",
    "w {}/t": "AAWW AAWW AAWW",
    "x {}/t": "AWWW AWWW AWWW",
    "e {}/t": "AWWW WWWW WWWW",
    "r {}/t/p=1": "AAAW AAAW AAAW",
    "w {}/t/p=1": "AAWW AAWW AAWW",
    "x {}/t/p=1": "AWWW AWWW AWWW",
    "e {}/t/p=1": "AWWW WWWW WWWW",
}


@pytest.mark.parametrize("held", MATRIX)
def test_41_matrix(held: str, ann: Caller, name: str) -> None:
    holder, *others = ann.open(13)
    assert ann.asks(held.format(name), txn=holder) == "A"
    answers = ""
    for (target, letter), txn_id in zip(itertools.product(("{}", "{}/t", "{}/t/p=1"), "rwxe"), others, strict=True):
        answers += ann.asks(f"{letter} {target}".format(name), txn=txn_id)
        ann.abort(txn_id)
    assert answers == MATRIX[held].replace(" ", "")


def test_41_different_things_never_meet(ann: Caller, name: str) -> None:
    for target in (f"{name}/t/p=1", f"{name}/t/p=2", f"{name}/u", f"{name}x", f"{name}y/t"):
        assert ann.asks(f"e {target}", txn=ann.begin()) == "A"


def test_42_same_transaction(ann: Caller, name: str) -> None:
    txn_id = ann.begin()
    for letter in "rwxe":
        assert ann.asks(f"{letter} {name}/t", txn=txn_id) == "A"


def test_43_nobody_overtakes(ann: Caller, name: str) -> None:
    holder, waiter, late = ann.open(3)
    assert ann.asks(f"r {name}/t", txn=holder) == "A"
    exclusive = ann.lock(f"e {name}/t", txn=waiter)
    reader = ann.lock(f"r {name}/t", txn=late)
    assert [STATES[one.state] for one in (exclusive, reader)] == ["W", "W"]
    assert ann.check(reader.lockid, late) == "W"
    ann.unlock(exclusive.lockid)
    assert ann.check(reader.lockid, late) == "A"
    with refused("NoSuchLockException", str(exclusive.lockid)):
        ann.check(exclusive.lockid, waiter)


def test_44_all_or_nothing(ann: Caller, name: str) -> None:
    holder, both, third = ann.open(3)
    assert ann.asks(f"e {name}/t", txn=holder) == "A"
    asked = ann.lock(f"r {name}/free", f"r {name}/t", txn=both)
    assert STATES[asked.state] == "W"
    assert {one.state for one in ann.locks(txnid=both)} == {ttypes.LockState.WAITING}
    assert ann.asks(f"w {name}/free", txn=third) == "A"
    ann.commit(holder)
    assert ann.check(asked.lockid, both) == "A"
    assert {one.state for one in ann.locks(txnid=both)} == {ttypes.LockState.ACQUIRED}


def test_45_blocker_is_named(ann: Caller, name: str) -> None:
    holder, waiter = ann.open(2)
    held = ann.lock(f"r {name}/u", f"e {name}/t", txn=holder)
    ann.lock(f"r {name}/v", f"w {name}/t", txn=waiter)
    free, blocked = sorted(ann.locks(txnid=waiter), key=lambda one: one.lockIdInternal)
    assert (free.tablename, free.blockedByExtId, free.blockedByIntId) == ("v", None, None)
    assert (blocked.tablename, blocked.blockedByExtId, blocked.blockedByIntId) == ("t", held.lockid, 2)
    ann.commit(holder)
    ann.check(blocked.lockid, waiter)
    assert {(one.blockedByExtId, one.blockedByIntId) for one in ann.locks(txnid=waiter)} == {(None, None)}


def test_45_show_locks(ann: Caller, name: str) -> None:
    holder, waiter = ann.open(2)
    ann.lock(f"w {name}/t", txn=holder, agentInfo="query 7")
    ann.lock(f"e {name}/t/p=1", txn=waiter)
    outside = ann.lock(f"r {name}/u")
    found = ann.locks(dbname=name)
    # the acquired ones first, then by type, then by id
    assert [(one.tablename, one.partname, one.txnid or 0) for one in found] == [
        ("u", None, 0),
        ("t", None, holder),
        ("t", "p=1", waiter),
    ]
    assert [one.acquiredat is not None for one in found] == [True, True, False]
    assert [one.lastheartbeat > 0 for one in found] == [True, False, False]
    assert (found[1].user, found[1].hostname, found[1].agentInfo) == ("ann", "host1", "query 7")
    assert [one.lockid for one in ann.locks(dbname=name.upper(), tablename="U")] == [outside.lockid]
    assert [one.txnid for one in ann.locks(dbname=name, tablename="t", partname="p=1")] == [waiter]
    assert [one.txnid for one in ann.locks(txnid=holder)] == [holder]
    assert ann.locks(dbname=name, tablename="none") == []
    ann.unlock(outside.lockid)


def test_46_readers_that_do_not_wait(ann: Caller, name: str) -> None:
    holder, reader, writer = ann.open(3)
    assert ann.asks(f"e {name}/t", txn=holder) == "A"
    answer = ann.lock(f"r {name}/u", f"r {name}/t i", txn=reader, zeroWaitReadEnabled=True)
    assert STATES[answer.state] == "N"
    assert f"{name}/t" in answer.errorMessage
    assert ann.locks(txnid=reader) == []
    assert ann.asks(f"w {name}/t", txn=writer, zeroWaitReadEnabled=True) == "W"
    outside = ann.lock(f"r {name}/t", zeroWaitReadEnabled=True)
    assert STATES[outside.state] == "W"
    ann.unlock(outside.lockid)


def test_46_what_was_not_acquired_writes_nothing(ann: Caller, name: str) -> None:
    """In Hive the refused request leaves its claim of a write (transactions.md §8.4)."""
    holder, reader, other = ann.open(3)
    ann.write(other, f"{name}/t", "u")
    assert ann.asks(f"e {name}/t/p=1", txn=holder) == "W"
    assert ann.asks(f"r {name}/t/p=1 u", txn=reader, zeroWaitReadEnabled=True) == "N"
    ann.commit(other)
    ann.commit(reader, exclWriteEnabled=False)


def test_47_concurrent_ctas(ann: Caller, name: str) -> None:
    holder, other = ann.open(2)
    assert ann.asks(f"x {name}/t i", txn=holder, exclusiveCTAS=True) == "A"
    answer = ann.lock(f"r {name}", f"x {name}/t i", txn=other, exclusiveCTAS=True)
    assert STATES[answer.state] == "N"
    assert f"{name}/t" in answer.errorMessage
    assert ann.locks(txnid=other) == []
    ann.abort(holder)
    assert ann.asks(f"x {name}/t i", txn=other, exclusiveCTAS=True) == "A"


def test_47_ctas_without_a_transaction_waits(ann: Caller, name: str) -> None:
    holder = ann.begin()
    ann.asks(f"x {name}/t i", txn=holder)
    outside = ann.lock(f"x {name}/t", exclusiveCTAS=True)
    assert STATES[outside.state] == "W"
    ann.unlock(outside.lockid)


def test_48_unlock(ann: Caller, name: str) -> None:
    holder, waiter = ann.open(2)
    held = ann.lock(f"e {name}/t", txn=holder)
    waiting = ann.lock(f"r {name}/t", txn=waiter)
    with refused("TxnOpenException", str(holder)):
        ann.unlock(held.lockid)
    assert [one.lockid for one in ann.locks(txnid=holder)] == [held.lockid]
    for _ in range(2):
        ann.unlock(waiting.lockid)
    assert ann.locks(txnid=waiter) == []
    ann.unlock(UNKNOWN)


def test_49_unknown_locks(ann: Caller) -> None:
    with refused("NoSuchLockException", str(UNKNOWN)):
        ann.check(UNKNOWN)
    txn_id = ann.begin()
    for beaten in (0, txn_id):
        with refused("NoSuchLockException", str(UNKNOWN)):
            ann.heartbeat(beaten, UNKNOWN)
    assert ann.info()[txn_id].lastHeartbeatTime == ann.info()[txn_id].startedTime  # all or nothing


def test_50_time_out_of_locks(alone: Alone) -> None:
    server = alone(**{"metastore.housekeeping.threads.on": "true", "metastore.acid.housekeeper.interval": "100ms"})
    with server.caller() as ann:
        holder = ann.begin()
        assert ann.asks("r db/t", txn=holder) == "A"
        quiet, beaten = ann.lock("r db/t"), ann.lock("r db/t")
        waiting = ann.lock("e db/t")
        with server.db.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE lock_component SET heartbeat_at = heartbeat_at - interval '1 day'")
            connection.exec_driver_sql(
                "UPDATE lock_component SET heartbeat_at = clock_timestamp() WHERE lock_id = %s", (beaten.lockid,)
            )
        until(lambda: {one.lockid for one in ann.locks()} & {quiet.lockid, waiting.lockid} == set())
        ann.heartbeat(0, beaten.lockid)
        assert {one.lockid for one in ann.locks(dbname="db") if not one.txnid} == {beaten.lockid}
        assert [one.txnid for one in ann.locks(txnid=holder)] == [holder]


@pytest.mark.parametrize("ends", ["commit", "abort", "abort_all"])
def test_51_end_of_a_transaction(ends: str, ann: Caller, name: str) -> None:
    holder, waiter = ann.open(2)
    ann.lock(f"e {name}/t", txn=holder)
    ann.lock(f"r {name}/u", txn=holder)
    asked = ann.lock(f"r {name}/t", txn=waiter)
    getattr(ann, ends)(holder)
    assert ann.locks(txnid=holder) == []
    assert ann.check(asked.lockid, waiter) == "A"
    ann.abort(waiter)
    assert ann.locks(dbname=name) == []


def test_52_locks_of_ended_transactions(ann: Caller, name: str) -> None:
    committed, aborted = ann.open(2)
    ann.commit(committed)
    ann.abort(aborted)
    with refused("NoSuchTxnException", str(committed)):  # Hive 4.0.1 grants it, for ever
        ann.lock(f"r {name}/t", txn=committed)
    with refused("TxnAbortedException", str(aborted)):
        ann.lock(f"r {name}/t", txn=aborted)
    with refused("NoSuchTxnException", str(UNKNOWN)):
        ann.lock(f"r {name}/t", txn=UNKNOWN)
    assert ann.locks(dbname=name) == []


def test_53_what_writes_nothing(ann: Caller, name: str) -> None:
    changer, *others = ann.open(4)
    ann.write(changer, f"{name}/t", "u")
    wanted = [
        component(f"r {name}/t s"),
        component(f"r {name}/t n"),
        component(f"w {name}/t u", isTransactional=False),
    ]
    for txn_id, one in zip(others, wanted, strict=True):
        request = ttypes.LockRequest(component=[one], txnid=txn_id, user="ann", hostname="host1")
        assert STATES[ann.call("lock", request).state] == "A"
    ann.commit(changer, exclWriteEnabled=False)
    for txn_id in others:
        assert ann.call("get_latest_txnid_in_conflict", txn_id) == 0
        ann.commit(txn_id, exclWriteEnabled=False)


def test_show_locks_of_a_qualified_table(ann: Caller, name: str) -> None:
    """As Hive 4 asks for ``SHOW LOCKS db.t``: with the session's database beside it."""
    held = ann.begin()
    for table in ("t", "u"):
        assert ann.asks(f"r {name}/{table}", txn=held) == "A"
    for asked in (f"{name}.t", f"hive.{name}.t", f"{name.upper()}.T"):
        for database in ("default", None):
            (shown,) = ann.locks(dbname=database, tablename=asked)
            assert (shown.dbname, shown.tablename) == (name, "t")
    assert ann.locks(dbname=name, tablename="default.t") == []
    assert [shown.tablename for shown in ann.locks(dbname=name, tablename="u")] == ["u"]
