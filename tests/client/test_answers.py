"""Each call gets its own answer, whatever happened to the one before: stale, half, lost or interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from hive_acid.catalog.calls import table_question
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import (
    AlreadyExistsError,
    AnswersMixedError,
    HiveAcidError,
    MetastoreUnreachableError,
    NoSuchObjectError,
    NoSuchTxnError,
    TransactionClosedError,
)
from hive_acid.format.progress import last_batch, progress_parameter
from hive_acid.protocol import Question
from hive_acid.transactions.states import TransactionKind, TransactionState
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from tests.client.meddler import Meddler, meddler
from tests.interrupts import interrupted

pytestmark = pytest.mark.sampled


@pytest.fixture
def proxy(metastore: Callable[..., str]) -> Iterator[Meddler]:
    uri = metastore()
    with connect(uri) as own:
        own.create_database("d")
        own.create_table(Table("d", "t", (Column("id", "int"),), parameters={"transactional": "true"}))
    with meddler(uri) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: Meddler) -> Iterator[Connection]:
    with connect(proxy.uri, timeout_ms=400) as connection:
        yield connection


@pytest.mark.parametrize("fault", ["stale", "half", "silent", "lost"])
def test_a_call_that_may_be_repeated_gets_its_own_answer_on_another_socket(
    proxy: Meddler, connection: Connection, fault: str
) -> None:
    connection.call("get_all_databases")
    proxy.faults["get_table_req"] = fault
    assert connection.table("d", "t").name == "t"
    assert connection.call("get_all_databases") == ["d", "default"]
    assert not proxy.faults


@pytest.mark.parametrize("fault", ["stale", "half", "silent"])
def test_a_call_that_may_not_be_repeated_says_so_and_the_next_one_is_right(
    proxy: Meddler, connection: Connection, fault: str
) -> None:
    connection.call("get_all_databases")
    proxy.faults["hive_acid_begin"] = fault
    expected = AnswersMixedError if fault == "stale" else MetastoreUnreachableError
    with pytest.raises(expected, match="hive_acid_begin"):
        connection.begin()
    assert connection.call("get_all_databases") == ["d", "default"]
    assert len(connection.call("get_open_txns_info").open_txns) == 1, "it was done, and not a second time"


def test_calls_that_are_sent_together_are_all_done_in_their_order(connection: Connection) -> None:
    """Also behind one that fails, and each has its own outcome."""
    database = ttypes.Database(name="later")
    absent, aborted, made, there, refused = connection.ask(
        table_question("d", "absent"),
        Question("abort_txn", (ttypes.AbortTxnRequest(txnid=7),)),
        Question("create_database", (database,)),
        Question("get_all_databases", ()),
        Question("create_database", (database,)),
    )
    assert isinstance(absent, NoSuchObjectError)
    assert isinstance(aborted, NoSuchTxnError)
    assert made is None
    assert there == ["d", "default", "later"]
    assert isinstance(refused, AlreadyExistsError)


@pytest.mark.parametrize("fault", ["stale", "half", "silent", "lost"])
@pytest.mark.parametrize("at", ["get_all_databases", "get_table_req"])
def test_of_calls_that_are_sent_together_each_gets_its_own_answer_or_none_does(
    proxy: Meddler, connection: Connection, at: str, fault: str
) -> None:
    connection.call("get_all_tables", "d")
    proxy.faults[at] = fault
    databases, found = connection.ask(Question("get_all_databases", ()), table_question("d", "t"))
    assert databases == ["d", "default"]
    assert found.table.tableName == "t"
    assert not proxy.faults
    assert connection.table("d", "t").name == "t"


@pytest.mark.parametrize("fault", ["stale", "half", "silent"])
def test_a_call_that_may_not_be_repeated_is_not_for_the_sake_of_one_that_was_sent_with_it(
    proxy: Meddler, connection: Connection, fault: str
) -> None:
    opening = Question("open_txns", (ttypes.OpenTxnRequest(num_txns=1, user="u", hostname="h"),))
    proxy.faults["get_table_req"] = fault
    expected = AnswersMixedError if fault == "stale" else MetastoreUnreachableError
    with pytest.raises(expected, match="open_txns and get_table_req"):
        connection.ask(opening, table_question("d", "t"))
    assert len(connection.call("get_open_txns_info").open_txns) == 1
    assert connection.table("d", "t").name == "t"


def test_a_first_answer_without_sense(proxy: Meddler) -> None:
    proxy.faults["set_ugi"] = "stale"
    with pytest.raises(MetastoreUnreachableError, match=proxy.uri):
        connect(proxy.uri, timeout_ms=400)


COMMITS = ("commit_txn", "hive_acid_commit_rows", "hive_acid_commit_rows of a batch")


def by_rows(connection: Connection, transaction: Transaction, commit: str) -> None:
    """Have it be a transaction that commits by this method."""
    if commit != "commit_txn":
        transaction.changed.begin("d.t", is_partitioned=False)
    if commit.endswith("of a batch"):
        transaction.set_with_commit(connection.table("d", "t").id, progress_parameter("q"), "0")


@pytest.mark.parametrize("commit", COMMITS)
@pytest.mark.parametrize("fault", ["stale", "half", "silent"])
def test_a_commit_without_its_answer_touches_no_file(
    proxy: Meddler, connection: Connection, fault: str, commit: str
) -> None:
    removed: list[int] = []
    transaction = connection.begin()
    by_rows(connection, transaction, commit)
    transaction.write_id("d", "t")
    transaction.on_abort(lambda: removed.append(1))
    proxy.faults[commit.split()[0]] = fault
    transaction.commit()  # which may be repeated
    assert transaction.state is TransactionState.COMMITTED
    assert not removed
    assert last_batch(connection.table("d", "t").parameters, "q") == (0 if commit.endswith("of a batch") else None)


@pytest.mark.parametrize("method", ["get_table_req", "lock", "get_open_txns_info"])
def test_an_interrupt_in_the_middle_of_a_call_spoils_no_other_one(proxy: Meddler, method: str) -> None:
    request = ttypes.GetTableRequest(dbName="d", tblName="t")
    component = ttypes.LockComponent(
        type=ttypes.LockType.SHARED_READ, level=ttypes.LockLevel.TABLE, dbname="d", tablename="t",
        operationType=ttypes.DataOperationType.NO_TXN,
    )  # fmt: skip
    arguments = {
        "get_table_req": (request,),
        "lock": (ttypes.LockRequest(component=[component], user="u", hostname="h"),),
        "get_open_txns_info": (),
    }
    with connect(proxy.uri) as connection:
        proxy.faults[method] = "silent"
        with interrupted(KeyboardInterrupt, 0.4):
            connection.call(method, *arguments[method])
        for _ in range(3):
            assert connection.table("d", "t").name == "t"
            assert connection.call("get_all_databases") == ["d", "default"]


@pytest.mark.parametrize("commit", COMMITS)
@pytest.mark.parametrize("fault", ["silent", "lost"])
def test_files_go_after_an_interrupted_commit_only_if_it_has_not_committed(
    proxy: Meddler, fault: str, commit: str
) -> None:
    """The abort that follows an interrupt must not remove the files of what has committed."""
    removed: list[int] = []
    with connect(proxy.uri) as connection:
        transaction = connection.begin()
        by_rows(connection, transaction, commit)
        write_id = transaction.write_id("d", "t")
        transaction.on_abort(lambda: removed.append(1))
        proxy.faults[commit.split()[0]] = fault
        with interrupted(KeyboardInterrupt, 0.4):
            transaction.commit()
        if fault == "lost":
            transaction.abort()
            assert transaction.state is TransactionState.ABORTED
        else:
            with pytest.raises(TransactionClosedError, match="may have"):
                transaction.abort()
            assert transaction.state is TransactionState.UNKNOWN
        with connection.begin(TransactionKind.READ) as reader:
            assert reader.write_ids("d", "t").is_valid(write_id) == (fault == "silent")
        assert bool(removed) == (fault == "lost")


def test_of_two_threads_one_ends_a_transaction(proxy: Meddler) -> None:
    """Who aborts while another one's commit is under way must not remove what that commits."""
    removed: list[int] = []
    with connect(proxy.uri, timeout_ms=60_000) as connection:
        transaction = connection.begin()
        transaction.write_id("d", "t")
        transaction.on_abort(lambda: removed.append(1))
        proxy.faults["commit_txn"] = "silent"
        committing = threading.Thread(target=_quietly, args=[transaction.commit], daemon=True)
        committing.start()
        assert proxy.met.wait(10)
        with pytest.raises(TransactionClosedError, match="another thread"):
            transaction.abort()
        assert not removed


def test_close_while_others_call(proxy: Meddler) -> None:
    """Calls end with their answers or say that the connection is closed; nothing is left behind."""
    connection = connect(proxy.uri)
    wrong: list[object] = []

    def call() -> None:
        try:
            while True:
                if connection.call("get_all_databases") != ["d", "default"] or connection.table("d", "t").name != "t":
                    wrong.append("an answer of another call")
        except HiveAcidError as error:
            if "is closed" not in str(error):
                wrong.append(error)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    threading.Event().wait(0.5)
    connection.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert not wrong
    assert not connection._idle


def _quietly(do: Callable[[], None]) -> None:
    try:
        do()
    except HiveAcidError:
        return
