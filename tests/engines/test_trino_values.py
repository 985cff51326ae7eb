"""Hostile values through Trino 476 and through our client."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from hive_acid.spark import AcidSession
from tests.engines.trino import TrinoEngine
from tests.engines.values import COLUMNS, SIMPLE, expected, of_trino, rows_of, told, trino_literal

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

GREGORIAN = datetime.date(1582, 10, 15)
"""Trino knows no Julian calendar: it shows days before as others, and so do we what it wrote (docs/limits.md)."""
MODERN = [
    row[0]
    for row in rows_of()
    if row[list(COLUMNS).index("day")] is None or row[list(COLUMNS).index("day")] >= GREGORIAN
]


def of_modern(texts: Any) -> Any:
    return [text for text in texts if int(text[1:].partition(",")[0]) in MODERN]


def test_what_we_write_is_what_trino_reads(trino: TrinoEngine, acid: AcidSession, written: str) -> None:
    modern = [row for row in trino.sql(f"SELECT * FROM {written}") if row[0] in MODERN]  # of others it makes a year 0
    assert told(of_trino(modern)) == of_modern(expected())


def test_what_trino_is_told_is_what_we_read(trino: TrinoEngine, acid: AcidSession, db: str) -> None:
    acid.create_table(f"{db}.t", {name: COLUMNS[name] for name in SIMPLE})
    kinds = [COLUMNS[name] for name in SIMPLE]
    for row in rows_of(SIMPLE):
        if row[0] in MODERN:
            trino.sql(f"INSERT INTO {db}.t SELECT {', '.join(map(trino_literal, kinds, row))}")
    found = told([tuple(row) for row in acid.table(f"{db}.t").collect()])
    assert found == of_modern(expected(SIMPLE))
