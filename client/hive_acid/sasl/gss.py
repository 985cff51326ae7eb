"""Kerberos by its library (GSSAPI), which is loaded where it is used: it needs libraries of the system."""

from __future__ import annotations

import importlib
from typing import Any

from hive_acid.sasl.seals import MOST_FRAME_BYTES, SealError

GSSAPI = "GSSAPI"
"""The name of the mechanism (RFC 4752)."""
MOST_OPENED_BYTES = (1 << 24) - 1
"""What we say that we take in a frame: all that can be said."""

_FAILURE = 13 << 16
"""GSS_S_FAILURE, of which the mechanism says more."""


class NoLibraryError(Exception):
    """There is no package gssapi, or it finds no library of the system."""


def library() -> Any:
    """The package. Raises NoLibraryError."""
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError) as error:
        raise NoLibraryError(
            f"Kerberos needs the package gssapi ({error}): pip install 'hive-acid[kerberos]', for which Debian has to "
            "have the packages libkrb5-dev, gcc and python3-dev"
        ) from None


def words(error: BaseException) -> str:
    """What the library says, in one line: of a failure without a name of its own what Kerberos says."""
    codes = getattr(error, "maj_code", None), getattr(error, "min_code", None)
    if None in codes:
        return str(error)
    told: Any = error
    major, minor = (
        list(told.get_all_statuses(code, is_major)) for code, is_major in zip(codes, (True, False), strict=True)
    )
    said = minor if codes[0] == _FAILURE and minor else major
    return " ".join(". ".join(said).split())


def context_of(gssapi: Any, **how: Any) -> Any:
    """A context that says at once what is wrong with a token, not when it is asked for the next thing."""
    context = gssapi.SecurityContext(**how)
    context.__DEFER_STEP_ERRORS__ = False
    return context


class GssSeal:
    """Frames by the key of a ticket."""

    def __init__(self, context: Any, is_private: bool, most_bytes: int) -> None:
        """`most_bytes` is what the other side takes in a frame."""
        self._context = context
        self._is_private = is_private
        self._error: type[Exception] = library().exceptions.GSSError
        self.most_bytes: int = context.get_wrap_size_limit(min(most_bytes, MOST_FRAME_BYTES), is_private)

    def sealed(self, piece: bytes) -> bytes:
        """A frame of it."""
        found: bytes = self._context.wrap(piece, self._is_private).message
        return found

    def opened(self, frame: bytes) -> bytes:
        """What is in a frame. Raises SealError."""
        try:
            found = self._context.unwrap(frame)
        except self._error as error:
            raise SealError(words(error)) from None
        if self._is_private and not found.encrypted:
            raise SealError("it is not encrypted")
        message: bytes = found.message
        return message
