"""Databases over RPC: names, directories, drops."""

from pathlib import Path

import pytest

from hive_acid.errors import AlreadyExistsError, InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from tests.catalog.conftest import Rpc, partition, storage, table


def test_the_default_database_is_the_warehouse_root(rpc: Rpc, warehouse: Path) -> None:
    found = rpc.get_database("default")
    assert (found.name, found.locationUri, found.catalogName) == ("default", f"file:{warehouse}", "hive")
    assert warehouse.is_dir()


def test_create_makes_a_directory_and_fills_in(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="Sales", description="all of it", parameters={"k": "V"}))
    found = rpc.get_database("SALES")
    assert found.name == "sales"
    assert found.locationUri == f"file:{warehouse}/sales.db"
    assert (found.description, found.parameters, found.ownerName, found.ownerType) == (
        "all of it",
        {"k": "V"},
        "ann",
        1,
    )
    assert found.createTime > 1_000_000_000
    assert (warehouse / "sales.db").is_dir()


@pytest.mark.parametrize("given", ["/elsewhere/x", "file:/elsewhere/x", "file:///elsewhere/x/"])
def test_a_given_location_wins_and_is_stored_as_spark_reads_it(rpc: Rpc, tmp_path: Path, given: str) -> None:
    rpc.create_database(ttypes.Database(name="d", locationUri=given.replace("/elsewhere", str(tmp_path))))
    assert rpc.get_database("d").locationUri == f"file:{tmp_path}/x"
    assert (tmp_path / "x").is_dir()


def test_create_twice_leaves_the_first(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d", description="first"))
    with pytest.raises(AlreadyExistsError, match="d exists"):
        rpc.create_database(ttypes.Database(name="D", description="second"))
    assert rpc.get_database("d").description == "first"
    assert (warehouse / "d.db").is_dir()


@pytest.mark.parametrize("name", ["", "a b", "a.b", "../up", "é", "x" * 129])
def test_impossible_names(rpc: Rpc, name: str) -> None:
    with pytest.raises(InvalidObjectError):
        rpc.create_database(ttypes.Database(name=name))
    assert rpc.get_all_databases() == ["default"]


def test_a_directory_that_cannot_be_made(rpc: Rpc, warehouse: Path) -> None:
    (warehouse / "file").write_text("in the way")
    with pytest.raises(MetaError, match="cannot make the directory"):
        rpc.create_database(ttypes.Database(name="d", locationUri=f"{warehouse}/file/d"))
    with pytest.raises(NoSuchObjectError):
        rpc.get_database("d")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", ["default", "one", "other", "two"]),
        ("@hive#", ["default", "one", "other", "two"]),
        ("@hive#o*", ["one", "other"]),
        (".*", ["default", "one", "other", "two"]),
        ("O*E|tw%", ["one", "two"]),
        ("t.o", ["two"]),
        ("on", []),
        ("@hive#!", []),
        ("", []),
        ("o[n]e", []),
    ],
)
def test_patterns(rpc: Rpc, pattern: str, expected: list[str]) -> None:
    for name in ("one", "two", "other"):
        rpc.create_database_req(ttypes.CreateDatabaseRequest(databaseName=name))
    assert rpc.get_databases(pattern) == expected
    request = ttypes.GetDatabaseObjectsRequest(pattern=pattern, catalogName="hive")
    assert [database.name for database in rpc.get_databases_req(request).databases] == expected


def test_other_catalogs_do_not_exist(rpc: Rpc) -> None:
    assert rpc.get_catalogs().names == ["hive"]
    assert rpc.get_catalog(ttypes.GetCatalogRequest(name="hive")).catalog.name == "hive"
    for call in (
        lambda: rpc.get_catalog(ttypes.GetCatalogRequest(name="spark")),
        lambda: rpc.get_database("@spark#default"),
        lambda: rpc.get_database_req(ttypes.GetDatabaseRequest(name="default", catalogName="spark")),
        lambda: rpc.get_table("@spark#default", "t"),
    ):
        with pytest.raises(NoSuchObjectError, match="catalog spark does not exist"):
            call()
    assert rpc.get_database("@HIVE#Default").name == "default"


def test_alter_keeps_what_is_left_out(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d", parameters={"a": "1"}))
    rpc.alter_database("D", ttypes.Database(name="d", description="new", parameters={"b": "2"}, ownerName="bob"))
    found = rpc.get_database("d")
    assert (found.description, found.parameters, found.ownerName) == ("new", {"b": "2"}, "bob")
    assert found.locationUri == f"file:{warehouse}/d.db"
    with pytest.raises(MetaError, match="renamed"):
        rpc.alter_database("d", ttypes.Database(name="e"))
    with pytest.raises(NoSuchObjectError):
        rpc.alter_database_req(ttypes.AlterDatabaseRequest(oldDbName="nix", newDb=ttypes.Database(name="nix")))


def test_drop_refuses_tables_unless_cascade(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t", "d", keys=(ttypes.FieldSchema(name="k", type="int"),)))
    rpc.add_partition(partition(["1"], "t", "d"))
    with pytest.raises(InvalidOperationError, match="not empty"):
        rpc.drop_database("d", True, False)
    assert (warehouse / "d.db/t/k=1").is_dir()
    rpc.drop_database("D", True, True)
    assert not (warehouse / "d.db").exists()
    with pytest.raises(NoSuchObjectError):
        rpc.drop_database("d", True, True)
    rpc.drop_database_req(ttypes.DropDatabaseRequest(name="d", ignoreUnknownDb=True, deleteData=True, cascade=True))


def test_drop_keeps_files_that_are_not_its_own(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    mine = warehouse / "d.db" / "mine"
    mine.mkdir()
    (mine / "data").write_text("external")
    rpc.create_table(table("e", "d", sd=storage(location=str(mine)), tableType="EXTERNAL_TABLE"))
    rpc.create_table(table("m", "d"))
    rpc.drop_database("d", True, True)
    assert (mine / "data").read_text() == "external"
    assert not (warehouse / "d.db" / "m").exists()


def test_drop_without_delete_data_keeps_directories(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("m", "d"))
    rpc.drop_database("d", False, True)
    assert (warehouse / "d.db/m").is_dir()


def test_the_default_database_stays(rpc: Rpc) -> None:
    with pytest.raises(MetaError, match="default database"):
        rpc.drop_database("default", True, True)
