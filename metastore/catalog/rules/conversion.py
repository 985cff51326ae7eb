"""Making a table transactional that holds data already, its files left as they are (wire.md §5.11).

Readers give each row of such a file an id from the file's name and the row's place. So the names must be Hive's or
Spark's, and new rows begin at a write id that is larger than all that could be read from them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select

from hive_acid.errors import MetaError
from hive_acid.format.names import is_hidden, is_spark_file, parse_bucket_file, parse_original_file
from metastore.catalog.models import Table
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.places import is_below
from metastore.catalog.schema import PARTITION
from metastore.filework import files
from metastore.store.database import Database

CONVERTED_WRITE_ID = 10_000_000
"""The write ids of a converted table begin after it, as Hive has it."""
_TRINO_QUERY = ("trino_query_id", "presto_query_id")


def check_convertible(db: Database, directories: Directories, old: Table, new: Table) -> None:
    """Whether `old`, with the files that it has, can become `new`, which is transactional.

    Raises MetaError for files of other names than Hive or Spark gives, if the table becomes full-ACID, for those of
    Spark in a CLUSTERED table, where the name tells the bucket; if the files cannot be looked at.
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
            if is_hidden(path) or _is_known(path.rpartition("/")[2], is_clustered=bool(new.bucket_columns)):
                continue
            raise MetaError(
                f"{old.full_name} holds data, so it cannot be made transactional: the file {files.join(place, path)} is"
                f" not named as Hive names files, such as 000000_0; {advice}"
            )


def is_written_by_trino(table: Table, paths: Collection[str]) -> bool:
    """Whether a new table is one of Trino's CREATE TABLE AS SELECT, which writes its files before it makes the table.

    It names its query, and all files as they are named that carry no write ids: in no delta, in partitions at most.
    """
    if not any(key in table.parameters for key in _TRINO_QUERY):
        return False
    return all(_is_original(path.split("/"), len(table.partition_keys)) for path in paths if not is_hidden(path))


def _is_original(path: Sequence[str], depth: int) -> bool:
    *directories, name = path
    is_original = parse_original_file(name) is not None
    return is_original and len(directories) == depth and all("=" in part for part in directories)


def _is_known(name: str, *, is_clustered: bool) -> bool:
    if parse_original_file(name) is not None or parse_bucket_file(name) is not None:
        return True
    return is_spark_file(name) and not is_clustered
