"""The file of an export as a source, read forwards once: memory is needed for a batch of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from metastore.catalog.models import CatalogInfo, DatabaseInfo, Partition, Table
from metastore.transfer import file_format
from metastore.transfer.models import PARTITIONS_PER_BATCH, Entry, Selection, SourceTable, TableWrites, TxnState

T = TypeVar("T")


class FileSource:
    """See `Source`. Errors are those of `file_format.read`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = _Lines(path)

    @property
    def name(self) -> str:
        return f"file:{self._path.resolve()}"

    @property
    def identity(self) -> str:
        return self.name

    def txns(self) -> TxnState:
        return self._lines.next(file_format.TRANSACTIONS, lambda one: TxnState(one["high_water_mark"])) or TxnState(0)

    def catalogs(self) -> Iterator[CatalogInfo]:
        while (catalog := self._lines.next(file_format.CATALOG, lambda one: CatalogInfo(**one["value"]))) is not None:
            yield catalog

    def databases(self, selection: Selection) -> Iterator[DatabaseInfo]:
        while (database := self._lines.next(file_format.DATABASE, _database_of)) is not None:
            if selection.has_database(database.name):
                yield database

    def entries(self) -> Iterator[Entry]:
        return self._lines.entries()

    def tables(self, selection: Selection) -> Iterator[SourceTable]:
        while self._lines.kind is not None:
            table = self._lines.next(file_format.TABLE, lambda one: file_format.table_of(one["value"]))
            if table is None:  # what is left of a table that was not asked for
                self._lines.skip()
                continue
            if selection.has_table(table.database, table.name):
                writes = self._lines.next(file_format.WRITES, file_format.writes_of)
                yield _FileTable(table, writes, self._lines)

    def changed(self, known: Mapping[str, TableWrites]) -> Iterator[SourceTable]:
        return iter(())


class _FileTable:
    """See `SourceTable`."""

    def __init__(self, table: Table, writes: TableWrites | None, lines: _Lines) -> None:
        self.table = table
        self._writes = writes
        self._lines = lines

    def writes(self) -> TableWrites | None:
        return self._writes

    def entries(self) -> Iterator[Entry]:
        return self._lines.entries()

    def partitions(self) -> Iterator[Sequence[Partition]]:
        batch: list[Partition] = []
        while (partition := self._lines.next(file_format.PARTITION, _partition_of)) is not None:
            batch.append(partition)
            if len(batch) == PARTITIONS_PER_BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


class _Lines:
    """Lines with a look at the kind of the next one (`kind`, None at the end)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = file_format.read(path)
        self._number = 0
        """Lines before the next one."""
        self.kind: str | None = None
        self._fields: dict[str, Any] = {}
        self.skip()

    def skip(self) -> None:
        self._number += 1
        self.kind, self._fields = next(self._lines, (None, {}))

    def next(self, kind: str, made: Callable[[dict[str, Any]], T]) -> T | None:
        """What is made of the next line if it is of this kind, else None."""
        if self.kind != kind:
            return None
        try:
            one = made(self._fields)
        except file_format.UNFIT as error:
            raise file_format.damaged(self._path, self._number, error) from error
        self.skip()
        return one

    def entries(self) -> Iterator[Entry]:
        while (entry := self.next(file_format.ENTRY, _entry_of)) is not None:
            yield entry


def _database_of(fields: dict[str, Any]) -> DatabaseInfo:
    return file_format.database_of(fields["value"])


def _partition_of(fields: dict[str, Any]) -> Partition:
    return file_format.partition_of(fields["value"])


def _entry_of(fields: dict[str, Any]) -> Entry:
    return Entry(fields["of"], fields["key"], fields["value"])
