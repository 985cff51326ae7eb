"""Whatever is asked of a place, however it is spelt, the data of others stays."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError, MetastoreError
from hive_acid.wire import ttypes
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Own
from metastore.catalog.schema import TBL
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.caller import Caller, Refused
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table
from tests.catalog.place.test_places import ignore_case
from tests.waiting import stays

ROW = "a row"


def spellings(place: Path) -> Iterator[str]:
    """Forms of one local place, through a link too."""
    above, name = place.parent, place.name
    yield str(place)
    if (above.parent / above.name.swapcase()).exists():  # as on exFAT, which has no links
        yield f"{above}/{name.swapcase()}"
        yield f"file:{above.parent}/{above.name.upper()}//{name.title()}"
        return
    link = above.parent / f"link-to-{above.name}"
    if not link.exists():
        link.symlink_to(above)
    yield f"file:{above}/./{name}"
    yield f"file://{above}//{name}/"
    yield f"FILE:{above}/x/../{name}"
    yield f"file:{link}/{name}"
    yield f"{link}/.//y/../{name}/."


def places(victim: Path) -> Iterator[tuple[str, Path]]:
    """Where somebody else's place is in the way of: at it, above it, in it."""
    yield "at", victim
    yield "above", victim.parent
    yield "in", victim / "part"


def _managed(rpc: Rpc, name: str, location: str, **more: Any) -> None:
    rpc.create_table(table(name, sd=storage(location=location), **more))


def drop_table(rpc: Rpc, location: str) -> None:
    _managed(rpc, "mine", location)
    rpc.drop_table("default", "mine", True)


def drop_purged_table(rpc: Rpc, location: str) -> None:
    _managed(rpc, "mine", location, tableType="EXTERNAL_TABLE", parameters={"external.table.purge": "true"})
    rpc.drop_table("default", "mine", True)


def drop_partition(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "mine", sd=storage(location=location)))
    rpc.drop_partition("default", "mine", ["1"], True)


def drop_table_of_partition(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "mine", sd=storage(location=location)))
    rpc.drop_table("default", "mine", True)


def drop_partition_of_acid_table(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine", keys=(column("k"),), parameters=ACID))
    rpc.add_partition(partition(["1"], "mine", sd=storage(location=location)))
    rpc.drop_partition("default", "mine", ["1"], True)


def truncate_table(rpc: Rpc, location: str) -> None:
    _managed(rpc, "mine", location)
    rpc.truncate_table("default", "mine", None)


def truncate_partition(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "mine", sd=storage(location=location)))
    rpc.truncate_table("default", "mine", ["k=1"])


def alter_and_drop(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine"))
    rpc.alter_table("default", "mine", table("mine", sd=storage(location=location)))
    rpc.drop_table("default", "mine", True)


def alter_partition_and_drop(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "mine"))
    rpc.alter_partition("default", "mine", partition(["1"], "mine", sd=storage(location=location)))
    rpc.drop_partition("default", "mine", ["1"], True)


def make_external_one_managed(rpc: Rpc, location: str) -> None:
    _managed(rpc, "mine", location, tableType="EXTERNAL_TABLE")
    rpc.alter_table("default", "mine", table("mine", sd=storage(location=location), parameters={"EXTERNAL": "FALSE"}))
    rpc.drop_table("default", "mine", True)


def drop_database(rpc: Rpc, location: str) -> None:
    rpc.create_database(ttypes.Database(name="d", locationUri=location))
    rpc.create_table(table("t", "d"))
    rpc.drop_database("d", True, True)


def alter_database_and_drop(rpc: Rpc, location: str) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.alter_database("d", ttypes.Database(name="d", locationUri=location))
    rpc.create_table(table("t", "d"))
    rpc.drop_database("d", True, True)


def exchange_and_drop(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("mine", keys=(column("k"),)))
    rpc.create_table(table("taking", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "mine", sd=storage(location=location)))
    rpc.exchange_partition({"k": "1"}, "default", "mine", "default", "taking")
    rpc.drop_table("default", "taking", True)


def become_transactional(rpc: Rpc, location: str) -> None:
    _managed(rpc, "mine", location)
    rpc.alter_table("default", "mine", table("mine", sd=storage(location=location), parameters=ACID))
    rpc.truncate_table("default", "mine", None)
    rpc.drop_table("default", "mine", True)


