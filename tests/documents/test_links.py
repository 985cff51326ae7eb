"""Every link of every document leads to a file and an anchor that are there; every page is found from the site."""

import re
from typing import Any

import pytest

from tests.documents.pages import DOCS, ROOT, anchors, blocks, documents, links

CONFIGURATION = ROOT / "mkdocs.yml"


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Any) -> None:
    wrong = []
    for link in links(page.read_text()):
        target = (page.parent / link.target).resolve() if link.target else page
        if not target.exists():
            wrong.append(f"line {link.line}: there is no {link.target}")
        elif page.is_relative_to(DOCS) and not target.is_relative_to(DOCS):
            wrong.append(f"line {link.line}: {link.target} is no page of the site")
        elif link.anchor and link.anchor not in anchors(target.read_text()):
            wrong.append(f"line {link.line}: {link.target} has no #{link.anchor}")
    assert wrong == []


def test_every_page_is_in_the_navigation() -> None:
    named = re.findall(r"^ +- ([\w/-]+\.md)$", CONFIGURATION.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_what_is_wrong_is_found() -> None:
    text = '# A `b` c\n\n[x](y#z) `[no](w)`\n\n```sh\n[no](v)\n```\n## <a id="s1"></a>1 Ü – d\n'
    assert [(link.target, link.anchor, link.line) for link in links(text)] == [("y", "z", 3)]
    assert {"a-b-c", "s1", "1-u-d"} <= anchors(text)
    assert [(block.language, block.line, block.skipped) for block in blocks(text)] == [("sh", 6, None)]


def test_a_skipped_block_has_a_reason() -> None:
    text = "<!-- skip: needs a Trino -->\n\n```sh\nx\n```\n\n```sh\ny\n```\n"
    assert [block.skipped for block in blocks(text)] == ["needs a Trino", None]
