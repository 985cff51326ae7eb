"""An import takes no place in which another table has its files."""

from pathlib import Path

import pytest

from metastore.catalog.models import Column, Partition, Table
from metastore.store.database import Database
from metastore.transfer.models import TransferError
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
