"""Catalogs over RPC, and databases and tables of the same name in several of them."""

from __future__ import annotations

import threading
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
)
from hive_acid.wire import ttypes
from tests.caller import Caller
from tests.catalog.conftest import ACID, Rpc, partition, storage, table


def create(rpc: Rpc, name: str, place: Path, **more: Any) -> None:
    catalog = ttypes.Catalog(name=name, locationUri=str(place / name.lower()), **more)
    rpc.create_catalog(ttypes.CreateCatalogRequest(catalog=catalog))


def get(rpc: Rpc, name: str) -> Any:
    return rpc.get_catalog(ttypes.GetCatalogRequest(name=name)).catalog


def drop(rpc: Rpc, name: str, if_exists: bool | None = None) -> None:
    rpc.drop_catalog(ttypes.DropCatalogRequest(name=name, ifExists=if_exists))


def test_the_first_catalog(rpc: Rpc, warehouse: Path) -> None:
    found = get(rpc, "HIVE")
    assert (found.name, found.locationUri) == ("hive", f"file:{warehouse}")
    assert found.createTime > 1_000_000_000
    assert found.description
    with pytest.raises(MetaError, match=r"^Can not drop hive catalog$"):
        drop(rpc, "Hive", if_exists=True)


def test_create_alter_and_drop(rpc: Rpc, tmp_path: Path) -> None:
    create(rpc, "Spark", tmp_path, description="of Spark", parameters={"k": "v"})
    found = get(rpc, "spark")
    assert (found.name, found.description, found.parameters) == ("spark", "of Spark", {"k": "v"})
    assert found.locationUri == f"{tmp_path}/spark"  # as it was given
    assert found.createTime > 1_000_000_000
    assert (tmp_path / "spark").is_dir()
    assert rpc.get_catalogs().names == ["hive", "spark"]
    assert rpc.get_database("@spark#default").locationUri == f"file:{tmp_path}/spark"

    change = ttypes.Catalog(name="SPARK", locationUri=str(tmp_path / "new"))
    rpc.alter_catalog(ttypes.AlterCatalogRequest(name="Spark", newCat=change))
    found = get(rpc, "spark")
    assert (found.description, found.locationUri) == ("of Spark", f"{tmp_path}/new")
    rpc.alter_catalog(ttypes.AlterCatalogRequest(name="spark", newCat=ttypes.Catalog(description="other")))
    assert (get(rpc, "spark").description, get(rpc, "spark").locationUri) == ("other", f"{tmp_path}/new")
    rpc.create_database(ttypes.Database(name="d", catalogName="spark"))
    assert rpc.get_database("@spark#d").locationUri == f"file:{tmp_path}/new/d.db"
    rpc.drop_database("@spark#d", True, False)

    drop(rpc, "SPARK")
    assert rpc.get_catalogs().names == ["hive"]
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "spark").exists()
    with pytest.raises(NoSuchObjectError, match="spark"):
        get(rpc, "spark")


def test_refusals(rpc: Rpc, tmp_path: Path) -> None:
    create(rpc, "spark", tmp_path)
    with pytest.raises(AlreadyExistsError, match="catalog spark exists"):
        create(rpc, "SPARK", tmp_path)
    for name in ("", "a b", "a#b", "@a", "a.b", "x" * 257):
        with pytest.raises(InvalidObjectError, match="catalog name"):
            create(rpc, name, tmp_path)
    with pytest.raises(InvalidObjectError, match="location"):
        rpc.create_catalog(ttypes.CreateCatalogRequest(catalog=ttypes.Catalog(name="nowhere")))
    with pytest.raises(InvalidOperationError, match="renamed"):
        rpc.alter_catalog(ttypes.AlterCatalogRequest(name="spark", newCat=ttypes.Catalog(name="other")))
    with pytest.raises(NoSuchObjectError):
        rpc.alter_catalog(ttypes.AlterCatalogRequest(name="nix", newCat=ttypes.Catalog(name="nix")))
    with pytest.raises(NoSuchObjectError):
        drop(rpc, "nix")
    drop(rpc, "nix", if_exists=True)
    for call in (
        lambda: rpc.create_catalog(ttypes.CreateCatalogRequest()),
        lambda: rpc.alter_catalog(ttypes.AlterCatalogRequest(name="spark")),
        lambda: get(rpc, None),  # type: ignore[arg-type]
    ):
        with pytest.raises(MetaError):
            call()
    assert rpc.get_catalogs().names == ["hive", "spark"]
    assert rpc.undeclared == []


