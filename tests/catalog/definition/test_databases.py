"""Databases over RPC: names, directories, drops."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid.errors import AlreadyExistsError, InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from metastore.txn.states import TxnType
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table


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


def test_what_is_in_no_catalog_does_not_exist(rpc: Rpc) -> None:
    for call in (
        lambda: rpc.get_catalog(ttypes.GetCatalogRequest(name="spark")),
        lambda: rpc.get_database("@spark#default"),
        lambda: rpc.get_database("@#default"),
        lambda: rpc.get_database_req(ttypes.GetDatabaseRequest(name="default", catalogName="spark")),
        lambda: rpc.get_table("@spark#default", "t"),
        lambda: rpc.drop_database("@spark#default", True, True),
    ):
        with pytest.raises(NoSuchObjectError):
            call()
    with pytest.raises(InvalidObjectError, match="catalog spark does not exist"):
        rpc.create_database(ttypes.Database(name="d", catalogName="spark"))
    assert rpc.get_databases("@spark#*") == []
    assert rpc.get_all_tables("@spark#default") == []
    assert rpc.get_database("@HIVE#Default").name == "default"


@pytest.mark.parametrize("missing", [None, "@hive#"])
def test_a_database_must_be_named(rpc: Rpc, missing: str | None) -> None:
    for call in (
        lambda: rpc.create_database(ttypes.Database(name=missing)),
        lambda: rpc.get_database(missing),
        lambda: rpc.get_database_req(ttypes.GetDatabaseRequest(name=missing)),
        lambda: rpc.alter_database(missing, ttypes.Database(name="default")),
        lambda: rpc.drop_database(missing, True, True),
    ):
        with pytest.raises(MetaError, match="names no database"):
            call()


def test_the_servers_clock_counts(rpc: Rpc) -> None:
    rpc.create_database(ttypes.Database(name="d", createTime=1))
    assert rpc.get_database("d").createTime > 1_000_000_000


def test_a_remote_database_is_refused(rpc: Rpc) -> None:
    with pytest.raises(InvalidObjectError, match="REMOTE database"):
        rpc.create_database(ttypes.Database(name="d", type=ttypes.DatabaseType.REMOTE, connector_name="c"))
    assert rpc.get_all_databases() == ["default"]


def test_alter_keeps_what_is_left_out(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    """As in Hive, but for the owner and the parameters, which are replaced."""
    given = ttypes.Database(
        name="d",
        description="old",
        parameters={"a": "1"},
        ownerName="ann",
        ownerType=ttypes.PrincipalType.GROUP,
        managedLocationUri=str(tmp_path / "managed"),
    )
    rpc.create_database(given)
    rpc.alter_database("D", ttypes.Database(name="d", parameters={"b": "2"}, ownerName="bob"))
    found = rpc.get_database("d")
    assert (found.description, found.parameters, found.ownerName, found.ownerType) == ("old", {"b": "2"}, "bob", 3)
    assert (found.locationUri, found.managedLocationUri) == (f"file:{warehouse}/d.db", f"file:{tmp_path}/managed")
    new = ttypes.Database(
        name="elsewhere", description="new", locationUri=str(tmp_path / "new"), managedLocationUri=str(tmp_path / "m2")
    )
    rpc.alter_database_req(ttypes.AlterDatabaseRequest(oldDbName="d", newDb=new))
    found = rpc.get_database("d")  # a name is passed over
    assert (found.name, found.description, found.parameters, found.ownerName) == ("d", "new", {}, None)
    assert (found.locationUri, found.managedLocationUri) == (f"file:{tmp_path}/new", f"file:{tmp_path}/m2")
    with pytest.raises(NoSuchObjectError):
        rpc.alter_database_req(ttypes.AlterDatabaseRequest(oldDbName="nix", newDb=ttypes.Database(name="nix")))


def test_drop_refuses_tables_unless_cascade(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t", "d", keys=(ttypes.FieldSchema(name="k", type="int"),)))
    rpc.add_partition(partition(["1"], "t", "d"))
    with pytest.raises(InvalidOperationError, match=r"^Database d is not empty\. One or more tables exist\.$"):
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


def test_drop_removes_the_directory_with_what_lies_in_it(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    """As Hive, below the warehouse; elsewhere what is not known to be the database's stays."""
    for name, location in (("d", None), ("b", str(warehouse / "own" / "b")), ("far", str(tmp_path / "far"))):
        rpc.create_database(ttypes.Database(name=name, locationUri=location))
        place = Path(rpc.get_database(name).locationUri.removeprefix("file:"))
        (place / "left").mkdir()
        (place / "left" / "data").write_text("of nobody")
        rpc.drop_database(name, True, False)
        assert place.exists() == (name == "far")


