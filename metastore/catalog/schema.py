"""The catalogue's tables for SQLAlchemy Core; migration 0002 makes them. Columns stand in the order of the database."""

from __future__ import annotations

import psycopg2.errors
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Integer, MetaData, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.exc import IntegrityError

METADATA = MetaData()

CATALOG = Table(
    "catalog",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("description", Text),
    Column("location", Text),
    Column("created_s", Integer),
    Column("parameters", JSONB),
)

DATABASE = Table(
    "database",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("location", Text),
    Column("managed_location", Text),
    Column("description", Text),
    Column("owner", Text),
    Column("owner_type", SmallInteger),
    Column("created_s", Integer),
    Column("parameters", JSONB),
    Column("details", JSONB),
)

TBL = Table(
    "tbl",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("database", Text),
    Column("name", Text),
    Column("table_type", Text),
    Column("owner", Text),
    Column("owner_type", SmallInteger),
    Column("created_s", Integer),
    Column("location", Text),
    Column("columns", JSONB(none_as_null=True)),
    Column("partition_keys", JSONB),
    Column("parameters", JSONB),
    Column("storage", JSONB),
    Column("details", JSONB),
)

PARTITION = Table(
    "partition",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("table_id", BigInteger),
    Column("name", Text),
    Column("values", ARRAY(Text)),
    Column("location", Text),
    Column("created_s", Integer),
    Column("columns", JSONB(none_as_null=True)),
    Column("parameters", JSONB),
    Column("storage", JSONB(none_as_null=True)),
    Column("details", JSONB),
)

DIRECTORY_REMOVAL = Table(
    "directory_removal",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("location", Text),
    Column("only_if_empty", Boolean),
    Column("claimed_at", DateTime(timezone=True)),
    Column("trash", Text),
    Column("owner", Text),
    Column("claimed_by", Text),
    Column("noted_at", DateTime(timezone=True)),
    Column("attempts", Integer),
    Column("next_at", DateTime(timezone=True)),
    Column("last_error", Text),
    Column("takes_back", Boolean),
    Column("home_since", DateTime(timezone=True)),
)

PLACE_ALIAS = Table(
    "place_alias",
    METADATA,
    Column("place", Text, primary_key=True),
    Column("target", Text),
    Column("ignores_case", Boolean, primary_key=True),
)

DROPPED_TABLE = Table(
    "dropped_table",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("database", Text),
    Column("name", Text),
    Column("definition", JSONB),
    Column("last_write_id", BigInteger),
    Column("dropped_at", DateTime(timezone=True)),
    Column("purge_at", DateTime(timezone=True)),
    Column("write_ids", JSONB),
    Column("aborted_components", JSONB),
)

DROPPED_DIRECTORY = Table(
    "dropped_directory",
    METADATA,
    Column("dropped_id", BigInteger),
    Column("location", Text),
    Column("trash", Text),
)


def is_missing_parent(error: IntegrityError) -> bool:
    """Whether a row could not be stored because what it belongs to (database, table) was dropped meanwhile."""
    return isinstance(error.orig, psycopg2.errors.ForeignKeyViolation)
