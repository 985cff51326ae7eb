"""Whether a table could take another one's place by its rows alone: CREATE OR REPLACE TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hive_acid.catalog.storage_formats import storage_format
from hive_acid.catalog.table import Column, Table
from hive_acid.format.properties import TRANSACTIONAL, with_defaults


def wanted_definition(
    table: Table,
    columns: Sequence[Column],
    partitioned_by: Sequence[str],
    clustered_by: Sequence[str],
    buckets: int | None,
    properties: Mapping[str, str],
    location: str | None,
    stored_as: str,
) -> Table:
    """The definition that would be made in the place of `table`, where nothing else is said at its place."""
    keys = [key.lower() for key in partitioned_by]
    by_name = {column.name.lower(): column for column in columns}
    form = storage_format(stored_as)
    return replace(
        table,
        columns=tuple(column for column in columns if column.name.lower() not in keys),
        partition_keys=tuple(by_name[key] for key in keys if key in by_name),
        bucket_columns=tuple(name.lower() for name in clustered_by),
        buckets=table.buckets if buckets is None else buckets,
        parameters=with_defaults(properties, {TRANSACTIONAL: "true"}),
        location=location or table.location,
        input_format=form.input_format,
        serde=form.serde,
    )


def differences(table: Table, wanted: Table) -> list[str]:
    """In what two definitions differ that rows cannot follow, in words."""
    parts: dict[str, Callable[[Table], object]] = {
        "columns": lambda one: _names(one.columns),
        "partition columns": lambda one: _names(one.partition_keys),
        "buckets": lambda one: (one.bucket_columns, one.buckets if one.bucket_columns else None),
        "place": lambda one: one.location.rstrip("/"),
        "format": lambda one: (one.input_format, one.serde),
        "kind": lambda one: (one.is_transactional, one.is_full_acid, one.table_type),
    }
    return [word for word, part in parts.items() if part(table) != part(wanted)]


def _names(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name.lower(), column.type) for column in columns]
