"""Between the Thrift structs of statistics and their models."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hive_acid.errors import FormatError, InvalidInputError, InvalidObjectError, MetaError
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.wire import ttypes
from metastore.catalog.accuracy import ACCURATE, DO_NOT_UPDATE, GENERATED_BY, ONLY, Accuracy
from metastore.catalog.column_statistics import (
    DEFAULT_ENGINE,
    Analysis,
    ColumnStatistics,
    StatisticsKind,
    Upkeep,
    Writer,
)
from metastore.catalog.names import fold, split_key
from metastore.rpc.encoding.plain import checked_text

_LARGEST = 2**63 - 1
_MOST_DIGITS = 1_000
"""Of a decimal, before and after the point: far more than the 38 of Hive's type, far fewer than would cost memory."""

_FIGURES = {
    "numNulls": "nulls",
    "numDVs": "distinct_values",
    "numTrues": "trues",
    "numFalses": "falses",
    "maxColLen": "max_length",
    "avgColLen": "avg_length",
    "bitVectors": "bit_vector",
    "histogram": "histogram",
}
_BOUNDS = {"lowValue": "low", "highValue": "high"}


def engine_of(*spellings: str | None) -> str:
    """The engine that a request names, in whatever spelling; Hive if none does."""
    named = next((spelling for spelling in spellings if spelling), DEFAULT_ENGINE)
    return checked_text(named, "the engine").strip().lower()


def reader_of(text: str | None) -> ValidWriteIdList | None:
    """The snapshot of a reader; None if it sent none. Raises MetaError for a malformed one."""
    if not text:
        return None
    try:
        return ValidWriteIdList.parse(text)
    except FormatError as error:
        raise MetaError(str(error)) from None


def writer_of(write_id: int | None, snapshot: str | None) -> Writer | None:
    """In whose transaction statistics were gathered; None unless both parts were sent."""
    reader = reader_of(snapshot)
    return None if reader is None or write_id is None or write_id <= 0 else Writer(write_id, reader)


def upkeep_of(properties: Mapping[str, str] | None, write_id: int | None = None, snapshot: str | None = None) -> Upkeep:
    """What the environment context and the fields of an alter call say of statistics."""
    said = properties or {}
    return Upkeep(
        is_left_alone=said.get(DO_NOT_UPDATE, "").lower() == "true",
        is_computed=said.get(GENERATED_BY, "").upper() == "TASK",
        writer=writer_of(write_id, snapshot),
        is_all=said.get(ONLY, "").lower() == "true",
    )


def analysis_of(struct: Any) -> Analysis:
    """What a ColumnStatistics says of one table or partition.

    Raises InvalidInputError for a struct with gaps, InvalidObjectError for statistics that cannot be.
    """
    desc = struct.statsDesc
    if struct.statsObj is None:
        raise InvalidInputError("statistics were sent without a list of columns")
    if not desc.isTblLevel and not desc.partName:
        raise InvalidInputError(f"statistics of a partition of {desc.dbName}.{desc.tableName} do not say of which")
    return Analysis(
        [statistics_of(column) for column in struct.statsObj],
        None if desc.isTblLevel else desc.partName,
        desc.lastAnalyzed or 0,
    )


def statistics_of(struct: Any) -> ColumnStatistics:
    """The statistics in a ColumnStatisticsObj. Raises InvalidInputError, InvalidObjectError."""
    if not struct.colName or not struct.colType:
        raise InvalidInputError("statistics were sent without the name or the type of their column")
    name = fold(checked_text(struct.colName, "a column name"))
    sent = [(kind, getattr(struct.statsData, f"{kind}Stats", None)) for kind in StatisticsKind]
    given = [(kind, data) for kind, data in sent if data is not None]
    if len(given) != 1:
        raise InvalidObjectError(f"statistics of column {name} must be of one kind, not of {len(given)}")
    kind, data = given[0]
    figures: dict[str, Any] = {}
    for _, field, *_, is_required in type(data).thrift_spec.values():
        value = getattr(data, field)
        if value is None and is_required:
            raise InvalidInputError(f"{type(data).__name__}.{field} of column {name} is required and was not sent")
        if field in _BOUNDS:
            figures[_BOUNDS[field]] = None if value is None else _bound_of(kind, value)
        elif value is not None:
            figures[_FIGURES[field]] = value.encode() if isinstance(value, str) else value
    return ColumnStatistics(name, checked_text(struct.colType, "a column type"), kind, **figures)


