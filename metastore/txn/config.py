"""Settings of transactions (transactions.md §7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, integer


@dataclass(frozen=True)
class TxnConfig:
    """How long transactions live and how many there may be."""

    timeout_ms: int = duration(
        "hive.txn.timeout", "300s", "A transaction without a heartbeat for this long is aborted."
    )
    repl_timeout_ms: int = duration("hive.repl.txn.timeout", "11d", "The same for transactions opened by replication.")
    max_open_txns: int = integer("hive.max.open.txns", "100000", "Opening more transactions than this is refused.")
    max_open_batch: int = integer("hive.txn.max.open.batch", "1000", "One call opens at most this many transactions.")
    max_heartbeat_range: int = integer(
        "metastore.txn.heartbeat.max.range", "1000000", "One call heartbeats at most this long a range of transactions."
    )
