"""RPCs of catalogs and databases, in their old and ``_req`` forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hive_acid.errors import InvalidObjectError, MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.catalog.names import DEFAULT_CATALOG, database_key, decoded
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.streaming import listed
from metastore.rpc.structs.catalog import catalog_of, catalog_struct, database_of, database_struct


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    return _catalogs(catalog) | _databases(catalog)


def _catalogs(catalog: CatalogService) -> dict[str, Handler]:
    catalogs = catalog.catalogs

    def create_catalog(call: Call, request: Any) -> None:
        if request.catalog is None:
            raise MetaError("the request has no catalog")
        catalogs.create(catalog_of(request.catalog))

    def alter_catalog(call: Call, request: Any) -> None:
        if request.newCat is None:
            raise MetaError("the request has no new catalog")
        catalogs.alter(_given(request.name, "catalog"), catalog_of(request.newCat))

    def drop_catalog(call: Call, request: Any) -> None:
        try:
            catalogs.drop(_given(request.name, "catalog"))
        except NoSuchObjectError:
            if not request.ifExists:
                raise

    def get_catalog(call: Call, request: Any) -> Any:
        found = catalogs.get(_given(request.name, "catalog"))
        return ttypes.GetCatalogResponse(catalog=catalog_struct(found))

    return {
        "create_catalog": create_catalog,
        "alter_catalog": alter_catalog,
        "drop_catalog": drop_catalog,
        "get_catalog": get_catalog,
        "get_catalogs": lambda call: ttypes.GetCatalogsResponse(names=catalogs.names()),
    }


def _databases(catalog: CatalogService) -> dict[str, Handler]:
    databases = catalog.databases

    def create(call: Call, struct: Any) -> None:
        wanted = database_of(struct)
        if wanted.details.get("type") == ttypes.DatabaseType.REMOTE:
            raise InvalidObjectError(
                "a REMOTE database shows what is behind a data connector, which this metastore does not have: create a"
                " NATIVE one"
            )
        databases.create(replace(wanted, owner=wanted.owner or call.user, created_s=0))  # the server's clock counts

    def get_database(call: Call, name: str | None) -> Any:
        return database_struct(databases.get(_key(name)))

    def get_database_req(call: Call, request: Any) -> Any:
        """Processor capabilities choose between two warehouse roots in Hive; here both are one."""
        return database_struct(databases.get(_key(request.name, request.catalogName)))

    def get_databases(call: Call, pattern: str | None) -> Any:
        return listed(databases.names(*decoded(pattern)))

    def get_databases_req(call: Call, request: Any) -> Any:
        found = databases.matching(*decoded(request.pattern, request.catalogName)).each(database_struct)
        return listed(found, lambda structs: ttypes.GetDatabaseObjectsResponse(databases=structs))

    def alter(call: Call, name: str | None, struct: Any) -> None:
        databases.alter(_key(name), database_of(struct))

    def drop_database(call: Call, name: str | None, delete_data: bool | None, cascade: bool | None) -> None:
        databases.drop(_key(name), DropRequest(bool(delete_data)), bool(cascade))

    def drop_database_req(call: Call, request: Any) -> None:
        key = _key(request.name, request.catalogName)
        txn_id = request.txnId or 0 if request.softDelete else 0
        with_files = request.deleteManagedDir is not False  # Hive's default is true
        try:
            databases.drop(key, DropRequest(bool(request.deleteData), txn_id=txn_id), bool(request.cascade), with_files)
        except NoSuchObjectError:
            if not request.ignoreUnknownDb:
                raise

    return {
        "create_database": create,
        "create_database_req": create,
        "get_database": get_database,
        "get_database_req": get_database_req,
        "get_databases": get_databases,
        "get_databases_req": get_databases_req,
        "get_all_databases": lambda call: listed(databases.names(DEFAULT_CATALOG)),
        "alter_database": alter,
        "alter_database_req": lambda call, request: alter(call, request.oldDbName, request.newDb),
        "drop_database": drop_database,
        "drop_database_req": drop_database_req,
    }


def _given(name: str | None, kind: str) -> str:
    if name is None:
        raise MetaError(f"the request names no {kind}")
    return name


def _key(database: str | None, catalog: str | None = None) -> str:
    """The key of a database that must be named. Raises MetaError if it is not."""
    catalog, name = decoded(database, catalog)
    return database_key(catalog, _given(name, "database"))
