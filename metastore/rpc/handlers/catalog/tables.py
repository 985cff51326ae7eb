"""RPCs of tables and views: old and ``_req`` forms are brought to one request, then answered in the form asked.

Lists of tables are in `table_lists`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hive_acid.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnknownDBError,
    UnknownTableError,
)
from hive_acid.wire import CONSTRAINTS, CONSTRAINTS_CAPABILITY, ttypes
from metastore.catalog.config import REFUSE, WARN
from metastore.catalog.definition.alterations import AlterRequest
from metastore.catalog.definition.views import just_materialized
from metastore.catalog.models import Expectation, Table
from metastore.catalog.names import database_name, fold
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.removal.trash import UNDROP
from metastore.catalog.rules.capabilities import INSERT_ONLY_TABLES, access_of, guard_of
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.codec import Prepared, prepared_paced
from metastore.rpc.handlers.catalog.dependents import dependents_of
from metastore.rpc.handlers.catalog.statistics import table_statistics
from metastore.rpc.handlers.catalog.table_replies import TableReplies
from metastore.rpc.handlers.session import checks_column_types
from metastore.rpc.structs.catalog import field_schemas, table_of, table_struct
from metastore.rpc.structs.statistics import engine_of, marked, reader_of, upkeep_of
from metastore.txn.models import TxnOwner

_log = logging.getLogger(__name__)

_DROPS = ("drop_table", "drop_table_with_environment_context")


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return _reading(catalog) | _creating(catalog) | _altering(catalog) | _dropping(catalog)


def _reading(catalog: CatalogService) -> dict[str, Handler]:
    tables, replies = catalog.tables, TableReplies()

    async def get_table(call: Call, database: str, name: str) -> Any:
        def check(table: Table) -> None:
            if is_refused(catalog, call, table) and not _is_dropping(call, table.database):
                raise MetaError(
                    f"{table.full_name} is an ACID table, which this client would read and write wrongly. In PySpark"
                    " say: import hive_acid.spark; hive_acid.spark.enable(spark). Elsewhere use hive_acid.connect or"
                    " a client that sends get_table_req, or the server setting or table property"
                    " metastore.acid.guard=allow"
                )
            check_insert_only(table, ())

        row = await tables.row_soon(database_name(database), name)
        return await replies.of(call, row, None, check, table_struct)

    async def get_table_req(call: Call, request: Any) -> Any:
        if request.validWriteIdList or request.getColumnStats:
            return await call.run(with_statistics, call.method, request)
        known = tuple((request.capabilities and request.capabilities.values) or ())
        processor = tuple(request.processorCapabilities or ())

        def reply(table: Table) -> Any:
            return ttypes.GetTableResult(table=translated(table, processor))

        row = await tables.row_soon(database_name(request.dbName, request.catName), request.tblName)
        return await replies.of(call, row, processor, lambda table: check_insert_only(table, known), reply)

    def with_statistics(method: str, request: Any) -> Prepared:
        database, reader = database_name(request.dbName, request.catName), reader_of(request.validWriteIdList)
        if reader is None:
            table, is_compliant = tables.get(database, request.tblName), None
        else:
            table, is_compliant = catalog.statistics.table_for(database, request.tblName, reader)
        check_insert_only(table, (request.capabilities and request.capabilities.values) or ())
        struct = translated(table, request.processorCapabilities)
        if is_compliant is not None:
            marked(struct, is_compliant)
        if request.getColumnStats:
            struct.colStats = table_statistics(catalog, table, engine_of(request.engine), reader)
        return prepared_paced(method, ttypes.GetTableResult(table=struct, isStatsCompliant=struct.isStatsCompliant))

    def check_insert_only(table: Table, capabilities: Collection[int]) -> None:
        """Hive's own rule for clients that do not know insert-only tables, if it is switched on."""
        if not catalog.config.capability_check or not table.is_transactional or table.is_full_acid:
            return
        if INSERT_ONLY_TABLES not in capabilities:
            raise MetaError(
                "Your client does not appear to support insert-only tables. To skip capability checks, please set"
                f" metastore.client.capability.check to false. This setting can be set on the server. {table.full_name}"
            )

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
        "get_fields": get_fields,
        "get_fields_with_environment_context": get_fields,
        "get_fields_req": get_fields_req,
        "get_schema": get_schema,
        "get_schema_with_environment_context": get_schema,
        "get_schema_req": get_schema_req,
    }


def is_refused(catalog: CatalogService, call: Call, table: Table) -> bool:
    """Whether the guard keeps a full-ACID table from a client that did not say it knows such tables."""
    guard = guard_of(table, catalog.config.acid_guard)
    if guard == WARN:
        _log.warning("%s of the ACID table %s by %s, which may not know how", call.method, table.full_name, call.peer)
    return guard == REFUSE


def _is_dropping(call: Call, database: str) -> bool:
    """Whether a client gets the tables of a database to drop them one by one, as Hive 2.3's dropDatabase does.

    It lists them all, then gets and drops each, and calls nothing else on that connection meanwhile.
    """
    return call.session.listed == database and call.session.last_method in ("get_all_tables", *_DROPS)


