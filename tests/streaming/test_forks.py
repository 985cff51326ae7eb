"""Streams in processes that fork: each writes its own rows to its own table, and a child leaves the parent's alone."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable

import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import OtherProcessError
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from tests.forks import bounded, forked, status_of
from tests.spark.checker import check_snapshot
from tests.streaming.conftest import House
from tests.waiting import outlast_time_outs

WORKERS = 4
TRANSACTIONS = 8
PATIENCE_S = 60


def stream_own(connection: Connection, number: int) -> None:
    """Some transactions of rows with the worker's number, to its own table."""
    with StreamingConnection(connection, f"d.w{number}", DelimitedWriter(",")) as stream:
        for transaction in range(TRANSACTIONS):
            with stream.transaction():
                stream.write(f"{number},{transaction}")


def test_workers_that_share_a_connection_from_before_the_fork(house: House) -> None:
    """Each row is in the table of the worker that wrote it, none is lost and none there twice."""
    for number in range(WORKERS):
        columns = (Column("worker", "int"), Column("n", "int"))
        house.connection.create_table(Table("d", f"w{number}", columns, parameters={"transactional": "true"}))
    shared = house.connection
    children = [forked(bounded(lambda n=number: stream_own(shared, n))) for number in range(1, WORKERS)]
    stream_own(shared, 0)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(children)
    for number in range(WORKERS):
        events = check_snapshot(house, f"d.w{number}")[""]
        assert sorted(event.row for event in events) == [(number, n) for n in range(TRANSACTIONS)]


@pytest.mark.parametrize("size", ["gathered", "open"])
def test_a_child_does_nothing_to_the_parents_open_stream(
    simple: House, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    """Neither by what it calls nor by what it forgets: a writer's buffers would go to the parent's file."""
    if size == "open":
        monkeypatch.setattr("hive_acid.streaming.delta.GATHERED_BYTES", 1)
    stream = simple.stream(transaction_batch_size=2)
    stream.begin_transaction()
    rows = [f"{number},{'x' * (number % 300)}" for number in range(3000)]
    stream.write("\n".join(rows))
    uses: list[Callable[[], object]] = [
        lambda: stream.write("9,z"),
        stream.commit_transaction,
        stream.abort_transaction,
        stream.begin_transaction,
        lambda: stream.txn_id,
        lambda: stream.write_id,
        lambda: stream.waiting,
        lambda: stream.statistics,
    ]

    def work() -> int:
        for number, use in enumerate(uses):
            try:
                use()
            except OtherProcessError:
                continue
            return 10 + number
        stream.close()
        stream.__dict__.clear()
        gc.collect()
        return 0

    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        try:
            status = work()
        except BaseException:
            status = 1
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stream.commit_transaction()
    stream.begin_transaction()
    stream.write("-1,last")
    stream.commit_transaction()
    stream.close()
    expected = [(number, "x" * (number % 300)) for number in range(3000)]
    assert simple.rows() == sorted([*expected, (-1, "last")], key=str)


def test_a_child_that_leaves_the_parents_blocks(simple: House) -> None:
    """Its way out goes through the parent's ``with`` blocks."""
    child = None
    try:
        with simple.stream() as stream, stream.transaction():
            stream.write("1,a")
            child = os.fork()
            if not child:
                sys.exit()
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            stream.write("2,b")
    except SystemExit:
        os._exit(7)
    assert status == 7
    assert simple.rows() == [(1, "a"), (2, "b")]


@pytest.mark.slow
def test_a_stream_of_the_childs_own_outlives_the_time_out(metastore: Callable[..., str]) -> None:
    uri = metastore(**{"hive.txn.timeout": "2s", "metastore.acid.housekeeper.interval": "200ms"})
    with connect(uri) as connection:
        connection.create_database("d")
        columns = (Column("worker", "int"), Column("n", "int"))
        connection.create_table(Table("d", "w1", columns, parameters={"transactional": "true"}))
        house = House(uri, connection)
        with StreamingConnection(connection, "d.w1", DelimitedWriter(",")) as stream, stream.transaction():
            stream.write("0,0")

        def work() -> None:
            with StreamingConnection(connection, "d.w1", DelimitedWriter(",")) as stream, stream.transaction():
                stream.write("1,1")
                outlast_time_outs(connection)

        assert status_of(bounded(work)) == 0
        rows = [event.row for event in check_snapshot(house, "d.w1")[""]]
        assert sorted(rows) == [(0, 0), (1, 1)]
