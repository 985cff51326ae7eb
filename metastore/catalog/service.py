"""The catalogue as one object: what the RPC handlers call, and what other slices may ask."""

from __future__ import annotations

from hive_acid.errors import NoSuchObjectError
from metastore.catalog.alterations import Alterations
from metastore.catalog.config import CatalogConfig
from metastore.catalog.databases import Databases
from metastore.catalog.directories import Directories, warehouse_root
from metastore.catalog.models import TableInfo
from metastore.catalog.names import values_of_name
from metastore.catalog.partitions import Partitions
from metastore.catalog.removals import Removals
from metastore.catalog.tables import Tables
from metastore.store.database import Database


class CatalogService:
    """Databases, tables and partitions in Postgres, their directories below the warehouse's root.

    File work is never done inside a database transaction: directories are made before the commit of what needs them
    and removed after the commit of what frees them. Call `start` once before serving.
    """

    def __init__(self, db: Database, warehouse: str, config: CatalogConfig) -> None:
        """`warehouse` is a path or URL."""
        self.config = config
        directories = Directories(warehouse_root(warehouse), config.directories)
        self.removals = Removals(db, directories)
        self.databases = Databases(db, directories, self.removals)
        self.tables = Tables(db, directories, self.removals)
        self.alterations = Alterations(db, self.tables, directories, self.removals)
        self.partitions = Partitions(db, self.tables, directories, self.removals, config)
        self.warehouse = directories.root

    def start(self) -> None:
        """Make the default database, and finish the removals that a killed server left."""
        self.databases.ensure_default()
        self.removals.recover(claim="0 s")

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
        )

    def partition(self, database: str, table: str, name: str) -> str | None:
        """The location of a partition; None if it does not exist."""
        try:
            return self.partitions.get(database, table, values_of_name(name)).location
        except NoSuchObjectError:
            return None

    def partition_parameters(self, database: str, table: str, name: str) -> dict[str, str]:
        """The parameters of a partition; none if it does not exist."""
        try:
            return self.partitions.get(database, table, values_of_name(name)).parameters
        except NoSuchObjectError:
            return {}

    def partition_names(self, database: str, table: str) -> list[str]:
        """The names of all partitions of a table; none if it does not exist."""
        try:
            return self.partitions.names(database, table)
        except NoSuchObjectError:
            return []

    def database_parameters(self, database: str) -> dict[str, str]:
        """The parameters of a database; none if it does not exist."""
        return self.databases.parameters(database)
