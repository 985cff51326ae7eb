"""Statistics of columns: storing, merging and deleting them, and what they make of a table's parameters.

Who stores statistics of an ACID table says with which write id and after reading which snapshot. They count as
accurate only as far as that proves it (`compliant_statistics.sql`); statistics of an ACID table that come without are
kept for planners, and no reader with a snapshot is given them. The parameters speak of Hive's own statistics, so those
of other engines change nothing there.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, func, select

from hive_acid.errors import InvalidObjectError, NoSuchObjectError
from metastore.catalog import changes
from metastore.catalog.accuracy import ACCURATE, Accuracy
from metastore.catalog.column_statistics import DEFAULT_ENGINE, Analysis, ColumnStatistics, Writer
from metastore.catalog.models import Table
from metastore.catalog.names import fold
from metastore.catalog.records import columns_of, is_named, locked
from metastore.catalog.schema import PARTITION
from metastore.catalog.statistics.merge import merged
from metastore.catalog.statistics.rows import (
    WHOLE_TABLE,
    compliant_targets,
    delete_rows,
    row_of,
    rows_of,
    statistics_of,
    store_accuracy,
    store_basis,
    store_rows,
)
from metastore.catalog.statistics.service import canonical
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database


@dataclass(frozen=True, slots=True)
class _Described:
    """A table as a whole or a partition, whose statistics change."""

    id: int
    accuracy: Accuracy
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What is to be stored of one target."""

    columns: Sequence[ColumnStatistics]
    accuracy: Accuracy
    is_merged: bool = True


