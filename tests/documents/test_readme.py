"""The README's quick start, run as it stands."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

README = Path(__file__).parent.parent.parent / "README.md"
ROWS = [("1", "Ada L."), ("2", "Alan")]
"""What the quick start shows."""


def quick_start() -> str:
    return README.read_text().partition("## Quick start")[2].partition("```python\n")[2].partition("```")[0]


def shown(python: Path, script: Path) -> list[tuple[str, ...]]:
    """The rows that a script prints as Spark shows a frame."""
    done = subprocess.run([python, script], capture_output=True, text=True, cwd=script.parent, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return re.findall(r"\|\s*(\d+)\|\s*(.*?)\|", done.stdout)


def test_it_has_about_ten_lines() -> None:
    assert 8 <= len(quick_start().strip().splitlines()) <= 12


@pytest.mark.spark
def test_it_runs_and_shows_what_it_says(metastore: Callable[..., str], tmp_path: Path) -> None:
    code = quick_start()
    assert "thrift://localhost:9083" in code
    script = tmp_path / "quick_start.py"
    script.write_text(code.replace("thrift://localhost:9083", metastore()))
    assert shown(Path(sys.executable), script) == ROWS
