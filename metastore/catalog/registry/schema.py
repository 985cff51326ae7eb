"""The tables of functions, constraints, roles, privileges and tokens for SQLAlchemy Core; migration 0008 makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, SmallInteger, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from metastore.catalog.schema import METADATA

UDF = Table(
    "udf",
    METADATA,
    Column("database", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("class_name", Text),
    Column("owner", Text),
    Column("owner_type", SmallInteger),
    Column("type", SmallInteger),
    Column("created_s", Integer),
    Column("resources", JSONB),
)

TABLE_CONSTRAINT = Table(
    "table_constraint",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("table_id", BigInteger),
    Column("name", Text),
    Column("kind", SmallInteger),
    Column("columns", ARRAY(Text)),
    Column("enabled", Boolean),
    Column("validated", Boolean),
    Column("rely", Boolean),
    Column("expression", Text),
    Column("parent_id", BigInteger),
    Column("parent_columns", ARRAY(Text)),
    Column("parent_key", Text),
    Column("update_rule", Integer),
    Column("delete_rule", Integer),
)

ROLE = Table(
    "role",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("owner", Text),
    Column("created_s", Integer),
)

ROLE_GRANT = Table(
    "role_grant",
    METADATA,
    Column("principal", Text, primary_key=True),
    Column("principal_type", SmallInteger, primary_key=True),
    Column("role", Text, primary_key=True),
    Column("grantor", Text),
    Column("grantor_type", SmallInteger),
    Column("grant_option", Boolean),
    Column("granted_s", Integer),
)

PRIVILEGE = Table(
    "privilege",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("object_type", SmallInteger),
    Column("database", Text),
    Column("table_id", BigInteger),
    Column("partition_id", BigInteger),
    Column("column_name", Text),
    Column("principal", Text),
    Column("principal_type", SmallInteger),
    Column("privilege", Text),
    Column("grantor", Text),
    Column("grantor_type", SmallInteger),
    Column("grant_option", Boolean),
    Column("granted_s", Integer),
    Column("authorizer", Text),
    Column("catalog", Text),
)

DELEGATION_TOKEN = Table(
    "delegation_token",
    METADATA,
    Column("identifier", Text, primary_key=True),
    Column("token", Text),
)

MASTER_KEY = Table(
    "master_key",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("key", Text),
)

METASTORE_IDENTITY = Table(
    "metastore_identity",
    METADATA,
    Column("uuid", Uuid(as_uuid=False)),
    Column("only_one", Boolean, primary_key=True),
)
