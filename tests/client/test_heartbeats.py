"""Heartbeats beside threads that begin and end transactions: each is kept alive, and no end is news."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import HiveAcidError, MetastoreInternalError, UnknownMethodError
from hive_acid.protocol import Question
from hive_acid.transactions.states import TransactionKind, TransactionState
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from tests.client.meddler import Meddler, meddler
from tests.waiting import stays


@pytest.fixture
def proxy(metastore: Callable[..., str]) -> Iterator[Meddler]:
    uri = metastore(**{"hive.txn.timeout": "2s", "metastore.acid.housekeeper.interval": "200ms"})
    with connect(uri) as own:
        own.create_database("d")
        own.create_table(Table("d", "t", (Column("id", "int"),), parameters={"transactional": "true"}))
    with meddler(uri) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: Meddler) -> Iterator[Connection]:
    with connect(proxy.uri) as connection:
        yield connection


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("kind", TransactionKind)
@pytest.mark.parametrize("neighbours", [0, 2])
@pytest.mark.sampled
def test_a_heartbeat_between_an_end_and_its_answer(
    proxy: Meddler,
    connection: Connection,
    caplog: pytest.LogCaptureFixture,
    end: str,
    kind: TransactionKind,
    neighbours: int,
) -> None:
    """The metastore says that the transaction is gone; to its owner, who has just ended it, that is no news."""
    transaction, *others = [connection.begin(kind) for _ in range(1 + neighbours)]
    proxy.faults[f"{end}_txn"] = "late"
    ending = threading.Thread(target=getattr(transaction, end))
    ending.start()
    assert proxy.met.wait(10)
    with caplog.at_level(logging.INFO, "hive_acid"):
        connection.heartbeats._beat()
    proxy.go.set()
    ending.join(10)
    assert transaction.state is (TransactionState.COMMITTED if end == "commit" else TransactionState.ABORTED)
    assert not transaction.is_given_up
    assert not caplog.records
    for other in others:
        other.check_alive()
        other.commit()


def test_a_transaction_that_failed_to_begin_is_no_news(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    call, ask = connection.call, connection.ask

    def elder(*questions: Question) -> list[Any]:
        """A metastore that knows nothing of names at the opening, and fails at the promise that stands for them."""
        if any(question.method == "add_write_ids_to_min_history" for question in questions):
            raise MetastoreInternalError("out of memory")
        if questions[0].method == "hive_acid_begin":
            return [UnknownMethodError("the metastore does not serve hive_acid_begin")]
        answers = ask(*questions)
        if questions[0].method == "open_txns":
            answers[0].tablesNamed = False
        return answers

    monkeypatch.setattr(connection, "ask", elder)
    with pytest.raises(MetastoreInternalError):
        connection.begin(tables=["d.t"])
    connection.heartbeats._beat()
    assert not caplog.records
    assert not [one for one in call("get_open_txns_info").open_txns if one.state == ttypes.TxnState.OPEN]


def test_one_that_is_gone_indeed_is_told(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    transaction = connection.begin()
    connection.abort_transactions([transaction.id])
    connection.heartbeats._beat()
    assert f"transaction {transaction.id} is gone" in caplog.text
    assert transaction.is_given_up


@pytest.mark.slow
def test_threads_that_begin_and_end_all_the_time(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    """Two seconds of time-out, heartbeats at any moment: none is lost that is held, nothing is said of others."""
    stop = threading.Event()
    wrong: list[object] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        held: list[Transaction] = []
        try:
            while not stop.is_set():
                held.append(connection.begin(chance.choice(list(TransactionKind))))
                if len(held) > 3:
                    one = held.pop(chance.randrange(len(held)))
                    chance.choice([one.commit, one.abort])()
                if chance.random() < 0.05:
                    stop.wait(chance.uniform(0, 0.5))
            for one in held:
                one.commit()
        except HiveAcidError as error:
            wrong.append(error)

    def beat() -> None:
        while not stop.is_set():
            connection.heartbeats._beat()

    threads = [*(threading.Thread(target=work, args=[number]) for number in range(4)), threading.Thread(target=beat)]
    for thread in threads:
        thread.start()
    stays(lambda: not wrong, 4, wrong)
    stop.set()
    for thread in threads:
        thread.join(20)
    assert not wrong
    assert not caplog.records
    assert not connection.heartbeats._transactions
