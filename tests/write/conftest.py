"""A table of each test's own, a writer that writes by the kernel alone, and another client that takes no locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hive_acid.catalog.references import Definitions
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.filesystem import files
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.staging import INSERT, StagedFiles, Staging
from hive_acid.write.table_write import Intent, TableWrite

COLUMNS = (Column("id", "int"),)
KEYS = (Column("p", "string"),)
INSERTING = Intent(Operation.INSERT)


@dataclass
class World:
    """A metastore with the database ``d``; `other` is another client's connection."""

    connection: Connection
    other: Connection
    definitions: Definitions

    def create(self, keys: tuple[Column, ...] = (), name: str = "t", **more: Any) -> Table:
        parameters = more.pop("parameters", {"transactional": "true"})
        table = Table("d", name, COLUMNS, keys, parameters, **more)
        self.other.create_table(table)
        return self.other.table("d", name)

    def begin(self, transaction: Transaction, table: str | Table = "d.t", intent: Intent = INSERTING) -> TableWrite:
        return TableWrite.begin(self.connection, self.definitions, transaction, self.definitions.meant(table), intent)

    def alter(self, name: str = "t", **changes: Any) -> None:
        """A change by the raw call, without any lock."""
        wire = self.other.wire_table("d", name)
        for key, value in changes.items():
            setattr(wire.sd if key in ("location", "cols") else wire, key, value)
        self.other.call("alter_table", "d", name, wire)

    def move_partition(self, name: str, location: str) -> None:
        partition = self.other.call("get_partition_by_name", "d", "t", name)
        partition.sd.location = location
        self.other.call("alter_partition", "d", "t", partition)


def staged(begun: TableWrite, *values: tuple[str | None, ...], kind: str = INSERT) -> tuple[Staging, list[StagedFiles]]:
    """A file for each of the partitions, with nothing that anybody could read."""
    _, statement = begun.ids()
    staging = begun.stage(Staging)
    found = []
    for number, of in enumerate(values):
        directory = files.join(staging.location, str(number))
        files.make_directory(directory)
        files.write(files.join(directory, "bucket_00000"), b"x")
        found.append(StagedFiles(kind, of, {}, statement_id=statement, directory=str(number)))
    return staging, found


def files_below(location: str) -> set[str]:
    return {entry.path for entry in files.list_tree(location) if not entry.is_directory}


@pytest.fixture
def world(metastore: Callable[..., str]) -> Iterator[World]:
    uri = metastore()
    with connect(uri) as connection, connect(uri) as other:
        other.create_database("d")
        yield World(connection, other, Definitions(connection))
