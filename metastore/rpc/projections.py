"""Structs reduced to the fields that a request asks for (``GetProjectionsSpec.fieldList``), as ``sd.location``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_Tree = dict[str, Any]


class Projection:
    """The fields to keep, as dotted paths from the struct; a path that ends at a struct or a list keeps all of it."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._tree: _Tree = {}
        for path in paths:
            tree = self._tree
            for name in path.split("."):
                tree = tree.setdefault(name, {})

    @property
    def fields(self) -> frozenset[str]:
        """The fields of the struct itself of which something is kept."""
        return frozenset(self._tree)

    def of(self, struct: Any) -> Any:
        """A struct with what is kept of this one; required fields always are."""
        return _kept(struct, self._tree)


def _kept(value: Any, tree: _Tree) -> Any:
    if not tree or value is None:
        return value
    if isinstance(value, list):
        return [_kept(item, tree) for item in value]
    if not hasattr(value, "thrift_spec"):
        return value
    found = type(value)()
    for field in value.thrift_spec.values():
        name, is_required = field[1], field[-1]
        if name in tree:
            setattr(found, name, _kept(getattr(value, name), tree[name]))
        elif is_required:
            setattr(found, name, getattr(value, name))
    return found
