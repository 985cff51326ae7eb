"""The catalogue as one object: what the RPC handlers call, and what other slices may ask."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from hive_acid.errors import NoSuchObjectError
from metastore.catalog.config import CatalogConfig
from metastore.catalog.definition.alterations import Alterations
from metastore.catalog.definition.catalogs import Catalogs
from metastore.catalog.definition.databases import Databases
from metastore.catalog.definition.listings import Listings
from metastore.catalog.definition.successors import Successors
from metastore.catalog.definition.tables import Tables
from metastore.catalog.definition.views import MaterializedViews
from metastore.catalog.identity import metastore_uuid
from metastore.catalog.models import Partition, TableInfo
from metastore.catalog.partition.changes import PartitionChanges
from metastore.catalog.partition.drops import PartitionDrops
from metastore.catalog.partition.moves import PartitionMoves
from metastore.catalog.partition.partitions import Partitions
from metastore.catalog.place.directories import Directories, warehouse_root
from metastore.catalog.place.neighbours import Neighbours
from metastore.catalog.place.places import is_root
from metastore.catalog.registry.constraints import Constraints
from metastore.catalog.registry.functions import Functions
from metastore.catalog.registry.privileges import Privileges
from metastore.catalog.registry.roles import Roles
from metastore.catalog.registry.tokens import Tokens
from metastore.catalog.removal.moves import DirectoryMoves
from metastore.catalog.removal.overwrites import Overwrites
from metastore.catalog.removal.removals import Removals
from metastore.catalog.removal.soft_drops import SoftDrops
from metastore.catalog.removal.trash import Trash
from metastore.catalog.removal.truncation import Truncations
from metastore.catalog.statistics.changes import StatisticsChanges
from metastore.catalog.statistics.service import Statistics
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import TxnService


class CatalogService:
    """Databases, tables and partitions in Postgres, their directories below the warehouse's root.

    File work is never done inside a database transaction: directories are made before the commit of what needs them
    and removed after the commit of what frees them. Call `start` once before serving.
    """

    def __init__(self, db: Database, warehouse: str, config: CatalogConfig, txns: TxnService | None = None) -> None:
        """`warehouse` is a path or URL; `txns` opens the transactions of the catalogue's own."""
        self.config = config
        self._db = db
        external_root = warehouse_root(config.external_warehouse) if config.external_warehouse else None
        directories = Directories(
            warehouse_root(warehouse), config.directories, external_root, config.schemes, config.allowed_locations
        )
        self._neighbours = Neighbours(db, directories)
        self.removals = Removals(db, directories, self._neighbours, config)
        moves = DirectoryMoves(db, directories, self._neighbours, self.removals)
        self.databases = Databases(db, directories, self._neighbours, self.removals)
        self.catalogs = Catalogs(db, self.databases, directories, self.removals)
        self.listings = Listings(db)
        self.tables = Tables(db, directories, self._neighbours, self.removals, config)
        self.alterations = Alterations(db, self.tables, directories, self._neighbours, self.removals, moves, config)
        overwrites = Overwrites(db, txns or TxnService(db, TxnConfig()), config)
        self.truncations = Truncations(db, self.tables, directories, self._neighbours, self.removals, overwrites)
        self.soft_drops = SoftDrops(db, overwrites, config)
        self.successors = Successors(db, self.tables, self._neighbours, self.removals)
        self.trash = Trash(db, self.tables, directories, self._neighbours, self.removals, moves)
        self.partitions = Partitions(db, self.tables, config)
        self.partition_changes = PartitionChanges(db, self.partitions, directories, self._neighbours, self.removals)
        self.partition_drops = PartitionDrops(db, self.partitions, self._neighbours, self.removals, self.soft_drops)
        self.partition_moves = PartitionMoves(
            self.partitions, self.partition_changes, directories, self._neighbours, moves
        )
        self.statistics = Statistics(db, self.tables, config)
        self.statistics_changes = StatisticsChanges(db)
        self.functions = Functions(db)
        self.constraints = Constraints(db)
        self.roles = Roles(db)
        self.privileges = Privileges(db)
        self.tokens = Tokens(db)
        self.views = MaterializedViews(db, self.databases)
        self.uuid = partial(metastore_uuid, db)
        self.warehouse = directories.root

    def start(self) -> None:
        """Make the default catalog and database and the admins, and free the removals that a killed server left."""
        self.catalogs.ensure_default()
        self.roles.ensure_admins(self.config.admin_users)
        self.removals.release_left()

    def tidy(self) -> int:
        """Finish removals that failed, empty the trash of what is too old, and drop the temporary tables of sessions
        that have died, and tables that will never take another one's place; returns how many directories went, and
        databases of such sessions, and tables.
        """
        removed = self.removals.run_due() + self.trash.purge()
        return removed + self.databases.drop_abandoned() + self.successors.drop_abandoned()

    # --- for the other slices ---

    def table(self, database: str, table: str) -> TableInfo | None:
        """What the other slices need to know of a table; None if it does not exist."""
        found = self.tables.find(database, table)
        if found is None:
            return None
        return TableInfo(
            location=found.location,
            columns=[(column.name, column.type) for column in found.columns],
            partition_keys=[(key.name, key.type) for key in found.partition_keys],
            parameters=found.parameters,
            table_type=found.table_type or "",
            bucket_columns=found.bucket_columns,
            is_full_acid=found.is_full_acid,
            is_transactional=found.is_transactional,
            storage=found.storage,
        )

    def partition(self, database: str, table: str, name: str) -> str | None:
        """The location of a partition; None if it does not exist."""
        found = self._partition(database, table, name)
        return None if found is None else found.location

    def partition_parameters(self, database: str, table: str, name: str) -> dict[str, str]:
        """The parameters of a partition; none if it does not exist."""
        found = self._partition(database, table, name)
        return {} if found is None else found.parameters

    def partition_names(self, database: str, table: str) -> list[str]:
        """The names of all partitions of a table; none if it does not exist."""
        try:
            return self.partitions.names(self.tables.get(database, table)).all()
        except NoSuchObjectError:
            return []

    def partition_locations(self, database: str, table: str) -> list[str]:
        """The locations of all partitions of a table; none if it does not exist."""
        return [location for (location,) in self._db.call("partition_locations", database, table)]

    def homes(self) -> list[str]:
        """The directories in which those of tables are made: the warehouse's, and those of all databases.

        A whole file system is none: what lies right in its root is not ours.
        """
        homes = (home for (home,) in self._db.call("table_homes") if not is_root(home))
        return sorted({self.warehouse, *homes})

    def in_use(self, places: Collection[str], inside: str | None = None) -> set[str]:
        """Those of some places of which something is known (`neighbours`); they may be inside of a table."""
        with self._db.engine.begin() as connection:
            return self._neighbours.in_use(connection, places, inside)

    def has_imports(self) -> bool:
        """Whether tables have come from another metastore, which may know ids that are unknown here."""
        return self._db.call_one("has_imports") == (True,)

    def _partition(self, database: str, table: str, name: str) -> Partition | None:
        owner = self.tables.find(database, table)
        return None if owner is None else self.partitions.find(owner, name)

    def database_parameters(self, database: str) -> dict[str, str]:
        """The parameters of a database; none if it does not exist."""
        return self.databases.parameters(database)
