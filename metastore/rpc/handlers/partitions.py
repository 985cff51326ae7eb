"""RPCs of partitions: old and ``_req`` forms are brought to one request, then answered in the form asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.catalog.models import Partition
from metastore.catalog.names import database_name, fold, partition_values, spec_of_name, values_of_name
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.catalog_structs import field_schemas, partition_of, partition_struct

_PARAMETER_RUN = re.compile(r"%|\*")


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return (
        _getting(catalog)
        | _listing(catalog)
        | _adding(catalog)
        | _altering(catalog)
        | _dropping(catalog)
        | _names(catalog)
    )


def _structs(database: str, table: str, found: Sequence[Partition], request: Any = None) -> list[Any]:
    """The partitions as structs, with what a ``_req`` form says about columns and parameters."""
    without_columns = bool(getattr(request, "skipColumnSchemaForPartition", None))
    structs = [partition_struct(database, fold(table), partition, without_columns) for partition in found]
    include = _like(getattr(request, "includeParamKeyPattern", None))
    exclude = _like(getattr(request, "excludeParamKeyPattern", None))
    if include or exclude:
        for struct in structs:
            struct.parameters = {
                key: value
                for key, value in struct.parameters.items()
                if (include is None or include.fullmatch(key)) and not (exclude and exclude.fullmatch(key))
            }
    return structs


def _like(pattern: str | None) -> re.Pattern[str] | None:
    return re.compile(".*".join(map(re.escape, _PARAMETER_RUN.split(pattern)))) if pattern else None


def _getting(catalog: CatalogService) -> dict[str, Handler]:
    def get(database: str, table: str, values: Sequence[str]) -> Any:
        return partition_struct(database, fold(table), catalog.partitions.get(database, table, _storable(values)))

    def get_partition(call: Call, database: str, table: str, values: Sequence[str], *authorisation: Any) -> Any:
        return get(database_name(database), table, values or [])

    def get_partition_req(call: Call, request: Any) -> Any:
        found = get(database_name(request.dbName, request.catName), request.tblName, request.partVals)
        return ttypes.GetPartitionResponse(partition=found)

    def get_partition_by_name(call: Call, database: str, table: str, name: str) -> Any:
        return get(database_name(database), table, _values_in(name))

    return {
        "get_partition": get_partition,
        "get_partition_with_auth": get_partition,
        "get_partition_req": get_partition_req,
        "get_partition_by_name": get_partition_by_name,
    }


def _listing(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def get_partitions(call: Call, database: str, table: str, limit: int | None, *authorisation: Any) -> list[Any]:
        database = database_name(database)
        return _structs(database, table, partitions.matching(database, table, limit=limit))

    def get_partitions_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        found = partitions.matching(database, request.tblName, limit=request.maxParts)
        return ttypes.PartitionsResponse(partitions=_structs(database, request.tblName, found, request))

    def get_partitions_ps(
        call: Call, database: str, table: str, values: Sequence[str] | None, limit: int | None, *authorisation: Any
    ) -> list[Any]:
        database = database_name(database)
        return _structs(database, table, partitions.matching(database, table, values or [], limit))

    def get_partitions_ps_with_auth_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        if request.partNames is not None:
            found = partitions.named(database, request.tblName, request.partNames)
        else:
            found = partitions.matching(database, request.tblName, request.partVals or [], request.maxParts)
        return ttypes.GetPartitionsPsWithAuthResponse(partitions=_structs(database, request.tblName, found, request))

    def get_partition_names(call: Call, database: str, table: str, limit: int | None) -> list[str]:
        return partitions.names(database_name(database), table, limit=limit)

    def fetch_partition_names_req(call: Call, request: Any) -> list[str]:
        database = database_name(request.dbName, request.catName)
        return partitions.names(database, request.tblName, limit=request.maxParts)

    def get_partition_names_ps(
        call: Call, database: str, table: str, values: Sequence[str] | None, limit: int | None
    ) -> list[str]:
        return partitions.names(database_name(database), table, values or [], limit)

    def get_partition_names_ps_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        found = partitions.names(database, request.tblName, request.partValues or [], request.maxParts)
        return ttypes.GetPartitionNamesPsResponse(names=found)

    def get_partitions_by_names(call: Call, database: str, table: str, names: Sequence[str] | None) -> list[Any]:
        database = database_name(database)
        return _structs(database, table, partitions.named(database, table, names or []))

    def get_partitions_by_names_req(call: Call, request: Any) -> Any:
        database = database_name(request.db_name)
        found = partitions.named(database, request.tbl_name, request.names or [])
        return ttypes.GetPartitionsByNamesResult(partitions=_structs(database, request.tbl_name, found, request))

    def get_partitions_by_filter(
        call: Call, database: str, table: str, text: str | None, limit: int | None
    ) -> list[Any]:
        database = database_name(database)
        return _structs(database, table, partitions.filtered(database, table, text or "", limit))

    def get_partitions_by_filter_req(call: Call, request: Any) -> list[Any]:
        database = database_name(request.dbName, request.catName)
        found = partitions.filtered(database, request.tblName, request.filter or "", request.maxParts)
        return _structs(database, request.tblName, found, request)

    def get_num_partitions_by_filter(call: Call, database: str, table: str, text: str | None) -> int:
        return partitions.count(database_name(database), table, text or "")

    return {
        "get_partitions": get_partitions,
        "get_partitions_with_auth": get_partitions,
        "get_partitions_req": get_partitions_req,
        "get_partitions_ps": get_partitions_ps,
        "get_partitions_ps_with_auth": get_partitions_ps,
        "get_partitions_ps_with_auth_req": get_partitions_ps_with_auth_req,
        "get_partition_names": get_partition_names,
        "fetch_partition_names_req": fetch_partition_names_req,
        "get_partition_names_ps": get_partition_names_ps,
        "get_partition_names_ps_req": get_partition_names_ps_req,
        "get_partitions_by_names": get_partitions_by_names,
        "get_partitions_by_names_req": get_partitions_by_names_req,
        "get_partitions_by_filter": get_partitions_by_filter,
        "get_partitions_by_filter_req": get_partitions_by_filter_req,
        "get_num_partitions_by_filter": get_num_partitions_by_filter,
    }


def _adding(catalog: CatalogService) -> dict[str, Handler]:
    def add(
        database: str, table: str, structs: Sequence[Any], if_not_exists: bool = False, columns: Any = None
    ) -> list[Partition]:
        if columns is not None:  # sent once for all partitions
            for struct in structs:
                if struct.sd is not None and not struct.sd.cols:
                    struct.sd.cols = columns
        return catalog.partitions.add(database, table, [partition_of(struct) for struct in structs], if_not_exists)

    def add_partition(call: Call, struct: Any, context: Any = None) -> Any:
        database = database_name(struct.dbName, struct.catName)
        return _structs(database, struct.tableName, add(database, struct.tableName, [struct]))[0]

    def add_partitions(call: Call, structs: Sequence[Any] | None) -> int:
        if not structs:
            return 0
        targets = {(database_name(struct.dbName, struct.catName), fold(struct.tableName)) for struct in structs}
        if len(targets) > 1:
            raise InvalidObjectError("the partitions of one request must belong to one table")
        return len(add(*targets.pop(), structs))

    def add_partitions_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        columns = request.partitionColSchema
        added = add(database, request.tblName, request.parts or [], bool(request.ifNotExists), columns)
        result = ttypes.AddPartitionsResult(isStatsCompliant=False)
        if request.needResult is not False:  # Hive's default is true
            result.partitions = _structs(database, request.tblName, added, request)
            if request.skipColumnSchemaForPartition:
                result.partitionColSchema = field_schemas(catalog.tables.get(database, request.tblName).columns)
        return result

    def append(database: str, table: str, values: Sequence[str]) -> Any:
        return _structs(database, table, catalog.partitions.add(database, table, [Partition(list(values))]))[0]

    def append_partition(call: Call, database: str, table: str, values: Sequence[str], context: Any = None) -> Any:
        return append(database_name(database), table, values or [])

    def append_partition_by_name(call: Call, database: str, table: str, name: str, context: Any = None) -> Any:
        return append(database_name(database), table, values_of_name(name))

    def append_partition_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catalogName)
        values = values_of_name(request.name) if request.name else request.partVals or []
        return append(database, request.tableName, values)

    return {
        "add_partition": add_partition,
        "add_partition_with_environment_context": add_partition,
        "add_partitions": add_partitions,
        "add_partitions_req": add_partitions_req,
        "append_partition": append_partition,
        "append_partition_with_environment_context": append_partition,
        "append_partition_by_name": append_partition_by_name,
        "append_partition_by_name_with_environment_context": append_partition_by_name,
        "append_partition_req": append_partition_req,
    }


def _altering(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def declared(change: Callable[[], None]) -> None:
        try:
            change()
        except InvalidObjectError as error:  # none of these methods declares it
            raise InvalidOperationError(str(error)) from None

    def alter_partition(call: Call, database: str, table: str, struct: Any, context: Any = None) -> None:
        alter_partitions(call, database, table, [struct], context)

    def alter_partitions(
        call: Call, database: str, table: str, structs: Sequence[Any] | None, context: Any = None
    ) -> None:
        name = database_name(database)
        declared(lambda: partitions.alter(name, table, [partition_of(struct) for struct in structs or []]))

    def alter_partitions_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        structs = request.partitions or []
        if request.writeId is not None and request.writeId > 0:
            for struct in structs:
                struct.writeId = request.writeId
        declared(lambda: partitions.alter(database, request.tableName, [partition_of(struct) for struct in structs]))
        return ttypes.AlterPartitionsResponse()

    def rename_partition(call: Call, database: str, table: str, values: Sequence[str] | None, struct: Any) -> None:
        name = database_name(database)
        declared(lambda: partitions.rename(name, table, values or [], partition_of(struct)))

    def rename_partition_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        declared(
            lambda: partitions.rename(database, request.tableName, request.partVals, partition_of(request.newPart))
        )
        return ttypes.RenamePartitionResponse()

    return {
        "alter_partition": alter_partition,
        "alter_partition_with_environment_context": alter_partition,
        "alter_partitions": alter_partitions,
        "alter_partitions_with_environment_context": alter_partitions,
        "alter_partitions_req": alter_partitions_req,
        "rename_partition": rename_partition,
        "rename_partition_req": rename_partition_req,
    }


def _dropping(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def drop(database: str, table: str, values: Sequence[str], delete_data: bool | None) -> bool:
        partitions.drop(database, table, [_storable(values)], bool(delete_data))
        return True

    def drop_partition(
        call: Call, database: str, table: str, values: Sequence[str], delete_data: bool | None, context: Any = None
    ) -> bool:
        return drop(database_name(database), table, values or [], delete_data)

    def drop_partition_by_name(
        call: Call, database: str, table: str, name: str, delete_data: bool | None, context: Any = None
    ) -> bool:
        return drop(database_name(database), table, _values_in(name), delete_data)

    def drop_partition_req(call: Call, request: Any) -> bool:
        values = _values_in(request.partName) if request.partName else request.partVals or []
        return drop(database_name(request.dbName, request.catName), request.tblName, values, request.deleteData)

    def drop_partitions_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        if request.parts.names is not None:
            chosen = [_values_in(name) for name in request.parts.names]
        else:
            chosen = by_expressions(database, request.tblName, request.parts.exprs or [], bool(request.ifExists))
        if_exists = bool(request.ifExists)
        dropped = partitions.drop(database, request.tblName, chosen, bool(request.deleteData), if_exists)
        result = ttypes.DropPartitionsResult()
        if request.needResult is not False:  # Hive's default is true
            result.partitions = _structs(database, request.tblName, dropped, request)
        return result

    def by_expressions(database: str, table: str, expressions: Sequence[Any], if_exists: bool) -> list[list[str]]:
        """The partitions that filter texts choose; Hive's MSCK sends text in place of a serialised plan."""
        chosen: list[list[str]] = []
        for expression in expressions:
            try:
                text = expression.expr if isinstance(expression.expr, str) else expression.expr.decode()
                found = partitions.filtered(database, table, text)
            except (UnicodeDecodeError, MetaError) as error:
                raise MetaError(
                    f"cannot drop partitions of {database}.{table} by a serialised expression: name them, or send a"
                    f" filter text ({error})"
                ) from None
            if not found and not if_exists:
                raise NoSuchObjectError(f"no partition of {database}.{table} matches {text}")
            chosen += [partition.values for partition in found]
        return chosen

    return {
        "drop_partition": drop_partition,
        "drop_partition_with_environment_context": drop_partition,
        "drop_partition_by_name": drop_partition_by_name,
        "drop_partition_by_name_with_environment_context": drop_partition_by_name,
        "drop_partition_req": drop_partition_req,
        "drop_partitions_req": drop_partitions_req,
    }


