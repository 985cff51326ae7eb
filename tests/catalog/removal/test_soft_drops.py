"""Dropping ACID tables and partitions while readers are under way: they finish, and nobody sees what is gone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from metastore.txn.states import TxnType
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

KEYS = (column("k", "string"),)


def test_readers_of_a_dropped_table_finish(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "old")
    reader = world.reader("t")
    rpc.drop_table("default", "t", True)
    assert world.clean().removed == []
    assert reader.rows() == ["old"]
    reader.end()
    assert world.clean().removed == [f"file:{warehouse}/t"]
    assert not (warehouse / "t").exists()
    assert world.db.call("get_max_write_id", "default", "t") == [(0,)]


def test_without_readers_the_files_go_at_once(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "old")
    rpc.drop_table("default", "t", True)
    assert not (warehouse / "t").exists()
    assert world.count("compaction", "t") == 0


def test_a_setting_makes_files_go_at_once(make_catalog: Callable[..., CatalogService], db: Database) -> None:
    catalog = make_catalog(soft_delete=False)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    rpc.create_table(table("t", parameters=ACID))
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partition(partition(["1"]))
    world.write("t", "old")
    world.write("p", "old", "k=1")
    readers = world.reader("t"), world.reader("p", "k=1")
    rpc.drop_table("default", "t", True)
    rpc.drop_partition("default", "p", ["1"], True)
    assert [reader.rows() for reader in readers] == [[], []]


def test_who_names_the_tables_it_reads_holds_no_others(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    other = world.begin(TxnType.READ_ONLY)
    world.db.call("add_min_history", other, ["default"], ["other"], [1])
    rpc.drop_table("default", "t", True)
    assert not (warehouse / "t").exists()


def test_a_table_of_the_same_name_gets_a_directory_of_its_own(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "old")
    first = world.reader("t")
    rpc.drop_table("default", "t", True)
    rpc.create_table(table("t", parameters=ACID))
    assert world.location("t").startswith(f"file:{warehouse}/t.v")
    assert world.rows("t") == []
    world.write("t", "new")
    second = world.reader("t")
    rpc.drop_table("default", "t", True)
    rpc.create_table(table("t"))  # a plain one must not take the place either
    place = Path(world.location("t").removeprefix("file:"))
    assert place not in (warehouse / "t", Path(second.location.removeprefix("file:")))
    assert (first.rows(), second.rows()) == (["old"], ["new"])
    first.end()
    second.end()
    world.clean()
    world.clean()
    assert [found.name for found in warehouse.iterdir()] == [place.name]


def test_a_chosen_location_that_is_still_read_is_refused(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    reader = world.reader("t")
    rpc.drop_table("default", "t", True)
    for place in (f"{warehouse}/t", f"{warehouse}/t/below"):
        with pytest.raises(InvalidObjectError, match="still read what was dropped"):
            rpc.create_table(table("u", sd=storage(location=place)))
    reader.end()
    world.clean()
    rpc.create_table(table("u", sd=storage(location=f"{warehouse}/t")))


def test_a_rename_does_not_take_the_name_or_place_of_a_table_that_is_read(
    rpc: Rpc, world: AcidWorld, warehouse: Path
) -> None:
    rpc.create_table(table("t", parameters=ACID))
    rpc.create_table(table("u", parameters=ACID))
    world.write("t", "old")
    world.write("u", "other")
    reader = world.reader("t")
    rpc.drop_table("default", "t", True)
    with pytest.raises(InvalidOperationError, match="still read a dropped table"):
        rpc.alter_table("default", "u", table("t", parameters=ACID))
    assert world.rows("u") == ["other"]
    assert reader.rows() == ["old"]
    reader.end()
    world.clean()
    rpc.alter_table("default", "u", table("t", parameters=ACID))
    assert world.rows("t") == ["other"]


def test_a_drop_in_the_clients_transaction_waits_for_its_commit(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    """Hive's soft delete (transactions.md §4.8): deleteData is false, the context names a SOFT_DELETE transaction."""
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "old")
    reader = world.reader("t")
    dropping = world.begin(TxnType.SOFT_DELETE)
    context = ttypes.EnvironmentContext(properties={"txnId": str(dropping)})
    rpc.drop_table_with_environment_context("default", "t", False, context)
    assert world.clean().removed == []
    world.txns.commit_txn(dropping)
    assert world.clean().removed == []
    assert reader.rows() == ["old"]
    reader.end()
    assert world.clean().removed == [f"file:{warehouse}/t"]


