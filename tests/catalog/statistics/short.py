"""Statistics of columns in short words, for the tests."""

from typing import Any

from hive_acid.wire import ttypes


def long(low: int | None = 0, high: int | None = 9, nulls: int = 0, distinct: int = 5, **more: Any) -> Any:
    data = ttypes.LongColumnStatsData(lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct, **more)
    return ttypes.ColumnStatisticsData(longStats=data)


def text(longest: int = 4, average: float = 2.5, nulls: int = 0, distinct: int = 3, **more: Any) -> Any:
    data = ttypes.StringColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls, numDVs=distinct, **more)
    return ttypes.ColumnStatisticsData(stringStats=data)


def boolean(trues: int, falses: int, nulls: int = 0) -> Any:
    data = ttypes.BooleanColumnStatsData(numTrues=trues, numFalses=falses, numNulls=nulls)
    return ttypes.ColumnStatisticsData(booleanStats=data)


def double(low: float | None, high: float | None, nulls: int = 0, distinct: int = 3) -> Any:
    data = ttypes.DoubleColumnStatsData(lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct)
    return ttypes.ColumnStatisticsData(doubleStats=data)


def decimal(low: tuple[int, int], high: tuple[int, int], nulls: int = 0, distinct: int = 3) -> Any:
    """Bounds as (unscaled, scale)."""

    def struct(number: tuple[int, int]) -> Any:
        unscaled, scale = number
        size = (unscaled if unscaled >= 0 else -unscaled - 1).bit_length() // 8 + 1
        return ttypes.Decimal(unscaled=unscaled.to_bytes(size, signed=True), scale=scale)

    data = ttypes.DecimalColumnStatsData(lowValue=struct(low), highValue=struct(high), numNulls=nulls, numDVs=distinct)
    return ttypes.ColumnStatisticsData(decimalStats=data)


def date(low: int, high: int, nulls: int = 0, distinct: int = 3) -> Any:
    data = ttypes.DateColumnStatsData(
        lowValue=ttypes.Date(daysSinceEpoch=low),
        highValue=ttypes.Date(daysSinceEpoch=high),
        numNulls=nulls,
        numDVs=distinct,
    )
    return ttypes.ColumnStatisticsData(dateStats=data)


def timestamp(low: int, high: int, nulls: int = 0, distinct: int = 3) -> Any:
    data = ttypes.TimestampColumnStatsData(
        lowValue=ttypes.Timestamp(secondsSinceEpoch=low),
        highValue=ttypes.Timestamp(secondsSinceEpoch=high),
        numNulls=nulls,
        numDVs=distinct,
    )
    return ttypes.ColumnStatisticsData(timestampStats=data)


def binary(longest: int, average: float, nulls: int = 0) -> Any:
    data = ttypes.BinaryColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls)
    return ttypes.ColumnStatisticsData(binaryStats=data)


def statistics(
    table: str, partition: str | None = None, database: str = "default", engine: str | None = None, **columns: Any
) -> Any:
    """A ColumnStatistics; each column is given its figures, as ``a=long(1, 5)``."""
    return ttypes.ColumnStatistics(
        statsDesc=ttypes.ColumnStatisticsDesc(
            isTblLevel=partition is None, dbName=database, tableName=table, partName=partition
        ),
        statsObj=[
            ttypes.ColumnStatisticsObj(colName=name, colType=_TYPES[_kind(data)], statsData=data)
            for name, data in columns.items()
        ],
        engine=engine,
    )


def figures(column: Any) -> Any:
    """The struct of figures in a ColumnStatisticsObj."""
    return getattr(column.statsData, _kind(column.statsData))


def _kind(data: Any) -> str:
    return next(field[1] for field in type(data).thrift_spec.values() if getattr(data, field[1]) is not None)


_TYPES = {
    "longStats": "int",
    "stringStats": "string",
    "booleanStats": "boolean",
    "doubleStats": "double",
    "decimalStats": "decimal(10,2)",
    "dateStats": "date",
    "timestampStats": "timestamp",
    "binaryStats": "binary",
}
