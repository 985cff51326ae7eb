"""The entries of a live metastore: functions, roles, privileges, constraints and statistics, asked for by Thrift.

What a peer has no call for, it has none of. Privileges on single columns and partitions are not asked for: that would
take a call for each column and partition there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from hive_acid.errors import UnknownMethodError
from hive_acid.wire import ttypes
from metastore.catalog.column_statistics import DEFAULT_ENGINE
from metastore.catalog.models import USER, Table
from metastore.catalog.names import database_name, fold, split_key
from metastore.catalog.statistics.rows import row_of
from metastore.rpc.handlers.catalog.constraints import constraints_of
from metastore.rpc.structs.statistics import statistics_of
from metastore.transfer.entries import constraint_entry, is_built_in, statistics_entry
from metastore.transfer.models import Entry

PARTITIONS_PER_CALL = 200
"""Statistics of so many partitions come in one answer."""

_CONSTRAINTS = (
    ("get_primary_keys", ttypes.PrimaryKeysRequest, "primaryKeys", "pk_name"),
    ("get_foreign_keys", ttypes.ForeignKeysRequest, "foreignKeys", "fk_name"),
    ("get_unique_constraints", ttypes.UniqueConstraintsRequest, "uniqueConstraints", "uk_name"),
    ("get_not_null_constraints", ttypes.NotNullConstraintsRequest, "notNullConstraints", "nn_name"),
    ("get_default_constraints", ttypes.DefaultConstraintsRequest, "defaultConstraints", "dc_name"),
    ("get_check_constraints", ttypes.CheckConstraintsRequest, "checkConstraints", "dc_name"),
)


class Caller(Protocol):
    """Who calls by name. `call` raises UnknownMethodError for what the peer does not have."""

    def call(self, method: str, *args: Any) -> Any:
        """The answer."""
        ...

    def databases(self) -> list[str]:
        """All databases."""
        ...


def global_entries(peer: Caller) -> Iterator[Entry]:
    """Functions, roles and who has them, global privileges and those on databases."""
    yield from _functions(peer)
    roles = sorted(_listed(peer, None, "get_role_names"))
    yield from (Entry("role", name, {"name": name}) for name in roles if not is_built_in("role", {"name": name}))
    for name in roles:
        request = ttypes.GetPrincipalsInRoleRequest(roleName=name)
        for grant in _listed(peer, "principalGrants", "get_principals_in_role", request):
            yield _role_grant(grant)
    yield from _privileges(peer, ttypes.HiveObjectType.GLOBAL, None, None)
    for database in peer.databases():
        yield from _privileges(peer, ttypes.HiveObjectType.DATABASE, database, None)


def table_entries(peer: Caller, table: Table, names: Callable[[], Sequence[list[str]]]) -> Iterator[Entry]:
    """Privileges, constraints and statistics of a table; `names` gives its partitions' names in batches."""
    yield from _privileges(peer, ttypes.HiveObjectType.TABLE, table.database, table.name)
    yield from _constraints(peer, table)
    if not table.is_view and table.columns:
        yield from _statistics(peer, table, names)


def _functions(peer: Caller) -> Iterator[Entry]:
    found = _listed(peer, "functions", "get_all_functions")
    for one in sorted(found, key=lambda function: (function.dbName, function.functionName)):
        database, name = database_name(one.dbName, one.catName), fold(one.functionName)
        value = {
            "database": database,
            "name": name,
            "class_name": one.className,
            "owner": one.ownerName,
            "owner_type": one.ownerType or USER,
            "type": one.functionType or ttypes.FunctionType.JAVA,
            "created_s": one.createTime or 0,
            "resources": [[resource.resourceType, resource.uri] for resource in one.resourceUris or ()],
        }
        yield Entry("function", f"{database} {name}", value)


def _role_grant(grant: Any) -> Entry:
    value = {
        "principal": grant.principalName,
        "principal_type": grant.principalType,
        "role": grant.roleName,
        "grantor": grant.grantorName,
        "grantor_type": grant.grantorPrincipalType,
        "grant_option": bool(grant.grantOption),
        "granted_s": grant.grantTime or 0,
    }
    return Entry("role_grant", f"{grant.roleName} to {grant.principalName}", value)


def _privileges(peer: Caller, kind: int, database: str | None, table: str | None) -> Iterator[Entry]:
    catalog, name = (None, None) if database is None else split_key(database)
    about = ttypes.HiveObjectRef(objectType=kind, dbName=name, objectName=table, catName=catalog)
    for one in _listed(peer, None, "list_privileges", None, None, about):
        info = one.grantInfo
        value = {
            "object_type": kind,
            "database": database if kind == ttypes.HiveObjectType.DATABASE else None,
            "column_name": None,
            "principal": one.principalName,
            "principal_type": one.principalType,
            "privilege": info.privilege,
            "grantor": info.grantor,
            "grantor_type": info.grantorType,
            "grant_option": bool(info.grantOption),
            "granted_s": info.createTime or 0,
            "authorizer": one.authorizer,
        }
        if not is_built_in("privilege", value):
            yield Entry("privilege", f"{info.privilege} to {one.principalName}", value)


def _constraints(peer: Caller, table: Table) -> Iterator[Entry]:
    catalog, database = split_key(table.database)
    lists = []
    for method, request, field, name in _CONSTRAINTS:
        if request is ttypes.ForeignKeysRequest:
            asked = request(foreign_db_name=database, foreign_tbl_name=table.name, catName=catalog)
        else:
            asked = request(db_name=database, tbl_name=table.name, catName=catalog)
        structs = _listed(peer, field, method, asked)
        places = {id(one): (str(getattr(one, name)), getattr(one, "key_seq", 0) or 0) for one in structs}
        lists.append(sorted(structs, key=lambda one: places[id(one)]))
    yield from (constraint_entry(constraint) for constraint in constraints_of(table, lists))


def _statistics(peer: Caller, table: Table, names: Callable[[], Sequence[list[str]]]) -> Iterator[Entry]:
    catalog, database = split_key(table.database)
    about = {
        "dbName": database,
        "tblName": table.name,
        "colNames": [column.name for column in table.columns],
        "catName": catalog,
        "engine": DEFAULT_ENGINE,
    }
    if not table.partition_keys:
        found = _listed(peer, "tableStats", "get_table_statistics_req", ttypes.TableStatsRequest(**about))
        yield from (_statistics_entry(struct, None) for struct in found)
        return
    for batch in names():
        for first in range(0, len(batch), PARTITIONS_PER_CALL):
            request = ttypes.PartitionsStatsRequest(partNames=batch[first : first + PARTITIONS_PER_CALL], **about)
            answer = _answer(peer, "get_partitions_statistics_req", request)
            for name, found in sorted(answer.partStats.items()) if answer else ():
                yield from (_statistics_entry(struct, name) for struct in found)


def _statistics_entry(struct: Any, partition: str | None) -> Entry:
    """When they were gathered is not told."""
    return statistics_entry(row_of(0, 0, DEFAULT_ENGINE, 0, statistics_of(struct)), partition)


def _listed(peer: Caller, field: str | None, method: str, *args: Any) -> list[Any]:
    """What a call lists, in a field of its answer or as the answer; nothing from a peer without the method."""
    answer = _answer(peer, method, *args)
    return list((answer if field is None or answer is None else getattr(answer, field)) or ())


def _answer(peer: Caller, method: str, *args: Any) -> Any:
    try:
        return peer.call(method, *args)
    except UnknownMethodError:
        return None
