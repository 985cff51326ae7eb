"""The output of a compaction: checked in its staging directory, then renamed into place, one rename per directory."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from hive_acid.errors import FormatError
from hive_acid.filesystem.footers import DataFilePath, Footers
from hive_acid.format.key_order import disorder
from hive_acid.format.names import (
    COMPACTED_CONTENT,
    METADATA_MARKER,
    VERSION_CONTENT,
    VERSION_MARKER,
    is_hidden,
    parse_bucket_file,
    parse_directory,
    parse_original_file,
)
from metastore.filework import files
from metastore.filework.owners import OWNERS


def check_output(staging: str, outputs: Sequence[str], *, insert_only: bool = False) -> None:
    """Whether below `staging` are the complete directories `outputs` and no others.

    Raises FormatError for a directory that is missing, not asked for, without files or marker, or with two files of one
    bucket (acid-format.md §3.3). Directories of an `insert_only` table have neither buckets nor a marker.
    """
    contents: dict[str, list[tuple[str, int]]] = {}
    for entry in files.list_tree(staging):
        top, _, below = entry.path.partition("/")
        contents.setdefault(top, [])
        if below and not entry.is_directory:
            contents[top].append((below, entry.size))
    unexpected = [name for name in contents if parse_directory(name) is not None and name not in outputs]
    if unexpected:
        raise FormatError(f"the compaction made {unexpected[0]}, which nobody asked for")
    for name in outputs:
        if name not in contents:
            raise FormatError(f"the compaction did not make {name}")
        location = files.join(staging, name)
        if insert_only:
            _check_rows(name, contents[name])
        else:
            _check_directory(location, name, contents[name])


def _check_directory(location: str, name: str, contents: list[tuple[str, int]]) -> None:
    buckets: set[int] = set()
    for path, size in contents:
        if is_hidden(path):
            continue
        bucket = parse_bucket_file(path)
        if bucket is None:
            raise FormatError(f"the compaction made {name}/{path}, which is no bucket file")
        if bucket in buckets:
            raise FormatError(f"the compaction made two files for bucket {bucket} in {name}")
        if size == 0:
            raise FormatError(f"the compaction left {name}/{path} empty, not even an ORC file without rows")
        buckets.add(bucket)
    if not buckets:
        raise FormatError(f"the compaction made {name} without any bucket file: readers would not see it")
    if VERSION_MARKER not in (path for path, _ in contents):
        raise FormatError(f"the compaction made {name} without {VERSION_MARKER}")
    if files.read(files.join(location, VERSION_MARKER)) != VERSION_CONTENT:
        raise FormatError(f"{name}/{VERSION_MARKER} does not say {VERSION_CONTENT.decode()}")


def _check_rows(name: str, contents: list[tuple[str, int]]) -> None:
    """Of an insert-only table: files, named as Hive names them."""
    found = [path for path, _ in contents if not is_hidden(path)]
    if not found:
        raise FormatError(f"the compaction made {name} without any file: readers would not see it")
    if odd := [path for path in found if parse_original_file(path.partition(".")[0]) is None]:
        raise FormatError(f"the compaction made {name}/{odd[0]}, which is not named as files of insert-only tables are")


def check_tails(staging: str, outputs: Sequence[str], events: int, compression: str) -> None:
    """Whether the tails of the files below `staging` are those of what was asked for: of `events` in all, sorted as far
    as statistics tell (that is from stripe to stripe), each in the file of its bucket.

    Raises FormatError for a file that is not. Nothing is looked at if files of this `compression` cannot be read here.
    """
    if compression not in ("zlib", "none") and importlib.util.find_spec("pyarrow") is None:
        return
    counted = 0
    for name in outputs:
        location = files.join(staging, name)
        wanted = [entry for entry in files.list_tree(location) if not entry.is_directory and not is_hidden(entry.path)]
        tails = Footers().read([DataFilePath(files.join(location, entry.path), entry.size) for entry in wanted])
        for entry, tail in zip(wanted, tails, strict=True):
            counted += tail.rows
            if reason := disorder(tail, parse_bucket_file(entry.path)):
                raise FormatError(f"the compaction made {name}/{entry.path}, in which {reason}")
    if counted != events:
        raise FormatError(f"the compaction says that it wrote {events} rows and delete events, and {counted} are there")


def mark_compacted_base(directory: str) -> None:
    """Say as Hive before version 4 does that a base, which bears no transaction's number, is a compaction's result."""
    files.write(files.join(directory, METADATA_MARKER), COMPACTED_CONTENT)


def publish_output(staging: str, location: str, outputs: Sequence[str]) -> None:
    """Rename the checked directories into place; safe to repeat.

    Inserts come first: an engine that ignores visibility may see deleted rows for a moment, but misses none.
    """
    for name in outputs:
        OWNERS.give_tree(files.join(staging, name), location)
        files.rename(files.join(staging, name), files.join(location, name))
    files.remove(staging)


def remove_output(staging: str, location: str, outputs: Sequence[str]) -> None:
    """Remove all that a compaction made; only if its transaction does not commit. Safe to repeat.

    Their names carry the number of the transaction, so nothing of anybody else is met.
    """
    for name in outputs:
        files.remove(files.join(location, name))
    files.remove(staging)
