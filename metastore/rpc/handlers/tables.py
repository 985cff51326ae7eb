"""RPCs of tables and views: old and ``_req`` forms are brought to one request, then answered in the form asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hive_acid.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnknownDBError,
    UnknownTableError,
)
from hive_acid.wire import ttypes
from metastore.catalog.capabilities import access_of
from metastore.catalog.config import ALLOW, WARN
from metastore.catalog.models import Expectation, Table
from metastore.catalog.names import DEFAULT_CATALOG, database_name, fold, split_catalog
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.catalog_structs import field_schemas, table_of, table_struct

_log = logging.getLogger(__name__)


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return _reading(catalog) | _creating(catalog) | _altering(catalog) | _dropping(catalog)


def _reading(catalog: CatalogService) -> dict[str, Handler]:
    tables = catalog.tables

    def is_refused(call: Call, table: Table) -> bool:
        """Whether the guard keeps a full-ACID table from a client that did not say it knows such tables."""
        if not table.is_full_acid or catalog.config.acid_guard == ALLOW:
            return False
        if catalog.config.acid_guard == WARN:
            _log.warning(
                "%s of the ACID table %s by %s, which may not know how", call.method, table.full_name, call.peer
            )
            return False
        return True

    def get_table(call: Call, database: str, name: str) -> Any:
        table = tables.get(database_name(database), name)
        if is_refused(call, table):
            raise MetaError(
                f"{table.full_name} is an ACID table, which this client would read and write wrongly: use"
                " hive_acid.connect and hive_acid.spark, a client that sends get_table_req, or the server setting"
                " metastore.acid.guard=allow"
            )
        return table_struct(table)

    def get_table_req(call: Call, request: Any) -> Any:
        table = tables.get(database_name(request.dbName, request.catName), request.tblName)
        return ttypes.GetTableResult(table=_translated(table, request.processorCapabilities), isStatsCompliant=False)

    def get_table_objects_by_name(call: Call, database: str, names: Sequence[str]) -> list[Any]:
        # The method declares no exception, and one ACID table must not spoil the list of the others: it is left out.
        found = tables.get_many(database_name(database), names or [])
        return [table_struct(table) for table in found if not is_refused(call, table)]

    def get_table_objects_by_name_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        if catalog.databases.find(database) is None:
            raise UnknownDBError(f"database {database} does not exist")
        if request.tblNames is not None:
            found = tables.get_many(database, request.tblNames)
        else:
            found = tables.matching(database, request.tablesPattern)
        return ttypes.GetTablesResult(tables=[_translated(table, request.processorCapabilities) for table in found])

    def get_tables(call: Call, database: str, pattern: str | None) -> list[str]:
        return tables.names(database_name(database), pattern)

    def get_tables_by_type(call: Call, database: str, pattern: str | None, table_type: str | None) -> list[str]:
        return tables.names(database_name(database), pattern, table_type)

    def get_table_meta(
        call: Call, databases: str | None, pattern: str | None, types: Sequence[str] | None
    ) -> list[Any]:
        found = tables.summaries(split_catalog(databases), pattern, types or [])
        return [
            ttypes.TableMeta(
                dbName=table.database,
                tableName=table.name,
                tableType=table.table_type,
                comments=table.comment,
                catName=DEFAULT_CATALOG,
                ownerName=table.owner,
                ownerType=table.owner_type,
            )
            for table in found
        ]

    def known(database: str, name: str) -> Table:
        try:
            return tables.get(database, name)
        except NoSuchObjectError as error:
            if catalog.databases.find(database) is None:
                raise UnknownDBError(f"database {database} does not exist") from None
            raise UnknownTableError(str(error)) from None

    def get_fields(call: Call, database: str, name: str, context: Any = None) -> list[Any]:
        return field_schemas(known(database_name(database), name).columns)

    def get_schema(call: Call, database: str, name: str, context: Any = None) -> list[Any]:
        table = known(database_name(database), name)
        return field_schemas([*table.columns, *table.partition_keys])

    def get_fields_req(call: Call, request: Any) -> Any:
        table = known(database_name(request.dbName, request.catName), request.tblName)
        return ttypes.GetFieldsResponse(fields=field_schemas(table.columns))

    def get_schema_req(call: Call, request: Any) -> Any:
        table = known(database_name(request.dbName, request.catName), request.tblName)
        return ttypes.GetSchemaResponse(fields=field_schemas([*table.columns, *table.partition_keys]))

    return {
        "get_table": get_table,
        "get_table_req": get_table_req,
        "get_table_objects_by_name": get_table_objects_by_name,
        "get_table_objects_by_name_req": get_table_objects_by_name_req,
        "get_tables": get_tables,
        "get_tables_by_type": get_tables_by_type,
        "get_all_tables": lambda call, database: tables.names(database_name(database)),
        "get_table_meta": get_table_meta,
        "get_fields": get_fields,
        "get_fields_with_environment_context": get_fields,
        "get_fields_req": get_fields_req,
        "get_schema": get_schema,
        "get_schema_with_environment_context": get_schema,
        "get_schema_req": get_schema_req,
    }


def _creating(catalog: CatalogService) -> dict[str, Handler]:
    def create_table(call: Call, struct: Any, context: Any = None) -> None:
        table = table_of(struct)
        catalog.tables.create(replace(table, owner=table.owner or call.user))

    def create_table_with_constraints(call: Call, struct: Any, *constraints: Sequence[Any] | None) -> None:
        if any(constraints):
            raise InvalidObjectError("constraints are not supported: create the table without them")
        create_table(call, struct)

    def create_table_req(call: Call, request: Any) -> None:
        create_table_with_constraints(
            call,
            request.table,
            request.primaryKeys,
            request.foreignKeys,
            request.uniqueConstraints,
            request.notNullConstraints,
            request.defaultConstraints,
            request.checkConstraints,
        )

    return {
        "create_table": create_table,
        "create_table_with_environment_context": create_table,
        "create_table_with_constraints": create_table_with_constraints,
        "create_table_req": create_table_req,
    }


def _altering(catalog: CatalogService) -> dict[str, Handler]:
    def alter(
        database: str, name: str, struct: Any, context: Any, expected: Expectation | None = None, cascade: bool = False
    ) -> None:
        properties = (context.properties if context is not None else None) or {}
        key, value = properties.get("expected_parameter_key"), properties.get("expected_parameter_value")
        if expected is None and key is not None and value is not None:
            expected = Expectation(key, value)
        cascade = cascade or properties.get("CASCADE", "").lower() == "true"
        try:
            new = table_of(struct)
            catalog.alterations.alter(database, fold(name), new, expected, cascade)
        except InvalidObjectError as error:  # none of the alter methods declares it
            raise InvalidOperationError(str(error)) from None

    def alter_table(call: Call, database: str, name: str, struct: Any, context: Any = None) -> None:
        alter(database_name(database), name, struct, context)

    def alter_table_with_cascade(call: Call, database: str, name: str, struct: Any, cascade: bool | None) -> None:
        alter(database_name(database), name, struct, None, cascade=bool(cascade))

    def alter_table_req(call: Call, request: Any) -> Any:
        struct = request.table
        if request.writeId is not None and request.writeId > 0:
            struct.writeId = request.writeId
        expected = None
        if request.expectedParameterKey is not None and request.expectedParameterValue is not None:
            expected = Expectation(request.expectedParameterKey, request.expectedParameterValue)
        database = database_name(request.dbName, request.catName)
        alter(database, request.tableName, struct, request.environmentContext, expected)
        return ttypes.AlterTableResponse()

    return {
        "alter_table": alter_table,
        "alter_table_with_environment_context": alter_table,
        "alter_table_with_cascade": alter_table_with_cascade,
        "alter_table_req": alter_table_req,
    }


def _dropping(catalog: CatalogService) -> dict[str, Handler]:
    def drop_table(call: Call, database: str, name: str, delete_data: bool | None, context: Any = None) -> None:
        catalog.tables.drop(database_name(database), name, bool(delete_data))

    def drop_table_req(call: Call, request: Any) -> None:
        database = database_name(request.dbName, request.catalogName)
        catalog.tables.drop(database, request.tableName, bool(request.deleteData))

    return {
        "drop_table": drop_table,
        "drop_table_with_environment_context": drop_table,
        "drop_table_req": drop_table_req,
    }


def _translated(table: Table, capabilities: Sequence[str] | None) -> Any:
    """The answer to a client that may have named its capabilities; Impala refuses a table without access type."""
    struct = table_struct(table)
    if capabilities:
        access = access_of(table, frozenset(capabilities))
        struct.accessType = access.kind
        struct.requiredReadCapabilities = access.required_to_read
        struct.requiredWriteCapabilities = access.required_to_write
        if access.hides_buckets:
            struct.sd.numBuckets = -1
    return struct
