"""The Initiator: finds tables and partitions that need a compaction and queues it (transactions.md §4.4)."""

from __future__ import annotations

import logging

import hive_acid
from hive_acid import files
from hive_acid.errors import HiveAcidError
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import Candidate, Catalogue, CompactionRequest, TableInfo, target_name
from metastore.compaction.plan import compaction_input
from metastore.compaction.policy import Thresholds, compaction_needed, is_automatic, pool_of
from metastore.compaction.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionState, CompactionType
from metastore.settings import SettingError

log = logging.getLogger(__name__)


class Initiator:
    """Looks at what was written since its last run; at everything in the first.

    Safe to run on several servers and to be killed: queueing twice is refused by the queue.
    """

    def __init__(
        self,
        service: CompactionService,
        snapshots: Snapshots,
        catalogue: Catalogue,
        config: CompactionConfig,
        name: str,
    ) -> None:
        """`name` is put on record as the origin of what it queues."""
        self._service = service
        self._snapshots = snapshots
        self._catalogue = catalogue
        self._config = config
        self._name = name
        self._since_ms = 0

    def run_once(self) -> list[CompactionRequest]:
        """Queue what is needed, after lost workers' compactions are back in the queue; returns what was queued."""
        for compaction_id, state in self._service.requeue():
            log.warning("compaction %d lost its worker and is %s", compaction_id, state.words)
        candidates, since_ms = self._service.candidates(self._since_ms)
        queued = [request for candidate in candidates if (request := self._consider(candidate)) is not None]
        self._since_ms = since_ms
        return queued

    def _consider(self, candidate: Candidate) -> CompactionRequest | None:
        """What was queued for a candidate, None if nothing."""
        target = target_name(candidate.db, candidate.table, candidate.partition)
        try:
            request = self._request(candidate)
            if request is None:
                return None
            if candidate.is_blocked:
                self._note(candidate, request.type, f"the last {self._config.failed_threshold} compactions all failed")
                return None
            if not self._service.compact(request).accepted:
                return None
        except (HiveAcidError, SettingError, OSError) as error:
            log.warning("no compaction of %s: %s", target, error)
            self._note(candidate, CompactionType.MINOR, str(error))
            return None
        log.info("queued a %s compaction of %s", request.type.name.lower(), target)
        return request

    def _request(self, candidate: Candidate) -> CompactionRequest | None:
        table = self._catalogue.table(candidate.db, candidate.table)
        if table is None or not table.is_full_acid or not is_automatic(table):
            return None
        location = self._location(candidate, table)
        if location is None:
            return None
        needed = self._needed(candidate, table, location)
        if needed is None:
            return None
        return CompactionRequest(
            type=needed,
            db=candidate.db,
            table=candidate.table,
            partition=candidate.partition,
            pool=pool_of(table),
            initiator=self._name,
            initiator_version=hive_acid.__version__,
        )

    def _location(self, candidate: Candidate, table: TableInfo) -> str | None:
        """None for what cannot be compacted: a partition that is gone, or a write that never named its partitions."""
        if candidate.partition is None:
            return None if table.partition_keys else table.location
        return self._catalogue.partition(candidate.db, candidate.table, candidate.partition)

    def _needed(self, candidate: Candidate, table: TableInfo, location: str) -> CompactionType | None:
        txns = self._snapshots.txns()
        write_ids = self._snapshots.write_ids(candidate.db, candidate.table, txns)
        found = compaction_input(
            files.list_tree(location), write_ids, txns, lambda path: files.read(files.join(location, path))
        )
        return compaction_needed(found.state, Thresholds.of(self._config, table.parameters))

    def _note(self, candidate: Candidate, kind: CompactionType, message: str) -> None:
        """Put the reason on record, once until something else happens."""
        if candidate.last is not CompactionState.DID_NOT_INITIATE:
            request = CompactionRequest(kind, candidate.db, candidate.table, candidate.partition, initiator=self._name)
            self._service.did_not_initiate(request, message)
