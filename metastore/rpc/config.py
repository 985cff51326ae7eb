"""Settings of the RPC server."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, integer


@dataclass(frozen=True)
class ServerConfig:
    """How the server listens and works."""

    worker_threads: int = integer(
        "hive.metastore.server.max.threads",
        "16",
        "Threads that run calls, each on one connection.",
        least=1,
        most=1000,
        hive="1000",
        why="An idle client holds no thread here.",
    )
    max_message_bytes: int = integer(
        "hive.metastore.server.max.message.size",
        "104857600",
        "A larger request closes its connection.",
        least=1024,
        hive="104857600",
    )
    stay_awake_ms: int = duration(
        "metastore.server.stay.awake",
        "1ms",
        "While one client at a time calls, the server looks for its next event so long before it sleeps; 0 to sleep.",
    )