@pytest.mark.parametrize("whose", ["another's table", "a partition", "a database", "its external partition", "a link"])
def test_drop_keeps_the_directory_if_somebody_elses_data_lies_in_it(
    rpc: Rpc, warehouse: Path, tmp_path: Path, whose: str
) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    place = warehouse / "d.db" / "theirs"
    match whose:
        case "another's table":
            rpc.create_table(table("t", sd=storage(location=f"{warehouse}/x/..//d.db/./theirs")))
        case "a partition":
            rpc.create_table(table("t", keys=(column("k"),)))
            rpc.add_partition(partition(["1"], "t", sd=storage(location=f"file://{warehouse}//d.db/theirs")))
        case "a database":
            rpc.create_database(ttypes.Database(name="inner", locationUri=str(place)))
        case "its external partition":
            far = storage(location=str(tmp_path / "e"))
            rpc.create_table(table("t", "d", keys=(column("k"),), tableType="EXTERNAL_TABLE", sd=far))
            rpc.add_partition(partition(["1"], "t", "d", sd=storage(location=str(place))))
        case "a link":
            (tmp_path / "link").symlink_to(warehouse / "d.db")
            rpc.create_table(table("t", sd=storage(location=str(tmp_path / "link" / "theirs"))))
    (place / "data").write_text("theirs")
    (warehouse / "d.db" / "other").write_text("of nobody")
    rpc.drop_database("d", True, True)
    assert (place / "data").read_text() == "theirs"


def drop_while_it_is_read(rpc: Rpc, world: AcidWorld, place: Path) -> TxnId:
    """A database at a place, with an ACID table and files of nobody, is dropped; the transaction that may read it."""
    rpc.create_database(ttypes.Database(name="d", locationUri=str(place)))
    rpc.create_table(table("t", "d", parameters=ACID))
    rpc.create_table(table("p", "d", parameters=ACID, keys=(column("k"),)))
    for name in ("t", "p"):
        (place / name / "data").write_text("data")
    if "far" not in place.parts:
        (place / "left").write_text("of nobody")
    reader = world.begin(TxnType.READ_ONLY)
    rpc.drop_database("d", True, True)
    assert world.clean().removed == []
    assert (place / "t/data").exists()
    return reader


@pytest.mark.parametrize("where", ["warehouse/d.db", "far/d"])
def test_the_directory_goes_after_the_last_reader(rpc: Rpc, world: AcidWorld, tmp_path: Path, where: str) -> None:
    reader = drop_while_it_is_read(rpc, world, tmp_path / where)
    world.txns.commit_txn(reader)
    assert len(world.clean().removed) == 2
    assert not (tmp_path / where).exists()
    assert world.catalog.removals.waiting() == []


@pytest.mark.parametrize("whose", ["a database", "an external table", "a file", "a dropped external table"])
def test_the_directory_of_a_dropped_database_is_somebody_elses_by_now(
    rpc: Rpc, world: AcidWorld, warehouse: Path, whose: str
) -> None:
    place = warehouse / "d.db"
    reader = drop_while_it_is_read(rpc, world, place)
    if whose == "a database":
        rpc.create_database(ttypes.Database(name="d"))
    if "external" in whose:
        rpc.create_table(table("e", tableType="EXTERNAL_TABLE", sd=storage(location=str(place / "e"))))
    (place / "e").mkdir(exist_ok=True)
    (place / "e/data").write_text("theirs")
    if "dropped" in whose:
        rpc.drop_table("default", "e", True)
    world.txns.commit_txn(reader)
    assert len(world.clean().removed) == 2
    assert (place / "e/data").read_text() == "theirs"
    assert not (place / "t").exists()


