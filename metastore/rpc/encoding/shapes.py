"""Messages that differ from an earlier one in their values alone are not walked again.

Where a message ends is told by its types and sizes; ids, numbers and letters of texts say nothing of it. Calls of one
method mostly agree in all but these, so a comparison, in C, finds what the walk would.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from metastore.rpc.encoding.framing import FIXED_SIZE, LIST, NO_LIMIT, SET, STOP, STRING, MessageScanner

LONGEST_BYTES = 512
"""Of a message that is compared: such are the calls of transactions."""
MAX_OF_LENGTH = 8
LEARNS_EACH = 8
"""Of so many messages that were walked one is kept: what comes often is soon, and the others cost little."""
_LENGTH_AT = 4
_sequence = struct.Struct(">i").unpack_from


@dataclass(frozen=True, slots=True)
class _Shape:
    """A message that was walked: as a number without what does not matter, of which `mask` has no bits."""

    mask: int
    rest: int
    name: str
    kind: int
    elements: int


class Shapes:
    """The shapes of messages that have come; of one server."""

    def __init__(self) -> None:
        self._by_length: dict[int, list[_Shape]] = {}
        self._walked = 0

    def scan(self, scanner: MessageScanner, data: bytes | bytearray, most: int = NO_LIMIT) -> int | None:
        """As `MessageScanner.scan`."""
        length = len(data)
        if length > LONGEST_BYTES or scanner.name:
            return scanner.scan(data, most)
        shapes = self._by_length.get(length)
        if shapes is not None:
            number = int.from_bytes(data, "big")
            for shape in shapes:
                if number & shape.mask == shape.rest:
                    (sequence,) = _sequence(data, _sequence_at(data))
                    return scanner.is_found(shape.name, shape.kind, sequence, shape.elements, length)
        end = scanner.scan(data, most)
        if end == length:
            self._walked += 1
            if self._walked % LEARNS_EACH == 0:
                self._learn(bytes(data), scanner)
        return end

    def _learn(self, message: bytes, scanner: MessageScanner) -> None:
        mask = _mask(message)
        shape = _Shape(mask, int.from_bytes(message, "big") & mask, scanner.name, scanner.kind, scanner.elements)
        shapes = self._by_length.setdefault(len(message), [])
        shapes.insert(0, shape)
        del shapes[MAX_OF_LENGTH:]


class _Tracer(MessageScanner):
    """Walks a whole message and notes which of its bytes say nothing of where others are."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        super().__init__(LONGEST_BYTES)
        self.free: list[tuple[int, int]] = []

    def _fields(self, data: bytes | bytearray, size: int) -> bool:
        kind = data[self._at]
        if kind == STOP:
            self._at += 1
            self._stack.pop()
            return True
        return self._value(data, size, kind, self._at + 3)

    def _value(self, data: bytes | bytearray, size: int, kind: int, at: int) -> bool:
        is_there = super()._value(data, size, kind, at)
        if kind in FIXED_SIZE:
            self.free.append((at, self._at))
        elif kind == STRING:
            self.free.append((at + 4, self._at))
        elif kind in (LIST, SET) and data[at] in FIXED_SIZE:
            self.free.append((at + 5, self._at))
        return is_there


def _mask(message: bytes) -> int:
    """The bits that say where parts of a message are that was walked before, and what its method is."""
    tracer = _Tracer()
    tracer.scan(message)
    mask = bytearray(b"\xff" * len(message))
    sequence_at = _sequence_at(message)
    for begin, end in ((sequence_at, sequence_at + 4), *tracer.free):
        mask[begin:end] = bytes(end - begin)
    return int.from_bytes(mask, "big")


def _sequence_at(message: bytes | bytearray) -> int:
    """Where the sequence number is: behind the method's name."""
    (length,) = _sequence(message, _LENGTH_AT)
    return _LENGTH_AT + 4 + int(length)
