"""The error by which a method refuses."""

from __future__ import annotations

from functools import cache

from hive_acid.errors import THRIFT_ERRORS, MetaError, MetastoreError
from hive_acid.wire import service


def refused(method: str, words: str) -> MetastoreError:
    """MetaException where the method declares it or nothing at all, else the first that it does declare."""
    return _kind(method)(words)


@cache
def _kind(method: str) -> type[MetastoreError]:
    spec = getattr(service, f"{method}_result").thrift_spec
    declared = [field[2].__name__ for number, field in sorted(spec.items()) if number != 0]
    if not declared or MetaError.thrift_name in declared:
        return MetaError
    return THRIFT_ERRORS[declared[0]]
