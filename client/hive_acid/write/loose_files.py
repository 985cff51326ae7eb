"""Files of plain tables: any names, in the directories of the table and its partitions, seen as soon as they are there.

New ones come whole, by a rename each. Those that they replace go only when all of the new ones are in place: who is
killed in between leaves rows twice, and none is lost.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.names import is_hidden
from hive_acid.format.properties import ACCURATE
from hive_acid.write.staging import Staging


def new_names(paths: Sequence[str]) -> list[str]:
    """Names for files that a table takes in: nobody else's, with the endings that tell readers how to unpack them."""
    token = uuid.uuid4().hex
    return [f"{number:06d}-{token}{os.path.splitext(path)[1]}" for number, path in enumerate(paths)]


def put(staging: Staging, made: Iterable[tuple[str, str]]) -> None:
    """Move the files of directories below `staging` to their places; pairs of the two."""
    found = [
        (files.join(ready, entry.path), files.join(place, entry.path))
        for ready, place in made
        for entry in files.list_tree(ready, max_depth=1)
        if not entry.is_directory and not is_hidden(entry.path)
    ]
    files.side_by_side(lambda pair: staging.put(*pair), found, staging.location)


def files_in(table: Table, places: Iterable[str]) -> list[str]:
    """All files in some directories of a table, by their paths; sums of Hadoop's for them, too.

    Raises UnsupportedTableError for another directory among them: whose rows it has, nobody knows.
    """
    found: list[str] = []
    wanted = list(dict.fromkeys(places))
    for place, entries in zip(wanted, files.list_trees(wanted, max_depth=1), strict=True):
        if within := next((one.path for one in entries if one.is_directory and not is_hidden(one.path)), None):
            raise UnsupportedTableError(
                f"{table.full_name} has the directory {within} in {place}, where files should be: an overwrite does "
                "not know whose it is. Move it elsewhere, or remove it"
            )
        shown = {entry.path for entry in entries if not is_hidden(entry.path)}
        taken = shown | {f".{path}.crc" for path in shown}
        found += [files.join(place, entry.path) for entry in entries if entry.path in taken]
    return found


def outdate(connection: Connection, table: Table, wire: Any, partitions: Mapping[str, str]) -> None:
    """Have nobody take the numbers of rows that the metastore has for those that there are: Hive answers from them."""
    if ACCURATE in (wire.parameters or {}):
        wire.parameters = {key: value for key, value in wire.parameters.items() if key != ACCURATE}
        connection.call("alter_table", table.database, table.name, wire)
    names = list(partitions)
    for first in range(0, len(names), 1000):
        some = names[first : first + 1000]
        stale = [
            one
            for one in connection.call("get_partitions_by_names", table.database, table.name, some)
            if ACCURATE in (one.parameters or {})
        ]
        for one in stale:
            one.parameters = {key: value for key, value in one.parameters.items() if key != ACCURATE}
        if stale:
            connection.call("alter_partitions", table.database, table.name, stale)
