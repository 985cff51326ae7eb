"""An import takes no place in which another table has its files."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from hive_acid.errors import InvalidOperationError, MetaError
from metastore.catalog.models import CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.catalog.removal import removals
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from metastore.transfer.models import TransferError
from metastore.transfer.report import ADDED, REFUSED, REPLACED
from metastore.transfer.target import Outcome, Target
from tests.catalog.conftest import ACID, Rpc, catalog, make_catalog, rpc, storage, table, warehouse

STILL_GOING = "the directory {} of a dropped object is still being removed: try again later"

__all__ = ["catalog", "make_catalog", "rpc", "warehouse"]  # fixtures


def test_an_acid_table_or_partition_in_anothers_place_is_not_imported(
    rpc: Rpc, catalog: CatalogService, db: Database, tmp_path: Path
) -> None:
    rpc.create_table(table("victim", sd=storage(location=str(tmp_path / "victim")), parameters=ACID))
    target = Target(db, "source", catalog.removals)
    columns = [Column("a", "int")]
    for location in (f"{tmp_path}/x/../victim", f"file:{tmp_path}//victim/below", str(tmp_path)):
        new = Table("default", "mine", "MANAGED_TABLE", location=location, columns=columns, parameters=ACID)
        with pytest.raises(TransferError, match=r"in use: table default\.victim"):
            target.table(new, None)
    keys = [Column("k", "int")]
    _, stored = target.table(
        Table("default", "mine", "MANAGED_TABLE", location=str(tmp_path / "own"), columns=columns, partition_keys=keys),
        None,
    )
    assert stored is not None
    with pytest.raises(TransferError, match=r"in use: table default\.victim"):
        target.partitions(stored, [Partition(["1"], location=f"{tmp_path}/./victim")])
    assert rpc.get_all_tables("default") == ["mine", "victim"]


def test_an_update_takes_no_place_either(rpc: Rpc, catalog: CatalogService, db: Database, tmp_path: Path) -> None:
    rpc.create_table(table("victim", sd=storage(location=str(tmp_path / "victim")), parameters=ACID))
    target = Target(db, "source", catalog.removals, replaces=True)
    columns, keys = [Column("a", "int")], [Column("k", "int")]

    def mine(location: Path) -> Table:
        return Table("default", "mine", "MANAGED_TABLE", location=str(location), columns=columns, partition_keys=keys)

    _, stored = target.table(mine(tmp_path / "own"), None)
    assert stored is not None
    target.partitions(stored, [Partition(["1"], location=f"{tmp_path}/part")])
    with pytest.raises(TransferError, match=r"in use: table default\.victim"):
        target.table(mine(tmp_path / "x" / ".." / "victim"), None)
    with pytest.raises(TransferError, match=r"in use: table default\.victim"):
        target.partitions(stored, [Partition(["1"], location=f"{tmp_path}//victim/below")])
    outcome, moved = target.table(mine(tmp_path / "other"), None)
    assert (outcome.outcome, moved and moved.id) == (REPLACED, stored.id)
    [(_, outcome)] = target.partitions(stored, [Partition(["1"], location=f"{tmp_path}/other_part")])
    assert outcome.outcome == REPLACED


@pytest.mark.parametrize("location", ["http://h/x", "data:,abc", "s3a:///b/x", "gs://b/x"])
def test_only_places_that_a_client_may_name_are_imported(
    rpc: Rpc, catalog: CatalogService, db: Database, tmp_path: Path, location: str
) -> None:
    target = Target(db, "source", catalog.removals, schemes=("file", "s3a"))
    columns, keys = [Column("a", "int")], [Column("k", "int")]
    assert target.catalog(CatalogInfo("c", location=location)).outcome == REFUSED
    assert target.database(DatabaseInfo("d", location)).outcome == REFUSED
    assert target.database(DatabaseInfo("d", f"{tmp_path}/d", managed_location=location)).outcome == REFUSED
    with pytest.raises(MetaError, match="cannot be a place"):
        target.table(Table("default", "t", "EXTERNAL_TABLE", location=location, columns=columns), None)
    kept = Table("default", "t", "MANAGED_TABLE", location=f"{tmp_path}/t", columns=columns, partition_keys=keys)
    _, stored = target.table(kept, None)
    assert stored is not None
    with pytest.raises(MetaError, match="cannot be a place"):
        target.partitions(stored, [Partition(["1"], location=location)])


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("kind", ["table", "partition", "database", "changed table", "changed partition"])
def test_what_is_still_being_removed_is_waited_for(
    rpc: Rpc,
    catalog: CatalogService,
    db: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    ends: bool,
) -> None:
    """An import was refused where every other verb waits; it waits no longer than they do."""
    columns, keys = [Column("a", "int")], [Column("k", "int")]
    target = Target(db, "source", catalog.removals, replaces=True)

    def mine(location: str) -> Table:
        return Table("default", "mine", "MANAGED_TABLE", location=location, columns=columns, partition_keys=keys)

    _, stored = target.table(mine(f"{tmp_path}/own"), None)
    assert stored is not None
    target.partitions(stored, [Partition(["1"])])
    place = f"file:{tmp_path}/going"
    with db.engine.begin() as connection:
        [removal] = catalog.removals.plan(connection, [place], "default.gone")

    def moved_in() -> Outcome:
        match kind:
            case "table":
                new = Table("default", "new", "MANAGED_TABLE", location=f"{place}/in", columns=columns)
                return target.table(new, None)[0]
            case "changed table":
                return target.table(mine(place), None)[0]
            case "database":
                return target.database(DatabaseInfo("d", place))
            case _:
                name = "1" if kind == "changed partition" else "2"
                return target.partitions(stored, [Partition([name], location=place)])[0][1]

    monkeypatch.setattr(removals, "WAIT_S", 10.0 if ends else 0.0)
    with ThreadPoolExecutor() as pool:
        outcome = pool.submit(moved_in)
        if ends:
            sleep(0.2)
            assert not outcome.done()
            catalog.removals.leave(removal)
            assert outcome.result().outcome == (REPLACED if kind.startswith("changed") else ADDED)
        elif kind == "database":
            assert outcome.result() == Outcome(REFUSED, (f"{STILL_GOING.format(place)}",))
        else:
            with pytest.raises(InvalidOperationError) as error:
                outcome.result()
            assert str(error.value).startswith(STILL_GOING.format(place))
