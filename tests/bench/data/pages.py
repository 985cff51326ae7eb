"""The tables of the documents that are made of measured files: ``python -m tests.bench.data --pages`` makes them anew.

What stands between ``<!-- measured: FILE SPARK TABLE -->`` and ``<!-- end -->`` is the table, of what the PySpark whose
version begins by SPARK has measured in ``docs/measured/FILE``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

from tests.bench.data import report
from tests.bench.data.lifecycle import CHANGES
from tests.bench.data.record import Section, sections
from tests.documents.pages import DOCS, ROOT

MEASURED = DOCS / "measured"
PAGES = (ROOT / "README.md", DOCS / "benchmarks.md")

_IN_README = ("load", "clean: all columns", "changed: all columns", "changed: two columns", *CHANGES)
_TABLES: dict[str, Callable[[Section], list[str]]] = {
    "title": lambda section: [f"*{section.title}.*"],
    "short": partial(report.costs, steps=_IN_README),
    "life": partial(report.costs, steps=report.LIFE),
    "deleted": partial(report.costs, steps=report.DELETED),
    "statements": partial(report.costs, steps=report.STATEMENTS),
    "memory": report.memory,
    "files": report.files,
}
BLOCK = re.compile(r"(<!-- measured: (\S+) (\S+) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def made(page: str) -> str:
    """The text of a page with its tables as the files have them."""
    return BLOCK.sub(_block, page)


def make() -> None:
    """Write the pages anew."""
    for page in PAGES:
        page.write_text(made(page.read_text()))


def _block(found: re.Match[str]) -> str:
    begin, file, spark, table, end = found.groups()
    section = next(
        one
        for one in sections(json.loads((MEASURED / file).read_text()))
        if one.kept["versions"]["PySpark"].startswith(spark)
    )
    return "\n".join((begin, *_TABLES[table](section), "", end))
