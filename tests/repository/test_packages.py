"""The two packages: an editable install does not show what their lists lack."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import hive_acid
import metastore

ROOT = Path(__file__).parent.parent.parent
CLIENT, SERVER = ROOT, ROOT / "deploy" / "hive-acid-metastore"
"""Where a package is described."""
FOR_READERS = (".md", ".tsv")
"""What lies beside the code for people and tests."""


def described(project: Path) -> dict[str, Any]:
    return tomllib.loads((project / "pyproject.toml").read_text())


def sources(project: Path) -> Iterator[tuple[str, Path]]:
    """The files of a package's folders, each with the name of the package that it is in."""
    for name, place in described(project)["tool"]["setuptools"]["package-dir"].items():
        folder = (project / place).resolve()
        for file in folder.rglob("*.py"):
            yield ".".join((name, *file.parent.relative_to(folder).parts)), file


def required(project: Path, *extras: str) -> dict[str, str]:
    """What is asked for, by normal name."""
    asked = described(project)["project"]
    lines = [*asked["dependencies"], *(one for name in extras for one in asked["optional-dependencies"][name])]
    return {_normal(re.split(r"[\[<>=]", line)[0]): line for line in lines}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("project", [CLIENT, SERVER], ids=["client", "server"])
def test_every_package_is_in_the_list(project: Path) -> None:
    there = {package for package, _ in sources(project)}
    assert sorted(described(project)["tool"]["setuptools"]["packages"]) == sorted(there)


@pytest.mark.parametrize("project", [CLIENT, SERVER], ids=["client", "server"])
def test_every_file_that_is_no_code_comes_along(project: Path) -> None:
    setuptools = described(project)["tool"]["setuptools"]
    patterns = setuptools["package-data"]["*"]
    folders = [(project / place).resolve() for place in setuptools["package-dir"].values()]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    data = [file for file in files if file.suffix not in (".py", ".pyc", *FOR_READERS)]
    assert data
    assert [file for file in data if not any(file.match(pattern) for pattern in patterns)] == []


def test_no_package_is_in_both() -> None:
    client, server = ({name for name, _ in sources(project)} for project in (CLIENT, SERVER))
    assert {name.partition(".")[0] for name in client} == {"hive_acid"}
    assert {name.partition(".")[0] for name in server} == {"metastore"}


def test_they_have_one_version() -> None:
    assert metastore.__version__ == hive_acid.__version__
    assert required(SERVER)["hive-acid"] == f"hive-acid=={hive_acid.__version__}"


def test_what_they_have_in_common_is_asked_for_alike() -> None:
    ours = required(CLIENT, *described(CLIENT)["project"]["optional-dependencies"])
    theirs = required(SERVER)
    assert {name: theirs[name] for name in ours.keys() & theirs.keys()} == {
        name: ours[name] for name in ours.keys() & theirs.keys()
    }


def test_what_the_server_imports_is_asked_for() -> None:
    """Another package may bring it along today."""
    brought = {"hive_acid", "metastore", *sys.stdlib_module_names}
    imported = {
        name.partition(".")[0]
        for _, file in sources(SERVER)
        for node in ast.walk(ast.parse(file.read_text()))
        for name in _imported(node)
    } - brought
    assert len(imported) > 5
    distributions = packages_distributions()
    assert {_normal(distributions[name][0]) for name in imported} <= required(SERVER).keys()


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
