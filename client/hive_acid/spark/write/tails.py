"""Second tails of the files that a job has written: what Spark's writer cannot do, or not fast (`format.orc_patch`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.files import FileEntry
from hive_acid.filesystem.footers import DataFilePath, end_of, uncompressed
from hive_acid.format.names import is_hidden
from hive_acid.format.orc.patch import hive_3_properties, second_tail
from hive_acid.format.orc.tail import read_tail

_DATA = ".orc"

Holds = Callable[[str], bool]
"""Whether the file of a path has delete events."""


def is_readable(compression: str) -> bool:
    """Whether tails of files that are compressed so can be read here: some need pyarrow."""
    return compression in ("zlib", "none") or importlib.util.find_spec("pyarrow") is not None


def add_tails(location: str, row: Sequence[str], holds: Holds | None = None) -> None:
    """Give each data file below `location` a tail in which the columns of `row` are in place, if there are any.

    With `holds`, which says of a file's path whether it has delete events, it also has what Apache Hive 3.1 needs.
    """
    entries = files.list_tree(location)
    found = [entry for entry in entries if entry.path.endswith(_DATA) and not is_hidden(entry.path)]
    files.side_by_side(lambda entry: _add_tail(location, entry, row, holds), found, location)


def _add_tail(location: str, entry: FileEntry, row: Sequence[str], holds: Holds | None) -> None:
    path = files.join(location, entry.path)
    try:
        end = end_of(DataFilePath(path, entry.size))
        tail = read_tail(end, uncompressed) if holds else None
        properties = hive_3_properties(tail, deletes=holds(entry.path)) if tail and holds else None
        added = second_tail(end, row=row, properties=properties, decompress=uncompressed)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    files.append(path, added)
