"""What a column gets that a record does not name: the constant that its DEFAULT says, as JSON would have it.

A DEFAULT is SQL, which only Spark computes: of others than constants it is known that records have to name the column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hive_acid.catalog.table import Table

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)
_TEXT = re.compile(r"'([^'\\]*)'")
_TIME = re.compile(
    r"(?:date|timestamp)\s*'([^'\\]*)'|cast\s*\(\s*'([^'\\]*)'\s+as\s+(?:date|timestamp)\s*\)", re.IGNORECASE
)
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Default:
    """A column's DEFAULT: its SQL, and its value if that `is_constant`."""

    text: str
    is_constant: bool
    value: Any = None


Defaults = Mapping[str, Default]
"""Those of the columns that have one."""


def defaults_of(table: Table) -> dict[str, Default]:
    """The defaults of a table's columns."""
    return {name: _default(text) for name, text in table.defaults.items()}


def _default(text: str) -> Default:
    said = text.strip()
    while said.startswith("(") and said.endswith(")"):
        said = said[1:-1].strip()
    if said.lower() in _WORDS:
        return Default(text, True, _WORDS[said.lower()])
    if _NUMBER.fullmatch(said):
        return Default(text, True, int(said) if said.lstrip("+-").isdigit() else Decimal(said))
    if found := _TEXT.fullmatch(said) or _TIME.fullmatch(said):
        return Default(text, True, next(part for part in found.groups() if part is not None))
    return Default(text, False)
