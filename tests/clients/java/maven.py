"""Hive's clients of later releases from Maven Central, kept in a cache outside of the repository.

What is fetched is the client and the few libraries whose version matters; the rest comes from PySpark's jars.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.clients.java.process import PYSPARK_JARS

CENTRAL = "https://repo1.maven.org/maven2"
TIMEOUT_S = 30
_PIECE_BYTES = 1 << 20


class NotFetchedError(Exception):
    """A jar is neither in the cache nor to be had from the network."""


@dataclass(frozen=True)
class Jar:
    """A file on Maven Central and what its content must be."""

    path: str
    sha256: str

    def fetch(self, cache: Path) -> Path:
        """The file in the cache. Raises NotFetchedError."""
        kept = cache / self.path.rpartition("/")[2]
        if kept.exists() and _sha256(kept) == self.sha256:
            return kept
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        try:
            with urllib.request.urlopen(f"{CENTRAL}/{self.path}", timeout=TIMEOUT_S) as reply, part.open("wb") as file:
                shutil.copyfileobj(reply, file, _PIECE_BYTES)
            if _sha256(part) != self.sha256:
                raise NotFetchedError(f"what came for {self.path} from Maven Central is not that file")
            part.replace(kept)
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            raise NotFetchedError(f"{self.path} cannot be fetched from Maven Central: {error}") from error
        finally:
            part.unlink(missing_ok=True)
        return kept


HIVE_3 = (
    Jar(
        "org/apache/hive/hive-standalone-metastore/3.1.3/hive-standalone-metastore-3.1.3.jar",
        "779d11d856d9f41b5f78658fdf7ddf1626f03c7ae5d808582484c3744597a1f3",
    ),
    Jar(
        "org/apache/hive/hive-storage-api/2.7.0/hive-storage-api-2.7.0.jar",
        "b764dfada0b3320b4899d854e5ba4c82a9dc96bbc73bcb79e7734a25275d27bd",
    ),
    Jar(
        "org/apache/thrift/libthrift/0.9.3/libthrift-0.9.3.jar",
        "bca5e8cdee1e0fbf563de7d41c452385e7bed69723fa28225a9ce718a8ee3419",
    ),
)
HIVE_4 = (
    Jar(
        "org/apache/hive/hive-standalone-metastore-common/4.0.1/hive-standalone-metastore-common-4.0.1.jar",
        "f74d06e29a18d6a6b215b4e7b0445ef5c8bf7c73d5be4ab7eaed3f185cf000f8",
    ),
    Jar(
        "org/apache/hive/hive-storage-api/4.0.1/hive-storage-api-4.0.1.jar",
        "3f03026ae4a7b0663cca6acb80d58247e83178e2ebb5533c95df54d6822ad5e0",
    ),
)
HIVE_4_READERS = (
    Jar(
        "org/apache/hive/hive-exec/4.0.1/hive-exec-4.0.1.jar",
        "dd5e22aed78a7e62d8351e314fb438d90219f5c10014391448d30878c3ed3b03",
    ),
    Jar(
        "commons-collections/commons-collections/3.2.2/commons-collections-3.2.2.jar",
        "eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8",
    ),
    *HIVE_4,
)
"""The classes by which Hive 4 reads tables, beside those of its client."""


def cache_directory() -> Path:
    """Where downloads are kept between runs: below ``XDG_CACHE_HOME``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hive-acid" / "maven"


def jars_of(release: tuple[Jar, ...]) -> list[Path]:
    """The class path of a release: its own jars first. Raises NotFetchedError."""
    own = [jar.fetch(cache_directory()) for jar in release]
    shared = [jar for jar in PYSPARK_JARS.glob("*.jar") if not jar.name.startswith(("hive-", "spark-"))]
    return [*own, *shared]


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
