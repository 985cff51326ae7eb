"""The file operations that hive-acid does itself, over fsspec; Spark does all others.

Locations are what the metastore stores: ``file:/a/b``, ``file:///a/b``, ``/a/b``, ``hdfs://host/a`` or ``s3://bucket/a``.
Every operation is safe to repeat: making what exists, removing what is gone and renaming what was renamed already
succeed, so a killed step can be run again.

Object stores have no directories and no rename: an empty directory does not exist there, and a rename copies every file
before it removes the first one. Credentials and end points are fsspec's (``AWS_ACCESS_KEY_ID``,
``FSSPEC_S3_ENDPOINT_URL``); Spark has its own (``spark.hadoop.fs.s3a.*``).

HDFS is hdfs-native's (``hive-acid[hdfs]``), which reads Hadoop's settings (``HADOOP_CONF_DIR``), or without it
pyarrow's, which needs Hadoop's native client.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import fsspec
from fsspec.implementations.local import LocalFileSystem

from hive_acid.errors import NameTooLongError
from hive_acid.filesystem import hdfs
from hive_acid.forks import keep_in_children

OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "cos", "cosn", "oci"})
"""Schemes of file systems that are lists of objects: a rename there is a copy."""

_P = ParamSpec("_P")
_A = TypeVar("_A")
_B = TypeVar("_B")
_T = TypeVar("_T")

LONGEST_NAME = 255
"""The longest name of a file or directory, in bytes, that local disks and HDFS take."""

LONGEST_PATH = 4095
"""The longest path that Linux takes."""

_LOCAL = LocalFileSystem()
_WORDS_OF_HDFS = ("maximum path component name limit", "Pathname too long")
_SHOWN = 60
_REMOTE_THREADS = 16
_BATCH = 100
_COPY_BYTES = 8 * 1024 * 1024


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
    if is_local(location):  # not by its URL, in which fsspec takes "::" and "~" for more than names
        return _LOCAL, plain(location) or "/"
    if _scheme(location) in hdfs.SCHEMES:
        filesystem, path = hdfs.opened(location)
    else:
        filesystem, path = fsspec.core.url_to_fs(location, use_listings_cache=False)
    keep_in_children(filesystem)  # hdfs-native's waits for its threads as it is freed; s3fs's says goodbye
    return filesystem, path.rstrip("/") or "/"


def _refusals(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """What HDFS refuses is an OSError, as everywhere; to hdfs-native it is a RuntimeError.

    Of a name or path that is too long a sentence tells, NameTooLongError.
    """

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except NameTooLongError:
            raise
        except (OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and type(error) is not RuntimeError:
                raise
            if _is_too_long(error):
                raise _too_long(args) from error
            if isinstance(error, OSError):
                raise
            raise OSError(str(error)) from error

    return called


def _is_too_long(error: OSError | RuntimeError) -> bool:
    return getattr(error, "errno", None) == errno.ENAMETOOLONG or any(words in str(error) for words in _WORDS_OF_HDFS)


def _too_long(args: Sequence[object]) -> NameTooLongError:
    """The error for an operation on some locations of which one has a name, or is a path, that is too long."""
    paths = [plain(one) for one in args if isinstance(one, str)]
    path = max(paths, key=_bytes)
    name = max((name for one in paths for name in one.split("/")), key=_bytes)
    if _bytes(name) > LONGEST_NAME:
        return NameTooLongError(
            f"the file system has no room for a name of {_bytes(name):,} bytes (most take {LONGEST_NAME}): "
            f"'{name[:_SHOWN]}…'"
        )
    return NameTooLongError(
        f"the file system has no room for a path of {_bytes(path):,} bytes (most take {LONGEST_PATH:,}): "
        f"'{path[:_SHOWN]}…'"
    )


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _scheme(location: str) -> str:
    return urlsplit(location).scheme.lower()


def rename_is_copy(location: str) -> bool:
    """Whether a rename at this location copies data, file by file."""
    return _scheme(location) in OBJECT_STORES


def threads_at(location: str, *, local: int = 1) -> int:
    """How many files there are well read or made at once: of a remote store each is waited for.

    `local` is the answer for the local file system, where Python is busy: more threads cost more than they save.
    """
    return local if is_local(location) else _REMOTE_THREADS


def side_by_side(of_each: Callable[[_A], _B], items: Iterable[_A], location: str, *, local: int = 1) -> list[_B]:
    """What `of_each` makes of each item, `threads_at` the location at once; `local` as there.

    A single thread is the caller's own: to start one takes as long as to rename a file.
    """
    found = list(items)
    threads = min(threads_at(location, local=local), len(found))
    if threads <= 1:
        return [of_each(item) for item in found]
    with ThreadPoolExecutor(threads, thread_name_prefix="files") as pool:
        return list(pool.map(of_each, found))


def is_local(location: str) -> bool:
    """Whether a location is in the local file system."""
    return location.startswith(("/", "file:"))


def plain(location: str) -> str:
    """A location without its trailing slash, and the same for ``/a``, ``file:/a`` and ``file:///a``."""
    return "/" + location[5:].strip("/") if location.startswith("file:") else location.rstrip("/")


