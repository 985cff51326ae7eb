"""Numbers of numpy, which Spark and users take for Python's."""

from __future__ import annotations

from typing import Any

_KINDS = frozenset("biuf")
"""numpy's: booleans, whole numbers, floats."""


def python_number(value: object) -> Any:
    """A single number of numpy as Python's; anything else as it is."""
    found: Any = value
    kind = getattr(getattr(value, "dtype", None), "kind", None)  # a Column has any attribute, which is a Column
    is_number = isinstance(kind, str) and kind in _KINDS and found.shape == ()
    return found.item() if is_number else value