def test_a_drop_in_a_transaction_that_has_ended_is_refused(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_table(table("t", parameters=ACID))
    ended = world.begin(TxnType.SOFT_DELETE)
    world.txns.abort_txn(ended)
    context = ttypes.EnvironmentContext(properties={"txnId": str(ended)})
    with pytest.raises(InvalidOperationError, match="which is aborted"):
        rpc.drop_table_with_environment_context("default", "t", False, context)
    assert rpc.get_all_tables("default") is not None
    assert world.location("t")


# --- partitions ---


def make_partitioned(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partition(partition(["1"]))
    world.write("p", "old", "k=1")


def test_readers_of_a_dropped_partition_finish(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    make_partitioned(rpc, world)
    reader = world.reader("p", "k=1")
    rpc.drop_partition("default", "p", ["1"], True)
    assert world.clean().removed == []
    assert reader.rows() == ["old"]
    reader.end()
    assert world.clean().removed == [f"file:{warehouse}/p/k=1"]
    assert os.listdir(warehouse / "p") == []


def test_a_partition_that_is_there_again_does_not_show_what_was_dropped(
    rpc: Rpc, world: AcidWorld, warehouse: Path
) -> None:
    make_partitioned(rpc, world)
    reader = world.reader("p", "k=1")
    rpc.drop_partition("default", "p", ["1"], True)
    rpc.add_partition(partition(["1"]))
    assert world.rows("p", "k=1") == []
    world.write("p", "new", "k=1")
    assert world.rows("p", "k=1") == ["new"]
    assert reader.rows() == ["old"]
    reader.end()
    world.clean()
    assert world.rows("p", "k=1") == ["new"]
    assert sorted(os.listdir(warehouse / "p" / "k=1")) == ["base_0000002", "delta_0000003_0000003_0000"]


def test_a_drop_waits_for_a_writer_for_a_while_and_goes_on(
    make_catalog: Callable[..., CatalogService], db: Database
) -> None:
    catalog = make_catalog(truncate_wait_ms=100)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    make_partitioned(rpc, world)
    writing = world.begin()
    world.write("p", "late", "k=1", txn_id=writing)
    rpc.drop_partition("default", "p", ["1"], True)
    with pytest.raises(MetaError):
        rpc.get_table("default", "p")
    assert rpc.get_partition_names("default", "p", -1) == []


def test_a_drop_under_the_clients_write_id_counts_with_its_commit(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    """As Hive with hive.acid.droppartition.usebase: deleteData is false, the context names transaction and write id."""
    make_partitioned(rpc, world)
    reader = world.reader("p", "k=1")
    own = world.begin(TxnType.SOFT_DELETE)
    ((_, write_id),) = world.write_ids.allocate("default", "p", [own])
    context = ttypes.EnvironmentContext(properties={"txnId": str(own), "writeId": str(write_id)})
    rpc.drop_partition_with_environment_context("default", "p", ["1"], False, context)
    assert world.clean().removed == []
    world.txns.commit_txn(own)
    assert reader.rows() == ["old"]
    rpc.add_partition(partition(["1"]))
    assert world.rows("p", "k=1") == []
    rpc.drop_partition("default", "p", ["1"], True)
    reader.end()
    world.clean()
    world.clean()
    assert os.listdir(warehouse / "p") == []


def test_aborted_rows_stay_so_in_files_that_a_drop_leaves(rpc: Rpc, world: AcidWorld) -> None:
    make_partitioned(rpc, world)
    aborted = world.begin()
    world.write("p", "aborted", "k=1", txn_id=aborted)
    world.txns.abort_txn(aborted)
    rpc.drop_partition("default", "p", ["1"], False)
    world.db.call("purge_txns", 0, 100)
    rpc.add_partition(partition(["1"]))
    assert world.rows("p", "k=1") == ["old"]
