"""Which partitions of a table need a compaction: what ALTER TABLE … COMPACT of a whole partitioned table asks itself.

The Initiator's thresholds (transactions.md §4.5), of the metastore's settings or the table's own parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError
from hive_acid.filesystem import files
from hive_acid.format.state import DirectoryState, directory_state
from hive_acid.transactions.states import TransactionKind

_DELTAS = "hive.compactor.delta.num.threshold"
_PART_OF_BASE = "hive.compactor.delta.pct.threshold"
_OVERRIDE = "compactorthreshold."


@dataclass(frozen=True, slots=True)
class Thresholds:
    """More than `deltas` deltas are too many, and so are deltas of more than `part_of_base` of the base's bytes."""

    deltas: int
    part_of_base: float

    @classmethod
    def of(cls, connection: Connection, table: Table) -> Thresholds:
        """Those of a table. Raises ColumnError for a parameter that is no number."""
        own = {key.lower(): value for key, value in table.parameters.items() if key.lower().startswith(_OVERRIDE)}
        found = [
            own.get(_OVERRIDE + key) or connection.call("get_config_value", key, default)
            for key, default in ((_DELTAS, "10"), (_PART_OF_BASE, "0.1"))
        ]
        try:
            return cls(int(found[0]), float(found[1]))
        except ValueError as error:
            raise ColumnError(f"a parameter {_OVERRIDE}* of {table.full_name} has an unfit value: {error}") from error


def partitions_in_need(
    connection: Connection, table: Table, locations: Mapping[str, str], thresholds: Thresholds
) -> dict[str, str | None]:
    """Each partition (name to location) with why it needs no compaction; None for one that does."""
    found: dict[str, str | None] = {}
    with connection.begin(TransactionKind.READ, tables=[table.full_name]) as transaction:
        write_ids = transaction.write_ids(table.database, table.name)
        for name, location in locations.items():
            entries = files.list_tree(location)
            state = directory_state(
                entries, write_ids, transaction.snapshot, lambda path, at=location: files.read(files.join(at, path))
            )
            found[name] = why_not(state, thresholds)
    return found


def why_not(state: DirectoryState, thresholds: Thresholds) -> str | None:
    """Why a directory in this state needs no compaction, with the figures; None if it needs one."""
    deltas = state.insert_deltas + state.delete_deltas
    delta_bytes = sum(delta.size for delta in deltas)
    base_bytes = state.base.size if state.base else sum(file.size for file in state.originals)
    is_large = bool(base_bytes) and delta_bytes > thresholds.part_of_base * base_bytes
    holds_old_base = bool(base_bytes) and not delta_bytes and any(name.startswith("base_") for name in state.obsolete)
    if len(deltas) > thresholds.deltas or is_large or holds_old_base:
        return None
    return (
        f"{len(deltas)} deltas of {delta_bytes} bytes on {base_bytes} bytes: no more than {thresholds.deltas} deltas, "
        f"nor {thresholds.part_of_base:g} of the base; name the partition to compact it all the same"
    )
