"""Replacements in the text of a statement: the syntax tree only tells where they are."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from hive_acid.spark.values.quoting import quoted


class Edits:
    """Replacements in a text, made all at once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._made: dict[int, tuple[int, str]] = {}
        self._put: dict[int, str] = {}
        self._placed: dict[str, tuple[int, int]] = {}

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

    def wrap(self, start: int, end: int, before: str, behind: str) -> None:
        """Put plain text around a slice, in which there may be other edits; no two begin or end at one place."""
        self._put |= {start: before, end: behind}

    def place(self, start: int, end: int, place: str) -> None:
        """Put a place for a slice, in which there may be other edits: `within` gives the template of it."""
        self._placed[place] = (start, end)

    def within(self, place: str) -> str:
        """The template of a slice that has a place in that of the text."""
        return self._between(*self._placed[place], {})

    def template(self) -> str:
        return self._between(0, len(self.text), self._placed)

    def _between(self, begin: int, end: int, placed: Mapping[str, tuple[int, int]]) -> str:
        made = [(start, *replaced) for start, replaced in self._made.items()]
        made += [(at, at, escaped(text)) for at, text in self._put.items()]
        made = [edit for edit in made if _is_within(edit, (begin, end))]
        made = [edit for edit in made if not any(_is_within(edit, slice_) for slice_ in placed.values())]
        made += [(a, b, f"{{{place}}}") for place, (a, b) in placed.items()]
        parts, at = [], begin
        for a, b, replacement in sorted(made):
            parts += [escaped(self.text[at:a]), replacement]
            at = b
        return "".join((*parts, escaped(self.text[at:end])))


def _is_within(edit: tuple[int, int, str], slice_: tuple[int, int]) -> bool:
    return slice_[0] <= edit[0] and edit[1] <= slice_[1]


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
