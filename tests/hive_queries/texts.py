"""The statements of a query file of Hive's, as its shell parts them."""

from __future__ import annotations

import re

_OF_SHELL = re.compile(r"(set|reset|dfs|source|(add|delete|list)\s+(jars?|files?|archives?))\b|!", re.IGNORECASE)
_PIECES = re.compile(
    r"""--[^\n]*|/\*(?!\+).*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|;|[^-/'"`;]+|.""", re.DOTALL
)
"""Comments but for hints, texts, names in quotes, semicolons, and what is between them."""
_DATA_SETS = re.compile(r"qt:dataset:([\w,]+)")
_CHANGED = re.compile(
    r"""\b(?:create\b.*?\b(?:table|view|database|schema|function)\s+(?:if\s+not\s+exists\s+)?
    |insert\s+(?:into|overwrite)\s+(?:table\s+)?|update\s+|delete\s+from\s+|merge\s+into\s+
    |load\s+data\b.*?\binto\s+table\s+|alter\s+(?:table|database|materialized\s+view)\s+|drop\s+\w+\s+
    |import\s+(?:external\s+)?table\s+|truncate\s+table\s+|exchange\s+)`?([\w.`]+)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def statements_of(text: str) -> list[str]:
    """The statements, without comments and semicolons."""
    found = [""]
    for piece in _PIECES.findall(text):
        if piece == ";":
            found.append("")
        elif not piece.startswith(("--", "/*")) or piece.startswith("/*+"):
            found[-1] += piece
    return [statement.strip() for statement in found if statement.strip()]


def is_of_shell(statement: str) -> bool:
    """Whether it is a word to Hive's shell."""
    return _OF_SHELL.match(statement) is not None


def data_sets_of(text: str) -> list[str]:
    """The tables that the file says it wants to be there."""
    return [name for names in _DATA_SETS.findall(text) for name in names.split(",")]


def words_of(statement: str) -> set[str]:
    """All that may be a name in it."""
    return set(re.findall(r"\w+", statement.lower()))


def changed_by(statement: str) -> set[str]:
    """The names of what a statement makes or changes."""
    return {name.replace("`", "").lower().rpartition(".")[2] for name in _CHANGED.findall(statement)}
