"""The directories of dropped databases go after all that is in them, however often somebody is killed on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid.wire import ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.removal import removals
from metastore.catalog.service import CatalogService
from metastore.filework import files
from metastore.store.database import Database
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, table
from tests.catalog.removal.killed import killed_before

CONFIG = CatalogConfig()


def furnished(rpc: Rpc, place: Path | None) -> Path:
    """A database with two ACID tables that have files, and where it lies."""
    rpc.create_database(ttypes.Database(name="e", locationUri=None if place is None else str(place)))
    home = Path(rpc.get_database("e").locationUri.removeprefix("file:"))
    for name in "ab":
        rpc.create_table(table(name, "e", parameters=ACID))
        (home / name / "data").write_text(name)
    return home


def settled(db: Database, warehouse: Path) -> CatalogService:
    """A server that starts after a kill and has done what there was to do."""
    catalog = CatalogService(db, str(warehouse), CONFIG)
    catalog.start()
    AcidWorld(db, catalog).clean()
    catalog.tidy()
    return catalog


@pytest.mark.sampled
@pytest.mark.parametrize("place", ["in the warehouse", "elsewhere"])
def test_a_cleaner_that_is_killed_at_any_step_leaves_no_directory(
    db: Database, db_url: str, warehouse: Path, tmp_path: Path, place: str
) -> None:
    step, killed = 0, True
    while killed:
        catalog = settled(db, warehouse)
        rpc, world = Rpc(catalog), AcidWorld(db, catalog)
        home = furnished(rpc, None if place == "in the warehouse" else tmp_path / "e")
        reader = world.begin()
        rpc.drop_database("e", True, True)
        assert (home / "a/data").exists()
        world.txns.commit_txn(reader)
        killed = killed_before(step, db_url, warehouse, CONFIG, lambda own, its: AcidWorld(its, own).clean())
        settled(db, warehouse)
        assert not home.exists(), step
        assert catalog.removals.waiting() == []
        step += 1
    assert step > 10


@pytest.mark.parametrize("place", ["in the warehouse", "elsewhere"])
def test_a_drop_that_is_killed_at_any_step_leaves_no_directory(
    db: Database, db_url: str, warehouse: Path, tmp_path: Path, place: str
) -> None:
    step, killed = 0, True
    while killed:
        rpc = Rpc(settled(db, warehouse))
        if "e" not in rpc.get_all_databases():
            home = furnished(rpc, None if place == "in the warehouse" else tmp_path / "e")
        killed = killed_before(step, db_url, warehouse, CONFIG, lambda own, _: Rpc(own).drop_database("e", True, True))
        catalog = settled(db, warehouse)
        assert home.exists() == ("e" in Rpc(catalog).get_all_databases()), step
        assert catalog.removals.waiting() == []
        step += 1
    assert step > 4


def test_a_directory_waits_for_what_could_not_be_removed_in_it(
    make_catalog: Callable[..., CatalogService], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = make_catalog()
    rpc = Rpc(catalog)
    home = furnished(rpc, tmp_path / "e")
    monkeypatch.setattr(removals, "FIRST_PAUSE_S", 0)
    with monkeypatch.context() as broken:

        def refused(location: str, *, takes_long: bool = True) -> bool:
            raise OSError(f"the disk is gone under {location}")

        broken.setattr(files, "remove", refused)
        rpc.drop_database("e", True, True)
    assert (home / "a/data").exists()
    for _ in range(2):
        catalog.tidy()
    assert not home.exists()
    assert catalog.removals.waiting() == []


def test_what_is_made_there_again_stays(db: Database, warehouse: Path) -> None:
    catalog = settled(db, warehouse)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    home = furnished(rpc, None)
    reader = world.begin()
    rpc.drop_database("e", True, True)
    rpc.create_database(ttypes.Database(name="e"))
    world.txns.commit_txn(reader)
    settled(db, warehouse)
    assert home.is_dir()
    assert not (home / "a").exists()
