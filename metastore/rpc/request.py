"""One message of a client, until it is decoded."""

from __future__ import annotations

from typing import Any

from metastore.rpc.encoding import codec


class Request:
    """Its bytes, and what the scanner has found out about them."""

    __slots__ = ("arguments", "elements", "message", "method", "sequence", "subjects")

    def __init__(self, method: str, sequence: int, message: bytes, elements: int = 0) -> None:
        self.method = method
        self.sequence = sequence
        self.message = message
        self.elements = elements
        self.arguments: list[Any] = []
        """Once they are decoded."""
        self.subjects: tuple[list[str], list[int]] | None = None
        """What it is about, of a large one, whose arguments are let go before it is written down."""

    def decode(self) -> list[Any]:
        """The arguments, decoded once; the bytes are let go. Raises InvalidInputError."""
        if self.message:
            message, self.message = self.message, b""
            self.arguments = codec.decode_arguments(self.method, message)
        return self.arguments
