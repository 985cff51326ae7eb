"""RPCs that list tables: names, summaries and whole tables, by pattern, type, name and filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.errors import InvalidOperationError, UnknownDBError
from hive_acid.wire import ttypes
from metastore.catalog.definition.listings import DETAILS, PARAMETERS, STORAGE
from metastore.catalog.models import Table, TableSummary
from metastore.catalog.names import database_key, database_name, decoded, is_plain_name, split_key
from metastore.catalog.rules.capabilities import access_of
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.handlers.catalog.tables import is_refused, translated
from metastore.rpc.streaming import listed
from metastore.rpc.structs.catalog import table_struct
from metastore.rpc.structs.projections import Projection

_ACCESS_TYPE, _CAPABILITIES = 1, 2  # GetTablesExtRequestFields, as bits

_NEEDED = {"sd": STORAGE, "partitionKeys": STORAGE, "parameters": PARAMETERS}
_PLAIN = frozenset({"tableName", "dbName", "catName", "owner", "ownerType", "tableType", "createTime", "id"})


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return _names(catalog) | _objects(catalog)


def _names(catalog: CatalogService) -> dict[str, Handler]:
    listings = catalog.listings

    def get_tables(call: Call, database: str, pattern: str | None) -> Any:
        return listed(listings.names(database_name(database), pattern))

    def get_tables_by_type(call: Call, database: str, pattern: str | None, table_type: str | None) -> Any:
        return listed(listings.names(database_name(database), pattern, table_type))

    def get_all_tables(call: Call, database: str) -> Any:
        call.session.listed = database_name(database)
        return listed(listings.names(call.session.listed))

    def get_table_meta(call: Call, databases: str | None, pattern: str | None, types: Sequence[str] | None) -> Any:
        found = listings.summaries(*decoded(databases), pattern, types or [])
        return listed(found.each(_meta))

    def get_table_names_by_filter(call: Call, database: str | None, text: str | None, limit: int | None) -> Any:
        """The names; none of a database that does not exist, as every Hive metastore has it."""
        catalog_name, name = decoded(database)
        if not catalog_name or not name:
            raise UnknownDBError("a filter of tables needs the name of a database")
        if text is None:
            raise InvalidOperationError("the filter of tables is missing")
        return listed(listings.filtered(database_key(catalog_name, name), text, limit))

    return {
        "get_tables": get_tables,
        "get_tables_by_type": get_tables_by_type,
        "get_all_tables": get_all_tables,
        "get_table_meta": get_table_meta,
        "get_table_names_by_filter": get_table_names_by_filter,
    }


def _objects(catalog: CatalogService) -> dict[str, Handler]:
    listings = catalog.listings

    def get_table_objects_by_name(call: Call, database: str, names: Sequence[str] | None) -> Any:
        # The method declares no exception, and one ACID table must not spoil the list of the others: it is left out.
        def shown(table: Table) -> Any:
            return None if is_refused(catalog, call, table) else table_struct(table)

        return listed(listings.named(database_name(database), names or []).each(shown, has_gaps=True))

    def get_table_objects_by_name_req(call: Call, request: Any) -> Any:
        catalog_name, name = decoded(request.dbName, request.catName)
        is_pattern = request.tablesPattern is not None and name is not None and not is_plain_name(name)
        if not is_pattern and (not name or catalog.databases.find(database_key(catalog_name, name)) is None):
            raise UnknownDBError(f"database {catalog_name}.{name} does not exist")
        database = database_key(catalog_name, name or "")
        projection = _projection(request.projectionSpec)
        capabilities = request.processorCapabilities
        needed = None if capabilities else _needed(projection)
        if is_pattern:
            found = listings.everywhere(catalog_name, name, request.tablesPattern, needed)
        elif request.tablesPattern is not None:
            found = listings.matching(database, request.tablesPattern, needed=needed)
        elif request.tblNames is not None:
            found = listings.named(database, request.tblNames, needed=needed)
        else:
            raise InvalidOperationError(f"the request for tables of {name} has neither names nor a pattern")

        def shown(table: Table) -> Any:
            struct = translated(table, capabilities)
            if projection is None:
                return struct
            part = projection.of(struct)
            part.createTime = struct.createTime  # always there, as in Hive
            return part

        return listed(found.each(shown), lambda tables: ttypes.GetTablesResult(tables=tables))

    def get_tables_ext(call: Call, request: Any) -> Any:
        capabilities = frozenset(request.processorCapabilities or [])

        def shown(table: Table) -> Any:
            info = ttypes.ExtendedTableInfo(tblName=table.name)
            if not capabilities:
                return info
            access = access_of(table, capabilities)
            if request.requestedFields & _ACCESS_TYPE:
                info.accessType = access.kind
            if request.requestedFields & _CAPABILITIES:
                info.requiredReadCapabilities = access.required_to_read
                info.requiredWriteCapabilities = access.required_to_write
            return info

        database = database_name(request.database, request.catalog)
        found = listings.matching(database, request.tableNamePattern, request.limit, STORAGE | PARAMETERS)
        return listed(found.each(shown))

    return {
        "get_table_objects_by_name": get_table_objects_by_name,
        "get_table_objects_by_name_req": get_table_objects_by_name_req,
        "get_tables_ext": get_tables_ext,
    }


def _meta(table: TableSummary) -> Any:
    catalog, database = split_key(table.database)
    return ttypes.TableMeta(
        dbName=database,
        tableName=table.name,
        tableType=table.table_type,
        comments=table.comment,
        catName=catalog,
        ownerName=table.owner,
        ownerType=table.owner_type,
    )


def _projection(spec: Any) -> Projection | None:
    """What the request wants of each table; None is all. Raises InvalidOperationError for what Hive has not either."""
    if spec is None or not spec.fieldList:
        if spec is not None and (spec.includeParamKeyPattern or spec.excludeParamKeyPattern):
            raise InvalidOperationError("patterns of parameters are for partitions, not for tables")
        return None
    projection = Projection(spec.fieldList, ttypes.Table)
    return projection if projection.is_single else None  # as Hive, whose tables are whole then


def _needed(projection: Projection | None) -> frozenset[str] | None:
    """The large columns of the tables' rows that the projection shows something of; None is all."""
    if projection is None:
        return None
    return frozenset().union(*(_NEEDED.get(field, DETAILS) for field in projection.fields - _PLAIN))
