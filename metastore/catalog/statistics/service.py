"""Statistics of columns: reading them, for a snapshot if the reader has one. Changes are in `statistics_changes`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select, func, select

from hive_acid.errors import InvalidObjectError, MetaError
from hive_acid.format.snapshot import ValidWriteIdList
from metastore.catalog.accuracy import ACCURATE, Accuracy
from metastore.catalog.column_statistics import Aggregate, Analysis, Found
from metastore.catalog.config import CatalogConfig
from metastore.catalog.lookup import TableLookup
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import fold, name_of_values, values_of_name
from metastore.catalog.records import is_named
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.statistics.aggregates import Choice, aggregate
from metastore.catalog.statistics.rows import WHOLE_TABLE, compliance, compliant_targets, rows_of, statistics_of
from metastore.store.database import Database
from metastore.store.rows import Rows


class Statistics:
    """What is known of the columns of tables and partitions.

    Methods take names of columns (None: all), an engine and the snapshot of a reader, which counts for transactional
    tables alone. Such a reader is given nothing that does not describe exactly what it sees: clients answer queries
    from it without asking further (wire.md §5.14). Without a snapshot they are given what there is, and no
    promise. All raise NoSuchObjectError for an unknown table.
    """

    def __init__(self, db: Database, tables: TableLookup, config: CatalogConfig) -> None:
        self._db = db
        self._tables = tables
        self._config = config

    def of_table(
        self,
        database: str,
        table: str,
        columns: Collection[str] | None,
        engine: str,
        reader: ValidWriteIdList | None = None,
    ) -> Found:
        """Statistics of a table as a whole; no analysis if there are none."""
        owner = self._tables.get(database, table)
        with self._consistent(owner, reader) as connection:
            found = rows_of(connection, owner.id, [WHOLE_TABLE], engine, _folded(columns))
            accurate = select(TBL.c.parameters[ACCURATE].astext).where(TBL.c.id == owner.id)
            accuracy = {WHOLE_TABLE: Accuracy.parse(connection.execute(accurate).scalar())}
            return _for_reader(connection, owner, found, accuracy, reader)

    def of_partitions(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        columns: Collection[str] | None,
        engine: str,
        reader: ValidWriteIdList | None = None,
    ) -> Found:
        """Statistics of those of the named partitions that have some."""
        owner = self._tables.get(database, table)
        given = {canonical(owner, name): name for name in names}
        with self._consistent(owner, reader) as connection:
            query = select(PARTITION.c.id, PARTITION.c.name, PARTITION.c.parameters[ACCURATE].astext)
            query = query.where(PARTITION.c.table_id == owner.id, is_named(given))
            partitions = list(connection.execute(query))
            targets = [partition_id for partition_id, _, _ in partitions]
            found = rows_of(connection, owner.id, targets, engine, _folded(columns))
            accuracy = {partition_id: Accuracy.parse(text) for partition_id, _, text in partitions}
            found_names = {partition_id: given[name] for partition_id, name, _ in partitions}
            return _for_reader(connection, owner, found, accuracy, reader, found_names)

    def aggregated(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        columns: Collection[str],
        engine: str,
        reader: ValidWriteIdList | None = None,
    ) -> Aggregate:
        """Statistics of the named partitions together, in memory that does not grow with their number."""
        owner = self._tables.get(database, table)
        wanted = sorted({fold(column) for column in columns})
        chosen = list(dict.fromkeys(canonical(owner, name) for name in names))
        if not wanted or not chosen:
            return Aggregate(is_compliant=_promise(owner, reader))
        with self._consistent(owner, reader) as connection:
            choice = Choice(owner, chosen, wanted, engine)
            return aggregate(connection, choice, reader, self._config.bit_vector_partitions)

    def table_for(self, database: str, table: str, reader: ValidWriteIdList) -> tuple[Table, bool]:
        """A table, and whether its parameters say of its statistics what is true for a reader (`accuracy`)."""
        owner = self._tables.get(database, table)
        if not owner.is_transactional:
            return owner, True
        with self._consistent(owner, reader) as connection:
            parameters = connection.execute(select(TBL.c.parameters).where(TBL.c.id == owner.id)).scalar()
            if parameters != owner.parameters:  # changed since: what is judged must be what is sent
                return owner, False
            return owner, WHOLE_TABLE in compliant_targets(connection, owner.id, [WHOLE_TABLE], reader)

    def partitions_for(
        self, owner: Table, found: Rows[Partition], reader: ValidWriteIdList
    ) -> Rows[tuple[Partition, bool]]:
        """Partitions, each with whether its parameters say of its statistics what is true for a reader."""
        if not owner.is_transactional:
            return found.each(lambda partition: (partition, True))

        def flag(query: Select[Any]) -> Any:
            wanted = query.with_only_columns(PARTITION.c.id).scalar_subquery()
            compliant = compliance(owner.id, func.array(wanted), reader)
            return PARTITION.c.id.in_(select(compliant.c.target))

        return found.beside(flag)

    @contextmanager
    def _consistent(self, table: Table, reader: ValidWriteIdList | None) -> Iterator[Connection]:
        """A connection; for a reader to whom a promise is made, all that is read there is of one moment."""
        with self._db.engine.connect() as connection:
            if reader is not None and table.is_transactional:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection


def canonical(table: Table, name: str) -> str:
    """A partition's name as it is stored, whatever the case of its keys and whichever characters are escaped.

    A text that cannot be the name of one is returned as it is. Raises InvalidObjectError for what is not text.
    """
    if not isinstance(name, str) or "\0" in name:
        raise InvalidObjectError(f"{name!r:.100} is not a partition name: it must be UTF-8 text without zero bytes")
    keys = [key.name for key in table.partition_keys]
    if _PLAIN_VALUES.fullmatch(name) and [part.partition("=")[0] for part in name.split("/")] == keys:
        return name
    try:
        values = values_of_name(name)
        return name_of_values(keys, values) if len(values) == len(keys) else name
    except MetaError:
        return name


_PLAIN_VALUES = re.compile(r"[A-Za-z0-9_]+=[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_]+=[A-Za-z0-9_.-]+)*")
"""Names in which nothing is escaped: most, and the test is many times faster than taking them apart."""


def _folded(columns: Collection[str] | None) -> list[str] | None:
    return None if columns is None else [fold(column) for column in columns]


def _promise(table: Table, reader: ValidWriteIdList | None) -> bool | None:
    """What is said of no statistics, or of those of a table without transactions, where every reader sees the same."""
    return None if reader is None else not table.is_transactional


def _for_reader(
    connection: Connection,
    table: Table,
    found: Mapping[int, list[Any]],
    accuracy: Mapping[int, Accuracy],
    reader: ValidWriteIdList | None,
    names: Mapping[int, str] | None = None,
) -> Found:
    promise = _promise(table, reader)
    if reader is not None and table.is_transactional:
        compliant = compliant_targets(connection, table.id, list(accuracy), reader)
        kept = {
            target: rows
            for target, rows in found.items()
            if target in compliant and accuracy[target].columns.issuperset(row["column_name"] for row in rows)
        }
        promise = len(compliant) == len(accuracy) and len(kept) == len(found)
        found = kept
    return Found(
        [
            Analysis(
                [statistics_of(row) for row in rows],
                names[target] if names else None,
                max(row["analyzed_s"] for row in rows),
            )
            for target, rows in found.items()
        ],
        promise,
    )
