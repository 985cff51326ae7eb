"""Citations of the specification: each names a page, a section and an item that are there (docs/spec/index.md)."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SPEC = ROOT / "docs" / "spec"
PLACES = ("client", "metastore", "migrations", "idl", "deploy", "docs", "tests")
KINDS = {".py", ".sql", ".thrift", ".md", ".yml", ".yaml", ".json", ".tsv", ".spec", ".proto"}
_THIS = Path(__file__).name

_PAGE = r"[\w./-]*[\w-]\.md\b"
_NUMBER = r"\d+(?:\.\d+)*"
_BETWEEN = r"[\s,;]|\band\b|\bto\b|\bor\b|\bchecklist\b|\b(?:item|point|step)s?\b"
_CITATION = re.compile(rf"(?P<page>{_PAGE})`?(?P<tail>(?:{_BETWEEN}|§{_NUMBER}|\b\d+\b(?!\w))*)")
_PART = re.compile(rf"§(?P<section>{_NUMBER})|\b(?P<first>\d+)\b(?:\s+to\s+(?P<last>\d+)\b)?")
_LINK = re.compile(r"\]\((?!\w+:)(?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_HEADING = re.compile(r'^##+ (?:<a id="(?P<anchor>[^"]*)"></a>)?(?P<number>\d+(?:\.\d+)*) \S', re.MULTILINE)
_NEXT_LINE = re.compile(r"[ \t]*\n[ \t]*(?:--|#|//|\*)?[ \t]*")


@cache
def sections(page: str) -> dict[str, set[int]]:
    """The sections of a page of the specification by number, each with the numbers of its list's items."""
    text = (SPEC / page).read_text()
    found = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in found[1:]), len(text)]
    return {
        heading["number"]: {int(n) for n in re.findall(r"^(\d+)\. ", text[heading.end() : end], re.MULTILINE)}
        for heading, end in zip(found, ends, strict=True)
    }


@cache
def documents() -> frozenset[str]:
    """The names of all documents in the repository."""
    return frozenset(path.name for path in sources() if path.suffix == ".md")


def sources() -> Iterator[Path]:
    """Every text of the repository that may cite something."""
    for path in (*ROOT.glob("*.*"), *(path for place in PLACES for path in (ROOT / place).rglob("*.*"))):
        if path.suffix in KINDS and path.is_file() and "__pycache__" not in path.parts:
            yield path


def faults(text: str, own_page: str = "") -> list[str]:
    """What is wrong with the citations of a text; a § by itself is of `own_page`, if it has one."""
    text = _NEXT_LINE.sub(" ", text)
    found: list[str] = []
    cited: list[tuple[int, int]] = []
    for match in _CITATION.finditer(text):
        cited.append(match.span())
        name = match["page"].rpartition("/")[2]
        if name not in documents():
            found.append(f"{name} is not in the repository")
        elif (SPEC / name).is_file():
            found += _absent(name, match["tail"])
        elif "§" in match["tail"]:
            found.append(f"{name} is no page of the specification, and has no sections")
    for at in (match.start() for match in re.finditer("§", text)):
        if any(start <= at < end for start, end in cited):
            continue
        if not own_page:
            found.append(f"'{text[at : at + 20]}' does not say of which page it is")
        else:
            number = re.match(rf"§({_NUMBER})", text[at:])
            if number and number[1] not in sections(own_page):
                found.append(f"{own_page} has no section {number[1]}")
    return found


def _absent(page: str, tail: str) -> Iterator[str]:
    """The sections and items of a page that `tail`, what follows its name, cites and that are not there."""
    section = None
    for part in _PART.finditer(tail):
        if part["section"]:
            section = part["section"]
            if section not in sections(page):
                yield f"{page} has no section {section}"
        elif section in sections(page):
            items = set(range(int(part["first"]), int(part["last"] or part["first"]) + 1))
            if not items <= sections(page)[section]:
                yield f"{page} §{section} has no item {min(items - sections(page)[section])}"


def test_every_citation_is_there() -> None:
    wrong = {}
    for path in sources():
        text = path.read_text(errors="replace")
        if path.name != _THIS and ("§" in text or ".md" in text):
            own_page = path.name if path.parent == SPEC and path.name != "index.md" else ""
            if found := faults(text, own_page):
                wrong[str(path.relative_to(ROOT))] = found
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(acid-format.md §3.5)", ""),
        ("-- (transactions.md\n-- §1.4 and §2.2), one row", ""),
        ("see docs/spec/transactions.md §9, items 41 to 53, over the wire", ""),
        ("(acid-format.md §99)", "acid-format.md has no section 99"),
        ("(transactions.md §1.4 to §1.99)", "transactions.md has no section 1.99"),
        ("# (transactions.md §9, items 41\n# to 99)", "transactions.md §9 has no item 67"),
        ("(paper.md §1)", "paper.md is not in the repository"),
        ("(README.md §1)", "README.md is no page of the specification, and has no sections"),
        ("a rule (§3.5)", "'§3.5)' does not say of which page it is"),
    ],
)
def test_faults_are_found(text: str, fault: str) -> None:
    assert faults(text) == ([fault] if fault else [])


def test_links_of_the_specification_lead_somewhere() -> None:
    for page in SPEC.glob("*.md"):
        for link in _LINK.finditer(page.read_text()):
            target = (page.parent / link["target"]).resolve() if link["target"] else page
            assert target.exists(), f"{page.name} links to {link['target']}"
            if link["anchor"] and target.parent == SPEC:
                assert f'<a id="{link["anchor"]}"></a>' in target.read_text(), f"{page.name}: {link[0]}"


def test_files_that_the_documents_name_are_there() -> None:
    """By their room: ``spark/scan.py`` is somewhere below a folder ``spark``."""
    parts = [path.relative_to(ROOT).parts for path in sources()]
    for page in (ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")):
        for name in set(re.findall(r"`([\w./-]+\.(?:py|sql|thrift))`", page.read_text())) - {"acid.sql", "spark.sql"}:
            *rooms, file = name.split("/")
            found = [of for of in parts if of[-1] == file and _in_order(rooms, of[:-1])]
            assert found, f"{page.name} names {name}, which is not there"


def _in_order(wanted: Sequence[str], given: Sequence[str]) -> bool:
    left = iter(given)
    return all(one in left for one in wanted)


def test_sections_are_numbered_once_and_have_their_anchors() -> None:
    for page in SPEC.glob("*.md"):
        headings = list(_HEADING.finditer(page.read_text()))
        numbers = [heading["number"] for heading in headings]
        assert len(numbers) == len(set(numbers)), page.name
        assert [heading["anchor"] for heading in headings] == [f"s{number}" for number in numbers], page.name


def test_the_checklist_is_the_tests_of_it() -> None:
    played = {
        int(number)
        for path in (ROOT / "tests" / "checklist").glob("test_*.py")
        for number in re.findall(r"^def test_(\d\d)_", path.read_text(), re.MULTILINE)
    }
    crashes = 66  # is tests/compaction/crash
    assert sections("transactions.md")["9"] == played | {crashes}
