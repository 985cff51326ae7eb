"""Settings of the way to the database (transactions.md §6, §7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, integer

OWN_CONNECTIONS = 3
"""Of the lease, of the listener for freed locks, and of the watch."""


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
    max_connections: int = integer(
        "metastore.database.connections.max",
        "40",
        "Connections to the database that this server has open at most. A fifth, 8 at most, is for the calls of "
        "transactions, 3 are its lease's, its listener's and its watch's, the rest is for all other calls. What the "
        "database does not give is done without.",
        least=16,
        most=1000,
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
        "A call of any kind waits for a database that is away as long as so many pauses of this length; it goes on as "
        "soon as the database is back.",
        hive="2000ms",
    )

    @property
    def patience_s(self) -> float:
        """How long a call waits for a database that does not answer."""
        return self.retry_attempts * self.retry_interval_ms / 1000

    @property
    def hot_connections(self) -> int:
        """How many of the connections carry hot calls."""
        return min(8, self.max_connections // 5)

    @property
    def cold_connections(self) -> int:
        """How many of them are for all other calls."""
        return self.max_connections - self.hot_connections - OWN_CONNECTIONS
