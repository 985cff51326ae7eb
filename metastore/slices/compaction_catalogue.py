"""What the compaction slice asks of the catalogue, in its own words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hive_acid.wire import ConstraintKind
from metastore.catalog.service import CatalogService
from metastore.compaction.models import Storage, TableInfo


class CatalogueOfCompaction:
    """The catalogue in the words of the compaction slice."""

    def __init__(self, catalog: CatalogService) -> None:
        self._catalog = catalog

    def table(self, db: str, table: str) -> TableInfo | None:
        """The table, None if it is gone or has no files."""
        found = self._catalog.table(db, table)
        if found is None or found.location is None:
            return None
        return TableInfo(
            found.location,
            tuple(found.columns),
            tuple(name for name, _ in found.partition_keys),
            found.parameters,
            self._catalog.database_parameters(db),
            Storage.of(found.storage),
        )

    def partition(self, db: str, table: str, partition: str) -> str | None:
        """The location of a partition, None if it is gone."""
        return self._catalog.partition(db, table, partition)

    def primary_key(self, db: str, table: str) -> Sequence[str]:
        """The columns of the table's primary key if that is enforced, else none."""
        found = self._catalog.constraints.of_table(db, table, [ConstraintKind.PRIMARY_KEY])
        return next((one.columns for one in found if one.enabled), ())

    def partition_parameters(self, db: str, table: str, partition: str) -> Mapping[str, str]:
        """The parameters of a partition, none if it is gone."""
        return self._catalog.partition_parameters(db, table, partition)

    def partition_names(self, db: str, table: str) -> list[str]:
        """The names of all partitions of a table."""
        return self._catalog.partition_names(db, table)

    def partition_locations(self, db: str, table: str) -> list[str]:
        """The locations of all partitions of a table."""
        return self._catalog.partition_locations(db, table)

    def homes(self) -> list[str]:
        """The directories in which those of tables are made: the warehouse's, and those of all databases."""
        return self._catalog.homes()

    def in_use(self, places: Collection[str], inside: str | None = None) -> set[str]:
        """Those of the places of which something is known; they may be inside of a table, ``database.table``."""
        return self._catalog.in_use(places, inside)

    def has_imports(self) -> bool:
        """Whether tables have come from another metastore."""
        return self._catalog.has_imports()

    def remove_dropped(self, location: str, trash: str | None) -> bool:
        """Remove what is left of a dropped table or partition; False if something that exists lies there."""
        return self._catalog.removals.remove_dropped(location, trash)

    def remove_unknown(self, location: str, inside: str | None = None) -> bool:
        """Remove a directory unless something is known of it; it may be inside of a table, ``database.table``."""
        return self._catalog.removals.remove_unknown(location, inside)

    def remove_homes(self) -> None:
        """Remove the directories of dropped databases, unless something that exists lies there."""
        self._catalog.removals.remove_homes()
