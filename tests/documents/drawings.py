"""The drawings of the state machines in docs/architecture/states.md, made from the tables in ``states.py``.

``python -m tests.documents.drawings`` writes them; `tests/documents/test_docs.py` keeps them true.
"""

from __future__ import annotations

from pathlib import Path

from metastore.compaction import states as compaction
from metastore.lock.states import LOCK_ARROWS
from metastore.txn.states import ARROWS

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "architecture" / "states.md"
BEGIN, END = "<!-- states: begin -->\n", "<!-- states: end -->"


def mermaid(arrows: list[tuple[str | None, str, str | None]]) -> str:
    """One diagram; None is the state of not being there. Arrows between the same states share one line."""
    joined: dict[tuple[str, str], list[str]] = {}
    for source, verb, target in arrows:
        joined.setdefault((source or "[*]", target or "[*]"), []).append(verb)
    lines = [f"    {source} --> {target}: {' / '.join(verbs)}" for (source, target), verbs in joined.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _name(state: object) -> str | None:
    return None if state is None else state.name.lower()  # type: ignore[attr-defined]


def drawings() -> str:
    """The text between the marks."""
    transaction = [(_name(arrow.source), arrow.verb.value, _name(arrow.target)) for arrow in ARROWS]
    lock = [(_name(source), verb, _name(target)) for source, verb, target in LOCK_ARROWS]
    queue = [(_name(arrow.source), arrow.verb.value, _name(arrow.target)) for arrow in compaction.ARROWS]
    parts = [("A transaction", transaction), ("A lock request", lock), ("A compaction", queue)]
    return "\n\n".join(f"**{title}**\n\n{mermaid(arrows)}" for title, arrows in parts) + "\n"


def main() -> None:
    """Write the drawings into the page."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(before + BEGIN + drawings() + END + after)


if __name__ == "__main__":
    main()
