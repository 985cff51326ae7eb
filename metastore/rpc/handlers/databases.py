"""RPCs of catalogs and databases, in their old and ``_req`` forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hive_acid.errors import InvalidObjectError, NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.catalog.models import DatabaseInfo
from metastore.catalog.names import DEFAULT_CATALOG, database_name, split_catalog
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.catalog_structs import database_of, database_struct


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""
    databases = catalog.databases

    def get_catalog(call: Call, request: Any) -> Any:
        split_catalog(None, request.name)
        return ttypes.GetCatalogResponse(
            catalog=ttypes.Catalog(
                name=DEFAULT_CATALOG, description="The default catalog", locationUri=catalog.warehouse, createTime=0
            )
        )

    def create(call: Call, struct: Any) -> None:
        wanted = database_of(struct)
        if wanted.details.get("type") == ttypes.DatabaseType.REMOTE:
            raise InvalidObjectError("databases of remote data connectors are not supported")
        databases.create(replace(wanted, owner=wanted.owner or call.user))

    def get_database(call: Call, name: str) -> Any:
        return database_struct(databases.get(database_name(name)))

    def get_database_req(call: Call, request: Any) -> Any:
        return database_struct(databases.get(database_name(request.name, request.catalogName)))

    def get_databases(call: Call, pattern: str | None) -> list[str]:
        return databases.names(split_catalog(pattern))

    def get_databases_req(call: Call, request: Any) -> Any:
        found: list[DatabaseInfo] = databases.matching(split_catalog(request.pattern, request.catalogName))
        return ttypes.GetDatabaseObjectsResponse(databases=[database_struct(database) for database in found])

    def alter(call: Call, name: str, struct: Any) -> None:
        databases.alter(database_name(name), database_of(struct))

    def drop_database(call: Call, name: str, delete_data: bool | None, cascade: bool | None) -> None:
        databases.drop(database_name(name), bool(delete_data), bool(cascade))

    def drop_database_req(call: Call, request: Any) -> None:
        name = database_name(request.name, request.catalogName)
        try:
            databases.drop(name, bool(request.deleteData), bool(request.cascade))
        except NoSuchObjectError:
            if not request.ignoreUnknownDb:
                raise

    return {
        "get_catalogs": lambda call: ttypes.GetCatalogsResponse(names=[DEFAULT_CATALOG]),
        "get_catalog": get_catalog,
        "create_database": create,
        "create_database_req": create,
        "get_database": get_database,
        "get_database_req": get_database_req,
        "get_databases": get_databases,
        "get_databases_req": get_databases_req,
        "get_all_databases": lambda call: databases.names(),
        "alter_database": alter,
        "alter_database_req": lambda call, request: alter(call, request.oldDbName, request.newDb),
        "drop_database": drop_database,
        "drop_database_req": drop_database_req,
    }
