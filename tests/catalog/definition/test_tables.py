"""Tables over RPC: create, get, list, drop, and the guard before ACID tables."""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnknownDBError,
    UnknownTableError,
)
from hive_acid.filesystem import files
from hive_acid.wire import ttypes
from metastore.catalog.removal.removals import Removal
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table


def test_create_fills_in_what_the_client_left_out(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("T1", sd=storage(column("A", "int", "first"))))
    found = rpc.get_table("DEFAULT", "t1")
    assert (found.tableName, found.dbName, found.catName, found.owner) == ("t1", "default", "hive", None)
    assert (found.tableType, found.ownerType) == ("MANAGED_TABLE", 1)
    assert found.sd.location == f"file:{warehouse}/t1"
    assert found.sd.cols == [column("a", "int", "first")]
    assert found.createTime == int(found.parameters["transient_lastDdlTime"]) > 1_000_000_000
    assert (found.sd.numBuckets, found.sd.bucketCols, found.sd.compressed, found.retention) == (-1, [], False, 0)
    assert found.id > 0
    assert (warehouse / "t1").is_dir()


def test_get_table_is_one_round_trip(rpc: Rpc, db: Database) -> None:
    rpc.create_table(table("t"))
    before = db.calls
    rpc.get_table("default", "t")
    assert db.calls == before + 1


def test_every_form_of_create_and_get(rpc: Rpc) -> None:
    rpc.create_table(table("a"))
    rpc.create_table_with_environment_context(table("b"), ttypes.EnvironmentContext(properties={}))
    rpc.create_table_with_constraints(table("c"), [], None)
    rpc.create_table_req(ttypes.CreateTableRequest(table=table("d")))
    assert rpc.get_all_tables("@hive#default") == ["a", "b", "c", "d"]
    assert rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName="D")).table.tableName == "d"
    assert [found.tableName for found in rpc.get_table_objects_by_name("default", ["C", "a", "nix"])] == ["a", "c"]
    request = ttypes.GetTablesRequest(dbName="default", tablesPattern="a|b")
    assert [found.tableName for found in rpc.get_table_objects_by_name_req(request).tables] == ["a", "b"]
    with pytest.raises(MetaError, match="does not say its column_name"):
        rpc.create_table_with_constraints(table("e"), [ttypes.SQLPrimaryKey()])
    assert rpc.undeclared == []


def test_lists(rpc: Rpc) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t1", "d", parameters={"comment": "words"}))
    rpc.create_table(table("t2", "d", tableType="EXTERNAL_TABLE"))
    rpc.create_table(table("v1", "d", tableType="VIRTUAL_VIEW", viewOriginalText="select 1"))
    assert rpc.get_tables("d", "T*") == ["t1", "t2"]
    assert rpc.get_tables("d", "*") == rpc.get_tables("d", None) == ["t1", "t2", "v1"]
    assert rpc.get_tables_by_type("d", ".*", "VIRTUAL_VIEW") == ["v1"]
    assert rpc.get_all_tables("nix") == []
    [meta] = rpc.get_table_meta("d*", "t1|v9", [])
    assert (meta.dbName, meta.tableName, meta.tableType, meta.comments) == ("d", "t1", "MANAGED_TABLE", "words")
    assert [m.tableName for m in rpc.get_table_meta("@hive#", "*", ["EXTERNAL_TABLE"])] == ["t2"]


def test_fields_and_schema(rpc: Rpc) -> None:
    rpc.create_table(table("p", keys=(column("k", "string"),)))
    assert [field.name for field in rpc.get_fields("default", "p")] == ["a", "b"]
    assert [field.name for field in rpc.get_schema_with_environment_context("default", "p")] == ["a", "b", "k"]
    request = ttypes.GetSchemaRequest(dbName="default", tblName="p")
    assert [field.name for field in rpc.get_schema_req(request).fields] == ["a", "b", "k"]
    with pytest.raises(UnknownTableError):
        rpc.get_fields("default", "nix")
    with pytest.raises(UnknownDBError):
        rpc.get_schema("nix", "nix")


def test_what_is_not_there(rpc: Rpc) -> None:
    with pytest.raises(NoSuchObjectError, match=r"hive\.default\.nix table not found"):
        rpc.get_table("default", "nix")
    with pytest.raises(NoSuchObjectError):
        rpc.get_table_req(ttypes.GetTableRequest(dbName="nix", tblName="nix"))
    with pytest.raises(NoSuchObjectError):
        rpc.drop_table("default", "nix", True)
    with pytest.raises(InvalidObjectError, match="database nix"):
        rpc.create_table(table("t", "nix"))
    with pytest.raises(UnknownDBError):
        rpc.get_table_objects_by_name_req(ttypes.GetTablesRequest(dbName="nix", tblNames=[]))


