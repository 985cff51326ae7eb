"""Several statements in one text, with semicolons between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hive_acid.spark.sql.tokens import tokens_of

_BLANK_LINES = re.compile(r"\n\s*\n")
_SHOWN_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script: its number from 1 on, the line in which it begins, and its text.

    Blanks stand before it, so that lines and columns are those of the script.
    """

    number: int
    line: int
    text: str

    def failed(self, error: Exception) -> str:
        """What is said of an error of this statement."""
        said = _BLANK_LINES.sub("\n", str(error).strip())[:_SHOWN_LENGTH]
        return f"statement {self.number}, in line {self.line}: {said or type(error).__name__}"


def statements_of(script: str) -> Iterator[Statement]:
    """The statements of a text; semicolons in texts, names and comments part none. Raises SqlError, as `tokens_of`."""
    number, first, end = 0, None, 0
    for token in (*tokens_of(script), None):
        if token is not None and token.word != ";":
            first, end = token.start if first is None else first, token.end
        elif first is not None:
            number += 1
            before = script.rfind("\n", 0, first) + 1
            line = script.count("\n", 0, first)
            yield Statement(number, line + 1, "\n" * line + " " * (first - before) + script[first:end])
            first = None