def test_what_is_in_a_catalog_stands_in_the_way_of_its_drop(rpc: Rpc, tmp_path: Path) -> None:
    create(rpc, "spark", tmp_path)
    for number in range(7):
        rpc.create_database(ttypes.Database(name=f"d{number}", catalogName="spark"))
    with pytest.raises(InvalidOperationError, match="7 databases, as d0, d1"):
        drop(rpc, "spark")
    for number in range(7):
        rpc.drop_database(f"@spark#d{number}", True, False)
    rpc.create_table(table("t", catName="spark"))
    with pytest.raises(InvalidOperationError, match="tables exist"):
        drop(rpc, "spark", if_exists=True)
    rpc.drop_table("@spark#default", "t", True)
    rpc.drop_database("@spark#default", True, False)  # that of hive stays, this one need not
    drop(rpc, "spark")
    assert not (tmp_path / "spark").exists()


def test_a_catalog_is_not_dropped_under_a_new_database(rpc: Rpc, tmp_path: Path) -> None:
    """However the two meet, there is no database without its catalog."""
    for number in range(10):
        create(rpc, f"c{number}", tmp_path)
        ends: list[str] = []

        def attempt(call: Callable[[], None], ends: list[str] = ends) -> None:
            try:
                call()
                ends.append("ok")
            except (InvalidObjectError, InvalidOperationError) as error:
                ends.append(type(error).__name__)

        new = ttypes.Database(name="d", catalogName=f"c{number}")
        calls = [lambda new=new: rpc.create_database(new), lambda number=number: drop(rpc, f"c{number}")]
        threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ends) in (["InvalidObjectError", "ok"], ["InvalidOperationError", "ok"]), ends
        assert (f"c{number}" in rpc.get_catalogs().names) == ("d" in rpc.get_databases(f"@c{number}#*"))


def test_a_directory_that_cannot_be_made(rpc: Rpc, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MetaError, match="cannot make the directory"):
        create(rpc, "spark", tmp_path / "file")
    assert rpc.get_catalogs().names == ["hive"]
    assert rpc.get_databases("@spark#*") == []


def test_replies_say_which_catalog(metastore: Callable[..., str], tmp_path: Path) -> None:
    """Two catalogs with the same database and table, told apart by every call, in the string and in the field."""
    with Caller(metastore()) as ann:
        location = str(tmp_path / "spark")
        ann.call("create_catalog", ttypes.CreateCatalogRequest(ttypes.Catalog(name="spark", locationUri=location)))
        for catalog in ("hive", "spark"):
            ann.call("create_database", ttypes.Database(name="d", catalogName=catalog, parameters={"of": catalog}))
            keys = (ttypes.FieldSchema(name="k", type="int"),)
            ann.call("create_table", table("t", "d", keys=keys, catName=catalog, owner=f"of {catalog}"))
            ann.call("add_partition", partition(["1"], "t", "d", catName=catalog))
        assert (tmp_path / "warehouse/d.db/t/k=1").is_dir()
        assert (tmp_path / "spark/d.db/t/k=1").is_dir()
        for catalog, name in (("hive", "d"), ("hive", "@hive#d"), ("spark", "@spark#d"), ("spark", "@SPARK#D")):
            found = ann.call("get_database", name)
            assert (found.name, found.catalogName, found.parameters) == ("d", catalog, {"of": catalog})
            found = ann.call("get_table", name, "t")
            assert (found.dbName, found.catName, found.owner) == ("d", catalog, f"of {catalog}")
            found = ann.call("get_partition", name, "t", ["1"])
            assert (found.dbName, found.tableName, found.catName) == ("d", "t", catalog)
            assert catalog == "hive" or found.sd.location == f"file:{location}/d.db/t/k=1"
            (found,) = ann.call("get_table_meta", name, "*", [])
            assert (found.dbName, found.catName, found.ownerName) == ("d", catalog, f"of {catalog}")
        for catalog in ("hive", "spark"):
            request: Any = ttypes.GetTableRequest(dbName="d", tblName="t", catName=catalog)
            assert ann.call("get_table_req", request).table.catName == catalog
            request = ttypes.GetDatabaseRequest(name="d", catalogName=catalog)
            assert ann.call("get_database_req", request).catalogName == catalog
            request = ttypes.PartitionsRequest(catName=catalog, dbName="d", tblName="t")
            assert [found.catName for found in ann.call("get_partitions_req", request).partitions] == [catalog]
        ann.call("drop_database", "@spark#d", True, True)
        assert ann.call("get_table", "d", "t").catName == "hive"
        assert (tmp_path / "warehouse/d.db/t/k=1").is_dir()
        assert not (tmp_path / "spark/d.db").exists()


