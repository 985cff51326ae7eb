"""Whether the tables behind a materialised view have only grown since it was made (wire.md §5.16)."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.snapshot import ValidWriteIdList
from metastore.store.database import Database
from metastore.txn.names import split_table

_SEPARATOR = "$"
"""Between the lists of write ids of several tables, in Hive's text of them."""


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """What has happened to the tables of a view: a rebuild by the new rows alone is right only if neither has."""

    updated: bool
    compacted: bool


UNKNOWN = SourceChanges(updated=True, compacted=True)
"""Where it cannot be told: a view is then made anew from all rows, which is always right."""


class Materializations:
    """What materialised views must know of their tables."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def source_changes(self, tables: Collection[str], snapshots: str | None) -> SourceChanges:
        """What has happened to the tables, ``db.table`` each, since the view was made.

        `snapshots` are their write ids at that time as Hive keeps them, ``txn$list$list``, alone or as `validTxnList`
        of a JSON object. Where they do not say enough (no list of a table, one that was made anew meanwhile, tables of
        Iceberg) the answer is `UNKNOWN`.
        """
        lists = _lists(snapshots)
        changes = SourceChanges(updated=False, compacted=False)
        for name in tables:
            seen = lists.get(split_table(name))
            if seen is None:
                return UNKNOWN
            db, table = split_table(name)
            row = self._db.call_one("changes_since", db, table, seen.high_water_mark, list(seen.open_ids))
            assert row is not None
            known, updated, compacted = row
            if not known:
                return UNKNOWN
            changes = SourceChanges(changes.updated or updated, changes.compacted or compacted)
        return changes if tables else UNKNOWN


def _lists(snapshots: str | None) -> dict[tuple[str, str], ValidWriteIdList]:
    """The write ids of each table; none for a text that is not understood."""
    text = snapshots or ""
    if text.lstrip().startswith("{"):
        try:
            told = json.loads(text)
        except ValueError:
            return {}
        text = str(told.get("validTxnList") or "")
        if told.get("tableSnapshots"):
            return {}
    try:
        parsed = [ValidWriteIdList.parse(part) for part in text.split(_SEPARATOR)[1:] if part]
        return {split_table(one.table): one for one in parsed}
    except (FormatError, MetaError):
        return {}
