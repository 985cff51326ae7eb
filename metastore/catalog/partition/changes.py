"""Adding and altering partitions, any number at once, in one statement each."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import AlreadyExistsError, InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError
from metastore.catalog import changes, records
from metastore.catalog.accuracy import storable, with_statistics
from metastore.catalog.column_statistics import Upkeep
from metastore.catalog.models import LAST_DDL_TIME, Partition, Table
from metastore.catalog.names import name_of_values, partition_values, values_by_key
from metastore.catalog.partition.partitions import Partitions
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.place.places import is_below
from metastore.catalog.records import is_named, locked
from metastore.catalog.removal.removals import Removals
from metastore.catalog.rules.validation import partition_columns
from metastore.catalog.schema import PARTITION, is_missing_parent
from metastore.catalog.statistics import upkeep as statistics_upkeep
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database


class PartitionChanges:
    """New partitions, and other definitions for those there are."""

    def __init__(
        self,
        db: Database,
        partitions: Partitions,
        directories: Directories,
        neighbours: Neighbours,
        removals: Removals,
    ) -> None:
        self._db = db
        self._partitions = partitions
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals

    def add(
        self, database: str, table: str, given: Sequence[Partition], if_not_exists: bool = False
    ) -> tuple[Table, list[Partition]]:
        """Add partitions, all or none, and make their directories; returns the table and those that are new.

        Raises InvalidObjectError for an unknown table or another one's data in the place of a new one,
        AlreadyExistsError unless `if_not_exists`, MetaError for values that do not fit, a location that cannot be a
        place, or if a directory cannot be made.
        """
        try:
            owner = self._partitions.owner(database, table)
        except NoSuchObjectError as error:  # none of the add methods declares it
            raise InvalidObjectError(f"cannot add partitions: {error}") from None
        if any(partition.storage is None for partition in given) and not owner.is_view:
            raise MetaError(f"the storage descriptor of a new partition of {owner.full_name} is missing")
        return owner, self._add(owner, given, if_not_exists)

    def append(self, database: str, table: str, chosen: Sequence[str] | str) -> tuple[Table, list[Partition]]:
        """Add the partition of these values or this name, with all else as its table has it; as `add`."""
        try:
            owner = self._partitions.owner(database, table)
        except NoSuchObjectError as error:
            raise InvalidObjectError(f"cannot append a partition: {error}") from None
        if owner.is_view:
            raise MetaError(f"{owner.full_name} is a view: no partition can be appended to it")
        keys = [key.name for key in owner.partition_keys]
        values = values_by_key(keys, chosen) if isinstance(chosen, str) else list(chosen)
        return owner, self._add(owner, [Partition(values)], if_not_exists=False)

    def _add(self, owner: Table, given: Sequence[Partition], if_not_exists: bool) -> list[Partition]:
        new = {partition.name: partition for partition in self._completed(owner, given)}
        if len(new) < len(given):
            raise MetaError(f"a partition of {owner.full_name} is given twice in one request")
        existing = self._existing(owner, new)
        if existing and not if_not_exists:
            raise AlreadyExistsError(f"partition {min(existing)} of {owner.full_name} exists already")
        missing = [partition for name, partition in new.items() if name not in existing]
        return self._removals.beside_others(lambda: self._made(owner, missing, if_not_exists))

    def _made(self, owner: Table, missing: Sequence[Partition], if_not_exists: bool) -> list[Partition]:
        """Store partitions with their directories; if they cannot be stored these go again."""
        made: list[str] = []
        try:
            self._removals.wait_for(owner.location or "", below=True)
            self._neighbours.learn([owner.location, *(one.location for one in self._elsewhere(owner, missing))])
            with self._db.engine.begin() as connection:
                self._claim(connection, owner, missing)
            places = [partition.location for partition in missing if partition.location]
            for place in places:
                if not is_below(place, owner.location):
                    self._removals.wait_for(place)
            self._directories.make_all(places, made, owner.location or "")
            self._neighbours.learn(one.location for one in self._elsewhere(owner, missing))  # as of new tables
            return self._insert(owner, missing, if_not_exists)
        except Exception:
            self._removals.give_back(made, Own(owner.id, ()))
            raise

    def alter(
        self,
        database: str,
        table: str,
        given: Sequence[Partition],
        upkeep: Upkeep = Upkeep(),  # noqa: B008 - frozen
    ) -> None:
        """Replace the definitions of partitions, all or none; what is left out of one stays.

        `upkeep` is what the client says of statistics. Raises InvalidOperationError for an unknown table or partition.
        """
        stored = self._directories.stored
        given = [replace(one, location=stored(one.location)) if one.location else one for one in given]
        self._neighbours.learn(partition.location for partition in given)

        def change(connection: Connection) -> None:
            owner = locked(connection, database, table)
            self._alter(connection, owner, self._named(owner, given), upkeep)

        try:
            self._removals.beside_others(lambda: in_transaction(self._db, change))
        except (NoSuchObjectError, InvalidObjectError) as error:  # none of the alter methods declares them
            raise InvalidOperationError(f"cannot alter: {error}") from None

    def altered(self, old: Partition, given: Partition) -> Partition:
        """`old` with the definition that a client gives; what it leaves out stays."""
        parameters = dict(given.parameters)
        if parameters.get(LAST_DDL_TIME) in (None, "0"):
            parameters[LAST_DDL_TIME] = str(int(time.time()))
        location = self._directories.stored(given.location) if given.location else old.location
        self._directories.check_allowed(location, old.location)
        return replace(
            given,
            name=old.name,
            values=old.values,
            location=location,
            created_s=given.created_s or old.created_s,
            columns=partition_columns(given.columns) or old.columns,
            parameters=parameters,
            storage=given.storage if given.storage is not None else old.storage,
        )

    def _alter(self, connection: Connection, owner: Table, given: dict[str, Partition], upkeep: Upkeep) -> None:
        query = select(*records.PARTITION_COLUMNS).where(PARTITION.c.table_id == owner.id, is_named(given))
        read = records.partition_reader(owner)
        standing = {partition.name: partition for partition in map(read, connection.execute(query.with_for_update()))}
        for name in given:
            if name not in standing:
                raise NoSuchObjectError(f"partition {name} of {owner.full_name} does not exist")
        if upkeep.is_all:
            given = {
                name: replace(standing[name], parameters=with_statistics(standing[name].parameters, new.parameters))
                for name, new in given.items()
            }
        altered = [(standing[name], self.altered(standing[name], new)) for name, new in given.items()]
        altered = statistics_upkeep.partitions_altered(connection, owner, altered, upkeep)
        self._claim(connection, owner, [after for before, after in altered if after.location != before.location])
        rows = stored_rows(owner, (after for _, after in altered))
        connection.execute(select(func.catalog_alter_partitions(owner.id, rows)))
        changes.partitions_altered(connection, owner, altered)

    def _named(self, owner: Table, given: Iterable[Partition]) -> dict[str, Partition]:
        """By name; of a partition that is given twice the last definition counts."""
        keys = [key.name for key in owner.partition_keys]
        return {name_of_values(keys, partition_values(partition.values)): partition for partition in given}

    def _existing(self, owner: Table, names: Collection[str]) -> set[str]:
        query = select(PARTITION.c.name).where(PARTITION.c.table_id == owner.id, is_named(names))
        with self._db.engine.connect() as connection:
            return set(connection.execute(query).scalars())

    def _completed(self, owner: Table, given: Iterable[Partition]) -> Iterable[Partition]:
        """New partitions with their names, locations, time stamps and whatever they take from their table."""
        if not owner.partition_keys:
            raise MetaError(f"{owner.full_name} is not partitioned")
        keys = [key.name for key in owner.partition_keys]
        now_s = int(time.time())
        for partition in given:
            values = partition_values(partition.values)
            invalid = self._partitions.first_invalid(values)
            if invalid is not None:
                raise MetaError(f"partition value '{invalid}' does not match the server's whitelist")
            if owner.is_view and partition.location:
                raise MetaError(f"{owner.full_name} is a view: its partitions have no location")
            name = name_of_values(keys, values)
            own = partition.location
            location = self._directories.chosen(own) if own else self._directories.of_partition(owner, name)
            yield replace(
                partition,
                values=values,
                name=name,
                location=None if owner.is_view else location,
                created_s=now_s,
                columns=partition_columns(partition.columns) or owner.columns,
                parameters={LAST_DDL_TIME: str(now_s), **storable(partition.parameters)},
                storage=partition.storage if partition.storage is not None else owner.storage,
            )

    def _elsewhere(self, owner: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """The partitions that are not in their default place."""
        return [one for one in partitions if one.location != self._directories.of_partition(owner, one.name)]

    def _claim(self, connection: Connection, owner: Table, partitions: Iterable[Partition]) -> None:
        """Take the places of partitions that are not in their default place. Raises InvalidObjectError."""
        if not owner.owns_files:
            return
        given = list(partitions)
        # Where case does not count the default place of one may be another one's.
        claims_all = self._neighbours.ignores_case(connection, owner.location)
        elsewhere = [one for one in (given if claims_all else self._elsewhere(owner, given)) if one.location]
        if not elsewhere:
            return
        places = list(dict.fromkeys(one.location or "" for one in elsewhere))
        distinct = {place.lower() for place in places} if claims_all else places
        if len(distinct) < len(elsewhere) and owner.is_transactional:
            raise InvalidObjectError(f"two partitions of {owner.full_name} cannot be in one place: {max(places)}")
        self._neighbours.claim(connection, places, owner, Own(owner.id, tuple(one.name for one in elsewhere)))

    def _insert(self, owner: Table, partitions: Sequence[Partition], if_not_exists: bool) -> list[Partition]:
        if not partitions:
            return []
        statement = select(func.catalog_add_partitions(owner.id, stored_rows(owner, partitions)))
        try:
            with self._db.engine.begin() as connection:
                inserted = set(connection.execute(statement).scalars())
                if len(inserted) < len(partitions) and not if_not_exists:
                    raise AlreadyExistsError(f"a partition of {owner.full_name} was added meanwhile by another one")
                added = [partition for partition in partitions if partition.name in inserted]
                self._claim(connection, owner, added)
                changes.partitions_added(connection, owner, added)
        except IntegrityError as error:
            if not is_missing_parent(error):
                raise
            raise InvalidObjectError(f"table {owner.full_name} does not exist") from error
        return added


def stored_rows(owner: Table, partitions: Iterable[Partition]) -> str:
    """The rows of partitions as ``catalog_add_partitions`` takes them.

    Each is encoded by itself: encoding many at once would keep the event loop waiting.
    """
    rows = (json.dumps(records.partition_row(owner, partition), separators=(",", ":")) for partition in partitions)
    return f"[{','.join(rows)}]"
