"""The file operations that hive-acid does itself, over fsspec; Spark does all others.

Locations are what the metastore stores: ``file:/a/b``, ``file:///a/b``, ``/a/b``, ``hdfs://host/a`` or ``s3://bucket/a``.
Every operation is safe to repeat: making what exists, removing what is gone and renaming what was renamed already
succeed, so a killed step can be run again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fsspec


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One thing found below a location.

    `path` is relative to the location, with ``/`` between parts; a directory's path ends in ``/``.
    """

    path: str
    size: int
    modified_ms: int = 0

    @property
    def is_directory(self) -> bool:
        return self.path.endswith("/")


def _open(location: str) -> tuple[Any, str]:
    if location.startswith("file:"):
        location = "file://" + "/" + location.removeprefix("file:").lstrip("/")
    filesystem, path = fsspec.core.url_to_fs(location, use_listings_cache=False)
    return filesystem, path.rstrip("/") or "/"


def join(location: str, *parts: str) -> str:
    """`location` with `parts` below it."""
    return "/".join([location.rstrip("/"), *(part.strip("/") for part in parts)])


def parent(location: str) -> str:
    """The location one level up."""
    return posixpath.dirname(location.rstrip("/"))


def exists(location: str) -> bool:
    """Whether a file or directory is there."""
    filesystem, path = _open(location)
    return bool(filesystem.exists(path))


def make_directory(location: str) -> None:
    """Make a directory and all above it."""
    filesystem, path = _open(location)
    filesystem.makedirs(path, exist_ok=True)


def list_tree(location: str, max_depth: int | None = None) -> list[FileEntry]:
    """All files and directories below `location`, sorted by path; an absent location has none."""
    return sorted(_walk(location, max_depth), key=lambda entry: entry.path)


def _walk(location: str, max_depth: int | None) -> Iterator[FileEntry]:
    filesystem, root = _open(location)
    prefix = len(root.rstrip("/")) + 1
    for found, directories, names in filesystem.walk(root, maxdepth=max_depth, detail=True, on_error="omit"):
        at = found.rstrip("/")[prefix:]
        for name in directories:
            yield FileEntry(posixpath.join(at, name) + "/", 0, _modified_ms(directories[name]))
        for name, detail in names.items():
            if name:
                yield FileEntry(posixpath.join(at, name), int(detail.get("size") or 0), _modified_ms(detail))


def _modified_ms(detail: dict[str, Any]) -> int:
    when = detail.get("mtime") or detail.get("LastModified") or 0
    seconds = when.timestamp() if hasattr(when, "timestamp") else float(when)
    return int(seconds * 1000)


def rename(source: str, target: str) -> None:
    """Move a file or directory to a path that is free.

    Raises FileExistsError if the target exists beside the source, FileNotFoundError if neither exists.
    """
    filesystem, source_path = _open(source)
    _, target_path = _open(target)
    if filesystem.exists(target_path):
        if not filesystem.exists(source_path):
            return
        raise FileExistsError(f"cannot rename {source}: {target} exists already")
    if not filesystem.exists(source_path):
        raise FileNotFoundError(f"cannot rename {source}: it does not exist")
    filesystem.makedirs(posixpath.dirname(target_path), exist_ok=True)
    filesystem.mv(source_path, target_path, recursive=True)


def remove(location: str) -> bool:
    """Remove a file or a directory with all below it; False if there was nothing."""
    filesystem, path = _open(location)
    try:
        filesystem.rm(path, recursive=True)
    except FileNotFoundError:
        return False
    return True


def write(location: str, content: bytes) -> None:
    """Write a small file, replacing what is there."""
    filesystem, path = _open(location)
    filesystem.pipe_file(path, content)


def read(location: str) -> bytes:
    """The content of a small file."""
    filesystem, path = _open(location)
    content: bytes = filesystem.cat_file(path)
    return content
