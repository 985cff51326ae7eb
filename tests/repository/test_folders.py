"""Folders that a newcomer can read in one look: files of Python, tests too."""

import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MOST_FILES = 15
LONG = {
    "migrations/versions": "one file for each change of the tables, of which none goes",
}
"""Folders with more, and why."""


def counted() -> Counter[str]:
    """How many files of Python each folder has, of those that git knows or would take in."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return Counter(str(Path(file).parent) for file in told.splitlines() if (ROOT / file).is_file())


def test_no_folder_has_more_files_than_one_look_takes() -> None:
    folders = counted()
    assert {"client/hive_acid", "metastore", "tests"} <= folders.keys()
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES and folder not in LONG} == {}


def test_exceptions_are_needed() -> None:
    folders = counted()
    assert [folder for folder in LONG if folders[folder] <= MOST_FILES] == []
