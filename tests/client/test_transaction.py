"""The client's transactions against a real metastore, over a real socket."""

import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid import connect
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.errors import (
    AlreadyExistsError,
    LockTimeoutError,
    MetastoreUnreachableError,
    NoSuchObjectError,
    SnapshotOutdatedError,
    TransactionClosedError,
    TransactionExpiredError,
    WriteConflictError,
)
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.transactions.locks import Operation, overwrite_component, read_component, write_component
from hive_acid.transactions.states import TransactionKind, TransactionState
from hive_acid.wire import ttypes
from tests.waiting import outlast_time_outs, stays, until


@pytest.fixture
def connection(metastore: Callable[..., str]) -> Iterator[Any]:
    with connect(metastore(**{"metastore.lock.poll.wait": "500ms"})) as connection:
        connection.create_database("d")
        connection.create_table(acid_table("t"))
        yield connection


def acid_table(name: Any, **more: Any) -> Any:
    columns = (Column("id", "bigint"), Column("name", "string"))
    return Table("d", name, columns, parameters={"transactional": "true"}, **more)


def exclusive(database: Any, table: Any) -> Any:
    component = write_component(database, table, Operation.DELETE)
    component.type = ttypes.LockType.EXCLUSIVE
    return component


def test_what_is_created_is_found_again(connection: Connection) -> None:
    with pytest.raises(AlreadyExistsError):
        connection.create_table(acid_table("t"))
    connection.create_table(acid_table("t"), if_not_exists=True)
    found = connection.table("D", "T")
    assert (found.database, found.name, found.full_name) == ("d", "t", "d.t")
    assert found.columns == (Column("id", "bigint"), Column("name", "string"))
    assert found.is_full_acid
    assert found.location.endswith("/warehouse/d.db/t")
    connection.drop_table("d", "t")
    with pytest.raises(NoSuchObjectError):
        connection.table("d", "t")
    connection.drop_table("d", "t", if_exists=True)


def test_partitions_are_registered_once(connection: Connection) -> None:
    table = acid_table("p", partition_keys=(Column("month", "int"), Column("place", "string")))
    connection.create_table(table)
    table = connection.table("d", "p")
    name = table.partition_name(["1", "a/b=c"])
    locations = {name: f"{table.location}/{name}"}
    connection.add_partitions(table, locations)
    connection.add_partitions(table, locations)
    assert connection.partitions(table) == locations
    assert table.partition_values(name) == ["1", "a/b=c"]


def test_a_transaction_sees_its_own_write_and_not_a_later_one(connection: Connection) -> None:
    with connection.begin() as first:
        first.write_id("d", "t")
    with connection.begin() as writer:
        assert writer.write_id("d", "t") == 2
        assert writer.write_id("D", "T") == 2
        with connection.begin() as later:
            later.write_id("d", "t")
        assert writer.write_ids("d", "t").is_valid(1)
        assert writer.write_ids("d", "t").is_valid(2)
        assert not writer.write_ids("d", "t").is_valid(3)
    with connection.begin(TransactionKind.READ) as reader:
        assert all(reader.write_ids("d", "t").is_valid(write_id) for write_id in (1, 2, 3))


def test_a_snapshot_names_all_aborted_transactions_though_known_ones_are_not_told_again(
    connection: Connection,
) -> None:
    random_ = random.Random(35)
    begun: list[Any] = []
    with connect(connection.uri) as other:
        for _ in range(60):
            if begun and random_.random() < 0.5:
                begun.pop(random_.randrange(len(begun))).abort()
            else:
                transaction = random_.choice((connection, other)).begin()
                now = connection.call("get_open_txns")
                expected = ValidTxnList.from_open_txns(
                    now.txn_high_water_mark, now.open_txns, now.abortedBits, own_txn_id=transaction.id
                )
                assert transaction.snapshot == expected
                begun.append(transaction)
        for transaction in begun:
            transaction.abort()


def test_the_first_committer_wins_and_the_other_removes_its_files(connection: Connection) -> None:
    removed = []
    winner, loser = connection.begin(), connection.begin()
    for transaction in (winner, loser):
        transaction.lock(write_component("d", "t", Operation.UPDATE))
        transaction.write_id("d", "t")
    loser.on_abort(lambda: removed.append("first written"))
    loser.on_abort(lambda: removed.append("last written"))
    winner.commit()
    with pytest.raises(WriteConflictError, match="d/t"):
        loser.commit()
    assert removed == ["last written", "first written"]
    assert loser.state is TransactionState.ABORTED
    loser.abort()


def test_an_error_in_the_block_aborts(connection: Connection) -> None:
    with pytest.raises(ZeroDivisionError), connection.begin() as transaction:
        transaction.write_id("d", "t")
        raise ZeroDivisionError
    with connection.begin(TransactionKind.READ) as reader:
        assert not reader.write_ids("d", "t").is_valid(1)
    with pytest.raises(TransactionClosedError):
        transaction.commit()


def test_statement_ids_rise(connection: Connection) -> None:
    with connection.begin() as transaction:
        assert [transaction.next_statement_id() for _ in range(3)] == [0, 1, 2]


