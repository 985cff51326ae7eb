"""Structs reduced to the fields that a request asks for (``GetProjectionsSpec.fieldList``), as ``sd.location``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thriftpy2.thrift import TType

from hive_acid.errors import MetaError
from metastore.rpc.encoding.field_tables import field_parts, item_parts

_Tree = dict[str, Any]


class Projection:
    """The fields to keep, as dotted paths from the struct; a path that ends at a struct or a list keeps all of it."""

    def __init__(self, paths: Sequence[str], struct_class: Any) -> None:
        """`is_single` says whether no path leads to a list or a map. Raises MetaError for one that is not there."""
        self._tree: _Tree = {}
        self.is_single = True
        for path in paths:
            tree, known = self._tree, struct_class
            for name in path.split("."):
                known = self._field(known, name)
                if known is None:
                    raise MetaError(f"there is no field {path} in a {struct_class.__name__}")
                tree = tree.setdefault(name, {})

    @property
    def fields(self) -> frozenset[str]:
        """The fields of the struct itself of which something is kept."""
        return frozenset(self._tree)

    def of(self, struct: Any) -> Any:
        """A struct with what is kept of this one; required fields always are."""
        return _kept(struct, self._tree)

    def _field(self, known: Any, name: str) -> Any:
        """What a field of a struct holds: its class, or that of a list's items; `object` for what has no fields itself.

        None if there is no such field.
        """
        for field in getattr(known, "thrift_spec", {}).values():
            kind, own, inner = field_parts(field)
            if own == name:
                self.is_single &= kind not in (TType.LIST, TType.SET, TType.MAP)
                while kind in (TType.LIST, TType.SET):
                    kind, inner = item_parts(inner)
                return inner if kind == TType.STRUCT else object
        return None


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
