"""Settings of transactions (transactions.md §7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, integer


@dataclass(frozen=True)
class TxnConfig:
    """How long transactions live and how many there may be."""

    timeout_ms: int = duration(
        "hive.txn.timeout",
        "300s",
        "A transaction without a heartbeat for this long is aborted, a lock outside of one released.",
        least_ms=1,
        hive="300s",
        wiki="300s",
    )
    repl_timeout_ms: int = duration(
        "hive.repl.txn.timeout", "11d", "The same for transactions opened by replication.", least_ms=1, hive="11d"
    )
    max_open_txns: int = integer(
        "hive.max.open.txns",
        "100000",
        "Opening more transactions than this is refused.",
        least=1,
        hive="100000",
        wiki="100000",
    )
    max_open_batch: int = integer(
        "hive.txn.max.open.batch",
        "1000",
        "One call opens at most this many transactions.",
        least=1,
        hive="1000",
        wiki="1000",
    )
    max_heartbeat_range: int = integer(
        "metastore.txn.heartbeat.max.range",
        "1000000",
        "One call heartbeats at most this long a range of transactions.",
        least=1,
    )
    heartbeat_flush_ms: int = duration(
        "metastore.txn.heartbeat.flush.interval",
        "1s",
        "Heartbeats of transactions are put down this often, together; the time-out allows for it.",
        least_ms=1,
    )

    @property
    def heartbeat_delay_ms(self) -> int:
        """How long a heartbeat may take to be put down: short beside the time-out, which is prolonged by it."""
        return min(self.heartbeat_flush_ms, max(1, self.timeout_ms // 10))
