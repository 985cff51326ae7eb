"""Partitions: add, get, list, alter, rename and drop. A partition is found by its values, in the order of the keys."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from metastore.catalog import records
from metastore.catalog.config import CatalogConfig
from metastore.catalog.directories import Directories, is_below, qualified
from metastore.catalog.filters import filter_condition
from metastore.catalog.models import LAST_DDL_TIME, Partition, Table
from metastore.catalog.names import name_of_values, partition_values
from metastore.catalog.removals import Removals
from metastore.catalog.schema import PARTITION, is_missing_parent
from metastore.catalog.tables import Tables, locked
from metastore.catalog.validation import partition_columns
from metastore.store.database import Database

_values = PARTITION.c["values"]


class Partitions:
    """The partitions of all tables; every method raises NoSuchObjectError for an unknown table unless it says other."""

    def __init__(
        self, db: Database, tables: Tables, directories: Directories, removals: Removals, config: CatalogConfig
    ) -> None:
        self._db = db
        self._tables = tables
        self._directories = directories
        self._removals = removals
        self._whitelist = re.compile(config.partition_name_whitelist) if config.partition_name_whitelist else None

    # --- reading ---

    def get(self, database: str, table: str, values: Sequence[str]) -> Partition:
        """The partition with these values. Raises NoSuchObjectError if there is none."""
        owner = self._tables.get(database, table)
        found = self._select(owner, _values == partition_values(values))
        if not found:
            raise NoSuchObjectError(f"partition {list(values)} of {owner.full_name} does not exist")
        return found[0]

    def matching(
        self, database: str, table: str, values: Sequence[str] = (), limit: int | None = None
    ) -> list[Partition]:
        """The partitions whose first values are `values`, an empty one standing for any, by name."""
        owner = self._tables.get(database, table)
        return self._select(owner, *_prefix(owner, values), limit=limit)

    def names(self, database: str, table: str, values: Sequence[str] = (), limit: int | None = None) -> list[str]:
        """The names of the partitions that `matching` finds."""
        owner = self._tables.get(database, table)
        query = select(PARTITION.c.name).where(PARTITION.c.table_id == owner.id, *_prefix(owner, values))
        with self._db.engine.connect() as connection:
            return list(connection.execute(_limited(query.order_by(PARTITION.c.name), limit)).scalars())

    def named(self, database: str, table: str, names: Sequence[str]) -> list[Partition]:
        """Those of the named partitions that exist, by name."""
        owner = self._tables.get(database, table)
        return self._select(owner, PARTITION.c.name.in_(list(names)))

    def filtered(self, database: str, table: str, text: str, limit: int | None = None) -> list[Partition]:
        """The partitions for which a filter holds (`filters`), by name. Raises MetaError for a malformed filter."""
        owner = self._tables.get(database, table)
        return self._select(owner, filter_condition(text, owner.partition_keys), limit=limit)

    def count(self, database: str, table: str, text: str) -> int:
        """How many partitions there are for which a filter holds."""
        owner = self._tables.get(database, table)
        condition = filter_condition(text, owner.partition_keys)
        query = select(func.count()).select_from(PARTITION).where(PARTITION.c.table_id == owner.id, condition)
        with self._db.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    # --- changing ---

    def add(
        self, database: str, table: str, partitions: Sequence[Partition], if_not_exists: bool = False
    ) -> list[Partition]:
        """Add partitions, all or none, and make their directories; returns those that are new.

        Raises InvalidObjectError for an unknown table or values that do not fit, AlreadyExistsError unless
        `if_not_exists`, MetaError if a directory cannot be made.
        """
        try:
            owner = self._tables.get(database, table)
        except NoSuchObjectError as error:  # none of the add methods declares it
            raise InvalidObjectError(f"cannot add partitions: {error}") from None
        new = {partition.name: partition for partition in (self._completed(owner, given) for given in partitions)}
        if len(new) < len(partitions):
            raise InvalidObjectError(f"a partition of {owner.full_name} is given twice in one request")
        existing = self._existing(owner, new)
        if existing and not if_not_exists:
            raise AlreadyExistsError(f"partition {min(existing)} of {owner.full_name} exists already")
        missing = [partition for name, partition in new.items() if name not in existing]
        made: list[Partition] = []
        try:
            self._removals.wait_for(owner.location or "", below=True)
            for partition in missing:
                if not is_below(partition.location, owner.location):
                    self._removals.wait_for(partition.location or "")
                if self._directories.make(partition.location or ""):
                    made.append(partition)
            return self._insert(owner, missing, if_not_exists)
        except Exception:
            existing = self._existing(owner, [partition.name for partition in made])
            for partition in made:
                if partition.name not in existing:
                    self._directories.remove(partition.location or "", only_if_empty=True)
            raise

    def alter(self, database: str, table: str, partitions: Sequence[Partition]) -> None:
        """Replace the definitions of partitions, all or none; what is left out of one stays.

        Raises InvalidOperationError for an unknown table or partition.
        """
        try:
            with self._db.engine.begin() as connection:
                owner = locked(connection, database, table)
                for given in partitions:
                    values = partition_values(given.values)
                    query = select(PARTITION).where(PARTITION.c.table_id == owner.id, _values == values)
                    row = connection.execute(query).mappings().first()
                    if row is None:
                        raise NoSuchObjectError(f"partition {values} of {owner.full_name} does not exist")
                    new = self._altered(records.partition_of(owner, row), given)
                    connection.execute(
                        update(PARTITION).where(PARTITION.c.id == row["id"]).values(records.partition_row(owner, new))
                    )
        except NoSuchObjectError as error:  # none of the alter methods declares it
            raise InvalidOperationError(f"cannot alter: {error}") from None

    def rename(self, database: str, table: str, values: Sequence[str], given: Partition) -> None:
        """Give a partition other values, and move its directory if it is in the default place of a managed table.

        Killed between the two, the same rename can be given again. Raises InvalidOperationError if the partition is
        unknown, the new one exists, or the table is transactional.
        """
        try:
            owner = self._tables.get(database, table)
            old = self.get(database, table, values)
        except NoSuchObjectError as error:  # none of the rename methods declares it
            raise InvalidOperationError(f"cannot rename: {error}") from None
        if owner.is_transactional:
            raise InvalidOperationError(
                f"partitions of the transactional table {owner.full_name} cannot be renamed: transactions under way"
                " know them by name"
            )
        name = name_of_values([key.name for key in owner.partition_keys], partition_values(given.values))
        new = replace(self._altered(old, given), values=partition_values(given.values), name=name)
        if name != old.name and self._existing(owner, [name]):
            raise InvalidOperationError(f"partition {name} of {owner.full_name} exists already")
        moves = (
            self._directories.enabled
            and not owner.is_external
            and given.location in (None, old.location)
            and old.location == self._directories.of_partition(owner, old.name)
        )
        if moves:
            new = replace(new, location=self._directories.of_partition(owner, name))
            self._removals.wait_for(new.location or "")
            self._directories.move(old.location or "", new.location or "")
        try:
            with self._db.engine.begin() as connection:
                row = records.partition_row(owner, new)
                chosen = update(PARTITION).where(PARTITION.c.table_id == owner.id, _values == old.values)
                if connection.execute(chosen.values(row)).rowcount == 0:
                    raise InvalidOperationError(f"partition {old.name} of {owner.full_name} is gone")
        except (InvalidOperationError, IntegrityError) as error:
            if moves:
                self._directories.move(new.location or "", old.location or "")
            raise InvalidOperationError(f"cannot rename partition {old.name} to {name}: {error}") from error

    def drop(
        self,
        database: str,
        table: str,
        chosen: Sequence[Sequence[str]],
        delete_data: bool,
        if_exists: bool = False,
    ) -> list[Partition]:
        """Drop the partitions with the values `chosen`, all or none, and the files that they own; returns them.

        Raises NoSuchObjectError if one does not exist, unless `if_exists`.
        """
        wanted = {tuple(partition_values(values)) for values in chosen}
        with self._db.engine.begin() as connection:
            owner = locked(connection, database, table)
            condition = _values.in_([list(values) for values in wanted]) if wanted else PARTITION.c.id.is_(None)
            query = delete(PARTITION).where(PARTITION.c.table_id == owner.id, condition).returning(PARTITION)
            dropped = [records.partition_of(owner, row) for row in connection.execute(query).mappings()]
            missing = wanted - {tuple(partition.values) for partition in dropped}
            if missing and not if_exists:
                raise NoSuchObjectError(f"partition {list(min(missing))} of {owner.full_name} does not exist")
            removals = []
            if delete_data and owner.owns_files:
                places = {partition.location for partition in dropped if partition.location}
                own = [place for place in sorted(places) if not is_below(owner.location, place)]
                removals = self._removals.plan(connection, own)
        self._removals.run(removals)
        return sorted(dropped, key=lambda partition: partition.name)

    def first_invalid(self, values: Iterable[str]) -> str | None:
        """The first value that the whitelist does not allow."""
        if self._whitelist is None:
            return None
        return next((value for value in values if not self._whitelist.fullmatch(value)), None)

    # --- inside ---

    def _select(self, owner: Table, *conditions: ColumnElement[bool], limit: int | None = None) -> list[Partition]:
        query = select(PARTITION).where(PARTITION.c.table_id == owner.id, *conditions).order_by(PARTITION.c.name)
        with self._db.engine.connect() as connection:
            return [records.partition_of(owner, row) for row in connection.execute(_limited(query, limit)).mappings()]

    def _existing(self, owner: Table, names: Iterable[str]) -> set[str]:
        query = select(PARTITION.c.name).where(PARTITION.c.table_id == owner.id, PARTITION.c.name.in_(list(names)))
        with self._db.engine.connect() as connection:
            return set(connection.execute(query).scalars())

    def _completed(self, owner: Table, given: Partition) -> Partition:
        """A new partition with its name, location, time stamps and whatever it takes from its table."""
        if not owner.partition_keys:
            raise InvalidObjectError(f"{owner.full_name} is not partitioned")
        values = partition_values(given.values)
        invalid = self.first_invalid(values)
        if invalid is not None:
            raise InvalidObjectError(f"partition value '{invalid}' does not match the server's whitelist")
        name = name_of_values([key.name for key in owner.partition_keys], values)
        root = self._directories.root
        location = qualified(given.location, root) if given.location else self._directories.of_partition(owner, name)
        now_s = int(time.time())
        return replace(
            given,
            values=values,
            name=name,
            location=None if owner.is_view else location,
            created_s=given.created_s or now_s,
            columns=partition_columns(given.columns),
            parameters={LAST_DDL_TIME: str(now_s), **given.parameters},
        )

    def _altered(self, old: Partition, given: Partition) -> Partition:
        parameters = dict(given.parameters)
        if parameters.get(LAST_DDL_TIME) in (None, old.parameters.get(LAST_DDL_TIME)):
            parameters[LAST_DDL_TIME] = str(int(time.time()))
        return replace(
            given,
            name=old.name,
            values=old.values,
            location=qualified(given.location, self._directories.root) if given.location else old.location,
            created_s=given.created_s or old.created_s,
            columns=partition_columns(given.columns) or old.columns,
            parameters=parameters,
            storage=given.storage if given.storage is not None else old.storage,
        )

    def _insert(self, owner: Table, partitions: Sequence[Partition], if_not_exists: bool) -> list[Partition]:
        if not partitions:
            return []
        statement = insert(PARTITION).on_conflict_do_nothing().returning(PARTITION.c.name)
        try:
            with self._db.engine.begin() as connection:
                rows = [records.partition_row(owner, partition) for partition in partitions]
                inserted = set(connection.execute(statement, rows).scalars())
                if len(inserted) < len(partitions) and not if_not_exists:
                    raise AlreadyExistsError(f"a partition of {owner.full_name} was added meanwhile by another one")
        except IntegrityError as error:
            if not is_missing_parent(error):
                raise
            raise InvalidObjectError(f"table {owner.full_name} does not exist") from error
        return [
            replace(partition, columns=partition.columns or owner.columns, storage=partition.storage or owner.storage)
            for partition in partitions
            if partition.name in inserted
        ]


def _prefix(owner: Table, values: Sequence[str]) -> list[ColumnElement[bool]]:
    if len(values) > len(owner.partition_keys):
        raise MetaError(
            f"{len(values)} partition values for the {len(owner.partition_keys)} partition columns of {owner.full_name}"
        )
    return [_values[position] == value for position, value in enumerate(values, start=1) if value]


def _limited(query: Select[Any], limit: int | None) -> Select[Any]:
    return query if limit is None or limit < 0 else query.limit(limit)
