"""Replacements in the text of a statement: the syntax tree only tells where they are."""

from __future__ import annotations

from sqlglot import exp

from hive_acid.spark.values.quoting import quoted


class Edits:
    """Replacements in a text, made all at once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._made: dict[int, tuple[int, str]] = {}

    @property
    def is_ambiguous(self) -> bool:
        """Whether a WHERE may say something else than it seems to.

        Of steps with ``|>`` between, it may be about what an earlier one has made. What double quotes stand for, a text
        or a name, and what a backslash, are settings of the session; what ``${name}`` stands for, too.
        """
        return any(sign in self.text for sign in ("|>", '"', "\\", "${"))

    def replace(self, start: int, end: int, place: str, literal: str = "") -> None:
        """Put `place`, which belongs to the template, and then the plain text `literal` for a slice."""
        self._made[start] = (end, place + escaped(literal))

    def template(self) -> str:
        parts, at = [], 0
        for start, (end, replacement) in sorted(self._made.items()):
            parts += [escaped(self.text[at:start]), replacement]
            at = end
        return "".join((*parts, escaped(self.text[at:])))


def escaped(text: str) -> str:
    """Plain text as part of a template."""
    return text.replace("{", "{{").replace("}", "}}")


def put_frame(node: exp.Table, key: str, edits: Edits) -> None:
    """A place for a frame instead of a name, by which its columns are still called."""
    start, end = node.parts[0].meta["start"], node.parts[-1].meta["end"] + 1
    if node.alias:
        edits.replace(start, end, f"{{{key}}}")
    else:
        edits.replace(start, end, f"({{{key}}} AS ", f"{quoted(node.name)})")
