"""Writing events: in the database transaction of the change, so that both happen or neither does.

Nobody waits for anybody here: an event is put down without its number. Who reads the log numbers what has become
visible since, in the order of `place` (see ``sql/number_events.sql``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, insert

from hive_acid.format.properties import is_successor
from metastore.events.models import Event
from metastore.events.schema import EVENT
from metastore.store.database import Database

_SWITCH = "records_events"


def switch(db: Database, is_on: bool) -> None:
    """Have `record` record, or do nothing, on all connections of a database from now on.

    The switch travels with the connection, so that functions deep in the catalogue need not hand it down.
    """
    db.engine.update_execution_options(**{_SWITCH: is_on})


def is_recording(connection: Connection) -> bool:
    """Whether `record` does anything; to be asked before an event is made that is costly to make."""
    return bool(connection.get_execution_options().get(_SWITCH))


def record(connection: Connection, *events: Event) -> None:
    """Put events down, in their order; to be called after the change itself.

    After it, because the change waits for those it depends on: so an event stands behind those of what had to happen
    before. Does nothing if recording is off. Nothing is told of a table that is about to take another one's place.
    """
    told = [event for event in events if not is_successor(event.table or "")]
    if told and is_recording(connection):
        store(connection, told)


def store(connection: Connection, events: Iterable[Event]) -> list[int]:
    """Put events down whether recording is on or not; returns their places, in the order of the events."""
    statement = insert(EVENT).returning(EVENT.c.place, sort_by_parameter_order=True)
    return list(connection.execute(statement, [_row(event) for event in events]).scalars())


def _row(event: Event) -> dict[str, Any]:
    return {
        "event_type": str(event.type),
        "db": event.database,
        "tbl": event.table,
        "details": event.details,
    }
