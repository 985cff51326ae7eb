"""Names in Spark's SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"
