"""Changes of the catalogue as events of the notification log, and what they told of back from there.

Each function is called in the database transaction of its change, after it; it does nothing if the log is off. The
particulars of an event are the models' fields as plain values; what a partition has from its table is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from metastore.catalog import records
from metastore.catalog.column_statistics import Analysis, ColumnStatistics, StatisticsKind
from metastore.catalog.constraint import Constraint
from metastore.catalog.function import Function
from metastore.catalog.models import CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.catalog.schema import PARTITION
from metastore.events.models import Event, EventType
from metastore.events.recording import is_recording, record

MAX_PARTITIONS = 1000
MAX_COLUMNS = 50_000
"""Partitions that one event tells of, and their columns together: more are told by several, so that no message is
huge."""

_CONSTRAINTS = (
    EventType.ADD_PRIMARY_KEY,
    EventType.ADD_FOREIGN_KEY,
    EventType.ADD_UNIQUE_CONSTRAINT,
    EventType.ADD_NOT_NULL_CONSTRAINT,
    EventType.ADD_DEFAULT_CONSTRAINT,
    EventType.ADD_CHECK_CONSTRAINT,
)
"""By the number of the kind of constraint."""

Model = TypeVar("Model")


def catalog_created(connection: Connection, catalog: CatalogInfo) -> None:
    record(connection, Event(EventType.CREATE_CATALOG, details={"catalog": plain(catalog)}))


def catalog_altered(connection: Connection, before: CatalogInfo, after: CatalogInfo) -> None:
    record(connection, Event(EventType.ALTER_CATALOG, details={"before": plain(before), "after": plain(after)}))


def catalog_dropped(connection: Connection, catalog: CatalogInfo) -> None:
    record(connection, Event(EventType.DROP_CATALOG, details={"catalog": plain(catalog)}))


def database_created(connection: Connection, database: DatabaseInfo) -> None:
    record(connection, Event(EventType.CREATE_DATABASE, database.name, details={"database": plain(database)}))


def database_altered(connection: Connection, before: DatabaseInfo, after: DatabaseInfo) -> None:
    details = {"before": plain(before), "after": plain(after)}
    record(connection, Event(EventType.ALTER_DATABASE, after.name, details=details))


def database_dropped(connection: Connection, database: DatabaseInfo) -> None:
    record(connection, Event(EventType.DROP_DATABASE, database.name, details={"database": plain(database)}))


def table_created(connection: Connection, table: Table) -> None:
    record(connection, Event(EventType.CREATE_TABLE, table.database, table.name, {"table": plain(table)}))


def table_appeared(connection: Connection, table: Table) -> None:
    """A table is there with its partitions, of which nothing was told before."""
    table_created(connection, table)
    if is_recording(connection):
        query = select(*records.PARTITION_COLUMNS).where(PARTITION.c.table_id == table.id).order_by(PARTITION.c.name)
        partitions_added(connection, table, list(map(records.partition_reader(table), connection.execute(query))))


def table_altered(connection: Connection, before: Table, after: Table, truncated: bool = False) -> None:
    """A table has another definition, maybe another name; `truncated` if it has lost its rows."""
    details = {"before": plain(before), "after": plain(after), "truncated": truncated}
    # As in Hive the event has the new name, its message the former one.
    record(connection, Event(EventType.ALTER_TABLE, after.database, after.name, details))


def table_dropped(connection: Connection, table: Table) -> None:
    """A table was dropped with its partitions, of which nothing more is told."""
    record(connection, Event(EventType.DROP_TABLE, table.database, table.name, {"table": plain(table)}))


def partitions_added(connection: Connection, table: Table, partitions: Sequence[Partition]) -> None:
    if is_recording(connection):
        told = [plain_partition(table, partition) for partition in partitions]
        at_most = min(MAX_PARTITIONS, MAX_COLUMNS // max(1, len(table.columns)) or 1)
        _partitions(connection, EventType.ADD_PARTITION, table, told, at_most)


def partitions_dropped(connection: Connection, table: Table, partitions: Sequence[Partition]) -> None:
    if is_recording(connection):
        told = [{"values": partition.values, "name": partition.name} for partition in partitions]
        _partitions(connection, EventType.DROP_PARTITION, table, told, MAX_PARTITIONS)


def partitions_altered(
    connection: Connection, table: Table, changes: Iterable[tuple[Partition, Partition]], truncated: bool = False
) -> None:
    """Partitions as they were and as they are, an event for each."""
    if not is_recording(connection):
        return
    owner = plain(table)
    events = (
        Event(
            EventType.ALTER_PARTITION,
            table.database,
            table.name,
            {
                "table": owner,
                "before": plain_partition(table, before),
                "after": plain_partition(table, after),
                "truncated": truncated,
            },
        )
        for before, after in changes
    )
    while batch := list(islice(events, MAX_PARTITIONS)):
        record(connection, *batch)


def function_created(connection: Connection, function: Function) -> None:
    details = {"function": dataclasses.asdict(function)}
    record(connection, Event(EventType.CREATE_FUNCTION, function.database, details=details))


def function_dropped(connection: Connection, function: Function) -> None:
    details = {"function": dataclasses.asdict(function)}
    record(connection, Event(EventType.DROP_FUNCTION, function.database, details=details))


def constraints_added(connection: Connection, constraints: Iterable[Constraint]) -> None:
    """Constraints were added, an event for those of one kind and table; to a table that is new too."""
    if not is_recording(connection):
        return
    groups: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
    for constraint in constraints:
        key = (int(constraint.kind), constraint.database, constraint.table)
        groups.setdefault(key, []).append(dataclasses.asdict(constraint))
    for (kind, database, table), told in groups.items():
        record(connection, Event(_CONSTRAINTS[kind], database, table, {"constraints": told}))


def constraint_dropped(connection: Connection, database: str, table: str, name: str) -> None:
    record(connection, Event(EventType.DROP_CONSTRAINT, database, table, {"constraint": name}))


def statistics_stored(
    connection: Connection, table: Table, analyses: Iterable[Analysis], engine: str, write_id: int | None
) -> None:
    """Statistics of a table or of partitions of it stand now, an event for each; sketches are left out."""
    if not is_recording(connection):
        return
    owner = plain(table)
    kinds = (EventType.UPDATE_TABLE_COLUMN_STAT, EventType.UPDATE_PARTITION_COLUMN_STAT)
    for analysis in analyses:
        details = {"table": owner, "analysis": plain_analysis(analysis), "engine": engine, "write_id": write_id}
        record(connection, Event(kinds[analysis.partition is not None], table.database, table.name, details))


def statistics_deleted(
    connection: Connection, table: Table, partitions: Iterable[str | None], columns: Sequence[str]
) -> None:
    """Statistics of columns (none named: of all) of a table (None) or of partitions, by name, are gone."""
    kinds = (EventType.DELETE_TABLE_COLUMN_STAT, EventType.DELETE_PARTITION_COLUMN_STAT)
    events = [
        Event(kinds[partition is not None], table.database, table.name, {"partition_name": partition, "column": column})
        for partition in partitions
        for column in columns or (None,)
    ]
    record(connection, *events)


def _partitions(
    connection: Connection, kind: EventType, table: Table, told: Sequence[dict[str, Any]], at_most: int
) -> None:
    owner = plain(table)
    for start in range(0, len(told), at_most):
        details = {"table": owner, "partitions": told[start : start + at_most]}
        record(connection, Event(kind, table.database, table.name, details))


# --- plain values and models ---


def plain(model: CatalogInfo | DatabaseInfo | Table) -> dict[str, Any]:
    """The fields of a model that JSON can hold; columns become lists."""
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}


def plain_partition(table: Table, partition: Partition) -> dict[str, Any]:
    """As `plain`, without what the partition has from its table."""
    found = {field.name: getattr(partition, field.name) for field in dataclasses.fields(partition)}
    for name in ("columns", "storage"):
        if found[name] == getattr(table, name):
            del found[name]
    return found


def model_of(kind: Callable[..., Model], told: Mapping[str, Any]) -> Model:
    """A model from its plain values; fields that another version told of are passed over."""
    return kind(**_known(kind, told))


def table_of(told: Mapping[str, Any]) -> Table:
    """A table from its plain values."""
    columns = {name: [Column(*column) for column in told[name]] for name in ("columns", "partition_keys")}
    return model_of(Table, {**told, **columns})


def partition_of(table: Table, told: Mapping[str, Any]) -> Partition:
    """A partition from its plain values and its table."""
    known = _known(Partition, told)
    if "columns" in known:
        known["columns"] = [Column(*column) for column in known["columns"] or []]
    return Partition(**{"columns": table.columns, "storage": table.storage, **known})


def analysis_of(told: Mapping[str, Any]) -> Analysis:
    """Statistics from their plain values."""
    columns = []
    for column in told["columns"]:
        known = _known(ColumnStatistics, column) | {"kind": StatisticsKind(column["kind"])}
        for bound in ("low", "high"):
            if known["kind"] == StatisticsKind.DECIMAL and known.get(bound) is not None:
                known[bound] = Decimal(known[bound])
        columns.append(ColumnStatistics(**known))
    return Analysis(columns, told["partition"], told["analyzed_s"])


def plain_analysis(analysis: Analysis) -> dict[str, Any]:
    columns = []
    for statistics in analysis.columns:
        told = {field.name: getattr(statistics, field.name) for field in dataclasses.fields(statistics)}
        del told["bit_vector"], told["histogram"]
        for bound in ("low", "high"):
            if isinstance(told[bound], Decimal):
                told[bound] = str(told[bound])
        columns.append(told)
    return {"columns": columns, "partition": analysis.partition, "analyzed_s": analysis.analyzed_s}


def _known(kind: Any, told: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: told[field.name] for field in dataclasses.fields(kind) if field.name in told}
