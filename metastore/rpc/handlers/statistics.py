"""RPCs of statistics (transactions.md §4.3)."""

from __future__ import annotations

import json
from typing import Any

from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler

_ACCURATE = "COLUMN_STATS_ACCURATE"
"""The parameter by which tables and partitions say of which columns they have statistics, a text of JSON."""


def handlers(catalog: CatalogService) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def find_columns_with_stats(call: Call, info: Any) -> list[str]:
        """The columns whose statistics a compactor is to gather anew, in the order of the table."""
        table = catalog.table(info.dbname, info.tablename)
        if table is None:
            return []
        parameters = table.parameters
        if info.partitionname:
            parameters = catalog.partition_parameters(info.dbname, info.tablename, info.partitionname)
        known = _columns(parameters.get(_ACCURATE))
        return [name for name, _ in table.columns if name in known]

    return {"find_columns_with_stats": find_columns_with_stats}


def _columns(accurate: str | None) -> set[str]:
    """The columns named by the parameter; none if it is not there or not as Hive writes it."""
    try:
        columns = json.loads(accurate or "{}").get("COLUMN_STATS") or {}
        return {name.lower() for name, value in columns.items() if str(value).lower() == "true"}
    except (ValueError, AttributeError):
        return set()
