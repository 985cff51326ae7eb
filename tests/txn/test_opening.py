"""Many callers who open transactions at once: each gets its own, together they go to the database seldom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hive_acid.errors import MetaError
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.txn.opening import Opening
from metastore.txn.states import TxnType

CALLERS = 24


def at_once(open_one: Callable[[int], list[int]]) -> list[Any]:
    """What each caller got, ids or the error."""
    barrier = threading.Barrier(CALLERS)

    def one(number: int) -> Any:
        barrier.wait()
        try:
            return open_one(number)
        except MetaError as error:
            return error

    with ThreadPoolExecutor(CALLERS) as pool:
        return list(pool.map(one, range(CALLERS)))


def test_everybody_gets_what_was_asked_for(db: Database) -> None:
    opening = Opening(db, 1000)
    before = db.calls
    got = at_once(
        lambda n: opening.open(n % 3 + 1, TxnOwner(f"user{n}", "h"), TxnType.READ_ONLY if n % 2 else TxnType.DEFAULT)
    )
    assert db.calls - before < CALLERS
    for number, txn_ids in enumerate(got):
        assert len(txn_ids) == number % 3 + 1
        assert txn_ids == list(range(txn_ids[0], txn_ids[0] + len(txn_ids)))
    everything = sorted(txn_id for txn_ids in got for txn_id in txn_ids)
    assert everything == list(range(1, len(everything) + 1))
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT txn_id, user_name, type FROM txn").all()
    types = (TxnType.DEFAULT, TxnType.READ_ONLY)
    assert sorted(map(tuple, rows)) == sorted(
        (txn_id, f"user{number}", types[number % 2]) for number, txn_ids in enumerate(got) for txn_id in txn_ids
    )


def test_the_limit_is_exact_whoever_comes_together(db: Database) -> None:
    opening = Opening(db, 10)
    got = at_once(lambda n: opening.open(1, TxnOwner("u", "h"), TxnType.DEFAULT))
    refused = [one for one in got if isinstance(one, MetaError)]
    assert len(got) - len(refused) == 10
    assert all("hive.max.open.txns is 10" in str(error) for error in refused)
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM txn").scalar_one() == 10


def test_a_failure_reaches_all_who_waited_and_ends_with_them(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = Opening(db, 1000)
    with monkeypatch.context() as broken:
        broken.setattr(db, "call_one", lambda *_: (_ for _ in ()).throw(MetaError("the database does not answer")))
        got = at_once(lambda n: opening.open(1, TxnOwner("u", "h"), TxnType.DEFAULT))
    assert all(isinstance(one, MetaError) for one in got)
    assert opening.open(2, TxnOwner("u", "h"), TxnType.DEFAULT) == [1, 2]