def join(location: str, *parts: str) -> str:
    """`location` with `parts` below it."""
    return "/".join([location.rstrip("/"), *(part.strip("/") for part in parts)])


def parent(location: str) -> str:
    """The location one level up."""
    return posixpath.dirname(location.rstrip("/"))


def one_name(location: str) -> str:
    """What is equal for locations that a user may write for one place: with dots and slashes too many, and links."""
    filesystem, path = _open(location)
    if is_local(location):
        return f"file:{os.path.realpath(path)}"
    protocol = filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
    return f"{protocol}://{posixpath.normpath(path)}"


def is_below(location: str, root: str) -> bool:
    """Whether a location is `root` or below it, in whichever form the two are written."""
    (_, path), (_, above) = _open(location), _open(root)
    return f"{path}/".startswith(f"{above.rstrip('/')}/")


@_refusals
def refuse_too_long(location: str) -> None:
    """Raise NameTooLongError for a place that the local disk cannot have; other file systems say so when it is made."""
    if is_local(location):
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(_open(location)[1])


@_refusals
def exists(location: str) -> bool:
    """Whether a file or directory is there."""
    filesystem, path = _open(location)
    return bool(filesystem.exists(path))


@_refusals
def owner(location: str) -> hdfs.Owner:
    """Whose a file or directory on HDFS is."""
    filesystem, path = _open(location)
    found: hdfs.Owner = filesystem.owner(path)
    return found


@_refusals
def set_owner(location: str, to: hdfs.Owner) -> None:
    """Give a file or directory on HDFS to somebody, as only a superuser may."""
    filesystem, path = _open(location)
    filesystem.set_owner(path, to)


@_refusals
def make_directory(location: str) -> None:
    """Make a directory and all above it; nothing to do where directories do not exist."""
    if rename_is_copy(location):
        return
    filesystem, path = _open(location)
    filesystem.makedirs(path, exist_ok=True)


def make_directories(locations: Sequence[str]) -> tuple[list[str], tuple[str, Exception] | None]:
    """Make those of some directories that are not there, of one file system; many at a time where each is a request.

    Returns those that were made, and the first that could not be, with the reason; of those behind it some may be
    missing. Where directories do not exist nothing is made.
    """

    def make(location: str) -> bool | Exception:
        try:
            if rename_is_copy(location) or exists(location):
                return False
            make_directory(location)
        except Exception as error:
            return error
        return True

    made: list[str] = []
    for start in range(0, len(locations), _BATCH):
        batch = locations[start : start + _BATCH]
        failed = None
        for location, outcome in zip(batch, side_by_side(make, batch, batch[0]), strict=True):
            if outcome is True:
                made.append(location)
            elif outcome is not False:
                failed = failed or (location, outcome)
        if failed is not None:
            return made, failed
    return made, None