@pytest.mark.parametrize(
    ("struct", "words"),
    [
        (table("a b"), "not a valid table name"),
        (table(""), "not a valid table name"),
        (table("t", sd=storage(column("a"), column("A"))), "defined twice"),
        (table("t", keys=(column("B"),)), "defined twice"),
        (table("t", sd=storage(column("a", ""))), "no type"),
        (table("t", sd=storage(column("a", "nosuchtype"))), "nosuchtype"),
        (table("t", parameters={"k": "a\0b"}), "zero bytes"),
        (table("t", owner=b"\xff"), "UTF-8"),
        (table(b"\xff"), "UTF-8"),
        (table("t", sd=storage(column(b"\xff"))), "UTF-8"),
    ],
)
def test_definitions_that_cannot_be(rpc: Rpc, warehouse: Path, struct: Any, words: str) -> None:
    with pytest.raises(InvalidObjectError, match=words):
        rpc.create_table(struct)
    assert rpc.get_all_tables("default") == []
    assert list(warehouse.iterdir()) == []


def test_create_twice_leaves_the_first(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t"))
    with pytest.raises(AlreadyExistsError):
        rpc.create_table(table("T", sd=storage(location=f"{warehouse}/other")))
    assert (warehouse / "t").is_dir()
    assert not (warehouse / "other").exists()


def test_concurrent_creates_have_one_winner(catalog: CatalogService, warehouse: Path) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def create() -> None:
        start.wait()
        try:
            Rpc(catalog).create_table(table("t"))
            outcomes.append("created")
        except AlreadyExistsError:
            outcomes.append("exists")

    _in_threads(create, 8)
    assert sorted(outcomes) == ["created"] + ["exists"] * 7
    assert (warehouse / "t").is_dir()


def test_a_failed_insert_takes_its_directory_back(rpc: Rpc, db: Database, warehouse: Path) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE tbl ADD CHECK (name <> 'bad')")
    with pytest.raises(Exception, match="bad"):
        rpc.create_table(table("bad"))
    assert not (warehouse / "bad").exists()


def test_a_directory_that_cannot_be_made_leaves_no_table(rpc: Rpc, warehouse: Path) -> None:
    (warehouse / "t").write_text("in the way")
    with pytest.raises(MetaError, match="t"):
        rpc.create_table(table("t", sd=storage(location=f"{warehouse}/t/below")))
    assert rpc.get_all_tables("default") == []


def test_unknown_file_system(rpc: Rpc) -> None:
    with pytest.raises(MetaError, match="nosuchscheme"):
        rpc.create_table(table("t", sd=storage(location="nosuchscheme://host/t")))


@pytest.mark.parametrize(
    ("table_type", "parameters", "kept"),
    [
        ("MANAGED_TABLE", {}, False),
        ("EXTERNAL_TABLE", {}, True),
        ("MANAGED_TABLE", {"EXTERNAL": "TRUE"}, True),
        ("EXTERNAL_TABLE", {"external.table.purge": "true"}, False),
    ],
)
def test_drop_removes_files_that_the_table_owns(
    rpc: Rpc, warehouse: Path, tmp_path: Path, table_type: str, parameters: dict[str, str], kept: bool
) -> None:
    rpc.create_table(table("t", tableType=table_type, parameters=parameters, keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "t"))
    rpc.add_partition(partition(["2"], "t", sd=storage(location=str(tmp_path / "far"))))
    rpc.drop_table("default", "t", True)
    assert (warehouse / "t").exists() is kept
    assert (tmp_path / "far").exists() is kept
    assert rpc.get_all_tables("default") == []


def test_drop_without_delete_data_keeps_files(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t"))
    rpc.drop_table_req(ttypes.DropTableRequest(dbName="default", tableName="t"))
    assert (warehouse / "t").is_dir()


def test_a_drop_leaves_the_files_of_others_alone(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    rpc.create_table(table("neighbour"))
    rpc.create_table(table("root", sd=storage(location=str(warehouse))))
    rpc.create_table(table("above", sd=storage(location=str(tmp_path))))
    rpc.create_table(table("p", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], sd=storage(location=str(warehouse / "p"))))
    rpc.drop_partition("default", "p", ["1"], True)
    for name in ("root", "above"):
        rpc.drop_table("default", name, True)
    assert (warehouse / "neighbour").is_dir()
    assert (warehouse / "p").is_dir()
    rpc.drop_table("default", "neighbour", True)
    assert not (warehouse / "neighbour").exists()


def test_a_drop_that_deadlocks_is_repeated(rpc: Rpc, db: Database) -> None:
    rpc.create_table(table("t", parameters=ACID))
    [(txn_id, _)] = db.call("open_txns", [1], [0], ["ann"], ["host"], [""], [None], [], [], [], 1000)
    db.call("allocate_write_ids", [0], ["default"], ["t"], [txn_id])
    db.call("commit_txns", [txn_id], [False], "")
    with db.engine.connect() as other:
        other.exec_driver_sql("SET deadlock_timeout = '10s'")  # the drop is the one that Postgres picks
        other.exec_driver_sql("SELECT 1 FROM write_id FOR UPDATE")
        drop = threading.Thread(target=rpc.drop_table, args=("default", "t", True))
        drop.start()
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with db.engine.connect() as watcher:  # a transaction of its own: what it sees stays the same to its end
                if watcher.exec_driver_sql(waiting).scalar():
                    break
        other.exec_driver_sql("SELECT 1 FROM tbl WHERE name = 't' FOR UPDATE")
        other.rollback()
    drop.join(10)
    assert rpc.get_all_tables("default") == []
    assert db.call("get_max_write_id", "default", "t") == [(0,)]


def test_type_and_parameter_external_agree(rpc: Rpc) -> None:
    rpc.create_table(table("a", tableType="EXTERNAL_TABLE"))
    rpc.create_table(table("b", parameters={"EXTERNAL": "true"}))
    assert rpc.get_table("default", "a").parameters["EXTERNAL"] == "TRUE"
    assert rpc.get_table("default", "b").tableType == "EXTERNAL_TABLE"


def test_views_have_no_directory(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("v", tableType="VIRTUAL_VIEW", viewExpandedText="select 1"))
    assert rpc.get_table("default", "v").sd.location is None
    rpc.drop_table("default", "v", True)
    assert list(warehouse.iterdir()) == []


def test_no_file_work_if_switched_off(make_catalog: Callable[..., CatalogService], warehouse: Path) -> None:
    rpc = Rpc(make_catalog(directories=False))
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t", "d", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "t", "d"))
    assert rpc.get_table("d", "t").sd.location == f"file:{warehouse}/d.db/t"
    rpc.alter_table("d", "t", table("u", "d", keys=(column("k"),)))
    assert rpc.get_table("d", "u").sd.location == f"file:{warehouse}/d.db/t"
    rpc.drop_database("d", True, True)
    assert not warehouse.exists()


# --- removals ---


def test_a_removal_that_failed_is_taken_up_again(
    rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rpc.create_table(table("t"))

    def broken(location: str) -> bool:
        raise PermissionError(f"no access to {location}")

    with monkeypatch.context() as patch:
        patch.setattr(files, "remove", broken)
        rpc.drop_table("default", "t", True)
    assert (warehouse / "t").is_dir()
    assert catalog.removals.run_due() == 0
    (waiting,) = catalog.removals.waiting()
    assert (waiting.owner, waiting.attempts) == ("default.t", 1)
    assert "no access" in (waiting.error or "")
    assert 5_000 < waiting.next_ms - waiting.noted_ms < 15_000
    make_due(db)
    assert catalog.removals.run_due() == 1
    assert not (warehouse / "t").exists()
    assert catalog.removals.waiting() == []


def make_due(db: Database) -> None:
    """As if the pauses before the next attempts were over."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE directory_removal SET next_at = clock_timestamp() WHERE next_at IS NOT NULL")


def test_a_directory_that_cannot_be_removed_keeps_nothing_else(
    make_catalog: Callable[..., CatalogService], rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path
) -> None:
    """A row that can never be done (a version without the check let it in): the start, others and drops go on."""
    rpc.create_table(table("t"))
    with db.engine.begin() as connection:
        for location in ("data:,abc", "http://127.0.0.1:1/x", "zip::file:///x.zip", "s3a://no-such-bucket/x"):
            connection.exec_driver_sql(
                "INSERT INTO directory_removal (location, only_if_empty, next_at)"
                f" VALUES ('{location}', false, clock_timestamp())"
            )
        connection.exec_driver_sql(
            "INSERT INTO directory_removal (location, only_if_empty, next_at)"
            f" VALUES ('file:{warehouse}/t', false, clock_timestamp())"
        )
    again = make_catalog()  # a server starts
    assert (warehouse / "t").is_dir()
    assert again.tidy() == 1
    assert not (warehouse / "t").exists()
    waiting = {removal.location: removal for removal in again.removals.waiting()}
    assert all(removal.attempts == 1 and removal.error for removal in waiting.values())
    assert len(waiting) == 4
    for _ in range(12):
        make_due(db)
        assert again.tidy() == 0
    worst = max(removal.next_ms for removal in again.removals.waiting()) - time.time() * 1000
    assert 3_000_000 < worst <= 3_600_000  # an hour
    poison = waiting["data:,abc"]
    again.removals.forget(poison.id)
    assert poison.id not in [removal.id for removal in again.removals.waiting()]
    with pytest.raises(NoSuchObjectError, match=str(poison.id)):
        again.removals.forget(poison.id)


def test_a_server_that_starts_frees_what_its_dead_predecessor_was_at(
    make_catalog: Callable[..., CatalogService], rpc: Rpc, db: Database, warehouse: Path
) -> None:
    rpc.create_table(table("t"))
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO directory_removal (location, only_if_empty, claimed_by)"
            f" VALUES ('file:{warehouse}/t', false, '{socket.gethostname()}:{2**22 + 1}')"
        )
    again = make_catalog()
    assert (warehouse / "t").is_dir()
    assert again.tidy() == 1
    assert not (warehouse / "t").exists()


@pytest.mark.parametrize("followed", [False, True])
def test_who_was_paused_for_long_removes_nothing(
    rpc: Rpc, catalog: CatalogService, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch, followed: bool
) -> None:
    """It has claimed the directory, and wakes up when another one has removed it and a new table lies there."""
    rpc.create_table(table("t"))
    removals = catalog.removals
    run = removals.run

    def paused(planned: list[Removal]) -> int:
        with db.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE directory_removal SET claimed_at = claimed_at - interval '1 hour'")
        if followed:
            monkeypatch.setattr(removals, "run", run)
            assert removals.run_due() == 1
            rpc.create_table(table("t"))
        return run(planned)

    monkeypatch.setattr(removals, "run", paused)
    rpc.drop_table("default", "t", True)
    assert (warehouse / "t").is_dir()
    monkeypatch.setattr(removals, "run", run)
    assert removals.run_due() == (0 if followed else 1)
    assert (warehouse / "t").is_dir() is followed


def test_a_new_table_waits_for_the_removal_in_its_place(
    rpc: Rpc, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rpc.create_table(table("t"))
    (warehouse / "t" / "old").write_text("old")
    started, go_on, remove = threading.Event(), threading.Event(), files.remove

    def slow(location: str) -> bool:
        started.set()
        assert go_on.wait(10)
        return remove(location)

    monkeypatch.setattr(files, "remove", slow)
    drop = threading.Thread(target=rpc.drop_table, args=("default", "t", True))
    drop.start()
    assert started.wait(10)
    create = threading.Thread(target=rpc.create_table, args=(table("t"),))
    create.start()
    create.join(0.2)
    assert create.is_alive()
    go_on.set()
    for thread in (drop, create):
        thread.join(10)
    assert rpc.get_all_tables("default") == ["t"]
    assert list((warehouse / "t").iterdir()) == []


def test_a_removal_that_does_not_end_refuses_the_new_table(
    rpc: Rpc, monkeypatch: pytest.MonkeyPatch, db: Database, warehouse: Path
) -> None:
    monkeypatch.setattr("metastore.catalog.removal.removals.WAIT_S", 0.1)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO directory_removal (location, only_if_empty) VALUES ('file:{warehouse}/t', false)"
        )
    with pytest.raises(InvalidOperationError, match="still being removed"):
        rpc.create_table(table("t"))


# --- the guard (wire.md §5.9) ---


def test_the_guard_refuses_a_bare_get_of_an_acid_table(rpc: Rpc) -> None:
    rpc.create_table(table("acid", parameters=ACID))
    rpc.create_table(table("inserts", parameters=ACID | {"transactional_properties": "insert_only"}))
    rpc.create_table(table("plain"))
    with pytest.raises(MetaError, match=r"hive_acid\.connect"):
        rpc.get_table("default", "acid")
    assert rpc.get_table("default", "inserts").tableName == "inserts"
    names = ["acid", "inserts", "plain"]
    assert [found.tableName for found in rpc.get_table_objects_by_name("default", names)] == ["inserts", "plain"]
    assert rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName="acid")).table.tableName == "acid"


@pytest.mark.parametrize("guard", ["warn", "allow"])
def test_the_guard_can_let_pass(
    make_catalog: Callable[..., CatalogService], guard: str, caplog: pytest.LogCaptureFixture
) -> None:
    rpc = Rpc(make_catalog(acid_guard=guard))
    rpc.create_table(table("acid", parameters=ACID))
    assert rpc.get_table("default", "acid").parameters["transactional"] == "true"
    assert ("default.acid" in caplog.text) is (guard == "warn")


@pytest.mark.parametrize(
    ("capabilities", "access"),
    [
        (None, None),
        (["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"], 8),
        (["HIVEFULLACIDREAD"], 2),
        (["CONNECTORWRITE"], 8),
        (["EXTREAD"], 1),
        (["MANAGERAWMETADATA"], 8),
    ],
)
def test_access_type_for_clients_that_name_capabilities(rpc: Rpc, capabilities: list[str] | None, access: int) -> None:
    rpc.create_table(table("acid", parameters=ACID))
    request = ttypes.GetTableRequest(dbName="default", tblName="acid", processorCapabilities=capabilities)
    assert rpc.get_table_req(request).table.accessType == access


def _in_threads(function: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
