"""Many callers who open transactions at once: each gets its own, together they go to the database seldom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hive_acid.errors import MetaError
from metastore.store.database import Database
from metastore.txn.calls import OpenCall, Opening
from metastore.txn.config import TxnConfig
from metastore.txn.models import Intent, TxnOwner
from metastore.txn.service import MAX_USES, TxnService
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
            call,  # type: ignore[arg-type]
            Opening(n % 3 + 1, TxnOwner(f"user{n}", "h"), TxnType.READ_ONLY if n % 2 else TxnType.DEFAULT),
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
    got = at_once(lambda n: db.ask(call, Opening(1, TxnOwner("u", "h"), TxnType.DEFAULT)))  # type: ignore[arg-type]
    refused = [one for one in got if isinstance(one, MetaError)]
    assert len(got) - len(refused) == 10
    assert all("hive.max.open.txns, which is 10" in str(error) for error in refused)
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM txn").scalar_one() == 10


def test_each_names_its_own_tables(db: Database) -> None:
    """Said together, in one round trip; of those that are refused nothing is noted."""
    call = OpenCall(20)
    intents = [
        Intent(),
        Intent((("d", "t"),), may_begin_again=True),
        Intent((("d", "t"), ("d", "u")), may_begin_again=False),
    ]
    got = at_once(lambda n: db.ask(call, Opening(n % 2 + 1, TxnOwner("u", "h"), TxnType.DEFAULT, intents[n % 3])))  # type: ignore[arg-type]
    expected, said = set(), set()
    for number, txn_ids in enumerate(got):
        for txn_id in () if isinstance(txn_ids, MetaError) else txn_ids:
            said.add((txn_id, intents[number % 3].may_begin_again))
            expected |= {(txn_id, *table, 0) for table in intents[number % 3].tables}
    assert len(said) in (19, 20)
    with db.engine.connect() as connection:
        assert {*connection.exec_driver_sql("SELECT txn_id, may_begin_again FROM txn")} == said
        assert {*connection.exec_driver_sql("SELECT txn_id, db, tbl, write_id FROM min_history_write_id")} == expected


def test_opening_with_tables_is_one_trip(db: Database) -> None:
    txns = TxnService(db, TxnConfig())
    before = db.calls
    txns.open_txns(3, TxnOwner("u", "h"), intent=Intent((("d", "t"), ("d", "u"))))
    assert db.calls - before == 1


def test_too_many_names(db: Database) -> None:
    tables = tuple(("d", f"t{number}") for number in range(MAX_USES // 10 + 1))
    with pytest.raises(MetaError, match="10 transactions that name 1001 tables each are too much for one opening"):
        TxnService(db, TxnConfig()).open_txns(10, TxnOwner("u", "h"), intent=Intent(tables))
