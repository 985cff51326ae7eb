"""Partitions that get other values, or another table; their directories go along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from metastore.catalog.removal.moves import DirectoryMoves
from metastore.catalog.schema import PARTITION
from metastore.catalog.transactions import rename_partition


class PartitionMoves:
    """Renames partitions and exchanges them between tables."""

    def __init__(
        self,
        partitions: Partitions,
        partition_changes: PartitionChanges,
        directories: Directories,
        neighbours: Neighbours,
        moves: DirectoryMoves,
    ) -> None:
        self._partitions = partitions
        self._changes = partition_changes
        self._directories = directories
        self._neighbours = neighbours
        self._moves = moves

    def rename(self, database: str, table: str, values: Sequence[str], given: Partition, copy: bool = False) -> None:
        """Give a partition other values, and move its directory to their default place if it is in a managed table's.

        What transactions have on record of it goes along. Raises InvalidOperationError if the partition is unknown, the
        new one exists, or the client wants the files copied, so that readers go on.
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
        moved = [(old, new)] if moves else []

        def check(connection: Connection) -> None:
            locked(connection, owner.database, owner.name)
            self._check_moves(connection, owner, owner, moved)

        def change(connection: Connection) -> None:
            stands = locked(connection, owner.database, owner.name)
            chosen = update(PARTITION).where(
                PARTITION.c.table_id == stands.id, PARTITION.c.name == old.name, PARTITION.c.location == old.location
            )
            if new.location != old.location:
                self._neighbours.claim(connection, [new.location or ""], stands, Own(stands.id, (old.name, new.name)))
            if connection.execute(chosen.values(records.partition_row(stands, new))).rowcount == 0:
                raise InvalidOperationError(f"partition {old.name} of {owner.full_name} was changed by another one")
            rename_partition(connection, stands, old, name)
            changes.partitions_altered(connection, stands, [(old, new)])

        try:
            self._moves.moved(owner.full_name, _places(moved), check, change)
        except (MetastoreError, IntegrityError) as error:
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

        def check(connection: Connection) -> None:
            _both(connection, giving, taking)
            self._check_moves(connection, giving, taking, moved)

        try:
            self._moves.moved(
                giving.full_name,
                _places(moved),
                check,
                lambda connection: _exchange(connection, giving, taking, values, moved),
            )
        except (MetastoreError, IntegrityError) as error:
            raise MetaError(f"cannot exchange partitions of {giving.full_name}: {error}") from error
        return [new for _, new in moved]

    def _check_moves(
        self, connection: Connection, giving: Table, taking: Table, moved: Sequence[tuple[Partition, Partition]]
    ) -> None:
        """Whether nobody else has data in the directories that are to move, or where they go."""
        names = tuple(before.name for before, _ in moved)
        query = select(PARTITION.c.name, PARTITION.c.location).where(PARTITION.c.table_id == giving.id, is_named(names))
        if {(before.name, before.location) for before, _ in moved} != set(map(tuple, connection.execute(query))):
            raise InvalidOperationError(f"partitions of {giving.full_name} were changed by another one: try again")
        what = f"move partitions of {giving.full_name}"
        places = _places(moved)
        self._neighbours.check_removable(connection, [old for old, _ in places], Own(giving.id, names), what)
        own = Own(taking.id, (*names, *(after.name for _, after in moved)))
        self._neighbours.claim(connection, [new for _, new in places], taking, own)

    def _in(self, taking: Table, partition: Partition) -> Partition:
        return replace(partition, location=self._directories.of_partition(taking, partition.name))


def _places(moved: Sequence[tuple[Partition, Partition]]) -> list[tuple[str, str]]:
    """The directories of partitions that change their place, each with where it goes."""
    return [(old.location or "", new.location or "") for old, new in moved if old.location != new.location]


def _both(connection: Connection, giving: Table, taking: Table) -> dict[tuple[str, str], Table]:
    """Both tables, locked, by database and name."""
    names = sorted({(table.database, table.name) for table in (giving, taking)})
    return {name: locked(connection, *name) for name in names}


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
    owners = _both(connection, giving, taking)
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
