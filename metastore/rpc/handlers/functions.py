"""RPCs whose objects do not exist here (functions, constraints, materialised views, scheduled queries), read side.

They answer with what an empty metastore has, because clients ask without being asked to and fail on an error
(metastore-wire.md §6).
"""

from __future__ import annotations

from typing import Any

from hive_acid.errors import NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.catalog.names import database_name
from metastore.rpc.call import Call, Handler

_CONSTRAINTS = {
    "get_primary_keys": lambda: ttypes.PrimaryKeysResponse(primaryKeys=[]),
    "get_foreign_keys": lambda: ttypes.ForeignKeysResponse(foreignKeys=[]),
    "get_unique_constraints": lambda: ttypes.UniqueConstraintsResponse(uniqueConstraints=[]),
    "get_not_null_constraints": lambda: ttypes.NotNullConstraintsResponse(notNullConstraints=[]),
    "get_default_constraints": lambda: ttypes.DefaultConstraintsResponse(defaultConstraints=[]),
    "get_check_constraints": lambda: ttypes.CheckConstraintsResponse(checkConstraints=[]),
    "get_all_table_constraints": lambda: ttypes.AllTableConstraintsResponse(
        allTableConstraints=ttypes.SQLAllTableConstraints(
            primaryKeys=[],
            foreignKeys=[],
            uniqueConstraints=[],
            notNullConstraints=[],
            defaultConstraints=[],
            checkConstraints=[],
        )
    ),
}


def handlers() -> dict[str, Handler]:
    """RPC name to function."""

    def get_function(call: Call, database: str, name: str) -> Any:
        raise NoSuchObjectError(f"function {database_name(database)}.{name} does not exist")

    def get_functions_req(call: Call, request: Any) -> Any:
        return ttypes.GetFunctionsResponse(function_names=[], functions=[])

    found: dict[str, Handler] = {
        name: (lambda call, request, answer=answer: answer()) for name, answer in _CONSTRAINTS.items()
    }
    return found | {
        "get_function": get_function,
        "get_functions": lambda call, database, pattern: [],
        "get_functions_req": get_functions_req,
        "get_all_functions": lambda call: ttypes.GetAllFunctionsResponse(functions=[]),
        "get_all_materialized_view_objects_for_rewriting": lambda call: [],
        "get_materialized_views_for_rewriting": lambda call, database: [],
        "scheduled_query_poll": lambda call, request: ttypes.ScheduledQueryPollResponse(),
    }
