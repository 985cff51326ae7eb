"""Trino 476 itself: its server on loopback with the Hive connector, asked over HTTP as its own client asks.

What Maven Central has is the whole server, 820 MB; the server proper and its one plugin are unpacked into the cache.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.clients.java.maven import Jar, cache_directory
from tests.engines.javas import java_between
from tests.ports import free_port
from tests.remote.java_server import running

VERSION = "476"
SERVER = Jar(
    "io/trino/trino-server/476/trino-server-476.tar.gz",
    "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
)
_TOP = "trino-server-476"
_LEAST_JAVA, _MOST_JAVA = 24, 25
_UTC = "UTC"
_ANSWER_S = 120
_START_S = 300

_OPTIONS = (
    *("-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m"),
    *("--enable-native-access=ALL-UNNAMED", "--add-modules=jdk.incubator.vector"),
    *("-Djdk.attach.allowAttachSelf=true", "-Dnode.environment=test"),
    *("-Dnode.internal-address=127.0.0.1", "-Dnode.bind-ip=127.0.0.1", "-Duser.timezone=UTC"),
)


class TrinoRefusedError(Exception):
    """What Trino told its user instead of rows."""


class TrinoEngine:
    """A running server; values come as its protocol has them, texts for dates, times, decimals and bytes (Base64)."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/v1/statement"

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement. Raises TrinoRefusedError."""
        headers = {"X-Trino-User": "ann", "X-Trino-Catalog": "hive", "X-Trino-Time-Zone": _UTC}
        headers["X-Trino-Client-Capabilities"] = "PARAMETRIC_DATETIME"  # else times come in milliseconds
        following: urllib.request.Request | str = urllib.request.Request(self._url, statement.encode(), headers)
        rows: list[tuple[Any, ...]] = []
        while True:
            with urllib.request.urlopen(following, timeout=_ANSWER_S) as reply:
                answer = json.load(reply)
            rows += map(tuple, answer.get("data", ()))
            if error := answer.get("error"):
                raise TrinoRefusedError(f"{statement}: {error['message']}")
            if "nextUri" not in answer:
                return rows
            following = answer["nextUri"]


@contextmanager
def served_trino(uri: str, work: Path) -> Iterator[TrinoEngine]:
    """Run it below `work`, on the metastore at `uri`. Raises NotFetchedError, NoJavaError."""
    java = java_between(_LEAST_JAVA, _MOST_JAVA)
    home = _unpacked(cache_directory())
    port = free_port()
    config = work / "etc"
    (config / "catalog").mkdir(parents=True)
    _write(config / "catalog" / "hive.properties", _catalog(uri))
    _write(config / "log.properties", {"io.trino": "WARN", "Bootstrap": "WARN", "org.eclipse": "WARN"})
    _write(
        config / "config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(port),
            "discovery.uri": f"http://127.0.0.1:{port}",
            "http-server.log.path": str(work / "http-request.log"),
            "plugin.dir": str(home / "plugin"),
            "catalog.config-dir": str(config / "catalog"),
            "query.max-memory-per-node": "300MB",
        },
    )
    arguments = [
        *_OPTIONS,
        f"-Dlog.levels-file={config / 'log.properties'}",
        f"-Dconfig={config / 'config.properties'}",
        f"-Dnode.data-dir={work / 'data'}",
        *("-cp", f"{home / 'lib'}/*", "io.trino.server.TrinoServer"),
    ]
    with running(
        arguments, work / "trino.log", port=port, java=java, is_up=lambda: _has_started(port), within_s=_START_S
    ):
        yield TrinoEngine(port)


def _catalog(uri: str) -> dict[str, str]:
    return {
        "connector.name": "hive",
        "hive.metastore.uri": uri,
        "fs.hadoop.enabled": "true",
        "hive.non-managed-table-writes-enabled": "true",
        "hive.timestamp-precision": "MICROSECONDS",
    }


def _has_started(port: int) -> bool:
    """Whether it runs queries: at first it answers, and has no node yet to run one on."""
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/info", timeout=5) as reply:
        if not json.load(reply)["starting"]:
            with suppress(TrinoRefusedError):
                return bool(TrinoEngine(port).sql("SELECT node_id FROM system.runtime.nodes"))
    return False


def _write(file: Path, properties: dict[str, str]) -> None:
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _unpacked(cache: Path) -> Path:
    """The server in the cache, unpacked once; the archive is not kept. Raises NotFetchedError."""
    home = cache / _TOP
    if home.exists():
        return home
    archive = SERVER.fetch(cache)
    aside = cache / f"{_TOP}.{os.getpid()}"
    try:
        _unpack(archive, aside)
        (aside / _TOP).rename(home)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    archive.unlink()
    return home


def _unpack(archive: Path, target: Path) -> None:
    """What is needed of it; most plugins' jars are links to others' in the archive, which are followed."""
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    wanted: dict[str, list[str]] = {}
    for member in members:
        if member.name.startswith((f"{_TOP}/lib/", f"{_TOP}/plugin/hive/")) and not member.isdir():
            wanted.setdefault(member.linkname if member.islnk() else member.name, []).append(member.name)
    with tarfile.open(archive, "r|gz") as tar:
        for member in tar:
            names = wanted.get(member.name)
            content = tar.extractfile(member) if names and member.isreg() else None
            if not names or content is None:
                continue
            first, *others = (target / name for name in names)
            first.parent.mkdir(parents=True, exist_ok=True)
            with first.open("wb") as file:
                shutil.copyfileobj(content, file)
            for other in others:
                other.parent.mkdir(parents=True, exist_ok=True)
                other.hardlink_to(first)
