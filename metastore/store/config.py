"""Settings of the way to the database (transactions.md §6, §7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, integer


@dataclass(frozen=True)
class StoreConfig:
    """How many calls go to the database together, and how long a call tries."""

    batch_size: int = integer(
        "metastore.batch.size",
        "256",
        "Calls of one kind that arrive together and share one database transaction, at most.",
        least=1,
        most=10_000,
    )
    retry_attempts: int = integer(
        "hive.hmshandler.retry.attempts",
        "10",
        "A call that loses to another in the database (deadlock, serialization failure) is repeated so often.",
        most=1000,
        hive="10",
    )
    retry_interval_ms: int = duration(
        "hive.hmshandler.retry.interval",
        "2000ms",
        "A call waits for a database that is away as long as so many pauses of this length; it is told at once when "
        "the database is back.",
        hive="2000ms",
    )

    @property
    def patience_s(self) -> float:
        """How long a call waits for a database that does not answer."""
        return self.retry_attempts * self.retry_interval_ms / 1000
