"""The Cleaner: removes files that nobody can need any more (transactions.md §4.8 to §4.10, acid-format.md §6.5).

What goes, and why nobody needs it:

1. What a compaction replaced, once every transaction has ended that was opened before the compaction's commit. All that
   are left see its output. The Cleaner looks through the eyes of that moment: transactions up to the commit, write ids
   up to the compaction's highest. What it finds obsolete is so for all who come later.
2. Directories with data of aborted transactions alone: nobody ever reads them.
3. Staging directories of aborted transactions, and old ones of others that have ended.
4. The directories of tables and partitions dropped by a transaction that readers need not notice (SOFT_DELETE), when
   all that were opened before its commit have ended. The property trash says where those go that can be brought back.

The record of an aborted transaction goes last, after its files: without it they would count as committed. Directories
are removed whole and in any order, and every step can be repeated, so the Cleaner can be killed at any time.

With several servers one Cleaner is at work, under the lease on services. What it changes in the database is fenced by
that; a removal of files cannot be, so the lease is asked after right before each directory. One that is paused in
just that moment, and wakes up when another server has taken over, removes what the other one would remove too: it is
garbage for everybody for ever, since write ids and transaction ids in names are not used twice. Only a table that is
dropped and made again at the same place in that moment begins them anew; hence a question for each directory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hive_acid import files
from hive_acid.errors import FormatError, HiveAcidError
from hive_acid.files import FileEntry
from hive_acid.format.names import Kind, claims_to_be_data, is_hidden, parse_directory, parse_staging
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DirectoryState, directory_state
from hive_acid.ids import CompactionId, TxnId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import Catalogue, Compaction, TableInfo, target_name
from metastore.compaction.policy import may_be_cleaned
from metastore.compaction.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionState

log = logging.getLogger(__name__)
DROPPED_LOCATION = "location"
"""The property by which a drop names the directory that remains of a table or partition."""
DROPPED_TRASH = "trash"
"""The property that says where it goes instead of being removed."""


@dataclass(slots=True)
class CleanerRun:
    """What one run did: locations removed, compactions that succeeded by it, targets that failed with the reason."""

    removed: list[str] = field(default_factory=list)
    cleaned: list[CompactionId] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class Cleaner:
    """Removes what compactions replaced and what aborted transactions left."""

    def __init__(
        self,
        service: CompactionService,
        snapshots: Snapshots,
        catalogue: Catalogue,
        config: CompactionConfig,
        check_lease: Callable[[], None] = lambda: None,
    ) -> None:
        """`check_lease` raises what is no HiveAcidError when this Cleaner may not remove files any more."""
        self._service = service
        self._snapshots = snapshots
        self._catalogue = catalogue
        self._config = config
        self._check_lease = check_lease

    def run_once(self) -> CleanerRun:
        """Clean all there is to clean now; a failure concerns its own table or partition only."""
        run = CleanerRun()
        for compaction in self._service.to_clean():
            self._attempt_compaction(compaction, run)
        if self._config.clean_aborts:
            for db, table, partition in self._service.aborts_to_clean():
                self._attempt_aborts(db, table, partition, run)
        return run

    # --- after compactions -------------------------------------------------------------------------

    def _attempt_compaction(self, compaction: Compaction, run: CleanerRun) -> None:
        try:
            self._service.clean_started(compaction.id)
            if self._clean_compaction(compaction, run):
                run.cleaned.append(compaction.id)
        except (HiveAcidError, OSError) as error:
            message = str(error)
            run.failed[compaction.target] = message
            state = self._service.clean_failed(compaction.id, message)
            outlook = "given up" if state is CompactionState.FAILED else "tried again later"
            log.warning(
                "cleaning after compaction %d of %s: %s (%s)", compaction.id, compaction.target, message, outlook
            )

    def _clean_compaction(self, compaction: Compaction, run: CleanerRun) -> bool:
        dropped = compaction.properties.get(DROPPED_LOCATION)
        if dropped is not None:
            self._check_lease()
            is_gone = self._catalogue.remove_dropped(dropped, compaction.properties.get(DROPPED_TRASH))
            if is_gone:
                run.removed.append(dropped)
            # A partition that is there again shares the directory, where an empty base covers what was dropped.
            if is_gone or compaction.partition is None or compaction.highest_write_id is None:
                self._service.mark_cleaned(compaction.id)
                if compaction.partition is None:
                    self._catalogue.forget_dropped(compaction.db, compaction.table)
                return True
        table = self._catalogue.table(compaction.db, compaction.table)
        location = self._location(compaction.db, compaction.table, compaction.partition, table)
        if table is None or location is None:
            self._service.mark_cleaned(compaction.id)
            return True
        if not may_be_cleaned(table):
            self._service.mark_refused(compaction.id, "the table or its database says no_cleanup")
            return False
        assert compaction.next_txn_id is not None
        now = self._snapshots.txns()
        txns = now.up_to(compaction.next_txn_id)
        write_ids = self._service.writes(compaction.db, compaction.table, compaction.next_txn_id)
        if compaction.highest_write_id is not None:
            write_ids = write_ids.for_cleaner(compaction.highest_write_id)
        entries = files.list_tree(location)
        self._remove_staging(location, entries, now, run)
        if compaction.partition is not None:  # writers stage at the table, for all partitions
            self._remove_staging(table.location, files.list_tree(table.location, max_depth=1), now, run)
        state = _state(location, entries, write_ids, txns)
        self._remove(location, (*state.aborted, *state.obsolete), run)
        entries = files.list_tree(location)
        state = _state(location, entries, write_ids, txns)
        if state.obsolete or state.aborted:
            left = ", ".join((*state.obsolete, *state.aborted))
            raise FormatError(f"still there after they were removed: {left}")
        self._service.mark_cleaned(compaction.id, _ids_in_files(entries, write_ids))
        log.info("cleaned after compaction %d of %s", compaction.id, compaction.target)
        return True

    # --- after aborted transactions ----------------------------------------------------------------

    def _attempt_aborts(self, db: str, table: str, partition: str | None, run: CleanerRun) -> None:
        try:
            self._clean_aborts(db, table, partition, run)
        except (HiveAcidError, OSError) as error:
            target = target_name(db, table, partition)
            run.failed[target] = str(error)
            self._service.abort_clean_failed(db, table, partition, str(error))
            log.warning("cleaning up after aborted transactions on %s, tried again later: %s", target, error)

    def _clean_aborts(self, db: str, table_name: str, partition: str | None, run: CleanerRun) -> None:
        """Remove what aborted transactions left.

        Readers need not be waited for: what is removed was never visible to any. If the partition is not known, because
        the transaction ended before it had named them, all of the table's are searched.
        """
        # Taken before the files are listed: who aborts later keeps its record.
        now = self._snapshots.txns()
        write_ids = self._service.writes(db, table_name, TxnId(now.high_water_mark))
        table = self._catalogue.table(db, table_name)
        kept: set[int] = set()
        if table is not None:
            if not may_be_cleaned(table):
                return
            self._remove_staging(table.location, files.list_tree(table.location, max_depth=1), now, run)
            for location in self._places(db, table_name, partition, table):
                kept |= self._clean_place(location, write_ids, now, run)
        self._service.aborts_cleaned(db, table_name, partition, now.aborted_ids, kept)

    def _clean_place(self, location: str, write_ids: ValidWriteIdList, txns: ValidTxnList, run: CleanerRun) -> set[int]:
        """Remove aborted data in all data directories at or below a location; the aborted ids that files still hold."""
        kept: set[int] = set()
        entries = files.list_tree(location)
        self._remove_staging(location, entries, txns, run)
        for place, below in _by_parent(entries).items():
            at = files.join(location, place) if place else location
            state = _state(at, below, write_ids, txns)
            self._remove(at, state.aborted, run)
            gone = set(state.aborted)
            kept |= set(_ids_in_files((e for e in below if e.path.partition("/")[0] not in gone), write_ids))
        return kept

    def _places(self, db: str, table_name: str, partition: str | None, table: TableInfo) -> list[str]:
        if partition is not None or not table.partition_keys:
            location = self._location(db, table_name, partition, table)
            return [] if location is None else [location]
        root = table.location.rstrip("/") + "/"
        found = [
            self._catalogue.partition(db, table_name, name) for name in self._catalogue.partition_names(db, table_name)
        ]
        return [table.location, *(place for place in found if place and not place.startswith(root))]

    # --- files -------------------------------------------------------------------------------------

    def _location(self, db: str, table_name: str, partition: str | None, table: TableInfo | None) -> str | None:
        if table is None or partition is None:
            return None if table is None else table.location
        return self._catalogue.partition(db, table_name, partition)

    def _remove(self, location: str, names: Iterable[str], run: CleanerRun) -> None:
        for name in names:
            place = files.join(location, name)
            self._check_lease()
            files.remove(place)
            run.removed.append(place)

    def _remove_staging(self, location: str, entries: Iterable[FileEntry], txns: ValidTxnList, run: CleanerRun) -> None:
        """Remove staging directories of aborted transactions, and old ones of those that have ended otherwise."""
        newest: dict[str, int] = {}
        for entry in entries:
            top = entry.path.partition("/")[0]
            if parse_staging(top) is not None:
                newest[top] = max(newest.get(top, 0), entry.modified_ms)
        oldest_ms = time.time() * 1000 - self._config.staging_age_ms
        for name, modified_ms in newest.items():
            txn_id = parse_staging(name) or 0
            is_ended = txns.is_valid(txn_id) and modified_ms < oldest_ms
            if txns.is_aborted(txn_id) or is_ended:
                self._remove(location, (name,), run)


def _state(
    location: str, entries: Iterable[FileEntry], write_ids: ValidWriteIdList, txns: ValidTxnList
) -> DirectoryState:
    return directory_state(entries, write_ids, txns, lambda path: files.read(files.join(location, path)))


def _by_parent(entries: Iterable[FileEntry]) -> dict[str, list[FileEntry]]:
    """The entries of data directories by the directory that these lie in, paths relative to that one."""
    found: dict[str, list[FileEntry]] = {}
    for entry in entries:
        parts = entry.path.split("/")
        for depth, part in enumerate(parts[:-1]):
            if is_hidden(part):
                break
            if claims_to_be_data(part):
                below = FileEntry("/".join(parts[depth:]), entry.size, entry.modified_ms)
                found.setdefault("/".join(parts[:depth]), []).append(below)
                break
    return found


def _ids_in_files(entries: Iterable[FileEntry], write_ids: ValidWriteIdList) -> list[int]:
    """Aborted write ids that data directories may hold; compactions have left them out of theirs."""
    held: set[int] = set()
    for name in {entry.path.partition("/")[0] for entry in entries}:
        directory = parse_directory(name)
        if directory is None or directory.visibility_txn_id:
            continue
        lowest = directory.max_write_id if directory.kind is Kind.BASE else directory.min_write_id
        held.update(write_ids.aborted_in(lowest, directory.max_write_id))
    return sorted(held)
