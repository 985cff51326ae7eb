"""What the catalogue holds, as plain values: databases, tables and partitions.

The parts of a Thrift struct that nobody here looks at travel in `storage` and `details` as plain JSON values under
their IDL names, so that nothing a client sent is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hive_acid.format import properties

MANAGED_TABLE = "MANAGED_TABLE"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
VIRTUAL_VIEW = "VIRTUAL_VIEW"

LAST_DDL_TIME = "transient_lastDdlTime"

USER, ROLE = 1, 2  # PrincipalType


class Column(NamedTuple):
    """A column of a table, or a partition key."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogInfo:
    """A catalog, which is a namespace of databases. The location is as its client gave it."""

    name: str
    description: str | None = None
    location: str = ""
    created_s: int = 0
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """A database. `details` are the fields of the IDL's Database that have no place here.

    `name` is the key by which the server knows it (`names.database_key`), and so is `Table.database`.
    """

    name: str
    location: str | None = None
    managed_location: str | None = None
    description: str | None = None
    owner: str | None = None
    owner_type: int | None = USER
    created_s: int = 0
    parameters: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view; `storage` is its storage descriptor without columns and location.

    `constraints` is what the database tells of them, a list in JSON, if it was asked (`lookup`).
    """

    database: str
    name: str
    table_type: str | None = None
    owner: str | None = None
    owner_type: int | None = None
    created_s: int = 0
    location: str | None = None
    columns: list[Column] = field(default_factory=list)
    partition_keys: list[Column] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    storage: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    id: int = 0
    constraints: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def is_view(self) -> bool:
        return self.table_type == VIRTUAL_VIEW

    @property
    def is_external(self) -> bool:
        return self.table_type == EXTERNAL_TABLE

    @property
    def is_transactional(self) -> bool:
        return properties.is_transactional(self.parameters)

    @property
    def is_full_acid(self) -> bool:
        """Whether rows can be updated and deleted, so that files have Hive's ACID row format."""
        return properties.is_full_acid(self.parameters)

    @property
    def owns_files(self) -> bool:
        """Whether a drop removes the files: managed tables, and external ones that ask for it."""
        if self.is_view:
            return False
        return not self.is_external or (self.parameter("external.table.purge") or "").lower() == "true"

    @property
    def bucket_columns(self) -> list[str]:
        return list(self.storage.get("bucketCols") or [])

    def parameter(self, key: str) -> str | None:
        """A parameter by its key, whose case does not count."""
        return properties.property_of(self.parameters, key)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. No `columns` of its own (None) means those of its table."""

    values: list[str]
    location: str | None = None
    created_s: int = 0
    columns: list[Column] | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    storage: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    name: str = ""


class PartitionPlace(NamedTuple):
    """A partition by its id, which no other one has, not even a later one of the name, and where it lies."""

    name: str
    id: int
    location: str | None


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What a list of tables shows of one."""

    database: str
    name: str
    table_type: str
    comment: str | None
    owner: str | None
    owner_type: int


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What the other slices need to know of a table; columns are (name, type), `storage` as in `Table`."""

    location: str | None
    columns: list[tuple[str, str]]
    partition_keys: list[tuple[str, str]]
    parameters: dict[str, str]
    table_type: str
    bucket_columns: list[str]
    is_full_acid: bool
    is_transactional: bool
    storage: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expectation:
    """Compare-and-set: a change applies only while the table's parameter `key` has `value`."""

    key: str
    value: str
