"""The log's tables for SQLAlchemy Core; migration 0011 makes them."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, DateTime, MetaData, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY

METADATA = MetaData()

EVENT = Table(
    "notification_event",
    METADATA,
    Column("place", BigInteger, primary_key=True),
    Column("event_id", BigInteger),
    Column("event_type", Text),
    Column("db", Text),
    Column("tbl", Text),
    Column("details", JSON),
    Column("recorded_at", DateTime(timezone=True), server_default=func.clock_timestamp()),
)

WRITE_NOTIFICATION = Table(
    "write_notification",
    METADATA,
    Column("txn_id", BigInteger, primary_key=True),
    Column("db", Text, primary_key=True),
    Column("tbl", Text, primary_key=True),
    Column("partition", Text, primary_key=True),
    Column("write_id", BigInteger),
    Column("table_object", JSON),
    Column("partition_object", JSON(none_as_null=True)),
    Column("files", ARRAY(Text)),
    Column("recorded_at", DateTime(timezone=True), server_default=func.clock_timestamp()),
)
