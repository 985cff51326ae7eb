"""Our own database as a source, for exports: one snapshot of it, so that all of it is of one instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, text

from metastore.catalog import records
from metastore.catalog.models import CatalogInfo, DatabaseInfo, Partition, Table
from metastore.catalog.registry.schema import METASTORE_IDENTITY
from metastore.catalog.schema import CATALOG, DATABASE, PARTITION, TBL
from metastore.transfer import entries
from metastore.transfer.models import (
    PARTITIONS_PER_BATCH,
    AbortedWrite,
    Entry,
    OpenTxn,
    Selection,
    SourceTable,
    TableWrites,
    TxnState,
)

_NAME = "this metastore"
_LAST = text("SELECT last_write_id FROM write_id_counter WHERE db = :db AND tbl = :tbl")
_UNRESOLVED = text(
    """
    SELECT u.write_id, u.txn_id, u.is_aborted, coalesce(c.partition, '') AS partition,
           coalesce(c.operation, 'i') AS operation
      FROM unresolved_write_id u
      LEFT JOIN txn_component c ON c.txn_id = u.txn_id AND c.db = u.db AND c.tbl = u.tbl
     WHERE u.db = :db AND u.tbl = :tbl
    UNION ALL
    SELECT 0, c.txn_id, true, coalesce(c.partition, ''), c.operation
      FROM txn_component c JOIN txn t ON t.txn_id = c.txn_id AND t.state = 'a'
     WHERE c.db = :db AND c.tbl = :tbl AND c.write_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM unresolved_write_id u
                        WHERE u.txn_id = c.txn_id AND u.db = c.db AND u.tbl = c.tbl)
    """
)


def writes_of(connection: Connection, database: str, table: str) -> TableWrites | None:
    """The write ids of a table of ours; None if it never had any."""
    names = {"db": database, "tbl": table}
    last = connection.execute(_LAST, names).scalar()
    rows = connection.execute(_UNRESOLVED, names).all()
    if last is None and not rows:
        return None
    left: dict[bool, set[AbortedWrite]] = {True: set(), False: set()}
    for row in rows:
        left[row.is_aborted].add(AbortedWrite(row.write_id, row.txn_id, row.partition, row.operation))
    return TableWrites(last or 0, tuple(sorted(left[True])), tuple(sorted(left[False])))


class OwnSource:
    """See `Source`. `connection` is in a transaction that sees one snapshot (REPEATABLE READ)."""

    name = _NAME

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def identity(self) -> str:
        return str(self._connection.execute(select(METASTORE_IDENTITY.c.uuid)).scalar_one())

    def txns(self) -> TxnState:
        last = self._connection.execute(text("SELECT last_id FROM txn_counter")).scalar_one()
        open_txns = self._connection.execute(
            text("SELECT txn_id, user_name, host_name FROM txn WHERE state = 'o' ORDER BY txn_id")
        )
        return TxnState(last, tuple(OpenTxn(*row) for row in open_txns))

    def shared_txn_ids(self, identity: str) -> list[range]:
        """The transaction ids that mean the same at another metastore: those passed over when it was imported."""
        query = text("SELECT first_txn_id, last_txn_id FROM imported_txn_range WHERE source = :identity")
        found = self._connection.execute(query, {"identity": identity})
        return [range(row.first_txn_id, row.last_txn_id + 1) for row in found]

    def catalogs(self) -> Iterator[CatalogInfo]:
        for row in self._connection.execute(select(CATALOG).order_by(CATALOG.c.name)):
            yield records.catalog_of(tuple(row))

    def databases(self, selection: Selection) -> Iterator[DatabaseInfo]:
        for row in self._connection.execute(select(DATABASE).order_by(DATABASE.c.name)):
            if selection.has_database(row.name):
                yield records.database_of(tuple(row))

    def entries(self) -> Iterator[Entry]:
        return entries.read(self._connection, None)

    def tables(self, selection: Selection) -> Iterator[SourceTable]:
        query = select(TBL.c.id, TBL.c.database, TBL.c.name).order_by(TBL.c.database, TBL.c.name)
        chosen = [row.id for row in self._connection.execute(query) if selection.has_table(row.database, row.name)]
        for table_id in chosen:
            row = self._connection.execute(select(TBL).where(TBL.c.id == table_id)).one()
            yield OwnTable(self._connection, records.table_of(tuple(row)))

    def changed(self, known: Mapping[str, TableWrites]) -> Iterator[SourceTable]:
        """None: all of it is of one instant."""
        return iter(())


class OwnTable:
    """See `SourceTable`."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self.table = table

    def writes(self) -> TableWrites | None:
        if not self.table.is_transactional:
            return None
        return writes_of(self._connection, self.table.database, self.table.name) or TableWrites(0)

    def entries(self) -> Iterator[Entry]:
        return entries.read(self._connection, self.table)

    def partitions(self) -> Iterator[Sequence[Partition]]:
        last: Any = ""
        while True:
            query = select(PARTITION).where(PARTITION.c.table_id == self.table.id, PARTITION.c.name > last)
            rows = self._connection.execute(query.order_by(PARTITION.c.name).limit(PARTITIONS_PER_BATCH)).mappings()
            batch = [records.partition_of(self.table, dict(row)) for row in rows]
            if not batch:
                return
            yield batch
            last = batch[-1].name
