"""The file of an export as a source, read forwards once: memory is needed for a batch of partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from metastore.catalog.models import CatalogInfo, DatabaseInfo, Partition, Table
from metastore.transfer import file_format
from metastore.transfer.models import PARTITIONS_PER_BATCH, Entry, Selection, SourceTable, TableWrites, TxnState


class FileSource:
    """See `Source`. Errors are those of `file_format.read`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = _Lines(file_format.read(path))

    @property
    def name(self) -> str:
        return f"file:{self._path.resolve()}"

    @property
    def identity(self) -> str:
        return self.name

    def txns(self) -> TxnState:
        fields = self._lines.next(file_format.TRANSACTIONS)
        return TxnState(fields["high_water_mark"] if fields else 0)

    def catalogs(self) -> Iterator[CatalogInfo]:
        while (fields := self._lines.next(file_format.CATALOG)) is not None:
            yield CatalogInfo(**fields["value"])

    def databases(self, selection: Selection) -> Iterator[DatabaseInfo]:
        while (fields := self._lines.next(file_format.DATABASE)) is not None:
            database = file_format.database_of(fields["value"])
            if selection.has_database(database.name):
                yield database

    def entries(self) -> Iterator[Entry]:
        return self._lines.entries()

    def tables(self, selection: Selection) -> Iterator[SourceTable]:
        while self._lines.kind is not None:
            fields = self._lines.next(file_format.TABLE)
            if fields is None:  # what is left of a table that was not asked for
                self._lines.skip()
                continue
            table = file_format.table_of(fields["value"])
            if selection.has_table(table.database, table.name):
                writes = self._lines.next(file_format.WRITES)
                yield _FileTable(table, None if writes is None else file_format.writes_of(writes), self._lines)

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
        while (fields := self._lines.next(file_format.PARTITION)) is not None:
            batch.append(file_format.partition_of(fields["value"]))
            if len(batch) == PARTITIONS_PER_BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


class _Lines:
    """Lines with a look at the kind of the next one (`kind`, None at the end)."""

    def __init__(self, lines: Iterator[tuple[str, dict[str, Any]]]) -> None:
        self._lines = lines
        self.kind: str | None = None
        self._fields: dict[str, Any] = {}
        self.skip()

    def skip(self) -> None:
        self.kind, self._fields = next(self._lines, (None, {}))

    def next(self, kind: str) -> dict[str, Any] | None:
        """The fields of the next line if it is of this kind, else None."""
        if self.kind != kind:
            return None
        fields = self._fields
        self.skip()
        return fields

    def entries(self) -> Iterator[Entry]:
        while (fields := self.next(file_format.ENTRY)) is not None:
            yield Entry(fields["of"], fields["key"], fields["value"])
