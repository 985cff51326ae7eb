"""Tables about a table, by names that Iceberg's users know: ``db.t.history``, ``snapshots``, ``files`` and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import TableNotAcidError

HISTORY, SNAPSHOTS, FILES, PARTITIONS, DELETES = "history", "snapshots", "files", "partitions", "deletes"

_FILES = {
    "kind": "string",
    "partition": "string",
    "min_write_id": "bigint",
    "max_write_id": "bigint",
    "bucket": "int",
    "path": "string",
    "rows": "bigint",
    "bytes": "bigint",
    "modified_at": "timestamp",
}

COLUMNS: Mapping[str, Mapping[str, str]] = {
    HISTORY: {
        "write_id": "bigint",
        "txn_id": "bigint",
        "state": "string",
        "operation": "string",
        "user": "string",
        "committed_at": "timestamp",
        "written_at": "timestamp",
        "partitions": "array<string>",
        "files": "bigint",
        "rows_added": "bigint",
        "rows_deleted": "bigint",
        "bytes": "bigint",
    },
    SNAPSHOTS: {
        "committed_at": "timestamp",
        "snapshot_id": "bigint",
        "operation": "string",
        "summary": "map<string,string>",
    },
    FILES: _FILES,
    PARTITIONS: {
        "partition": "string",
        "location": "string",
        "files": "bigint",
        "delete_files": "bigint",
        "rows": "bigint",
        "deletes": "bigint",
        "bytes": "bigint",
        "modified_at": "timestamp",
    },
    DELETES: _FILES,
}
"""The columns of each, with Hive's types."""


@dataclass(frozen=True)
class AboutTable(Table):
    """What is told about a table: `what` is one of `COLUMNS`; name, place and id are those of the table itself.

    It is read, and no verb takes it for the table.
    """

    what: str = ""

    @classmethod
    def of(cls, table: Table, what: str) -> Self:
        """What `what` tells about a table."""
        given = {one.name: getattr(table, one.name) for one in fields(Table)}
        columns = tuple(Column(name, kind) for name, kind in COLUMNS[what].items())
        nothing = {"partition_keys": (), "parameters": {}, "bucket_columns": (), "buckets": -1}
        return cls(**{**given, **nothing, "columns": columns}, what=what)

    def not_written(self, name: object) -> TableNotAcidError:
        """The error for a statement that would write to it under this name."""
        return TableNotAcidError(f"{name} tells about {self.full_name}: it is read, and not written")

    @property
    def called(self) -> str:
        """``database.table.what``."""
        return f"{self.full_name}.{self.what}"
