"""One message of a client, until it is decoded."""

from __future__ import annotations

from typing import Any

from metastore.rpc import codec
from metastore.rpc.admission import LARGE_BYTES, LARGE_ELEMENTS


class Request:
    """Its bytes, and what the scanner has found out about them."""

    __slots__ = ("arguments", "elements", "message", "method", "sequence")

    def __init__(self, method: str, sequence: int, message: bytes, elements: int = 0) -> None:
        self.method = method
        self.sequence = sequence
        self.message = message
        self.elements = elements
        self.arguments: list[Any] = []

    @property
    def is_large(self) -> bool:
        """Whether it is worth waiting for a turn, and a thread, to decode it."""
        return self.elements > LARGE_ELEMENTS or len(self.message) > LARGE_BYTES

    def decode(self) -> list[Any]:
        """The arguments, decoded once; the bytes are let go. Raises InvalidInputError."""
        if self.message:
            message, self.message = self.message, b""
            self.arguments = codec.decode_arguments(self.method, message)
        return self.arguments
