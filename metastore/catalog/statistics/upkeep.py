"""What an alteration makes of statistics, in the same database transaction.

Statistics of columns go with the column, and with its type. Of what the parameters call accurate no more stays than is
sure: on a plain table the client must have computed it just now or keep it itself, as in Hive; on an ACID table it must
say in which transaction, and no other that it has not seen may have stored statistics in the meantime.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import Connection, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB

from metastore.catalog import records
from metastore.catalog.accuracy import ACCURATE, BASIC_FIGURES, DO_NOT_UPDATE, NUM_FILES, TOTAL_SIZE, Accuracy, storable
from metastore.catalog.column_statistics import Upkeep
from metastore.catalog.models import Column, Partition, Table
from metastore.catalog.records import is_named
from metastore.catalog.schema import PARTITION
from metastore.catalog.statistics.rows import WHOLE_TABLE, delete_rows, ids, store_accuracy, store_basis
from metastore.catalog.statistics.schema import STATISTICS_BASIS


def table_altered(connection: Connection, old: Table, new: Table, cascade: bool, upkeep: Upkeep) -> Table:
    """`new`, about to be stored over the locked table `old`, with the parameters that are true then.

    With `cascade` its columns become those of all partitions.
    """
    lost = _lost(old.columns, new.columns)
    if lost:
        delete_rows(connection, old.id, [WHOLE_TABLE], lost)
    if cascade and old.partition_keys:
        _columns_lost_in_partitions(connection, old, new)
    if new.is_view:
        return new
    if new.is_transactional and not old.is_transactional:
        parameters = Accuracy().applied(new.parameters)
    else:
        is_overtaken = _overtaken(connection, new, [WHOLE_TABLE], upkeep)
        is_elsewhere = new.location != old.location and new.full_name == old.full_name  # a rename moves the files
        parameters = _true(old, new, upkeep, new.is_transactional, bool(is_overtaken), is_elsewhere, is_recounted=True)
    accuracy = Accuracy.of(parameters).without_columns(lost)
    return replace(new, parameters=accuracy.applied(parameters))


def partitions_altered(
    connection: Connection, table: Table, altered: Sequence[tuple[Partition, Partition]], upkeep: Upkeep
) -> list[tuple[Partition, Partition]]:
    """Partitions as they were and as they are about to be stored, the latter with the parameters that are true then."""
    lost = {new.name: _lost(old.columns or (), new.columns or ()) for old, new in altered}
    by_name: dict[str, int] = {}
    if upkeep.writer is not None or any(lost.values()):
        columns = PARTITION.c
        query = select(columns.name, columns.id).where(columns.table_id == table.id, is_named(lost))
        by_name = {row.name: row.id for row in connection.execute(query)}
    overtaken = _overtaken(connection, table, list(by_name.values()), upkeep)
    found = []
    for old, new in altered:
        if lost[new.name]:
            delete_rows(connection, table.id, [by_name[new.name]], lost[new.name])
        parameters = _true(
            old,
            new,
            upkeep,
            table.is_transactional,
            by_name.get(new.name) in overtaken,
            new.location != old.location,
            is_recounted=upkeep.is_computed
            or any(old.parameters.get(key) != new.parameters.get(key) for key in (NUM_FILES, TOTAL_SIZE)),
        )
        accuracy = Accuracy.of(parameters).without_columns(lost[new.name])
        found.append((old, replace(new, parameters=accuracy.applied(parameters))))
    return found


def data_removed(connection: Connection, table: Table, partitions: Collection[str] | None = None) -> None:
    """Forget the statistics of a table that was emptied, or of the named partitions and of the table as a whole."""
    columns = PARTITION.c
    query = select(columns.id).where(columns.table_id == table.id)
    if partitions is not None:
        query = query.where(is_named(partitions))
    delete_rows(connection, table.id, [WHOLE_TABLE, *connection.execute(query).scalars()])


def _true(
    old: Table | Partition,
    new: Table | Partition,
    upkeep: Upkeep,
    is_transactional: bool,
    is_overtaken: bool,
    is_elsewhere: bool,
    is_recounted: bool,
) -> dict[str, str]:
    """The parameters of `new` without what they must not claim."""
    parameters = storable(new.parameters)
    is_left_alone = upkeep.is_left_alone or new.parameters.get(DO_NOT_UPDATE, "").lower() == "true"
    was, said = Accuracy.of(old.parameters), Accuracy.of(parameters)
    if is_overtaken or is_elsewhere:
        said = Accuracy()
    elif is_transactional and upkeep.writer is None:
        same = all(old.parameters.get(key) == parameters.get(key) for key in BASIC_FIGURES)
        said = Accuracy(was.basic and said.basic and same, was.columns & said.columns)
    elif not is_transactional and not is_left_alone and is_recounted:
        said = replace(said, basic=True) if upkeep.is_computed else Accuracy()
    return said.applied(parameters)


def _overtaken(connection: Connection, table: Table, targets: Sequence[int], upkeep: Upkeep) -> set[int]:
    """Those whose statistics were stored last by a transaction that the writer cannot know; it is noted as the last."""
    writer = upkeep.writer
    if writer is None or not table.is_transactional or not targets:
        return set()
    columns = STATISTICS_BASIS.c
    target = func.coalesce(columns.partition_id, WHOLE_TABLE)
    query = select(target, columns.write_id).where(columns.table_id == table.id, target == func.any(ids(targets)))
    found = {
        target
        for target, write_id in connection.execute(query)
        if write_id not in (0, writer.write_id)
        and not writer.snapshot.is_valid(write_id)
        and not writer.snapshot.is_aborted(write_id)
    }
    store_basis(connection, table.id, targets, writer)
    return found


def _columns_lost_in_partitions(connection: Connection, old: Table, new: Table) -> None:
    """Partitions take over the columns of their table: what is known of others goes."""
    lost: dict[int, set[str]] = {}
    before, after = (cast(records.columns_json(table.columns), JSONB) for table in (old, new))
    forgotten = func.forget_other_columns(old.id, before, after).table_valued("partition_id", "column_name")
    for partition_id, name in connection.execute(select(forgotten)):
        lost.setdefault(partition_id, set()).add(name)
    accurate = PARTITION.c.parameters[ACCURATE].astext
    query = select(PARTITION.c.id, accurate).where(PARTITION.c.table_id == old.id, accurate.is_not(None))
    gone = _lost(old.columns, new.columns)
    changed = {}
    for partition_id, text in connection.execute(query):
        accuracy = Accuracy.parse(text)
        left = accuracy.without_columns(gone | lost.get(partition_id, set()))
        if left != accuracy:
            changed[partition_id] = left
    store_accuracy(connection, old.id, changed)


def _lost(before: Collection[Column], after: Collection[Column]) -> set[str]:
    """The columns that are gone, or of another type."""
    stays = {(column.name, column.type.lower()) for column in after}
    return {column.name for column in before if (column.name, column.type.lower()) not in stays}
