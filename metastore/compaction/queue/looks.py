"""What the Initiator asks the database: what there is to look at, and who reads and writes it; and what it counts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

from hive_acid.ids import CompactionId, TxnId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.states import CompactionState
from metastore.store.leases import Calls

LOOK_AGAIN = ("open_write", "in_the_way", "no_auto_compaction", "replication_pending", "insert_only_off")
"""Decisions that can change without a write to the table: each run looks whether they have."""
_WEIGHT = 0.2
"""Of one sample of the readers: with five minutes between two, their average is that of the last half hour or so."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table or partition that may need a compaction; the fields are the columns of initiator_candidates in order.

    `last` is how the latest attempt ended, and `last_id` its number (0 if there was none); `at` is when it was last
    written to. `aborts` are transactions that have left files, told only where these are left to compactions.
    `is_blocked` says that too many attempts failed lately, `error` why the last one did.
    """

    last: CompactionState | None
    last_id: CompactionId
    db: str
    table: str
    partition: str | None
    at: datetime
    aborts: int
    too_many_aborts: bool
    too_old_abort: bool
    is_blocked: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """An open transaction that has a write id of a table."""

    txn_id: TxnId
    user: str
    host: str
    agent: str
    started_ms: int


@dataclass(frozen=True, slots=True)
class DeltaCount:
    """Numbers of deltas of a table or partition: replaced, current, and small among the current ones."""

    db: str
    tbl: str
    partition: str | None
    obsolete: int
    active: int
    small: int


class Looks:
    """The Initiator's questions and counts; each a single round trip."""

    def __init__(self, db: Calls, config: CompactionConfig) -> None:
        self._db = db
        self._config = config

    def candidates(self, since_ms: int, after: Candidate | None = None) -> tuple[list[Candidate], int]:
        """What may need a compaction, written since an instant of the database's clock; and the instant for next time.

        A page in the order of the last writes, behind `after`: there is another one if it is full.
        """
        config = self._config
        rows = self._db.call(
            "initiator_candidates",
            since_ms,
            config.failed_threshold,
            config.failed_retry_ms,
            None if config.clean_aborts else config.aborted_threshold,
            config.aborted_age_ms,
            LOOK_AGAIN,
            *((after.at, after.db, after.table, after.partition) if after else (None,) * 4),
            config.fetch_size,
        )
        found = [Candidate(CompactionState(row[0]) if row[0] else None, *row[1:-1]) for row in rows]
        return found, rows[0][-1] if rows else since_ms

    def clock_ms(self) -> int:
        """What the database's clock shows."""
        return int(self._db.call("database_clock")[0][0])

    def readers(self) -> dict[tuple[str, str], float]:
        """(database, table) to the readers it has at a time, on average; takes a sample. Others have none."""
        return {(db, table): readers for db, table, readers in self._db.call("sample_readers", _WEIGHT)}

    def open_writer(self, db: str, table: str) -> OpenWriter | None:
        """Who has the lowest open write id of a table, None if there is none."""
        row = self._db.call_one("open_writer", db, table)
        return OpenWriter(*row) if row else None

    def count_deltas(self, counts: Iterable[DeltaCount]) -> int:
        """Store numbers of deltas, each while it reaches its threshold; how many had changed."""
        rows = [asdict(count) for count in counts]
        if not rows:
            return 0
        config = self._config
        row = self._db.call_one(
            "set_delta_counts",
            json.dumps(rows),
            min(config.counted_deltas, config.crowded_deltas + 1),  # what writers are told must be known
            config.counted_obsolete_deltas,
        )
        assert row is not None
        return int(row[0])
