"""The Cleaner: removes files that nobody can need any more (transactions.md §4.8 to §4.10, acid-format.md §6.5).

What goes, and why nobody needs it:

1. What a compaction replaced, once every transaction has ended that was opened before the compaction's commit and may
   read the table (`sql/clean_outlook.sql`). All that are left see its output. The Cleaner looks through the eyes of
   that moment: transactions up to the commit, write ids up to the compaction's highest. What it finds obsolete is so
   for all who come later.
2. Directories with data of aborted transactions alone: nobody ever reads them.
3. Staging directories of aborted transactions, and old ones of others that have ended.
4. The directories of tables and partitions dropped by a transaction that readers need not notice (SOFT_DELETE), when
   all that were opened before its commit have ended. The property trash says where those go that can be brought back,
   the properties homes and homes_if_empty name the directories of their database, if that was dropped with them:
   these are noted as removals when it is on record that nobody reads there, and go after the last.

The record of an aborted transaction goes last, after its files: without it they would count as committed. Directories
are removed whole and in any order, and every step can be repeated, so the Cleaner can be killed at any time. What it
cannot clean, and why, is put down as its decision.

With several servers one Cleaner is at work, under the lease on services. What it changes in the database is fenced by
that; a removal of files cannot be, so the lease is asked after right before each directory. One that is paused in
just that moment, and wakes up when another server has taken over, removes what the other one would remove too: it is
garbage for everybody for ever, since write ids and transaction ids in names are not used twice. Only a table that is
dropped and made again at the same place in that moment begins them anew; hence a question for each directory.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from hive_acid.errors import FormatError
from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import parse_staging
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import CompactionId, TxnId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.initiator.policy import may_be_cleaned
from metastore.compaction.listings import aborted_ids_in, by_parent, listed, needless_empties, state_of
from metastore.compaction.models import Catalogue, Compaction, TableInfo, target_name
from metastore.compaction.queue.decisions import Decider, Look
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.waiting import (
    ERROR,
    FAILED,
    NO_CLEANUP,
    STAYING,
    given_up,
    kept_by_property,
    to_be_repeated,
)
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionState, CompactionType
from metastore.filework import files
from metastore.observe.meters import Meters
from metastore.store.connections.failures import DATABASE_ERRORS
from metastore.store.leases import LeaseLostError
from metastore.txn.names import TablePart

log = logging.getLogger(__name__)
DROPPED_LOCATION = "location"
"""The property by which a drop names the directory that remains of a table or partition."""
DROPPED_TRASH = "trash"
"""The property that says where it goes instead of being removed."""
DROPPED_HOMES = ("homes", "homes_if_empty")
"""The properties that name, line by line, the directories of its database, which was dropped with it: they go, too,
with all that lies in them, or only if no file is left there.
"""


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
        term: Callable[[], AbstractContextManager[object]] = nullcontext,
        meters: Meters | None = None,
    ) -> None:
        """`check_lease` raises LeaseLostError when this Cleaner may not remove files any more.

        `term` is entered on each further thread that cleans, as `run_once` is called inside one. `meters` measure each
        cleaning.
        """
        self._service = service
        self._snapshots = snapshots
        self._catalogue = catalogue
        self._config = config
        self._check_lease = check_lease
        self._term = term
        self._meters = meters or Meters()
        self._guard = threading.Lock()
        self._told: dict[TablePart, Look] = {}
        self._looks: dict[TablePart, Look] = {}
        self._done: set[TablePart] = set()
        self._swept: set[str] = set()

    def run_once(self) -> CleanerRun:
        """Clean all there is to clean now; a failure concerns its own table or partition only."""
        run = CleanerRun()
        self._looks, self._done, self._swept = {}, set(), set()
        self._all([partial(self._attempt_compaction, one, run) for one in self._service.to_clean()])
        if self._config.clean_aborts:
            self._all([partial(self._attempt_aborts, *target, run) for target in self._service.aborts_to_clean()])
        self._explain()
        return run

    def _all(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Do tasks, each of another table or partition, on as many threads as are set."""
        threads = min(self._config.cleaner_threads, len(tasks))
        if threads < 2:
            for task in tasks:
                task()
            return

        def on_thread(task: Callable[[], None]) -> None:
            with self._term():
                task()

        with ThreadPoolExecutor(threads, thread_name_prefix="cleaner") as pool:
            futures = [pool.submit(on_thread, task) for task in tasks]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    # --- after compactions -------------------------------------------------------------------------

    def _attempt_compaction(self, compaction: Compaction, run: CleanerRun) -> None:
        try:
            self._service.clean_started(compaction.id)
            with self._meters.cleanings.of(compaction.type.name.lower()).run():
                is_clean = self._clean_compaction(compaction, run)
            if is_clean:
                run.cleaned.append(compaction.id)
                self._done.add(_target(compaction))
                if any(name in compaction.properties for name in DROPPED_HOMES):
                    self._check_lease()
                    self._catalogue.remove_homes()
        except (LeaseLostError, *DATABASE_ERRORS):
            raise
        except Exception as error:  # of whatever library speaks to the store, and of one table only
            message = _message(error)
            run.failed[compaction.target] = message
            state = self._service.clean_failed(compaction, message)
            what = f"what compaction {compaction.id} of {compaction.target} replaced"
            if state is CompactionState.FAILED:
                attempts = self._config.cleaner_max_attempts
                self._look(_target(compaction), FAILED, given_up(what, attempts, message))
            else:
                self._look(_target(compaction), ERROR, to_be_repeated(what, message))
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
                return True
        table = self._catalogue.table(compaction.db, compaction.table)
        location = self._location(compaction.db, compaction.table, compaction.partition, table)
        if table is None or location is None:
            self._service.mark_cleaned(compaction.id)
            return True
        if not self._may_be_cleaned(compaction.db, compaction.table, compaction.partition, table):
            # Nobody can read what a killed worker left half made: that is not what the property keeps.
            now = self._snapshots.txns()
            self._remove_staging(location, listed(location, max_depth=1), now, run)
            self._sweep(table.location, now, run)
            words = kept_by_property(compaction.target, f"what compaction {compaction.id} replaced")
            self._service.mark_refused(compaction.id, words)
            self._look(_target(compaction), NO_CLEANUP, words)
            return False
        assert compaction.next_txn_id is not None
        now = self._snapshots.txns()
        if compaction.partition is None and table.partition_keys:
            # Of partitions that nobody has named, only what aborted transactions left is anybody's to remove.
            kept = self._remove_aborted(compaction.db, compaction.table, None, table, now, run)
            self._service.mark_cleaned(compaction.id, kept)
            return True
        txns = now.up_to(compaction.next_txn_id)
        write_ids = self._service.writes(compaction.db, compaction.table, compaction.next_txn_id)
        if compaction.highest_write_id is not None:
            write_ids = write_ids.for_cleaner(compaction.highest_write_id)
        entries = listed(location, must_exist=True)
        self._remove_staging(location, entries, now, run)
        self._sweep(table.location, now, run)
        state = state_of(location, entries, write_ids, txns)
        empty = needless_empties(location, entries, write_ids, txns)
        self._remove(location, (*state.aborted, *state.obsolete, *empty), run)
        entries = listed(location)
        state = state_of(location, entries, write_ids, txns)
        if state.obsolete or state.aborted:
            left = ", ".join((*state.obsolete, *state.aborted))
            raise FormatError(f"still there after they were removed: {left}")
        self._service.mark_cleaned(compaction.id, aborted_ids_in(entries, write_ids))
        log.info("cleaned after compaction %d of %s", compaction.id, compaction.target)
        return True

    # --- after aborted transactions ----------------------------------------------------------------

    def _attempt_aborts(self, db: str, table: str, partition: str | None, run: CleanerRun) -> None:
        try:
            with self._meters.cleanings.of(CompactionType.ABORT_TXN_CLEANUP.name.lower()).run():
                is_clean = self._clean_aborts(db, table, partition, run)
            if is_clean:
                self._done.add((db, table, partition))
        except (LeaseLostError, *DATABASE_ERRORS):
            raise
        except Exception as error:  # as above
            target, message = target_name(db, table, partition), _message(error)
            run.failed[target] = message
            self._service.abort_clean_failed(db, table, partition, message)
            what = f"what aborted transactions left in {target}"
            self._look((db, table, partition), ERROR, to_be_repeated(what, message))
            log.warning("cleaning up after aborted transactions on %s, tried again later: %s", target, message)

    def _clean_aborts(self, db: str, table_name: str, partition: str | None, run: CleanerRun) -> bool:
        """Remove what aborted transactions left; false if it is to stay.

        Readers need not be waited for: what is removed was never visible to any. If the partition is not known, because
        the transaction ended before it had named them, all of the table's are searched.
        """
        # Taken before the files are listed: who aborts later keeps its record.
        now = self._snapshots.txns()
        table = self._catalogue.table(db, table_name)
        kept: set[int] = set()
        if table is not None:
            if not self._may_be_cleaned(db, table_name, partition, table):
                words = kept_by_property(target_name(db, table_name, partition), "what aborted transactions left")
                self._look((db, table_name, partition), NO_CLEANUP, words)
                return False
            kept = self._remove_aborted(db, table_name, partition, table, now, run)
        self._service.aborts_cleaned(db, table_name, partition, now.aborted_ids, kept)
        return True

    def _remove_aborted(
        self, db: str, table_name: str, partition: str | None, table: TableInfo, now: ValidTxnList, run: CleanerRun
    ) -> set[int]:
        """Remove what transactions left that are aborted in `now`; their write ids that files still hold.

        `now` was taken before: who aborts later keeps its record.
        """
        write_ids = self._service.writes(db, table_name, TxnId(now.high_water_mark))
        self._sweep(table.location, now, run)
        kept: set[int] = set()
        for location in self._places(db, table_name, partition, table):
            kept |= self._clean_place(location, write_ids, now, run)
        return kept

    def _clean_place(self, location: str, write_ids: ValidWriteIdList, txns: ValidTxnList, run: CleanerRun) -> set[int]:
        """Remove aborted data in all data directories at or below a location; the aborted ids that files still hold."""
        kept: set[int] = set()
        entries = listed(location)
        self._remove_staging(location, entries, txns, run)
        for place, below in by_parent(entries).items():
            at = files.join(location, place) if place else location
            empty = needless_empties(at, below, write_ids, txns, aborted_only=True)
            gone = {*state_of(at, below, write_ids, txns).aborted, *empty}
            self._remove(at, sorted(gone), run)
            kept |= set(aborted_ids_in((e for e in below if e.path.partition("/")[0] not in gone), write_ids))
        return kept

    def _places(self, db: str, table_name: str, partition: str | None, table: TableInfo) -> list[str]:
        if partition is not None or not table.partition_keys:
            location = self._location(db, table_name, partition, table)
            return [] if location is None else [location]
        root = table.location.rstrip("/") + "/"
        found = self._catalogue.partition_locations(db, table_name)
        return [table.location, *(place for place in found if not place.startswith(root))]

    # --- decisions ----------------------------------------------------------------------------------

    def _look(self, target: TablePart, code: str, message: str) -> None:
        self._looks[target] = Look(*target, code, message)

    def _explain(self) -> None:
        """Put down why what waits is not cleaned, and take back what is not so any more."""
        waiting = self._service.waiting_to_be_cleaned()
        for one in waiting:
            look = one.look()
            self._looks[look.db, look.table, look.partition] = look
        for target, look in self._told.items():
            if look.code in STAYING and target not in self._done:
                self._looks.setdefault(target, look)
        news = [look for target, look in self._looks.items() if self._told.get(target) != look]
        news += [Look(*target, None) for target in {*self._told, *self._done} if target not in self._looks]
        if news:
            self._service.set_decisions(news, Decider.CLEANER)
            self._service.note_obstacles({one.id: one.look().message for one in waiting})
        self._told = self._looks

    # --- files -------------------------------------------------------------------------------------

    def _may_be_cleaned(self, db: str, table_name: str, partition: str | None, table: TableInfo) -> bool:
        own = None if partition is None else self._catalogue.partition_parameters(db, table_name, partition)
        return may_be_cleaned(table, own)

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

    def _sweep(self, root: str, txns: ValidTxnList, run: CleanerRun) -> None:
        """Remove staging directories at a table's location, where writers stage for all partitions; once in a run."""
        with self._guard:
            is_swept = root in self._swept
            self._swept.add(root)
        if not is_swept:
            self._remove_staging(root, listed(root, max_depth=1), txns, run)

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


def _target(compaction: Compaction) -> TablePart:
    return compaction.db, compaction.table, compaction.partition


def _message(error: Exception) -> str:
    """Why something failed, also where the library that failed says nothing."""
    return str(error) or type(error).__name__
