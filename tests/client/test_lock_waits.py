"""What a lock is waited for, and what is said of who is in the way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from hive_acid.catalog.alterations import Alterations
from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import (
    LockTimeoutError,
    SnapshotInTheWayError,
    SnapshotOutdatedError,
    TransactionInTheWayError,
    WriteConflictError,
)
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from hive_acid.transactions.locks import Operation, overwrite_component, read_component, write_component
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from tests.waiting import until

AT_ONCE_S = 2.0
TABLE = TableReference("d", "t")


@pytest.fixture
def connection(metastore: Callable[..., str]) -> Iterator[Connection]:
    with connect(metastore(**{"metastore.lock.poll.wait": "200ms"}), user="ann") as connection:
        connection.create_database("d")
        for name in ("t", "u"):
            parameters = {"transactional": "true"}
            connection.create_table(Table("d", name, (Column("id", "int"),), parameters=parameters))
        yield connection


def reader(connection: Connection, table: str = "t") -> Transaction:
    transaction = connection.begin(TransactionKind.READ)
    transaction.lock(read_component("d", table))
    return transaction


def alterations(connection: Connection) -> Alterations:
    return Alterations(connection, Definitions(connection))


def rename(connection: Connection, wait_ms: int = 60_000) -> None:
    with connection.begin(lock_timeout_ms=wait_ms) as transaction:
        alterations(connection).rename(transaction, TABLE, "d", "z")


@pytest.mark.parametrize("of", ["the connection", "another connection"])
def test_a_snapshot_of_the_same_thread_is_not_waited_for(connection: Connection, of: str) -> None:
    other = connect(connection.uri)
    held = reader(connection if of == "the connection" else other)
    elsewhere = reader(connection, "u")
    began = time.monotonic()
    with pytest.raises(SnapshotInTheWayError, match=rf"d\.t .* transaction {held.id}\."):
        rename(connection)
    assert time.monotonic() - began < AT_ONCE_S
    held.end_later()  # as when its frames are gone
    rename(connection)
    elsewhere.commit()
    other.close()


def test_one_of_another_thread_is_waited_for_and_told(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    found: list[Transaction] = []
    thread = threading.Thread(target=lambda: found.append(reader(connection)))
    thread.start()
    thread.join()
    threading.Timer(0.7, found[0].end_later).start()
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "hive_acid"):
        rename(connection)
    assert time.monotonic() - began > 0.5
    assert f"transaction {found[0].id}" in caplog.text


def test_what_does_not_meet_readers_does_not_ask_for_them(connection: Connection) -> None:
    held = reader(connection)
    with connection.begin() as transaction:
        alterations(connection).set_properties(transaction, TABLE, {"note": "x"})
        alterations(connection).add_columns(transaction, TABLE, [Column("more", "int")])
    connection.drop_table("d", "t")
    held.commit()


def test_a_drop_leaves_the_name_free_of_snapshots_that_were_let_go(connection: Connection) -> None:
    """However busy the thread is that ends them: else the metastore would keep the name for their sake."""
    with connect(connection.uri) as other:
        drops: list[Callable[[], object]] = [
            lambda: connection.drop_table("d", "z"),
            lambda: connection.drop_database("e", cascade=True),
        ]
        for name, drop in zip(("d.z", "e.z"), drops, strict=True):
            connection.create_database("e", if_not_exists=True)
            database, table = name.split(".")
            parameters = {"transactional": "true"}
            connection.create_table(Table(database, table, (Column("id", "int"),), parameters=parameters))
            for one in (connection, other):
                snapshot = one.begin(TransactionKind.READ)
                one.heartbeats.do_later(lambda: time.sleep(0.3))
                snapshot.end_later()
            drop()
            connection.create_database("e", if_not_exists=True)
            with connection.begin() as transaction:
                alterations(connection).rename(transaction, TABLE, database, table)
            with connection.begin() as transaction:
                alterations(connection).rename(transaction, TableReference(database, table), "d", "t")


def test_the_error_tells_the_time_and_the_holder(connection: Connection) -> None:
    with connect(connection.uri, user="bob", application="nightly") as other:
        holder = other.begin()
        holder.lock(write_component("d", "t", Operation.UPDATE))
        with pytest.raises(LockTimeoutError) as told:
            rename(connection, 300)
    for words in ("d.t", "300 ms", f"transaction {holder.id} of bob at", "nightly"):
        assert words in str(told.value)


def locks(connection: Connection) -> list[Any]:
    return list(connection.call("show_locks", ttypes.ShowLocksRequest()).locks)


def writing(connection: Connection, operation: Operation) -> Transaction:
    transaction = connection.begin()
    transaction.lock(write_component("d", "t", operation))
    transaction.write_id("d", "t")
    return transaction


def overwrite(connection: Connection) -> None:
    with suppress(WriteConflictError), connection.begin() as transaction:
        transaction.lock(overwrite_component("d", "t", beside_readers=True))
        transaction.wait_for_earlier_writes("d", "t")


@pytest.mark.parametrize("operation", [Operation.INSERT, Operation.UPDATE])
@pytest.mark.parametrize("verb", [rename, overwrite])
def test_a_block_of_the_same_thread_is_not_waited_for(
    connection: Connection, verb: Callable[[Connection], None], operation: Operation
) -> None:
    with connect(connection.uri) as other, writing(other, operation) as block:
        began = time.monotonic()
        with pytest.raises(TransactionInTheWayError, match=rf"d\.t .* transaction {block.id}\."):
            verb(connection)
        assert time.monotonic() - began < AT_ONCE_S
        elsewhere = threading.Thread(target=verb, args=(connection,))
        elsewhere.start()  # another thread waits for it
        elsewhere.join(0.5)
        assert elsewhere.is_alive()
    elsewhere.join(10)
    assert not elsewhere.is_alive()


def test_nor_is_one_that_has_renamed_the_table(connection: Connection) -> None:
    with connection.begin() as block:
        alterations(connection).rename(block, TABLE, "d", "z")
        began = time.monotonic()
        with pytest.raises(TransactionInTheWayError, match=rf"d\.z .* transaction {block.id}\."):
            connection.begin().lock(read_component("d", "z"))
        assert time.monotonic() - began < AT_ONCE_S


def test_one_that_somebody_waits_for_is_in_nobodys_way(connection: Connection) -> None:
    """The lock waits for who asked before, and may give up."""
    with connect(connection.uri) as other, writing(other, Operation.INSERT):

        def rename_soon() -> None:
            with suppress(LockTimeoutError):
                rename(connection, 1_500)

        waiting = threading.Thread(target=rename_soon)
        waiting.start()
        until(lambda: any(lock.state == ttypes.LockState.WAITING for lock in locks(connection)))
        with connection.begin() as update:
            update.lock(write_component("d", "t", Operation.UPDATE))
        waiting.join(10)
        assert not waiting.is_alive()


def test_nor_is_a_stream_within_its_block(connection: Connection) -> None:
    with (
        StreamingConnection(connection.uri, "d.t", DelimitedWriter(",")) as stream,
        stream.transaction(),
        pytest.raises(TransactionInTheWayError, match=r"d\.t"),
    ):
        overwrite(connection)


def test_what_somebody_else_holds_is_waited_for_within_a_block(connection: Connection) -> None:
    with connect(connection.uri) as other, writing(connection, Operation.INSERT):
        holder = writing(other, Operation.UPDATE)
        threading.Timer(0.5, holder.abort).start()
        with connection.begin() as transaction:
            transaction.lock(
                overwrite_component("d", "t", beside_readers=True)  # beside the INSERT, so that it can be granted
            )


@pytest.mark.parametrize("earlier", ["an insert", "a numbered batch"])
def test_a_base_waits_for_writes_with_smaller_numbers(connection: Connection, earlier: str) -> None:
    """Their rows would be below it, where nobody sees them, however late they commit."""
    writer = connection.begin()
    if earlier == "an insert":
        writer.lock(write_component("d", "t", Operation.INSERT))
    writer.write_id("d", "t")
    with connection.begin() as overwriting, connection.begin() as later:
        overwriting.lock(overwrite_component("d", "t", beside_readers=True))
        assert overwriting.write_id("d", "t") < later.write_id("d", "t")
        threading.Timer(0.6, writer.commit).start()
        began = time.monotonic()
        overwriting.wait_for_earlier_writes("d", "t")
        assert time.monotonic() - began > 0.5


def test_who_began_later_and_has_ended_is_not_waited_for(connection: Connection) -> None:
    with connection.begin(lock_timeout_ms=0) as overwriting:
        for end in ("commit", "abort"):
            later = connection.begin()
            later.write_id("d", "t")
            getattr(later, end)()
        overwriting.wait_for_earlier_writes("d", "t")


def test_what_was_waited_for_may_have_changed_rows(connection: Connection) -> None:
    """Who can begin anew learns it there, instead of at the commit."""
    writer = connection.begin()
    writer.lock(write_component("d", "t", Operation.UPDATE))
    writer.write_id("d", "t")
    overwriting = connection.begin(may_begin_again=True)
    change = write_component("d", "t", Operation.UPDATE)
    overwriting.lock(change)
    overwriting.write_id("d", "t")
    threading.Timer(0.6, writer.commit).start()
    with pytest.raises(SnapshotOutdatedError, match=str(writer.id)):
        overwriting.wait_for_earlier_writes("d", "t")
    overwriting.abort()


def test_earlier_writes_that_do_not_end(connection: Connection) -> None:
    writer = connection.begin()
    writer.lock(write_component("d", "t", Operation.INSERT))
    write_id = writer.write_id("d", "t")
    expected = rf"300 ms: write id {write_id} is open.* {writer.id} of ann"
    with pytest.raises(LockTimeoutError, match=expected), connection.begin(lock_timeout_ms=300) as overwriting:
        overwriting.wait_for_earlier_writes("d", "t")
    writer.abort()
