"""Where a message ends: a resumable scan of Thrift's strict binary protocol.

The protocol on port 9083 is unframed, so a message's length is known only by walking it. The scan walks each byte once
however the message is cut into reads, and refuses what the decoder behind it would trust blindly: sizes beyond the
limit, unknown types, nesting too deep (metastore-wire.md §7, point 4).
"""

from __future__ import annotations

import struct

STOP, BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = 0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
FIXED_SIZE = {BOOL: 1, BYTE: 1, DOUBLE: 8, I16: 2, I32: 4, I64: 8}
CONTAINERS = frozenset({STRUCT, MAP, SET, LIST, STRING})
MAX_DEPTH = 32
CALL, ONEWAY = 1, 4
_VERSION = b"\x80\x01\x00"

_i16 = struct.Struct(">h").unpack_from
_i32 = struct.Struct(">i").unpack_from


class ProtocolError(Exception):
    """The bytes are not a message we accept; the sentence says why."""


class MessageScanner:
    """Finds the end of one message in a growing buffer.

    Call `scan` with the whole buffer each time bytes were added; it returns the message's length, or None while bytes
    are missing. `name`, `kind` and `sequence` hold the header once it is complete.
    """

    __slots__ = ("_at", "_limit", "_stack", "kind", "name", "sequence")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._at = 0
        # Open items, innermost last: [STRUCT], or [element types still to come, cycle length, items left].
        self._stack: list[tuple[tuple[int, ...], int] | None] = []
        self.name = ""
        self.kind = 0
        self.sequence = 0

    def scan(self, data: bytes | bytearray) -> int | None:
        """The length of the message at the start of `data`, or None if its end is not there yet."""
        if self._at == 0 and not self._header(data):
            return None
        size = len(data)
        stack = self._stack
        while stack:
            top = stack[-1]
            if top is None:
                if not self._fields(data, size):
                    return self._incomplete(size)
                continue
            kinds, left = top
            if left == 0:
                stack.pop()
                continue
            depth = len(stack)
            if not self._value(data, size, kinds[-left % len(kinds)], self._at):
                return self._incomplete(size)
            stack[depth - 1] = (kinds, left - 1)
        return self._at

    def _header(self, data: bytes | bytearray) -> bool:
        if not data.startswith(_VERSION) and not _VERSION.startswith(bytes(data[:3])):
            raise ProtocolError("not a message of Thrift's strict binary protocol")
        if len(data) < 8:
            return False
        length: int = _i32(data, 4)[0]
        if not 0 < length <= 256:
            raise ProtocolError(f"a method name of {length} bytes")
        if len(data) < 12 + length:
            return False
        self.kind = data[3]
        if self.kind not in (CALL, ONEWAY):
            raise ProtocolError(f"a message of type {self.kind}, not a call")
        self.name = bytes(data[8 : 8 + length]).decode("utf-8", "replace")
        self.sequence = _i32(data, 8 + length)[0]
        self._at = 12 + length
        self._stack.append(None)
        return True

    def _incomplete(self, size: int) -> int | None:
        if size > self._limit:
            raise ProtocolError(f"a message of more than {self._limit} bytes")
        return None

    def _fields(self, data: bytes | bytearray, size: int) -> bool:
        """Step over fields of the innermost struct, to its end or into a field; False if bytes are missing.

        Most fields are of the two kinds that are looked at here.
        """
        at = self._at
        while at < size:
            kind = data[at]
            fixed = FIXED_SIZE.get(kind)
            if fixed is not None:
                end = at + 3 + fixed
            elif kind == STRING:
                if at + 7 > size:
                    break
                end = at + 7 + self._length(data, at + 3)
            elif kind == STOP:
                self._at = at + 1
                self._stack.pop()
                return True
            else:
                self._at = at
                return at + 3 <= size and self._value(data, size, kind, at + 3)
            if end > size:
                break
            at = end
        self._at = at
        return False

    def _value(self, data: bytes | bytearray, size: int, kind: int, at: int) -> bool:
        """Step over one value that starts at `at`, or into it; False if its bytes are not all there."""
        fixed = FIXED_SIZE.get(kind)
        if fixed is not None:
            if at + fixed > size:
                return False
            self._at = at + fixed
            return True
        if kind == STRING:
            if at + 4 > size:
                return False
            end = at + 4 + self._length(data, at)
            if end > size:
                return False
            self._at = end
            return True
        if kind == STRUCT:
            self._push(None)
            self._at = at
            return True
        if kind in (LIST, SET):
            return self._list(data, size, at)
        if kind == MAP:
            if at + 6 > size:
                return False
            kinds = (data[at], data[at + 1])
            self._push((kinds, 2 * self._length(data, at + 2)))
            self._at = at + 6
            return True
        raise ProtocolError(f"a value of unknown type {kind}")

    def _list(self, data: bytes | bytearray, size: int, at: int) -> bool:
        if at + 5 > size:
            return False
        kind, count = data[at], self._length(data, at + 1)
        fixed = FIXED_SIZE.get(kind)
        if fixed is None:
            self._push(((kind,), count))
            self._at = at + 5
            return True
        end = at + 5 + count * fixed
        if end > self._limit:
            raise ProtocolError(f"a list of {count} items, beyond the message limit of {self._limit} bytes")
        if end > size:
            return False
        self._at = end
        return True

    def _length(self, data: bytes | bytearray, at: int) -> int:
        length: int = _i32(data, at)[0]
        if not 0 <= length <= self._limit:
            raise ProtocolError(f"a size of {length}, beyond the message limit of {self._limit} bytes")
        return length

    def _push(self, frame: tuple[tuple[int, ...], int] | None) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise ProtocolError(f"values nested deeper than {MAX_DEPTH}")
        self._stack.append(frame)
