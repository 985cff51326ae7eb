"""A server in Java, from jars, while a block runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hive_acid.spark.jvm.java import ensure_java
from tests.jvm import SHORT_LIVED
from tests.ports import START_WITHIN_S, await_started, is_listening


@contextmanager
def running(
    arguments: Sequence[str],
    log: Path,
    *,
    port: int,
    is_up: Callable[[], bool] = lambda: True,
    java: Path | None = None,
    within_s: float = START_WITHIN_S,
) -> Iterator[None]:
    """Within the block it listens at `port` and `is_up`; `arguments` are Java's, of which the later of two counts."""
    java = java or ensure_java() / "bin" / "java"
    with log.open("wb") as out:
        process = subprocess.Popen([java, "-Xmx256m", *SHORT_LIVED, *arguments], stdout=out, stderr=out)
    try:
        await_started(lambda: is_listening(port) and is_up(), process, log, within_s)
        yield
    finally:
        process.terminate()
        process.wait()
