"""The code blocks of README and docs, and the cells of notebooks, run in order, each page by itself."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.documents.pages import ROOT, blocks, cells, documents, notebooks
from tests.documents.play import OTHER, Player
from tests.ports import free_port
from tests.served import served
from tests.spark.conftest import started

RUN = {"python", "sql", "sh"}
PAGES = {
    str(page.relative_to(ROOT)): found
    for page in documents()
    if page.name != "README.md" or page.parent != ROOT  # test_readme.py runs that in a process of its own
    if (found := [block for block in blocks(page.read_text()) if block.language in RUN and not block.skipped])
}
PAGES |= {str(notebook.relative_to(ROOT)): cells(notebook) for notebook in notebooks()}
SETTINGS = {"metastore.catalog.undrop.window": "24h"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that the tests of Spark have, if some run in the same process."""
    session = started()
    yield session
    session.stop()


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_run(page: Any, spark: SparkSession, postgres_url: str, template: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(served(postgres_url, template, tmp_path / "warehouse", SETTINGS))
        other = ""
        if any(OTHER in block.text for block in PAGES[page]):
            other = stack.enter_context(served(postgres_url, template, tmp_path / "old")).uri
        player = Player(server.uri, server.db_url, tmp_path, free_port(), other)
        stack.callback(player.close)
        for block in PAGES[page]:
            player.play(block, page)
    for view in spark.catalog.listTables():
        if view.isTemporary:
            spark.catalog.dropTempView(view.name)


def test_other_languages_are_known() -> None:
    """So that no block of code is passed by since its language is misspelt."""
    known = RUN | {"", "text", "yaml", "toml", "mermaid", "xml", "jinja", "json"}
    languages = {block.language for page in documents() for block in blocks(Path(page).read_text())}
    assert languages <= known
