"""What the tables hold, as a model: each row by its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.spark.reading import canonical

PARTITIONED, FLAT, INSERT_ONLY = "t", "f", "o"
TABLES = (PARTITIONED, FLAT, INSERT_ONLY)
KEYED = (PARTITIONED, INSERT_ONLY)
"""The tables that have a partition column."""


class Line(NamedTuple):
    """A row but its id; a table that is not partitioned leaves `p` out."""

    v: int
    p: int


Lines = Mapping[int, Line]
Content = Mapping[str, Lines]


def canonical_content(content: Content) -> dict[str, list[str]]:
    """As `tests.spark.reading.Reader` gives it."""
    return {
        table: canonical(
            {"id": number, "v": line.v, **({"p": line.p} if table in KEYED else {})} for number, line in lines.items()
        )
        for table, lines in content.items()
    }
