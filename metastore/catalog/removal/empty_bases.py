"""Directories that say "all rows up to here are gone": how a TRUNCATE leaves readers their snapshots.

An empty ``base_W`` under the write id W of a transaction replaces all that is older, for snapshots in which W is
committed; others read on (acid-format.md §4.4). Hive 4 marks such a base by ``_metadata_acid`` alone, which Hive 3
refuses and Trino does not see; a file without rows is understood by all.
"""

from __future__ import annotations

import uuid

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.names import (
    METADATA_MARKER,
    VERSION_CONTENT,
    VERSION_MARKER,
    base_name,
    bucket_file_name,
    staging_name,
)
from hive_acid.format.orc.file import empty_acid_file, empty_file
from hive_acid.ids import TxnId, WriteId
from metastore.catalog.models import Table
from metastore.catalog.place.directories import explained
from metastore.catalog.rules.validation import is_acid_storage
from metastore.filework import files
from metastore.filework.owners import OWNERS

_ORIGINAL_FILE = "000000_0"
_TRUNCATED = b'{"thisFileVersion":"0","dataFormat":"truncated"}'


def write_empty_base(table: Table, location: str, txn_id: TxnId, write_id: WriteId) -> None:
    """Put an empty base into a directory of a transactional table; one that is there already is fine.

    Raises MetaError.
    """
    target = files.join(location, base_name(write_id))
    contents = _contents(table)
    with explained("empty", location):
        if files.exists(target):
            return
        staging = files.join(location, staging_name(txn_id, uuid.uuid4().hex[:12]))
        staged = files.join(staging, base_name(write_id))
        try:
            files.make_directory(staged)
            for name, content in contents.items():
                files.write(files.join(staged, name), content)
            OWNERS.give_tree(staged, location)
            files.rename(staged, target)
        finally:
            files.remove(staging)


def take_back_base(location: str, write_id: WriteId) -> None:
    """Remove the base of a transaction that does not commit. Raises MetaError."""
    with explained("clear", location):
        files.remove(files.join(location, base_name(write_id)))


def _contents(table: Table) -> dict[str, bytes]:
    columns = [(column.name, column.type) for column in table.columns]
    try:
        if table.is_full_acid:
            return {VERSION_MARKER: VERSION_CONTENT, bucket_file_name(0): empty_acid_file(columns)}
        if is_acid_storage(table):
            return {_ORIGINAL_FILE: empty_file(columns)}
    except FormatError as error:
        raise MetaError(f"{table.full_name} cannot be emptied: {error}") from error
    return {METADATA_MARKER: _TRUNCATED}  # of other formats than ORC no file without rows is known here
