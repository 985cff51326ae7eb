"""Directories that move, killed before each step and beside all other verbs: files and rows go together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidOperationError, MetastoreError
from hive_acid.wire import ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.place.directories import Directories
from metastore.catalog.removal import removals
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table
from tests.catalog.removal.killed import killed_before

KEYS = (column("k", "string"),)
UNDROP = ttypes.EnvironmentContext(properties={"metastore.catalog.undrop": "true"})
CONFIG = CatalogConfig(undrop_window_ms=3_600_000, acid_guard="allow")


def rename_table(rpc: Rpc) -> None:
    rpc.alter_table("default", "t", table("u", parameters=ACID))


def rename_table_of_partitions(rpc: Rpc) -> None:
    rpc.alter_table("default", "p", table("u", "e", keys=KEYS))


def rename_partition(rpc: Rpc) -> None:
    rpc.rename_partition("default", "p", ["1"], partition(["3"]))


def exchange(rpc: Rpc) -> None:
    rpc.exchange_partition({"k": "1"}, "default", "p", "default", "q")


def undrop(rpc: Rpc) -> None:
    rpc.create_table_with_environment_context(ttypes.Table(dbName="default", tableName="gone"), UNDROP)


MOVES = [rename_table, rename_table_of_partitions, rename_partition, exchange, undrop]


@pytest.fixture
def catalog(db: Database, warehouse: Path) -> CatalogService:
    return served(db, warehouse)


def served(db: Database, warehouse: Path) -> CatalogService:
    """A server's catalogue."""
    catalog = CatalogService(db, str(warehouse), CONFIG)
    catalog.start()
    return catalog


@pytest.fixture
def furnished(rpc: Rpc, warehouse: Path) -> Rpc:
    """Tables whose files say whose they are."""
    rpc.create_database(ttypes.Database(name="e"))
    rpc.create_table(table("t", parameters=ACID))
    for name in "pq":
        rpc.create_table(table(name, keys=KEYS))
    rpc.create_table(table("gone", parameters=ACID))
    (warehouse / "t/data").write_text("t")
    (warehouse / "gone/data").write_text("gone")
    for value in "12":
        rpc.add_partition(partition([value], "p"))
        (warehouse / f"p/k={value}/data").write_text(f"p {value}")
    rpc.drop_table("default", "gone", True)
    return rpc


def locations(rpc: Rpc) -> list[tuple[str, str]]:
    """Where tables and partitions lie."""
    found: list[tuple[str, str]] = []
    for database in rpc.get_all_databases():
        for name in rpc.get_all_tables(database):
            one = rpc.get_table(database, name)
            found.append((name, one.sd.location))
            if one.partitionKeys:
                listed = rpc.get_partitions(database, name, -1)
                found += [(f"{name}/{part.values[0]}", part.sd.location) for part in listed]
    return found


def contents(rpc: Rpc, root: Path) -> dict[str, str]:
    """What lies in the directory of each table and partition that has files."""
    places = {label: Path(place.removeprefix("file:")) / "data" for label, place in locations(rpc)}
    found = {label: place.read_text() for label, place in places.items() if place.exists()}
    everything = sorted(path.read_text() for path in root.rglob("data") if ".trash" not in str(path))
    assert everything == sorted(found.values()), "a file belongs to nobody"
    return found


@pytest.mark.parametrize("again", ["tidied", "asked again"])
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.sampled
def test_a_server_that_is_killed_at_any_step_leaves_all_or_nothing(
    furnished: Rpc, db: Database, db_url: str, warehouse: Path, move: Callable[[Rpc], None], again: str
) -> None:
    before, stored = contents(furnished, warehouse), locations(furnished)
    step = 0
    while killed_before(step, db_url, warehouse, CONFIG, lambda own, _: move(Rpc(own))):
        step += 1
        catalog = served(db, warehouse)  # another one, on the same host
        if locations(furnished) != stored:
            break  # it was killed on the way to its answer
        if again == "tidied":
            catalog.tidy()
            assert contents(furnished, warehouse) == before, step
            assert catalog.removals.waiting() == []
    after = contents(furnished, warehouse)
    assert step >= 4
    assert after != before
    assert sorted(set(after.values()) | {"gone"}) == sorted(set(before.values()) | {"gone"})


class Paused:
    """A move whose directories have moved and whose rows have not; it ends, well or not, when it is told to."""

    def __init__(self, catalog: CatalogService, move: Callable[[Rpc], None], patch: pytest.MonkeyPatch) -> None:
        self._moved, self._go = threading.Event(), threading.Event()
        self._fails = False
        self.error: BaseException | None = None
        original, settle = Directories.move, removals.Removals.settle

        def moving(directories: Directories, source: str, target: str, or_nothing: bool = False) -> None:
            original(directories, source, target, or_nothing)
            if threading.current_thread() is self._thread and not self._go.is_set():
                self._moved.set()
                assert self._go.wait(30)

        def settling(own: removals.Removals, connection: Any, planned: Any) -> None:
            if threading.current_thread() is self._thread and self._fails:
                raise InvalidOperationError("it is not to be")
            settle(own, connection, planned)

        patch.setattr(Directories, "move", moving)
        patch.setattr(removals.Removals, "settle", settling)
        self._thread = threading.Thread(target=self._run, args=(move, Rpc(catalog)))
        self._thread.start()
        assert self._moved.wait(30), self.error

    def _run(self, move: Callable[[Rpc], None], rpc: Rpc) -> None:
        try:
            move(rpc)
        except MetastoreError as error:
            self.error = error

    def end(self, fails: bool) -> None:
        """Let it go on."""
        self._fails = fails
        self._go.set()
        self._thread.join()


