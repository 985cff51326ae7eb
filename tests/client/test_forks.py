"""A process forked from one that is connected: it gets all of its own, and leaves what is the parent's alone."""

from __future__ import annotations

import copy
import faulthandler
import gc
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from hive_acid.catalog.references import Definitions
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import HiveAcidError, OtherProcessError
from hive_acid.filesystem.footers import Footers
from hive_acid.transactions.locks import Operation, read_component, write_component
from hive_acid.transactions.states import TransactionKind, TransactionState
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from tests.client import processes
from tests.forks import bounded, forked, status_of
from tests.waiting import outlast_time_outs

TABLES = 5
PATIENCE_S = 60


@pytest.fixture
def uri(metastore: Callable[..., str]) -> str:
    uri = metastore(**{"hive.txn.timeout": "2s", "metastore.acid.housekeeper.interval": "200ms"})
    with connect(uri) as connection:
        connection.create_database("d")
        for number in range(TABLES):
            columns = (Column("id", "int"),)
            connection.create_table(Table("d", f"t{number}", columns, parameters={"transactional": "true"}))
    return uri


@pytest.fixture
def connection(uri: str) -> Iterator[Connection]:
    with connect(uri) as connection:
        warm(connection)
        yield connection


def warm(connection: Connection) -> None:
    """Several sockets at rest, as of threads that have called at the same time."""
    for sock in [connection._connect() for _ in range(3)]:
        connection._put_back(*sock)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_parent_and_children_get_the_answers_to_their_own_calls(uri: str, connection: Connection) -> None:
    """On one socket of many processes, answers were taken by others without an error."""
    processes.inherited[:] = [connection]
    try:
        children = [forked(bounded(lambda n=number: processes.mixed(uri, n))) for number in range(1, TABLES)]
        wrong = processes.mixed(uri, 0)
        assert [ended(child) for child in children] == [0] * len(children)
        assert wrong == 0
    finally:
        processes.inherited.clear()


# The executor starts them as the others do.
@pytest.mark.parametrize(
    ("kind", "method"),
    [("processes", "fork"), ("pool", "fork"), *(("executor", method) for method in ("fork", "forkserver", "spawn"))],
)
def test_workers_of_every_kind(uri: str, connection: Connection, kind: str, method: str) -> None:
    context = multiprocessing.get_context(method)
    processes.inherited[:] = [connection]
    try:
        if kind == "executor":
            with ProcessPoolExecutor(3, context) as executor:
                found = list(executor.map(processes.mixed, [uri] * 3, range(3)))
        elif kind == "pool":
            # A pool waits for a worker that hangs, or has died, without end; what it is at is told on standard error.
            with context.Pool(3, faulthandler.dump_traceback_later, [PATIENCE_S]) as pool:
                work = pool.starmap_async(processes.mixed, [(uri, number) for number in range(3)])
                found = work.get(2 * PATIENCE_S)
        else:
            started = [context.Process(target=processes.end_with_mixed, args=[uri, number]) for number in range(3)]  # type: ignore[attr-defined]
            for one in started:
                one.start()
            for one in started:
                one.join(PATIENCE_S)
            found = [one.exitcode for one in started]
        assert found == [0] * 3
        assert processes.mixed(uri, 4) == 0
    finally:
        processes.inherited.clear()


@pytest.mark.slow
def test_a_child_keeps_its_own_transactions_alive(connection: Connection) -> None:
    """It has no thread of the parent's; without one of its own they would be timed out."""
    connection.begin(TransactionKind.READ).commit()

    def work() -> None:
        transaction = connection.begin()
        transaction.write_id("d", "t1")
        outlast_time_outs(connection)
        transaction.commit()

    assert status_of(bounded(work)) == 0


@pytest.mark.slow
def test_the_parents_transactions_are_refused_in_a_child_and_go_on(connection: Connection) -> None:
    undone: list[int] = []
    writer, reader = connection.begin(), connection.begin(TransactionKind.READ)
    writer.lock(write_component("d", "t0", Operation.INSERT))
    reader.write_ids("d", "t0")
    write_id = writer.write_id("d", "t0")
    writer.on_abort(lambda: undone.append(1))
    uses: list[Callable[[Transaction], object]] = [
        lambda one: one.write_ids("d", "t1"),
        lambda one: one.reads_only("d.t0"),
        lambda one: one.write_id("d", "t1"),
        lambda one: Transaction.allocate_write_ids([one], "d", "t1"),
        lambda one: one.add_dynamic_partitions("d", "t0", [], Operation.INSERT),
        lambda one: one.lock(read_component("d", "t0")),
        lambda one: one.check_alive(),
        lambda one: one.heartbeat(),
        lambda one: one.set_with_commit(1, "_meta", "1"),
        lambda one: one.commit(),
        lambda one: one.abort(),
        lambda one: one.__exit__(None, None, None),
    ]

    def work() -> int:
        for one in (writer, reader):
            for number, use in enumerate(uses):
                try:
                    use(one)
                except OtherProcessError as error:
                    if str(os.getppid()) not in str(error) or str(one.id) not in str(error):
                        return 30
                else:
                    return 10 + number
            one.end_later()
        connection.begin().commit()
        connection.close()
        return len(undone)

    assert status_of(bounded(work)) == 0
    outlast_time_outs(connection)  # the parent's heartbeats go on
    writer.check_alive()
    reader.check_alive()
    writer.commit()
    assert not undone
    with connection.begin(TransactionKind.READ) as later:
        assert later.write_ids("d", "t0").is_valid(write_id)
    reader.commit()


