"""The README's quick start, run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def quick_start():
    return README.read_text().partition("## Quick start")[2].partition("```python\n")[2].partition("```")[0]


def test_it_has_about_ten_lines():
    assert 8 <= len(quick_start().strip().splitlines()) <= 12


@pytest.mark.spark
def test_it_runs_and_shows_what_it_says(metastore, tmp_path):
    code = quick_start()
    assert "thrift://localhost:9083" in code
    script = tmp_path / "quick_start.py"
    script.write_text(code.replace("thrift://localhost:9083", metastore()))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = re.findall(r"\|\s*(\d+)\|\s*(.*?)\|", done.stdout)
    assert rows == [("1", "Ada L."), ("2", "Alan")]
