"""Events as clients get them: Hive's messages in the format ``json-0.2``, which every generation of clients reads.

A message is JSON; what it says of tables and the like is Thrift's JSON as text inside (`thrift_json`). The keys are
those of Hive 4.0.1's classes, of which older ones know a part and pass over the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from thriftpy2.thrift import TType

from hive_acid.wire import ConstraintKind, ttypes
from metastore.catalog.changes import analysis_of, model_of, partition_of, table_of
from metastore.catalog.constraint import Constraint, Parent
from metastore.catalog.function import Function
from metastore.catalog.models import CatalogInfo, DatabaseInfo, Partition, Table
from metastore.catalog.names import split_key, values_of_name
from metastore.compaction.states import CompactionType
from metastore.events.models import EventType, RecordedEvent
from metastore.rpc.encoding.thrift_json import list_json, thrift_json
from metastore.rpc.handlers.catalog.constraints import constraint_structs
from metastore.rpc.handlers.catalog.functions import function_struct
from metastore.rpc.structs.catalog import catalog_struct, database_struct, field_schemas, partition_struct, table_struct
from metastore.rpc.structs.statistics import analysis_struct

FORMAT = "json-0.2"

_FILES_JOINT = "]"
"""Stands between the files of a write (Hive's ReplChangeManager)."""


def notification(event: RecordedEvent) -> Any:
    """The NotificationEvent of an event."""
    catalog, database = (None, None) if event.database is None else split_key(event.database)
    return ttypes.NotificationEvent(
        eventId=event.id,
        eventTime=event.time_s,
        eventType=event.type,
        dbName=database,
        tableName=event.table,
        message=message(event),
        messageFormat=FORMAT,
        catName=catalog,
    )


def message(event: RecordedEvent) -> str:
    """The message of an event; one of a type that only a newer server knows says no more than what it is about."""
    particulars = _PARTICULARS.get(event.type, _nothing)
    # Empty, as in every Hive that is not told who it is.
    head = {"server": "", "servicePrincipal": "", "timestamp": event.time_s}
    if event.database is not None:
        head["db"] = split_key(event.database)[1]
    if event.table is not None:
        head["table"] = event.table
    return json.dumps(head | particulars(event), separators=(",", ":"), ensure_ascii=False)


def write_info(write: Any) -> Any:
    """The WriteEventInfo of a write notification."""
    table = table_of(write.table_object)
    info = ttypes.WriteEventInfo(
        writeId=write.write_id,
        database=split_key(write.database)[1],
        table=write.table,
        files=_FILES_JOINT.join(write.files),
        partition=write.partition,
        tableObj=thrift_json(table_struct(table)),
    )
    if write.partition_object is not None:
        info.partitionObj = _partition_text(table, write.partition_object)
    return info


def file_text(name: str, directory: str | None = None) -> str:
    """How a message names an added file: with its sub-directory, and without a copy of it, since none is made."""
    return f"{name}###{directory or ''}"


# --- the particulars of each type ---


def _nothing(event: RecordedEvent) -> dict[str, Any]:
    return {}


def _catalog(event: RecordedEvent) -> dict[str, Any]:
    return {"catalog": event.details["catalog"]["name"]}


def _altered_catalog(event: RecordedEvent) -> dict[str, Any]:
    return {
        f"catObj{when}Json": thrift_json(catalog_struct(model_of(CatalogInfo, event.details[key])))
        for when, key in (("Before", "before"), ("After", "after"))
    }


def _database(event: RecordedEvent) -> dict[str, Any]:
    return {"dbJson": thrift_json(database_struct(model_of(DatabaseInfo, event.details["database"])))}


def _altered_database(event: RecordedEvent) -> dict[str, Any]:
    return {
        f"dbObj{when}Json": thrift_json(database_struct(model_of(DatabaseInfo, event.details[key])))
        for when, key in (("Before", "before"), ("After", "after"))
    }


def _created_table(event: RecordedEvent) -> dict[str, Any]:
    return _table(event) | {"files": []}


def _table(event: RecordedEvent) -> dict[str, Any]:
    return _of_table(table_of(event.details["table"]))


def _of_table(table: Table) -> dict[str, Any]:
    struct = table_struct(table)
    return {"tableType": struct.tableType, "tableObjJson": thrift_json(struct)}


def _altered_table(event: RecordedEvent) -> dict[str, Any]:
    before, after = (table_struct(table_of(event.details[key])) for key in ("before", "after"))
    return {
        "db": before.dbName,
        "table": before.tableName,
        "tableType": after.tableType,
        "tableObjBeforeJson": thrift_json(before),
        "tableObjAfterJson": thrift_json(after),
        "isTruncateOp": _word(event.details["truncated"]),
        "writeId": _write_id(after),
    }


def _added_partitions(event: RecordedEvent) -> dict[str, Any]:
    table, partitions = _partitions(event)
    columns = field_schemas(table.columns)
    shared = {id(columns): list_json(TType.STRUCT, columns)}  # nearly all that there is to write, a thousand times
    texts = []
    for partition in partitions:
        has_own = partition.columns != table.columns
        struct = partition_struct(table.database, table.name, partition, without_columns=not has_own)
        if not has_own:
            struct.sd.cols = columns
        texts.append(thrift_json(struct, shared))
    return _of_table(table) | {
        "partitions": [_key_values(table, partition) for partition in partitions],
        "partitionListJson": texts,
        "partitionFiles": [],
    }


def _dropped_partitions(event: RecordedEvent) -> dict[str, Any]:
    table, partitions = _partitions(event)
    return _of_table(table) | {"partitions": [_key_values(table, partition) for partition in partitions]}


def _altered_partition(event: RecordedEvent) -> dict[str, Any]:
    table = table_of(event.details["table"])
    before, after = (partition_of(table, event.details[key]) for key in ("before", "after"))
    return _of_table(table) | {
        "isTruncateOp": _word(event.details["truncated"]),
        "writeId": _write_id(partition_struct(table.database, table.name, after)),
        "keyValues": _key_values(table, after),
        "partitionObjBeforeJson": _struct_text(table, before),
        "partitionObjAfterJson": _struct_text(table, after),
    }


def _created_function(event: RecordedEvent) -> dict[str, Any]:
    return {"functionObjJson": thrift_json(function_struct(model_of(Function, event.details["function"])))}


def _dropped_function(event: RecordedEvent) -> dict[str, Any]:
    return {"functionName": event.details["function"]["name"]}


def _added_constraints(key: str) -> Callable[[RecordedEvent], dict[str, Any]]:
    def particulars(event: RecordedEvent) -> dict[str, Any]:
        constraints = [_constraint(told) for told in event.details["constraints"]]
        return {key: [thrift_json(struct) for struct in constraint_structs(constraints)]}

    return particulars


def _constraint(told: Mapping[str, Any]) -> Constraint:
    parent = told["parent"]
    known = {"kind": ConstraintKind(told["kind"]), "parent": None if parent is None else model_of(Parent, parent)}
    return model_of(Constraint, {**told, **known})


def _dropped_constraint(event: RecordedEvent) -> dict[str, Any]:
    return {
        "dbName": split_key(event.database or "")[1],
        "tableName": event.table,
        "constraintName": event.details["constraint"],
    }


def _stored_statistics(event: RecordedEvent) -> dict[str, Any]:
    told = event.details
    table, analysis = table_of(told["table"]), analysis_of(told["analysis"])
    struct = analysis_struct(table.database, table.name, analysis, told["engine"], None, with_bit_vectors=False)
    found: dict[str, Any] = {
        "database": split_key(table.database)[1],
        "writeId": told["write_id"] or 0,
        "colStatsJson": thrift_json(struct),
        "parameters": {},
        "tableObjJson": thrift_json(table_struct(table)),
    }
    if analysis.partition is not None:
        found["partVals"] = values_of_name(analysis.partition)
    return found


def _deleted_statistics(event: RecordedEvent) -> dict[str, Any]:
    name = event.details["partition_name"]
    found: dict[str, Any] = {"database": split_key(event.database or "")[1], "colName": event.details["column"]}
    return found if name is None else found | {"partName": name, "partValues": values_of_name(name)}


def _insert(event: RecordedEvent) -> dict[str, Any]:
    told = event.details
    return _touched_table(event) | {"replace": _word(told["replace"]), "files": told["files"]}


def _reload(event: RecordedEvent) -> dict[str, Any]:
    return _touched_table(event) | {"refreshEvent": _word(event.details["refresh"])}


def _touched_table(event: RecordedEvent) -> dict[str, Any]:
    """A table, and the partition of it that was touched; what 2.3 reads of that are its keys and values."""
    table = table_of(event.details["table"])
    told = event.details["partition"]
    return _of_table(table) | {
        "ptnObjJson": None if told is None else _partition_text(table, told),
        "partKeyVals": {} if told is None else _key_values(table, partition_of(table, told)),
    }


def _acid_write(event: RecordedEvent) -> dict[str, Any]:
    told = event.details
    table = table_of(told["table"])
    return {
        "txnid": told["txn_id"],
        "writeId": told["write_id"],
        "database": split_key(table.database)[1],
        "partition": told["partition_name"],
        "tableObjJson": thrift_json(table_struct(table)),
        "partitionObjJson": None if told["partition"] is None else _partition_text(table, told["partition"]),
        "files": told["files"],
    }


def _opened(event: RecordedEvent) -> dict[str, Any]:
    ids = event.details["txn_ids"]
    return {"txnIds": ids, "fromTxnId": ids[0], "toTxnId": ids[-1]}


def _committed(event: RecordedEvent) -> dict[str, Any]:
    # The rest is what a consumer fills in itself, from get_all_write_event_info.
    lists = ("writeIds", "databases", "tables", "partitions", "tableObjs", "partitionObjs", "files")
    return {"txnid": event.details["txn_id"]} | dict.fromkeys(lists)


def _aborted(event: RecordedEvent) -> dict[str, Any]:
    names = [split_key(key)[1] for key in event.details["databases"]]
    return {"txnid": event.details["txn_id"], "dbsUpdated": names}


def _allocated(event: RecordedEvent) -> dict[str, Any]:
    return {
        "dbName": split_key(event.database or "")[1],
        "tableName": event.table,
        "txnIdList": event.details["txn_ids"],
        "writeIdList": event.details["write_ids"],
    }


def _compacted(event: RecordedEvent) -> dict[str, Any]:
    told = event.details
    return {
        "txnid": told["txn_id"],
        "compactionId": told["compaction_id"],
        "type": CompactionType(told["type"]).name,
        "dbname": split_key(event.database or "")[1],
        "tableName": event.table,
        "partName": told["partition_name"],
    }


_PARTICULARS: Mapping[str, Callable[[RecordedEvent], dict[str, Any]]] = {
    EventType.CREATE_CATALOG: _catalog,
    EventType.ALTER_CATALOG: _altered_catalog,
    EventType.DROP_CATALOG: _catalog,
    EventType.CREATE_DATABASE: _database,
    EventType.ALTER_DATABASE: _altered_database,
    EventType.DROP_DATABASE: _database,
    EventType.CREATE_TABLE: _created_table,
    EventType.ALTER_TABLE: _altered_table,
    EventType.DROP_TABLE: _table,
    EventType.ADD_PARTITION: _added_partitions,
    EventType.ALTER_PARTITION: _altered_partition,
    EventType.DROP_PARTITION: _dropped_partitions,
    EventType.CREATE_FUNCTION: _created_function,
    EventType.DROP_FUNCTION: _dropped_function,
    EventType.ADD_PRIMARY_KEY: _added_constraints("primaryKeyListJson"),
    EventType.ADD_FOREIGN_KEY: _added_constraints("foreignKeyListJson"),
    EventType.ADD_UNIQUE_CONSTRAINT: _added_constraints("uniqueConstraintListJson"),
    EventType.ADD_NOT_NULL_CONSTRAINT: _added_constraints("notNullConstraintListJson"),
    EventType.ADD_DEFAULT_CONSTRAINT: _added_constraints("defaultConstraintListJson"),
    EventType.ADD_CHECK_CONSTRAINT: _added_constraints("checkConstraintListJson"),
    EventType.DROP_CONSTRAINT: _dropped_constraint,
    EventType.UPDATE_TABLE_COLUMN_STAT: _stored_statistics,
    EventType.DELETE_TABLE_COLUMN_STAT: _deleted_statistics,
    EventType.UPDATE_PARTITION_COLUMN_STAT: _stored_statistics,
    EventType.DELETE_PARTITION_COLUMN_STAT: _deleted_statistics,
    EventType.INSERT: _insert,
    EventType.RELOAD: _reload,
    EventType.ACID_WRITE: _acid_write,
    EventType.OPEN_TXN: _opened,
    EventType.COMMIT_TXN: _committed,
    EventType.ABORT_TXN: _aborted,
    EventType.ALLOC_WRITE_ID: _allocated,
    EventType.COMMIT_COMPACTION: _compacted,
}


def _partitions(event: RecordedEvent) -> tuple[Table, list[Partition]]:
    table = table_of(event.details["table"])
    return table, [partition_of(table, told) for told in event.details["partitions"]]


def _key_values(table: Table, partition: Partition) -> dict[str, str]:
    return {key.name: value for key, value in zip(table.partition_keys, partition.values, strict=True)}


def _partition_text(table: Table, told: Mapping[str, Any]) -> str:
    return _struct_text(table, partition_of(table, told))


def _struct_text(table: Table, partition: Partition) -> str:
    return thrift_json(partition_struct(table.database, table.name, partition))


def _write_id(struct: Any) -> int:
    return 0 if struct.writeId is None else int(struct.writeId)


def _word(value: bool) -> str:
    return "true" if value else "false"
