"""Making a table transactional that holds data already, its files left as they are (metastore-wire.md §5).

Readers give each row of such a file an id from the number in the file's name and the row's place. So the names must be
Hive's, and new rows begin at a write id that is larger than all that could be read from them.
"""

from __future__ import annotations

from sqlalchemy import select

from hive_acid import files
from hive_acid.errors import MetaError
from hive_acid.format.names import is_hidden, parse_bucket_file, parse_original_file
from metastore.catalog.directories import Directories, is_below
from metastore.catalog.models import Table
from metastore.catalog.schema import PARTITION
from metastore.store.database import Database

CONVERTED_WRITE_ID = 10_000_000
"""The write ids of a converted table begin after it, as Hive has it."""


def check_convertible(db: Database, directories: Directories, old: Table, new: Table) -> None:
    """Whether `old`, with the files that it has, can become `new`, which is transactional.

    Raises MetaError for files of other names than Hive gives, as Spark's, if the table becomes full-ACID; and if the
    files cannot be looked at.
    """
    if not new.is_full_acid:
        return
    advice = "create a transactional table and insert its rows there"
    if not directories.enabled or old.location is None:
        raise MetaError(
            f"{old.full_name} cannot be made transactional: this server does not look at files"
            f" (metastore.filesystem.directories), and their names matter; {advice}"
        )
    query = select(PARTITION.c.location).where(PARTITION.c.table_id == old.id)
    with db.engine.connect() as connection:
        elsewhere = {place for place in connection.execute(query).scalars() if not is_below(place, old.location)}
    for place in (old.location, *sorted(filter(None, elsewhere))):
        for path in directories.files_below(place):
            name = path.rpartition("/")[2]
            if not is_hidden(path) and parse_original_file(name) is None and parse_bucket_file(name) is None:
                raise MetaError(
                    f"{old.full_name} holds data, so it cannot be made transactional: the file"
                    f" {files.join(place, path)} is not named as Hive names files, such as 000000_0; {advice}"
                )
