"""Dropping partitions, by values, names and expressions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, select

from hive_acid.errors import NoSuchObjectError
from hive_acid.ids import WriteId
from metastore.catalog import changes, records
from metastore.catalog.models import Partition, Table
from metastore.catalog.partition.partitions import Partitions, expression_conditions
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.records import is_named, locked
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.removal.overwrites import RowDirectory
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.removal.soft_drops import SoftDrops
from metastore.catalog.schema import PARTITION
from metastore.catalog.transactions import forget_partitions, in_transaction
from metastore.store.database import Database


class PartitionDrops:
    """Drops partitions, all that a request names or none, and the files that they own."""

    def __init__(
        self,
        db: Database,
        partitions: Partitions,
        neighbours: Neighbours,
        removals: Removals,
        soft_drops: SoftDrops,
    ) -> None:
        self._db = db
        self._partitions = partitions
        self._neighbours = neighbours
        self._removals = removals
        self._soft_drops = soft_drops

    def one(self, database: str, table: str, chosen: Sequence[str] | str, request: DropRequest) -> None:
        """Drop the partition with these values, or of this name. Raises NoSuchObjectError, MetaError for no values."""
        owner = self._partitions.owner(database, table)
        name = self._partitions.normal_name(owner, chosen)
        self._drop(owner, {name}, request, if_exists=False)

    def named(
        self, database: str, table: str, names: Collection[str], request: DropRequest, if_exists: bool = False
    ) -> list[Partition]:
        """Drop the named partitions; returns them. Raises NoSuchObjectError if one is missing, unless `if_exists`."""
        return self._drop(self._partitions.owner(database, table), set(names), request, if_exists)

    def chosen(
        self,
        database: str,
        table: str,
        expressions: Sequence[bytes | str],
        request: DropRequest,
        if_exists: bool = False,
    ) -> list[Partition]:
        """Drop the partitions that any of the expressions chooses (`expressions`); returns them.

        Raises MetaError for an expression that cannot be decided, NoSuchObjectError for one that chooses none, unless
        `if_exists`.
        """
        owner = self._partitions.owner(database, table)
        names: set[str] = set()
        for number, expression in enumerate(expressions, start=1):
            query = select(PARTITION.c.name).where(
                PARTITION.c.table_id == owner.id, *expression_conditions(owner, expression)
            )
            with self._db.engine.connect() as connection:
                found = connection.execute(query).scalars().all()
            if not found and not if_exists:
                raise NoSuchObjectError(f"no partition of {owner.full_name} matches expression {number} of the request")
            names.update(found)
        # By their names: partitions that come to match only now were not meant.
        return self._drop(owner, names, request, if_exists=True)

    def _drop(self, owner: Table, names: set[str], request: DropRequest, if_exists: bool) -> list[Partition]:
        if not names:
            return []
        return self._removals.beside_others(lambda: self._drop_now(owner, names, request, if_exists))

    def _drop_now(self, owner: Table, names: set[str], request: DropRequest, if_exists: bool) -> list[Partition]:
        stays = self._hand_over(owner, names, request, if_exists)

        def change(connection: Connection) -> tuple[list[Partition], list[Removal]]:
            table = locked(connection, owner.database, owner.name)
            query = delete(PARTITION).where(PARTITION.c.table_id == table.id, is_named(names))
            read = records.partition_reader(table)
            planned: list[Removal] = []
            dropped = [read(row) for row in connection.execute(query.returning(*records.PARTITION_COLUMNS))]
            if not if_exists:
                _require_all(table, names, dropped)
            dropped.sort(key=lambda partition: partition.name)
            gone = request.delete_data or stays
            forget_partitions(connection, table, [partition.name for partition in dropped], keep_writes=not gone)
            if request.delete_data and not stays and table.owns_files:
                planned = self._removals.plan(connection, self._own_places(connection, table, dropped), table.full_name)
            changes.partitions_dropped(connection, table, dropped)
            return dropped, planned

        dropped, removals = in_transaction(self._db, change)
        self._removals.run(removals)
        return dropped

    def _hand_over(self, owner: Table, names: set[str], request: DropRequest, if_exists: bool) -> bool:
        """Whether readers may be under way, for whom the files stay; the Cleaner has them then.

        Likewise if the client drops under a write id of its own.
        """
        with_client = request.write_id > 0 and not request.delete_data
        if not owner.is_transactional or not (request.delete_data or with_client):
            return False
        with self._db.engine.connect() as connection:
            query = select(*records.PARTITION_COLUMNS).where(PARTITION.c.table_id == owner.id, is_named(names))
            found = [records.partition_reader(owner)(row) for row in connection.execute(query)]
        if not if_exists:
            _require_all(owner, names, found)
        with self._db.engine.begin() as connection:
            own = set(self._own_places(connection, owner, found))
        places = [
            RowDirectory(partition.name, partition.location or "") for partition in found if partition.location in own
        ]
        if with_client:
            return self._soft_drops.hand_over_in_clients(owner, places, WriteId(request.write_id))
        return self._soft_drops.hand_over(owner, places, request.txn_id)

    def _own_places(self, connection: Connection, table: Table, partitions: Sequence[Partition]) -> list[str]:
        """The directories of partitions that nobody else needs (`neighbours`)."""
        places = sorted({partition.location for partition in partitions if partition.location})
        own = Own(table.id, tuple(partition.name for partition in partitions))
        return self._neighbours.own_places(connection, places, own, table.full_name)


def _require_all(table: Table, names: set[str], found: Sequence[Partition]) -> None:
    missing = names - {partition.name for partition in found}
    if missing:
        raise NoSuchObjectError(f"partition {min(missing)} of {table.full_name} does not exist")