VERBS: list[Callable[[Rpc, str], None]] = [
    drop_table,
    drop_purged_table,
    drop_partition,
    drop_table_of_partition,
    drop_partition_of_acid_table,
    truncate_table,
    truncate_partition,
    alter_and_drop,
    alter_partition_and_drop,
    make_external_one_managed,
    drop_database,
    alter_database_and_drop,
    exchange_and_drop,
    become_transactional,
]


class Server:
    """The calls of one client over a socket, in the form of `Rpc`."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(self._client.call, method)


def test_no_verb_of_a_server_takes_the_data_of_others(metastore: Callable[..., str], tmp_path: Path) -> None:
    """Every verb with every spelling of somebody else's place, over a socket."""
    victim = tmp_path / "far" / "victim"
    data = victim / "part" / "data"
    with Caller(metastore()) as client:
        rpc: Any = Server(client)
        _victim(rpc, victim, "acid")
        data.parent.mkdir()
        data.write_text(ROW)
        for verb, location in itertools.product(VERBS, spellings(victim)):
            with suppress(Refused):
                verb(rpc, location)
            assert [entry.name for entry in data.parent.iterdir()] == ["data"], f"{verb.__name__} at {location}"
            _clean_up(rpc)
    assert data.read_text() == ROW


@pytest.mark.parametrize("kind", ["acid", "plain", "external", "partition"])
def test_no_verb_takes_the_data_of_others(
    make_catalog: Callable[..., CatalogService], tmp_path: Path, kind: str
) -> None:
    """Every verb at, above and in every kind of place, spelt by seed; it may refuse, but the file stays."""
    rng = random.Random(kind)
    catalog = make_catalog()
    rpc = Rpc(catalog)
    victim = tmp_path / "far" / "victim"
    _victim(rpc, victim, kind)
    data = victim / "part" / "data"
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_text(ROW)
    for verb, (where, place) in itertools.product(VERBS, places(victim)):
        location = rng.choice(list(spellings(place)))
        with suppress(MetastoreError):
            verb(rpc, location)
        catalog.tidy()
        assert data.exists(), f"{verb.__name__} {where} a place of {kind}: {location}"
        assert [entry.name for entry in (victim / "part").iterdir()] == ["data"], f"{verb.__name__} {where} {location}"
        _clean_up(rpc)
    assert data.read_text() == ROW
    sweep = catalog.removals.remove_dropped
    assert not any(sweep(location) for location in spellings(victim))
    assert data.exists()


def _victim(rpc: Rpc, place: Path, kind: str) -> None:
    match kind:
        case "acid":
            _managed(rpc, "victim", str(place), parameters=ACID)
        case "plain":
            _managed(rpc, "victim", str(place))
        case "external":
            _managed(rpc, "victim", str(place), tableType="EXTERNAL_TABLE")
        case "partition":
            rpc.create_table(table("victim", keys=(column("k"),)))
            rpc.add_partition(partition(["1"], "victim", sd=storage(location=str(place))))


def _clean_up(rpc: Rpc) -> None:
    for name in ("mine", "taking"):
        if name in rpc.get_all_tables("default"):
            rpc.drop_table("default", name, True)
    if "d" in rpc.get_all_databases():
        rpc.drop_database("d", True, True)


def test_an_acid_table_shares_its_place_with_nobody(rpc: Rpc, tmp_path: Path) -> None:
    victim = tmp_path / "far" / "victim"
    _managed(rpc, "victim", str(victim), parameters=ACID)
    for (where, place), parameters in itertools.product(places(victim), ({}, ACID)):
        for location in spellings(place):
            with pytest.raises(InvalidObjectError, match=r"in use.*victim"):
                _managed(rpc, "mine", location, parameters=parameters)
            rpc.create_table(table("mine", keys=(column("k"),), parameters=parameters))
            with pytest.raises(InvalidObjectError, match=r"in use.*victim"):
                rpc.add_partition(partition(["1"], "mine", sd=storage(location=location)))
            rpc.add_partition(partition(["1"], "mine"))
            with pytest.raises(InvalidOperationError, match=r"in use.*victim"):
                rpc.alter_partition("default", "mine", partition(["1"], "mine", sd=storage(location=location)))
            with pytest.raises(InvalidOperationError, match=r"in use.*victim"):
                changed = table("mine", keys=(column("k"),), parameters=parameters, sd=storage(location=location))
                rpc.alter_table("default", "mine", changed)
            rpc.drop_table("default", "mine", True)
            if where != "above":
                with pytest.raises(InvalidObjectError, match=r"in use.*victim"):
                    rpc.create_database(ttypes.Database(name="d", locationUri=location))