@_refusals
def list_tree(location: str, max_depth: int | None = None) -> list[FileEntry]:
    """All files and directories below `location`, sorted by path; an absent location has none."""
    found: Iterable[FileEntry]
    if rename_is_copy(location):
        found = _objects(location, max_depth)
    elif is_local(location):
        found = _local(_open(location)[1], max_depth)
    else:
        filesystem, root = _open(location)
        found = _walk(filesystem, root, "", max_depth)
    return sorted(found, key=attrgetter("path"))


def list_trees(locations: Sequence[str], max_depth: int | None = None) -> list[list[FileEntry]]:
    """`list_tree` of each location, many at a time where a listing is a request."""
    slowest = next((location for location in locations if not is_local(location)), "/")
    return side_by_side(partial(list_tree, max_depth=max_depth), locations, slowest)


def _local(directory: str, max_depth: int | None) -> list[FileEntry]:
    """As `_walk`, with one look at each entry; what vanishes meanwhile is not there."""
    found: list[FileEntry] = []
    places = [(directory, "", max_depth)]
    while places:
        place, at, depth = places.pop()
        try:
            entries = list(os.scandir(place))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            try:
                status = entry.stat()
            except FileNotFoundError:
                if not entry.is_symlink():
                    continue
                status = entry.stat(follow_symlinks=False)
            path, modified_ms = at + entry.name, status.st_mtime_ns // 1_000_000
            if entry.is_dir(follow_symlinks=False):
                path += "/"
                found.append(FileEntry(path, 0, modified_ms))
                if depth is None:
                    places.append((entry.path, path, None))
                elif depth > 1:
                    places.append((entry.path, path, depth - 1))
            else:
                found.append(FileEntry(path, status.st_size, modified_ms))
    return found


