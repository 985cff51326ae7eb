"""Spark as the writer of all changes: of few ones the client writes the files itself otherwise."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

from hive_acid.spark import collected


def written_by_spark() -> AbstractContextManager[object]:
    """Within the block Spark writes events, however few they are."""
    return mock.patch.multiple(collected, MOST_KEYS=-1, MOST_ROWS=-1)
