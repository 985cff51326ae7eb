"""RPCs of materialised views beside those of tables, and of the scheduled queries that rebuild them."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import InvalidOperationError
from hive_acid.wire import ttypes
from metastore.catalog.definition.views import MaterializedViews
from metastore.catalog.names import database_key, database_name, fold
from metastore.compaction.materializations import Materializations
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.plain import to_plain
from metastore.rpc.structs.catalog import table_struct


def handlers(views: MaterializedViews, materializations: Materializations) -> dict[str, Handler]:
    """RPC name to function."""

    def get_all_materialized_view_objects_for_rewriting(call: Call) -> list[Any]:
        return [table_struct(view) for view in views.for_rewriting()]

    def get_materialized_views_for_rewriting(call: Call, database: str) -> list[str]:
        return views.names_for_rewriting(database_name(database))

    def update_creation_metadata(call: Call, catalog: str | None, database: str, name: str, metadata: Any) -> None:
        if metadata is None:
            raise InvalidOperationError(f"the creation metadata of {database}.{name} is missing")
        views.update_creation_metadata(database_name(database, catalog), name, to_plain(metadata))

    def get_materialization_invalidation_info(call: Call, metadata: Any, transactions: str | None) -> Any:
        # What the caller's snapshot does not see yet counts too: a view made anew in vain is right all the same.
        if metadata is None:
            raise InvalidOperationError("the creation metadata of the view is missing")
        tables = [_table_key(name) for name in metadata.tablesUsed]
        changes = materializations.source_changes(tables, metadata.validTxnList)
        return ttypes.Materialization(
            sourceTablesUpdateDeleteModified=changes.updated, sourceTablesCompacted=changes.compacted
        )

    def scheduled_query_poll(call: Call, request: Any) -> Any:
        return ttypes.ScheduledQueryPollResponse()  # there is none: none can be made

    served = (
        get_all_materialized_view_objects_for_rewriting,
        get_materialized_views_for_rewriting,
        update_creation_metadata,
        get_materialization_invalidation_info,
        scheduled_query_poll,
    )
    return {handler.__name__: handler for handler in served}


def _table_key(name: str) -> str:
    """``db.table`` for the name of a table, which may have its catalog before it."""
    parts = name.split(".")
    return f"{database_key(fold(parts[0]), fold(parts[1]))}.{parts[2]}" if len(parts) == 3 else name