def test_the_directory_of_a_database_stays_for_its_external_tables(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("t", "d", parameters=ACID))
    rpc.create_table(table("e", "d", tableType="EXTERNAL_TABLE"))
    for name in ("t", "e"):
        (warehouse / "d.db" / name / "data").write_text("data")
    reader = world.begin(TxnType.READ_ONLY)
    rpc.drop_database("d", True, True)
    world.txns.commit_txn(reader)
    world.clean()
    assert [entry.name for entry in (warehouse / "d.db").iterdir()] == ["e"]
    assert (warehouse / "d.db/e/data").exists()


def test_what_is_on_its_way_to_the_trash_does_not_go_with_the_database(
    make_catalog: Callable[..., CatalogService], db: Database, warehouse: Path
) -> None:
    catalog = make_catalog(undrop_window_ms=3_600_000)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    reader = drop_while_it_is_read(rpc, world, warehouse / "d.db")
    world.txns.commit_txn(reader)
    world.clean()
    assert [entry.name for entry in (warehouse / "d.db").iterdir()] == ["left"]
    rpc.create_database(ttypes.Database(name="d"))
    catalog.trash.restore("d", "t")
    assert (warehouse / "d.db/t/data").read_text() == "data"


def test_drop_without_delete_data_keeps_directories(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_table(table("m", "d"))
    rpc.drop_database("d", False, True)
    assert (warehouse / "d.db/m").is_dir()


def test_the_default_database_stays(rpc: Rpc) -> None:
    with pytest.raises(MetaError, match=r"^Can not drop default database in catalog hive$"):
        rpc.drop_database("default", True, True)


def test_functions_stand_in_the_way_and_go_with_a_cascade(rpc: Rpc) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.create_function(
        ttypes.Function(functionName="f", dbName="d", className="F", ownerName="ann", ownerType=1, functionType=1)
    )
    with pytest.raises(InvalidOperationError, match=r"^Database d is not empty\. One or more functions exist\.$"):
        rpc.drop_database("d", True, False)
    rpc.drop_database("d", True, True)
    assert rpc.get_functions("d", "*") == []


@pytest.mark.parametrize(("spared", "stays"), [(None, False), (True, False), (False, True)])
def test_the_managed_directory(rpc: Rpc, tmp_path: Path, spared: bool | None, stays: bool) -> None:
    managed = tmp_path / "managed"
    rpc.create_database_req(ttypes.CreateDatabaseRequest(databaseName="d", managedLocationUri=str(managed)))
    assert managed.is_dir()
    request = ttypes.DropDatabaseRequest(
        name="d", ignoreUnknownDb=False, deleteData=True, cascade=False, deleteManagedDir=spared
    )
    rpc.drop_database_req(request)
    assert managed.exists() == stays


def test_without_directories_nothing_is_made_or_removed(
    make_catalog: Callable[..., CatalogService], warehouse: Path
) -> None:
    rpc = Rpc(make_catalog(directories=False))
    rpc.create_catalog(ttypes.CreateCatalogRequest(ttypes.Catalog(name="c", locationUri="/nowhere/c")))
    rpc.create_database(ttypes.Database(name="d", managedLocationUri="/nowhere/managed"))
    rpc.drop_database("d", True, True)
    rpc.drop_catalog(ttypes.DropCatalogRequest(name="c"))
    assert not warehouse.exists()


@pytest.mark.parametrize("commits", [True, False])
def test_a_drop_in_the_clients_transaction(rpc: Rpc, world: AcidWorld, warehouse: Path, commits: bool) -> None:
    """Hive's soft delete: the files of ACID tables go when it has committed, those of others at once."""
    rpc.create_database(ttypes.Database(name="d"))
    for name, parameters in (("acid", {"transactional": "true"}), ("plain", {})):
        rpc.create_table(table(name, "d", parameters=parameters))
        (warehouse / "d.db" / name / "data").write_text("data")
    dropping = world.begin(TxnType.SOFT_DELETE)
    request = ttypes.DropDatabaseRequest(
        name="d", ignoreUnknownDb=False, deleteData=True, cascade=True, softDelete=True, txnId=dropping
    )
    rpc.drop_database_req(request)
    assert rpc.get_all_databases() == ["default"]
    assert not (warehouse / "d.db/plain").exists()
    assert world.clean().removed == []
    if commits:
        world.txns.commit_txn(dropping)
        assert world.clean().removed == [f"file:{warehouse}/d.db/acid"]
    else:
        world.txns.abort_txn(dropping)
        assert world.clean().removed == []
    assert (warehouse / "d.db/acid/data").exists() != commits
