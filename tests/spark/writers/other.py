"""The other client: what it does to tables by plain calls, without locks and without the product's writers."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.orc

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.errors import NoSuchObjectError
from hive_acid.format.names import VERSION_CONTENT, VERSION_MARKER, delta_name
from hive_acid.wire import ttypes
from tests.spark.checker import _local
from tests.spark.placed import BUCKET_0, write_events
from tests.spark.reading import Row
from tests.spark.writers.directories import Mark, mark
from tests.spark.writers.model import COLUMNS, KEY

CASCADE = ttypes.EnvironmentContext(properties={"CASCADE": "true"})
KINDS = {"int": pyarrow.int32(), "bigint": pyarrow.int64()}


class Other:
    """Somebody else, at work in one database; `elsewhere` is a directory outside of that."""

    def __init__(
        self, connection: Connection, database: str, elsewhere: Path, *, keyed: bool, insert_only: bool
    ) -> None:
        self.connection = connection
        self.database = database
        self.elsewhere = elsewhere
        self.written: set[Mark] = set()
        """The directories of all rows that it has inserted, as `data_directories` tells them."""
        self._left: list[Path] = []
        self._kind = {"keyed": keyed, "insert_only": insert_only}

    def create(self, name: str) -> None:
        """Make a table of the kind that the case is about."""
        parameters = {"transactional": "true"}
        if self._kind["insert_only"]:
            parameters["transactional_properties"] = "insert_only"
        keys = (Column(KEY, "int"),) if self._kind["keyed"] else ()
        columns = tuple(Column(column, "int") for column in COLUMNS)
        self.connection.create_table(Table(self.database, name, columns, keys, parameters))

    def insert(self, name: str, rows: Iterable[Row]) -> None:
        """Commit rows as another engine would, which takes no locks."""
        table = self.connection.table(self.database, name)
        by_key: dict[Any, list[Row]] = {}
        for row in rows:
            by_key.setdefault(row.get(KEY), []).append(row)
        transaction = self.connection.begin()
        write_id = transaction.write_id(self.database, name)
        for key, some in by_key.items():
            location = self.location(name) if key is None else self._partition(table, key)
            directory = location / delta_name(write_id, write_id, 0)
            names = [column.name for column in table.columns]
            struct = pyarrow.struct([(column.name, KINDS[column.type]) for column in table.columns])
            values = [{column: row.get(column) for column in names} for row in some]
            if table.is_full_acid:
                events = [(0, write_id, BUCKET_0, number, write_id, one) for number, one in enumerate(values)]
                write_events(directory / "bucket_00000", events, struct)
                (directory / VERSION_MARKER).write_bytes(VERSION_CONTENT)
            else:
                directory.mkdir(parents=True)
                pyarrow.orc.write_table(
                    pyarrow.Table.from_pylist(values, pyarrow.schema(struct)), directory / "000000_0"
                )
            self.written.add(mark(directory))
        transaction.commit()

    def _partition(self, table: Table, key: int) -> Path:
        name = f"{KEY}={key}"
        known = self.connection.partitions_named(table, [name])
        if not known:
            known = {name: f"{table.location}/{name}"}
            if (left := _local(known[name])) in self._left:  # a copy of what has been dropped elsewhere
                shutil.rmtree(left)
            self.connection.add_partitions(table, known)
        return _local(known[name])

    def location(self, name: str) -> Path:
        return _local(self.connection.table(self.database, name).location)

    def alter(self, name: str, **changes: Any) -> None:
        """Store a definition with other columns (``cols``), another location, name or properties (``parameters``)."""
        wire = self.connection.wire_table(self.database, name)
        for what, value in changes.items():
            if what == "parameters":
                wire.parameters = {**wire.parameters, **value}
            else:
                setattr(wire if what == "tableName" else wire.sd, what, value)
        self.connection.call("alter_table_with_environment_context", self.database, name, wire, CASCADE)

    def columns(self, name: str) -> list[Any]:
        """The columns of a table as the metastore has them."""
        return list(self.connection.wire_table(self.database, name).sd.cols)

    def drop(self, name: str) -> None:
        self.connection.drop_table(self.database, name)

    def move(self, name: str) -> None:
        """Copy a table's files elsewhere and say that it lies there; partitions stay where they are."""
        table = self.connection.table(self.database, name)
        target = self._copied(_local(table.location), f"moved-{name}") if not table.partition_keys else None
        self.alter(name, location=f"file:{target or self.elsewhere / 'moved'}")

    def move_partition(self, name: str, key: int) -> None:
        """Copy a partition's files elsewhere and say that it lies there. The old ones stay: somebody may read them."""
        partition = self.partition(name, key)
        self._left.append(_local(partition.sd.location))
        partition.sd.location = f"file:{self._copied(self._left[-1], f'moved-{key}')}"
        self.connection.call("alter_partition", self.database, name, partition)

    def _copied(self, source: Path, name: str) -> Path:
        target = self.elsewhere / name
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "_tmp*"))
        return target

    def partition(self, name: str, key: int) -> Any:
        found = self.connection.call("get_partitions_by_names", self.database, name, [f"{KEY}={key}"])
        if not found:
            raise NoSuchObjectError(f"there is no partition {KEY}={key} of {name} yet")
        return found[0]

    def drop_partition(self, name: str, key: int) -> None:
        table = self.connection.table(self.database, name)
        self.connection.drop_partitions(table, [f"{KEY}={key}"])

    def add_partition(self, name: str, key: int) -> None:
        """Add a partition that does not lie where its name says."""
        table = self.connection.table(self.database, name)
        target = self.elsewhere / f"at-{key}"
        target.mkdir(parents=True, exist_ok=True)
        self.connection.add_partitions(table, {f"{KEY}={key}": f"file:{target}"})

    def rename_partition(self, name: str, key: int, new: int) -> None:
        partition = self.partition(name, key)
        old, partition.values = list(partition.values), [str(new)]
        self.connection.call("rename_partition", self.database, name, old, partition)
