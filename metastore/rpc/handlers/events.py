"""RPCs of the notification log (wire.md §4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from hive_acid.errors import InvalidInputError, MetaError
from hive_acid.wire import ttypes
from metastore.catalog.changes import plain, plain_partition
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import database_key, database_name, database_regex, decoded, fold
from metastore.catalog.service import CatalogService
from metastore.events.models import Event, EventType, Wanted, WriteNotification
from metastore.events.service import EventLog
from metastore.rpc.call import Call, Handler
from metastore.rpc.handlers.event_messages import file_text, notification, write_info

MAX_ANSWER_CHARACTERS = 16 * 1024 * 1024
"""After so much of messages an answer ends: Java's clients refuse one of 100 MiB (wire.md §2.5)."""
_ALL = "*"


def handlers(log: EventLog, catalog: CatalogService) -> dict[str, Handler]:
    """RPC name to function."""

    def get_next_notification(call: Call, request: Any) -> Any:
        """The events after one, oldest first; fewer than there are if they are many or large."""
        wanted = _wanted(request.lastEvent, request.catName, request.dbName, request.tableNames)
        types, but_types = request.eventTypeList or (), request.eventTypeSkipList or ()
        answer, size = [], 0
        for event in log.events(replace(wanted, types=types, but_types=but_types), request.maxEvents):
            answer.append(notification(event))
            size += len(answer[-1].message)
            if size > MAX_ANSWER_CHARACTERS:
                break
        return ttypes.NotificationEventResponse(events=answer)

    def get_current_notification_event_id(call: Call) -> Any:
        return ttypes.CurrentNotificationEventId(eventId=log.current_id())

    def get_notification_events_count(call: Call, request: Any) -> Any:
        wanted = _wanted(request.fromEventId, request.catName, request.dbName, request.tableNames, request.toEventId)
        return ttypes.NotificationEventsCountResponse(eventsCount=log.count(wanted, request.limit))

    def fire_listener_event(call: Call, request: Any) -> Any:
        """Events of clients that write files on their own: INSERT, and RELOAD for a refreshed table.

        Raises NoSuchObjectError for a table or partition that is not there. A failed operation (`successful` false)
        is no event.
        """
        events = _reported(catalog, request) if request.successful else []
        return ttypes.FireEventResponse(eventIds=log.report(events))

    def add_write_notification_log(call: Call, request: Any) -> Any:
        """Keep the files that a transaction has added to an ACID table, for who is told of its commit."""
        log.report_writes(*_written(catalog, request.db, request.table, [request]))
        return ttypes.WriteNotificationLogResponse()

    def add_write_notification_log_in_batch(call: Call, request: Any) -> Any:
        database = database_name(request.db, request.catalog)
        log.report_writes(*_written(catalog, database, request.table, request.requestList))
        return ttypes.WriteNotificationLogBatchResponse()

    def get_all_write_event_info(call: Call, request: Any) -> list[Any]:
        database = None if request.dbName in (None, _ALL) else database_name(request.dbName)
        table = None if request.tableName in (None, _ALL) else fold(request.tableName)
        return [write_info(write) for write in log.writes(request.txnId, database, table)]

    def cm_recycle(call: Call, request: Any) -> Any:
        """Nothing: files are not copied away for replication. Hive without its change management does the same."""
        return ttypes.CmRecycleResponse()

    return {
        "get_next_notification": get_next_notification,
        "get_current_notificationEventId": get_current_notification_event_id,
        "get_notification_events_count": get_notification_events_count,
        "fire_listener_event": fire_listener_event,
        "add_write_notification_log": add_write_notification_log,
        "add_write_notification_log_in_batch": add_write_notification_log_in_batch,
        "get_all_write_event_info": get_all_write_event_info,
        "cm_recycle": cm_recycle,
    }


def _wanted(
    after_id: int,
    catalog: str | None,
    database: str | None,
    tables: Sequence[str] | None,
    up_to_id: int | None = None,
) -> Wanted:
    if catalog is None and database in (None, _ALL):
        return Wanted(after_id, up_to_id, tables=[fold(name) for name in tables or ()])
    catalog, name = decoded(None if database == _ALL else database, catalog)
    return Wanted(
        after_id,
        up_to_id,
        databases=None if name is not None else database_regex(catalog, None),
        database=None if name is None else database_key(catalog, name),
        tables=[fold(table) for table in tables or ()],
    )


def _reported(catalog: CatalogService, request: Any) -> list[Event]:
    if not request.dbName or not request.tableName:
        raise InvalidInputError("an event needs the table that it is of: dbName and tableName")
    table = catalog.tables.get(database_name(request.dbName, request.catName), request.tableName)
    data = request.data
    if data.insertData is not None:
        return [_insert(catalog, table, data.insertData, request.partitionVals)]
    if data.insertDatas is not None:
        return [_insert(catalog, table, insert, insert.partitionVal) for insert in data.insertDatas]
    if data.refreshEvent is not None:
        # What the client sets on the table with its refresh, by which it knows its own events again.
        told = plain(table) | {"parameters": table.parameters | (request.tblParams or {})}
        each = request.batchPartitionValsForRefresh or [request.partitionVals]
        return [
            Event(
                EventType.RELOAD,
                table.database,
                table.name,
                {"table": told, "partition": _partition(catalog, table, values), "refresh": data.refreshEvent},
            )
            for values in each
        ]
    raise MetaError("the event has no data of a kind that is known here: insertData, insertDatas or refreshEvent")


def _insert(catalog: CatalogService, table: Table, insert: Any, values: Sequence[str] | None) -> Event:
    told = {
        "table": plain(table),
        "partition": _partition(catalog, table, values),
        "files": _files(insert),
        "replace": bool(insert.replace),
    }
    return Event(EventType.INSERT, table.database, table.name, told)


def _files(insert: Any) -> list[str]:
    return [file_text(*named) for named in zip_longest(insert.filesAdded or [], insert.subDirectoryList or [])]


def _partition(catalog: CatalogService, table: Table, values: Sequence[str] | None) -> dict[str, Any] | None:
    return plain_partition(table, _found(catalog, table, values)) if values else None


def _found(catalog: CatalogService, table: Table, values: Sequence[str]) -> Partition:
    return catalog.partitions.get(table, values)


def _written(
    catalog: CatalogService, database: str, table: str, requests: Sequence[Any]
) -> tuple[list[WriteNotification], list[Event]]:
    """What several requests for one table say: what to keep, and the events to tell of it."""
    owner = catalog.tables.get(database_name(database), table)
    told = plain(owner)
    writes, events = [], []
    for request in requests:
        partition = _found(catalog, owner, request.partitionVals) if request.partitionVals else None
        files = _files(request.fileInfo)
        name = "" if partition is None else partition.name
        plain_part = None if partition is None else plain_partition(owner, partition)
        writes.append(
            WriteNotification(request.txnId, request.writeId, owner.database, owner.name, name, told, plain_part, files)
        )
        details = {
            "txn_id": request.txnId,
            "write_id": request.writeId,
            "table": told,
            "partition_name": name,
            "partition": plain_part,
            "files": files,
        }
        events.append(Event(EventType.ACID_WRITE, owner.database, owner.name, details))
    return writes, events
