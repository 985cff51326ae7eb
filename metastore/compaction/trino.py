"""Changes by Trino are refused on tables that it would damage (acid-format.md §2.8).

Trino puts delete events for rows of any bucket into the file of bucket 0, where neither it nor Hive looks for them: the
rows come back. A table whose rows all lie in bucket 0 is safe. Trino is known by its query id, which it sends as the
agent of a lock request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.state import directory_state
from metastore.compaction.models import Catalogue, TableInfo
from metastore.compaction.snapshots import Snapshots
from metastore.filework import files

_REMEMBERED = 10_000
"""Tables found safe that are remembered at most."""

_QUERY_ID = re.compile(r"\d{8}_\d{6}_\d{5}_[a-z0-9]{5}")


def is_trino(agent_info: str | None) -> bool:
    """Whether a lock request comes from Trino."""
    return agent_info is not None and _QUERY_ID.fullmatch(agent_info) is not None


class TrinoGuard:
    """Looks at the files of tables that Trino wants to change; blocking, for worker threads."""

    def __init__(self, catalogue: Catalogue, snapshots: Snapshots) -> None:
        self._catalogue = catalogue
        self._snapshots = snapshots
        self._safe: dict[tuple[str, str], int] = {}

    def check(self, db: str, table: str) -> None:
        """Raise MetaError if rows of the table lie in buckets above 0.

        A table that was found safe is not looked at again until somebody has written to it.
        """
        info = self._catalogue.table(db, table)
        if info is None or not info.is_full_acid:
            return
        txns = self._snapshots.txns()
        write_ids = self._snapshots.write_ids(db, table, txns)
        settled = write_ids.high_water_mark if not write_ids.open_ids else None
        if settled is not None and self._safe.get((db, table)) == settled:
            return
        for location in self._locations(info, db, table):
            try:
                state = directory_state(
                    files.list_tree(location),
                    write_ids,
                    txns,
                    lambda path, at=location: files.read(files.join(at, path)),
                )
            except FormatError:  # then nobody can read it, Trino neither
                continue
            found = [*state.originals, *(file for directory in state.data for file in directory.files)]
            if above := next((file.path for file in found if file.bucket), None):
                raise MetaError(
                    f"Trino may not UPDATE, DELETE or MERGE {db}.{table}: it would lose its deletes of rows in buckets "
                    f"above 0, such as those in {files.join(location, above)}. Move all rows into one bucket (ALTER "
                    "TABLE ... COMPACT 'rebalance' CLUSTERED INTO 1 BUCKETS) and set the table's property "
                    "hive_acid.layout=statements, so that hive-acid keeps them there; or change the rows with Hive or "
                    "hive-acid. metastore.lock.refuse.trino=false lets Trino do it all the same"
                )
        if settled is not None:
            if len(self._safe) >= _REMEMBERED:
                self._safe.clear()
            self._safe[db, table] = settled

    def _locations(self, info: TableInfo, db: str, table: str) -> Iterator[str]:
        if not info.partition_keys:
            yield info.location
            return
        for name in self._catalogue.partition_names(db, table):
            if location := self._catalogue.partition(db, table, name):
                yield location
