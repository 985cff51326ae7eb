"""What the documents say, held against the code."""

import re
import subprocess

import pytest

from metastore.config import Config
from metastore.known_settings import KNOWN
from metastore.settings import spelling
from tests import defaults
from tests.documents.drawings import DRAWINGS, between, layers
from tests.documents.pages import ROOT, blocks, documents

PROPERTIES = {"hive.compactor.worker.pool"}
"""Properties of tables that are called like settings."""

NOT_HERE = {"hive.metastore.authorization.storage.checks"}
"""Hive's settings that a document names as a reason why something is not here."""


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_are_those_of_the_code(name: str) -> None:
    page, drawn = DRAWINGS[name]
    assert between(name, page.read_text())[1] == drawn(), "run: python -m tests.documents.drawings"


@pytest.mark.parametrize(
    ("contract", "place"),
    [
        ("The rooms of the Spark client import one way", "client/hive_acid/spark"),
        ("The daemon's imports go one way", "metastore"),
    ],
)
def test_every_room_has_its_layer(contract: str, place: str) -> None:
    """What is in no layer may import anything, and is in no drawing."""
    files = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT / place, capture_output=True, text=True, check=True)
    rooms = {name.partition("/")[0].removesuffix(".py") for name in files.stdout.splitlines()} - {"__init__"}
    assert {name for layer in layers(contract) for name in layer} == rooms


def test_settings_that_the_documents_name_exist() -> None:
    known = {spelling(key) for key in (*Config().values(), *NOT_HERE)} | set(KNOWN) | PROPERTIES
    text = "\n".join(page.read_text() for page in documents() if page.parent.name != "spec")
    named = set(re.findall(r"(?<![.\w])(?:hive|metastore)\.[a-z]+(?:\.[A-Za-z]+(?:-[a-z]+)*)+\b", text))
    families = [setting for setting, _ in Config().settings() if setting.family]
    of_family = {name for name in named if any(setting.member(name) for setting in families)}
    assert {name for name in named - of_family if spelling(name) not in known} == set()


def test_the_defaults_in_the_settings_page_are_those_of_the_code() -> None:
    written = defaults.DOCUMENT.read_text().partition(defaults.BEGIN)[2].partition(defaults.END)[0]
    assert written == defaults.table(), "run: python -m tests.defaults"


def test_paths_in_the_map_exist() -> None:
    block = (ROOT / "ARCHITECTURE.md").read_text().partition("```\n")[2].partition("```")[0]
    tops = re.findall(r"^(\w+(?:/\w+)*/) ", block, re.MULTILINE)
    assert tops
    for path in tops:
        assert (ROOT / path).is_dir(), path


def test_every_package_has_its_sentence() -> None:
    for init in [*ROOT.glob("metastore/**/__init__.py"), *ROOT.glob("client/**/__init__.py")]:
        assert init.read_text().strip().startswith('"""'), f"{init.relative_to(ROOT)} says nothing"


def test_the_macros_for_dbt_are_those_of_the_project_that_is_tested() -> None:
    page = (ROOT / "docs" / "howto" / "dbt.md").read_text()
    (shown,) = [block.text.strip() for block in blocks(page) if block.language == "jinja"]
    tested = (ROOT / "tests" / "engines" / "shop" / "macros" / "hive_acid.sql").read_text()
    assert tested.partition("#}\n")[2].strip() == shown
