"""One client in one database, and the structs that stories are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.java.client import JavaClient, JavaHive

ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"


@dataclass(frozen=True)
class Walk:
    """`db` is a fresh database, `directory` a place for external tables, `uri` the server's address."""

    hive: JavaHive
    client: JavaClient
    db: str
    directory: Path
    uri: str

    @property
    def engine(self) -> list[str]:
        """The argument that statistics calls of Hive 4 have at their end."""
        return ["hive"] if self.hive.generation == 4 else []

    @property
    def catalog(self) -> list[str]:
        """The argument that overloads since Hive 3 have at their beginning."""
        return [] if self.hive.generation == 2 else ["hive"]

    def new(self, kind: str, **fields: Any) -> Any:
        """A Thrift struct."""
        return self.hive.struct(kind, **fields)

    def columns(self, text: str) -> Any:
        """FieldSchemas of ``"id int, price decimal(10;2)"``; a semicolon stands for the comma in a type."""
        pairs = [part.replace(";", ",").split() for part in text.split(",") if part]
        return self.hive.list_of(*(self.new("FieldSchema", name=name, type=kind, comment="") for name, kind in pairs))

    def storage(self, columns: str, location: str | None = None) -> Any:
        """A StorageDescriptor of ORC files."""
        serde = self.new("SerDeInfo", serializationLib=f"{ORC}Serde", parameters={"serialization.format": "1"})
        fields = {"location": location} if location else {}
        return self.new(
            "StorageDescriptor",
            cols=self.columns(columns),
            inputFormat=f"{ORC}InputFormat",
            outputFormat=f"{ORC}OutputFormat",
            numBuckets=-1,
            serdeInfo=serde,
            bucketCols=[],
            sortCols=[],
            parameters={},
            **fields,
        )

    def table(
        self,
        name: str,
        columns: str = "id int, name string",
        keys: str = "",
        kind: str = "MANAGED_TABLE",
        location: str | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> Any:
        """A Table, not created yet."""
        return self.new(
            "Table",
            tableName=name,
            dbName=self.db,
            owner="ann",
            sd=self.storage(columns, location),
            partitionKeys=self.columns(keys),
            parameters=dict(parameters or {}),
            tableType=kind,
        )

    def create(self, name: str, **fields: Any) -> Any:
        """A table, created, as the server gives it back."""
        self.client.createTable(self.table(name, **fields))
        return self.client.getTable(self.db, name)

    def acid(self, name: str, keys: str = "") -> Any:
        """A full-ACID table, as it was created; 2.3 clients may not read it back."""
        made = self.table(name, keys=keys, parameters={"transactional": "true"})
        self.client.createTable(made)
        return made

    def partition(self, table: Any, *values: str, location: str | None = None) -> Any:
        """A Partition of a table, not added yet."""
        storage = table.getSd().deepCopy()
        storage.setLocation(location)
        return self.new(
            "Partition",
            values=list(values),
            dbName=table.getDbName(),
            tableName=table.getTableName(),
            sd=storage,
            parameters={},
        )

    def partitioned(self, name: str, *partitions: str) -> Any:
        """A table with the keys ``year int, month string`` and partitions such as ``"2024/jan"``."""
        table = self.create(name, keys="year int, month string")
        if partitions:
            self.client.add_partitions(
                self.hive.list_of(*(self.partition(table, *text.split("/")) for text in partitions))
            )
        return table


Story = Callable[[Walk], None]
