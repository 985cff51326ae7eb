"""Orphans: what lies in the places of tables though no transaction can ever make it visible; found, told and removed.

The order makes it safe: places are listed first, and what is known of transactions and write ids is asked afterwards.
What was there at the listing had its ids given out before, so an id that is unknown then was never given out, and an
open transaction is seen as open. Ids are not used twice, so what is an orphan now stays one; only a table that is made
anew begins again, hence a second look before each removal. One young file keeps its whole directory.

What is certain is removed when the caller asks for removal; what may be somebody's (`orphan_rules`) only when that is
asked for, too. Removals can be repeated and killed at any point.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hive_acid.errors import HiveAcidError, NoSuchObjectError
from hive_acid.ids import TxnId
from metastore.compaction.cleaner.orphan_rules import (
    Evidence,
    Judgement,
    Reason,
    Survey,
    Unit,
    judge_data,
    judge_hidden,
    judge_place,
    lost_partitions,
)
from metastore.compaction.listings import listed
from metastore.compaction.models import Catalogue, TableInfo
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.filework import files

log = logging.getLogger(__name__)
_REPLICATION = ("repl.last.id", "hive.repl.first.inc.pending", "hive.repl.ckpt.key")
"""Properties of tables and databases whose files a replication brings."""
_ASKED_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Orphan:
    """A directory that nobody needs: bytes and number of its files, and its last change in ms since 1970."""

    location: str
    size: int
    files: int
    modified_ms: int
    reason: Reason
    why: str
    is_certain: bool
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to look for, and what to do with it: nothing changed less than `older_than_ms` ago is as much as told."""

    older_than_ms: int
    remove: bool = False
    uncertain: bool = False


Step = tuple[str, Orphan | None]
"""What was looked at, from where the next call goes on (`after`), and the orphan that it is if it is one."""


class Warehouse(Protocol):
    """What the search asks the catalogue beyond `Catalogue`; locations are in the stored form."""

    def homes(self) -> list[str]:
        """The directories in which those of tables are made, in order: the warehouse's, and those of all databases.

        What lies right in the root of a file system, other than the warehouse, is not ours: such a home is left out.
        """

    def in_use(self, places: Sequence[str], inside: str | None = None) -> set[str]:
        """Those of the places of which the catalogue knows something, or in whose data they may be.

        They may be in databases, and in the table `inside` (``database.table``).
        """

    def has_imports(self) -> bool:
        """Whether tables have come from another metastore, which may know ids that are unknown here."""

    def remove_unknown(self, location: str, inside: str | None = None) -> bool:
        """Remove a directory unless it is in use, as `in_use` has it; whether it is gone."""


