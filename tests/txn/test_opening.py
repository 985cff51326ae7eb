"""Many callers who open transactions at once: each gets its own, together they go to the database seldom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hive_acid.errors import MetaError
from metastore.store.database import Database
from metastore.txn.calls import OpenCall, Opening
from metastore.txn.models import TxnOwner
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
    call = OpenCall(1000)
    before = db.calls
    got = at_once(
        lambda n: db.ask(
            call, Opening(n % 3 + 1, TxnOwner(f"user{n}", "h"), TxnType.READ_ONLY if n % 2 else TxnType.DEFAULT)
        )
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
    call = OpenCall(10)
    got = at_once(lambda n: db.ask(call, Opening(1, TxnOwner("u", "h"), TxnType.DEFAULT)))
    refused = [one for one in got if isinstance(one, MetaError)]
    assert len(got) - len(refused) == 10
    assert all("hive.max.open.txns, which is 10" in str(error) for error in refused)
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM txn").scalar_one() == 10
