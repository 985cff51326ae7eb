"""One figure with its name and labels, in whatever way it was come by."""

from __future__ import annotations

import enum
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]


class Kind(enum.Enum):
    """What sort of figure it is, in Prometheus' words."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"


class Sample(NamedTuple):
    """A figure; `suffix` is what a summary or histogram puts behind the name of the whole."""

    name: str
    value: float
    labels: Labels = ()
    kind: Kind = Kind.GAUGE
    suffix: str = ""


def labels(**given: str) -> Labels:
    """Labels in one order, so that equal ones are equal."""
    return tuple(sorted(given.items()))
