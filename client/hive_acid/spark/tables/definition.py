"""The definition of a new table, and how one that is there gets it: by its rows alone, with them, or by another table
that takes its place.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import types as t

from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.storage_formats import (
    NOT_EXTERNAL,
    ORC,
    StorageFormat,
    format_called,
    is_written,
    not_written,
    only_orc,
    storage_format,
)
from hive_acid.catalog.table import Column, Skew, Table, table_parts
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.format.properties import TRANSACTIONAL, with_defaults
from hive_acid.spark.keys.key_columns import refuse_incomparable
from hive_acid.spark.values.argument_checks import names_of
from hive_acid.spark.values.hashing import clustering
from hive_acid.spark.values.types import check_distinct, hive_columns
from hive_acid.write.successor import inherited

_COLUMNS, _BUCKETS = "columns", "buckets"
"""What rows that replace all others may bring along."""
_KEYS, _CONSTRAINTS, _PLACE = "partition columns", "constraints", "place"
"""What takes a table of its own."""


class Replacement(enum.Enum):
    """How a table is replaced by another definition with its rows."""

    ROWS = "by its rows alone"
    REDEFINED = "by its rows, which bring other columns or buckets along"
    SUCCEEDED = "by another table that takes its place"


def new_table(
    name: str,
    columns: Mapping[str, str] | t.StructType | Sequence[Column],
    *,
    partitioned_by: Mapping[str, str] | Sequence[str] = (),
    clustered_by: Sequence[str] = (),
    buckets: int | None = None,
    sorted_by: Sequence[tuple[str, bool]] = (),
    skew: Skew | None = None,
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    stored_as: str | StorageFormat = "ORC",
    serde_properties: Mapping[str, str] | None = None,
    external: bool = False,
    constraints: Sequence[Constraint] = (),
) -> Table:
    """The definition that the arguments of `create_table` mean; the location is empty if none is given.

    Raises ColumnError, and UnsupportedTableError for a format that the kind of table cannot have, and for an external
    table that would be transactional.
    """
    form = storage_format(stored_as) if isinstance(stored_as, str) else stored_as
    called = stored_as if isinstance(stored_as, str) else format_called(form)
    given = hive_columns(columns)
    if isinstance(partitioned_by, Mapping):
        keys = hive_columns(partitioned_by)
    else:
        named = names_of("partitioned_by", partitioned_by)
        by_name = {column.name: column for column in given}
        if unknown := [key for key in named if key.lower() not in by_name]:
            raise ColumnError(f"partitioned_by names {', '.join(unknown)}, which the columns do not have")
        keys = tuple(by_name[key.lower()] for key in named)
        given = tuple(column for column in given if column not in keys)
    check_distinct(column.name for column in (*given, *keys))
    if not given:
        raise ColumnError("a table needs a column beside its partition columns")
    clustered = clustering(names_of("clustered_by", clustered_by), buckets, given)
    database, table = table_parts(name)
    kind = {"EXTERNAL": "TRUE"} if external else {TRANSACTIONAL: "true"}
    definition = Table(
        database=database,
        name=table,
        columns=given,
        partition_keys=keys,
        parameters=with_defaults(properties or {}, {**kind, **clustered.parameters}),
        location=location or "",
        bucket_columns=clustered.columns,
        buckets=clustered.buckets,
        input_format=form.input_format,
        output_format=form.output_format,
        serde=form.serde,
        serde_parameters=dict(serde_properties or {}),
        table_type="EXTERNAL_TABLE" if external else "MANAGED_TABLE",
        constraints=tuple(constraints),
        sorted_by=tuple(sorted_by),
        skew=skew,
    )
    _check_order(definition)
    if external and definition.is_transactional:
        raise UnsupportedTableError(f"{definition.full_name}: {NOT_EXTERNAL}")
    if definition.is_full_acid and form != ORC:
        raise UnsupportedTableError(f"{definition.full_name}: {only_orc(called)}")
    if definition.is_transactional and not is_written(form):
        raise UnsupportedTableError(f"{definition.full_name}: {not_written(called)}")
    refuse_incomparable(definition)
    return definition


def _check_order(table: Table) -> None:
    """Raise ColumnError for columns in SORTED BY and SKEWED BY that files do not have, and as `refuse_ordered`."""
    skewed = table.skew.columns if table.skew is not None else ()
    check_distinct(skewed)
    check_distinct(name for name, _ in table.sorted_by)
    known = {column.name for column in table.columns}
    for word, names in (("SORTED", [name for name, _ in table.sorted_by]), ("SKEWED", skewed)):
        if unknown := [name for name in names if name not in known]:
            raise ColumnError(
                f"{word} BY of {table.full_name} names {', '.join(unknown)}, which the columns of the files do not have"
            )
    if table.sorted_by and not table.bucket_columns:
        raise ColumnError(f"{table.full_name} is sorted within buckets, and has none: say CLUSTERED BY, too")
    if table.skew is not None and any(len(values) != len(skewed) for values in table.skew.values):
        raise ColumnError(f"SKEWED BY of {table.full_name}: each value in ON has {len(skewed)} parts, as the columns")
    if table.is_transactional:
        refuse_ordered(table)


def refuse_ordered(table: Table) -> None:
    """Raise UnsupportedTableError for a table whose files lie or are sorted as an ACID table's cannot."""
    if table.sorted_by:
        raise UnsupportedTableError(
            f"{table.full_name} cannot be SORTED BY, which is of plain tables: an ACID table keeps its rows in the "
            "order of their row ids"
        )
    if table.skew is not None and table.skew.in_directories:
        raise UnsupportedTableError(
            f"{table.full_name} cannot be STORED AS DIRECTORIES, which is of plain tables: the directories of an ACID "
            "table are those of its writes"
        )