class Orphans:
    """Finds orphans, and removes them."""

    def __init__(
        self, service: CompactionService, snapshots: Snapshots, catalogue: Catalogue, warehouse: Warehouse
    ) -> None:
        self._service = service
        self._snapshots = snapshots
        self._catalogue = catalogue
        self._warehouse = warehouse

    def of_table(self, db: str, name: str, sweep: Sweep, after: str = "") -> Iterator[Step]:
        """The orphans of an ACID table, by location; none of other tables. Each is removed when it is asked for.

        Raises NoSuchObjectError, and LocationUnreachableError or OSError for a place that cannot be looked at.
        """
        table = self._catalogue.table(db, name)
        if table is None:
            raise NoSuchObjectError(f"table {db}.{name} does not exist")
        if not table.is_transactional:
            return
        survey = Survey.of(listed(table.location))
        elsewhere = {place: Survey.of(listed(place)) for place in self._places_outside(db, name, table)}
        # Asked after the listings, see above. What is a partition by now is none that was lost.
        known = self._partition_paths(db, name, table)
        evidence = self._evidence(db, name, table)
        found = list(self._in_place(table.location, survey, evidence, {"", *known}, sweep))
        for place, its_survey in elsewhere.items():
            found += self._in_place(place, its_survey, evidence, {""}, sweep)
        if table.partition_keys:
            found += self._lost_partitions(f"{db}.{name}", table, survey, evidence, known, sweep)
        for orphan in sorted(found, key=lambda orphan: orphan.location):
            if orphan.location > after:
                yield orphan.location, self._removed(orphan, sweep, lambda one: self._remove(one, db, name, table))

    def of_warehouse(self, sweep: Sweep, after: str = "") -> Iterator[Step]:
        """Directories beside those of tables that the catalogue does not know, such as what is left of dropped ones.

        Each is looked at, and removed, when it is asked for.
        """
        last_home, _, last_place = after.partition("\n")
        for home in self._warehouse.homes():
            if home < last_home:
                continue
            top = files.list_tree(home, max_depth=1)
            names = [entry.path.rstrip("/") for entry in top if entry.is_directory]
            places = sorted(files.join(home, name) for name in names if not name.startswith(("_", ".")))
            places = [place for place in places if home > last_home or place > last_place]
            for start in range(0, len(places), _ASKED_TOGETHER):
                batch = places[start : start + _ASKED_TOGETHER]
                in_use = self._warehouse.in_use(batch)
                for place in batch:
                    orphan = None if place in in_use else _leftover(place, sweep)
                    step = f"{home}\n{place}"
                    yield step, None if orphan is None else self._removed(orphan, sweep, self._remove_unknown)

    # --- what is known -----------------------------------------------------------------------------

    def _evidence(self, db: str, name: str, table: TableInfo) -> Evidence:
        txns = self._snapshots.txns()
        write_ids = self._service.writes(db, name, TxnId(txns.high_water_mark))
        properties = {key.lower() for key in (*table.parameters, *table.database_parameters)}
        is_replica = any(key in properties for key in _REPLICATION)
        return Evidence(txns, write_ids, is_replica or self._warehouse.has_imports())

    def _places_outside(self, db: str, name: str, table: TableInfo) -> list[str]:
        """The locations of partitions that are not below the table's."""
        if not table.partition_keys:
            return []
        found = self._catalogue.partition_locations(db, name)
        return [place for place in found if not files.is_below(place, table.location)]

    def _partition_paths(self, db: str, name: str, table: TableInfo) -> set[str]:
        """The paths of the other partitions, relative to the table's location."""
        if not table.partition_keys:
            return set()
        found = self._catalogue.partition_locations(db, name)
        root = len(table.location.rstrip("/")) + 1
        return {place[root:].rstrip("/") for place in found if files.is_below(place, table.location)}

    # --- finding -----------------------------------------------------------------------------------

    def _in_place(
        self, location: str, survey: Survey, evidence: Evidence, places: Collection[str], sweep: Sweep
    ) -> Iterator[Orphan]:
        """Orphans right in the places (relative paths) below a location."""
        kinds: tuple[tuple[dict[str, Unit], Callable[[str, Evidence], Judgement | None]], ...] = (
            (dict(survey.hidden), judge_hidden),
            (dict(survey.data), judge_data),
        )
        for units, judge in kinds:
            for path, unit in units.items():
                above, _, own = path.rpartition("/")
                if above in places and _is_old(unit, sweep) and (judgement := judge(own, evidence)) is not None:
                    yield _orphan(files.join(location, path), unit, judgement)

    def _lost_partitions(
        self,
        full_name: str,
        table: TableInfo,
        survey: Survey,
        evidence: Evidence,
        known: Collection[str],
        sweep: Sweep,
    ) -> list[Orphan]:
        lost = {
            files.join(table.location, path): (path, unit)
            for path, unit in lost_partitions(survey, table.partition_keys, known).items()
            if _is_old(unit, sweep)
        }
        in_use = self._warehouse.in_use(list(lost), full_name)
        return [
            _orphan(place, unit, judgement)
            for place, (path, unit) in lost.items()
            if place not in in_use and (judgement := judge_place(path, unit, evidence)) is not None
        ]

    # --- removing ----------------------------------------------------------------------------------

    def _removed(self, orphan: Orphan, sweep: Sweep, remove: Callable[[Orphan], bool]) -> Orphan:
        """The orphan as it is afterwards; what is not to be removed, or cannot be, is told as it is."""
        if not (sweep.remove and (orphan.is_certain or sweep.uncertain)):
            return orphan
        try:
            is_gone = remove(orphan)
        except (HiveAcidError, OSError) as error:
            return replace(orphan, why=f"{orphan.why}; it cannot be removed: {error}")
        if is_gone:
            log.info("removed the orphan %s: %s", orphan.location, orphan.why)
        return replace(orphan, is_removed=is_gone)

    def _remove(self, orphan: Orphan, db: str, name: str, seen: TableInfo) -> bool:
        if orphan.reason is Reason.PARTITION:
            return self._remove_unknown(orphan, f"{db}.{name}")
        now = self._catalogue.table(db, name)
        if now is None or now.location != seen.location:
            return False
        # A table made anew at the same place has new files of the same names, under ids that are given out again.
        own = orphan.location.rpartition("/")[2]
        evidence = self._evidence(db, name, now)
        if judge_hidden(own, evidence) is None and judge_data(own, evidence) is None:
            return False
        files.remove(orphan.location)
        return True

    def _remove_unknown(self, orphan: Orphan, inside: str | None = None) -> bool:
        """Remove what the catalogue does not know; it looks again, and who makes something there waits meanwhile."""
        return self._warehouse.remove_unknown(orphan.location, inside) and not files.exists(orphan.location)


def _leftover(place: str, sweep: Sweep) -> Orphan | None:
    """A directory of which the catalogue knows nothing, None if there is nothing in it that is old enough."""
    entries = files.list_tree(place)
    whole = Unit()
    for entry in entries:
        whole.add(entry)
    if not entries or not _is_old(whole, sweep):
        return None
    survey = Survey.of(entries)
    what = "what is left of an ACID table" if survey.data else "a directory"
    why = f"{what} that is not in the catalogue"
    return _orphan(place, whole, Judgement(Reason.TABLE, why, is_certain=False))


def _is_old(unit: Unit, sweep: Sweep) -> bool:
    return unit.modified_ms <= time.time() * 1000 - sweep.older_than_ms


def _orphan(location: str, unit: Unit, judgement: Judgement) -> Orphan:
    return Orphan(
        location, unit.size, unit.files, unit.modified_ms, judgement.reason, judgement.why, judgement.is_certain
    )
