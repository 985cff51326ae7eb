"""RPCs of statistics: old and ``_req`` forms are brought to one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.errors import InvalidInputError, MetaError, NoSuchObjectError
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.wire import ttypes
from metastore.catalog.column_statistics import DEFAULT_ENGINE
from metastore.catalog.models import Table
from metastore.catalog.names import database_name, fold
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.structs.statistics import (
    analysis_of,
    analysis_struct,
    column_struct,
    engine_of,
    reader_of,
    writer_of,
)


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """The handlers by RPC name."""
    return _reading(catalog) | _storing(catalog) | _deleting(catalog)


def _reading(catalog: CatalogService) -> dict[str, Handler]:
    statistics, with_bit_vectors = catalog.statistics, catalog.config.fetch_bit_vectors

    def get_table_column_statistics(call: Call, database: str, table: str, column: str | None) -> Any:
        key = database_name(database)
        found = statistics.of_table(key, table, [_named(column, "column")], DEFAULT_ENGINE)
        if not found.analyses:
            raise NoSuchObjectError(f"there are no statistics of column {column} of {key}.{table}")
        return analysis_struct(key, fold(table), found.analyses[0], DEFAULT_ENGINE, None, with_bit_vectors)

    def get_partition_column_statistics(
        call: Call, database: str, table: str, partition: str | None, column: str | None
    ) -> Any:
        key, name = database_name(database), _named(partition, "partition")
        found = statistics.of_partitions(key, table, [name], [_named(column, "column")], DEFAULT_ENGINE)
        if not found.analyses:
            raise NoSuchObjectError(f"there are no statistics of column {column} of {key}.{table}, partition {name}")
        return analysis_struct(key, fold(table), found.analyses[0], DEFAULT_ENGINE, None, with_bit_vectors)

    def get_table_statistics_req(call: Call, request: Any) -> Any:
        found = statistics.of_table(
            database_name(request.dbName, request.catName),
            request.tblName,
            request.colNames,
            engine_of(request.engine),
            reader_of(request.validWriteIdList),
        )
        columns = [
            column_struct(column, with_bit_vectors) for analysis in found.analyses for column in analysis.columns
        ]
        return ttypes.TableStatsResult(tableStats=columns, isStatsCompliant=found.is_compliant)

    def get_partitions_statistics_req(call: Call, request: Any) -> Any:
        found = statistics.of_partitions(*_asked(request))
        by_name = {
            analysis.partition: [column_struct(column, with_bit_vectors) for column in analysis.columns]
            for analysis in found.analyses
        }
        return ttypes.PartitionsStatsResult(partStats=by_name, isStatsCompliant=found.is_compliant)

    def get_aggr_stats_for(call: Call, request: Any) -> Any:
        found = statistics.aggregated(*_asked(request))
        columns = [column_struct(column, with_bit_vectors) for column in found.columns]
        return ttypes.AggrStats(colStats=columns, partsFound=found.partitions, isStatsCompliant=found.is_compliant)

    def find_columns_with_stats(call: Call, info: Any) -> list[str]:
        """The columns whose statistics a compactor is to gather anew, as the table has them (transactions.md §4.3)."""
        table = catalog.tables.find(info.dbname, info.tablename)
        if table is None:
            return []
        if info.partitionname:
            found = statistics.of_partitions(table.database, table.name, [info.partitionname], None, DEFAULT_ENGINE)
        else:
            found = statistics.of_table(table.database, table.name, None, DEFAULT_ENGINE)
        known = {column.column for analysis in found.analyses for column in analysis.columns}
        return [column.name for column in table.columns if column.name in known]

    return {
        "get_table_column_statistics": get_table_column_statistics,
        "get_partition_column_statistics": get_partition_column_statistics,
        "get_table_statistics_req": get_table_statistics_req,
        "get_partitions_statistics_req": get_partitions_statistics_req,
        "get_aggr_stats_for": get_aggr_stats_for,
        "find_columns_with_stats": find_columns_with_stats,
    }


def _asked(request: Any) -> tuple[str, str, list[str], list[str], str, ValidWriteIdList | None]:
    """Database, table, partitions, columns, engine and reader of a request for statistics of partitions."""
    return (
        database_name(request.dbName, request.catName),
        request.tblName,
        request.partNames,
        request.colNames,
        engine_of(request.engine),
        reader_of(request.validWriteIdList),
    )


def table_statistics(catalog: CatalogService, table: Table, engine: str, reader: ValidWriteIdList | None) -> Any | None:
    """What a Table carries of its columns' statistics; None if there are none, or none that the reader may have."""
    found = catalog.statistics.of_table(table.database, table.name, None, engine, reader)
    with_bit_vectors = catalog.config.fetch_bit_vectors
    for analysis in found.analyses:
        return analysis_struct(table.database, table.name, analysis, engine, found.is_compliant, with_bit_vectors)
    return None


