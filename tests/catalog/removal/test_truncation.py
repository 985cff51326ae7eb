"""Truncating tables: rows go, tables and partitions stay, and readers under way keep their snapshots."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hive_acid.errors import InvalidOperationError, MetaError, NoSuchObjectError, TxnAbortedError
from hive_acid.wire import ttypes
from metastore.catalog.removal import overwrites
from metastore.catalog.service import CatalogService
from metastore.lock.models import LockComponent
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.states import Operation
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

KEYS = (column("k", "string"),)
INSERT_ONLY = ACID | {"transactional_properties": "insert_only"}


@pytest.fixture
def t(rpc: Rpc, world: AcidWorld) -> str:
    """An ACID table with a row."""
    rpc.create_table(table("t", parameters=ACID | {"numRows": "1", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}))
    world.write("t", "old")
    return "t"


@pytest.fixture
def p(rpc: Rpc, world: AcidWorld) -> str:
    """A partitioned ACID table with a row in each of two partitions."""
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    for value in ("1", "2"):
        rpc.add_partition(partition([value]))
        world.write("p", f"old {value}", f"k={value}")
    return "p"


def test_an_acid_table_is_empty_for_new_readers_only(rpc: Rpc, world: AcidWorld, t: str) -> None:
    reader = world.reader(t)
    rpc.truncate_table("default", t, None)
    assert world.rows(t) == []
    assert reader.rows() == ["old"]
    world.write(t, "new")
    assert world.rows(t) == ["new"]
    world.clean()
    assert reader.rows() == ["old"]
    reader.end()
    world.clean()
    directory = Path(world.location(t).removeprefix("file:"))
    assert sorted(os.listdir(directory)) == ["base_0000002", "delta_0000003_0000003_0000"]
    assert sorted(os.listdir(directory / "base_0000002")) == ["_orc_acid_version", "bucket_00000"]
    assert world.rows(t) == ["new"]


@pytest.mark.parametrize("by_client", [False, True])
def test_statistics_are_reset(rpc: Rpc, world: AcidWorld, t: str, by_client: bool) -> None:
    """Whoever writes the base: nobody plans by the rows of before."""
    own = world.begin()
    write_id = world.write_ids.allocate("default", t, [own])[0][1] if by_client else None
    rpc.truncate_table_req(ttypes.TruncateTableRequest(dbName="default", tableName=t, writeId=write_id))
    world.txns.commit_txn(own)
    found = world.catalog.tables.get("default", t).parameters
    assert found["numRows"] == "0"
    assert "COLUMN_STATS_ACCURATE" not in found


def test_named_partitions(rpc: Rpc, world: AcidWorld, p: str) -> None:
    rpc.truncate_table_req(ttypes.TruncateTableRequest(dbName="default", tableName=p, partNames=["k=1"]))
    assert (world.rows(p, "k=1"), world.rows(p, "k=2")) == ([], ["old 2"])
    rpc.truncate_table("default", p, [])
    assert world.rows(p, "k=2") == ["old 2"]
    rpc.truncate_table("default", p, None)
    assert world.rows(p, "k=2") == []
    assert rpc.get_partition_names("default", p, -1) == ["k=1", "k=2"]


def test_under_the_clients_write_id_it_counts_with_its_commit(rpc: Rpc, world: AcidWorld, t: str) -> None:
    own = world.begin()
    ((_, write_id),) = world.write_ids.allocate("default", t, [own])
    request = ttypes.TruncateTableRequest(dbName="default", tableName=t, writeId=write_id, validWriteIdList="")
    rpc.truncate_table_req(request)
    rpc.truncate_table_req(request)  # a lost reply
    assert world.rows(t) == ["old"]
    world.txns.commit_txn(own)
    assert world.rows(t) == []
    with pytest.raises(MetaError, match="belongs to no open transaction: it is committed"):
        rpc.truncate_table_req(request)


def test_an_aborted_truncation_leaves_nothing(rpc: Rpc, world: AcidWorld, t: str) -> None:
    own = world.begin()
    ((_, write_id),) = world.write_ids.allocate("default", t, [own])
    rpc.truncate_table_req(ttypes.TruncateTableRequest(dbName="default", tableName=t, writeId=write_id))
    world.txns.abort_txn(own)
    assert world.rows(t) == ["old"]
    world.db.call("aborts_cleaned", "default", t, None, [], [])
    assert world.count("txn_component", t) == 1  # it is known until its base is gone


def test_it_conflicts_with_a_change_under_way(rpc: Rpc, world: AcidWorld, t: str) -> None:
    """An update that does not know of it would bring rows back."""
    updating = world.begin()
    rpc.truncate_table("default", t, None)
    world.write(t, "changed", operation=Operation.UPDATE, txn_id=updating)
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(updating)
    assert world.rows(t) == []


def test_it_waits_for_a_writer_under_way(rpc: Rpc, world: AcidWorld, t: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows have a smaller write id than the base: they would be lost without a word."""
    writing = world.begin()
    world.write(t, "late", txn_id=writing)
    looks = threading.Semaphore(0)
    heartbeat = world.catalog.truncations._overwrites._txns.heartbeat
    monkeypatch.setattr(
        world.catalog.truncations._overwrites._txns,
        "heartbeat",
        lambda txn_id: (heartbeat(txn_id), looks.release()),
    )
    truncation = threading.Thread(target=rpc.truncate_table, args=("default", t, None))
    truncation.start()
    for _ in range(5):
        assert looks.acquire(timeout=10)
    assert world.rows(t) == ["old"]
    ((_, later),) = world.write_ids.allocate("default", t, [world.begin()])
    assert later == 4, "old, late, and one for the truncation, however often it looks"
    world.txns.commit_txn(writing)
    truncation.join(10)
    assert world.rows(t) == []