def test_where_case_does_not_count(rpc: Rpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two clients have taken before that was known, too; where it does count these are two places."""
    victim, other = tmp_path / "far" / "victim", tmp_path / "far" / "VICTIM"
    for name, place in ("victim", victim), ("before", other), ("gone", other.with_name("Victim")):
        _managed(rpc, name, str(place), parameters=ACID)
        (place / "part").mkdir()
        (place / "part" / "data").write_text(ROW)
    rpc.drop_table("default", "gone", True)
    assert not other.with_name("Victim").exists()
    ignore_case(monkeypatch, tmp_path)
    rpc.drop_table("default", "before", True)
    assert (other / "part" / "data").read_text() == ROW
    for verb in VERBS:
        for spelled in (str(other), f"file:{tmp_path}/FAR/victim", f"{other}/part"):
            with suppress(MetastoreError):
                verb(rpc, spelled)
            assert (other / "part" / "data").read_text() == ROW, f"{verb.__name__} {spelled}"
            assert (victim / "part" / "data").read_text() == ROW, f"{verb.__name__} {spelled}"
            _clean_up(rpc)
    for parameters in ({}, ACID):
        with pytest.raises(InvalidObjectError, match=r"in use.*victim"):
            _managed(rpc, "mine", str(other), parameters=parameters)
    rpc.drop_table("default", "victim", True)
    assert not victim.exists()


@pytest.mark.parametrize("kind", ["table", "partition", "database"])
def test_two_who_take_one_place_at_once_where_case_does_not_count(
    rpc: Rpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The disk was empty when both looked at it: there was no name yet to tell that case does not count."""
    disk = tmp_path / "disk"
    disk.mkdir()
    ignore_case(monkeypatch, disk)
    rpc.create_table(table("parted", keys=(column("k"),), parameters=ACID))
    make, make_all = Directories.make, Directories.make_all

    def other(*_: Any) -> None:
        monkeypatch.setattr(Directories, "make", make)
        monkeypatch.setattr(Directories, "make_all", make_all)
        _managed(rpc, "winner", f"{disk}/VICTIM", parameters=ACID)

    # The first finds the directory made when its turn comes, as on such a disk.
    monkeypatch.setattr(Directories, "make", other)
    monkeypatch.setattr(Directories, "make_all", other)
    with pytest.raises(InvalidObjectError, match=r"in use.*winner"):
        match kind:
            case "table":
                _managed(rpc, "loser", f"{disk}/Victim", parameters=ACID)
            case "partition":
                rpc.add_partition(partition(["1"], "parted", sd=storage(location=f"{disk}/Victim")))
            case _:
                rpc.create_database(ttypes.Database(name="loser", locationUri=f"{disk}/Victim"))
    assert (disk / "VICTIM").is_dir()


@pytest.mark.parametrize("kind", ["table", "partition", "database"])
def test_two_other_locations_at_once_where_case_does_not_count(
    rpc: Rpc, catalog: CatalogService, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nothing is made at another location, so an empty disk tells nobody; and the first has looked at it in vain."""
    disk = tmp_path / "disk"
    disk.mkdir()
    rpc.create_table(table("first", parameters=ACID))
    rpc.create_table(table("second", keys=(column("k"),), parameters=ACID))
    rpc.add_partition(partition(["1"], "second"))
    rpc.create_database(ttypes.Database(name="d"))
    first = catalog.tables.get("default", "first")
    place = f"file:{disk}/Place"

    def taken() -> None:
        match kind:
            case "table":
                moved = table("second", keys=(column("k"),), sd=storage(location=other), parameters=ACID)
                rpc.alter_table("default", "second", moved)
            case "partition":
                rpc.alter_partition("default", "second", partition(["1"], "second", sd=storage(location=other)))
            case _:
                rpc.alter_database("d", ttypes.Database(name="d", locationUri=other))

    other = f"{disk}/place"
    with ThreadPoolExecutor() as pool:
        with db.engine.begin() as connection:
            catalog._neighbours.claim(connection, [place], first, Own(first.id))
            ignore_case(monkeypatch, disk)
            second = pool.submit(taken)
            stays(lambda: not second.done(), 0.3)
            connection.execute(update(TBL).where(TBL.c.id == first.id).values(location=place))
        with pytest.raises(MetastoreError, match=r"in use.*first"):
            second.result()
    assert list(disk.iterdir()) == []


def test_partitions_whose_values_differ_in_case_where_that_does_not_count(
    rpc: Rpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would lie in one directory, and each have the rows of the other."""
    disk = tmp_path / "disk"
    (disk / "W").mkdir(parents=True)
    for parameters in ({}, ACID):
        for where, is_refused in (tmp_path / "near", False), (disk, True):
            if is_refused:
                ignore_case(monkeypatch, disk)
            keys = (column("k", "string"), column("l", "string"))
            place = str(where / f"t{len(parameters)}")
            _managed(rpc, "parted", place, keys=keys, parameters=parameters)
            rpc.add_partition(partition(["a", "x"], "parted", sd=storage()))
            rpc.add_partition(partition(["b", "x"], "parted", sd=storage()))
            rpc.add_partition(partition(["a", "y"], "parted", sd=storage()))
            others = (["A", "x"], ["a", "X"])
            for values in others:
                if is_refused and parameters:
                    with pytest.raises(InvalidObjectError, match=r"in use.*partition k=a/l=x"):
                        rpc.add_partition(partition(values, "parted", sd=storage()))
                else:
                    rpc.add_partition(partition(values, "parted", sd=storage()))
            both = [partition([value, "z"], "parted", sd=storage()) for value in ("a", "A")]
            if is_refused and parameters:
                with pytest.raises(InvalidObjectError, match=r"two partitions of .* cannot be in one place"):
                    rpc.add_partitions(both)
            else:
                rpc.add_partitions(both)
            rpc.drop_table("default", "parted", True)


def test_who_renames_takes_nobody_along(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "t"))
    _managed(rpc, "in_it", str(warehouse / "t" / "k=1" / "x"), tableType="EXTERNAL_TABLE")
    with pytest.raises(InvalidOperationError, match=r"data of others, table default\.in_it"):
        rpc.alter_table("default", "t", table("u", keys=(column("k"),)))
    with pytest.raises(InvalidOperationError, match=r"data of others, table default\.in_it"):
        rpc.rename_partition("default", "t", ["1"], partition(["2"], "t"))
    assert (warehouse / "t" / "k=1" / "x").is_dir()
    rpc.drop_table("default", "in_it", False)
    rpc.alter_table("default", "t", table("u", keys=(column("k"),)))
    assert (warehouse / "u" / "k=1" / "x").is_dir()


def test_what_lies_behind_a_link_that_came_later_stays(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    """Nobody knew of it when the place was taken; before it is removed the disk is looked at again."""
    _managed(rpc, "victim", str(tmp_path / "victim"))
    (tmp_path / "victim" / "data").write_text(ROW)
    rpc.create_table(table("mine"))
    (warehouse / "mine").rmdir()
    (warehouse / "mine").symlink_to(tmp_path / "victim")
    rpc.drop_table("default", "mine", True)
    assert (tmp_path / "victim" / "data").read_text() == ROW


def test_a_link_is_removed_and_not_what_it_leads_to(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "unknown").mkdir()
    (tmp_path / "unknown" / "data").write_text(ROW)
    rpc.create_table(table("mine"))
    (warehouse / "mine").rmdir()
    (warehouse / "mine").symlink_to(tmp_path / "unknown")
    rpc.drop_table("default", "mine", True)
    assert not os.path.lexists(warehouse / "mine")
    assert (tmp_path / "unknown" / "data").read_text() == ROW


def test_the_warehouse_stays_however_it_is_spelt(rpc: Rpc, warehouse: Path, tmp_path: Path) -> None:
    """Also what no table has there, when not even the default database is at home in it."""
    default = rpc.get_database("default")
    default.locationUri = str(tmp_path / "elsewhere")
    rpc.alter_database("default", default)
    (warehouse / "unknown").mkdir(parents=True)
    (warehouse / "unknown" / "file").write_text(ROW)
    for spelled in spellings(warehouse):
        with suppress(MetastoreError):
            drop_table(rpc, spelled)
        _clean_up(rpc)
        assert (warehouse / "unknown" / "file").read_text() == ROW, spelled


@pytest.mark.parametrize("below", [".", ".."])
def test_a_dropped_database_that_was_the_warehouse_is_in_nobodys_way(
    rpc: Rpc, catalog: CatalogService, warehouse: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while something else in the warehouse cannot be removed."""
    rpc.create_table(table("stays", sd=storage(location=str(warehouse / "x" / "stays"))))
    (warehouse / "x" / "stays" / "data").write_text(ROW)
    rpc.create_database(ttypes.Database(name="d", locationUri=f"{warehouse}/{below}"))
    with monkeypatch.context() as failing:
        failing.setattr("metastore.filework.files.remove", lambda *args, **named: 1 / 0)
        rpc.drop_table("default", "stays", True)
    rpc.drop_database("d", True, True)
    assert [one.location for one in catalog.removals.waiting()] == [f"file:{warehouse}/x/stays"]
    rpc.create_table(table("new"))
    assert (warehouse / "new").is_dir()


def test_a_table_over_the_whole_warehouse_keeps_no_other_one(rpc: Rpc, warehouse: Path) -> None:
    _managed(rpc, "over", str(warehouse), tableType="EXTERNAL_TABLE")
    rpc.create_table(table("t", parameters=ACID))
    rpc.drop_table("default", "t", True)
    assert not (warehouse / "t").exists()


def test_plain_tables_may_share_a_place_and_the_last_one_removes_it(rpc: Rpc, tmp_path: Path) -> None:
    for name in ("a", "b"):
        _managed(rpc, name, str(tmp_path / "shared"))
    rpc.drop_table("default", "a", True)
    assert (tmp_path / "shared").is_dir()
    rpc.drop_table("default", "b", True)
    assert not (tmp_path / "shared").exists()


def test_two_creations_at_one_place_have_one_winner(catalog: CatalogService, tmp_path: Path) -> None:
    """Neither sees the other's row: the places are locked."""

    def create(number: int) -> str:
        place = tmp_path / "far" / ("x" if number % 2 else "x/y")
        try:
            _managed(Rpc(catalog), f"t{number}", str(place), parameters=ACID)
        except MetastoreError as error:
            return type(error).__name__
        return "created"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(create, range(8)))
    assert outcomes.count("created") == 1
    assert set(outcomes) == {"created", "InvalidObjectError"}


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:9/x", "https://h/x", "zip::file:///x.zip", "memory://x", "data:,abc", "ftp://h/x"]
)
def test_what_is_no_place_is_refused_wherever_it_is_given(rpc: Rpc, location: str) -> None:
    rpc.create_table(table("t", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], "t"))
    calls: list[Callable[[], Any]] = [
        lambda: rpc.create_database(ttypes.Database(name="d", locationUri=location)),
        lambda: rpc.create_database(ttypes.Database(name="d", managedLocationUri=location)),
        lambda: rpc.alter_database("default", ttypes.Database(name="default", locationUri=location)),
        lambda: rpc.create_catalog(ttypes.CreateCatalogRequest(ttypes.Catalog(name="c", locationUri=location))),
        lambda: _managed(rpc, "u", location),
        lambda: _managed(rpc, "u", location, tableType="EXTERNAL_TABLE"),
        lambda: rpc.add_partition(partition(["2"], "t", sd=storage(location=location))),
        lambda: rpc.alter_table("default", "t", table("t", keys=(column("k"),), sd=storage(location=location))),
        lambda: rpc.alter_partition("default", "t", partition(["1"], "t", sd=storage(location=location))),
    ]
    for call in calls:
        with pytest.raises(MetaError, match="cannot be a place"):
            call()
    assert rpc.get_all_tables("default") == ["t"]
    assert rpc.get_all_databases() == ["default"]


