"""The RPC of our own that says why something does not happen (`tests/compaction/test_why.py` has the reasons)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, refused


@pytest.fixture
def callers(metastore: Callable[..., str]) -> Iterator[Any]:
    uri = metastore(**{"metastore.lock.poll.wait": "0ms", "metastore.housekeeping.threads.on": "false"})
    with Caller(uri, "ann") as ann, Caller(uri, "bob") as bob:
        yield ann, bob


def why(caller: Any, **asked: Any) -> Any:
    return caller.call("hive_acid_why", ttypes.HiveAcidWhyRequest(**asked)).answers


def test_who_is_in_the_way(callers: Any) -> None:
    ann, bob = callers
    holder, waiter = ann.begin(), bob.begin()
    held = ann.call("lock", request("ann", holder)).lockid
    waiting = bob.call("lock", request("bob", waiter)).lockid
    (told,) = why(bob, lockid=waiting)
    assert (told.code, told.txnid, told.lockid) == ("blocked", holder, held)
    assert (told.user, told.hostname, told.agentInfo) == ("ann", "h", "report.py")
    assert told.action == f"let it end, or ABORT TRANSACTIONS {holder}"
    assert told.since > 0
    assert [answer.code for answer in why(ann, txnid=waiter)] == ["open", "blocked"]
    assert told.files is None


def request(user: Any, txn_id: Any) -> Any:
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE,
        level=ttypes.LockLevel.TABLE,
        dbname="db",
        tablename="t",
        operationType=ttypes.DataOperationType.NO_TXN,
    )
    return ttypes.LockRequest(component=[component], txnid=txn_id, user=user, hostname="h", agentInfo="report.py")


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({}, "MetaException", "ask about one thing"),
        ({"txnid": 1, "lockid": 1}, "MetaException", "ask about one thing"),
        ({"tablename": "t"}, "MetaException", "a table with its database"),
        ({"dbname": "db", "tablename": "t"}, "NoSuchObjectException", r"no table db\.t"),
        ({"lockid": 7}, "NoSuchObjectException", "lock 7 is not on record"),
        ({"compactionid": 7}, "NoSuchObjectException", "no compaction 7"),
    ],
)
def test_what_cannot_be_answered(callers: Any, asked: Any, kind: str, message: str) -> None:
    with refused(kind, message):
        why(callers[0], **asked)


def test_an_unknown_transaction_is_an_answer(callers: Any) -> None:
    assert [answer.code for answer in why(callers[0], txnid=99)] == ["unknown"]
