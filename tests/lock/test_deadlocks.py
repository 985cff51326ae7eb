"""Deadlocks between transactions that lock in several steps are found and broken, over real Thrift."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from hive_acid.ids import LockId, TxnId
from metastore.lock.models import LockResult
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer
from metastore.store.database import Database
from metastore.txn.service import TxnService
from tests.caller import STATES, Caller, refused
from tests.lock.conftest import OWNER

LONG = {"metastore.lock.poll.wait": "20s"}
NOT_AT_ALL = {"metastore.lock.poll.wait": "0ms"}
Start = Callable[..., str]
Ask = Callable[..., LockResult]


@pytest.fixture
def call() -> Iterator[Callable[..., list[Caller]]]:
    """Clients of a server, by its address."""
    with ExitStack() as stack:
        yield lambda *uris: [stack.enter_context(Caller(uri, f"client{n}")) for n, uri in enumerate(uris)]


def acquired(caller: Caller) -> bool:
    return STATES[caller.receive().state] == "A"


@pytest.mark.parametrize("servers", [1, 2])
def test_two_transactions(servers: int, metastore: Start, call: Callable[..., list[Caller]]) -> None:
    uris = [metastore(**LONG) for _ in range(servers)]
    ann, ben = call(uris[0], uris[-1])
    older, younger = ann.begin(), ben.begin()
    assert ann.asks("x db/a", txn=older) == "A"
    assert ben.asks("x db/b", txn=younger) == "A"
    ann.send("lock", ann.lock_request("w db/b/p=1", txn=older))
    ben.send("lock", ben.lock_request("e db/a", txn=younger))
    circle = (
        rf"{younger} already aborted: deadlock: transaction ({older} waits for {younger} \(SHARED_WRITE on db/b/p=1\)"
        rf"|{younger} waits for {older} \(EXCLUSIVE on db/a\))(, .*\)|)$"
    )
    with refused("TxnAbortedException", circle):
        ben.receive()
    assert acquired(ann)
    ann.commit(older)
    assert ann.locks() == []
    assert ben.info()[younger].metaInfo.startswith("deadlock: transaction")


def test_three_transactions(metastore: Start, call: Callable[..., list[Caller]]) -> None:
    uri = metastore(**LONG)
    clients = call(uri, uri, uri)
    ids = clients[0].open(3)
    for client, txn_id, table in zip(clients, ids, "abc", strict=True):
        assert client.asks(f"x db/{table}", txn=txn_id) == "A"
    for client, txn_id, table in zip(clients, ids, "bca", strict=True):
        client.send("lock", client.lock_request(f"x db/{table}", txn=txn_id))
    one, two, three = clients
    with refused("TxnAbortedException", f"{ids[2]} already aborted: deadlock: (.* waits for .*){{3}}"):
        three.receive()
    assert acquired(two)  # the one that waited for it
    two.commit(ids[1])
    assert acquired(one)
    one.commit(ids[0])


def test_upgrade_of_two_readers(metastore: Start, call: Callable[..., list[Caller]]) -> None:
    """Each holds the same shared lock and wants it alone: the second request of the younger is refused."""
    uri = metastore(**LONG)
    ann, ben = call(uri, uri)
    older, younger = ann.open(2)
    assert ann.asks("r db/t", txn=older) == ben.asks("r db/t", txn=younger) == "A"
    ann.send("lock", ann.lock_request("e db/t", txn=older))
    ben.send("lock", ben.lock_request("e db/t", txn=younger))
    with refused("TxnAbortedException", "deadlock"):
        ben.receive()
    assert acquired(ann)


def test_through_a_queue(db: Database, txns: TxnService, locks: LockService, ask: Ask) -> None:
    """A request outside of transactions waits for the first, and the first queues behind that request."""
    (holder,) = txns.open_txns(1, OWNER)
    ask("e db/a", txn=holder)
    between = ask("e db/a", "e db/b")
    late = ask("r db/b", txn=holder)
    assert (between.answer, late.answer) == (LockAnswer.WAITING, LockAnswer.WAITING)
    assert look(db, late.lock_id)
    reason = txns.get_open_txns_info()[1][0].abort_reason
    assert reason == (
        f"deadlock: transaction {holder} waits for lock {between.lock_id} (SHARED_READ on db/b),"
        f" lock {between.lock_id} waits for {holder} (EXCLUSIVE on db/a)"
    )
    assert locks.check_lock(between.lock_id).answer is LockAnswer.ACQUIRED


def test_who_asks_without_waiting_learns_of_it(metastore: Start, call: Callable[..., list[Caller]]) -> None:
    """With no long polling it is check_lock that looks."""
    uri = metastore(**NOT_AT_ALL)
    ann, ben = call(uri, uri)
    older, younger = ann.open(2)
    ann.asks("e db/a", txn=older)
    ben.asks("e db/b", txn=younger)
    waiting = ann.lock("e db/b", txn=older)
    blocked = ben.lock("e db/a", txn=younger)
    assert STATES[waiting.state] == STATES[blocked.state] == "W"
    assert ann.check(waiting.lockid) == "A"
    with refused("TxnAbortedException", "deadlock"):
        ben.check(blocked.lockid, younger)


def test_each_of_several_deadlocks_is_broken(db: Database, txns: TxnService, ask: Ask) -> None:
    waiting: list[LockId] = []
    victims = []
    for pair in range(5):
        older, younger = txns.open_txns(2, OWNER)
        ask(f"e db/a{pair}", txn=older)
        ask(f"e db/b{pair}", txn=younger)
        waiting += [ask(f"w db/b{pair}", txn=older).lock_id, ask(f"w db/a{pair}", txn=younger).lock_id]
        victims.append(younger)
    broken = [row[0] for row in db.call("break_deadlocks", waiting)]
    assert sorted(broken) == victims
    assert db.call("break_deadlocks", waiting) == []


def test_long_chain_is_no_deadlock(db: Database, txns: TxnService, ask: Ask) -> None:
    """Each holds one table and waits for that of the next; closing the circle makes it one."""
    ids = txns.open_txns(60, OWNER)
    for number, txn_id in enumerate(ids):
        ask(f"e db/t{number}", txn=txn_id)
    waiting = [ask(f"x db/t{number + 1}", txn=txn_id).lock_id for number, txn_id in enumerate(ids[:-1])]
    assert db.call("break_deadlocks", waiting) == []
    closing = ask("r db/t0", txn=ids[-1]).lock_id
    assert [row[0] for row in db.call("break_deadlocks", [closing])] == [ids[-1]]
    assert [info.txn_id for info in txns.get_open_txns_info()[1] if info.abort_reason] == [ids[-1]]


def test_long_queue_is_no_deadlock(db: Database, txns: TxnService, ask: Ask) -> None:
    """Everybody holds a lock that nobody waits for and queues for the same table."""
    ids = txns.open_txns(60, OWNER)
    for number, txn_id in enumerate(ids):
        ask(f"e db/own{number}", txn=txn_id)
    queue = [ask("e db/t", txn=txn_id).lock_id for txn_id in ids]
    assert db.call("break_deadlocks", queue) == []
    # The last one's own table is wanted by somebody in the middle of the queue.
    wanted = ask("r db/own59", txn=ids[30]).lock_id
    assert [row[0] for row in db.call("break_deadlocks", [wanted, queue[59]])] == [ids[59]]


def test_several_requests_of_one_transaction_are_no_deadlock(db: Database, txns: TxnService, ask: Ask) -> None:
    holder, other = txns.open_txns(2, OWNER)
    ask("r db/a", txn=holder)
    first = ask("e db/a", txn=other)
    upgrade = ask("e db/a", txn=holder)
    # The younger waits for the older one's lock, the older behind it in the queue: that is one.
    assert [row[0] for row in db.call("break_deadlocks", [first.lock_id, upgrade.lock_id])] == [other]
    again = ask("w db/a", txn=holder)
    assert db.call("break_deadlocks", [upgrade.lock_id, again.lock_id]) == []


def look(db: Database, lock_id: LockId) -> list[TxnId]:
    return [row[0] for row in db.call("break_deadlocks", [lock_id])]
