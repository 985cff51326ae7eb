"""Figures in Prometheus' text form, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable

from metastore.observe.samples import Labels, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "hive_"
"""Before every name: what follows is Hive's own."""

_MEANINGS = {
    "api_duration_seconds": "How long calls took, by method and outcome.",
    "service_cycle_seconds": "How long runs of the background services took.",
    "leader": "1 while this server runs the background services; figures of the present state are the leader's.",
    "ready": "1 while the server can serve calls: it is not stopping, and its database has answered within seconds.",
    "build_info": "The version of the server.",
    "open_connections": "Clients connected.",
    "database_trips_total": "Round trips to the database.",
}


def exposition(samples: Iterable[Sample]) -> str:
    """The text that a scrape is answered with: samples of one name together, each with its type."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines = []
    for name, found in sorted(by_name.items()):
        if name in _MEANINGS:
            lines.append(f"# HELP {PREFIX}{name} {_MEANINGS[name]}")
        lines.append(f"# TYPE {PREFIX}{name} {found[0].kind.value}")
        lines += [f"{PREFIX}{name}{one.suffix}{_labels(one.labels)} {_number(one.value)}" for one in found]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) else repr(float(value))