def test_the_question_costs_little_beside_many_places(rpc: Rpc, db: Database, warehouse: Path) -> None:
    rpc.create_table(table("many", keys=(column("k"),)))
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO partition (table_id, name, values, location, created_s, parameters, details)"
            " SELECT t.id, 'k=' || n, ARRAY[n::text], t.location || '/k=' || n, 0, '{}', '{}'"
            "   FROM tbl t, generate_series(1, 100000) n"
        )
    started = time.monotonic()
    for number in range(20):
        rpc.create_table(table(f"t{number}", parameters=ACID))
    assert time.monotonic() - started < 4  # a walk over the partitions for each would take longer


def test_undrop_into_a_place_that_is_taken(make_catalog: Callable[..., CatalogService], tmp_path: Path) -> None:
    catalog = make_catalog(undrop_window_ms=3_600_000)
    rpc = Rpc(catalog)
    place = tmp_path / "far"
    _managed(rpc, "t", str(place), parameters=ACID)
    (place / "data").write_text(ROW)
    rpc.drop_table("default", "t", True)
    assert not place.exists()
    _managed(rpc, "other", f"{tmp_path}//x/../far", parameters=ACID)
    with pytest.raises(MetastoreError, match="exists already"):
        catalog.trash.restore("default", "t")
    assert list(place.iterdir()) == []
    rpc.drop_table("default", "other", True)
    catalog.trash.restore("default", "t")
    assert (place / "data").read_text() == ROW
