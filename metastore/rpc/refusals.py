"""What a client is told of an error that no handler has expected: always an error of the IDL with a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.errors import HiveAcidError, InvalidInputError, MetaError, MetastoreError
from metastore.rpc.encoding.faults import fault_of
from metastore.store.connections.failures import cause_of, refusal_of

_ZERO_BYTE = "A string literal cannot contain NUL (0x00) characters."
"""What psycopg2 says of a text that Postgres cannot hold."""
_FILE_SYSTEMS = frozenset({"botocore", "aiobotocore", "aiohttp", "fsspec", "s3fs", "hdfs_native", "pyarrow"})
"""Packages with errors of their own for what is wrong with a file system, as for want of credentials."""
_NO_PROTOCOL = "Protocol not known"
"""What fsspec says of a place whose scheme nobody serves."""


def refusal(method: str, error: Exception, arguments: Sequence[Any]) -> MetastoreError | None:
    """The request's or the surroundings' fault; None if it is one of ours."""
    if isinstance(error, ValueError) and str(error) == _ZERO_BYTE:
        return InvalidInputError(f"{method}: a text contains a zero byte, which cannot be stored")
    if isinstance(error, UnicodeEncodeError):
        return InvalidInputError(f"{method}: a text is not UTF-8")
    if isinstance(error, RecursionError):
        return InvalidInputError(f"{method}: the request is nested too deeply")
    if isinstance(error, MemoryError):
        return MetaError(f"{method}: the request needs more memory than there is")
    if isinstance(error, (OSError, ImportError)) or _is_of_a_file_system(error):
        return MetaError(f"{method}: the file system has failed: {error}")
    if isinstance(error, HiveAcidError):  # what files hold, or that they cannot be looked at
        return MetaError(f"{method}: {error}")
    if (known := refusal_of(error)) is not None:
        return known
    if (fault := fault_of(arguments)) is not None:
        return InvalidInputError(f"{method}: {fault}")
    return None


def _is_of_a_file_system(error: Exception) -> bool:
    package = type(error).__module__.partition(".")[0]
    return package in _FILE_SYSTEMS or str(error).startswith(_NO_PROTOCOL)


def confession(method: str, error: Exception) -> MetastoreError:
    """An error of ours: the log has its traceback."""
    return MetaError(
        f"{method} has failed in the metastore, whose log says where: {type(error).__name__}: {cause_of(error)}"
    )
