"""Why what is ready is not cleaned: sentences for operators, made of what the database found in the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hive_acid.ids import CompactionId, TxnId
from metastore.compaction.models import target_name
from metastore.compaction.queue.decisions import Look

NO_CLEANUP = "no_cleanup"
ERROR = "error"
FAILED = "failed"
STAYING = frozenset({NO_CLEANUP, ERROR, FAILED})
"""Decisions that hold until something of the table or partition has been cleaned, or there is another one."""
_NEEDS = {
    "named": "it has named this table, or holds a lock on it",
    "compacts": "it is a compaction of the same data",
    "unnamed": "it has not said which tables it reads",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A compaction that cannot be cleaned now; the fields are the columns of clean_waiting in order.

    `obstacle`, `until` and `need` are as in clean_outlook.sql; what is said of the `blocker` is None without one.
    """

    id: CompactionId
    db: str
    table: str
    partition: str | None
    obstacle: str
    until: datetime | None
    error: str | None
    blocker: TxnId | None
    need: str | None
    user: str | None
    host: str | None
    agent: str | None
    opened_at: datetime | None

    def look(self) -> Look:
        """The decision, with what an operator can do about it."""
        return Look(self.db, self.table, self.partition, self.obstacle, self._message(), self.blocker)

    def _message(self) -> str:
        what = f"what compaction {self.id} of {target_name(self.db, self.table, self.partition)} replaced"
        match self.obstacle:
            case "reader":
                assert self.need is not None
                agent = f" with {self.agent}" if self.agent else ""
                return (
                    f"{what} waits for transaction {self.blocker} of {self.user} on {self.host}{agent}, opened "
                    f"{_instant(self.opened_at)}: it was open when the compaction committed, and {_NEEDS[self.need]}; "
                    f"let it end, or ABORT TRANSACTIONS {self.blocker}"
                )
            case "retention":
                return (
                    f"{what} is kept until {_instant(self.until)} "
                    "(hive.compactor.cleaner.retention.time.seconds); wait, or set a shorter time"
                )
            case "retry":
                return (
                    f"removing {what} failed and is tried again at {_instant(self.until)}: {self.error}; "
                    "remove the cause, or wait"
                )
        return f"{what} is kept: its transaction has not committed; wait, or see what its worker does"


def kept_by_property(target: str, what: str) -> str:
    """The words for a table or partition that says NO_CLEANUP."""
    return (
        f"{what} in {target} stays: no_cleanup is true for the partition, its table or its database; unset it, and ask "
        "for a compaction: it takes up what is left"
    )


def to_be_repeated(what: str, error: str) -> str:
    """The words for an attempt that failed, and was not the last."""
    return f"removing {what} failed and is tried again later: {error}; remove the cause, or wait"


def given_up(what: str, attempts: int, error: str) -> str:
    """The words for the last attempt that failed."""
    return (
        f"removing {what} was given up after {attempts} attempts: {error}; remove the cause, and ask for a compaction "
        "again: it takes up what is left"
    )


def _instant(when: datetime | None) -> str:
    return "at an unknown time" if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
