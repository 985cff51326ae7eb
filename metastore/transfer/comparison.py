"""How two definitions of one object differ, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_LONGEST = 60
_MOST = 5


def differences(here: Mapping[str, Any], there: Mapping[str, Any], path: str = "") -> list[str]:
    """What has another value ``there`` than ``here``, each as ``field: 'x' here, 'y' there``; none if they are equal.

    Fields that hold nothing (null, empty) are like absent ones. Only the fields of `there` count at the top.
    """
    found = []
    for key in sorted({*there, *(here if path else ())}):
        ours, theirs = here.get(key), there.get(key)
        name = f"{path}{key}"
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            found += differences(ours, theirs, f"{name}.")
        elif ours != theirs and not (_is_nothing(ours) and _is_nothing(theirs)):
            found.append(f"{name}: {_shortened(ours)} here, {_shortened(theirs)} there")
    return found


def in_words(found: list[str]) -> str:
    """Some of the differences in one line."""
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def _is_nothing(value: Any) -> bool:
    return value is None or value == "" or value == {} or value == []


def _shortened(value: Any) -> str:
    if _is_nothing(value):
        return "nothing"
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def ranges(ids: Iterable[int]) -> str:
    """Ids in words: ``1-3, 7``."""
    runs: list[list[int]] = []
    for one in sorted(ids):
        if runs and runs[-1][1] == one - 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:_MOST]) + (
        f" and {len(runs) - _MOST} more" if len(runs) > _MOST else ""
    )