def _names(catalog: CatalogService) -> dict[str, Handler]:
    def to_values(call: Call, name: str) -> list[str]:
        return _values_in(name) if name else []

    def to_spec(call: Call, name: str) -> dict[str, str]:
        try:
            return dict(spec_of_name(name)) if name else {}
        except InvalidObjectError as error:  # not declared
            raise MetaError(str(error)) from None

    def has_valid_characters(call: Call, values: Sequence[str], throw: bool | None) -> bool:
        invalid = catalog.partitions.first_invalid(_storable(values or []))
        if invalid is not None and throw:
            raise MetaError(f"partition value '{invalid}' does not match the server's whitelist")
        return invalid is None

    return {
        "partition_name_to_vals": to_values,
        "partition_name_to_spec": to_spec,
        "partition_name_has_valid_characters": has_valid_characters,
    }


def _values_in(name: str) -> list[str]:
    """The values in a partition name, for methods that do not declare InvalidObjectException."""
    try:
        return values_of_name(name)
    except InvalidObjectError as error:
        raise MetaError(str(error)) from None


def _storable(values: Sequence[str]) -> list[str]:
    """Partition values as they are stored, for methods that do not declare InvalidObjectException."""
    try:
        return partition_values(values)
    except InvalidObjectError as error:
        raise MetaError(str(error)) from None
