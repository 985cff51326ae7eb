"""When a table or partition needs a compaction, and of which type: pure functions (transactions.md §4.4, §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.format.state import DirectoryState
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import TableInfo
from metastore.compaction.states import CompactionType
from metastore.settings import SettingError

_OVERRIDE = "compactorthreshold."
_NO_AUTO_COMPACTION = "no_auto_compaction"
_NO_CLEANUP = "no_cleanup"
_POOL = "hive.compactor.worker.pool"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """More than `deltas` deltas are compacted; into the base if their bytes are more than `part_of_base` of its."""

    deltas: int
    part_of_base: float

    @classmethod
    def of(cls, config: CompactionConfig, parameters: Mapping[str, str]) -> Thresholds:
        """The configured ones, or the table's own: ``compactorthreshold.`` before the name of a setting.

        Raises SettingError for a value that is no number.
        """
        own = {key.lower(): value for key, value in parameters.items() if key.lower().startswith(_OVERRIDE)}
        try:
            return cls(
                int(own.get(_OVERRIDE + "hive.compactor.delta.num.threshold", config.delta_num_threshold)),
                float(own.get(_OVERRIDE + "hive.compactor.delta.pct.threshold", config.delta_pct_threshold)),
            )
        except ValueError as error:
            raise SettingError(f"a table parameter {_OVERRIDE}* has an unfit value: {error}") from error


def compaction_needed(state: DirectoryState, thresholds: Thresholds) -> CompactionType | None:
    """The type of compaction that a directory in this state needs, None if it needs none."""
    deltas = state.insert_deltas + state.delete_deltas
    delta_bytes = sum(delta.size for delta in deltas)
    base_bytes = state.base.size if state.base else sum(file.size for file in state.originals)
    if base_bytes:
        if delta_bytes > thresholds.part_of_base * base_bytes:
            return CompactionType.MAJOR
        if not delta_bytes and any(name.startswith("base_") for name in state.obsolete):
            return CompactionType.MAJOR
    if len(deltas) <= thresholds.deltas:
        return None
    return CompactionType.MINOR if base_bytes else CompactionType.MAJOR


def is_automatic(table: TableInfo) -> bool:
    """Whether the Initiator may queue compactions of a table; a value at the database wins over the table's."""
    return not _flag(table, _NO_AUTO_COMPACTION)


def may_be_cleaned(table: TableInfo) -> bool:
    """Whether the Cleaner may remove files of a table."""
    return not _flag(table, _NO_CLEANUP)


def pool_of(table: TableInfo) -> str | None:
    """The pool of workers that a table, or else its database, names."""
    return table.parameters.get(_POOL) or table.database_parameters.get(_POOL) or None


def _flag(table: TableInfo, key: str) -> bool:
    for parameters in (table.database_parameters, table.parameters):
        for name, value in parameters.items():
            if name.lower() == key:
                return value.strip().lower() == "true"
    return False
