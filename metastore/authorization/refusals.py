"""The errors by which calls are refused."""

from __future__ import annotations

from functools import cache

from hive_acid.errors import THRIFT_ERRORS, MetaError, MetastoreError, NoSuchObjectError
from hive_acid.wire import service
from metastore.authorization.models import Thing


def not_ones_own(method: str, words: str) -> MetastoreError:
    """Of a transaction or lock that is another's: as if it were not there, where the method can say that.

    Any other refusal is a MetaException, or an internal error where that is not declared: of `lock` a client would take
    NoSuchTxnException for the end of its transaction, and leave that open.
    """
    return _kind(method)(words)


def absent(method: str, thing: Thing) -> MetastoreError:
    """Of a table that is not there: as the method tells that, if it can."""
    declared = _declared(method)
    kind = NoSuchObjectError if NoSuchObjectError.thrift_name in declared else _kind(method)
    return kind(f"{str(thing).removeprefix('table ')} table not found")


@cache
def _kind(method: str) -> type[MetastoreError]:
    declared = _declared(method)
    if not declared or MetaError.thrift_name in declared:
        return MetaError
    return THRIFT_ERRORS[declared[0]]


@cache
def _declared(method: str) -> list[str]:
    """The exceptions of a method, in their order."""
    spec = getattr(service, f"{method}_result").thrift_spec
    return [field[2].__name__ for number, field in sorted(spec.items()) if number != 0]