def test_a_writer_that_does_not_end(make_catalog: Callable[..., CatalogService], db: Database) -> None:
    catalog = make_catalog(truncate_wait_ms=0)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    rpc.create_table(table("t", parameters=ACID))
    writing = world.begin()
    world.write("t", "late", txn_id=writing)
    with pytest.raises(MetaError, match=f"is being written by transaction {writing}: try again"):
        rpc.truncate_table("default", "t", None)
    assert world.count("compaction", "t") == 0
    world.txns.commit_txn(writing)
    assert world.rows("t") == ["late"]


@pytest.mark.parametrize(("locked_table", "locked_partition"), [(None, None), ("p", None), ("p", "k=1")])
@pytest.mark.parametrize("verb", ["truncate", "drop"])
def test_the_transaction_in_which_it_is_asked_for_is_not_waited_for(
    rpc: Rpc,
    world: AcidWorld,
    p: str,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    locked_table: str | None,
    locked_partition: str | None,
) -> None:
    """Hive has a write id and an exclusive lock when it calls; the server waited for it for ten seconds."""
    monkeypatch.setattr(
        overwrites, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: pytest.fail("it waits"))
    )
    own = world.begin_alone(p, LockComponent(LockType.EXCLUSIVE, "default", locked_table, locked_partition))
    if verb == "truncate":
        rpc.truncate_table("default", p, ["k=1"])
        assert world.rows(p, "k=1") == []
    else:
        rpc.drop_partition("default", p, ["1"], True)
        assert rpc.get_partition_names("default", p, -1) == ["k=2"]
    world.txns.commit_txn(own)
    assert world.rows(p, "k=2") == ["old 2"]


