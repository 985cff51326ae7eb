"""RPCs that read partitions: old and ``_req`` forms are brought to one question, then answered in the form asked.

Forms with a user and groups tell their privileges on each partition, if the table's property PARTITION_LEVEL_PRIVILEGE
is true, as Hive does. Lists may be long and are then sent while they are read (`streaming`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from hive_acid.errors import MetaError, NoSuchObjectError, UnknownMethodError
from hive_acid.wire import ttypes
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import database_name, name_of_values, split_key
from metastore.catalog.partition.expressions import UndecidedError
from metastore.catalog.partition.partitions import ValuesRequest
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.plain import checked_text
from metastore.rpc.handlers.catalog.privileges import privilege_set_struct
from metastore.rpc.handlers.catalog.statistics import partition_statistics
from metastore.rpc.streaming import listed
from metastore.rpc.structs.partition_specs import PartitionSpecs
from metastore.rpc.structs.partitions import projected, structs
from metastore.rpc.structs.statistics import engine_of, marked, reader_of
from metastore.store.rows import Rows

_log = logging.getLogger(__name__)

_LEVEL, _GROUPED = "PARTITION_LEVEL_PRIVILEGE", "partition.spec.grouping.enabled"
_BY_NAMES, _BY_VALUES, _BY_EXPR = range(3)  # PartitionFilterMode


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return _getting(catalog) | _listing(catalog) | _naming(catalog) | _by_expression(catalog) | _specs(catalog)


def _getting(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def get(database: str, table: str, chosen: Sequence[str] | str) -> Any:
        owner = partitions.owner(database, table)
        return structs(owner)(partitions.get(owner, chosen))

    def get_partition(call: Call, database: str, table: str, values: Sequence[str]) -> Any:
        return get(database_name(database), table, values or [])

    def get_partition_with_auth(
        call: Call, database: str, table: str, values: Sequence[str], user: str | None, groups: Sequence[str] | None
    ) -> Any:
        owner = partitions.owner(database_name(database), table)
        make = with_privileges(catalog, owner, user, groups or [], structs(owner))
        return make(partitions.get(owner, values or []))

    def get_partition_req(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        there = partitions.get(owner, request.partVals or [])
        if reader_of(request.validWriteIdList) is None:
            return ttypes.GetPartitionResponse(partition=structs(owner)(there))
        found = for_reader(catalog, owner, partitions.named(owner, [there.name]), request)
        return ttypes.GetPartitionResponse(partition=next(iter(found.short() or ()), None))

    def get_partition_by_name(call: Call, database: str, table: str, name: str) -> Any:
        return get(database_name(database), table, name or "")

    return {
        "get_partition": get_partition,
        "get_partition_with_auth": get_partition_with_auth,
        "get_partition_req": get_partition_req,
        "get_partition_by_name": get_partition_by_name,
    }


def _listing(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def answer(
        owner: Table,
        found: Rows[Partition],
        request: Any = None,
        wrap: Any = lambda found: found,
        user: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Any:
        make = structs(owner, request)
        if user is not None and groups is not None:
            make = with_privileges(catalog, owner, user, groups, make)
        return listed(for_reader(catalog, owner, found, request, make), wrap)

    def get_partitions(
        call: Call,
        database: str,
        table: str,
        limit: int | None,
        user: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Any:
        owner = partitions.owner(database_name(database), table)
        return answer(owner, partitions.matching(owner, limit=limit), user=user, groups=groups)

    def get_partitions_req(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        found = partitions.matching(owner, limit=request.maxParts)
        return answer(owner, found, request, lambda found: ttypes.PartitionsResponse(partitions=found))

    def get_partitions_ps(
        call: Call,
        database: str,
        table: str,
        values: Sequence[str] | None,
        limit: int | None,
        user: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Any:
        owner = partitions.owner(database_name(database), table)
        return answer(owner, partitions.matching(owner, _prefix(values), limit), user=user, groups=groups)

    def get_partitions_ps_with_auth_req(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        if request.partNames is not None:
            found = partitions.named(owner, request.partNames)
        else:
            values = () if request.partVals is None else _prefix(request.partVals)
            found = partitions.matching(owner, values, request.maxParts)
        return answer(
            owner,
            found,
            request,
            lambda found: ttypes.GetPartitionsPsWithAuthResponse(partitions=found),
            request.userName,
            request.groupNames,
        )

    def get_partitions_by_names(call: Call, database: str, table: str, names: Sequence[str] | None) -> Any:
        owner = partitions.owner(database_name(database), table)
        return answer(owner, partitions.named(owner, _given(names)))

    def get_partitions_by_names_req(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.db_name), request.tbl_name)
        found = partitions.named(owner, _given(request.names))
        structs_found = for_reader(catalog, owner, found, request)
        if request.get_col_stats:
            reader = reader_of(request.validWriteIdList)
            known = partition_statistics(catalog, owner, request.names or [], engine_of(request.engine), reader)
            keys = [key.name for key in owner.partition_keys]

            def with_statistics(struct: Any) -> Any:
                struct.colStats = known.get(name_of_values(keys, struct.values))
                return struct

            structs_found = structs_found.each(with_statistics)
        return listed(structs_found, lambda found: ttypes.GetPartitionsByNamesResult(partitions=found))

    def get_partitions_by_filter(call: Call, database: str, table: str, text: str | None, limit: int | None) -> Any:
        owner = partitions.owner(database_name(database), table)
        return answer(owner, partitions.filtered(owner, text or "", limit))

    def get_partitions_by_filter_req(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        return answer(owner, partitions.filtered(owner, request.filter or "", request.maxParts), request)

    def get_num_partitions_by_filter(call: Call, database: str, table: str, text: str | None) -> int:
        return partitions.count(partitions.owner(database_name(database), table), text or "")

    return {
        "get_partitions": get_partitions,
        "get_partitions_with_auth": get_partitions,
        "get_partitions_req": get_partitions_req,
        "get_partitions_ps": get_partitions_ps,
        "get_partitions_ps_with_auth": get_partitions_ps,
        "get_partitions_ps_with_auth_req": get_partitions_ps_with_auth_req,
        "get_partitions_by_names": get_partitions_by_names,
        "get_partitions_by_names_req": get_partitions_by_names_req,
        "get_partitions_by_filter": get_partitions_by_filter,
        "get_partitions_by_filter_req": get_partitions_by_filter_req,
        "get_num_partitions_by_filter": get_num_partitions_by_filter,
    }


def _naming(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def names(database: str, table: str, values: Sequence[str] | None, limit: int | None) -> Rows[str]:
        return partitions.names(partitions.owner(database, table), values or [], limit)

    def all_names(database: str, table: str, limit: int | None) -> Any:
        """Those of a table; as in Hive none of one that does not exist. Raises MetaError for an empty name."""
        if not split_key(database)[1] or not table:
            raise MetaError("the request does not name the table whose partitions it wants")
        try:
            return listed(names(database, table, None, limit))
        except NoSuchObjectError:
            return []

    def get_partition_names(call: Call, database: str, table: str, limit: int | None) -> Any:
        return all_names(database_name(database), table, limit)

    def fetch_partition_names_req(call: Call, request: Any) -> Any:
        return all_names(database_name(request.dbName, request.catName), request.tblName, request.maxParts)

    def get_partition_names_ps(
        call: Call, database: str, table: str, values: Sequence[str] | None, limit: int | None
    ) -> Any:
        return listed(names(database_name(database), table, _prefix(values), limit))

    def get_partition_names_ps_req(call: Call, request: Any) -> Any:
        database = database_name(request.dbName, request.catName)
        found = names(database, request.tblName, _prefix(request.partValues), request.maxParts)
        return listed(found, lambda found: ttypes.GetPartitionNamesPsResponse(names=found))

    def get_partition_names_req(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        order = _order(request.order)
        return listed(partitions.chosen_names(owner, _expression(request.expr), order, request.maxParts))

    def get_partition_values(call: Call, request: Any) -> Any:
        try:
            owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        except NoSuchObjectError as error:  # as Hive's answer
            raise MetaError(str(error)) from None
        found = partitions.values(
            owner,
            ValuesRequest(
                keys=[checked_text(field.name, "a partition column") for field in request.partitionKeys],
                text=request.filter or "",
                distinct=request.applyDistinct is not False,  # Hive's default is true, and so is that of the next
                ascending=request.ascending is not False,
                limit=request.maxParts,
            ),
        )
        rows = found.each(lambda row: ttypes.PartitionValuesRow(row=row))
        return listed(rows, lambda found: ttypes.PartitionValuesResponse(partitionValues=found))

    return {
        "get_partition_names": get_partition_names,
        "fetch_partition_names_req": fetch_partition_names_req,
        "get_partition_names_ps": get_partition_names_ps,
        "get_partition_names_ps_req": get_partition_names_ps_req,
        "get_partition_names_req": get_partition_names_req,
        "get_partition_values": get_partition_values,
    }


def _by_expression(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def chosen(call: Call, request: Any) -> tuple[Table, Rows[Partition]]:
        """Those that an expression chooses.

        One that is not understood is answered as if the method were not there: Hive's planner prunes by itself then,
        which is correct and costs it one list of names (wire.md §3.7).
        """
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName)
        try:
            return owner, partitions.chosen(owner, _expression(request.expr), request.maxParts)
        except UndecidedError as error:
            _log.info("%s of %s is left to the client: %s", call.method, owner.full_name, error)
            raise UnknownMethodError(str(error)) from None

    def get_partitions_by_expr(call: Call, request: Any) -> Any:
        owner, found = chosen(call, request)
        return listed(
            for_reader(catalog, owner, found, request),
            lambda found: ttypes.PartitionsByExprResult(partitions=found, hasUnknownPartitions=False),
        )

    def get_partitions_spec_by_expr(call: Call, request: Any) -> Any:
        owner, found = chosen(call, request)
        return listed(
            PartitionSpecs(owner, for_reader(catalog, owner, found, request)),
            lambda specs: ttypes.PartitionsSpecByExprResult(partitionsSpec=specs, hasUnknownPartitions=False),
        )

    return {
        "get_partitions_by_expr": get_partitions_by_expr,
        "get_partitions_spec_by_expr": get_partitions_spec_by_expr,
    }


def _specs(catalog: CatalogService) -> dict[str, Handler]:
    partitions = catalog.partitions

    def get_partitions_pspec(call: Call, database: str, table: str, limit: int | None) -> Any:
        owner = partitions.owner(database_name(database), table)
        return listed(specs_of(owner, partitions.matching(owner, limit=limit)))

    def get_part_specs_by_filter(call: Call, database: str, table: str, text: str | None, limit: int | None) -> Any:
        owner = partitions.owner(database_name(database), table)
        return listed(specs_of(owner, partitions.filtered(owner, text or "", limit)))

    def specs_of(owner: Table, found: Rows[Partition]) -> PartitionSpecs:
        """One list, unless the table has them grouped by the storage descriptors that they share; as in Hive."""
        is_grouped = (owner.parameter(_GROUPED) or "").lower() == "true"
        return PartitionSpecs(owner, found.each(structs(owner)), is_grouped)

    def get_partitions_with_specs(call: Call, request: Any) -> Any:
        owner = partitions.owner(database_name(request.dbName, request.catName), request.tblName or "")
        make = projected(owner, request.projectionSpec)
        found = for_reader(catalog, owner, specified(owner, request.filterSpec), request, make)
        return listed(PartitionSpecs(owner, found), lambda specs: ttypes.GetPartitionsResponse(partitionSpec=specs))

    def specified(owner: Table, spec: Any) -> Rows[Partition]:
        filters = list(spec.filters or []) if spec is not None else []
        mode = spec.filterMode if spec is not None else None
        if mode is None and filters:
            raise MetaError("the filters of the request need a filter mode: by names, values or expressions")
        if mode is None:
            return partitions.matching(owner)
        if mode == _BY_NAMES:
            return partitions.named(owner, filters)
        if mode == _BY_VALUES:
            return partitions.matching(owner, filters)
        if mode == _BY_EXPR:
            return partitions.filtered(owner, " and ".join(f"({text})" for text in filters))
        raise MetaError(f"there is no filter mode {mode}")

    return {
        "get_partitions_pspec": get_partitions_pspec,
        "get_part_specs_by_filter": get_part_specs_by_filter,
        "get_partitions_with_specs": get_partitions_with_specs,
    }


def for_reader(
    catalog: CatalogService,
    owner: Table,
    found: Rows[Partition],
    request: Any = None,
    make: Callable[[Partition], Any] | None = None,
) -> Rows[Any]:
    """The structs of partitions, their statistics as true as the snapshot in the request, if it has one, needs them."""
    make = make or structs(owner, request)
    reader = reader_of(getattr(request, "validWriteIdList", None))
    if reader is None:
        return found.each(make)
    return catalog.statistics.partitions_for(owner, found, reader).each(lambda pair: marked(make(pair[0]), pair[1]))


def with_privileges(
    catalog: CatalogService,
    owner: Table,
    user: str | None,
    groups: Sequence[str],
    make: Callable[[Partition], Any],
) -> Callable[[Partition], Any]:
    """Makes structs with what a user in these groups may do, if the table has privileges by partition."""
    if (owner.parameter(_LEVEL) or "").lower() != "true":
        return make
    privileges_on = catalog.privileges.on_partitions(owner.id, user, groups)

    def made(partition: Partition) -> Any:
        struct = make(partition)
        struct.privileges = privilege_set_struct(privileges_on(partition.values))
        return struct

    return made


def _prefix(values: Sequence[str] | None) -> Sequence[str]:
    """The first values of partitions, an empty one for any. Raises MetaError if there are none."""
    if not values:
        raise MetaError("the request lacks values of partitions")
    return values


def _given(names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        raise MetaError("the request lacks the names of partitions")
    return names


def _expression(data: bytes | str) -> bytes | str:
    """Some clients send a lone byte in place of no expression."""
    return b"" if len(data) <= 1 else data


def _order(text: str | None) -> list[tuple[int, bool]]:
    """Columns and directions of a text such as ``1,0:-+``: the second column downwards, then the first upwards."""
    if not text:
        return []
    columns, colon, signs = text.partition(":")
    positions = columns.split(",")
    if not colon or len(positions) != len(signs) or not all(place.strip().isdecimal() for place in positions):
        raise MetaError(f"the order '{text}' is not of the form 0,1:+-")
    if set(signs) - {"+", "-"}:
        raise MetaError(f"the order '{text}' has directions other than + and -")
    return [(int(place), sign == "+") for place, sign in zip(positions, signs, strict=True)]