def _walk(filesystem: Any, directory: str, at: str, max_depth: int | None) -> Iterator[FileEntry]:
    """As `_local`, of other file systems. Not by fsspec's walk, to which what it cannot list below is empty."""
    try:
        found = filesystem.ls(directory, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return
    below = None if max_depth is None else max_depth - 1
    for detail in found:
        path = detail["name"].rstrip("/")
        if path == directory:  # a file is all that is in its listing
            continue
        name = path.rpartition("/")[2]
        if detail["type"] == "directory":
            yield FileEntry(f"{at}{name}/", 0, _modified_ms(detail))
            if below != 0:
                yield from _walk(filesystem, path, f"{at}{name}/", below)
        else:
            yield FileEntry(f"{at}{name}", int(detail.get("size") or 0), _modified_ms(detail))


def _objects(location: str, max_depth: int | None) -> Iterator[FileEntry]:
    """The objects below a location, by one listing of all keys; directories are what stands before a slash in a key."""
    filesystem, root = _open(location)
    prefix = len(root.rstrip("/")) + 1
    directories: dict[str, int] = {}
    for path, detail in filesystem.find(root, detail=True).items():
        below = path[prefix:].rstrip("/")
        if not below or not path.startswith(root + "/"):
            continue
        modified_ms = _modified_ms(detail)
        parts = below.split("/")
        for depth in range(1, len(parts) + (detail.get("type") == "directory" or path.endswith("/"))):
            at = "/".join(parts[:depth]) + "/"
            directories[at] = max(directories.get(at, 0), modified_ms)
        if not path.endswith("/") and detail.get("type") != "directory" and _is_within(below, max_depth):
            yield FileEntry(below, int(detail.get("size") or 0), modified_ms)
    for at, modified_ms in directories.items():
        if _is_within(at.rstrip("/"), max_depth):
            yield FileEntry(at, 0, modified_ms)


def _is_within(path: str, max_depth: int | None) -> bool:
    return max_depth is None or path.count("/") < max_depth


def _modified_ms(detail: dict[str, Any]) -> int:
    if (modified_ms := detail.get("modification_time")) is not None:
        return int(modified_ms)
    when = detail.get("mtime") or detail.get("LastModified") or detail.get("last_modified") or 0
    seconds = when.timestamp() if hasattr(when, "timestamp") else float(when)
    return int(seconds * 1000)


@_refusals
def rename(source: str, target: str, *, once: bool = False) -> None:
    """Move a file or directory to a path that is free; one that another call has moved there is as it should be.

    With `once` no other call has: what is at the target is somebody else's. Raises FileExistsError if the target exists
    beside the source, FileNotFoundError if neither exists, or with `once` if the source does not.
    """
    if rename_is_copy(source):
        _move_objects(source, target)
        return
    filesystem, source_path = _open(source)
    _, target_path = _open(target)
    if filesystem.exists(target_path) and filesystem.exists(source_path):
        raise FileExistsError(f"cannot rename {source}: {target} exists already")
    if filesystem.exists(source_path):
        filesystem.makedirs(posixpath.dirname(target_path), exist_ok=True)
        with suppress(*() if once else (FileNotFoundError,)):  # another one has just done it
            filesystem.mv(source_path, target_path, recursive=True)
            return
    if once or not filesystem.exists(target_path):
        raise FileNotFoundError(f"cannot rename {source}: it does not exist")


def _move_objects(source: str, target: str) -> None:
    """Copy all, then remove all; after a kill the same call goes on, as a complete copy has the size of its source."""
    filesystem, source_path = _open(source)
    _, target_path = _open(target)
    sizes = _sizes(filesystem, source_path)
    there = _sizes(filesystem, target_path)
    if not sizes:
        if there:
            return
        raise FileNotFoundError(f"cannot rename {source}: it does not exist")
    if differing := [below for below, size in sizes.items() if there.get(below, size) != size]:
        raise FileExistsError(f"cannot rename {source}: {target}{differing[0]} exists already")
    missing = [below for below in sizes if below not in there]
    if missing:
        filesystem.copy([source_path + below for below in missing], [target_path + below for below in missing])
    _remove_objects(filesystem, [source_path + below for below in sizes])


def _sizes(filesystem: Any, path: str) -> dict[str, int]:
    """Size by what follows `path` in the key: of the object itself, or of all below it."""
    found = filesystem.find(path, detail=True)
    return {key[len(path) :]: int(detail.get("size") or 0) for key, detail in found.items()}


@_refusals
def copy(source: str, target: str, *, share: bool = False) -> None:
    """Copy a file; the directories above the target are made.

    With `share`, for a source that is about to be removed, the copy may be a second name of the same file.
    """
    source_filesystem, source_path = _open(source)
    target_filesystem, target_path = _open(target)
    target_filesystem.makedirs(posixpath.dirname(target_path), exist_ok=True)
    if source_filesystem is not target_filesystem:
        with source_filesystem.open(source_path, "rb") as given, target_filesystem.open(target_path, "wb") as made:
            shutil.copyfileobj(given, made, _COPY_BYTES)
        return
    if share and isinstance(source_filesystem, LocalFileSystem):
        try:
            os.link(source_path, target_path)
        except FileExistsError:
            if not os.path.samefile(source_path, target_path):
                raise
        except OSError:  # another disk, or a file system without second names
            source_filesystem.cp_file(source_path, target_path)
        return
    source_filesystem.cp_file(source_path, target_path)


_REMOVALS = 100
"""So often a directory is begun to be removed, of which others remove parts."""


@_refusals
def remove(location: str) -> bool:
    """Remove a file or a directory with all below it; False if there was nothing.

    Somebody else may remove the same at once: what he has taken first is passed by, and the rest goes.
    """
    filesystem, path = _open(location)
    if is_local(location) and os.path.islink(path):  # what it leads to is somebody's
        os.unlink(path)
        return True
    if rename_is_copy(location) and _is_pattern(path):
        keys = list(filesystem.find(path))
        _remove_objects(filesystem, keys)
        return bool(keys)
    found = False
    for _ in range(_REMOVALS):
        try:
            filesystem.rm(path, recursive=True)
        except FileNotFoundError:  # it, or something below it that was there when it was listed
            if not filesystem.exists(path):
                return found
            found = True
            continue
        return True
    raise OSError(f"{location} is filled, or removed by others, while it is removed")


@_refusals
def remove_empty(location: str) -> bool:
    """Remove a directory with those below it, if no file is in any of them; whether it is gone.

    A file is never removed. Where there are directories, a file that comes meanwhile keeps its own.
    """
    entries = list_tree(location)
    filesystem, path = _open(location)
    is_link = is_local(location) and os.path.islink(path)
    if any(not entry.is_directory for entry in entries) or not filesystem.isdir(path):
        return False
    if is_link or rename_is_copy(location):
        return remove(location)
    for directory in (*(f"{path}/{entry.path}".rstrip("/") for entry in reversed(entries)), path):
        try:
            filesystem.rmdir(directory)
        except FileNotFoundError:
            continue
        except (OSError, RuntimeError):  # something has come there; the latter are HDFS's
            return False
    return True


def _remove_objects(filesystem: Any, keys: Sequence[str]) -> None:
    """Remove objects; one by one where their names look like patterns, of which fsspec would remove all that fit."""
    plain = [key for key in keys if not _is_pattern(key)]
    if plain:
        filesystem.rm(plain)
    for key in keys:
        if _is_pattern(key):
            filesystem.rm_file(key)


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")


@_refusals
def write(location: str, content: bytes) -> None:
    """Write a small file, replacing what is there."""
    filesystem, path = _open(location)
    filesystem.pipe_file(path, content)


@_refusals
def create(location: str) -> Any:
    """A new file, open for writing bytes; the directories above it are made."""
    filesystem, path = _open(location)
    filesystem.makedirs(posixpath.dirname(path), exist_ok=True)
    return filesystem.open(path, "wb")


def let_go(file: Any) -> None:
    """Have nothing more written to a file that the process which forked this one has open."""
    if file.closed:
        return
    try:
        descriptor = file.fileno()
    except (AttributeError, OSError):
        file.close = _nothing  # remote files send what they hold when they are closed, or forgotten
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)  # here alone: the parent's stays what it is
    os.close(nowhere)


