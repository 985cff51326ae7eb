"""What tables hold, read in two ways: by the product's own session, and in plain Python without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.orc

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.format.names import DirectoryKind, parse_directory
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark import AcidSession
from hive_acid.transactions.states import TransactionKind
from tests.spark.checker import _local, check_snapshot

Row = Mapping[str, Any]
"""Column name to value."""


def canonical(rows: Iterable[Row]) -> list[str]:
    """Rows in a form that can be compared, without nulls."""
    return sorted(str(sorted((name, value) for name, value in row.items() if value is not None)) for row in rows)


class Reader:
    """Reads all tables of one database, as somebody who has just come."""

    def __init__(self, connection: Connection, database: str) -> None:
        self.connection = connection
        self.database = database

    def tables(self) -> list[Table]:
        names = self.connection.call("get_all_tables", self.database)
        return [self.connection.table(self.database, name) for name in sorted(names)]

    def content(self) -> dict[str, list[str]]:
        """By plain Python."""
        return {table.name: canonical(self._rows(table)) for table in self.tables()}

    def content_by(self, acid: AcidSession) -> dict[str, list[str]]:
        """By the product."""
        return {
            table.name: canonical(row.asDict() for row in acid.table(table.full_name).collect())
            for table in self.tables()
        }

    def places(self) -> dict[str, list[Path]]:
        """The directories of each table, those of its partitions among them."""
        return {
            table.name: [_local(table.location), *map(_local, self._partitions(table).values())]
            for table in self.tables()
        }

    def _partitions(self, table: Table) -> dict[str, str]:
        return self.connection.partitions(table) if table.partition_keys else {}

    def _rows(self, table: Table) -> list[Row]:
        names = [column.name for column in table.columns]
        if not table.is_full_acid:
            return self._rows_of_files(table, names)
        return [
            dict(zip(names, event.row or (), strict=False)) | _key(partition)
            for partition, events in check_snapshot(self, table.full_name).items()
            for event in events
        ]

    def _rows_of_files(self, table: Table, names: list[str]) -> list[Row]:
        """Of an insert-only table: all files in the directories of valid writes, from the last base on.

        Their columns have names.
        """
        found: list[Row] = []
        with self.connection.begin(TransactionKind.READ) as transaction:
            valid = transaction.write_ids(table.database, table.name)
            for partition, location in (self._partitions(table) or {"": table.location}).items():
                made = [
                    (directory.kind, directory.max_write_id, path)
                    for path in _local(location).glob("*")
                    if (directory := parse_directory(path.name)) and valid.is_valid(directory.max_write_id)
                ]
                base = max((number for kind, number, _ in made if kind is DirectoryKind.BASE), default=0)
                for kind, number, path in made:
                    if number > base or (kind is DirectoryKind.BASE and number == base):
                        for file in path.iterdir():
                            if file.name.startswith(("_", ".")) or not file.stat().st_size:
                                continue
                            rows = pyarrow.orc.ORCFile(file).read().to_pylist()
                            found += [{name: row.get(name) for name in names} | _key(partition) for row in rows]
        return found


def _key(partition: str) -> dict[str, Any]:
    """The columns that the name of a partition gives, which are numbers."""
    return {key: int(value or 0) for key, value in parse_partition_name(partition)} if partition else {}
