"""dbt-spark by its session: seeds, incremental models by MERGE, tables, views, tests and snapshots on ACID tables."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engines.conftest import Ours

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".venv-dbt" / "bin" / "python"

FIRST = {
    "orders": [
        ["1", "ann", "10.5", "2026-11-01"],
        ["2", "bob", "20.0", "2026-11-02"],
        ["3", "cid", "30.25", "2026-11-02"],
    ],
    "daily": [["2026-11-01", "10.5", "1"], ["2026-11-02", "50.25", "2"]],
    "recent": [["2", "bob", "20.0", "2026-11-02"], ["3", "cid", "30.25", "2026-11-02"]],
    "order_history": [["1", "ann", "10.5", "True"], ["2", "bob", "20.0", "True"], ["3", "cid", "30.25", "True"]],
}
NEW = ["4", "dan", "40.0", "2026-11-03"]
SECOND = {
    "orders": [FIRST["orders"][0], ["2", "bob", "21.0", "2026-11-02"], FIRST["orders"][2], NEW],
    "daily": [["2026-11-01", "10.5", "1"], ["2026-11-02", "51.25", "2"], ["2026-11-03", "40.0", "1"]],
    "recent": [["2", "bob", "21.0", "2026-11-02"], FIRST["recent"][1], NEW],
    "order_history": [
        ["1", "ann", "10.5", "True"],
        ["2", "bob", "20.0", "False"],
        ["2", "bob", "21.0", "True"],
        ["3", "cid", "30.25", "True"],
        ["4", "dan", "40.0", "True"],
    ],
}


def test_a_project_of_dbt(ours: Ours, tmp_path: Path) -> None:
    """The second run merges, snapshots what has changed, and makes tables and views again."""
    if not PYTHON.exists():
        pytest.skip("there is no dbt in .venv-dbt: make test-engines puts it there")
    project = tmp_path / "shop"
    shutil.copytree(Path(__file__).parent / "shop", project)
    script = Path(__file__).parent / "dbt_process.py"
    done = subprocess.run(
        [PYTHON, script, ours.uri, project], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"orders"')]
    assert told == [FIRST, SECOND]
