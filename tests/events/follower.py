"""A client that changes the catalogue and follows the log, over Thrift."""

import json
from collections.abc import Callable
from typing import Any

from hive_acid.wire import ttypes
from tests.caller import Caller
from tests.catalog.conftest import column, table


class Follower(Caller):
    """A client that changes the catalogue and follows the log."""

    def current(self) -> int:
        return int(self.call("get_current_notificationEventId").eventId)

    def next(self, last: int = 0, **fields: Any) -> list[Any]:
        request = ttypes.NotificationEventRequest(lastEvent=last, **fields)
        return list(self.call("get_next_notification", request).events)

    def told(self, last: int = 0, **fields: Any) -> list[tuple[str, str | None, str | None]]:
        return [(event.eventType, event.dbName, event.tableName) for event in self.next(last, **fields)]

    def count(self, last: int, database: str, **fields: Any) -> int:
        request = ttypes.NotificationEventsCountRequest(fromEventId=last, dbName=database, **fields)
        return int(self.call("get_notification_events_count", request).eventsCount)

    def create_database(self, name: str, **fields: Any) -> None:
        self.call("create_database", ttypes.Database(name=name, parameters={}, **fields))

    def create_table(self, name: str = "t", **fields: Any) -> None:
        self.call("create_table", table(name, "db", **fields))

    def table(self, name: str) -> Any:
        return self.call("get_table_req", ttypes.GetTableRequest(dbName="db", tblName=name)).table

    def create_partitioned(self) -> None:
        self.create_table(keys=(column("ds", "string"),))


def after(client: Follower, change: Callable[[], Any]) -> list[Any]:
    """The events of a change."""
    last = client.current()
    change()
    return client.next(last)


def message(event: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.message)
    return found


def fire(client: Follower, **fields: Any) -> list[int]:
    request = ttypes.FireEventRequest(**{"successful": True, "dbName": "db", "tableName": "t"} | fields)
    return list(client.call("fire_listener_event", request).eventIds)