def test_a_committed_transaction_is_closed(connection: Connection) -> None:
    transaction = connection.begin()
    transaction.commit()
    for use in (transaction.commit, transaction.abort, lambda: transaction.write_ids("d", "t")):
        with pytest.raises(TransactionClosedError):
            use()


def test_heartbeats_keep_a_transaction_and_their_end_loses_it(metastore: Callable[..., str]) -> None:
    settings = {"hive.txn.timeout": "2s", "metastore.acid.housekeeper.interval": "200ms"}
    with connect(metastore(**settings)) as connection:
        kept, lost = connection.begin(), connection.begin()
        connection.heartbeats.remove(lost)
        outlast_time_outs(connection)
        kept.write_id("d", "t")
        kept.commit()
        with pytest.raises(TransactionExpiredError):
            lost.commit()


def test_the_heartbeat_itself_tells_of_the_loss(metastore: Callable[..., str]) -> None:
    settings = {"hive.txn.timeout": "900ms", "metastore.acid.housekeeper.interval": "100ms"}
    with connect(metastore(**settings)) as connection:
        transaction = connection.begin()
        connection.call("abort_txn", ttypes.AbortTxnRequest(txnid=transaction.id))
        until(lambda: transaction.is_given_up)
        with pytest.raises(TransactionExpiredError):
            transaction.write_ids("d", "t")


def test_the_loss_is_learnt_by_asking(connection: Connection) -> None:
    transaction = connection.begin()
    transaction.check_alive()
    connection.call("abort_txn", ttypes.AbortTxnRequest(txnid=transaction.id))
    with pytest.raises(TransactionExpiredError, match="begin another"):
        transaction.check_alive()
    transaction.abort()


def test_a_dynamic_write_that_touched_nothing_is_in_nobodys_way(connection: Connection) -> None:
    connection.create_table(acid_table("p", partition_keys=(Column("month", "int"),)))
    idle, busy = connection.begin(), connection.begin()
    for transaction, touched in ((idle, []), (busy, ["month=1"])):
        transaction.lock(write_component("d", "p", Operation.UPDATE, dynamic=True))
        transaction.add_dynamic_partitions("d", "p", touched, Operation.UPDATE)
    idle.commit()
    busy.commit()


def test_a_waiting_lock_is_handed_over_at_once(connection: Connection) -> None:
    holder, waiter = connection.begin(), connection.begin()
    holder.lock(exclusive("d", "t"))
    granted = []

    def wait() -> None:
        waiter.lock(read_component("d", "t"))
        granted.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    stays(lambda: not granted, 0.4)
    freed = time.monotonic()
    holder.commit()
    thread.join(5)
    assert granted[0] - freed < 0.25
    waiter.commit()


def test_a_lock_that_is_not_free_in_time_leaves_nothing_waiting(connection: Connection) -> None:
    holder = connection.begin()
    holder.lock(exclusive("d", "t"))
    waiter = connection.begin(lock_timeout_ms=300)
    with pytest.raises(LockTimeoutError, match=r"d\.t"):
        waiter.lock(write_component("d", "t", Operation.UPDATE))
    assert len(connection.call("show_locks", ttypes.ShowLocksRequest()).locks) == 1
    waiter.abort()
    holder.abort()


def test_a_lease_can_end_from_a_finaliser(connection: Connection) -> None:
    reader = connection.begin(TransactionKind.READ)
    gc.collect()
    reader.end_later()
    until(lambda: not connection.call("get_open_txns_info").open_txns, 5)


def test_an_address_where_nobody_answers() -> None:
    with pytest.raises(MetastoreUnreachableError, match="metastore serve"):
        connect("thrift://127.0.0.1:1")
    with pytest.raises(ValueError, match="thrift://host:port"):
        connect("ftp://127.0.0.1:9083")


def test_a_restarted_server_is_found_again(metastore: Callable[..., str], db_url: str) -> None:
    first = metastore()
    with connect(first) as connection:
        connection.create_database("again", if_not_exists=True)
        connection._put_back(*connection._connect())
        for sock, _ in connection._idle:
            sock.shutdown(2)  # as the peer's end looks like
        assert connection.call("get_all_databases") == ["again", "default"]


@pytest.mark.parametrize("may_begin_again", [True, False])
def test_who_waited_for_a_change_to_the_same_data_learns_it_at_once(
    connection: Connection, may_begin_again: bool
) -> None:
    """If it can begin anew; else at its commit, as ever. An insert has nothing to learn."""
    holder, waiting, inserting = (connection.begin() for _ in range(3))
    holder.lock(overwrite_component("d", "t", beside_readers=True))
    holder.write_id("d", "t")
    waiting.may_begin_again = inserting.may_begin_again = may_begin_again
    threading.Timer(0.4, holder.commit).start()
    inserting.lock(write_component("d", "t", Operation.INSERT))
    change = write_component("d", "t", Operation.UPDATE)
    if may_begin_again:
        with pytest.raises(SnapshotOutdatedError, match=f"transaction {holder.id} changed the same data"):
            waiting.lock(change)
        waiting.abort()
    else:
        waiting.lock(change)
        with pytest.raises(WriteConflictError):
            waiting.commit()
    inserting.commit()
