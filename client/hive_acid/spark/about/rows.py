"""The rows of the tables about a table, as a frame of one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.catalog.about import COLUMNS, DELETES, FILES, HISTORY, PARTITIONS, SNAPSHOTS, AboutTable
from hive_acid.catalog.references import TableReference
from hive_acid.spark.about.files import FileOfTable, files_of, rows_in
from hive_acid.spark.about.writes import COMMITTED, TableWrite, writes_of
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.transaction import Transaction

_Row = tuple[Any, ...]


def rows_about(context: Context, transaction: Transaction, about: AboutTable) -> DataFrame:
    """What the transaction sees of a table's writes, files or partitions.

    Raises NoSuchObjectError, TableChangedError, and TableNotAcidError for a plain table.
    """
    meant = TableReference(about.database, about.name, about.id or None)
    table = context.locked_for_reading(transaction, meant)
    state = context.state(transaction, table)
    return _frame(context, about.what, _ROWS[about.what](context, transaction, state))


def _history(context: Context, transaction: Transaction, state: TableState) -> list[_Row]:
    return [_written(one) for one in writes_of(context.connection, state, transaction.snapshot)]


def _written(one: TableWrite) -> _Row:
    times = _micros(one.committed_ms), _micros(one.written_ms)
    rows = one.rows(deleted=False), one.rows(deleted=True)
    number = len(one.files) if one.is_there else None
    head = one.write_id, one.txn_id, one.state, one.operation, one.user
    return *head, *times, list(one.partitions), number, *rows, one.size


def _snapshots(context: Context, transaction: Transaction, state: TableState) -> list[_Row]:
    found = writes_of(context.connection, state, transaction.snapshot)
    return [
        (_micros(one.committed_ms), one.write_id, one.operation, _summary(one))
        for one in reversed(found)
        if one.state == COMMITTED
    ]


def _summary(one: TableWrite) -> dict[str, str]:
    """What is known of a write, by Iceberg's words where it has some."""
    known: Mapping[str, object] = {
        "added-records": one.rows(deleted=False),
        "deleted-records": one.rows(deleted=True),
        "added-data-files": sum(not file.is_of_deletes for file in one.files) if one.is_there else None,
        "added-delete-files": sum(file.is_of_deletes for file in one.files) if one.is_there else None,
        "added-files-size": one.size,
        "changed-partition-count": len(one.partitions) or None,
        "txn-id": one.txn_id,
        "user": one.user,
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def _files(context: Context, transaction: Transaction, state: TableState) -> list[_Row]:
    return list(map(_file, files_of(state)))


def _deletes(context: Context, transaction: Transaction, state: TableState) -> list[_Row]:
    return [_file(file) for file in files_of(state) if file.is_of_deletes]


def _file(file: FileOfTable) -> _Row:
    ids = file.min_write_id, file.max_write_id
    return file.kind, file.partition, *ids, file.bucket, file.path, file.rows, file.size, _micros(file.modified_ms)


def _partitions(context: Context, transaction: Transaction, state: TableState) -> list[_Row]:
    found: dict[str | None, list[FileOfTable]] = {partition.name or None: [] for partition in state.partitions}
    for file in files_of(state):
        found[file.partition].append(file)
    rows = []
    for partition in sorted(state.partitions, key=lambda one: one.name):
        of = found[partition.name or None]
        data = [file for file in of if not file.is_of_deletes]
        deletes = [file for file in of if file.is_of_deletes]
        numbers = len(data), len(deletes), rows_in(data), rows_in(deletes), sum(file.size for file in of)
        written = _micros(max((file.modified_ms for file in of), default=0))
        rows.append((partition.name or None, partition.location, *numbers, written))
    return rows


_ROWS: Mapping[str, Callable[[Context, Transaction, TableState], list[_Row]]] = {
    HISTORY: _history,
    SNAPSHOTS: _snapshots,
    FILES: _files,
    PARTITIONS: _partitions,
    DELETES: _deletes,
}


def _micros(ms: int | None) -> int | None:
    return ms * 1000 if ms else None


def _frame(context: Context, what: str, rows: Sequence[_Row]) -> DataFrame:
    """Rows, of which times are microseconds: no setting says what these are."""
    columns = COLUMNS[what]
    sent = ", ".join(f"{quoted(name)} {'bigint' if kind == 'timestamp' else kind}" for name, kind in columns.items())
    frame = context.spark.createDataFrame(list(rows), sent)
    return frame.selectExpr(
        *(
            f"timestamp_micros({quoted(name)}) AS {quoted(name)}" if kind == "timestamp" else quoted(name)
            for name, kind in columns.items()
        )
    )