class StatisticsChanges:
    """Changes of what is known of columns; every method is one database transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def store(
        self,
        database: str,
        table: str,
        analyses: Sequence[Analysis],
        engine: str,
        writer: Writer | None = None,
        merges: bool = False,
    ) -> bool:
        """Store what an engine has found out of a table as a whole or of its partitions; columns not given stay.

        With `merges` these are figures of rows that were added: they are merged into what stands of columns that are
        accurate; the others are left alone. False if nothing of a partition or table could be merged, because others
        wrote to it meanwhile. Raises NoSuchObjectError for an unknown table or partition, InvalidObjectError for an
        unknown column.
        """

        def change(connection: Connection) -> bool:
            owner = locked(connection, database, table)
            given = _by_partition(owner, analyses)
            targets = _targets(connection, owner, list(given))
            for name, analysis in given.items():
                _check_columns(owner, targets[name], analysis.columns)
            step = _Step(connection, owner, engine, writer if owner.is_transactional else None, merges)
            return step.store({targets[name]: analysis for name, analysis in given.items()})

        return in_transaction(self._db, change)

    def delete(
        self,
        database: str,
        table: str,
        partitions: Sequence[str] | None,
        columns: Collection[str] | None,
        engine: str | None,
        must_exist: bool = False,
    ) -> None:
        """Delete statistics of a table as a whole (`partitions` None) or of partitions (empty: all).

        No columns or no engine named means all. Raises NoSuchObjectError for an unknown table or partition, and with
        `must_exist` if there was nothing to delete.
        """
        wanted = frozenset(map(fold, columns)) if columns else None

        def change(connection: Connection) -> None:
            owner = locked(connection, database, table)
            names = [None] if partitions is None else [canonical(owner, name) for name in partitions]
            found = _targets(connection, owner, names) if names else _partitions(connection, owner)
            targets = list(found.values())
            gone = delete_rows(connection, owner.id, [target.id for target in targets], wanted, engine)
            if must_exist and not gone:
                what = "any column" if wanted is None else ", ".join(sorted(wanted))
                raise NoSuchObjectError(f"there are no statistics of {what} of {owner.full_name} to delete")
            if engine in (None, DEFAULT_ENGINE):
                lost = {
                    target.id: target.accuracy.without_columns(wanted or target.accuracy.columns)
                    for target in targets
                    if target.accuracy.columns
                }
                store_accuracy(connection, owner.id, lost)
            changes.statistics_deleted(connection, owner, list(found), sorted(wanted or ()))

        in_transaction(self._db, change)

    def count_source_changes(self, table_id: int, inserted: int, updated: int, deleted: int) -> None:
        """Add to the numbers of changed rows that materialised views keep of this source table.

        Not repeated when the connection is lost: what is counted twice would make a view look more outdated than it is.
        """
        self._db.call_once("count_source_changes", table_id, inserted, updated, deleted)


@dataclass(frozen=True, slots=True)
class _Step:
    """One store, inside its database transaction. `writer` is None where the table is not transactional."""

    connection: Connection
    table: Table
    engine: str
    writer: Writer | None
    merges: bool

    def store(self, given: Mapping[_Described, Analysis]) -> bool:
        outcomes = self._outcomes(given)
        now_s = int(time.time())
        store_rows(
            self.connection,
            [
                row_of(self.table.id, target.id, self.engine, given[target].analyzed_s or now_s, statistics)
                for target, outcome in outcomes.items()
                for statistics in outcome.columns
            ],
        )
        if self.engine == DEFAULT_ENGINE:
            changed = {
                target.id: outcome.accuracy
                for target, outcome in outcomes.items()
                if outcome.accuracy != target.accuracy
            }
            store_accuracy(self.connection, self.table.id, changed)
            if self.writer is not None:
                store_basis(self.connection, self.table.id, [target.id for target in outcomes], self.writer)
        told = [
            replace(given[target], columns=list(outcome.columns), analyzed_s=given[target].analyzed_s or now_s)
            for target, outcome in outcomes.items()
            if outcome.columns
        ]
        write_id = None if self.writer is None else self.writer.write_id
        changes.statistics_stored(self.connection, self.table, told, self.engine, write_id)
        return all(outcome.is_merged for outcome in outcomes.values())

    def _outcomes(self, given: Mapping[_Described, Analysis]) -> dict[_Described, _Outcome]:
        ids = [target.id for target in given]
        stored_by: dict[int, int] = {}
        written: set[int] = set()
        if self.writer is not None:
            writer = self.writer
            stored_by = compliant_targets(self.connection, self.table.id, ids, writer.snapshot, writer.write_id)
            under_way = func.targets_being_written(self.table.id, ids, writer.write_id).table_valued("target")
            written = set(self.connection.execute(select(under_way)).scalars())
        stand = rows_of(self.connection, self.table.id, ids, self.engine) if self.merges else {}
        outcomes = {}
        for target, analysis in given.items():
            standing = target.accuracy
            names = [column.column for column in analysis.columns]
            if self.writer is not None:
                if target.id not in stored_by:
                    standing = Accuracy()
                elif target.id in written and stored_by[target.id] != self.writer.write_id:
                    # What its own transaction writes is in no statistics but those given now.
                    standing = Accuracy()
            if not self.merges:
                outcomes[target] = _Outcome(analysis.columns, self._claimed(standing, names))
            elif self.writer is not None and target.id not in stored_by:
                outcomes[target] = _Outcome([], Accuracy(), is_merged=False)
            else:
                old = {row["column_name"]: statistics_of(row) for row in stand.get(target.id, [])}
                mergeable = [column for column in analysis.columns if column.column in target.accuracy.columns]
                united = [
                    merged(old[column.column], column) if column.column in old else column for column in mergeable
                ]
                names = [column.column for column in united]
                outcomes[target] = _Outcome(united, self._claimed(standing, names))
        return outcomes

    def _claimed(self, standing: Accuracy, names: Collection[str]) -> Accuracy:
        """What is accurate once the named columns are stored."""
        if self.table.is_transactional and self.writer is None:
            return standing.without_columns(names)
        return standing.with_columns(names)


def _by_partition(table: Table, analyses: Sequence[Analysis]) -> dict[str | None, Analysis]:
    """The analyses by partition; of one that comes twice, as dynamic inserts send them, the columns are merged."""
    found: dict[str | None, Analysis] = {}
    for analysis in analyses:
        name = None if analysis.partition is None else canonical(table, analysis.partition)
        columns = {column.column: column for column in found[name].columns} if name in found else {}
        for column in analysis.columns:
            columns[column.column] = merged(columns[column.column], column) if column.column in columns else column
        found[name] = replace(analysis, partition=name, columns=list(columns.values()))
    return found


def _targets(connection: Connection, table: Table, names: Sequence[str | None]) -> dict[str | None, _Described]:
    """The table (None) and the named partitions. Raises NoSuchObjectError if one does not exist."""
    found: dict[str | None, _Described] = {}
    wanted = {name for name in names if name is not None}
    if wanted:
        found.update(_partitions(connection, table, is_named(wanted)))
        missing = wanted - found.keys()
        if missing:
            raise NoSuchObjectError(f"partition {min(missing)} of {table.full_name} does not exist")
    if None in names:
        columns = frozenset(column.name for column in table.columns)
        found[None] = _Described(WHOLE_TABLE, Accuracy.of(table.parameters), columns)
    return found


def _partitions(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> dict[str, _Described]:
    """Partitions by name; their rows stay locked, in one order everywhere."""
    columns = PARTITION.c
    query = select(columns.id, columns.name, columns.columns, columns.parameters[ACCURATE].astext)
    query = query.where(columns.table_id == table.id, *conditions).order_by(columns.id).with_for_update()
    own = frozenset(column.name for column in table.columns)
    return {
        name: _Described(
            partition_id,
            Accuracy.parse(accurate),
            own if stored is None else own | {column.name for column in columns_of(stored)},
        )
        for partition_id, name, stored, accurate in connection.execute(query)
    }


def _check_columns(table: Table, target: _Described, given: Sequence[ColumnStatistics]) -> None:
    unknown = sorted({column.column for column in given} - target.columns)
    if unknown:
        raise InvalidObjectError(f"column {unknown[0]} doesn't exist in table {table.full_name}")
