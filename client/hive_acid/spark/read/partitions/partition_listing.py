"""Which directories of a table a frame reads: listed when the frame is made, or when it is known which it needs.

A frame of many partitions is often asked for one by `where`, when it has been made. So partitions are listed when they
are read. By then they may have been dropped, and others may have their names and places. The frame knows them by their
ids, and asks the metastore behind the listing: what is there under its id, at its place, or was dropped and is kept for
the frame's transaction, is what the frame was made of. All else is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hive_acid.catalog.calls import CatalogCalls, PartitionPlace
from hive_acid.catalog.table import Table
from hive_acid.errors import HiveAcidError, TableChangedError
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId
from hive_acid.spark.conditions.predicates import Predicate
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.read_plan import LeftOut
from hive_acid.spark.read.listing import PartitionState, TableState, table_state
from hive_acid.spark.read.skipping import chosen_partitions, pruned, with_files_pruned


class Listing(Protocol):
    """A table as a snapshot sees it."""

    @property
    def partitions(self) -> int:
        """How many it has."""

    def names(self, wanted: Predicate | None) -> list[str]:
        """Those of partitions in which some row may be `wanted`."""

    def state(self, wanted: Predicate | None) -> TableState:
        """It without partitions and files in which surely no row is `wanted`."""


@dataclass(frozen=True, slots=True)
class WholeListing:
    """What has been listed of a table, as far as it is `wanted`."""

    found: TableState
    wanted: Predicate | None

    @property
    def partitions(self) -> int:
        """See `Listing`."""
        return len(self.found.partitions)

    def names(self, wanted: Predicate | None) -> list[str]:
        """See `Listing`."""
        return chosen_partitions(self.found.table, [partition.name for partition in self.found.partitions], wanted)

    def state(self, wanted: Predicate | None) -> TableState:
        """See `Listing`."""
        return self.found if wanted == self.wanted else pruned(self.found, wanted)


@dataclass(slots=True)
class PartitionListing:
    """The partitions that a table had when its frame was made, each listed when it is first wanted.

    `write_ids` and `txns` are what the transaction `reader` sees. Safe to share between threads.
    """

    connection: CatalogCalls
    reader: TxnId
    table: Table
    places: Sequence[PartitionPlace]
    write_ids: ValidWriteIdList
    txns: ValidTxnList
    skipping: bool
    limits: Limits
    _found: dict[str, PartitionState] = field(default_factory=dict, init=False)

    @property
    def partitions(self) -> int:
        """See `Listing`."""
        return len(self.places)

    def names(self, wanted: Predicate | None) -> list[str]:
        """See `Listing`."""
        return chosen_partitions(self.table, [place.name for place in self.places], wanted if self.skipping else None)

    def state(self, wanted: Predicate | None) -> TableState:
        """See `Listing`.

        Raises what `table_state` raises, and TableChangedError if the table, or a partition that is to be listed, was
        moved since the frame was made, or dropped and not kept.
        """
        wanted = wanted if self.skipping else None
        names = self.names(wanted)
        if missing := set(names) - self._found.keys():  # two threads may list the same
            self._found.update(self._listed([place for place in self.places if place.name in missing]))
        partitions = tuple(self._found[name] for name in names)
        left_out = LeftOut(partitions=len(self.places) - len(names))
        found = TableState(self.table, self.write_ids, partitions, self.skipping, self.limits, left_out)
        return with_files_pruned(found, wanted)

    def _listed(self, places: Sequence[PartitionPlace]) -> dict[str, PartitionState]:
        locations = {place.name: place.location for place in places}
        try:
            found = table_state(
                self.table,
                locations,
                self.write_ids,
                self.txns,
                only_these=2 * len(places) <= len(self.places),  # of most of a table one listing of all is less
            )
        except (HiveAcidError, ValueError):
            # What somebody has put where the table was makes no sense.
            self._refuse_moved(places, frozenset())
            raise
        self._refuse_moved(places, frozenset(of.name for of in found.partitions if of.is_vacant))
        return {of.name: of for of in found.partitions}

    def _refuse_moved(self, places: Sequence[PartitionPlace], vacant: frozenset[str]) -> None:
        """Raise TableChangedError if what was listed need not be what the frame was made of."""
        now = self.connection.moved(self.table, places, self.reader)
        # Where files are kept for readers, something is.
        gone = now.moved | now.kept & vacant
        if now.table or gone:
            what = self.table.full_name if now.table else f"partition {min(gone)} of {self.table.full_name}"
            raise TableChangedError(
                f"{what} was dropped or moved after a frame was made, and before its rows were looked for: take "
                "acid.table again"
            )
