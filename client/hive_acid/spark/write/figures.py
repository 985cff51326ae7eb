"""Basic statistics as the metastore keeps them: parameters of a table or partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.format.properties import ACCURATE
from hive_acid.wire import ttypes

COMPUTED = ttypes.EnvironmentContext(properties={"STATS_GENERATED": "TASK", "hive_acid.statistics.only": "true"})
"""Says of an alteration that its statistics have just been computed. Our metastore then changes nothing but figures:
the definition sent with them may be out of date."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was counted: rows that are visible, and the files that hold them, with their sizes."""

    rows: int
    files: int
    size_bytes: int


def with_figures(parameters: Mapping[str, str] | None, figures: Figures) -> dict[str, str]:
    """Parameters that say these figures, and call them accurate."""
    return {
        **(parameters or {}),
        "numRows": str(figures.rows),
        "numFiles": str(figures.files),
        "totalSize": str(figures.size_bytes),
        ACCURATE: '{"BASIC_STATS":"true"}',
    }