def partition_statistics(
    catalog: CatalogService, table: Table, names: Sequence[str], engine: str, reader: ValidWriteIdList | None
) -> dict[str, Any]:
    """By the names of partitions, what each carries of its columns' statistics, as far as the reader may have it."""
    found = catalog.statistics.of_partitions(table.database, table.name, names, None, engine, reader)
    promise = None if reader is None else True
    with_bit_vectors = catalog.config.fetch_bit_vectors
    return {
        analysis.partition or "": analysis_struct(
            table.database, table.name, analysis, engine, promise, with_bit_vectors
        )
        for analysis in found.analyses
    }


def _storing(catalog: CatalogService) -> dict[str, Handler]:
    def store(structs: Sequence[Any], request: Any = None) -> bool:
        """Store statistics of one table, or of partitions of one table; `request` is what a ``_req`` form adds."""
        if any(struct.statsDesc is None for struct in structs):
            raise InvalidInputError("statistics were sent without saying of which table")
        if not structs:
            return True
        descs = [struct.statsDesc for struct in structs]
        targets = {(database_name(desc.dbName, desc.catName), fold(desc.tableName)) for desc in descs}
        engines = {engine_of(struct.engine, request and request.engine) for struct in structs}
        if len(targets) > 1 or len(engines) > 1:
            raise InvalidInputError("the statistics of one request must be of one table, by one engine")
        if len({bool(desc.isTblLevel) for desc in descs}) > 1:
            raise InvalidInputError("the statistics of one request must be of the table or of partitions, not of both")
        if descs[0].isTblLevel and len(structs) > 1:
            raise MetaError(f"a table has one set of statistics, but {len(structs)} were sent")
        return catalog.statistics_changes.store(
            *targets.pop(),
            [analysis_of(struct) for struct in structs],
            engines.pop(),
            request and writer_of(request.writeId, request.validWriteIdList),
            bool(request and request.needMerge),
        )

    def update(struct: Any, of_table: bool, request: Any = None) -> bool:
        if struct.statsDesc is not None and bool(struct.statsDesc.isTblLevel) is not of_table:
            raise InvalidInputError(f"these are not statistics of a {'table' if of_table else 'partition'}")
        return store([struct], request)

    def update_req(request: Any, of_table: bool) -> Any:
        if len(request.colStats) != 1:
            raise InvalidInputError(
                f"one set of statistics is stored by this call, but {len(request.colStats)} were sent"
            )
        if request.needMerge:
            raise InvalidInputError("statistics are merged by set_aggr_stats_for only")
        return ttypes.SetPartitionsStatsResponse(result=update(request.colStats[0], of_table, request))

    def update_transaction_statistics(call: Call, request: Any) -> None:
        catalog.statistics_changes.count_source_changes(
            request.tableId, request.insertCount, request.updatedCount, request.deletedCount
        )

    return {
        "update_table_column_statistics": lambda call, struct: update(struct, True),
        "update_partition_column_statistics": lambda call, struct: update(struct, False),
        "update_table_column_statistics_req": lambda call, request: update_req(request, True),
        "update_partition_column_statistics_req": lambda call, request: update_req(request, False),
        "set_aggr_stats_for": lambda call, request: store(request.colStats, request),
        "update_transaction_statistics": update_transaction_statistics,
    }


def _deleting(catalog: CatalogService) -> dict[str, Handler]:
    changes = catalog.statistics_changes

    def delete(
        database: str,
        table: str,
        partitions: Sequence[str] | None,
        columns: Sequence[str] | None,
        engine: str | None,
        must_exist: bool = False,
    ) -> bool:
        named = engine_of(engine) if engine else None
        changes.delete(database, table, partitions, columns or None, named, must_exist)
        return True

    def delete_table_column_statistics(
        call: Call, database: str, table: str, column: str | None, engine: str | None = None
    ) -> bool:
        columns = [column] if column else None
        return delete(database_name(database), table, None, columns, engine, must_exist=bool(columns))

    def delete_partition_column_statistics(
        call: Call, database: str, table: str, partition: str | None, column: str | None, engine: str | None = None
    ) -> bool:
        columns, partitions = [column] if column else None, [_named(partition, "partition")]
        return delete(database_name(database), table, partitions, columns, engine, must_exist=bool(columns))

    def delete_column_statistics_req(call: Call, request: Any) -> bool:
        database = database_name(request.db_name, request.cat_name)
        partitions: Sequence[str] | None = request.part_names or []
        if request.tableLevel or not (partitions or catalog.tables.get(database, request.tbl_name).partition_keys):
            partitions = None
        return delete(database, request.tbl_name, partitions, request.col_names, request.engine)

    return {
        "delete_table_column_statistics": delete_table_column_statistics,
        "delete_partition_column_statistics": delete_partition_column_statistics,
        "delete_column_statistics_req": delete_column_statistics_req,
    }


def _named(name: str | None, what: str) -> str:
    if not name:
        raise InvalidInputError(f"the request names no {what}")
    return name