def replacement(table: Table, wanted: Table) -> Replacement:
    """How a table is replaced by what is `wanted`.

    Raises UnsupportedTableError if that is of another kind, or of another format, or a plain table.
    """
    parts: dict[str, Callable[[Table], object]] = {
        _COLUMNS: lambda one: _names(one.columns),
        _KEYS: lambda one: _names(one.partition_keys),
        _BUCKETS: lambda one: (one.bucket_columns, one.buckets if one.bucket_columns else None),
        "order of rows": lambda one: (one.sorted_by, one.skew),
        _PLACE: lambda one: (one.location or table.location).rstrip("/"),
        "format": lambda one: (one.input_format, one.serde),
        _CONSTRAINTS: lambda one: _meanings(one, wanted),
        "kind": lambda one: (one.is_transactional, one.is_full_acid, one.table_type),
    }
    differing = {word for word, part in parts.items() if part(table) != part(wanted)}
    others = [word for word in parts if word in differing - {_COLUMNS, _BUCKETS, _KEYS, _CONSTRAINTS, _PLACE}]
    if others:
        raise UnsupportedTableError(
            f"{table.full_name} has other {', '.join(others)} than what would replace it: drop it, and create it anew"
        )
    if differing and table.is_plain:
        raise UnsupportedTableError(
            f"{table.full_name} is a plain table, whose rows and columns cannot be replaced at once: drop it, and "
            "create it anew"
        )
    if differing - {_COLUMNS, _BUCKETS}:
        return Replacement.SUCCEEDED
    if table.partition_keys and table.is_transactional and not table.is_full_acid:
        return Replacement.SUCCEEDED  # an overwrite leaves the partitions that no row falls into
    return Replacement.REDEFINED if differing else Replacement.ROWS


def redefined(table: Table, wanted: Table, properties: Mapping[str, str]) -> Table:
    """A table with the columns, the buckets and these `properties` of the one that is `wanted`."""
    found = replace(
        table,
        columns=wanted.columns,
        bucket_columns=wanted.bucket_columns,
        buckets=wanted.buckets,
        parameters={**table.parameters, **_hashed(wanted), **properties},
        constraints=_kept_constraints(table, wanted),
    )
    refuse_incomparable(found)
    return found


def successor(table: Table, wanted: Table, properties: Mapping[str, str]) -> Table:
    """What is `wanted`, with these `properties` and what a table has that it takes the place of; it has no id yet.

    Its constraints are those that are wanted. If none are, those stay whose columns do.
    """
    there = {key: value for key, value in inherited(table.parameters).items() if key != "bucketing_version"}
    constraints = wanted.constraints or _kept_constraints(table, wanted)
    parameters = {**there, **_hashed(wanted), **properties}
    found = replace(wanted, id=0, parameters=parameters, constraints=constraints)
    refuse_incomparable(found)
    return found


def _hashed(wanted: Table) -> dict[str, str]:
    return {key: value for key, value in wanted.parameters.items() if key == "bucketing_version"}


def _kept_constraints(table: Table, wanted: Table) -> tuple[Constraint, ...]:
    stays = {column.name.lower() for column in wanted.all_columns}
    return tuple(one for one in table.constraints if stays.issuperset(name.lower() for name in one.columns))


def _meanings(table: Table, wanted: Table) -> object:
    """What a table's constraints say; nothing if none are `wanted`: then those that are there stay."""
    said = ((one.kind, one.columns, one.enabled, one.rely, one.expression, one.parent) for one in table.constraints)
    return sorted(map(str, said)) if wanted.constraints else None


def _names(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name.lower(), column.type) for column in columns]
