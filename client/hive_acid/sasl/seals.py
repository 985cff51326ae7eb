"""What frames are sealed with once somebody has come in: with nothing, a code, or encryption (RFC 4422)."""

from __future__ import annotations

from typing import Protocol

AUTHENTICATION, INTEGRITY, PRIVACY = 1, 2, 4
LAYERS = {"authentication": AUTHENTICATION, "integrity": INTEGRITY, "privacy": PRIVACY}
"""By Hadoop's words (`hadoop.rpc.protection`); the numbers are those on the wire."""
MOST_FRAME_BYTES = 1 << 20
"""Of what is sent: newer clients of Java's take 16 MB at most."""
LEAST_FRAME_BYTES = 1024
"""Who takes less in a frame would have a large message cost too many."""


class SealError(Exception):
    """A frame is not as the other side has sealed it."""


class Seal(Protocol):
    """One connection's."""

    most_bytes: int
    """Of what goes into a frame."""

    def sealed(self, piece: bytes) -> bytes:
        """A frame of it."""

    def opened(self, frame: bytes) -> bytes:
        """What is in a frame. Raises SealError."""


def layers(text: str) -> tuple[int, ...]:
    """The layers that words with commas between name, in their order. Raises ValueError for another word, or none."""
    found = tuple(dict.fromkeys(LAYERS.get(word.strip().lower(), 0) for word in text.split(",") if word.strip()))
    if not found or 0 in found:
        raise ValueError(f"'{text}' is not one or more of {', '.join(LAYERS)}, with commas between")
    return found
