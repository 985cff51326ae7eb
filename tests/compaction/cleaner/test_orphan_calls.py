"""Orphans over a real server: by its RPC, and by ``metastore orphans``."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hive_acid
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.errors import MetaError, NoSuchObjectError
from hive_acid.filesystem import files
from hive_acid.format.names import delta_name, staging_name
from hive_acid.operators import orphans
from hive_acid.operators.orphans import Sweep
from metastore.cli import main
from metastore.rpc.handlers import orphans as handler
from tests.compaction.world import write_directory

YOUNG = Sweep(0)
REMOVE = Sweep(0, remove=True)
INSIST = Sweep(0, remove=True, uncertain=True)


@dataclass
class House:
    """A server with a table ``d.t`` of one row's write, and one directory of each kind of garbage."""

    uri: str
    connection: Connection
    home: Path
    table: Table

    def left(self) -> list[str]:
        return sorted(path.name for path in Path(self.home, "t").iterdir())


@pytest.fixture
def house(metastore: Callable[..., str], tmp_path: Path) -> Iterator[House]:
    uri = metastore(**{"metastore.housekeeping.threads.on": "false"})
    with hive_acid.connect(uri) as connection:
        connection.create_database("d")
        connection.create_table(Table("d", "t", (Column("id", "int"),), parameters={"transactional": "true"}))
        connection.create_table(Table("d", "plain", (Column("id", "int"),), parameters={"transactional": "false"}))
        table = connection.table("d", "t")
        with connection.begin() as transaction:
            write_id = transaction.write_id("d", "t")
            write_directory(files.join(table.location, delta_name(write_id, write_id, 0)), [])
        for name in (delta_name(7, 7, 0), staging_name(transaction.id, "x")):
            write_directory(files.join(table.location, name), [])
        yield House(uri, connection, tmp_path / "warehouse" / "d.db", table)


def test_what_is_told(house: House) -> None:
    found = orphans.of_table(house.connection, "D", "T", YOUNG)
    assert [(Path(one.location).name, one.reason, one.files, one.is_certain, one.is_removed) for one in found] == [
        (staging_name(1, "x"), "staging", 2, True, False),
        (delta_name(7, 7, 0), "write_id", 2, True, False),
    ]
    assert orphans.of_table(house.connection, "d", "t") == [], "nothing is seven days old"
    assert orphans.of_table(house.connection, "d", "plain", YOUNG) == []
    with pytest.raises(NoSuchObjectError):
        orphans.of_table(house.connection, "d", "nothing", YOUNG)
    with pytest.raises(MetaError, match="-1 ms old"):
        orphans.of_table(house.connection, "d", "t", Sweep(-1))


def test_what_is_removed(house: House) -> None:
    assert all(one.is_removed for one in orphans.of_table(house.connection, "d", "t", REMOVE))
    assert house.left() == [delta_name(1, 1, 0)]


def test_what_lies_beside_tables(house: House) -> None:
    """Left of tables that were dropped without their files, and directories of others: removed only if one insists."""
    write_directory(str(house.home / "old" / delta_name(1, 1, 0)), [])
    (house.home / "others").mkdir()
    (house.home / "others" / "file").write_text("x")
    (house.home / "empty").mkdir()
    (house.home.parent / ".trash" / "1-1").mkdir(parents=True)
    (house.home.parent / ".trash" / "1-1" / "file").write_text("x")
    found = orphans.of_warehouse(house.connection, REMOVE)
    assert [(Path(one.location).name, one.is_certain, one.is_removed) for one in found] == [
        ("old", False, False),
        ("others", False, False),
    ]
    assert "an ACID table" in found[0].why
    assert all(one.is_removed for one in orphans.of_warehouse(house.connection, INSIST))
    assert sorted(path.name for path in house.home.iterdir()) == ["empty", "plain", "t"]


def test_calls_that_last_too_long_are_gone_on_with(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them ends with the first thing that it looks at."""
    for number in range(5):
        write_directory(files.join(house.table.location, delta_name(10 + number, 10 + number, 0)), [])
        (house.home / f"other{number}").mkdir()
        (house.home / f"other{number}" / "file").write_text("x")
    whole = [orphans.of_table(house.connection, "d", "t", YOUNG), orphans.of_warehouse(house.connection, YOUNG)]
    assert [len(one) for one in whole] == [7, 5]
    monkeypatch.setattr(handler, "PAGE_S", 0.0)
    calls = len(whole)

    def counted(method: str, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return call(method, *arguments)

    call = house.connection.call
    monkeypatch.setattr(house.connection, "call", counted)
    assert [orphans.of_table(house.connection, "d", "t", YOUNG), orphans.of_warehouse(house.connection, YOUNG)] == whole
    assert calls > sum(map(len, whole))
    assert list(orphans.of_all(house.connection, YOUNG)) == [*whole[0], *whole[1]]
    assert all(one.is_removed for one in orphans.of_all(house.connection, INSIST))
    assert orphans.of_table(house.connection, "d", "t", YOUNG) == []
    assert orphans.of_warehouse(house.connection, YOUNG) == []


def test_what_lies_in_the_root_of_a_file_system_is_not_ours(house: House) -> None:
    database = house.connection.call("get_database", "d")
    database.locationUri = "file:/"
    house.connection.call("alter_database", "d", database)
    assert orphans.of_warehouse(house.connection, YOUNG) == []


def test_what_waits_for_its_removal_is_no_orphan(house: House) -> None:
    """A table that is read when it is dropped stays until its readers have ended."""
    with house.connection.begin():
        house.connection.drop_table("d", "t", purge=True)
        assert house.left()
        assert orphans.of_warehouse(house.connection, INSIST) == []
    assert house.left()


def test_the_command(house: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")

    def said(*arguments: str) -> str:
        assert main(["orphans", *arguments, "--uri", house.uri]) == 0
        return capsys.readouterr().out

    assert "0 orphans, 0 B; 0 removed" in said("d.t")
    told = said("d.t", "--older-than", "0d")
    assert re.search(r"2 orphans, \d+ B; 0 removed", told)
    assert "write id 7 was never given out: the last one is 1" in told
    assert "output that transaction 1, which has ended, left behind" in told
    write_directory(str(house.home / "old" / delta_name(1, 1, 0)), [])
    told = said("--all", "--older-than", "0d", "--remove")
    assert re.search(r"3 orphans, \d+ B; 2 removed", told)
    assert "it may be somebody's" in told
    assert house.left() == [delta_name(1, 1, 0)]
    assert "1 removed" in said("--all", "--older-than", "0d", "--remove", "--uncertain")
    assert not (house.home / "old").exists()


def test_the_command_refuses(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["d.t", "--uncertain"], "--uncertain widens --remove"),
        (["d.t", "--older-than", "soon"], "not a duration"),
        (["d.nothing"], "does not exist"),
    ):
        assert main(["orphans", *arguments, "--uri", house.uri]) == 1
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["orphans", "--uri", house.uri])


def test_a_table_whose_disk_is_gone(house: House) -> None:
    house.home.rename(house.home.with_name("unmounted"))
    with pytest.raises(MetaError, match="is not there: mount or restore it") as refused:
        orphans.of_table(house.connection, "d", "t", YOUNG)
    assert "log" not in str(refused.value)
