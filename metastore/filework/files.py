"""`hive_acid.files` as the server uses it: each operation on the threads of its file system, with a limit (`lanes`).

Errors are those of `hive_acid.files`, and TimeoutError.
"""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid import files
from hive_acid.files import FileEntry, join, parent, plain, rename_is_copy
from metastore.filework.lanes import FILE_SYSTEMS

__all__ = [
    "FileEntry",
    "exists",
    "is_below",
    "join",
    "list_tree",
    "list_trees",
    "make_directory",
    "parent",
    "plain",
    "read",
    "remove",
    "rename",
    "rename_is_copy",
    "write",
]


def exists(location: str) -> bool:
    """Whether a file or directory is there."""
    return FILE_SYSTEMS.run(location, files.exists, location)


def make_directory(location: str) -> None:
    """Make a directory and all above it; nothing to do where directories do not exist."""
    FILE_SYSTEMS.run(location, files.make_directory, location)


def list_tree(location: str, max_depth: int | None = None) -> list[FileEntry]:
    """All files and directories below `location`, sorted by path; an absent location has none."""
    return FILE_SYSTEMS.run(location, files.list_tree, location, max_depth, takes_long=True)


def list_trees(locations: Sequence[str]) -> list[list[FileEntry]]:
    """`list_tree` of each location, many at a time where a listing is a request."""
    if not locations:
        return []
    return FILE_SYSTEMS.run(locations[0], files.list_trees, tuple(locations), takes_long=True)


def rename(source: str, target: str) -> None:
    """Move a file or directory, as `hive_acid.files.rename`; back again if it is done when nobody waits any more."""

    def back() -> None:
        files.rename(target, source)

    FILE_SYSTEMS.run(source, files.rename, source, target, takes_long=rename_is_copy(source), undo=back)


def remove(location: str, *, takes_long: bool = True) -> bool:
    """Remove a file or a directory with all below it; False if there was nothing."""
    return FILE_SYSTEMS.run(location, files.remove, location, takes_long=takes_long)


def write(location: str, content: bytes) -> None:
    """Write a small file, replacing what is there."""
    FILE_SYSTEMS.run(location, files.write, location, content)


def read(location: str) -> bytes:
    """The content of a small file."""
    return FILE_SYSTEMS.run(location, files.read, location)


def is_below(location: str, root: str) -> bool:
    """Whether a location is `root` or below it, as the two are written."""
    return f"{plain(location)}/".startswith(f"{plain(root).rstrip('/')}/")
