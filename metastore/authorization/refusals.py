"""The errors by which calls are refused."""

from __future__ import annotations

from functools import cache

from hive_acid.errors import THRIFT_ERRORS, MetaError, MetastoreError
from hive_acid.wire import service


def not_ones_own(method: str, words: str) -> MetastoreError:
    """Of a transaction or lock that is another's: as if it were not there, where the method can say that.

    Any other refusal is a MetaException, or an internal error where that is not declared: of `lock` a client would take
    NoSuchTxnException for the end of its transaction, and leave that open.
    """
    return _kind(method)(words)


@cache
def _kind(method: str) -> type[MetastoreError]:
    spec = getattr(service, f"{method}_result").thrift_spec
    declared = [field[2].__name__ for number, field in sorted(spec.items()) if number != 0]
    if not declared or MetaError.thrift_name in declared:
        return MetaError
    return THRIFT_ERRORS[declared[0]]
