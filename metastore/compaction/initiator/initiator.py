"""The Initiator: finds tables and partitions that need a compaction and queues it (transactions.md §4.4).

Of whatever it looks at it puts down what it decided and why (`metastore.compaction.queue.decisions`), and how many
deltas it saw. Both are written once for each page of candidates, and only where they have changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import hive_acid
from hive_acid.errors import HiveAcidError
from hive_acid.format.state import DirectoryState, directory_state
from metastore.compaction.config import CompactionConfig
from metastore.compaction.file_totals import FileTotals, small_deltas
from metastore.compaction.initiator.policy import COST, Aborts, Judgement, Rules, excluded, judge, pool_of
from metastore.compaction.listings import listed
from metastore.compaction.models import Catalogue, CompactionRequest, TableInfo, target_name
from metastore.compaction.plan import compaction_input
from metastore.compaction.queue.decisions import Decider, Look
from metastore.compaction.queue.looks import Candidate, DeltaCount
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionState, CompactionType
from metastore.filework import files
from metastore.observe.meters import Meters
from metastore.settings import SettingError
from metastore.store import clock

log = logging.getLogger(__name__)

_LOOK_AT_ALL_S = 86_400.0
"""Once a day everything is looked at: thresholds may have changed, or how often a table is read."""
_ADJUSTED_MS = 1000
"""A clock that goes back by less between two runs is adjusted; candidates overlap by more than that."""
_MOST_PAGES = 1000
"""Pages of candidates in one run; the next one goes on from there."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a candidate looks like: the judgement, None if there is nothing to say; the deltas, None if not looked at.

    `of_table` says that the judgement is one of the whole table, and `is_stuck` that it wants a compaction in vain.
    """

    judgement: Judgement | None = None
    pool: str | None = None
    deltas: DeltaCount | None = None
    of_table: bool = False
    is_stuck: bool = False
    blocker: int | None = None


class Initiator:
    """Looks at what was written since its last run; at everything in the first, and once a day.

    Safe to run on several servers and to be killed: queueing twice is refused by the queue.
    """

    def __init__(
        self,
        service: CompactionService,
        snapshots: Snapshots,
        catalogue: Catalogue,
        config: CompactionConfig,
        name: str,
        meters: Meters | None = None,
    ) -> None:
        """`name` is put on record as the origin of what it queues; `meters` count what cannot be looked at."""
        self._service = service
        self._snapshots = snapshots
        self._catalogue = catalogue
        self._config = config
        self._name = name
        self._meters = meters or Meters()
        self._since_ms = 0
        self._looked_at_all_s = time.monotonic()
        self._after: Candidate | None = None
        self._clock: clock.Look | None = None
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Let a run in progress end soon; what it has not looked at is for another one."""
        self._stopping.set()

    def run_once(self) -> list[CompactionRequest]:
        """Queue what is needed, after lost workers' compactions are back in the queue; returns what was queued."""
        for compaction_id, state in self._service.requeue():
            log.warning("compaction %d lost its worker and is %s", compaction_id, state.words)
        readers = self._service.looks.readers() if self._config.policy == COST else {}
        if time.monotonic() - self._looked_at_all_s >= _LOOK_AT_ALL_S or self._is_put_back():
            self._since_ms, self._after, self._looked_at_all_s = 0, None, time.monotonic()
        queued: list[CompactionRequest] = []
        crowded: list[DeltaCount] = []
        since_ms: int | None = None
        for _ in range(_MOST_PAGES):
            page, now_ms = self._service.looks.candidates(self._since_ms, self._after)
            since_ms = now_ms if since_ms is None else since_ms
            self._handle(page, readers, queued, crowded)
            if self._stopping.is_set():
                break
            self._after = page[-1] if len(page) == self._config.fetch_size else None
            if self._after is None:
                self._since_ms = since_ms
                break
        _warn(crowded, self._config)
        return queued

    def _is_put_back(self) -> bool:
        """Whether the database's clock was put back since the last run: then nothing is written since that one."""
        before, self._clock = self._clock, clock.Look(time.monotonic(), self._service.looks.clock_ms())
        return before is not None and self._clock.shown_ms < before.expected_ms() - _ADJUSTED_MS

    # --- one page ----------------------------------------------------------------------------------

    def _handle(
        self,
        page: Sequence[Candidate],
        readers: dict[tuple[str, str], float],
        queued: list[CompactionRequest],
        crowded: list[DeltaCount],
    ) -> None:
        """Look at all candidates of a page, side by side if so configured; decide one by one, and put it down."""
        tables = {name: self._table(*name) for name in {(candidate.db, candidate.table) for candidate in page}}
        looks: dict[tuple[str, str, str | None], Look] = {}
        counts: list[DeltaCount] = []

        def look(candidate: Candidate) -> _Seen:
            target = candidate.db, candidate.table
            return self._look(candidate, tables[target], readers.get(target, 0.0))

        for candidate, seen in zip(page, self._side_by_side(look, page), strict=False):
            request, found = self._decide(candidate, seen)
            if request is not None:
                queued.append(request)
            if candidate.partition is not None and not seen.of_table:
                looks.setdefault((candidate.db, candidate.table, None), Look(candidate.db, candidate.table, None, None))
            looks[found.db, found.table, found.partition] = found
            if seen.deltas is not None:
                counts.append(seen.deltas)
                if _is_crowded(seen.deltas, self._config):
                    crowded.append(seen.deltas)
        self._service.set_decisions(list(looks.values()), Decider.INITIATOR)
        self._service.looks.count_deltas(counts)

    def _side_by_side(self, look: Callable[[Candidate], _Seen], page: Sequence[Candidate]) -> Iterator[_Seen]:
        """What the candidates look like, in their order; ends early when the server stops."""
        if self._config.initiator_threads == 1:
            for candidate in page:
                if self._stopping.is_set():
                    return
                yield look(candidate)
            return
        with ThreadPoolExecutor(self._config.initiator_threads, "initiator") as pool:
            futures = [pool.submit(look, candidate) for candidate in page]
            for future in futures:
                if self._stopping.is_set():
                    pool.shutdown(cancel_futures=True)
                    return
                yield future.result()

    def _decide(self, candidate: Candidate, seen: _Seen) -> tuple[CompactionRequest | None, Look]:
        """Queue the compaction that a candidate needs; returns what was queued, and the decision."""
        judgement = seen.judgement
        partition = None if seen.of_table else candidate.partition

        def decision(code: str | None, message: str = "", blocker: int | None = None) -> Look:
            return Look(candidate.db, candidate.table, partition, code, message, blocker)

        if judgement is None:
            return None, decision(None)
        if seen.is_stuck:
            self._note(candidate, judgement.type or CompactionType.MINOR, judgement.reason)
        if judgement.type is None or seen.is_stuck:
            return None, decision(judgement.code, judgement.message, seen.blocker)
        request = CompactionRequest(
            type=judgement.type,
            db=candidate.db,
            table=candidate.table,
            partition=candidate.partition,
            pool=seen.pool,
            initiator=self._name,
            initiator_version=hive_acid.__version__,
            head_start_s=judgement.head_start_s,
            after=judgement.after,
            reason=judgement.reason,
        )
        answer = self._service.compact(request)
        kind, target = request.type.name.lower(), target_name(candidate.db, candidate.table, candidate.partition)
        if not answer.accepted:
            message = (
                f"a {kind} compaction is due ({judgement.reason}), but compaction {answer.id} is {answer.state.words}"
            )
            return None, decision("in_the_way", f"{message}; it is asked for again when that one has ended")
        log.info("queued a %s compaction of %s: %s", kind, target, judgement.reason)
        message = f"compaction {answer.id}, a {kind} one, was queued: {judgement.reason}"
        return request, decision("queued", f"{message}; SHOW COMPACTIONS tells what became of it")

    # --- one candidate -----------------------------------------------------------------------------

    def _table(self, db: str, table: str) -> TableInfo | HiveAcidError | None:
        try:
            return self._catalogue.table(db, table)
        except HiveAcidError as error:
            return error

    def _look(self, candidate: Candidate, table: TableInfo | HiveAcidError | None, readers: float) -> _Seen:
        """What a candidate looks like; trouble is its own, and put on record."""
        try:
            if isinstance(table, HiveAcidError):
                raise table
            return self._seen(candidate, table, readers)
        except (HiveAcidError, SettingError, OSError) as error:
            target = target_name(candidate.db, candidate.table, candidate.partition)
            log.warning("no compaction of %s: %s", target, error)
            self._meters.not_judged.inc()
            code = "unfit_setting" if isinstance(error, SettingError) else "unreadable"
            action = "remove the cause, and the next run looks again"
            return _Seen(Judgement(None, code, str(error), action), is_stuck=True)

    def _seen(self, candidate: Candidate, table: TableInfo | None, readers: float) -> _Seen:
        if table is None or not table.is_transactional:
            return _Seen()
        if (exclusion := excluded(table, self._config)) is not None:
            return _Seen(exclusion, of_table=True)
        if candidate.partition is None and table.partition_keys:
            return self._unnamed(candidate, table)
        location = table.location
        if candidate.partition is not None:
            found = self._catalogue.partition(candidate.db, candidate.table, candidate.partition)
            if found is None:
                return _Seen()
            location = found
        rules = Rules.of(self._config, table.parameters, readers)
        aborts = Aborts(candidate.aborts, candidate.too_many_aborts, candidate.too_old_abort)
        mergeable, visible = self._states(candidate, location)
        judgement = judge(FileTotals.of(mergeable), rules, aborts)
        seen = _Seen(judgement, pool_of(table), _counted(candidate, visible, self._config.small_delta_part))
        if judgement.type is None and mergeable is not visible:
            return self._behind_a_writer(candidate, seen, judge(FileTotals.of(visible), rules))
        if judgement.type is not None and candidate.is_blocked:
            return _Seen(_failing(candidate, judgement, self._config), deltas=seen.deltas, is_stuck=True)
        return seen

    def _unnamed(self, candidate: Candidate, table: TableInfo) -> _Seen:
        """What aborted transactions left in partitions that they never named: a compaction sends the Cleaner there."""
        if not candidate.too_many_aborts and not candidate.too_old_abort:
            return _Seen()
        kind = CompactionType.MAJOR if candidate.too_many_aborts else CompactionType.MINOR
        reason = f"{candidate.aborts} aborted transactions have left files in partitions that they never named"
        judgement = Judgement(kind, "unnamed_partitions", reason)
        if candidate.is_blocked:
            return _Seen(_failing(candidate, judgement, self._config), is_stuck=True)
        return _Seen(judgement, pool_of(table))

    def _states(self, candidate: Candidate, location: str) -> tuple[DirectoryState, DirectoryState]:
        """What a compaction could merge of a directory, and what readers see; one object if both are the same."""
        txns = self._snapshots.txns()
        write_ids = self._snapshots.write_ids(candidate.db, candidate.table, txns)
        entries = listed(location)

        def content(path: str) -> bytes:
            return files.read(files.join(location, path))

        found = compaction_input(entries, write_ids, txns, content)
        if found.write_ids.high_water_mark >= write_ids.high_water_mark:
            return found.state, found.state
        return found.state, directory_state(entries, write_ids, txns, content)

    def _behind_a_writer(self, candidate: Candidate, seen: _Seen, all_of_it: Judgement) -> _Seen:
        """What needs a compaction that cannot have one: its deltas lie above the lowest write id that is open."""
        writer = self._service.looks.open_writer(candidate.db, candidate.table)
        if all_of_it.type is None or writer is None:
            return seen
        since = datetime.fromtimestamp(writer.started_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        agent = f" with {writer.agent}" if writer.agent else ""
        reason = (
            f"a compaction is due ({all_of_it.reason}), but transaction {writer.txn_id} of {writer.user} on "
            f"{writer.host}{agent}, open since {since}, writes to the table below these deltas"
        )
        action = f"let it end, or ABORT TRANSACTIONS {writer.txn_id}"
        return _Seen(Judgement(None, "open_write", reason, action), deltas=seen.deltas, blocker=writer.txn_id)

    def _note(self, candidate: Candidate, kind: CompactionType, message: str) -> None:
        """Put the reason into the history, once until something else happens."""
        if candidate.last is not CompactionState.DID_NOT_INITIATE:
            request = CompactionRequest(kind, candidate.db, candidate.table, candidate.partition, initiator=self._name)
            self._service.did_not_initiate(request, message, candidate.last_id)


def _failing(candidate: Candidate, needed: Judgement, config: CompactionConfig) -> Judgement:
    reason = f"the last {config.failed_threshold} compactions all failed, the latest because: {candidate.error}"
    again = f", or wait until {_days(config.failed_retry_ms)} after it" if config.failed_retry_ms else ""
    return Judgement(
        needed.type, "failing", reason, f"remove the cause and ask for one with ALTER TABLE ... COMPACT{again}"
    )


def _days(milliseconds: int) -> str:
    return f"{milliseconds / 86_400_000:.3g} days"


def _counted(candidate: Candidate, state: DirectoryState, small_part: float) -> DeltaCount:
    place = FileTotals.of(state)
    small = small_deltas(state, small_part)
    return DeltaCount(candidate.db, candidate.table, candidate.partition, place.obsolete_deltas, place.deltas, small)


def _is_crowded(count: DeltaCount, config: CompactionConfig) -> bool:
    return (
        count.active > config.crowded_deltas
        or count.small > config.crowded_small_deltas
        or count.obsolete > config.crowded_obsolete_deltas
    )


def _warn(crowded: Iterable[DeltaCount], config: CompactionConfig) -> None:
    """One line for all that have too many deltas."""
    found = sorted(crowded, key=lambda count: count.active + count.obsolete, reverse=True)
    if found:
        worst = found[0]
        log.warning(
            "%d tables or partitions have too many deltas; the most: %s with %d, %d of them small, %d replaced",
            *(len(found), target_name(worst.db, worst.tbl, worst.partition), worst.active, worst.small, worst.obsolete),
        )
