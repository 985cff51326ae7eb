"""A text that is not UTF-8 is found wherever a method may be given one."""

from collections.abc import Iterator
from typing import Any

import pytest
from thriftpy2.thrift import TType

from hive_acid.wire import service
from metastore.rpc.encoding.faults import fault_of
from metastore.rpc.encoding.field_tables import field_parts, item_parts
from tests.repository.methods import methods

BAD = b"\xff\xfe\0"
DEEPEST = 6


def _values(kind: int, inner: Any, depth: int = 0) -> Iterator[Any]:
    """Values of a type, each with one bad text in it."""
    if depth > DEEPEST:
        return
    if kind == TType.STRING:
        yield BAD
    elif kind == TType.STRUCT:
        for field in inner.thrift_spec.values():
            below, name, parts = field_parts(field)
            for value in _values(below, parts, depth + 1):
                yield inner(**{name: value})
                break
    elif kind == TType.MAP:
        (key, key_parts), (item, item_parts_) = map(item_parts, inner)
        yield from ({value: None} for value in _values(key, key_parts, depth + 1))
        yield from ({"x": value} for value in _values(item, item_parts_, depth + 1))
    elif kind in (TType.LIST, TType.SET):
        yield from ([value] for value in _values(*item_parts(inner), depth + 1))


@pytest.mark.parametrize("method", [one.name for one in methods() if one.is_served])
def test_a_text_that_is_not_utf_8_is_found(method: str) -> None:
    arguments = getattr(service, f"{method}_args").thrift_spec.values()
    for field in arguments:
        kind, name, inner = field_parts(field)
        for value in _values(kind, inner):
            assert fault_of([None, value]), f"{name}: {value!r}"
