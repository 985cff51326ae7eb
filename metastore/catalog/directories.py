"""Where databases, tables and partitions have their files, and the file operations of the catalogue.

Default locations (metastore-wire.md §5): the warehouse root for the default database, ``<root>/<name>.db`` for others,
``<database>/<name>`` for a table and ``<table>/k1=v1/k2=v2`` for a partition. A location is stored as Spark reads it:
``file:/abs/path`` for local files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from hive_acid import files
from hive_acid.errors import InvalidOperationError, MetaError
from metastore.catalog.models import DatabaseInfo, Table
from metastore.catalog.names import DEFAULT_DATABASE

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


def qualified(location: str, root: str = "file:/") -> str:
    """`location` as it is stored: with a scheme (that of `root` if it has none), without a trailing slash."""
    if not _SCHEME.match(location):
        authority = _AUTHORITY.match(root)
        location = authority[0] + "/" + location.lstrip("/") if authority else f"file:{location}"
    if location.startswith("file:"):
        return "file:/" + location.removeprefix("file:").strip("/")
    return location.rstrip("/")


def warehouse_root(warehouse: str) -> str:
    """The stored form of the warehouse's path or URL; a relative path counts from the working directory."""
    return qualified(warehouse if _SCHEME.match(warehouse) else os.path.abspath(warehouse))


def is_below(location: str | None, above: str | None) -> bool:
    """Whether `location` is `above` or lies in it."""
    return bool(location and above) and (f"{location}/").startswith(f"{above}/")


class Directories:
    """The warehouse's directories; with `enabled` false every file operation is left to the clients."""

    def __init__(self, root: str, enabled: bool, external_root: str | None = None) -> None:
        """`external_root`, if there is one, is where the tables of databases without a location of their own go that
        the translation of types has made external.
        """
        self.root = root
        self.enabled = enabled
        self._external_root = external_root

    def of_database(self, name: str) -> str:
        return self.root if name == DEFAULT_DATABASE else files.join(self.root, f"{name}.db")

    def of_table(self, database: DatabaseInfo, name: str, is_external: bool = False) -> str:
        """A database may have a place of its own for managed tables (metastore-wire.md §5)."""
        home = None if is_external else database.managed_location
        return files.join(home or database.location or self.of_database(database.name), name)

    def of_translated_table(self, database: DatabaseInfo, name: str) -> str:
        """Where a table goes that was asked for as a managed one and is made external."""
        if self._external_root is None or not is_below(database.location or self.root, self.root):
            return self.of_table(database, name, is_external=True)
        home = (database.location or self.root).removeprefix(self.root).strip("/")
        return files.join(self._external_root, *([home] if home else []), name)

    def of_partition(self, table: Table, name: str) -> str:
        return files.join(table.location or "", name)

    def make(self, location: str) -> bool:
        """Make a directory; False if it was there."""
        if not self.enabled:
            return False
        with explained("make", location):
            if files.exists(location):
                return False
            files.make_directory(location)
            return True

    def move(self, source: str, target: str, or_nothing: bool = False) -> None:
        """Rename a directory; a source that is gone beside a target that is there was renamed before.

        Raises InvalidOperationError if both exist, or neither unless `or_nothing`.
        """
        if not self.enabled:
            return
        with explained("rename", source):
            try:
                files.rename(source, target)
            except FileExistsError:
                raise InvalidOperationError(f"cannot move {source}: the directory {target} exists already") from None
            except FileNotFoundError:
                if or_nothing:
                    return
                raise InvalidOperationError(f"cannot move {source}: the directory does not exist") from None

    def remove(self, location: str, only_if_empty: bool = False) -> None:
        """Remove a directory with all below it, or only if no file is below it."""
        if self.enabled and not (only_if_empty and self.has_files(location)):
            with explained("remove", location):
                files.remove(location)

    def exists(self, location: str) -> bool:
        """Whether a directory is there; False where the server does no file work."""
        with explained("look for", location):
            return self.enabled and files.exists(location)

    def empty(self, location: str) -> None:
        """Remove all that is in a directory, but not the directory."""
        if self.enabled:
            with explained("empty", location):
                for entry in files.list_tree(location, max_depth=1):
                    files.remove(files.join(location, entry.path))

    def has_files(self, location: str) -> bool:
        """Whether any file is below `location`."""
        return bool(self.files_below(location))

    def files_below(self, location: str) -> list[str]:
        """The paths of all files below `location`, relative to it."""
        with explained("list", location):
            return [entry.path for entry in files.list_tree(location) if not entry.is_directory]


@contextmanager
def explained(verb: str, location: str) -> Iterator[None]:
    """The errors of file operations in the body as MetaError."""
    # A scheme without its fsspec package is an ImportError, an unknown one a ValueError.
    try:
        yield
    except (OSError, ImportError, ValueError) as error:
        raise MetaError(f"cannot {verb} the directory {location}: {error}") from error
