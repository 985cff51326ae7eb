"""Between rows of the tables of statistics and their models."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    RowMapping,
    TableValuedAlias,
    Text,
    case,
    cast,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from hive_acid.format.snapshot import ValidWriteIdList
from metastore.catalog.accuracy import ACCURATE, Accuracy
from metastore.catalog.column_statistics import ColumnStatistics, StatisticsKind, Writer
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.statistics.schema import COLUMN_STATISTICS

WHOLE_TABLE = 0
"""Stands for the table itself where partitions are given by their ids."""
MOST_OPEN_IDS = 10_000
"""Statistics gathered beside more open writes than this are not vouched for: the list would have to be kept."""

_BATCH = 1_000
_PLAIN = ("nulls", "distinct_values", "trues", "falses", "max_length", "avg_length", "bit_vector", "histogram")
_columns = COLUMN_STATISTICS.c
_target = func.coalesce(_columns.partition_id, literal_column("0"))


def row_of(table_id: int, target: int, engine: str, analyzed_s: int, statistics: ColumnStatistics) -> dict[str, Any]:
    """The row of one column's statistics."""
    row = {name: getattr(statistics, name) for name in _PLAIN}
    is_double = statistics.kind is StatisticsKind.DOUBLE
    return row | {
        "table_id": table_id,
        "partition_id": target or None,
        "column_name": statistics.column,
        "engine": engine,
        "column_type": statistics.type,
        "kind": statistics.kind.value,
        "analyzed_s": analyzed_s,
        "low": None if is_double else statistics.low,
        "high": None if is_double else statistics.high,
        "low_double": statistics.low if is_double else None,
        "high_double": statistics.high if is_double else None,
    }


def statistics_of(row: Mapping[Any, Any]) -> ColumnStatistics:
    """The statistics in a row, or in a row of aggregates under the same names."""
    kind = StatisticsKind(row["kind"])
    figures = {name: row[name] for name in _PLAIN if name in row}
    return ColumnStatistics(
        column=row["column_name"],
        type=row["column_type"],
        kind=kind,
        low=_bound(kind, row["low"], row["low_double"]),
        high=_bound(kind, row["high"], row["high_double"]),
        **figures,
    )


def store_rows(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert statistics, or replace those of the same column and engine."""
    each = iter(rows)
    while batch := list(islice(each, _BATCH)):
        text = json.dumps([{name: _text(value) for name, value in row.items()} for row in batch])
        connection.execute(select(func.store_column_statistics(text)))


def rows_of(
    connection: Connection, table_id: int, targets: Sequence[int], engine: str, columns: Collection[str] | None = None
) -> dict[int, list[RowMapping]]:
    """The statistics of a table and partitions (by id), of all columns or those named."""
    chosen = [_columns.table_id == table_id, _target == func.any(ids(targets)), _columns.engine == engine]
    if columns is not None:
        chosen.append(_columns.column_name.in_(list(columns)))
    found: dict[int, list[RowMapping]] = {}
    query = select(COLUMN_STATISTICS).where(*chosen).order_by(_columns.column_name)
    for row in connection.execute(query).mappings():
        found.setdefault(row["partition_id"] or WHOLE_TABLE, []).append(row)
    return found


def delete_rows(
    connection: Connection,
    table_id: int,
    targets: Iterable[int],
    columns: Collection[str] | None = None,
    engine: str | None = None,
) -> int:
    """Delete statistics of a table and partitions (by id), None standing for all; how many that were."""
    chosen = [_columns.table_id == table_id, _target == func.any(ids(targets))]
    if columns is not None:
        chosen.append(_columns.column_name.in_(list(columns)))
    if engine is not None:
        chosen.append(_columns.engine == engine)
    return connection.execute(delete(COLUMN_STATISTICS).where(*chosen)).rowcount


def store_basis(connection: Connection, table_id: int, targets: Sequence[int], writer: Writer) -> None:
    """Note which writes the statistics of the targets include."""
    mark, own = writer.snapshot.high_water_mark, writer.write_id
    since = select(func.concurrent_write_ids(table_id, mark, own, MOST_OPEN_IDS + 1))
    concurrent = [*writer.snapshot.open_ids, *connection.execute(since).scalars()]
    open_ids = [write_id for write_id in concurrent if write_id != own]
    is_outdated = len(open_ids) > MOST_OPEN_IDS
    stored = func.store_statistics_basis(
        table_id, ids(targets), own, max(mark, own), ids([] if is_outdated else open_ids), is_outdated
    )
    connection.execute(select(stored))


def store_accuracy(connection: Connection, table_id: int, found: Mapping[int, Accuracy]) -> None:
    """Put into the parameters of the table and of partitions what is accurate of them."""
    said = {target: str(accuracy) if accuracy.applied({}) else "" for target, accuracy in found.items()}
    whole = said.pop(WHOLE_TABLE, None)
    if whole is not None:
        chosen = update(TBL).where(TBL.c.id == table_id)
        connection.execute(chosen.values(parameters=_with_accuracy(TBL.c.parameters, cast(whole, Text))))
    if said:
        given = (
            func.unnest(ids(said), cast(list(said.values()), ARRAY(Text)))
            .table_valued("id", "accuracy")
            .render_derived(name="given")
        )
        connection.execute(
            update(PARTITION)
            .where(PARTITION.c.id == given.c.id)
            .values(parameters=_with_accuracy(PARTITION.c.parameters, given.c.accuracy))
        )


def compliant_targets(
    connection: Connection,
    table_id: int,
    targets: Sequence[int],
    reader: ValidWriteIdList,
    own_write_id: int | None = None,
) -> dict[int, int]:
    """Those of a transactional table and its partitions (by id) whose statistics describe what a reader sees.

    With the write id of whoever stored them last, 0 if nobody has.
    """
    found = compliance(table_id, ids(targets), reader, own_write_id)
    return {row.target: row.write_id for row in connection.execute(select(found))}


def compliance(
    table_id: int, targets: ColumnElement[Any], reader: ValidWriteIdList, own_write_id: int | None = None
) -> TableValuedAlias:
    """The rows of `compliant_targets` for an array of targets that the database makes."""
    return func.compliant_statistics(
        table_id,
        targets,
        reader.high_water_mark,
        ids(reader.open_ids),
        ids(reader.aborted_ids),
        own_write_id,
    ).table_valued("target", "write_id")


def ids(targets: Iterable[int]) -> ColumnElement[Any]:
    """An array of ids, however many."""
    return cast(list(targets), ARRAY(BigInteger))


def _text(value: Any) -> str | int | None:
    """A value in the form in which Postgres reads it from a text of JSON."""
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value) if isinstance(value, float | Decimal) else value


def _with_accuracy(parameters: Any, accuracy: Any) -> Any:
    said = func.jsonb_build_object(ACCURATE, accuracy)
    return case((accuracy == "", parameters.op("-")(ACCURATE)), else_=parameters.op("||")(cast(said, JSONB)))


def _bound(kind: StatisticsKind, exact: Decimal | None, double: float | None) -> int | float | Decimal | None:
    if kind is StatisticsKind.DOUBLE:
        return double
    return exact if exact is None or kind is StatisticsKind.DECIMAL else int(exact)
