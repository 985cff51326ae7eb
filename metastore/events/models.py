"""What the log knows of an event: its type, what it is about, and the particulars of its type as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EventType(StrEnum):
    """The types by the names that they have on the wire; some have another one than Hive's enum says."""

    CREATE_CATALOG = "CREATE_CATALOG"
    ALTER_CATALOG = "ALTER_CATALOG"
    DROP_CATALOG = "DROP_CATALOG"
    CREATE_DATABASE = "CREATE_DATABASE"
    ALTER_DATABASE = "ALTER_DATABASE"
    DROP_DATABASE = "DROP_DATABASE"
    CREATE_TABLE = "CREATE_TABLE"
    ALTER_TABLE = "ALTER_TABLE"
    DROP_TABLE = "DROP_TABLE"
    ADD_PARTITION = "ADD_PARTITION"
    ALTER_PARTITION = "ALTER_PARTITION"
    DROP_PARTITION = "DROP_PARTITION"
    CREATE_FUNCTION = "CREATE_FUNCTION"
    DROP_FUNCTION = "DROP_FUNCTION"
    ADD_PRIMARY_KEY = "ADD_PRIMARYKEY"
    ADD_FOREIGN_KEY = "ADD_FOREIGNKEY"
    ADD_UNIQUE_CONSTRAINT = "ADD_UNIQUECONSTRAINT"
    ADD_NOT_NULL_CONSTRAINT = "ADD_NOTNULLCONSTRAINT"
    ADD_DEFAULT_CONSTRAINT = "ADD_DEFAULTCONSTRAINT"
    ADD_CHECK_CONSTRAINT = "ADD_CHECKCONSTRAINT"
    DROP_CONSTRAINT = "DROP_CONSTRAINT"
    UPDATE_TABLE_COLUMN_STAT = "UPDATE_TBL_COL_STAT_EVENT"
    DELETE_TABLE_COLUMN_STAT = "DELETE_TBL_COL_STAT_EVENT"
    UPDATE_PARTITION_COLUMN_STAT = "UPDATE_PART_COL_STAT_EVENT"
    DELETE_PARTITION_COLUMN_STAT = "DELETE_PART_COL_STAT_EVENT"
    INSERT = "INSERT"
    RELOAD = "RELOAD"
    ACID_WRITE = "ACID_WRITE_EVENT"
    OPEN_TXN = "OPEN_TXN"
    COMMIT_TXN = "COMMIT_TXN"
    ABORT_TXN = "ABORT_TXN"
    ALLOC_WRITE_ID = "ALLOC_WRITE_ID_EVENT"
    COMMIT_COMPACTION = "COMMIT_COMPACTION_EVENT"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens in the present database transaction. A database is named by its key, which may tell a
    catalog too; to the log it is a text.
    """

    type: EventType
    database: str | None = None
    table: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of the log; `type` is text, since a newer server may know more types."""

    id: int
    time_s: int
    type: str
    database: str | None
    table: str | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events somebody asks for: those after an id, and up to one; None and nothing mean any.

    `databases` is a regular expression for keys of databases; events of no database pass it, but not `database`.
    """

    after_id: int
    up_to_id: int | None = None
    databases: str | None = None
    database: str | None = None
    tables: Sequence[str] = ()
    types: Sequence[str] = ()
    but_types: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class WriteNotification:
    """The files that a transaction added to a table or to a partition of it (`partition` by name, '' for none).

    `table_object` and `partition_object` are what they were then, as plain values.
    """

    txn_id: int
    write_id: int
    database: str
    table: str
    partition: str
    table_object: dict[str, Any]
    partition_object: dict[str, Any] | None
    files: Sequence[str]