@pytest.mark.parametrize("way", ["sys.exit", "error", "end", "_exit"])
def test_a_child_that_leaves_the_parents_block(connection: Connection, way: str) -> None:
    undone: list[int] = []
    outcome = 0
    try:
        with connection.begin() as transaction:
            transaction.on_abort(lambda: undone.append(1))
            write_id = transaction.write_id("d", "t0")
            child = os.fork()
            if not child:
                signal.alarm(PATIENCE_S)
                if way == "_exit":
                    os._exit(7)
                if way == "sys.exit":
                    sys.exit(7)
                if way == "error":
                    raise ZeroDivisionError
            else:
                outcome = ended(child)
    except BaseException as error:  # only in the child
        expected = {"sys.exit": SystemExit, "error": ZeroDivisionError, "end": OtherProcessError}[way]
        os._exit(7 if isinstance(error, expected) and not undone else 1)
    if not child:
        os._exit(1)
    assert outcome == 7
    assert transaction.state is TransactionState.COMMITTED
    with connection.begin(TransactionKind.READ) as reader:
        assert reader.write_ids("d", "t0").is_valid(write_id)


def test_what_a_child_forgets_or_ends_is_the_parents_still(uri: str) -> None:
    """Garbage collection, finalisers, the end of the interpreter and `close` in the child do nothing to the parent."""
    connection = connect(uri)
    reader, writer = connection.begin(TransactionKind.READ), connection.begin()

    def work() -> None:
        import atexit

        reader.end_later()
        copies = [reader, writer]
        copies.clear()
        gc.collect()
        atexit._run_exitfuncs()
        connection.close()

    assert status_of(bounded(work)) == 0
    for one in (reader, writer):
        one.check_alive()
    connection.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_fork_at_any_moment_of_other_threads(uri: str, connection: Connection, seed: int) -> None:
    """Locks that others hold at the fork stay locked in the child, calls of theirs never end there."""
    chance = random.Random(seed)
    stop = threading.Event()
    wrong: list[object] = []

    def busy(number: int) -> None:
        while not stop.is_set():
            try:
                if connection.table("d", f"t{number}").name != f"t{number}":
                    wrong.append(number)
                with connection.begin(TransactionKind.READ) as reader:
                    reader.write_ids("d", f"t{number}")
            except HiveAcidError as error:
                wrong.append(error)

    threads = [threading.Thread(target=busy, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        children = []
        for _ in range(12):
            time.sleep(chance.uniform(0, 0.02))
            children.append(forked(bounded(lambda: _few_calls(connection))))
        assert [ended(child) for child in children] == [0] * len(children)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


def _few_calls(connection: Connection) -> int:
    wrong = 0
    for number in range(TABLES):
        wrong += connection.table("d", f"t{number}").name != f"t{number}"
        with connection.begin(TransactionKind.READ) as reader:
            wrong += reader.write_ids("d", f"t{number}").high_water_mark != 0
    connection.close()
    return wrong


def test_locks_that_are_held_at_the_fork(connection: Connection) -> None:
    connection.begin(TransactionKind.READ).commit()
    with connection._guard, connection.heartbeats._guard:
        child = forked(bounded(lambda: _few_calls(connection)))
    assert ended(child) == 0


def test_children_of_children(connection: Connection) -> None:
    transaction = connection.begin()

    def work() -> int:
        own = connection.begin()
        status = status_of(bounded(lambda: _refuses(own) + _refuses(transaction) + _few_calls(connection)))
        own.commit()
        return status + _refuses(transaction)

    assert status_of(bounded(work)) == 0
    transaction.commit()


def _refuses(transaction: Transaction) -> int:
    try:
        transaction.commit()
    except OtherProcessError:
        return 0
    return 1


def test_a_parent_that_closes_first(uri: str) -> None:
    connection = connect(uri)
    warm(connection)
    ready, go = os.pipe()

    def work() -> int:
        os.read(ready, 1)
        return _few_calls(connection)

    child = forked(bounded(work))
    connection.close()
    os.write(go, b"x")
    assert ended(child) == 0
    os.close(ready)
    os.close(go)


def test_a_child_tells_its_own_number(connection: Connection) -> None:
    def work() -> int:
        transaction = connection.begin()
        info = {one.id: one for one in connection.call("get_open_txns_info").open_txns}
        transaction.commit()
        return f"process {os.getpid()}" not in connection.application or transaction.id not in info

    assert status_of(bounded(work)) == 0
    assert f"process {os.getpid()}" in connection.application


def test_what_cannot_be_sent_to_another_process(connection: Connection) -> None:
    transaction = connection.begin()
    for what in (connection, transaction):
        for way in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="send its address"):
                way(what)
    transaction.abort()


def test_children_of_multiprocessing_end_what_they_leave_open(uri: str) -> None:
    with connect(uri) as connection:
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
            writer = executor.submit(processes.leave_one_open, uri).result()
            assert writer in {one.id for one in connection.call("get_open_txns_info").open_txns}
        states = {one.id: one.state for one in connection.call("get_open_txns_info").open_txns}
    assert states == {writer: ttypes.TxnState.ABORTED}


def test_what_another_thread_was_just_looking_up_does_not_stop_a_child(connection: Connection) -> None:
    definitions, footers = Definitions(connection), Footers()

    def look_up() -> int:
        return 0 if definitions.meant("d.t0").known and footers.missing([]) == 0 else 1

    with definitions._guard, footers._guard:
        assert status_of(bounded(look_up)) == 0
    assert look_up() == 0
