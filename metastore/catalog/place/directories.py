"""Where databases, tables and partitions have their files, and the file operations of the catalogue.

Default locations (wire.md §5.2): the warehouse root for the default database, ``<root>/<name>.db`` for others,
``<database>/<name>`` for a table and ``<table>/k1=v1/k2=v2`` for a partition. A location is stored as Spark reads it:
``file:/abs/path`` for local files.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hive_acid.errors import InvalidOperationError, MetaError, MetastoreError
from metastore.catalog.models import DatabaseInfo, Table
from metastore.catalog.names import DEFAULT_DATABASE
from metastore.catalog.place.places import (
    SCHEMES,
    Alias,
    Place,
    check_whole,
    has_scheme,
    identity,
    is_below,
    local_aliases,
    qualified,
)
from metastore.filework import files
from metastore.filework.owners import OWNERS
from metastore.filework.pools import FILE_SYSTEMS, system_of
from metastore.observe.log import event

LOG = logging.getLogger("metastore.catalog")
_OUTSIDE = "lies outside of metastore.warehouse.allowed.locations"


def warehouse_root(warehouse: str, schemes: Sequence[str] | None = None) -> str:
    """The stored form of the warehouse's path or URL; a relative path counts from the working directory.

    Raises MetaError for what cannot be a place, or is none of the `schemes`.
    """
    return qualified(warehouse if has_scheme(warehouse) else os.path.abspath(warehouse), schemes=schemes)


class Directories:
    """The warehouse's directories; with `enabled` false every file operation is left to the clients."""

    def __init__(
        self,
        root: str,
        enabled: bool,
        external_root: str | None = None,
        schemes: Sequence[str] = SCHEMES,
        allowed: Sequence[str] = (),
    ) -> None:
        """`external_root`, if there is one, is where the tables of databases without a location of their own go that
        the translation of types has made external. On `schemes` there may be places; if some are `allowed`, only there
        and below these roots.
        """
        self._schemes = (*schemes, Place.of(root).scheme)
        self._allowed = (root, *([external_root] if external_root else []), *allowed) if allowed else ()
        self.root = root
        self.enabled = enabled
        self._external_root = external_root

    def stored(self, location: str) -> str:
        """A client's location as it is stored. Raises MetaError for what cannot be a place (`places`)."""
        return qualified(location, self.root, self._schemes)

    def chosen(self, location: str) -> str:
        """Where a client wants something new to be, as it is stored.

        Raises MetaError for what cannot be a place, or may not be one.
        """
        check_whole(location)
        stored = self.stored(location)
        self.check_allowed(stored)
        return stored

    def check_allowed(self, location: str | None, *but: str | None) -> None:
        """Raises MetaError for a stored location that may not be a place; those where something lies already may."""
        if location and location not in but and not self.is_allowed(location):
            raise MetaError(
                f"the location {location} may not be a place: it lies neither below the warehouse nor below"
                f" metastore.warehouse.allowed.locations ({', '.join(self._allowed[1:])})"
            )

    def is_allowed(self, location: str) -> bool:
        """Whether a stored location lies where databases, tables and partitions may, with all links followed."""
        if not self._allowed:
            return True
        with explained("look for", location):
            place = identity(location, self.aliases(location))
            homes = [identity(root, self.aliases(root)) for root in self._allowed]
        return any(f"{place}/".startswith(f"{home}/") for home in homes)

    def aliases(self, location: str) -> list[Alias]:
        """The links on the way to a location (`places.local_aliases`). Raises OSError."""
        return FILE_SYSTEMS.run(location, local_aliases, location) if files.is_local(location) else []

    def of_database(self, name: str) -> str:
        return self.root if name == DEFAULT_DATABASE else files.join(self.root, f"{name}.db")

    def of_table(self, database: DatabaseInfo, name: str, is_external: bool = False) -> str:
        """A database may have a place of its own for managed tables (wire.md §5.2)."""
        home = None if is_external else database.managed_location
        return files.join(home or database.location or self.of_database(database.name), name)

    def is_default_place(self, table: Table, home: DatabaseInfo) -> bool:
        """Whether a managed table lies where the server has put it, maybe beside what was left of a dropped one."""
        place = self.of_table(home, table.name)
        return table.location == place or re.fullmatch(re.escape(place) + r"\.v\d+", table.location or "") is not None

    def of_translated_table(self, database: DatabaseInfo, name: str) -> str:
        """Where a table goes that was asked for as a managed one and is made external."""
        if self._external_root is None or not is_below(database.location or self.root, self.root):
            return self.of_table(database, name, is_external=True)
        home = (database.location or self.root).removeprefix(self.root).strip("/")
        return files.join(self._external_root, *([home] if home else []), name)

    def of_partition(self, table: Table, name: str) -> str:
        return files.join(table.location or "", name)

    def make(self, location: str, owner: str | None = None) -> bool:
        """Make a directory of a user; False if it was there."""
        if not self.enabled:
            return False
        with explained("make", location):
            if files.exists(location):
                return False
            files.make_directory(location)
        OWNERS.give(location, owner)
        return True

    def make_all(self, locations: Sequence[str], made: list[str], home: str) -> None:
        """Make those of some directories that are not there, of whoever `home` belongs to.

        `made` gets these, also if one cannot be made.
        """
        by_system: dict[tuple[str, str], list[str]] = {}
        for location in locations if self.enabled else ():
            by_system.setdefault(system_of(location), []).append(location)
        for together in by_system.values():
            with explained("make", together[0]):
                done, failed = files.make_directories(together)
            made += done
            OWNERS.give_below(done, home)
            if failed is not None:
                with explained("make", failed[0]):
                    raise failed[1]

    def move(self, source: str, target: str, or_nothing: bool = False) -> None:
        """Rename a directory; a source that is gone beside a target that is there was renamed before.

        Raises InvalidOperationError if both exist, or neither unless `or_nothing`.
        """
        if not self.enabled:
            return
        for place in (source, target):
            if not self.is_allowed(place):
                raise InvalidOperationError(f"cannot move {source} to {target}: {place} {_OUTSIDE}")
        with explained("rename", source):
            try:
                files.rename(source, target)
            except FileExistsError:
                raise InvalidOperationError(f"cannot move {source}: the directory {target} exists already") from None
            except FileNotFoundError:
                if or_nothing:
                    return
                raise InvalidOperationError(f"cannot move {source}: the directory does not exist") from None

    def remove(self, location: str, only_if_empty: bool = False, takes_long: bool = True) -> None:
        """Remove a directory with all below it, or only if no file is below it; `takes_long` waits for it longer.

        One that lies where nothing may stays.
        """
        if self.enabled and not self.is_allowed(location):
            event(LOG, logging.WARNING, "directory not removed", location=location, reason=f"it {_OUTSIDE}")
        elif self.enabled:
            with explained("remove", location):
                (files.remove_empty if only_if_empty else files.remove)(location, takes_long=takes_long)

    def exists(self, location: str) -> bool:
        """Whether a directory is there; False where the server does no file work."""
        with explained("look for", location):
            return self.enabled and files.exists(location)

    def empty(self, location: str) -> None:
        """Remove all that is in a directory, but not the directory."""
        if self.enabled and not self.is_allowed(location):
            raise InvalidOperationError(f"cannot empty {location}: it {_OUTSIDE}")
        if self.enabled:
            with explained("empty", location):
                for entry in files.list_tree(location, max_depth=1):
                    files.remove(files.join(location, entry.path))

    def has_files(self, location: str, since_s: float = 0) -> bool:
        """Whether any file is below `location`, or any that has changed since a time (s since 1970)."""
        return any(entry.modified_ms >= since_s * 1000 for entry in self._files_below(location))

    def files_below(self, location: str) -> list[str]:
        """The paths of all files below `location`, relative to it."""
        return [entry.path for entry in self._files_below(location)]

    def _files_below(self, location: str) -> list[files.FileEntry]:
        with explained("list", location):
            return [entry for entry in files.list_tree(location) if not entry.is_directory]


@contextmanager
def explained(verb: str, location: str) -> Iterator[None]:
    """The errors of file operations in the body as MetaError."""
    try:
        yield
    except MetastoreError:
        raise
    except Exception as error:  # each file system has its own, and a scheme without its package an ImportError
        raise MetaError(f"cannot {verb} the directory {location}: {error}") from error