def _creating(catalog: CatalogService) -> dict[str, Handler]:
    def create(
        call: Call,
        struct: Any,
        context: Any,
        constraints: Sequence[Sequence[Any] | None] = (),
        capabilities: Sequence[str] | None = None,
    ) -> None:
        if properties_of(context).get(UNDROP, "").lower() == "true":
            catalog.trash.restore(database_name(struct.dbName, struct.catName), struct.tableName or "")
            return
        table = just_materialized(table_of(struct))
        dependents = dependents_of(struct, table, constraints)
        catalog.tables.create(table, capabilities, *dependents)

    def create_table(call: Call, struct: Any, context: Any = None) -> None:
        create(call, struct, context)

    def create_table_with_constraints(call: Call, struct: Any, *constraints: Sequence[Any] | None) -> None:
        create(call, struct, None, constraints)

    def create_table_req(call: Call, request: Any) -> None:
        constraints = (
            request.primaryKeys,
            request.foreignKeys,
            request.uniqueConstraints,
            request.notNullConstraints,
            request.defaultConstraints,
            request.checkConstraints,
        )
        create(call, request.table, request.envContext, constraints, request.processorCapabilities)

    def translate_table_dryrun(call: Call, request: Any) -> Any:
        """The table as a create of it would be stored."""
        return table_struct(catalog.tables.completed(table_of(request.table), request.processorCapabilities))

    return {
        "create_table": create_table,
        "create_table_with_environment_context": create_table,
        "create_table_with_constraints": create_table_with_constraints,
        "create_table_req": create_table_req,
        "translate_table_dryrun": translate_table_dryrun,
    }


def _altering(catalog: CatalogService) -> dict[str, Handler]:
    def alter(
        call: Call,
        database: str,
        name: str,
        struct: Any,
        context: Any,
        expected: Expectation | None = None,
        cascade: bool = False,
        request: Any = None,
    ) -> None:
        properties = properties_of(context)
        key, value = properties.get("expected_parameter_key"), properties.get("expected_parameter_value")
        if expected is None and key is not None and value is not None:
            expected = Expectation(key, value)
        cascade = cascade or properties.get("CASCADE", "").lower() == "true"
        try:
            new = table_of(struct, database)
            write = () if request is None else (request.writeId, request.validWriteIdList)
            how = AlterRequest(expected, cascade, upkeep_of(properties, *write), checks_column_types(call.session))
            catalog.alterations.alter(database, fold(name), new, how)
        except InvalidObjectError as error:  # none of the alter methods declares it
            raise InvalidOperationError(str(error)) from None

    def alter_table(call: Call, database: str, name: str, struct: Any, context: Any = None) -> None:
        alter(call, database_name(database), name, struct, context)

    def alter_table_with_cascade(call: Call, database: str, name: str, struct: Any, cascade: bool | None) -> None:
        alter(call, database_name(database), name, struct, None, cascade=bool(cascade))

    def alter_table_req(call: Call, request: Any) -> Any:
        struct = request.table
        if request.writeId is not None and request.writeId > 0:
            struct.writeId = request.writeId
        expected = None
        if request.expectedParameterKey is not None and request.expectedParameterValue is not None:
            expected = Expectation(request.expectedParameterKey, request.expectedParameterValue)
        database = database_name(request.dbName, request.catName)
        alter(call, database, request.tableName, struct, request.environmentContext, expected, request=request)
        return ttypes.AlterTableResponse()

    return {
        "alter_table": alter_table,
        "alter_table_with_environment_context": alter_table,
        "alter_table_with_cascade": alter_table_with_cascade,
        "alter_table_req": alter_table_req,
    }


def _dropping(catalog: CatalogService) -> dict[str, Handler]:
    def drop_table(call: Call, database: str, name: str, delete_data: bool | None, context: Any = None) -> None:
        request = DropRequest.of_context(bool(delete_data), properties_of(context))
        catalog.tables.drop(database_name(database), name, request)

    def drop_table_req(call: Call, request: Any) -> None:
        database = database_name(request.dbName, request.catalogName)
        drop_table(call, database, request.tableName, request.deleteData, request.envContext)

    def truncate(call: Call, database: str, name: str, partitions: Sequence[str] | None, write_id: int = 0) -> None:
        owner = TxnOwner(call.user or "", call.peer, call.method)
        catalog.truncations.truncate(database, name, partitions, owner, write_id)

    def truncate_table(call: Call, database: str, name: str, partitions: Sequence[str] | None) -> None:
        truncate(call, database_name(database), name, partitions)

    def truncate_table_req(call: Call, request: Any) -> Any:
        truncate(call, database_name(request.dbName), request.tableName, request.partNames, request.writeId or 0)
        return ttypes.TruncateTableResponse()

    return {
        "drop_table": drop_table,
        "drop_table_with_environment_context": drop_table,
        "drop_table_req": drop_table_req,
        "truncate_table": truncate_table,
        "truncate_table_req": truncate_table_req,
    }


def properties_of(context: Any) -> Mapping[str, str]:
    """The properties of an EnvironmentContext, which may be absent."""
    return (context.properties if context is not None else None) or {}


def translated(table: Table, capabilities: Sequence[str] | None) -> Any:
    """The answer to a client that may have named its capabilities; Impala refuses a table without access type.

    A client that keeps to constraints gets them with the table, since it asks for that behind each lock.
    """
    struct = table_struct(table)
    if table.constraints and capabilities and CONSTRAINTS_CAPABILITY in capabilities:
        struct.dictionary = ttypes.ObjectDictionary(values={CONSTRAINTS: [table.constraints.encode()]})
    if capabilities:
        access = access_of(table, frozenset(capabilities))
        struct.accessType = access.kind
        struct.requiredReadCapabilities = access.required_to_read
        struct.requiredWriteCapabilities = access.required_to_write
        if access.hides_buckets:
            struct.sd.numBuckets = -1
    return struct
