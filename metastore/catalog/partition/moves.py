"""Partitions that get other values, or another table; their directories go along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import InvalidOperationError, MetaError, MetastoreError, NoSuchObjectError
from metastore.catalog import changes, records
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import name_of_values, partition_values
from metastore.catalog.partition.changes import PartitionChanges, stored_rows
from metastore.catalog.partition.partitions import Partitions, prefix_conditions
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.place.places import is_below
from metastore.catalog.records import is_named, locked
from metastore.catalog.removal.removals import Removals
from metastore.catalog.schema import PARTITION
from metastore.catalog.transactions import in_transaction, rename_partition
from metastore.store.database import Database


class PartitionMoves:
    """Renames partitions and exchanges them between tables."""

    def __init__(
        self,
        db: Database,
        partitions: Partitions,
        partition_changes: PartitionChanges,
        directories: Directories,
        neighbours: Neighbours,
        removals: Removals,
    ) -> None:
        self._db = db
        self._partitions = partitions
        self._changes = partition_changes
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals

    def rename(self, database: str, table: str, values: Sequence[str], given: Partition, copy: bool = False) -> None:
        """Give a partition other values, and move its directory to their default place if it is in a managed table's.

        What transactions have on record of it goes along. Killed between directory and rows, the same rename can be
        given again. Raises InvalidOperationError if the partition is unknown, the new one exists, or the client wants
        the files copied, so that readers go on.
        """
        if copy:
            raise InvalidOperationError(
                "a partition is renamed by moving its directory, not by a copy: set hive.acid.renamepartition.makecopy"
                " to false"
            )
        try:
            owner = self._partitions.owner(database, table)
            old = self._partitions.get(owner, values)
        except (NoSuchObjectError, MetaError) as error:  # none of the rename methods declares the first
            raise InvalidOperationError(f"cannot rename: {error}") from None
        new_values = partition_values(given.values)
        name = name_of_values([key.name for key in owner.partition_keys], new_values)
        new = replace(self._changes.altered(old, given), values=new_values, name=name)
        if name != old.name and self._partitions.named(owner, [name]).all():
            raise InvalidOperationError(f"partition {name} of {owner.full_name} exists already")
        moves = (
            self._directories.enabled
            and not owner.is_external
            and old.location != owner.location
            and is_below(old.location, owner.location)
            and name != old.name
        )
        if moves:
            new = replace(new, location=self._directories.of_partition(owner, name))
            self._removals.wait_for(new.location or "")
            with self._db.engine.begin() as connection:
                self._check_move(connection, (owner, old), (owner, new))
            self._directories.move(old.location or "", new.location or "")

        def change(connection: Connection) -> None:
            stands = locked(connection, owner.database, owner.name)
            chosen = update(PARTITION).where(PARTITION.c.table_id == stands.id, PARTITION.c.name == old.name)
            if new.location != old.location:
                self._neighbours.claim(connection, [new.location or ""], stands, Own(stands.id, (old.name, new.name)))
            if connection.execute(chosen.values(records.partition_row(stands, new))).rowcount == 0:
                raise InvalidOperationError(f"partition {old.name} of {owner.full_name} is gone")
            rename_partition(connection, stands, old.name, name)
            changes.partitions_altered(connection, stands, [(old, new)])

        try:
            in_transaction(self._db, change)
        except (MetastoreError, IntegrityError) as error:
            if moves:
                self._directories.move(new.location or "", old.location or "")
            raise InvalidOperationError(f"cannot rename partition {old.name} to {name}: {error}") from error

    def exchange(self, spec: Mapping[str, str], source: tuple[str, str], target: tuple[str, str]) -> list[Partition]:
        """Move the partitions of `source` (database and table) that a partial specification names to `target`.

        All or none; their directories move along. Returns the partitions as they are in the target. Raises MetaError if
        the tables do not fit, one of them is transactional, no partition is found, one is there already, or not in its
        default place.
        """
        try:
            giving, taking = self._partitions.owner(*source), self._partitions.owner(*target)
        except NoSuchObjectError as error:
            raise MetaError(f"cannot exchange partitions: {error}") from None
        values = _leading_values(giving, spec)
        _check_exchange(giving, taking)
        moved = [(old, self._in(taking, old)) for old in self._partitions.matching(giving, values).all()]
        if not moved:
            raise MetaError(f"no partition of {giving.full_name} is found with the values {dict(spec)}")
        elsewhere = [old for old, _ in moved if old.location != self._directories.of_partition(giving, old.name)]
        if elsewhere:
            raise MetaError(
                f"partition {elsewhere[0].name} of {giving.full_name} has a place of its own, {elsewhere[0].location}:"
                " only those in their default place can be exchanged"
            )
        taken = self._partitions.named(taking, [old.name for old, _ in moved]).all()
        if taken:
            raise MetaError(f"{taking.full_name} has the partition {taken[0].name} already")
        done: list[tuple[Partition, Partition]] = []
        try:
            for old, new in moved:
                if old.location != new.location:
                    self._removals.wait_for(new.location or "")
                    with self._db.engine.begin() as connection:
                        self._check_move(connection, (giving, old), (taking, new))
                    self._directories.move(old.location or "", new.location or "")
                    done.append((old, new))
            in_transaction(self._db, lambda connection: _exchange(connection, giving, taking, values, moved))
        except Exception as error:
            for old, new in reversed(done):
                with suppress(MetastoreError):  # what cannot go back is named by the error that is on its way
                    self._directories.move(new.location or "", old.location or "")
            if isinstance(error, (MetastoreError, IntegrityError)):
                raise MetaError(f"cannot exchange partitions of {giving.full_name}: {error}") from error
            raise
        return [new for _, new in moved]

    def _check_move(self, connection: Connection, old: tuple[Table, Partition], new: tuple[Table, Partition]) -> None:
        """Whether nobody else has data in the directory that is to move, or where it goes."""
        (giving, before), (taking, after) = old, new
        what = f"move partition {before.name} of {giving.full_name}"
        own = Own(giving.id, (before.name,))
        self._neighbours.check_removable(connection, [before.location or ""], own, what)
        self._neighbours.claim(connection, [after.location or ""], taking, Own(taking.id, (before.name, after.name)))

    def _in(self, taking: Table, partition: Partition) -> Partition:
        return replace(partition, location=self._directories.of_partition(taking, partition.name))


def _leading_values(table: Table, spec: Mapping[str, str]) -> list[str]:
    """The values of a partial specification, which names the first keys only. Raises MetaError."""
    given = {key.lower(): value for key, value in spec.items() if value}
    keys = [key.name for key in table.partition_keys]
    unknown = set(map(str.lower, spec)) - set(keys)
    if unknown or not given:
        raise MetaError(f"{dict(spec)} does not specify partitions of {table.full_name} by its columns {keys}")
    leading = keys[: len(given)]
    if set(leading) != set(given):
        raise MetaError(f"{dict(spec)} leaves out a column before one it names: those of {table.full_name} are {keys}")
    return partition_values([given[key] for key in leading])


def _check_exchange(giving: Table, taking: Table) -> None:
    for table in (giving, taking):
        if table.is_transactional:
            raise MetaError(
                f"{table.full_name} is transactional: its files carry its own write ids, so partitions cannot be"
                " exchanged; insert the rows instead"
            )
    if [(column.name, column.type) for column in giving.columns + giving.partition_keys] != [
        (column.name, column.type) for column in taking.columns + taking.partition_keys
    ]:
        raise MetaError(f"{giving.full_name} and {taking.full_name} have different columns")


def _exchange(
    connection: Connection,
    giving: Table,
    taking: Table,
    values: Sequence[str],
    moved: Sequence[tuple[Partition, Partition]],
) -> None:
    owners = {}
    for table in sorted({(table.database, table.name) for table in (giving, taking)}):
        owners[table] = locked(connection, *table)
    names = [old.name for old, _ in moved]
    own = (PARTITION.c.table_id == giving.id, *prefix_conditions(giving, values), is_named(names))
    if connection.execute(delete(PARTITION).where(*own)).rowcount != len(moved):
        raise MetaError(f"partitions of {giving.full_name} were changed by another one: try again")
    rows = stored_rows(owners[taking.database, taking.name], (new for _, new in moved))
    added = connection.execute(select(func.catalog_add_partitions(taking.id, rows))).scalars().all()
    if len(added) != len(moved):
        raise MetaError(f"{taking.full_name} got such a partition meanwhile")
    changes.partitions_dropped(connection, giving, [old for old, _ in moved])
    changes.partitions_added(connection, taking, [new for _, new in moved])
