"""A server in Java, from jars, while a block runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hive_acid.spark.java import ensure_java
from tests.jvm import SHORT_LIVED
from tests.ports import await_port, await_started


@contextmanager
def running(arguments: Sequence[str], log: Path, *, port: int, details: Path | None = None) -> Iterator[None]:
    """Within the block it listens at `port`, and has written its `details`; `arguments` are Java's."""
    java = ensure_java() / "bin" / "java"
    with log.open("wb") as out:
        process = subprocess.Popen([java, "-Xmx256m", *SHORT_LIVED, *arguments], stdout=out, stderr=out)
    try:
        await_port(port, process, log)
        if details:
            await_started(details.exists, process, log)
        yield
    finally:
        process.terminate()
        process.wait()
