"""The writes of a table as far as its directories and the metastore tell of them: what is not known stays None.

A directory's name tells the write id, its files tell rows, bytes and when they were written. Of a compaction the name
tells the transaction; who ran it, and when it was committed, stands in the metastore's queue. Which transaction any
other write was of, and when that was committed, is told by events, where the metastore records them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import HiveAcidError
from hive_acid.filesystem import files
from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import (
    METADATA_MARKER,
    VERSION_MARKER,
    Directory,
    DirectoryKind,
    is_hidden,
    is_side_file,
    parse_directory,
)
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.spark.about.files import KINDS, FileOfTable, counted, rows_in
from hive_acid.spark.read.listing import TableState
from hive_acid.wire import ttypes

APPEND, DELETE, OVERWRITE, REPLACE = "append", "delete", "overwrite", "replace"
"""Iceberg's words: rows added; rows deleted; both, or all replaced; the same rows in other files, by a compaction."""

COMMITTED, OPEN, ABORTED = "committed", "open", "aborted"

_ALLOCATED, _DROPPED, _ALTERED, _COMMITTED = "ALLOC_WRITE_ID_EVENT", "DROP_TABLE", "ALTER_TABLE", "COMMIT_TXN"
_MOST_EVENTS = 10_000
_MOST_ANSWERS = 20


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A write, or a compaction; its files are those that are there still, whether a snapshot needs them or not."""

    write_id: int
    state: str
    operation: str | None = None
    txn_id: int | None = None
    user: str | None = None
    committed_ms: int | None = None
    partitions: tuple[str, ...] = ()
    files: tuple[FileOfTable, ...] = ()
    is_there: bool = False
    """Whether its directories are there still, be it without a file."""
    is_told: bool = True
    """Whether its files tell how many rows it has added, and which."""

    @property
    def written_ms(self) -> int | None:
        """When the last of its files was written."""
        return max((file.modified_ms for file in self.files), default=0) or None

    @property
    def size(self) -> int | None:
        """Bytes of its files, None if they are gone."""
        return sum(file.size for file in self.files) if self.is_there else None

    def rows(self, *, deleted: bool) -> int | None:
        """How many rows it has added, or `deleted`; None where its files are gone, or do not tell."""
        if not self.is_there or not self.is_told or (deleted and self.operation == REPLACE):
            return None
        return rows_in(file for file in self.files if file.is_of_deletes is deleted)


@dataclass(slots=True)
class _Found:
    """What the directories of one write, or of one compaction, say."""

    files: list[FileOfTable] = field(default_factory=list)
    partitions: set[str] = field(default_factory=set)
    operations: set[str] = field(default_factory=set)
    is_told: bool = True

    def write(self, write_id: int, state: str, operation: str | None, txn_id: int | None = None) -> TableWrite:
        """The write, or the compaction, whose directories these are."""
        return TableWrite(
            write_id,
            state,
            operation,
            txn_id,
            partitions=tuple(sorted(self.partitions)),
            files=tuple(self.files),
            is_there=True,
            is_told=self.is_told,
        )


def writes_of(connection: Connection, state: TableState, txns: ValidTxnList) -> list[TableWrite]:
    """The writes of a table up to a snapshot, the newest first."""
    table = state.table
    single, compacted = _directories(state, txns)
    written = [*_writes(single, state.write_ids), *_compactions(connection, table, compacted, txns)]
    known = _transactions(connection, table)
    told = [_with_transaction(one, known) if one.operation != REPLACE else one for one in written]
    return sorted(told, key=lambda one: (-one.write_id, one.operation != REPLACE, -(one.txn_id or 0)))


# --- directories -----------------------------------------------------------------------------------


def _directories(state: TableState, txns: ValidTxnList) -> tuple[dict[int, _Found], dict[tuple[int, int], _Found]]:
    """What is there of each write, and of each compaction by its transaction and its highest write id."""
    single: dict[int, _Found] = {}
    compacted: dict[tuple[int, int], _Found] = {}
    listed = files.list_trees([partition.location for partition in state.partitions])
    for partition, entries in zip(state.partitions, listed, strict=True):
        below: dict[str, list[FileEntry]] = {}
        for entry in entries:
            top, slash, _ = entry.path.partition("/")
            if slash:
                below.setdefault(top, []).append(entry)
        for name, found in below.items():
            of = parse_directory(name)
            if of is None or of.max_write_id < 1:
                continue
            if of.visibility_txn_id and not txns.is_valid(of.visibility_txn_id):
                continue
            operation = _operation(of, partition.location, found)
            if operation is None:
                continue
            if operation == REPLACE:
                into = compacted.setdefault((of.visibility_txn_id, of.max_write_id), _Found())
            else:
                into = single.setdefault(of.max_write_id, _Found())
            into.operations.add(operation)
            into.files += _files(of, partition.name or None, partition.location, found)
            into.partitions |= {partition.name} - {""}
            if state.table.is_full_acid and of.kind is DirectoryKind.INSERT_DELTA:
                into.is_told &= any(entry.path == f"{name}/{VERSION_MARKER}" for entry in found)
    if state.table.is_orc:
        for each in (*single.values(), *compacted.values()):
            each.files = counted(each.files)
    return single, compacted


def _operation(of: Directory, location: str, found: Iterable[FileEntry]) -> str | None:
    """What has made a directory; None where its name leaves that open: a stream's, or a compaction's of Hive 3."""
    if of.visibility_txn_id:
        return REPLACE
    if of.kind is not DirectoryKind.BASE:
        if of.min_write_id != of.max_write_id:
            return None
        return DELETE if of.kind is DirectoryKind.DELETE_DELTA else APPEND
    if not any(entry.path == f"{of.name}/{METADATA_MARKER}" for entry in found):
        return OVERWRITE
    try:
        said = json.loads(files.read(files.join(location, of.name, METADATA_MARKER))).get("dataFormat")
    except (OSError, ValueError, AttributeError):
        return None
    return REPLACE if said == "compacted" else DELETE


def _files(of: Directory, partition: str | None, location: str, found: Iterable[FileEntry]) -> Iterator[FileOfTable]:
    for entry in found:
        below = entry.path.partition("/")[2]
        if not below or entry.is_directory or is_hidden(below) or is_side_file(below.rpartition("/")[2]):
            continue
        path = files.join(location, entry.path)
        yield FileOfTable(
            KINDS[of.kind],
            partition,
            of.min_write_id,
            of.max_write_id,
            None,
            path,
            None,
            entry.size,
            entry.modified_ms,
        )


def _writes(single: Mapping[int, _Found], write_ids: ValidWriteIdList) -> Iterator[TableWrite]:
    known = {*single, *write_ids.open_ids, *write_ids.aborted_ids}
    for write_id in known:
        if write_id > write_ids.high_water_mark:
            continue
        state = ABORTED if write_ids.is_aborted(write_id) else COMMITTED if write_ids.is_valid(write_id) else OPEN
        found = single.get(write_id)
        if found is None:
            yield TableWrite(write_id, state)
            continue
        operation = next(iter(found.operations)) if len(found.operations) == 1 else OVERWRITE
        yield found.write(write_id, state, operation if found.is_told else None)


# --- what the metastore says -----------------------------------------------------------------------


def _compactions(
    connection: Connection, table: Table, compacted: Mapping[tuple[int, int], _Found], txns: ValidTxnList
) -> Iterator[TableWrite]:
    """Compactions that have been committed for the snapshot: those with directories, and those in the queue."""
    request = ttypes.ShowCompactRequest(dbName=table.database, tbName=table.name)
    queued = {one.txnId: one for one in connection.call("show_compact", request).compacts if _is_of(one, table)}
    for (txn_id, write_id), found in compacted.items():
        made = found.write(write_id, COMMITTED, REPLACE, txn_id or None)
        yield _as_queued(made, queued[txn_id]) if txn_id in queued else made
    there = {txn_id for txn_id, _ in compacted}
    for txn_id, one in queued.items():
        if txn_id not in there and one.commitTime and one.hightestWriteId and txns.is_valid(txn_id):
            partitions = (one.partitionname,) if one.partitionname else ()
            yield _as_queued(TableWrite(one.hightestWriteId, COMMITTED, REPLACE, txn_id, partitions=partitions), one)


def _is_of(compaction: Any, table: Table) -> bool:
    """Whether one in the queue has a transaction and is of the table; elder servers tell of all tables."""
    return bool(compaction.txnId) and (compaction.dbname, compaction.tablename) == (table.database, table.name)


def _as_queued(made: TableWrite, one: Any) -> TableWrite:
    return replace(made, user=one.runAs or None, committed_ms=one.commitTime or None)


def _transactions(connection: Connection, table: Table) -> dict[int, tuple[int, int | None]]:
    """The transaction of each write id, and when it was committed, in ms, as far as there are events of it."""
    found: dict[int, int] = {}
    first = 0
    for event in _events(connection, [_ALLOCATED, _DROPPED, _ALTERED], after=0, table=table):
        said = json.loads(event.message)
        if event.eventType == _ALLOCATED:
            first = first or event.eventId
            found.update(zip(said["writeIdList"], said["txnIdList"], strict=True))
        elif event.eventType == _DROPPED or said.get("table") != _name_after(said):
            found.clear()  # what was of this name before was another table
    committed: dict[int, int] = {}
    if found:
        for event in _events(connection, [_COMMITTED], after=first, table=None):
            committed[int(json.loads(event.message)["txnid"])] = event.eventTime * 1000
    return {write_id: (txn_id, committed.get(txn_id)) for write_id, txn_id in found.items()}


def _name_after(said: Mapping[str, Any]) -> str | None:
    """The name that an altered table has after it."""
    try:
        name: str = json.loads(said["tableObjAfterJson"])["1"]["str"]
    except (KeyError, ValueError, TypeError):
        return None
    return name


def _events(connection: Connection, kinds: list[str], *, after: int, table: Table | None) -> Iterator[Any]:
    """Events of these kinds, in their order; none where the metastore does not tell them to us."""
    for _ in range(_MOST_ANSWERS):
        request = ttypes.NotificationEventRequest(
            lastEvent=after,
            maxEvents=_MOST_EVENTS,
            dbName=None if table is None else table.database,
            tableNames=None if table is None else [table.name],
            eventTypeList=kinds,
        )
        try:
            events = connection.call("get_next_notification", request).events
        except HiveAcidError:
            return
        for event in events:
            of_table = table is None or (event.dbName, event.tableName) == (table.database, table.name)
            if event.eventType in kinds and of_table:
                yield event
        if not events:
            return
        after = events[-1].eventId


def _with_transaction(one: TableWrite, known: Mapping[int, tuple[int, int | None]]) -> TableWrite:
    if one.write_id not in known:
        return one
    txn_id, committed_ms = known[one.write_id]
    return replace(one, txn_id=txn_id, committed_ms=committed_ms if one.state == COMMITTED else None)
