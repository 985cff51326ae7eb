"""Settings of the notification log."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, duration, integer, text

_LISTENER = "DbNotificationListener"


@dataclass(frozen=True)
class EventsConfig:
    """What is recorded, how long it is kept, and how much of it one answer holds."""

    is_on: bool = boolean(
        "metastore.notification.log.on",
        "true",
        "Record each change of the catalogue in the notification log, which Impala, StarRocks, Doris and Hive's "
        "replication follow; false leaves the log empty.",
    )
    listeners: str = text(
        "metastore.transactional.event.listeners",
        "",
        "If DbNotificationListener is among these class names, what transactions do is recorded too (OPEN_TXN, "
        "ALLOC_WRITE_ID, COMMIT_TXN, ABORT_TXN), for all servers of the database; changes of the catalogue are in any "
        "case. Other names are passed over.",
        hive="",
        wiki="",
        why="Each transaction costs more with it, and only some consumers need it.",
    )
    retention_ms: int = duration(
        "metastore.event.db.listener.timetolive",
        "86400s",
        "An event is forgotten after this time; who has not asked for it by then has to start anew.",
        hive="86400s",
        wiki="86400s",
    )
    clean_interval_ms: int = duration(
        "metastore.event.db.listener.clean.interval",
        "7200s",
        "Pause between two runs of the EventCleaner, which forgets old events.",
        least_ms=1,
        hive="7200s",
    )
    max_events: int = integer(
        "metastore.max.event.response",
        "10000",
        "Events in one answer, at most; who asks for more gets the first ones and asks again.",
        least=1,
        hive="1000000",
        why="An answer is held in memory.",
    )

    @property
    def records_txns(self) -> bool:
        """Whether transactions are recorded."""
        named = [name.strip().rpartition(".")[2] for name in self.listeners.split(",")]
        return self.is_on and _LISTENER in named
