"""RPCs that change partitions: old and ``_req`` forms are brought to one request, then answered in the form asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from hive_acid.wire import ttypes
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import (
    database_name,
    fold,
    name_of_values,
    partition_values,
    spec_of_name,
    split_key,
    values_of_name,
)
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.handlers.catalog.tables import properties_of
from metastore.rpc.structs.catalog import check_storage, partition_of
from metastore.rpc.structs.partition_specs import partitions_in
from metastore.rpc.structs.partitions import structs, table_columns
from metastore.rpc.structs.statistics import upkeep_of


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return _adding(catalog) | _altering(catalog) | _moving(catalog) | _dropping(catalog) | _names(catalog)


def _adding(catalog: CatalogService) -> dict[str, Handler]:
    def add(
        database: str,
        table: str,
        given: Sequence[Any],
        if_not_exists: bool = False,
        columns: Any = None,
        in_same_words: bool = True,
    ) -> tuple[Table, list[Partition]]:
        _check_owner(catalog, database, table, given, in_same_words)
        for struct in given:
            if struct.sd is not None:
                check_storage(struct.sd, f"partition {struct.values}")
        found = [partition_of(struct) for struct in _with_columns(given, columns)]
        return catalog.partition_changes.add(database, table, found, if_not_exists)

    def add_to_first(given: Sequence[Any]) -> tuple[Table, list[Partition]]:
        """All go to the table of the first."""
        return add(database_name(given[0].dbName, given[0].catName), fold(given[0].tableName), given)

    def add_partition(call: Call, struct: Any, context: Any = None) -> Any:
        owner, (added,) = add_to_first([struct])
        return structs(owner)(added)

    def add_partitions(call: Call, given: Sequence[Any] | None) -> int:
        return len(add_to_first(given)[1]) if given else 0

    def add_partitions_pspec(call: Call, specs: Sequence[Any] | None) -> int:
        if not specs:
            return 0
        database, table = database_name(specs[0].dbName, specs[0].catName), fold(specs[0].tableName)
        return len(add(database, table, list(partitions_in(specs)), in_same_words=False)[1])

    def add_partitions_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        owner, added = add(
            database, request.tblName, request.parts, bool(request.ifNotExists), request.partitionColSchema
        )
        result = ttypes.AddPartitionsResult(isStatsCompliant=False)
        if request.needResult is not False:  # Hive's default is true
            result.partitions = list(map(structs(owner, request), added))
            if request.skipColumnSchemaForPartition:
                result.partitionColSchema = table_columns(owner)
        return result

    def append(database: str, table: str, chosen: Sequence[str] | str) -> Any:
        owner, (added,) = catalog.partition_changes.append(database, table, chosen)
        return structs(owner)(added)

    def append_partition(call: Call, database: str, table: str, values: Sequence[str], context: Any = None) -> Any:
        return append(database_name(database), table, values or [])

    def append_partition_by_name(call: Call, database: str, table: str, name: str, context: Any = None) -> Any:
        return append(database_name(database), table, name or "")

    def append_partition_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catalogName)
        return append(database, request.tableName, request.partVals or [] if request.name is None else request.name)

    return {
        "add_partition": add_partition,
        "add_partition_with_environment_context": add_partition,
        "add_partitions": add_partitions,
        "add_partitions_pspec": add_partitions_pspec,
        "add_partitions_req": add_partitions_req,
        "append_partition": append_partition,
        "append_partition_with_environment_context": append_partition,
        "append_partition_by_name": append_partition_by_name,
        "append_partition_by_name_with_environment_context": append_partition_by_name,
        "append_partition_req": append_partition_req,
    }


def _altering(catalog: CatalogService) -> dict[str, Handler]:
    def alter(database: str, table: str, given: Sequence[Any], context: Any, *write: Any) -> None:
        upkeep = upkeep_of(context.properties if context is not None else None, *write)
        changes = catalog.partition_changes
        _check_owner(catalog, database, table, given)
        _declared(lambda: changes.alter(database, table, [partition_of(struct) for struct in given], upkeep))

    def alter_partition(call: Call, database: str, table: str, struct: Any, context: Any = None) -> None:
        alter(database_name(database), table, [struct], context)

    def alter_partitions(
        call: Call, database: str, table: str, given: Sequence[Any] | None, context: Any = None
    ) -> None:
        alter(database_name(database), table, given or [], context)

    def alter_partitions_req(call: Call, request: Any) -> Any:
        given = _with_columns(request.partitions, request.partitionColSchema)
        if request.writeId is not None and request.writeId > 0:
            for struct in given:
                struct.writeId = request.writeId
        write = (request.writeId, request.validWriteIdList)
        alter(
            database_name(request.dbName, request.catName), request.tableName, given, request.environmentContext, *write
        )
        return ttypes.AlterPartitionsResponse()

    return {
        "alter_partition": alter_partition,
        "alter_partition_with_environment_context": alter_partition,
        "alter_partitions": alter_partitions,
        "alter_partitions_with_environment_context": alter_partitions,
        "alter_partitions_req": alter_partitions_req,
    }


def _moving(catalog: CatalogService) -> dict[str, Handler]:
    moves = catalog.partition_moves

    def rename_partition(call: Call, database: str, table: str, values: Sequence[str] | None, struct: Any) -> None:
        name = database_name(database)
        _check_owner(catalog, name, table, [struct])
        _declared(lambda: moves.rename(name, table, values or [], partition_of(struct)))

    def rename_partition_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        _check_owner(catalog, database, request.tableName, [request.newPart])
        _declared(
            lambda: moves.rename(
                database, request.tableName, request.partVals, partition_of(request.newPart), bool(request.clonePart)
            )
        )
        return ttypes.RenamePartitionResponse()

    def exchange_partitions(
        call: Call,
        spec: Mapping[str, str] | None,
        source_database: str,
        source: str,
        target_database: str,
        target: str,
    ) -> list[Any]:
        target_place = (database_name(target_database), target or "")
        moved = moves.exchange(spec or {}, (database_name(source_database), source or ""), target_place)
        return list(map(structs(catalog.partitions.owner(*target_place)), moved))

    def exchange_partition(call: Call, *arguments: Any) -> Any:
        """Java answers with an empty partition, however many there were, and its clients know no other answer."""
        exchange_partitions(call, *arguments)
        return ttypes.Partition()

    return {
        "rename_partition": rename_partition,
        "rename_partition_req": rename_partition_req,
        "exchange_partition": exchange_partition,
        "exchange_partitions": exchange_partitions,
    }


def _dropping(catalog: CatalogService) -> dict[str, Handler]:
    drops = catalog.partition_drops

    def drop(database: str, table: str, chosen: Sequence[str] | str, delete_data: bool | None, context: Any) -> bool:
        drops.one(database, table, chosen, DropRequest.of_context(bool(delete_data), properties_of(context)))
        return True

    def drop_partition(
        call: Call, database: str, table: str, values: Sequence[str], delete_data: bool | None, context: Any = None
    ) -> bool:
        return drop(database_name(database), table, values or [], delete_data, context)

    def drop_partition_by_name(
        call: Call, database: str, table: str, name: str, delete_data: bool | None, context: Any = None
    ) -> bool:
        return drop(database_name(database), table, name or "", delete_data, context)

    def drop_partition_req(call: Call, request: Any) -> bool:
        chosen = request.partVals or [] if request.partName is None else request.partName
        database = database_name(request.dbName, request.catName)
        return drop(database, request.tblName, chosen, request.deleteData, request.environmentContext)

    def drop_partitions_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        owner = catalog.partitions.owner(database, request.tblName)
        how = DropRequest.of_context(bool(request.deleteData), properties_of(request.environmentContext))
        if_exists = request.ifExists is not False  # Hive's default is true
        if request.parts.names is not None:
            names = [_normal_name(owner, name) for name in request.parts.names]
            dropped = drops.named(database, request.tblName, names, how, if_exists)
        else:
            expressions = [item.expr for item in request.parts.exprs or []]
            dropped = drops.chosen(database, request.tblName, expressions, how, if_exists)
        result = ttypes.DropPartitionsResult()
        if request.needResult is not False:  # and here
            result.partitions = list(map(structs(owner, request), dropped))
        return result

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
        return values_of_name(name) if name else []

    def to_spec(call: Call, name: str) -> dict[str, str]:
        return dict(spec_of_name(name)) if name else {}

    def has_valid_characters(call: Call, values: Sequence[str], throw: bool | None) -> bool:
        invalid = catalog.partitions.first_invalid(partition_values(values or []))
        if invalid is not None and throw:
            raise MetaError(f"partition value '{invalid}' does not match the server's whitelist")
        return invalid is None

    return {
        "partition_name_to_vals": to_values,
        "partition_name_to_spec": to_spec,
        "partition_name_has_valid_characters": has_valid_characters,
    }


def _check_owner(
    catalog: CatalogService, database: str, table: str, given: Sequence[Any], in_same_words: bool = False
) -> None:
    """Raise MetaError for a partition that does not name the table that the request is about, if that is there.

    As Hive wants it, those that are added must all name it `in_same_words`.
    """
    target = fold(database), fold(table)
    is_alike = not in_same_words or len({(struct.dbName, struct.tableName) for struct in given}) <= 1
    for struct in given:
        own = None
        if struct.dbName is not None and struct.tableName is not None:
            own = database_name(struct.dbName, struct.catName or split_key(database)[0]), fold(struct.tableName)
        if not (is_alike and own == target) and catalog.tables.find(*target) is not None:
            raise MetaError(f"Partition does not belong to target table {'.'.join(target)}: {struct.values} of {own}")


def _with_columns(given: Sequence[Any], columns: Any) -> Sequence[Any]:
    """Partition structs with the columns that were sent once for all."""
    if columns is not None:
        for struct in given:
            if struct.sd is not None and not struct.sd.cols:
                struct.sd.cols = columns
    return given


def _normal_name(owner: Table, name: str) -> str:
    """The name as it is stored, whatever the case of its keys. Raises MetaError if it is not of the table's keys."""
    return name_of_values([key.name for key in owner.partition_keys], values_of_name(name))


def _declared(change: Callable[[], None]) -> None:
    try:
        change()
    except InvalidObjectError as error:  # none of the alter and rename methods declares it
        raise InvalidOperationError(str(error)) from None
