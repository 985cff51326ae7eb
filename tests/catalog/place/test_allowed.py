"""Locations only below the warehouse and allowed roots, whatever way leads out of them; nothing is removed outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.config import Config
from metastore.settings import SettingError
from tests.authorization.world import table
from tests.caller import Caller, refused

Start = Callable[..., str]
ALLOWED = "metastore.warehouse.allowed.locations"
REFUSED = "may not be a place: it lies neither below the warehouse nor below"


@pytest.fixture
def world(metastore: Start, tmp_path: Path) -> Any:
    """A server with one allowed root, and a directory outside."""
    for name in ("allowed", "outside", "allowedness"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "kept").write_text("x")
    with Caller(metastore(**{ALLOWED: f"{tmp_path}/allowed"}), "ann") as caller:
        caller.call("create_database", ttypes.Database(name="d"))
        yield caller


def made(name: str, location: object) -> Any:
    return table(name, "d", location=str(location))


def outside(tmp_path: Path) -> list[str]:
    """Ways out: a plain path, one of a similar name, dots, links, schemes and other forms."""
    os.symlink(tmp_path / "outside", tmp_path / "allowed" / "link")
    os.symlink(tmp_path / "outside", tmp_path / "warehouse" / "link")
    os.symlink("link", tmp_path / "allowed" / "twice")
    return [
        f"{tmp_path}/outside/t",
        f"{tmp_path}/allowedness/t",
        f"file://{tmp_path}/outside/t",
        f"FILE:{tmp_path}/allowed/../outside/t",
        f"{tmp_path}/allowed/./x/../../outside/t",
        f"{tmp_path}/allowed/link/t",
        f"{tmp_path}/allowed/link",
        f"{tmp_path}/allowed/twice/t",
        f"file:{tmp_path}/warehouse/link/t",
        f"{tmp_path}",
        "s3a://bucket/t",
        "hdfs://host/warehouse/t",
    ]


def test_nothing_is_made_or_moved_outside(world: Caller, tmp_path: Path) -> None:
    world.call("create_table", made("t", f"{tmp_path}/allowed/t"))
    world.call("create_table", table("u", "d"))
    partition = ttypes.Partition(dbName="d", tableName="t", values=["1"], sd=made("t", "").sd, parameters={})
    partition.sd.location = None
    world.call("add_partition", partition)
    stands = world.call("get_partition", "d", "t", ["1"])
    catalog = ttypes.Catalog(name="c", locationUri=f"{tmp_path}/allowed/c")
    world.call("create_catalog", ttypes.CreateCatalogRequest(catalog=catalog))
    for way in outside(tmp_path):
        moved = ttypes.Partition(dbName="d", tableName="t", values=["1"], sd=made("t", way).sd, parameters={})
        new = ttypes.Partition(dbName="d", tableName="t", values=["2"], sd=made("t", way).sd, parameters={})
        for method, arguments in (
            ("create_table", [made("v", way)]),
            ("create_database", [ttypes.Database(name="e", locationUri=way)]),
            ("create_database", [ttypes.Database(name="e", managedLocationUri=way)]),
            ("alter_database", ["d", ttypes.Database(name="d", locationUri=way)]),
            ("alter_database", ["d", ttypes.Database(name="d", managedLocationUri=way)]),
            ("alter_table", ["d", "t", made("t", way)]),
            ("alter_table", ["d", "t", made("t2", way)]),
            ("add_partition", [new]),
            ("alter_partition", ["d", "t", moved]),
            ("rename_partition", ["d", "t", ["1"], ttypes.Partition(**vars(new))]),
            ("create_catalog", [ttypes.CreateCatalogRequest(catalog=ttypes.Catalog(name="f", locationUri=way))]),
            (
                "alter_catalog",
                [ttypes.AlterCatalogRequest(name="c", newCat=ttypes.Catalog(name="c", locationUri=way))],
            ),
        ):
            with refused("MetaException", REFUSED):
                world.call(method, *arguments)
    assert world.call("get_partition", "d", "t", ["1"]).sd.location == stands.sd.location
    assert sorted(os.listdir(tmp_path / "outside")) == ["kept"]


def test_within_everything_is_as_before(world: Caller, tmp_path: Path) -> None:
    os.symlink(tmp_path / "allowed", tmp_path / "in")
    for name, location in (
        ("a", f"{tmp_path}/allowed/a"),
        ("b", f"{tmp_path}/in/b"),
        ("c", f"{tmp_path}/outside/../allowed/c"),
        ("e", f"{tmp_path}/warehouse/e"),
    ):
        world.call("create_table", made(name, location))
        world.call("drop_table", "d", name, True)
    assert os.listdir(tmp_path / "allowed") == []


def test_what_lay_elsewhere_before_may_be_altered_and_is_not_removed(metastore: Start, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    with Caller(metastore(), "ann") as caller:
        caller.call("create_database", ttypes.Database(name="d", locationUri=f"{place}/d"))
        caller.call("create_table", table("t", "d", location=f"{place}/d/t", partitionKeys=[]))
    (place / "d" / "t" / "file").write_text("x")
    with Caller(metastore(**{ALLOWED: f"{tmp_path}/allowed"}), "ann") as caller:
        again = table("t", "d", location=f"{place}/d/t", partitionKeys=[], parameters={"a": "b"})
        caller.call("alter_table", "d", "t", again)
        caller.call("alter_database", "d", ttypes.Database(name="d", locationUri=f"{place}/d"))
        with refused("MetaException", "lies outside"):
            caller.call("truncate_table", "d", "t", None)
        caller.call("drop_database", "d", True, True)
    assert (place / "d" / "t" / "file").read_text() == "x"


def test_a_link_made_afterwards_leads_no_drop_outside(world: Caller, tmp_path: Path) -> None:
    world.call("create_table", made("t", f"{tmp_path}/allowed/deep/t"))
    os.rename(tmp_path / "allowed" / "deep", tmp_path / "allowed" / "away")
    (tmp_path / "outside" / "t").mkdir()
    (tmp_path / "outside" / "t" / "file").write_text("x")
    os.symlink(tmp_path / "outside", tmp_path / "allowed" / "deep")
    world.call("drop_table", "d", "t", True)
    assert (tmp_path / "outside" / "t" / "file").read_text() == "x"


@pytest.mark.parametrize("text", ["/", "file:///", "relative/dir", "s3a:"])
def test_what_is_no_root_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="allowed"):
        Config.parse([f"{ALLOWED}={text}"])
