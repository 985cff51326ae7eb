"""Trino is kept from changing tables with rows in buckets above 0, where it would lose its deletes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.wire import ttypes
from metastore.compaction.trino import is_trino
from tests.caller import Caller, refused

QUERY = "20261122_101530_00042_a1b2c"


@pytest.fixture
def tables(metastore: Callable[..., str], tmp_path: Path) -> Iterator[tuple[Connection, Caller]]:
    """A connection, and a caller who is Trino when he gives `QUERY`."""
    with connect(metastore()) as connection, Caller(connection.uri) as trino:
        connection.create_database("d")
        yield connection, trino


def made(connection: Connection, name: str, *, keys: tuple[Column, ...] = (), **parameters: str) -> Path:
    connection.create_table(
        Table(
            "d", name, (Column("id", "int"),), partition_keys=keys, parameters={"transactional": "true", **parameters}
        )
    )
    return Path("/" + connection.table("d", name).location.removeprefix("file:").lstrip("/"))


def write(connection: Connection, location: Path, file: str) -> None:
    """A committed write with this file in the delta of write id 1; its content does not matter."""
    with connection.begin() as transaction:
        assert transaction.write_id("d", location.parent.name if "=" in location.name else location.name) == 1
        path = location / "delta_0000001_0000001_0000" / file
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")


def asks(trino: Caller, wanted: str, agent: str = QUERY) -> Any:
    return trino.asks(wanted, txn=trino.begin(), agentInfo=agent)


@pytest.mark.parametrize("letter", "ud")
def test_a_table_with_several_buckets_is_not_changed_by_trino(tables: tuple[Connection, Caller], letter: str) -> None:
    connection, trino = tables
    write(connection, made(connection, "t"), "bucket_00003")
    with refused("TxnAbortedException", "rebalance.*hive_acid.layout=statements.*metastore.lock.refuse.trino"):
        asks(trino, f"w d/t {letter}")
    assert asks(trino, "r d/t i") == asks(trino, "r d/t s") == "A"
    assert asks(trino, f"w d/t {letter}", agent="hive_20261122101530_x") == "A"


def test_the_transaction_of_a_refused_change_is_aborted(tables: tuple[Connection, Caller]) -> None:
    """Trino would heartbeat it for ever, and the rebalance that the refusal recommends would give way to it.

    The error says that it is aborted: after one that the method does not declare, Trino asks nine times more.
    """
    connection, trino = tables
    write(connection, made(connection, "t"), "bucket_00003")
    txn_id = trino.begin()
    with refused("TxnAbortedException", "rebalance"):
        trino.asks("w d/t u", txn=txn_id, agentInfo=QUERY)
    with refused("TxnAbortedException"):
        trino.call("heartbeat", ttypes.HeartbeatRequest(txnid=txn_id))


def test_what_is_in_bucket_0_is_changed(tables: tuple[Connection, Caller]) -> None:
    connection, trino = tables
    write(connection, made(connection, "t"), "bucket_00000")
    made(connection, "plain", transactional_properties="insert_only")
    for _ in range(2):
        assert asks(trino, "w d/t u") == asks(trino, "w d/plain u") == "A"
    # A later write is seen, whatever was found before.
    with connection.begin() as transaction:
        transaction.write_id("d", "t")
        later = Path("/" + connection.table("d", "t").location.removeprefix("file:").lstrip("/"))
        (later / "delta_0000002_0000002_0000").mkdir()
        (later / "delta_0000002_0000002_0000" / "bucket_00001").write_bytes(b"")
    with refused("TxnAbortedException", "bucket_00001"):
        asks(trino, "w d/t d")


def test_partitions_are_looked_at(tables: tuple[Connection, Caller]) -> None:
    connection, trino = tables
    location = made(connection, "t", keys=(Column("p", "int"),))
    connection.add_partitions(connection.table("d", "t"), {"p=1": f"file:{location}/p=1"})
    write(connection, location / "p=1", "bucket_00001")
    with refused("TxnAbortedException", "p=1/delta_0000001_0000001_0000/bucket_00001"):
        asks(trino, "w d/t d")


def test_the_setting_turns_it_off(metastore: Callable[..., str]) -> None:
    with connect(metastore(**{"metastore.lock.refuse.trino": "false"})) as connection, Caller(connection.uri) as trino:
        connection.create_database("d")
        write(connection, made(connection, "t"), "bucket_00003")
        assert asks(trino, "w d/t d") == "A"


def test_other_agents_are_not_taken_for_trino() -> None:
    assert is_trino(QUERY)
    for other in (None, "", "hive-acid", "hive_20261122101530_x", QUERY + "x", QUERY.upper()):
        assert not is_trino(other)
