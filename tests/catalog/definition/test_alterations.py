"""Changes of tables: renames with their directories, compare-and-set, what is kept."""

import threading
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hive_acid.filesystem import files
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

KEYS = (column("k", "string"),)


def alter(rpc: Rpc, name: str, new: Any, **properties: str) -> None:
    context = ttypes.EnvironmentContext(properties=properties)
    rpc.alter_table_with_environment_context("default", name, new, context)


def test_alter_keeps_what_the_client_leaves_out(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t", owner="bob", createTime=7))
    before = rpc.get_table("default", "t")
    alter(rpc, "T", ttypes.Table(dbName="Default", tableName="T", sd=storage(), parameters={"k": "v"}, createTime=8))
    after = rpc.get_table("default", "t")
    assert (after.owner, after.createTime, after.id, after.tableType) == (
        "bob",
        before.createTime,
        before.id,
        "MANAGED_TABLE",
    )
    assert after.sd.location == f"file:{warehouse}/t"
    assert after.parameters.keys() == {"k", "transient_lastDdlTime"}


def test_an_unknown_table_is_an_invalid_operation(rpc: Rpc) -> None:
    for call in (
        lambda: rpc.alter_table("default", "nix", table("nix")),
        lambda: rpc.alter_table_with_cascade("default", "nix", table("nix"), True),
        lambda: rpc.alter_table_req(ttypes.AlterTableRequest(dbName="default", tableName="nix", table=table("nix"))),
        lambda: rpc.alter_table("default", "nix", table("nix", parameters={"a": "\0"})),
    ):
        with pytest.raises(InvalidOperationError):
            call()
    assert rpc.undeclared == []


def test_rename_moves_the_directory_and_what_is_below(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    rpc.create_table(table("p", keys=KEYS))
    rpc.add_partition(partition(["1"]))
    rpc.add_partition(partition(["2"], sd=storage(location=str(tmp_path / "far"))))
    (warehouse / "p/k=1/data").write_text("rows")
    alter(rpc, "p", table("Q", keys=KEYS))
    with pytest.raises(NoSuchObjectError):
        rpc.get_table("default", "p")
    assert rpc.get_table("default", "q").sd.location == f"file:{warehouse}/q"
    assert (warehouse / "q/k=1/data").read_text() == "rows"
    assert not (warehouse / "p").exists()
    assert rpc.get_partition("default", "q", ["1"]).sd.location == f"file:{warehouse}/q/k=1"
    assert rpc.get_partition("default", "q", ["2"]).sd.location == f"file:{tmp_path}/far"


def test_rename_into_another_database(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t"))
    alter(rpc, "t", table("t", "d"))
    assert rpc.get_table("d", "t").sd.location == f"file:{warehouse}/d.db/t"
    assert (warehouse / "d.db/t").is_dir()
    with pytest.raises(InvalidOperationError, match="database nix does not exist"):
        rpc.alter_table("d", "t", table("t", "nix"))


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_tables_elsewhere_keep_their_directory(rpc: Rpc, tmp_path: Path, kind: str) -> None:
    rpc.create_table(table("t", tableType=kind, sd=storage(location=str(tmp_path / "own"))))
    alter(rpc, "t", table("u", tableType=kind, sd=storage(location=str(tmp_path / "own"))))
    assert rpc.get_table("default", "u").sd.location == f"file:{tmp_path}/own"
    assert (tmp_path / "own").is_dir()


def test_rename_does_not_take_what_is_there(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t"))
    rpc.create_table(table("u"))
    with pytest.raises(InvalidOperationError, match=r"default\.u exists already"):
        alter(rpc, "t", table("u"))
    (warehouse / "v").mkdir()
    with pytest.raises(InvalidOperationError, match=r"directory .*/v exists already"):
        alter(rpc, "t", table("v"))
    assert rpc.get_all_tables("default") == ["t", "u"]
    assert (warehouse / "t").is_dir()


def test_a_rename_that_fails_moves_the_directory_back(rpc: Rpc, db: Database, warehouse: Path) -> None:
    rpc.create_table(table("t"))
    with db.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE tbl ADD CHECK (name <> 'bad')")
    with pytest.raises(Exception, match="bad"):
        alter(rpc, "t", table("bad"))
    assert (warehouse / "t").is_dir()
    assert not (warehouse / "bad").exists()
    assert rpc.get_table("default", "t").sd.location == f"file:{warehouse}/t"


def test_a_rename_killed_half_way_can_be_given_again(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t"))
    files.rename(f"{warehouse}/t", f"{warehouse}/u")  # what the killed server had done
    alter(rpc, "t", table("u"))
    assert rpc.get_table("default", "u").sd.location == f"file:{warehouse}/u"
    assert (warehouse / "u").is_dir()


def test_rename_carries_and_drop_forgets_the_write_ids(rpc: Rpc, db: Database) -> None:
    rpc.create_table(table("t", parameters=ACID))
    [(txn_id, _)] = db.call("open_txns", [1], [0], ["ann"], ["host"], [""], [None], [], [], [], 1000)
    db.call("allocate_write_ids", [0], ["default"], ["t"], [txn_id])
    alter(rpc, "t", table("u", parameters=ACID))
    assert db.call("get_max_write_id", "default", "t") == [(0,)]
    assert db.call("get_max_write_id", "default", "u") == [(1,)]
    db.call("commit_txns", [txn_id], [False], "")
    rpc.drop_table("default", "u", True)
    assert db.call("get_max_write_id", "default", "u") == [(0,)]


def test_files_that_a_drop_leaves_keep_their_write_ids(rpc: Rpc, db: Database) -> None:
    rpc.create_table(table("t", parameters=ACID))
    [(txn_id, _)] = db.call("open_txns", [1], [0], ["ann"], ["host"], [""], [None], [], [], [], 1000)
    db.call("allocate_write_ids", [0], ["default"], ["t"], [txn_id])
    rpc.drop_table("default", "t", False)
    assert db.call("get_max_write_id", "default", "t") == [(1,)]


def test_new_columns_do_not_change_old_partitions_unless_cascaded(rpc: Rpc) -> None:
    rpc.create_table(table("p", keys=KEYS))
    rpc.add_partition(partition(["old"]))
    wider = storage(column("a"), column("b", "string"), column("c"))
    alter(rpc, "p", table("p", keys=KEYS, sd=wider))
    rpc.add_partition(partition(["new"], sd=wider))

    def columns(value: str) -> list[str]:
        return [found.name for found in rpc.get_partition("default", "p", [value]).sd.cols]

    assert (columns("old"), columns("new")) == (["a", "b"], ["a", "b", "c"])
    alter(rpc, "p", table("p", keys=KEYS, sd=wider), CASCADE="true")
    assert columns("old") == ["a", "b", "c"]


def test_write_id_of_the_request_is_kept(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID))
    changed = table("t", parameters=ACID)
    rpc.alter_table_req(ttypes.AlterTableRequest(dbName="default", tableName="t", table=changed, writeId=5))
    request = ttypes.GetTableRequest(dbName="default", tblName="t")
    assert rpc.get_table_req(request).table.writeId == 5


# --- compare-and-set (wire.md §4.5) ---


def test_an_expectation_that_fails_changes_nothing(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters={"metadata_location": "m1"}))
    text = "The table has been modified. The parameter value for key 'metadata_location' is 'm1'"
    with pytest.raises(MetaError, match=f"^{text}"):
        alter(
            rpc,
            "t",
            table("t", parameters={"metadata_location": "m3"}),
            expected_parameter_key="metadata_location",
            expected_parameter_value="m0",
        )
    request = ttypes.AlterTableRequest(
        dbName="default",
        tableName="t",
        table=table("t", parameters={"metadata_location": "m2"}),
        expectedParameterKey="metadata_location",
        expectedParameterValue="m1",
    )
    rpc.alter_table_req(request)
    assert rpc.get_table("default", "t").parameters["metadata_location"] == "m2"
    with pytest.raises(MetaError, match="has been modified"):
        rpc.alter_table_req(request)


def test_of_concurrent_committers_one_wins_each_round(catalog: CatalogService) -> None:
    rpc = Rpc(catalog)
    rpc.create_table(table("t", parameters={"version": "0"}))
    workers, commits = 16, 3
    lost = []

    def commit_all() -> None:
        mine = Rpc(catalog)
        done = 0
        while done < commits:
            seen = int(mine.get_table("default", "t").parameters["version"])
            try:
                alter(
                    mine,
                    "t",
                    table("t", parameters={"version": str(seen + 1)}),
                    expected_parameter_key="version",
                    expected_parameter_value=str(seen),
                )
                done += 1
            except MetaError:
                lost.append(seen)

    threads = [threading.Thread(target=commit_all) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert rpc.get_table("default", "t").parameters["version"] == str(workers * commits)
    assert lost, "the committers never met: the test shows nothing"
