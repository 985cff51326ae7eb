"""The trash: dropped tables come back with partitions, files and write ids, for a while."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid.errors import AlreadyExistsError, MetaError, NoSuchObjectError, TxnAbortedError
from hive_acid.filesystem import files
from hive_acid.format.names import bucket_file_name, delta_name
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockAnswer, LockType
from metastore.store.database import Database
from tests.catalog.acid_world import OWNER, AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

KEYS = (column("k", "string"),)
HOUR_MS = 3_600_000


@pytest.fixture
def catalog(make_catalog: Callable[..., CatalogService]) -> CatalogService:
    return make_catalog(undrop_window_ms=HOUR_MS)


def undrop(rpc: Rpc, name: str, database: str = "default") -> None:
    context = ttypes.EnvironmentContext(properties={"metastore.catalog.undrop": "true"})
    rpc.create_table_with_environment_context(ttypes.Table(dbName=database, tableName=name), context)


def age(db: Database) -> None:
    """Let the window pass."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE dropped_table SET purge_at = clock_timestamp()")


def trash(warehouse: Path) -> list[str]:
    place = warehouse / ".trash"
    return sorted(found.name for found in place.iterdir()) if place.exists() else []


def test_a_plain_table_comes_back_as_it_was(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    rpc.create_table(table("p", keys=KEYS, parameters={"a": "b"}))
    rpc.add_partition(partition(["1"]))
    rpc.add_partition(partition(["2"], sd=storage(column("x"), location=str(tmp_path / "far"))))
    (warehouse / "p/k=1/data").write_text("near")
    (tmp_path / "far/data").write_text("far")
    before = rpc.get_table("default", "p"), rpc.get_partitions("default", "p", -1)
    rpc.drop_table("default", "p", True)
    assert not (warehouse / "p").exists()
    assert not (tmp_path / "far").exists()
    assert rpc.get_all_tables("default") == []
    undrop(rpc, "P")
    assert (rpc.get_table("default", "p"), rpc.get_partitions("default", "p", -1)) == before
    assert (warehouse / "p/k=1/data").read_text() == "near"
    assert (tmp_path / "far/data").read_text() == "far"
    assert trash(warehouse) == []
    with pytest.raises(AlreadyExistsError, match="exists"):
        undrop(rpc, "p")
    with pytest.raises(NoSuchObjectError, match="in the trash"):
        undrop(rpc, "never")


def test_an_acid_table_comes_back_with_its_write_ids(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "one")
    aborting, open_still = world.begin(), world.begin()
    world.write("t", "aborted", txn_id=aborting)
    world.txns.abort_txn(aborting)
    world.write("t", "open", txn_id=open_still)
    world.write("t", "two")
    world.txns.abort_txn(world.begin())
    rpc.drop_table("default", "t", True)
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(open_still)
    undrop(rpc, "t")
    assert world.rows("t") == ["one", "two"]
    assert world.write("t", "three") == 5
    assert world.rows("t") == ["one", "three", "two"]


@pytest.mark.parametrize("commits_before_the_return", [True, False], ids=["before", "after"])
def test_who_writes_to_it_meanwhile_does_not_commit(
    rpc: Rpc, world: AcidWorld, commits_before_the_return: bool
) -> None:
    """What it wrote before the drop does not come back, so that its rows would be lost without a word."""
    for name in ("t", "u"):
        rpc.create_table(table(name, parameters=ACID))
    writing, elsewhere, reading = world.begin(), world.begin(), world.begin()
    world.write("t", "lost", txn_id=writing)
    world.write("u", "kept", txn_id=elsewhere)
    rpc.drop_table("default", "t", True)
    if not commits_before_the_return:
        undrop(rpc, "t")
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(writing)
    if commits_before_the_return:
        undrop(rpc, "t")
    for txn_id in (elsewhere, reading):
        world.txns.commit_txn(txn_id)
    assert world.write("t", "new") == 2
    assert (world.rows("t"), world.rows("u")) == (["new"], ["kept"])


def test_who_waits_for_the_lock_of_a_writer_that_is_aborted_gets_it(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_table(table("t", parameters=ACID))
    writing, waiting = world.begin(), world.begin()
    world.write("t", "lost", txn_id=writing)
    component = LockComponent(LockType.EXCLUSIVE, "default", "t")
    lock = world.locks.lock(LockRequest((component,), OWNER, waiting))
    assert lock.answer is LockAnswer.WAITING
    rpc.drop_table("default", "t", True)
    assert world.locks.check_lock(lock.lock_id).answer is LockAnswer.ACQUIRED


def test_the_transaction_that_drops_is_not_aborted(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "row")
    component = LockComponent(LockType.EXCLUSIVE, "default", "t")
    dropping = world.begin_alone("t", component)
    context = ttypes.EnvironmentContext(properties={"txnId": str(dropping)})
    rpc.drop_table_with_environment_context("default", "t", False, context)
    world.txns.commit_txn(dropping)
    undrop(rpc, "t")
    assert world.rows("t") == ["row"]


def test_write_ids_that_were_given_out_meanwhile_are_not_given_out_again(rpc: Rpc, world: AcidWorld) -> None:
    """Else the files of two transactions would have one write id, and the rows of the one that was aborted be seen."""
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "one")
    reading, late, aborted = world.reader("t"), world.begin(), world.begin()
    rpc.drop_table("default", "t", True)
    given = world.write_ids.allocate("default", "t", [late, aborted])
    world.txns.abort_txn(aborted)
    undrop(rpc, "t")
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(late)
    assert world.write("t", "two") == max(write_id for _, write_id in given) + 1
    for _, write_id in given:
        directory = files.join(world.location("t"), delta_name(write_id, write_id, 0))
        files.make_directory(directory)
        files.write(files.join(directory, bucket_file_name(0)), b"never committed")
    assert world.rows("t") == ["one", "two"]
    assert reading.rows() == ["one"]
    reading.end()


def test_readers_go_on_while_the_table_is_dropped_and_comes_back(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "row")
    reader = world.reader("t")
    rpc.drop_table("default", "t", True)
    undrop(rpc, "t")
    assert (reader.rows(), world.rows("t")) == (["row"], ["row"])
    reader.end()
    world.clean()
    assert world.rows("t") == ["row"]
    assert trash(warehouse) == []


def test_the_cleaner_moves_to_the_trash_what_readers_had_held(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_table(table("t", parameters=ACID))
    world.write("t", "row")
    reader = world.reader("t")
    rpc.drop_table("default", "t", True)
    reader.end()
    world.clean()
    assert not (warehouse / "t").exists()
    assert len(trash(warehouse)) == 1
    undrop(rpc, "t")
    assert world.rows("t") == ["row"]


def test_of_several_the_last_comes_back(rpc: Rpc, world: AcidWorld) -> None:
    for text in ("first", "second"):
        rpc.create_table(table("t", parameters=ACID))
        world.write("t", text)
        rpc.drop_table("default", "t", True)
    undrop(rpc, "t")
    assert world.rows("t") == ["second"]
    with pytest.raises(AlreadyExistsError, match="exists"):
        undrop(rpc, "t")
    rpc.alter_table("default", "t", table("second", parameters=ACID))
    undrop(rpc, "t")
    assert (world.rows("t"), world.rows("second")) == (["first"], ["second"])


def test_when_the_window_has_passed_the_files_go(
    rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path
) -> None:
    rpc.create_table(table("t"))
    rpc.drop_table("default", "t", True)
    assert catalog.tidy() == 0
    age(db)
    assert catalog.tidy() == 1
    assert trash(warehouse) == []
    with pytest.raises(NoSuchObjectError):
        undrop(rpc, "t")


@pytest.mark.parametrize(
    ("parameters", "properties"), [({"auto.purge": "TRUE"}, {}), ({}, {"ifPurge": "TRUE"})], ids=["table", "call"]
)
def test_purge_goes_past_the_trash(
    rpc: Rpc, warehouse: Path, parameters: dict[str, str], properties: dict[str, str]
) -> None:
    rpc.create_table(table("t", parameters=parameters))
    context = ttypes.EnvironmentContext(properties=properties)
    rpc.drop_table_req(ttypes.DropTableRequest(dbName="default", tableName="t", deleteData=True, envContext=context))
    assert trash(warehouse) == []
    with pytest.raises(NoSuchObjectError):
        undrop(rpc, "t")


def test_tables_of_a_dropped_database(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t", "d"))
    (warehouse / "d.db/t/data").write_text("rows")
    rpc.drop_database("d", True, True)
    assert not (warehouse / "d.db").exists()
    with pytest.raises(AlreadyExistsError, match="its database is gone"):
        undrop(rpc, "t", "d")
    assert len(trash(warehouse)) == 1
    rpc.create_database(ttypes.Database(name="d"))
    undrop(rpc, "t", "d")
    assert (warehouse / "d.db/t/data").read_text() == "rows"


def test_external_tables_and_views_come_back_too(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("e", tableType="EXTERNAL_TABLE"))
    rpc.create_table(table("v", tableType="VIRTUAL_VIEW", viewExpandedText="select 1"))
    (warehouse / "e/data").write_text("rows")
    for name in ("e", "v"):
        rpc.drop_table("default", name, True)
        undrop(rpc, name)
    assert (warehouse / "e/data").read_text() == "rows"
    assert rpc.get_table("default", "v").viewExpandedText == "select 1"


def test_a_move_that_was_interrupted_is_finished_first(
    rpc: Rpc, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rpc.create_table(table("t"))
    (warehouse / "t/data").write_text("rows")

    def broken(source: str, target: str) -> None:
        raise PermissionError("no access")

    with monkeypatch.context() as patch:
        patch.setattr(files, "rename", broken)
        rpc.drop_table("default", "t", True)
    assert (warehouse / "t").exists()
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE directory_removal SET claimed_at = claimed_at - interval '1 day'")
    undrop(rpc, "t")
    assert (warehouse / "t/data").read_text() == "rows"


def test_of_two_who_ask_one_brings_it_back(rpc: Rpc, catalog: CatalogService) -> None:
    rpc.create_table(table("t"))
    rpc.drop_table("default", "t", True)
    outcomes: list[str] = []

    def ask() -> None:
        try:
            undrop(Rpc(catalog), "t")
            outcomes.append("back")
        except (AlreadyExistsError, NoSuchObjectError):
            outcomes.append("refused")
        except MetaError as error:  # whoever looks in this instant finds nothing in the trash, nor a table
            outcomes.append("refused" if str(error).endswith("is being moved: try again") else str(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["back", "refused", "refused", "refused"]
    assert rpc.get_all_tables("default") == ["t"]


def test_without_a_window_nothing_is_kept(make_catalog: Callable[..., CatalogService], warehouse: Path) -> None:
    rpc = Rpc(make_catalog())
    rpc.create_table(table("t"))
    rpc.drop_table("default", "t", True)
    assert trash(warehouse) == []
    with pytest.raises(NoSuchObjectError):
        undrop(rpc, "t")
