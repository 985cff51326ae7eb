"""What a Java client is made to do, one story per function; the same stories for all releases.

A story takes a `Walk`: a connected client and a database of its own. `STORIES` lists them all.
"""

from tests.clients.walks import acid, hive4, notifications, privileges, releases, sessions
from tests.clients.walks.catalog import (
    columns,
    constraints,
    databases,
    expressions,
    functions,
    partitions,
    statistics,
    tables,
)
from tests.clients.walks.walk import Story, Walk

__all__ = ["STORIES", "Story", "Walk"]

_AREAS = (
    sessions, databases, tables, columns, partitions, expressions, statistics, constraints, functions, privileges,
    notifications, acid, releases, hive4,
)  # fmt: skip

STORIES: dict[str, Story] = {
    f"{area.__name__.rpartition('.')[2]}-{story.__name__}": story for area in _AREAS for story in area.STORIES
}
"""By name, as ``tables-rename``."""