@pytest.mark.parametrize("component", [
    LockComponent(LockType.EXCL_WRITE, "default", "p", "k=1"), LockComponent(LockType.EXCLUSIVE, "default", "p", "k=2"),
    LockComponent(LockType.EXCLUSIVE, "default", "other"), LockComponent(LockType.EXCLUSIVE, "other"),
])  # fmt: skip
def test_who_has_something_else_to_himself_is_waited_for(
    make_catalog: Callable[..., CatalogService], db: Database, component: LockComponent
) -> None:
    catalog = make_catalog(truncate_wait_ms=0)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partition(partition(["1"]))
    own = world.begin_alone("p", component)
    with pytest.raises(MetaError, match=f"is being written by transaction {own}"):
        rpc.truncate_table("default", "p", ["k=1"])


def test_a_failure_takes_its_bases_back(
    rpc: Rpc, world: AcidWorld, p: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = overwrites.write_empty_base  # type: ignore[attr-defined]

    def failing(*args: object) -> None:
        if written:
            raise MetaError("the disk is full")
        written.append(str(args[1]))
        write(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(overwrites, "write_empty_base", failing)
    with pytest.raises(MetaError, match="disk is full"):
        rpc.truncate_table("default", p, None)
    assert [name for name in os.listdir(warehouse / "p" / "k=1") if name.startswith("base")] == []
    assert (world.rows(p, "k=1"), world.rows(p, "k=2")) == (["old 1"], ["old 2"])
    assert world.txns.get_open_txns().open_ids == []


@pytest.mark.parametrize(
    ("more", "files"),
    [({}, ["000000_0"]), ({"inputFormat": "text", "outputFormat": "text"}, ["_metadata_acid"])],
)
def test_insert_only_tables(rpc: Rpc, world: AcidWorld, more: dict[str, str], files: list[str]) -> None:
    rpc.create_table(table("i", parameters=INSERT_ONLY, sd=storage(**more)))
    world.write("i", "old")
    reader = world.reader("i")
    rpc.truncate_table("default", "i", None)
    assert (world.rows("i"), reader.rows()) == ([], ["old"])
    assert os.listdir(Path(world.location("i").removeprefix("file:")) / "base_0000002") == files


def test_plain_tables_lose_their_files(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    rpc.create_table(table("t", parameters={"numFiles": "1"}))
    rpc.create_table(table("p", keys=KEYS))
    rpc.add_partition(partition(["1"]))
    rpc.add_partition(partition(["2"], sd=storage(location=str(tmp_path / "far"))))
    for place in (warehouse / "t", warehouse / "p/k=1", tmp_path / "far"):
        (place / "below").mkdir()
        (place / "below" / "data").write_text("rows")
    rpc.truncate_table("default", "t", None)
    rpc.truncate_table("default", "p", ["k=2"])
    assert os.listdir(warehouse / "t") == []
    assert os.listdir(tmp_path / "far") == []
    assert os.listdir(warehouse / "p/k=1") == ["below"]
    assert rpc.get_table("default", "t").parameters["numFiles"] == "0"


def test_what_cannot_be_truncated(rpc: Rpc, warehouse: Path, p: str) -> None:
    rpc.create_table(table("v", tableType="VIRTUAL_VIEW"))
    rpc.create_table(table("e", tableType="EXTERNAL_TABLE"))
    (warehouse / "e" / "data").write_text("rows")
    with pytest.raises(InvalidOperationError, match="is a view"):
        rpc.truncate_table("default", "v", None)
    with pytest.raises(InvalidOperationError, match="external"):
        rpc.truncate_table("default", "e", None)
    assert os.listdir(warehouse / "e") == ["data"]
    with pytest.raises(NoSuchObjectError, match="k=3"):
        rpc.truncate_table("default", p, ["k=1", "k=3"])
    with pytest.raises(NoSuchObjectError):
        rpc.truncate_table("default", "nix", None)
    rpc.create_table(table("t"))
    with pytest.raises(NoSuchObjectError, match="not partitioned"):
        rpc.truncate_table("default", "t", ["k=1"])
    assert rpc.undeclared == []


def test_a_server_that_does_no_file_work(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(directories=False))
    rpc.create_table(table("t"))
    with pytest.raises(MetaError, match="does not look at files"):
        rpc.truncate_table("default", "t", None)
