"""An import takes no place in which another table has its files."""

from pathlib import Path

import pytest

from hive_acid.errors import MetaError
from metastore.catalog.models import CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.store.database import Database
from metastore.transfer.models import TransferError
from metastore.transfer.report import REFUSED, REPLACED
from metastore.transfer.target import Target
from tests.catalog.conftest import ACID, Rpc, catalog, make_catalog, rpc, storage, table, warehouse

__all__ = ["catalog", "make_catalog", "rpc", "warehouse"]  # fixtures


def test_an_acid_table_or_partition_in_anothers_place_is_not_imported(rpc: Rpc, db: Database, tmp_path: Path) -> None:
    rpc.create_table(table("victim", sd=storage(location=str(tmp_path / "victim")), parameters=ACID))
    target = Target(db, "source")
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


def test_an_update_takes_no_place_either(rpc: Rpc, db: Database, tmp_path: Path) -> None:
    rpc.create_table(table("victim", sd=storage(location=str(tmp_path / "victim")), parameters=ACID))
    target = Target(db, "source", replaces=True)
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
def test_only_places_that_a_client_may_name_are_imported(rpc: Rpc, db: Database, tmp_path: Path, location: str) -> None:
    target = Target(db, "source", schemes=("file", "s3a"))
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
