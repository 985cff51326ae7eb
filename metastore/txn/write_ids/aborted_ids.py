"""The aborted write ids of tables, kept in the server: they change seldom and may be many."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hive_acid.ids import WriteId
from metastore.txn.models import TableWriteIds

TableName = tuple[str, str]

MAX_KEPT_TABLES = 10_000
MAX_KEPT_IDS = 1_000_000


class AbortedIds:
    """The aborted write ids of the tables that were asked for lately, each with its version."""

    def __init__(self) -> None:
        self._kept: dict[TableName, KeptIds] = {}

    def version(self, table: TableName) -> int | None:
        """The version that is kept of a table, None if there is none."""
        kept = self._kept.get(table)
        return None if kept is None else kept.version

    def at(self, table: TableName, version: int, aborted: list[WriteId] | None) -> KeptIds | None:
        """The ids at a version; `aborted` is None where the version is kept, else they are kept from now on.

        None if another call has replaced the version meanwhile.
        """
        if aborted is not None:
            return self._keep(table, KeptIds(version, aborted))
        kept = self._kept.get(table)
        return kept if kept is not None and kept.version == version else None

    def _keep(self, table: TableName, kept: KeptIds) -> KeptIds:
        self._kept.pop(table, None)
        self._kept[table] = kept
        total = sum(len(one.aborted) for one in self._kept.values()) if len(kept.aborted) > 1000 else 0
        while len(self._kept) > MAX_KEPT_TABLES or (total > MAX_KEPT_IDS and len(self._kept) > 1):
            oldest = next(iter(self._kept))
            total -= len(self._kept.pop(oldest).aborted)
        return kept


@dataclass(slots=True)
class KeptIds:
    """The aborted write ids of a table at a version of theirs, and what was last made of them."""

    version: int
    aborted: list[WriteId]
    last: tuple[object, ...] | None = None
    last_shown: TableWriteIds | None = None

    def shown(
        self,
        table: TableName,
        highest: WriteId,
        not_ended: list[WriteId],
        has_valid: bool,
        hidden: Collection[WriteId] = (),
    ) -> TableWriteIds:
        """What a snapshot sees of the table: `not_ended` are no valid writes to it, `hidden` no aborted ones.

        The same object as before if nothing has changed since.
        """
        state = (highest, tuple(not_ended), has_valid, tuple(hidden))
        if self.last_shown is None or state != self.last:
            self.last, self.last_shown = state, self._made(table, highest, not_ended, has_valid, hidden)
        return self.last_shown

    def _made(
        self,
        table: TableName,
        highest: WriteId,
        not_ended: list[WriteId],
        has_valid: bool,
        hidden: Collection[WriteId],
    ) -> TableWriteIds:
        aborted = self.aborted
        if hidden:
            others = set(hidden)
            aborted = [write_id for write_id in aborted if write_id not in others]
        invalid = sorted(not_ended + aborted) if not_ended else aborted
        min_open = not_ended[0] if not_ended else None
        if invalid and not has_valid:  # without any valid write everything from the lowest invalid one on is left out
            highest = invalid[0]
            aborted = [highest] if aborted and aborted[0] == highest else []
            invalid = [highest]
        return TableWriteIds(*table, highest, invalid, aborted, min_open)
