"""The file of an export: lines of JSON, gzip by the suffix ``.gz``. This is its description, version 1.

Each line is an object with ``kind``, the other fields by kind, in the order of the file:

- ``header``: ``format`` is "hive-acid export", ``version`` is 1.
- ``transactions``: ``high_water_mark``, the last transaction id given out.
- ``catalog``: ``value`` is the definition.
- ``database``: ``value`` is the definition: name, location, owner and so on, and in ``details`` what else a Database of
  the Thrift interface had. Databases of other catalogs than ``hive`` are named ``@catalog#database`` everywhere.
- ``entry``: a thing with ``of`` (its kind, such as function), ``key`` (its name) and ``value``; those before the first
  table belong to no table, those behind a table and its partitions to that one.
- ``table``: ``value`` is the definition; ``storage`` and ``details`` in it hold Thrift fields by their names.
- ``writes`` behind a transactional table: ``high_water_mark``, the last write id given out; ``aborted``, a list of
  [write id, transaction id, partition, operation] of what aborted transactions may have left in its files, 0 and ""
  where there is none or it is not known. All other write ids up to the mark are committed.
- ``partition`` behind its table and writes, before the table's entries: ``value``, in which ``columns`` and
  ``storage`` are left out where they are the table's.
- ``end``: ``lines``, how many stand before this one. A file without it was cut off.

Nothing in a file depends on when or where it was written: two equal metastores give equal bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from hive_acid.errors import FormatError
from metastore.catalog.models import Column, DatabaseInfo, Partition, Table
from metastore.transfer.models import AbortedWrite, TableWrites

FORMAT = "hive-acid export"
VERSION = 1

HEADER, TRANSACTIONS, CATALOG, DATABASE, ENTRY, TABLE, WRITES, PARTITION, END = (
    "header", "transactions", "catalog", "database", "entry", "table", "writes", "partition", "end",
)  # fmt: skip
_KINDS = (TRANSACTIONS, CATALOG, DATABASE, ENTRY, TABLE, WRITES, PARTITION)
UNFIT = (ValueError, KeyError, TypeError, AttributeError)
"""What comes of a line that has not the form of its kind."""
_DAMAGED = (*UNFIT, RecursionError, EOFError, gzip.BadGzipFile, zlib.error)


def database_value(database: DatabaseInfo) -> dict[str, Any]:
    return dataclasses.asdict(database)


def database_of(value: dict[str, Any]) -> DatabaseInfo:
    return DatabaseInfo(**value)


def table_value(table: Table) -> dict[str, Any]:
    value = {field.name: getattr(table, field.name) for field in dataclasses.fields(table) if field.name != "id"}
    value["columns"] = _columns_value(table.columns)
    value["partition_keys"] = _columns_value(table.partition_keys)
    return value


def table_of(value: dict[str, Any]) -> Table:
    columns, keys = _columns_of(value["columns"]), _columns_of(value["partition_keys"])
    return Table(**{**value, "columns": columns, "partition_keys": keys})


def partition_value(table: Table, partition: Partition) -> dict[str, Any]:
    value = {field.name: getattr(partition, field.name) for field in dataclasses.fields(partition)}
    own_columns = partition.columns is not None and partition.columns != table.columns
    value["columns"] = _columns_value(partition.columns or []) if own_columns else None
    value["storage"] = None if partition.storage == table.storage else partition.storage
    return {name: one for name, one in value.items() if one is not None}


def partition_of(value: dict[str, Any]) -> Partition:
    columns = value.get("columns")
    return Partition(**{**value, "columns": None if columns is None else _columns_of(columns)})


def writes_value(writes: TableWrites) -> dict[str, Any]:
    return {
        "high_water_mark": writes.high_water_mark,
        "aborted": [[one.write_id, one.txn_id, one.partition, one.operation] for one in writes.aborted],
    }


def writes_of(value: dict[str, Any]) -> TableWrites:
    return TableWrites(value["high_water_mark"], tuple(AbortedWrite(*one) for one in value["aborted"]))


class FileWriter:
    """Writes lines into a file that gets its name only when it is complete.

    Raises FormatError for what is there and is no file, as a device or a pipe: the new file would take its place.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise FormatError(f"{path} is there and is no file: give the name of a file to write to")
        self._path = path.resolve()  # what a link leads to is replaced, not the link
        self._unfinished = self._path.with_name(self._path.name + ".unfinished")
        self._lines = 0
        self._file: IO[str] | None = None
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> FileWriter:
        raw = self._closing.enter_context(self._unfinished.open("wb"))
        packed: Any = raw
        if self._path.suffix == ".gz":
            # Without name and time, so that equal exports are equal bytes.
            packed = self._closing.enter_context(contextlib.closing(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)))
        self._file = self._closing.enter_context(io.TextIOWrapper(packed, "utf-8", newline="\n"))
        self.line(HEADER, format=FORMAT, version=VERSION)
        return self

    def line(self, kind: str, **fields: Any) -> None:
        assert self._file is not None
        text = json.dumps({"kind": kind, **fields}, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        self._file.write(text + "\n")
        self._lines += 1

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            with self._closing:
                if failure is None:
                    self.line(END, lines=self._lines)
            if failure is None:
                with self._unfinished.open("rb") as file:
                    os.fsync(file.fileno())
        except BaseException:
            self._unfinished.unlink()
            raise
        if failure is None:
            self._unfinished.replace(self._path)
        else:
            self._unfinished.unlink()


def read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, fields) of each line between header and end.

    Raises FormatError for what is no export, is of a later version, or was cut off; OSError if it cannot be read.
    """
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        number = 0
        ended = False
        try:
            for number, text in enumerate(file):
                if ended:
                    raise FormatError(f"{path} goes on behind its end, in line {number + 1}")
                fields = json.loads(text)
                kind = fields.pop("kind")
                if number == 0:
                    _check_header(path, kind, fields)
                elif kind == END:
                    ended = fields["lines"] == number
                elif kind in _KINDS:
                    yield kind, fields
                else:
                    raise ValueError(f"there is no kind {kind}")
        except _DAMAGED as error:
            raise damaged(path, number, error) from error
        if not ended:
            raise FormatError(f"{path} was cut off: its last line is missing. Export again")


def damaged(path: Path, number: int, error: Exception) -> FormatError:
    """What is said of the line behind so many others."""
    words = f"{error} is missing" if isinstance(error, KeyError) else error
    return FormatError(f"{path} is not an export of hive-acid, or damaged in line {number + 1}: {words}")


def _check_header(path: Path, kind: str, fields: dict[str, Any]) -> None:
    if kind != HEADER or fields.get("format") != FORMAT:
        raise FormatError(f"{path} is not an export of hive-acid")
    if fields.get("version") != VERSION:
        raise FormatError(f"{path} is of version {fields.get('version')}, this hive-acid reads {VERSION}: upgrade it")


def _columns_value(columns: list[Column]) -> list[list[str | None]]:
    return [list(column) for column in columns]


def _columns_of(value: list[list[str]]) -> list[Column]:
    return [Column(*column) for column in value]