@pytest.mark.slow
def test_transactions_tell_the_catalogs_apart(metastore: Callable[..., str], tmp_path: Path) -> None:
    """Write ids and locks of a table are not those of its namesake; a drop forgets only its own."""
    with Caller(metastore()) as ann:
        location = str(tmp_path / "spark")
        ann.call("create_catalog", ttypes.CreateCatalogRequest(ttypes.Catalog(name="spark", locationUri=location)))
        for catalog in ("hive", "spark"):
            ann.call("create_table", table("t", catName=catalog, parameters=dict(ACID)))
        for name in ("default.t", "@hive#default.t", "@HIVE#Default.T"):
            txn = ann.begin()
            ann.allocate(name, txn)
            ann.commit(txn)
        txn = ann.begin()
        assert ann.allocate("@spark#default.t", txn) == [(txn, 1)]
        assert ann.asks("e @spark#default/t", txn=txn) == "A"
        other = ann.begin()
        assert ann.asks("e default/t", txn=other) == "A"
        assert [lock.dbname for lock in ann.locks(dbname="@Spark#default")] == ["@spark#default"]
        assert ann.asks("r @hive#default/t") == "W"
        ann.abort_all(txn, other)
        ann.call("drop_table", "@spark#default", "t", True)
        assert ann.max_write_id("default.t") == 3


def test_transactional_rules_are_those_of_hive(rpc: Rpc, tmp_path: Path) -> None:
    create(rpc, "spark", tmp_path)
    text = storage(inputFormat="org.apache.hadoop.mapred.TextInputFormat")
    with pytest.raises(MetaError, match="ACID compliant format"):
        rpc.create_table(table("t", sd=text, parameters=dict(ACID)))
    rpc.create_table(table("t", sd=text, parameters=dict(ACID), catName="spark"))
    assert (
        rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName="t", catName="spark")).table.parameters[
            "transactional"
        ]
        == "true"
    )


def test_alterations_stay_in_the_catalog(rpc: Rpc, tmp_path: Path) -> None:
    """Older clients name the catalog in the string only, and the struct says nothing of it."""
    create(rpc, "spark", tmp_path)
    for catalog in ("hive", "spark"):
        rpc.create_table(table("t", catName=catalog))
    rpc.alter_table("@spark#default", "t", table("t", parameters={"of": "spark"}))
    rpc.alter_table("@spark#default", "t", table("renamed", parameters={"of": "spark"}))
    found = rpc.get_table("@spark#default", "renamed")
    assert (found.dbName, found.catName, found.parameters["of"]) == ("default", "spark", "spark")
    assert found.sd.location == f"file:{tmp_path}/spark/renamed"
    assert rpc.get_all_tables("default") == ["t"]
    with pytest.raises(InvalidOperationError, match="stay in their catalog"):
        rpc.alter_table("@spark#default", "renamed", table("other", catName="hive"))
