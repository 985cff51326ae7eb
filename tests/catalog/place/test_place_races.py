"""Two servers on one Postgres, and two clients that want one place at the same moment: one of them gets it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, Refused
from tests.catalog.conftest import ACID, column, partition, storage, table

ROUNDS = 12
KEYS = (column("k", "string"),)


@pytest.fixture
def callers(metastore: Callable[..., str]) -> Iterator[tuple[Caller, Caller]]:
    quiet = {"metastore.housekeeping.threads.on": "false"}
    with Caller(metastore(**quiet)) as ann, Caller(metastore(**quiet)) as bob:
        yield ann, bob


def together(*calls: Callable[[], Any]) -> list[str]:
    """What becomes of calls that are sent at the same moment: done, or the error's kind."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> str:
        barrier.wait()
        try:
            call()
        except Refused as refused:
            return refused.kind
        return "done"

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def create(caller: Caller, name: str, place: str | None = None, database: str = "default", **more: Any) -> None:
    caller.call("create_table", table(name, database, sd=storage(location=place), parameters=ACID, **more))


def drop(caller: Caller, name: str, database: str = "default") -> None:
    caller.call("drop_table", database, name, True)


def test_two_creations_at_one_place(callers: tuple[Caller, Caller], tmp_path: Path) -> None:
    ann, bob = callers
    for number in range(ROUNDS):
        place = tmp_path / f"p{number}"
        spelled = f"file:{tmp_path}//./p{number}" + ("/below" if number % 3 == 0 else "")
        outcomes = together(lambda: create(ann, "a", str(place)), lambda: create(bob, "b", spelled))  # noqa: B023
        assert sorted(outcomes) == ["InvalidObjectException", "done"], number
        (winner,) = ann.call("get_all_tables", "default")
        assert place.is_dir()
        drop(bob, winner)
        assert not (place / "below").exists()


def test_two_tables_of_one_name(callers: tuple[Caller, Caller], tmp_path: Path) -> None:
    ann, bob = callers
    for number in range(ROUNDS):
        outcomes = together(lambda: create(ann, "t"), lambda: create(bob, "T"))
        assert sorted(outcomes) == ["AlreadyExistsException", "done"], number
        assert (tmp_path / "warehouse/t").is_dir()
        drop(ann, "t")


def test_two_partitions_at_one_place(callers: tuple[Caller, Caller], tmp_path: Path) -> None:
    for caller, name in zip(callers, "ab", strict=True):
        create(caller, name, keys=KEYS)
    for number in range(ROUNDS):

        def add(caller: Caller, name: str, place: str) -> None:
            caller.call("add_partition", partition([str(number)], name, sd=storage(location=place)))  # noqa: B023

        outcomes = together(
            lambda: add(callers[0], "a", f"{tmp_path}/q{number}"),  # noqa: B023
            lambda: add(callers[1], "b", f"{tmp_path}/x/../q{number}"),  # noqa: B023
        )
        assert sorted(outcomes) == ["InvalidObjectException", "done"], number
        assert (tmp_path / f"q{number}").is_dir()


def test_a_creation_beside_the_drop_of_what_is_there(callers: tuple[Caller, Caller], tmp_path: Path) -> None:
    """A table that is created has its directory, empty, whatever still removes; the dropped one leaves nothing."""
    ann, bob = callers
    created = 0
    for number in range(2 * ROUNDS):
        place = tmp_path / f"d{number}"
        create(ann, "old", str(place))
        for file in range(20):
            (place / f"data{file}").write_text("old")
        outcomes = together(lambda: drop(ann, "old"), lambda: create(bob, "new", f"{place}/"))  # noqa: B023
        assert outcomes[0] == "done"
        assert outcomes[1] in ("done", "InvalidObjectException", "MetaException"), number
        if outcomes[1] == "done":
            created += 1
            assert list(place.iterdir()) == [], number
            (place / "data").write_text("new")
            drop(ann, "new")
        assert not place.exists(), number
    print(f"{created} of {2 * ROUNDS} were created")


@pytest.mark.parametrize("place", [None, "warehouse//renamed/"])
def test_a_rename_beside_a_creation(callers: tuple[Caller, Caller], tmp_path: Path, place: str | None) -> None:
    ann, bob = callers
    warehouse = tmp_path / "warehouse"
    name = "renamed" if place is None else "other"
    for number in range(ROUNDS):
        create(ann, "old")
        (warehouse / "old/data").write_text("old")
        old = ann.call("get_table_req", ttypes.GetTableRequest(dbName="default", tblName="old")).table
        old.tableName = "renamed"
        where = None if place is None else f"{tmp_path}/{place}"
        rename = lambda: ann.call("alter_table", "default", "old", old)  # noqa: B023, E731
        outcomes = together(rename, lambda: create(bob, name, where))  # noqa: B023
        tables = bob.call("get_all_tables", "default")
        assert outcomes.count("done") == 1, (number, outcomes, tables)
        if outcomes[0] == "done":
            assert tables == ["renamed"]
            assert (warehouse / "renamed/data").read_text() == "old"
            assert not (warehouse / "old").exists()
        else:
            assert tables == sorted([name, "old"])
            assert (warehouse / "old/data").read_text() == "old"
            assert not (warehouse / "renamed/data").exists()
        for one in tables:
            drop(ann, one)
        assert sorted(entry.name for entry in warehouse.iterdir()) == []


def test_a_creation_beside_the_drop_of_its_database(callers: tuple[Caller, Caller], tmp_path: Path) -> None:
    ann, bob = callers
    for number in range(ROUNDS):
        ann.call("create_database", ttypes.Database(name="d"))
        create(ann, "t", database="d")
        outcomes = together(lambda: ann.call("drop_database", "d", True, True), lambda: create(bob, "u", database="d"))
        assert outcomes[0] == "done", number
        assert outcomes[1] in ("done", "InvalidObjectException", "MetaException"), number
        assert ann.call("get_all_databases") == ["default"]
        assert not (tmp_path / "warehouse/d.db").exists() or not list((tmp_path / "warehouse/d.db").rglob("data"))
