"""What a client speaks, by its first bytes: who comes to the wrong door is told so in the log."""

from __future__ import annotations

HANDSHAKE = 0x16
"""The first byte of a client that speaks TLS."""
_WORDS = (
    (b"\x16\x03", "TLS"),
    (b"\x01\x00\x00\x00", "SASL"),
    (b"\x80\x01", "plain Thrift"),
    (b"\x00\x00", "framed Thrift"),
)
_HTTP = tuple(f"{verb} ".encode() for verb in ("GET", "POST", "HEAD", "PUT", "OPTIONS", "PRI"))


def spoken(beginning: bytes | bytearray) -> str:
    """The name of what begins so; empty if it is none that we know."""
    for first, name in _WORDS:
        if beginning.startswith(first):
            return name
    return "HTTP" if beginning.startswith(_HTTP) else ""
