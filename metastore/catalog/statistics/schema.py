"""The tables of statistics for SQLAlchemy Core; migration 0007 makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, LargeBinary, Numeric, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from metastore.catalog.schema import METADATA

COLUMN_STATISTICS = Table(
    "column_statistics",
    METADATA,
    Column("table_id", BigInteger),
    Column("partition_id", BigInteger),
    Column("column_name", Text),
    Column("engine", Text),
    Column("column_type", Text),
    Column("kind", Text),
    Column("analyzed_s", BigInteger),
    Column("nulls", BigInteger),
    Column("distinct_values", BigInteger),
    Column("trues", BigInteger),
    Column("falses", BigInteger),
    Column("max_length", BigInteger),
    Column("avg_length", Double),
    Column("low", Numeric),
    Column("high", Numeric),
    Column("low_double", Double),
    Column("high_double", Double),
    Column("bit_vector", LargeBinary),
    Column("histogram", LargeBinary),
)

STATISTICS_BASIS = Table(
    "statistics_basis",
    METADATA,
    Column("table_id", BigInteger),
    Column("partition_id", BigInteger),
    Column("write_id", BigInteger),
    Column("high_water_mark", BigInteger),
    Column("open_ids", ARRAY(BigInteger)),
    Column("is_outdated", Boolean),
)
