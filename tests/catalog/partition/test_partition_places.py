"""What a reader is told of partitions, and whether it is so still: what was dropped and kept, and what is another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidOperationError, NoSuchObjectError
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from metastore.txn.states import TxnType
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

KEYS = (column("k", "string"),)
_TABLE = ttypes.GetTableRequest(
    dbName="default", tblName="p", processorCapabilities=["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"]
)
NOTHING: tuple[bool, list[str], list[str]] = (False, [], [])


@dataclass
class Told:
    """A reader of table p, and what it was told."""

    rpc: Rpc
    txn_id: TxnId
    table: Any
    partitions: list[Any]

    def moved(self) -> tuple[bool, list[str], list[str]]:
        """Whether the table has moved, the partitions that are kept, and those that have moved."""
        answer = self.rpc.hive_acid_moved(
            ttypes.HiveAcidMovedRequest(
                txnid=self.txn_id,
                dbname="default",
                tablename="p",
                tableId=self.table.id,
                location=self.table.sd.location,
                partitions=self.partitions,
            )
        )
        return answer.isMoved, sorted(answer.kept), sorted(answer.moved)


@pytest.fixture
def filled(rpc: Rpc, world: AcidWorld) -> Callable[[], Told]:
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    for value in ("1", "2"):
        rpc.add_partition(partition([value]))
        world.write("p", "old", f"k={value}")

    def told() -> Told:
        txn_id = world.begin(TxnType.READ_ONLY)
        found = rpc.hive_acid_partitions(ttypes.HiveAcidPartitionsRequest(dbname="default", tablename="p"))
        return Told(rpc, txn_id, rpc.get_table_req(_TABLE).table, list(found.partitions))

    return told


def _again(rpc: Rpc) -> None:
    rpc.drop_partition("default", "p", ["1"], True)
    rpc.add_partition(partition(["1"]))


def _relocated(rpc: Rpc) -> None:
    found = rpc.get_partition("default", "p", ["1"])
    found.sd.location += "_elsewhere"
    rpc.alter_partition("default", "p", found)


def _renamed(rpc: Rpc) -> None:
    found = rpc.get_partition("default", "p", ["1"])
    found.values = ["3"]
    rpc.rename_partition("default", "p", ["1"], found)


def _table_renamed(rpc: Rpc) -> None:
    found = rpc.get_table_req(_TABLE).table
    found.tableName = "q"
    rpc.alter_table("default", "p", found)


def _replaced(rpc: Rpc) -> None:
    rpc.drop_table("default", "p", True)
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partition(partition(["1"]))


CHANGES: dict[str, tuple[Callable[[Rpc], object], tuple[bool, list[str], list[str]]]] = {
    "nothing": (lambda rpc: None, NOTHING),
    "added": (lambda rpc: rpc.add_partition(partition(["3"])), NOTHING),
    "dropped": (lambda rpc: rpc.drop_partition("default", "p", ["1"], True), (False, ["k=1"], [])),
    "dropped without its files": (
        lambda rpc: rpc.drop_partition("default", "p", ["1"], False),
        (False, [], ["k=1"]),
    ),
    "dropped and made anew": (_again, (False, ["k=1"], [])),
    "relocated": (_relocated, (False, [], ["k=1"])),
    "renamed": (_renamed, (False, [], ["k=1"])),
    "renamed and dropped": (
        lambda rpc: (_renamed(rpc), rpc.drop_partition("default", "p", ["3"], True)),
        (False, [], ["k=1"]),
    ),
    "table dropped": (lambda rpc: rpc.drop_table("default", "p", True), (False, ["k=1", "k=2"], [])),
    "table dropped without its files": (
        lambda rpc: rpc.drop_table("default", "p", False),
        (True, [], ["k=1", "k=2"]),
    ),
    "table replaced": (_replaced, (False, ["k=1", "k=2"], [])),
    "table renamed": (_table_renamed, (True, [], ["k=1", "k=2"])),
    "partition and table dropped": (
        lambda rpc: (rpc.drop_partition("default", "p", ["1"], True), rpc.drop_table("default", "p", True)),
        (False, ["k=1", "k=2"], []),
    ),
    "partition relocated, table dropped": (
        lambda rpc: (_relocated(rpc), rpc.drop_table("default", "p", True)),
        (False, ["k=2"], ["k=1"]),
    ),
    "partition renamed, table dropped": (
        lambda rpc: (_renamed(rpc), rpc.drop_table("default", "p", True)),
        (False, ["k=2"], ["k=1"]),
    ),
}


@pytest.mark.parametrize("how", CHANGES)
def test_what_a_reader_was_told_is_so_or_not(rpc: Rpc, filled: Callable[[], Told], how: str) -> None:
    change, expected = CHANGES[how]
    told = filled()
    assert [one.name for one in told.partitions] == ["k=1", "k=2"]
    assert told.moved() == NOTHING
    change(rpc)
    assert told.moved() == expected


def test_a_partition_that_lies_elsewhere_is_kept_with_its_table(
    rpc: Rpc, world: AcidWorld, filled: Callable[[], Told], warehouse: Path
) -> None:
    rpc.add_partition(partition(["9"], sd=storage(location=f"file:{warehouse}/elsewhere")))
    world.write("p", "old", "k=9")
    told = filled()
    rpc.drop_table("default", "p", True)
    assert told.moved() == (False, ["k=1", "k=2", "k=9"], [])


def test_the_files_of_a_dropped_partition_do_not_move_with_the_next_one(rpc: Rpc, filled: Callable[[], Told]) -> None:
    """That has its place, so its directory has the files of both."""
    told = filled()
    _again(rpc)
    with suppress(InvalidOperationError):
        _renamed(rpc)
    place = Path(told.partitions[0].location.removeprefix("file:"))
    is_there = any(path.is_file() for path in place.glob("delta_*/*"))
    assert told.moved() == ((False, ["k=1"], []) if is_there else (False, [], ["k=1"]))


def test_nothing_is_kept_for_who_has_begun_later_or_has_ended(
    rpc: Rpc, world: AcidWorld, filled: Callable[[], Told]
) -> None:
    told = filled()
    rpc.drop_partition("default", "p", ["1"], True)
    later = Told(rpc, world.begin(TxnType.READ_ONLY), told.table, told.partitions)
    assert later.moved() == (False, [], ["k=1"])
    assert told.moved() == (False, ["k=1"], [])
    world.txns.commit_txn(told.txn_id)
    assert told.moved()[0]


def test_nothing_is_kept_where_files_go_at_once(make_catalog: Callable[..., CatalogService], db: Database) -> None:
    catalog = make_catalog(soft_delete=False)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partition(partition(["1"]))
    found = rpc.hive_acid_partitions(ttypes.HiveAcidPartitionsRequest(dbname="default", tablename="p")).partitions
    told = Told(rpc, world.begin(TxnType.READ_ONLY), rpc.get_table_req(_TABLE).table, list(found))
    rpc.drop_partition("default", "p", ["1"], True)
    rpc.add_partition(partition(["1"]))
    assert told.moved() == (False, [], ["k=1"])


def test_many_are_told_and_looked_for_in_one_call(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partitions([partition([f"{number:04}"]) for number in range(400)])
    found = rpc.hive_acid_partitions(ttypes.HiveAcidPartitionsRequest(dbname="default", tablename="p"))
    with found.rows.opened() as rows:
        partitions = list(rows)
    assert [one.name for one in partitions] == [f"k={number:04}" for number in range(400)]
    told = Told(rpc, world.begin(TxnType.READ_ONLY), rpc.get_table_req(_TABLE).table, partitions)
    names = [f"{number:04}" for number in range(0, 400, 2)]
    rpc.drop_partitions_req(
        ttypes.DropPartitionsRequest(
            dbName="default",
            tblName="p",
            parts=ttypes.RequestPartsSpec(names=[f"k={name}" for name in names]),
            deleteData=True,
            needResult=False,
        )
    )
    assert told.moved() == (False, [f"k={name}" for name in names], [])


def test_a_table_that_is_not_there_has_none(rpc: Rpc) -> None:
    with pytest.raises(NoSuchObjectError):
        rpc.hive_acid_partitions(ttypes.HiveAcidPartitionsRequest(dbname="default", tablename="nothere"))
