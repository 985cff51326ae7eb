"""`hive_acid.filesystem.files` for the server: each operation on threads of its file system, with a limit (`pools`).

Errors are those of `hive_acid.filesystem.files`, and TimeoutError.
"""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.filesystem import files
from hive_acid.filesystem.files import OBJECT_STORES, FileEntry, is_local, join, parent, plain, rename_is_copy
from metastore.filework.pools import FILE_SYSTEMS

__all__ = [
    "OBJECT_STORES",
    "FileEntry",
    "exists",
    "is_below",
    "is_local",
    "join",
    "list_tree",
    "list_trees",
    "make_directories",
    "make_directory",
    "parent",
    "plain",
    "read",
    "remove",
    "remove_empty",
    "rename",
    "rename_is_copy",
    "write",
]

_AWAKE_S = 10.0
"""Who has answered so recently is not asked whether it answers."""


def exists(location: str) -> bool:
    """Whether a file or directory is there."""
    return FILE_SYSTEMS.run(location, files.exists, location)


def make_directory(location: str) -> None:
    """Make a directory and all above it; nothing to do where directories do not exist."""
    FILE_SYSTEMS.run(location, files.make_directory, location)


def make_directories(locations: Sequence[str]) -> tuple[list[str], tuple[str, Exception] | None]:
    """Make those of some directories of one file system that are not there: those made, and the first that failed."""
    _knock(locations[0])
    return FILE_SYSTEMS.run(locations[0], files.make_directories, tuple(locations), takes_long=True)


def list_tree(location: str, max_depth: int | None = None) -> list[FileEntry]:
    """All files and directories below `location`, sorted by path; an absent location has none."""
    _knock(location)
    return FILE_SYSTEMS.run(location, files.list_tree, location, max_depth, takes_long=True)


def list_trees(locations: Sequence[str]) -> list[list[FileEntry]]:
    """`list_tree` of each location, many at a time where a listing is a request."""
    if not locations:
        return []
    _knock(locations[0])
    return FILE_SYSTEMS.run(locations[0], files.list_trees, tuple(locations), takes_long=True)


def rename(source: str, target: str) -> None:
    """Move a file or directory, as `hive_acid.filesystem.files.rename`; back again if nobody waits any more then."""

    def back() -> None:
        files.rename(target, source)

    FILE_SYSTEMS.run(source, files.rename, source, target, takes_long=rename_is_copy(source), undo=back)


def remove(location: str, *, takes_long: bool = True) -> bool:
    """Remove a file or a directory with all below it; False if there was nothing."""
    if takes_long:
        _knock(location)
    return FILE_SYSTEMS.run(location, files.remove, location, takes_long=takes_long)


def remove_empty(location: str, *, takes_long: bool = True) -> bool:
    """Remove a directory with those below it if no file is in any of them; whether it is gone."""
    if takes_long:
        _knock(location)
    return FILE_SYSTEMS.run(location, files.remove_empty, location, takes_long=takes_long)


def write(location: str, content: bytes) -> None:
    """Write a small file, replacing what is there."""
    FILE_SYSTEMS.run(location, files.write, location, content)


def read(location: str) -> bytes:
    """The content of a small file."""
    return FILE_SYSTEMS.run(location, files.read, location)


def _knock(location: str) -> None:
    """Before what may take long: whether a file system that is not local answers at all, within the short limit."""
    if not is_local(location) and not FILE_SYSTEMS.has_answered(location, _AWAKE_S):
        exists(location)


def is_below(location: str, root: str) -> bool:
    """Whether a location is `root` or below it, as the two are written."""
    return f"{plain(location)}/".startswith(f"{plain(root).rstrip('/')}/")