def other_verbs(warehouse: Path, move: Callable[[Rpc], None]) -> Iterator[tuple[str, Callable[[Rpc], Any]]]:
    """All that could take or give up a place that a move has to do with."""
    places, owner, database = ENDS[move]
    for name in places:
        for spelled in (f"{warehouse}/{name}", f"{warehouse}//{name}/.", f"{warehouse}/{name}/below"):
            where = storage(location=spelled)
            yield f"plain at {spelled}", lambda rpc, sd=where: rpc.create_table(table("x", sd=sd))
            yield f"ACID at {spelled}", lambda rpc, sd=where: rpc.create_table(table("y", sd=sd, parameters=ACID))
            home = ttypes.Database(name="z", locationUri=spelled)
            yield f"database at {spelled}", lambda rpc, home=home: rpc.create_database(home)
            yield f"partition at {spelled}", lambda rpc, sd=where: rpc.add_partition(partition(["9"], "q", sd=sd))
            alter = ttypes.AlterTableRequest(dbName="default", tableName="q", table=table("q", keys=KEYS, sd=where))
            yield f"alter to {spelled}", lambda rpc, alter=alter: rpc.alter_table_req(alter)
    if owner:
        yield "drop", lambda rpc: rpc.drop_table("default", owner, True)
        yield "truncate", lambda rpc: rpc.truncate_table("default", owner, None)
        renamed = table("v", parameters=ACID) if owner == "t" else table("v", keys=KEYS)
        yield "rename", lambda rpc: rpc.alter_table("default", owner, renamed)
    if owner == "p":
        yield "drop partition", lambda rpc: rpc.drop_partition("default", "p", ["1"], True)
        yield "rename partition", lambda rpc: rpc.rename_partition("default", "p", ["1"], partition(["4"]))
        yield "exchange", lambda rpc: rpc.exchange_partition({"k": "1"}, "default", "p", "default", "q")
    if database:
        yield "drop the database", lambda rpc: rpc.drop_database(database, True, True)
    yield "the same", move


ENDS: dict[Callable[[Rpc], None], tuple[list[str], str, str]] = {
    rename_table: (["t", "u"], "t", ""),
    rename_table_of_partitions: (["p", "e.db/u"], "p", "e"),
    rename_partition: (["p/k=1", "p/k=3"], "p", ""),
    exchange: (["p/k=1", "q/k=1"], "p", ""),
    undrop: (["gone"], "", ""),
}
"""The places that each move has to do with, the table whose directory moves, and the database into which it moves."""


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("move", MOVES)
def test_nobody_comes_between_the_directory_and_its_row(
    furnished: Rpc,
    catalog: CatalogService,
    db: Database,
    warehouse: Path,
    move: Callable[[Rpc], None],
    fails: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = contents(furnished, warehouse)
    other = Rpc(served(db, warehouse))  # another server
    monkeypatch.setattr(removals, "WAIT_S", 0.0)
    paused = Paused(catalog, move, monkeypatch)
    let_in = []
    for name, verb in other_verbs(warehouse, move):
        with suppress(MetastoreError):
            verb(other)
            let_in.append(name)
    paused.end(fails)
    assert let_in == []
    assert (paused.error is not None) is fails, paused.error
    after = contents(furnished, warehouse)
    assert (after == before) is fails
    assert len(after) == len(before) + (move is undrop and not fails)
    assert catalog.removals.waiting() == []


def test_who_drops_what_is_moved_waits(
    furnished: Rpc, catalog: CatalogService, db: Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Rpc(served(db, warehouse))
    paused = Paused(catalog, rename_partition, monkeypatch)
    dropping = threading.Thread(target=lambda: other.drop_table("default", "p", True))
    dropping.start()
    dropping.join(0.3)
    assert dropping.is_alive()
    paused.end(fails=False)
    dropping.join(30)
    assert paused.error is None
    assert "p" not in furnished.get_all_tables("default")
    contents(furnished, warehouse)


def test_a_directory_that_was_there_before_stays(furnished: Rpc, catalog: CatalogService, warehouse: Path) -> None:
    before = contents(furnished, warehouse)
    (warehouse / "u").mkdir()
    (warehouse / "u/somebody's").write_text("theirs")
    with pytest.raises(InvalidOperationError, match="exists already"):
        rename_table(furnished)
    assert contents(furnished, warehouse) == before
    assert (warehouse / "u/somebody's").read_text() == "theirs"
    assert catalog.removals.waiting() == []
