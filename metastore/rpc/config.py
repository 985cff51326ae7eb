"""Settings of the RPC server."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.observe.log import FORMATS, TEXT
from metastore.settings import boolean, choice, duration, integer, text


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
        "A larger request is refused, and its connection closed.",
        least=1024,
        hive="104857600",
    )
    max_message_elements: int = integer(
        "metastore.server.message.elements.max",
        "4000000",
        "Texts, numbers, lists and structs (each as four) in one request; one with more is refused, and its connection "
        "closed. Twice as many of all large requests are in memory at a time, the others wait. 10,000 partitions of 30 "
        "columns have 2,700,000.",
        least=10_000,
    )
    max_held_bytes: int = integer(
        "metastore.server.held.bytes.max",
        "268435456",
        "Unfinished requests and replies that clients do not read, of all connections together. Beyond it the client "
        "that has most of them loses those that have been there the longest.",
        least=1024 * 1024,
    )
    max_connections: int = integer(
        "metastore.server.connections.max",
        "50000",
        "Clients' connections at a time; always fewer than the process may have files open. Beyond it the client that "
        "has most of them loses the one that has been idle the longest.",
        least=16,
    )
    request_timeout_ms: int = duration(
        "metastore.server.request.timeout",
        "60s",
        "A request has come whole so long after its first byte, and a second later for each 256 kB, or its connection "
        "is closed.",
        least_ms=100,
    )
    reply_timeout_ms: int = duration(
        "metastore.server.reply.timeout",
        "600s",
        "A client has read a reply so long after it was begun, or its connection is closed; it is, too, if it reads "
        "nothing for 60 s.",
        least_ms=100,
    )
    tcp_keepalive: bool = boolean(
        "hive.metastore.server.tcp.keepalive",
        "true",
        "Find out whether silent clients are still there, and close the connections of those that are not (after 10 to "
        "15 minutes).",
        hive="true",
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