def column_struct(statistics: ColumnStatistics, with_bit_vector: bool = True) -> Any:
    """A ColumnStatisticsObj."""
    kind = statistics.kind
    data = getattr(ttypes, f"{kind.capitalize()}ColumnStatsData")()
    for _, field, *_, is_required in type(data).thrift_spec.values():
        value = getattr(statistics, _FIGURES[field] if field in _FIGURES else _BOUNDS[field])
        if field == "bitVectors" and not with_bit_vector:
            continue
        if field in _BOUNDS:
            value = None if value is None else _bound_struct(kind, value)
        elif is_required and isinstance(value, int):
            value = min(value, _LARGEST)
        setattr(data, field, value)
    union = ttypes.ColumnStatisticsData(**{f"{kind}Stats": data})
    return ttypes.ColumnStatisticsObj(colName=statistics.column, colType=statistics.type, statsData=union)


def analysis_struct(
    database: str, table: str, analysis: Analysis, engine: str, is_compliant: bool | None, with_bit_vectors: bool
) -> Any:
    """A ColumnStatistics of the table of a database with this key."""
    catalog, name = split_key(database)
    desc = ttypes.ColumnStatisticsDesc(
        isTblLevel=analysis.partition is None,
        dbName=name,
        tableName=table,
        partName=analysis.partition,
        lastAnalyzed=analysis.analyzed_s,
        catName=catalog,
    )
    columns = [column_struct(column, with_bit_vectors) for column in analysis.columns]
    return ttypes.ColumnStatistics(statsDesc=desc, statsObj=columns, isStatsCompliant=is_compliant, engine=engine)


def marked(struct: Any, is_compliant: bool) -> Any:
    """A Table or Partition with the promise to the reader that its statistics are true for it, or without their claim.

    Clients look at the claim, which the reply must not make then (`accuracy`).
    """
    parameters = struct.parameters or {}
    struct.isStatsCompliant = is_compliant and Accuracy.of(parameters).basic
    if ACCURATE in parameters and not is_compliant:
        struct.parameters = {key: value for key, value in parameters.items() if key != ACCURATE}
    return struct


def _bound_of(kind: StatisticsKind, value: Any) -> int | float | Decimal:
    if kind is StatisticsKind.DATE:
        return _required(value.daysSinceEpoch)
    if kind is StatisticsKind.TIMESTAMP:
        return _required(value.secondsSinceEpoch)
    if kind is not StatisticsKind.DECIMAL:
        return value  # type: ignore[no-any-return]  # a plain number
    unscaled, scale = value.unscaled, value.scale
    if not unscaled or scale is None or len(unscaled) > _MOST_DIGITS // 3 or abs(scale) > _MOST_DIGITS:
        raise InvalidObjectError("a bound of a decimal column is not a decimal number that can be stored")
    number = int.from_bytes(unscaled, signed=True)
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def _required(value: int | None) -> int:
    if value is None:
        raise InvalidInputError("a bound of a date or timestamp column has no value")
    return value


def _bound_struct(kind: StatisticsKind, value: Any) -> Any:
    if kind is StatisticsKind.DATE:
        return ttypes.Date(daysSinceEpoch=value)
    if kind is StatisticsKind.TIMESTAMP:
        return ttypes.Timestamp(secondsSinceEpoch=value)
    if kind is not StatisticsKind.DECIMAL:
        return value
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    number = -number if sign else number
    size = (number if number >= 0 else -number - 1).bit_length() // 8 + 1  # as many as the sign needs, as in Java
    return ttypes.Decimal(unscaled=number.to_bytes(size, signed=True), scale=max(-exponent, 0))
