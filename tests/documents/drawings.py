"""Drawings in docs/architecture that are made from the code: the state machines, and who imports whom.

``python -m tests.documents.drawings`` writes them into the pages, between two marks that bear their names;
`tests/documents/test_docs.py` keeps them true. Who imports whom is told by import-linter's contracts in pyproject.toml,
to which `make lint` holds the code.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from metastore.compaction import states as compaction
from metastore.lock.states import LOCK_ARROWS
from metastore.txn.states import ARROWS

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "architecture"


def mermaid(arrows: list[tuple[str | None, str, str | None]]) -> str:
    """One diagram; None is the state of not being there. Arrows between the same states share one line."""
    joined: dict[tuple[str, str], list[str]] = {}
    for source, verb, target in arrows:
        joined.setdefault((source or "[*]", target or "[*]"), []).append(verb)
    lines = [f"    {source} --> {target}: {' / '.join(verbs)}" for (source, target), verbs in joined.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _name(state: object) -> str | None:
    return None if state is None else state.name.lower()  # type: ignore[attr-defined]


def states() -> str:
    """The state machines of transactions, locks and compactions."""
    transaction = [(_name(arrow.source), arrow.verb.value, _name(arrow.target)) for arrow in ARROWS]
    lock = [(_name(source), verb, _name(target)) for source, verb, target in LOCK_ARROWS]
    queue = [(_name(arrow.source), arrow.verb.value, _name(arrow.target)) for arrow in compaction.ARROWS]
    parts = [("A transaction", transaction), ("A lock request", lock), ("A compaction", queue)]
    return "\n\n".join(f"**{title}**\n\n{mermaid(arrows)}" for title, arrows in parts) + "\n"


def layers(contract: str) -> list[list[str]]:
    """The layers of a contract, the uppermost first; what is side by side in one has names of its own."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = (one["layers"] for one in contracts if one["name"] == contract)
    return [[name.strip().removeprefix("metastore.") for name in layer.split(":")] for layer in found]


def imports(contract: str) -> str:
    """A drawing of a contract: an arrow from each layer to the next."""
    order = layers(contract)
    lines = [f"    {' & '.join(upper)} --> {' & '.join(lower)}" for upper, lower in pairwise(order)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"]) + "\n"


DRAWINGS: dict[str, tuple[Path, Callable[[], str]]] = {
    "states": (PAGES / "states.md", states),
    "rooms of the Spark client": (
        PAGES / "imports.md", lambda: imports("The rooms of the Spark client import one way"),
    ),
    "layers of the server": (PAGES / "imports.md", lambda: imports("The daemon's imports go one way")),
}  # fmt: skip
"""By the name in the marks: the page, and what makes the drawing."""


def between(name: str, text: str) -> tuple[str, str, str]:
    """A page's text before a drawing, the drawing, and what is after it, the marks on the outside."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    found = re.fullmatch(f"(.*{re.escape(begin)})(.*)({re.escape(end)}.*)", text, re.DOTALL)
    assert found, f"no marks of {name}"
    return found[1], found[2], found[3]


def main() -> None:
    """Write the drawings into their pages."""
    for name, (page, drawn) in DRAWINGS.items():
        before, _, after = between(name, page.read_text())
        page.write_text(before + drawn() + after)


if __name__ == "__main__":
    main()
