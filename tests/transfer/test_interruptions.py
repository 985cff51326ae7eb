"""Imports that are killed, and sources that go on during one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import text

from metastore.catalog.models import Partition
from metastore.transfer.sources.thrift import ThriftTable
from tests.served import Served
from tests.transfer.world import add_partitions, definitions, move_in, snapshots, table, write
from tests.waiting import until

TABLES = ("sales.items", "sales.orders")


def count(db: Any, rows: str) -> int:
    with db.engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {rows}")).scalar_one())


def killed_when(db: Any, command: Sequence[str], rows: str, enough: int) -> bool:
    """Whether a command was killed once a table of the database had so many rows, before it ended by itself."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or count(db, rows) >= enough, told="the import does nothing")
        return process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.sampled(of="stories of minutes")
def test_killed_at_any_point_it_goes_on(old: Served, new: Served) -> None:
    with old.caller() as caller:
        caller.call("create_table", table("sales", "many", ["n"]))
        for first in range(0, 5000, 1000):
            add_partitions(caller, "sales", "many", [[str(n)] for n in range(first, first + 1000)])
        for commit in (True, False, True):
            write(caller, "sales.many", "n=7", commit=commit)
    command = [sys.executable, "-m", "metastore.cli", "import", old.uri, "--database-url", new.db_url]
    kills = [
        killed_when(new.db, command, rows, enough)
        for rows, enough in (("imported_txn_range", 1), ("tbl", 1), ("partition", 900), ("partition", 3000))
    ]
    assert sum(kills) >= 3, f"too fast to be killed: {kills}"
    assert count(new.db, "partition") < 5003
    report = move_in(new.db, old.uri)
    assert report.is_complete, report.text()
    assert count(new.db, "partition") == 5003
    assert snapshots(new.uri, *TABLES, "sales.many") == snapshots(old.uri, *TABLES, "sales.many")
    assert definitions(new.uri, *TABLES, "sales.many") == definitions(old.uri, *TABLES, "sales.many")


@pytest.mark.parametrize("commit", [True, False])
def test_a_write_during_the_copy_is_found_and_followed(
    old: Served, new: Served, monkeypatch: pytest.MonkeyPatch, commit: bool
) -> None:
    copied = ThriftTable.partitions
    left = ["sales.items"]

    def partitions(self: ThriftTable) -> Iterator[Sequence[Partition]]:
        yield from copied(self)
        if self.table.full_name in left:
            left.remove(self.table.full_name)
            with old.caller() as caller:
                write(caller, "sales.items", "day=2024-01-01/country=de", commit=commit)

    monkeypatch.setattr(ThriftTable, "partitions", partitions)
    report = move_in(new.db, old.uri)
    assert report.is_complete, report.text()
    assert "changed at the source during the copy" in report.text()
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)
    with new.caller() as caller:
        assert write(caller, "sales.items") == 4


def test_a_write_after_the_copy_of_the_table_is_found_at_the_end(
    old: Served, new: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = ThriftTable.partitions

    def partitions(self: ThriftTable) -> Iterator[Sequence[Partition]]:
        yield from copied(self)
        if self.table.full_name == "sales.recent":  # the last one
            with old.caller() as caller:
                write(caller, "sales.orders", commit=False)

    monkeypatch.setattr(ThriftTable, "partitions", partitions)
    report = move_in(new.db, old.uri)
    assert "table sales.orders: was written to at the source during the import" in report.text()
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)


def test_a_table_that_is_written_all_the_time_is_refused(
    old: Served, new: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = ThriftTable.partitions

    def partitions(self: ThriftTable) -> Iterator[Sequence[Partition]]:
        yield from copied(self)
        if self.table.full_name == "sales.items":
            with old.caller() as caller:
                write(caller, "sales.items", "day=2024-01-01/country=de")

    monkeypatch.setattr(ThriftTable, "partitions", partitions)
    report = move_in(new.db, old.uri)
    assert not report.is_complete
    assert "is written to at the source all the time" in report.text()
