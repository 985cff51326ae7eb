"""A Java of a range of versions on this machine: engines run on some and not on others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from hive_acid.spark.jvm.java import version, wheel_java

_INSTALLED = Path("/usr/lib/jvm")


class NoJavaError(Exception):
    """There is no Java of these versions."""


def java_between(least: int, most: int) -> Path:
    """The program ``java`` of a version in this range: JAVA_HOME's, that on the PATH, an installed one or the wheel's.

    Raises NoJavaError.
    """
    for java in _candidates():
        if least <= version(java) <= most:
            return java
    raise NoJavaError(
        f"no Java from {least} to {most} was found: neither JAVA_HOME nor the PATH nor {_INSTALLED} has one"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from sorted(_INSTALLED.glob("*/bin/java"))
    if wheel := wheel_java():
        yield wheel
