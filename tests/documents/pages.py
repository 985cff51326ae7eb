"""The documents as a reader sees them: their code blocks, links and anchors."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,})(?P<language>\w*)\s*$")
_SKIP = re.compile(r"<!-- skip: (?P<reason>.+?) -->\s*$")
_LINK = re.compile(r"(?<!!)\]\((?!\w+:)(?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$")
_ID = re.compile(r'<a id="([^"]+)">')


@dataclass(frozen=True)
class Block:
    """A fenced code block: its language, its text, the line in which that begins, and why it is not run."""

    language: str
    text: str
    line: int
    skipped: str | None


@dataclass(frozen=True)
class Link:
    """A link to a file of the repository, as it is written, and the line that it is in."""

    target: str
    anchor: str | None
    line: int


def documents() -> list[Path]:
    """Every page of prose."""
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")]
    deploy = [ROOT / "deploy" / "README.md", ROOT / "deploy" / "hive-acid-metastore" / "README.md"]
    return [*top, *deploy, ROOT / "idl" / "METHODS.md", *sorted(DOCS.rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The code blocks of a page; a comment ``<!-- skip: reason -->`` before one says why it is not run."""
    return [part for part in _parts(text) if isinstance(part, Block)]


def notebooks() -> list[Path]:
    """Every notebook."""
    return sorted(DOCS.rglob("*.ipynb"))


def cells(notebook: Path) -> list[Block]:
    """The code cells of a notebook; their line is 1."""
    found = json.loads(notebook.read_text())["cells"]
    return [Block("python", "".join(cell["source"]), 1, None) for cell in found if cell["cell_type"] == "code"]


def links(text: str) -> list[Link]:
    """The links of a page to other pages and files, those in code left out."""
    found = []
    for number, line in _prose(text):
        plain = re.sub(r"`[^`]*`", "", line)
        found += [Link(match["target"], match["anchor"], number) for match in _LINK.finditer(plain)]
    return found


def anchors(text: str) -> set[str]:
    """What a link to a page may name behind ``#``: its headings, as GitHub and MkDocs call them, and its marks."""
    found: set[str] = set()
    for _, line in _prose(text):
        found |= set(_ID.findall(line))
        if heading := _HEADING.match(line):
            words = re.sub(r"<[^>]*>", "", re.sub(r"[`*]", "", heading["text"]))
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
            found |= {_by_mkdocs(words), _by_github(words)}
    return found


def _by_mkdocs(words: str) -> str:
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _by_github(words: str) -> str:
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words.lower()))


def _prose(text: str) -> Iterator[tuple[int, str]]:
    return (part for part in _parts(text) if not isinstance(part, Block))


def _parts(text: str) -> Iterator[Block | tuple[int, str]]:
    """The blocks of a page, and each line outside of them with its number."""
    lines = iter(enumerate(text.splitlines(), 1))
    before = ""
    for number, line in lines:
        if not (fence := _FENCE.match(line)):
            yield number, line
            before = line if line.strip() else before
            continue
        inside = []
        for _, inner in lines:
            if inner.strip() == fence["marks"]:
                break
            inside.append(inner.removeprefix(fence["indent"]))
        else:
            raise ValueError(f"the code block of line {number} has no end")
        skip = _SKIP.match(before.strip())
        yield Block(fence["language"], "\n".join(inside), number + 1, skip["reason"] if skip else None)
        before = ""
