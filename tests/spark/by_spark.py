"""Spark as the writer of all files: those of few rows the client writes itself otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hive_acid.spark import AcidSession

WRITTEN = {"driver_deletes": -1, "driver_rows": -1}
"""Limits by which Spark writes events, however few they are."""

MERGED = {"arrow_bytes": -1}
"""Limits by which Spark merges the rows of compactions, however few they are."""


@contextmanager
def limited(acid: AcidSession, **limits: int) -> Iterator[None]:
    """Within the block statements of `acid`, and compactions by `compact_table`, go by these limits."""
    before = acid.limits
    acid.limits = replace(before, **limits)
    try:
        yield
    finally:
        acid.limits = before
