"""Rows that lie where a partition is about to be: readers would see them as soon as it is there.

Somebody has given the partition another place and copied its files, or dropped it and let them lie. Nobody knows
whether they are to come back.
"""

from __future__ import annotations

from collections.abc import Mapping

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import FormatError, NotEnoughHistoryError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.names import is_hidden
from hive_acid.format.orc.tail import read_tail
from hive_acid.format.state import DataFile, directory_state
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction

_EMPTY_BELOW = 1024 * 1024
"""Files that have no row have fewer bytes, however many columns they have."""


def refuse_left_rows(connection: Connection, table: Table, places: Mapping[str, str]) -> None:
    """Raise UnsupportedTableError if rows lie at one of the `places`, by the names of partitions that are not there.

    One that somebody else has added meanwhile, with rows of his, is there.
    """
    listed = zip(places, files.list_trees([*places.values()], max_depth=1), strict=True)
    used = [name for name, entries in listed if any(not is_hidden(entry.path) for entry in entries)]
    if not used:
        return
    with connection.begin(TransactionKind.READ) as transaction:
        left = [name for name in used if _has_rows(transaction, table, places[name])]
    there = connection.partitions_named(table, left) if left else {}
    for name in left:
        if name not in there:
            raise UnsupportedTableError(
                f"{places[name]} has rows of {table.full_name}, though there is no partition {name}: they would come "
                "back with the new ones. Move the files elsewhere; ADD PARTITION with their location takes them in if "
                "they are to stay"
            )


def _has_rows(transaction: Transaction, table: Table, location: str) -> bool:
    """Whether a reader of now would see rows in a directory, as far as can be told."""
    write_ids = transaction.write_ids(table.database, table.name)

    def metadata(path: str) -> bytes:
        return files.read(files.join(location, path))

    try:
        state = directory_state(files.list_tree(location), write_ids, transaction.snapshot, metadata)
        found = [*state.originals, *(file for directory in state.data for file in directory.files)]
        return any(_has_rows_of_its_own(location, file) for file in found)
    except (FormatError, NotEnoughHistoryError):  # of another format, say
        return True


def _has_rows_of_its_own(location: str, file: DataFile) -> bool:
    """Whether a file has rows. Those without are small: a truncation, or a drop beside readers, leaves such bases."""
    return file.size > _EMPTY_BELOW or read_tail(files.read(files.join(location, file.path))).rows > 0
