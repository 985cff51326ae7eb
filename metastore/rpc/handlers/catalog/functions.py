"""RPCs of functions that users have written: old and ``_req`` forms are brought to one call."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import InvalidObjectError, MetaError
from hive_acid.wire import ttypes
from metastore.catalog.function import Function
from metastore.catalog.names import DEFAULT_CATALOG, database_name, database_regex, split_key
from metastore.catalog.registry.functions import Functions
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.plain import to_plain


def handlers(functions: Functions) -> dict[str, Handler]:
    """RPC name to function."""

    def create_function(call: Call, struct: Any) -> None:
        functions.create(_function_of(struct))

    def alter_function(call: Call, database: str | None, name: str | None, struct: Any) -> None:
        key, name = _named(database, name)
        functions.alter(key, name, _function_of(struct))

    def drop_function(call: Call, database: str | None, name: str | None) -> None:
        functions.drop(*_named(database, name))

    def get_function(call: Call, database: str | None, name: str | None) -> Any:
        return function_struct(functions.get(*_named(database, name)))

    def get_functions(call: Call, database: str | None, pattern: str | None) -> list[str]:
        return [function.name for function in functions.matching(_database(database), pattern)]

    def get_functions_req(call: Call, request: Any) -> Any:
        found = functions.matching(database_name(request.dbName, request.catalogName), request.pattern)
        if request.returnNames is False:
            return ttypes.GetFunctionsResponse(functions=[function_struct(function) for function in found])
        return ttypes.GetFunctionsResponse(function_names=[function.name for function in found])

    def get_all_functions(call: Call) -> Any:
        found = functions.all(database_regex(DEFAULT_CATALOG, None))
        return ttypes.GetAllFunctionsResponse(functions=[function_struct(function) for function in found])

    served = (
        create_function,
        alter_function,
        drop_function,
        get_function,
        get_functions,
        get_functions_req,
        get_all_functions,
    )
    return {handler.__name__: handler for handler in served}


def _database(database: str | None) -> str:
    if database is None:
        raise MetaError("the name of the function's database is missing")
    return database_name(database)


def _named(database: str | None, name: str | None) -> tuple[str, str]:
    if name is None:
        raise MetaError("the name of the function is missing")
    return _database(database), name


def _function_of(struct: Any) -> Function:
    """A function as a client defines it. Raises MetaError for what is missing, as Hive does; a class is an object."""
    if struct is None:
        raise MetaError("the function is missing")
    plain = to_plain(struct)
    for name, words in (
        ("functionName", "the name of the function"),
        ("dbName", "the name of the function's database"),
        ("ownerType", "the type of the function's owner"),
        ("functionType", "the type of the function"),
    ):
        if plain.get(name) is None:
            raise MetaError(f"{words} is missing")
    if plain.get("className") is None:
        raise InvalidObjectError(f"the class of the function {plain['functionName']} is missing")
    return Function(
        database_name(plain["dbName"], plain.get("catName")),
        plain["functionName"],
        plain["className"],
        plain.get("ownerName"),
        plain["ownerType"],
        plain["functionType"],
        resources=[(one.get("resourceType"), one.get("uri")) for one in plain.get("resourceUris", [])],
    )


def function_struct(function: Function) -> Any:
    catalog, database = split_key(function.database)
    return ttypes.Function(
        functionName=function.name,
        dbName=database,
        className=function.class_name,
        ownerName=function.owner,
        ownerType=function.owner_type,
        createTime=function.created_s,
        functionType=function.type,
        resourceUris=[ttypes.ResourceUri(resourceType=kind, uri=uri) for kind, uri in function.resources],
        catName=catalog,
    )
