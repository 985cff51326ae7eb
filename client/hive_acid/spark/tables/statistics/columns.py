"""Statistics of columns: the aggregates that Spark computes, and the structs in which the metastore keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import Row
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.spark.values.quoting import quoted
from hive_acid.wire import ttypes

_KINDS = {
    "boolean": "boolean",
    **dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint"), "long"),
    **dict.fromkeys(("float", "double", "double precision"), "double"),
    **dict.fromkeys(("string", "varchar", "char"), "string"),
    "binary": "binary",
    "decimal": "decimal",
    "numeric": "decimal",
    "date": "date",
    "timestamp": "timestamp",
}
_ORDERED = ("long", "double", "decimal", "date", "timestamp")


def analyzed_columns(table: Table, names: Sequence[str]) -> list[tuple[Column, str]]:
    """The named columns with the kind of their statistics. Raises ColumnError for unknown and nested ones."""
    by_name = {column.name: column for column in table.columns}
    found = []
    for name in names:
        column = by_name.get(name.lower())
        if column is None:
            raise ColumnError(f"{table.full_name} has no column '{name}' of which statistics could be made")
        kind = _KINDS.get(column.type.partition("(")[0].strip().lower())
        if kind is None:
            raise ColumnError(f"there are no statistics of nested columns: {table.full_name}.{name} is {column.type}")
        found.append((column, kind))
    return found


def aggregates(columns: Sequence[tuple[Column, str]]) -> list[SparkColumn]:
    """What one pass over the rows has to compute for `figures`."""
    found = []
    for position, (column, kind) in enumerate(columns):
        value = F.col(quoted(column.name))
        wanted = {"nulls": F.count(F.when(value.isNull(), 1))}
        if kind == "boolean":
            wanted["trues"] = F.count(F.when(value, 1))
        else:
            wanted["distinct"] = F.approx_count_distinct(value)
        if kind in _ORDERED:
            ordered = F.unix_seconds(value) if kind == "timestamp" else value
            if kind == "double":
                # Spark takes NaN for the greatest number: no bound of the others says anything then.
                ordered = F.when(~F.isnan(value), value)
                wanted["nans"] = F.count(F.when(F.isnan(value), 1))
            bounds = F.min(ordered), F.max(ordered)
            if kind == "date":  # as numbers, since Python's dates end with the year 9999
                bounds = F.unix_date(bounds[0]), F.unix_date(bounds[1])
            wanted |= dict(zip(("low", "high"), bounds, strict=True))
        if kind in ("string", "binary"):
            length = F.octet_length(value)
            wanted |= {"longest": F.max(length), "length": F.avg(length)}
        found += [aggregate.alias(_name(position, figure)) for figure, aggregate in wanted.items()]
    return found


def statistics_objects(columns: Sequence[tuple[Column, str]], row: Row, rows: int) -> list[Any]:
    """The structs of one table or partition, from what `aggregates` computed of its `rows`."""
    computed = row.asDict()
    return [
        ttypes.ColumnStatisticsObj(
            colName=column.name,
            colType=column.type,
            statsData=_data(kind, {key: computed.get(_name(position, key)) for key in _FIGURES}, rows),
        )
        for position, (column, kind) in enumerate(columns)
    ]


_FIGURES = ("nulls", "trues", "distinct", "nans", "low", "high", "longest", "length")


def _name(position: int, figure: str) -> str:
    return f"{figure}_{position}"


def _data(kind: str, computed: Mapping[str, Any], rows: int) -> Any:
    nulls = computed["nulls"]
    values = rows - nulls
    if kind == "boolean":
        trues = computed["trues"]
        data = ttypes.BooleanColumnStatsData(numTrues=trues, numFalses=values - trues, numNulls=nulls)
        return ttypes.ColumnStatisticsData(booleanStats=data)
    if kind == "binary":
        sizes = {"maxColLen": computed["longest"] or 0, "avgColLen": computed["length"] or 0.0}
        return ttypes.ColumnStatisticsData(binaryStats=ttypes.BinaryColumnStatsData(numNulls=nulls, **sizes))
    # The number is an estimate, and of few rows it may be more than there are.
    figures: dict[str, Any] = {"numNulls": nulls, "numDVs": min(computed["distinct"], values)}
    if kind == "string":
        figures |= {"maxColLen": computed["longest"] or 0, "avgColLen": computed["length"] or 0.0}
    elif not computed["nans"]:
        figures |= {"lowValue": _bound(kind, computed["low"]), "highValue": _bound(kind, computed["high"])}
    data = getattr(ttypes, f"{kind.capitalize()}ColumnStatsData")(**figures)
    return ttypes.ColumnStatisticsData(**{f"{kind}Stats": data})


def _bound(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "date":
        return ttypes.Date(daysSinceEpoch=value)
    if kind == "timestamp":
        return ttypes.Timestamp(secondsSinceEpoch=value)
    if kind == "decimal":
        return _decimal(value)
    return float(value) if kind == "double" else int(value)


def _decimal(value: Decimal) -> Any:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    if exponent > 0:
        unscaled, exponent = unscaled * 10**exponent, 0
    size = unscaled.bit_length() // 8 + 1
    return ttypes.Decimal(unscaled=unscaled.to_bytes(size, "big", signed=True), scale=-exponent)
