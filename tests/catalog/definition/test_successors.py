"""A table takes the place of another one: all of it with the commit, or nothing, and nobody sees it before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    MetastoreError,
    NoSuchObjectError,
    TxnAbortedError,
)
from hive_acid.filesystem import files
from hive_acid.format.names import VERSION_MARKER, base_name, bucket_file_name
from hive_acid.format.properties import REPLACED, SUCCEEDS, replaced_mark, successor_name
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.definition.alterations import AlterRequest
from metastore.catalog.models import USER
from metastore.catalog.registry.privileges import Grant, ObjectType, SecuredObject
from metastore.catalog.registry.roles import Principal
from metastore.catalog.service import CatalogService
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.commits import AloneCommit, ExtendedCommits
from metastore.txn.states import Operation
from tests.catalog.acid_world import DEFAULT, OWNER, AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, table
from tests.catalog.removal.killed import killed_before
from tests.catalog.removal.test_undrop import undrop

OLD_KEYS, NEW_KEYS = (column("p", "string"),), (column("q", "int"), column("r", "date"))


@dataclass(frozen=True)
class Replacing:
    """A transaction that has the table `t` to itself, and has made and filled its successor."""

    world: AcidWorld
    txn_id: TxnId
    table_id: int
    write_id: int

    @property
    def name(self) -> str:
        return successor_name(self.txn_id)

    @property
    def successor_id(self) -> int:
        return self.world.catalog.tables.get(DEFAULT, self.name).id

    def commit(self, **changed: Any) -> None:
        """As the RPC does."""
        catalog, commits, ended = self.world.catalog, ExtendedCommits(self.world.db), list[AloneCommit]()

        def commit(connection: Any) -> bool:
            ended[:] = [commits.commit_alone(connection, self.txn_id, DEFAULT, "t")]
            return ended[0].is_done

        made = catalog.tables.get(DEFAULT, self.name)
        wanted = replace(
            made, name="t", parameters={**made.parameters, REPLACED: replaced_mark(made.id, self.write_id)}
        )
        given = {"wanted": wanted, "table_id": self.table_id, "successor_id": made.id, "txn_id": self.txn_id, **changed}
        removals = catalog.successors.take_place(**given, commit=commit)
        commits.answered(ended[0])
        catalog.removals.run(removals)


def told(rpc: Rpc, name: str) -> Any:
    """A table, as a client sees it."""
    return rpc.get_table_req(ttypes.GetTableRequest(dbName=DEFAULT, tblName=name)).table


def begun(rpc: Rpc, world: AcidWorld, **fields: Any) -> Replacing:
    """A transaction that is about to replace the table."""
    txn_id = world.begin_alone("t", LockComponent(LockType.EXCLUSIVE, DEFAULT, "t", None, Operation.DELETE))
    ((_, write_id),) = world.write_ids.allocate(DEFAULT, "t", [txn_id])
    found = Replacing(world, txn_id, world.catalog.tables.get(DEFAULT, "t").id, write_id)
    rpc.create_table(
        table(found.name, keys=NEW_KEYS, parameters={**ACID, SUCCEEDS: "t", "new": "1"}, owner="bob", **fields)
    )
    rpc.add_partition(partition(["1", "2024-02-29"], found.name))
    directory = files.join(world.location(found.name, "q=1/r=2024-02-29"), base_name(write_id))
    files.make_directory(directory)
    files.write(files.join(directory, VERSION_MARKER), b"2")
    files.write(files.join(directory, bucket_file_name(0)), b"new")
    return found


@pytest.fixture(autouse=True)
def old(rpc: Rpc, world: AcidWorld) -> Any:
    """The table that is there, with a row."""
    rpc.create_table(table("t", keys=OLD_KEYS, parameters={**ACID, "old": "1"}, owner="ann"))
    rpc.add_partition(partition(["a"], "t"))
    world.write("t", "old", "p=a")
    return told(rpc, "t")


def is_old(rpc: Rpc, world: AcidWorld, old: Any) -> bool:
    assert told(rpc, "t") == old
    return world.rows("t", "p=a") == ["old"]


def test_it_has_name_and_write_ids_and_owner(rpc: Rpc, world: AcidWorld, old: Any, warehouse: Path) -> None:
    begun(rpc, world).commit()
    now = told(rpc, "t")
    assert [key.name for key in now.partitionKeys] == ["q", "r"]
    assert (now.owner, now.parameters["new"], SUCCEEDS in now.parameters, "old" in now.parameters) == (
        *("ann", "1", False, False),
    )
    assert now.id != old.id
    assert rpc.get_partition_names("default", "t", -1) == ["q=1/r=2024-02-29"]
    assert world.rows("t", "q=1/r=2024-02-29") == ["new"]
    assert world.write("t", "more", "q=1/r=2024-02-29") == 3, "write ids go on"
    assert world.rows("t", "q=1/r=2024-02-29") == ["more", "new"]
    place = Path(now.sd.location.removeprefix("file:"))
    assert (place.parent, place.name[:3]) == (warehouse, "t.v")
    assert [found.name for found in warehouse.iterdir()] == [place.name], "the former one's files are gone"
    assert world.count("txn_component", "t") == world.count("unresolved_write_id", "t") == 0


def test_it_can_be_done_again_and_then_be_renamed(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    for _ in range(3):
        begun(rpc, world).commit()
    moved = told(rpc, "t")
    moved.tableName = "u"
    rpc.alter_table("default", "t", moved)
    assert world.rows("u", "q=1/r=2024-02-29") == ["new"]
    assert [found.name for found in warehouse.iterdir()] == ["u"]
    assert world.catalog.tidy() == 0


def test_no_list_tells_of_it_before(rpc: Rpc, world: AcidWorld) -> None:
    made = begun(rpc, world)
    assert rpc.get_all_tables("default") == rpc.get_tables("default", "*") == ["t"]
    assert rpc.get_tables("default", "hive*") == rpc.get_tables_by_type("default", "*", "MANAGED_TABLE")[1:] == []
    assert [one.tableName for one in rpc.get_table_meta("*", "*", [])] == ["t"]
    assert rpc.get_table_names_by_filter("default", 'hive_filter_field_params__new = "1"', -1) == []
    assert told(rpc, made.name).owner == "bob", "who knows its name finds it"


def test_readers_of_the_former_one_finish(rpc: Rpc, world: AcidWorld, warehouse: Path) -> None:
    reader = world.reader("t", "p=a")
    begun(rpc, world).commit()
    assert reader.rows() == ["old"]
    world.clean()
    assert reader.rows() == ["old"]
    reader.end()
    assert world.clean().removed == [f"file:{warehouse}/t"]
    assert world.rows("t", "q=1/r=2024-02-29") == ["new"]
    assert world.write("t", "more", "q=1/r=2024-02-29") == 3


def test_the_former_one_can_be_brought_back(
    make_catalog: Callable[..., CatalogService], db: Database, old: Any
) -> None:
    catalog = make_catalog(undrop_window_ms=3_600_000)
    rpc, world = Rpc(catalog), AcidWorld(db, catalog)
    begun(rpc, world).commit()
    moved = told(rpc, "t")
    moved.tableName = "u"
    rpc.alter_table("default", "t", moved)
    undrop(rpc, "t")
    assert is_old(rpc, world, old)
    assert world.rows("u", "q=1/r=2024-02-29") == ["new"]


def test_privileges_are_passed_on(rpc: Rpc, world: AcidWorld) -> None:
    kinds = ObjectType
    for privilege, kind, more in (
        ("SELECT", kinds.TABLE, {}),
        ("INSERT", kinds.COLUMN, {"column": "a"}),
        ("UPDATE", kinds.COLUMN, {"column": "p"}),
        ("DELETE", kinds.PARTITION, {"partition": ("a",)}),
    ):
        on = SecuredObject(kind, DEFAULT, "t", **more)
        world.catalog.privileges.grant([Grant(on, Principal("cid"), privilege, "ann", USER)])
    begun(rpc, world).commit()
    with world.db.engine.connect() as connection:
        query = "SELECT privilege, column_name FROM privilege WHERE table_id IS NOT NULL ORDER BY privilege"
        found = [tuple(row) for row in connection.exec_driver_sql(query)]
    assert found == [("INSERT", "a"), ("SELECT", None)]


# --- what it does not do ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": ACID},
        {"parameters": {**ACID, SUCCEEDS: "nosuch"}},
        {"parameters": {SUCCEEDS: "t"}},
        {"parameters": {**ACID, SUCCEEDS: "t"}, "number": 12345},
        {"parameters": {**ACID, SUCCEEDS: "t"}, "number": "x"},
        {"parameters": {**ACID, SUCCEEDS: "t"}, "number": "٣"},
    ],
)
def test_others_cannot_be_called_so(rpc: Rpc, world: AcidWorld, fields: dict[str, Any]) -> None:
    number = fields.pop("number", world.begin())
    with pytest.raises(InvalidObjectError):
        rpc.create_table(table(f"hive_acid_successor_{number}", **fields))


def test_nothing_is_renamed_to_or_from_it(rpc: Rpc, world: AcidWorld) -> None:
    made = begun(rpc, world)
    for name, to in ((made.name, "u"), ("t", "hive_acid_successor_7")):
        moved = told(rpc, name)
        moved.tableName = to
        with pytest.raises(InvalidOperationError, match="about to take another one's place"):
            rpc.alter_table("default", name, moved)


def test_a_chosen_place_asks_for_another_one(rpc: Rpc, world: AcidWorld, old: Any, tmp_path: Path) -> None:
    rpc.drop_table("default", "t", True)
    rpc.create_table(table("t", sd=None, parameters=ACID))
    chosen = told(rpc, "t")
    chosen.sd.location = str(tmp_path / "far")
    rpc.drop_table("default", "t", True)
    rpc.create_table(chosen)
    with pytest.raises(InvalidObjectError, match="which was chosen for it"):
        begun(rpc, world)


Wrong = Callable[[Rpc, AcidWorld, Replacing], dict[str, Any]]


def _renamed(rpc: Rpc, world: AcidWorld, _: Replacing) -> dict[str, Any]:
    moved = told(rpc, "t")
    moved.tableName = "u"
    rpc.alter_table("default", "t", moved)
    return {}


def _dropped(rpc: Rpc, world: AcidWorld, _: Replacing) -> dict[str, Any]:
    rpc.drop_table("default", "t", True)
    return {}


def _made_anew(rpc: Rpc, world: AcidWorld, _: Replacing) -> dict[str, Any]:
    rpc.drop_table("default", "t", True)
    rpc.create_table(table("t", keys=OLD_KEYS, parameters=ACID))
    return {}


def _others_write(rpc: Rpc, world: AcidWorld, _: Replacing) -> dict[str, Any]:
    world.write_ids.allocate(DEFAULT, "t", [world.begin()])
    return {}


def _became_another_kind(rpc: Rpc, world: AcidWorld, made: Replacing) -> dict[str, Any]:
    there = world.catalog.tables.get(DEFAULT, made.name)
    return {"wanted": replace(there, name="t", parameters={**ACID, "transactional_properties": "insert_only"})}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda rpc, world, made: {"table_id": 12345}, InvalidOperationError),
        (lambda rpc, world, made: {"successor_id": made.table_id}, InvalidOperationError),
        (_renamed, MetastoreError),
        (_dropped, MetastoreError),
        (_made_anew, MetastoreError),
        (_others_write, MetaError),
        (_became_another_kind, MetaError),
    ],
)
def test_what_cannot_be_commits_nothing(rpc: Rpc, world: AcidWorld, wrong: Wrong, error: type[MetastoreError]) -> None:
    made = begun(rpc, world)
    changed = wrong(rpc, world, made)
    before = {name: told(rpc, name) for name in rpc.get_all_tables("default")}
    with pytest.raises(error):
        made.commit(**changed)
    assert {name: told(rpc, name) for name in rpc.get_all_tables("default")} == before
    world.txns.abort_txn(made.txn_id)  # it is open still
    world.catalog.tidy()
    with pytest.raises(NoSuchObjectError):
        told(rpc, made.name)


def test_the_successor_of_another_one_is_not_taken(rpc: Rpc, world: AcidWorld, old: Any) -> None:
    made, other = begun(rpc, world), world.begin()
    rpc.create_table(table("u", parameters=ACID))
    world.write_ids.allocate(DEFAULT, "u", [other])
    with pytest.raises(NoSuchObjectError):
        replace(made, txn_id=other, table_id=world.catalog.tables.get(DEFAULT, "u").id).commit()
    assert is_old(rpc, world, old)


def test_a_conflict_aborts(rpc: Rpc, world: AcidWorld, old: Any) -> None:
    """Somebody has changed rows before it had its lock, and after it had begun."""
    txn_id = world.begin()
    world.write("t", "changed", "p=a", Operation.UPDATE)
    world.write_ids.allocate(DEFAULT, "t", [txn_id])
    component = LockComponent(LockType.EXCLUSIVE, DEFAULT, "t", None, Operation.DELETE)
    world.locks.lock(LockRequest((component,), OWNER, txn_id))
    made = Replacing(world, txn_id, world.catalog.tables.get(DEFAULT, "t").id, 3)
    rpc.create_table(table(made.name, keys=NEW_KEYS, parameters={**ACID, SUCCEEDS: "t"}))
    with pytest.raises(TxnAbortedError, match="write conflict"):
        made.commit()
    assert told(rpc, "t") == old
    assert world.catalog.tidy() >= 1
    assert world.rows("t", "p=a") == ["changed", "old"]


def test_who_had_begun_before_conflicts(rpc: Rpc, world: AcidWorld) -> None:
    before = world.begin()
    begun(rpc, world).commit()
    world.write("t", "late", "q=1/r=2024-02-29", Operation.UPDATE, before)
    with pytest.raises(TxnAbortedError, match="write conflict"):
        world.txns.commit_txn(before)
    assert world.rows("t", "q=1/r=2024-02-29") == ["new"]


# --- what becomes of it otherwise ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["aborted", "committed without it", "open"])
def test_it_goes_when_its_transaction_has_ended_without_it(
    rpc: Rpc, world: AcidWorld, old: Any, warehouse: Path, end: str
) -> None:
    made = begun(rpc, world)
    if end == "aborted":
        world.txns.abort_txn(made.txn_id)
    elif end != "open":
        world.txns.commit_txn(made.txn_id)
    world.catalog.tidy()
    is_there = world.catalog.tables.find(DEFAULT, made.name) is not None
    assert is_there is (end == "open")
    world.clean()
    assert len([found for found in warehouse.iterdir() if found.name.startswith("t.v")]) == is_there
    assert is_old(rpc, world, old)


def test_what_somebody_else_has_called_so_stays(rpc: Rpc, world: AcidWorld) -> None:
    """As one that was there before the name meant anything."""
    rpc.create_table(table("somebodys"))
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE tbl SET name = 'hive_acid_successor_1' WHERE name = 'somebodys'")
    world.catalog.tidy()
    assert world.catalog.tables.find(DEFAULT, "hive_acid_successor_1") is not None


def test_a_database_in_which_nothing_else_is_left_can_be_dropped(rpc: Rpc, world: AcidWorld) -> None:
    rpc.create_database(ttypes.Database(name="e"))
    rpc.create_table(table("t", "e", parameters=ACID))
    txn_id = world.begin()
    rpc.create_table(table(successor_name(txn_id), "e", parameters={**ACID, SUCCEEDS: "t"}))
    rpc.drop_table("e", "t", True)
    rpc.drop_database("e", True, False)
    assert rpc.get_all_databases() == ["default"]


def test_a_server_that_is_killed_at_any_step_leaves_one_of_them(
    rpc: Rpc, world: AcidWorld, old: Any, db: Database, db_url: str, warehouse: Path
) -> None:
    step, killed, ends = 0, True, set[str]()
    config = CatalogConfig(undrop_window_ms=0)
    while killed:
        made = begun(rpc, world)

        def work(catalog: CatalogService, database: Database, made: Replacing = made) -> None:
            replace(made, world=AcidWorld(database, catalog)).commit()

        killed = killed_before(step, db_url, warehouse, config, work)
        step += 1
        catalog = CatalogService(db, str(warehouse), config)
        catalog.start()
        now = catalog.tables.get(DEFAULT, "t")
        if now.id == made.table_id:
            ends.add("old")
            world.txns.abort_txn(made.txn_id)
            assert is_old(rpc, world, old)
        else:
            ends.add("new")
            assert world.rows("t", "q=1/r=2024-02-29") == ["new"]
        catalog.tidy()
        world.clean()
        catalog.tidy()
        assert rpc.get_all_tables("default") == ["t"]
        assert catalog.tables.find(DEFAULT, made.name) is None
        assert [found.name for found in warehouse.iterdir()] == [(now.location or "").rpartition("/")[2]]
        if "new" in ends and killed:
            rpc.drop_table("default", "t", True)
            rpc.create_table(table("t", keys=OLD_KEYS, parameters=ACID))
            rpc.add_partition(partition(["a"], "t"))
            world.write("t", "old", "p=a")
            old = told(rpc, "t")
    assert ends == {"old", "new"}
    assert step > 4


def test_an_alteration_of_it_keeps_its_name(rpc: Rpc, world: AcidWorld) -> None:
    """As of its statistics, which a client may tell meanwhile."""
    made = begun(rpc, world)
    there = world.catalog.tables.get(DEFAULT, made.name)
    world.catalog.alterations.alter(
        DEFAULT, made.name, replace(there, parameters={**there.parameters, "x": "1"}), AlterRequest()
    )
    made.commit()
    assert told(rpc, "t").parameters["x"] == "1"