def _nothing() -> None:
    """What is done to a file of another process."""


@_refusals
def read(location: str) -> bytes:
    """The content of a small file."""
    filesystem, path = _open(location)
    content: bytes = filesystem.cat_file(path)
    return content


def opened(location: str) -> Any:
    """A file, open for reading bytes anywhere in it; for a ``with`` block."""
    filesystem, path = _open(location)
    return filesystem.open(path, "rb")


def copy_range(location: str, start: int, end: int, target: Any) -> None:
    """Write the bytes from `start` to `end` of a file into `target`, which is open. Raises OSError if it is shorter."""
    with opened(location) as source:
        source.seek(start)
        left = end - start
        while left:
            content = source.read(min(left, _COPY_BYTES))
            if not content:
                raise OSError(f"{location} ends before its byte {end}")
            target.write(content)
            left -= len(content)


def append(location: str, content: bytes) -> None:
    """Add to the end of a file; not safe to repeat."""
    filesystem, path = _open(location)
    with filesystem.open(path, "ab") as file:
        file.write(content)


def read_end(location: str, size: int, length: int) -> bytes:
    """The last `length` bytes of a file of `size` bytes, all of it if it has fewer."""
    filesystem, path = _open(location)
    content: bytes = filesystem.cat_file(path, start=max(0, size - length), end=size)
    return content
