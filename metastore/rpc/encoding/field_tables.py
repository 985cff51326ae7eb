"""thriftpy2's field tables, as those read them who walk structs of any kind.

A field is (type, name, required), with what it is made of before `required` if it is a container or a struct; an item
of a container is a type alone, or a type and what that is made of.
"""

from __future__ import annotations

from typing import Any


def field_parts(field: tuple[Any, ...]) -> tuple[int, str, Any]:
    """Type, name, and what it is made of (None for a plain value) of a field."""
    return (field[0], field[1], field[2] if len(field) > 3 else None)


def item_parts(spec: Any) -> tuple[int, Any]:
    """Type, and what it is made of, of a container's items."""
    return spec if isinstance(spec, tuple) else (spec, None)
