"""Something is noted for its removal after a verb has waited for removals, and before it stores what it makes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from hive_acid.wire import ttypes
from metastore.catalog.place.neighbours import Neighbours
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

KEYS = (column("k", "string"),)
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Verb:
    """What takes a place: done by `take` after `prepare`."""

    prepare: Callable[[Rpc, Path], object]
    take: Callable[[Rpc, Path], object]


def _create(rpc: Rpc, place: Path) -> None:
    rpc.create_table(table("t", sd=storage(location=str(place)), parameters=ACID))


def _create_plain(rpc: Rpc, place: Path) -> None:
    rpc.create_table(table("t", sd=storage(location=str(place))))


def _create_database(rpc: Rpc, place: Path) -> None:
    rpc.create_database(ttypes.Database(name="e", locationUri=str(place)))


def _create_catalog(rpc: Rpc, place: Path) -> None:
    made = ttypes.Catalog(name="c", locationUri=str(place))
    rpc.create_catalog(ttypes.CreateCatalogRequest(catalog=made))


def _alter_database(rpc: Rpc, place: Path) -> None:
    database = rpc.get_database("e")
    database.locationUri = str(place)
    rpc.alter_database("e", database)


def _partitioned(rpc: Rpc, place: Path) -> None:
    rpc.create_table(table("p", keys=KEYS, parameters=ACID))
    rpc.add_partition(partition(["0"]))


def _add_partition(rpc: Rpc, place: Path) -> None:
    rpc.add_partition(partition(["1"], sd=storage(location=str(place))))


def _move_partition(rpc: Rpc, place: Path) -> None:
    moved = rpc.get_partition("default", "p", ["0"])
    moved.sd.location = str(place)
    rpc.alter_partition("default", "p", moved)


def _move_table(rpc: Rpc, place: Path) -> None:
    moved = rpc.get_table("default", "t")
    moved.sd.location = str(place)
    rpc.alter_table("default", "t", moved)


def _rename(rpc: Rpc, place: Path) -> None:
    renamed = rpc.get_table("default", "t")
    renamed.tableName = place.name
    rpc.alter_table("default", "t", renamed)


def _dropped(rpc: Rpc, place: Path) -> None:
    _create(rpc, place)
    rpc.drop_table("default", "t", True)


def _undrop(rpc: Rpc, place: Path) -> None:
    context = ttypes.EnvironmentContext(properties={"metastore.catalog.undrop": "true"})
    rpc.create_table_with_environment_context(ttypes.Table(dbName="default", tableName="t"), context)


VERBS = {
    "create a table": Verb(lambda rpc, place: None, _create),
    "create a plain table": Verb(lambda rpc, place: None, _create_plain),
    "create a database": Verb(lambda rpc, place: None, _create_database),
    "create a catalog": Verb(lambda rpc, place: None, _create_catalog),
    "alter a database": Verb(lambda rpc, place: rpc.create_database(ttypes.Database(name="e")), _alter_database),
    "add a partition": Verb(_partitioned, _add_partition),
    "move a partition": Verb(_partitioned, _move_partition),
    "move a table": Verb(lambda rpc, place: rpc.create_table(table("t")), _move_table),
    "rename a table": Verb(lambda rpc, place: rpc.create_table(table("t")), _rename),
    "undrop": Verb(_dropped, _undrop),
}
MAKES_NONE = ("alter a database", "move a partition", "move a table")
"""The client makes the directory then."""


@pytest.fixture
def noted(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Places whose removal is noted, as one that has failed once, just before the first verb that claims any."""
    places: list[Path] = []

    def late(name: str) -> Callable[..., Any]:
        claim = getattr(Neighbours, name)

        def claimed(self: Neighbours, connection: Connection, wanted: Sequence[str], *more: Any) -> Any:
            while wanted and places:
                with db.engine.begin() as other:
                    other.exec_driver_sql(
                        "INSERT INTO directory_removal (location, owner, only_if_empty, next_at)"
                        " VALUES (%s, 'default.gone', false, clock_timestamp())",
                        (f"file:{places.pop()}",),
                    )
            return claim(self, connection, wanted, *more)

        return claimed

    for name in ("claim", "claim_home"):
        monkeypatch.setattr(Neighbours, name, late(name))
    yield places
    assert places == []  # it came to that


@pytest.mark.parametrize("name", VERBS)
def test_who_takes_the_place_of_what_is_removed_waits_and_has_a_directory(
    make_catalog: Callable[..., CatalogService], warehouse: Path, noted: list[Path], name: str
) -> None:
    catalog = make_catalog(undrop_window_ms=HOUR_MS if name == "undrop" else 0)
    rpc, verb, place = Rpc(catalog), VERBS[name], warehouse / "there"
    verb.prepare(rpc, place)
    noted.append(place)
    verb.take(rpc, place)
    assert place.is_dir() == (name not in MAKES_NONE)
    assert catalog.removals.waiting() == []


def test_a_cleaner_notes_no_directory_that_a_database_has_again(rpc: Rpc, world: AcidWorld, db: Database) -> None:
    rpc.create_database(ttypes.Database(name="e"))
    rpc.create_table(table("t", "e", parameters=ACID))
    reader = world.begin()
    rpc.drop_database("e", True, True)
    rpc.create_database(ttypes.Database(name="e"))
    world.txns.commit_txn(reader)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'noted'; END $$;"
            "CREATE TRIGGER refused BEFORE INSERT ON directory_removal"
            " FOR EACH ROW WHEN (NEW.home_since IS NOT NULL) EXECUTE FUNCTION refused()"
        )
    run = world.clean()
    assert (len(run.removed), run.failed) == (1, {})
