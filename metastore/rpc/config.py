"""Settings of the RPC server."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.observe.log import FORMATS, TEXT
from metastore.settings import choice, duration, integer, text


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
    metrics_port: int = integer(
        "metastore.metrics.port",
        "0",
        "Port of Prometheus' figures (/metrics), of /livez and of /readyz; 0 for none.",
        most=65_535,
    )
    metrics_host: str = text(
        "metastore.metrics.host", "127.0.0.1", "Address to listen on for those; 0.0.0.0 for all of the machine."
    )
    log_format: str = choice(
        "metastore.log.format", TEXT, "Lines of the log: text, or json with one object for each.", FORMATS
    )
