"""What is built has every package of the repository: an editable install does not show what the list lacks."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_package_is_in_the_list():
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    there = {
        ".".join((name, *file.parent.relative_to(ROOT / place).parts))
        for name, place in setuptools["package-dir"].items()
        for file in (ROOT / place).rglob("*.py")
    }
    assert sorted(setuptools["packages"]) == sorted(there)
