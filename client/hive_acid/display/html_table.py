"""Small tables as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML; None is an empty cell."""
    lines = [_row("th", columns), *(_row("td", row) for row in rows)]
    return f"<table>\n{''.join(lines)}</table>"


def _row(tag: str, values: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(value)}</{tag}>' for value in values)}</tr>\n"


def _text(value: object) -> str:
    return "" if value is None else escape(str(value))
