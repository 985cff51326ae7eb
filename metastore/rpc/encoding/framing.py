"""Where a message ends: a resumable scan of Thrift's strict binary protocol.

The protocol on port 9083 is unframed, so a message's length is known only by walking it. The scan walks each byte once
however the message is cut into reads, and refuses what the decoder behind it would trust blindly: sizes beyond the
limit, unknown types, nesting too deep (wire.md §7.2). It counts what the decoder would make, since a
struct of one byte becomes an object of some hundred, and it stops after a number of values, to go on when others had
their turn. A list that repeats the one before it, as the columns of partitions do, is recognised by its bytes.
"""

from __future__ import annotations

import struct

STOP, BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = 0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
FIXED_SIZE = {BOOL: 1, BYTE: 1, DOUBLE: 8, I16: 2, I32: 4, I64: 8}
_FIELD_SIZE = tuple(3 + FIXED_SIZE[kind] if kind in FIXED_SIZE else 0 for kind in range(256))
"""Of a field with its head, by its type; 0 for what has no fixed size."""
CONTAINERS = frozenset({STRUCT, MAP, SET, LIST, STRING})
MAX_DEPTH = 32
MAX_TEXT_BYTES = 16 * 1024 * 1024
"""What the columns of a Java metastore take at most."""

STRUCT_ELEMENTS = 4
"""A struct takes about as much memory as so many texts or numbers."""
NO_LIMIT = 2**62
_STRIDE_BYTES = 4096
"""Of a struct's fields, in one go."""
_WORTH_A_LOOK_BYTES, _WORTH_KEEPING_BYTES = 64, 64 * 1024
"""Sizes of a list that is compared with the one before it."""
CALL, ONEWAY = 1, 4
_VERSION = b"\x80\x01\x00"
BEGINNING = _VERSION + bytes((CALL,))
"""How a request begins."""

_i16 = struct.Struct(">h").unpack_from
_i32 = struct.Struct(">i").unpack_from


class ProtocolError(Exception):
    """The bytes are not a message we accept; the sentence says why."""


class BudgetError(ProtocolError):
    """The message is one of the protocol, but too large."""


class MessageScanner:
    """Finds the end of one message in a growing buffer.

    Call `scan` with the whole buffer each time bytes were added; it returns the message's length, or None while bytes
    are missing, or while `is_tired`: call it again then. `name`, `kind` and `sequence` hold the header once it is
    complete; `elements` counts the values so far, a struct as `STRUCT_ELEMENTS`. `restart` before the next message.
    """

    __slots__ = (
        "_at", "_known", "_known_elements", "_limit", "_longest_text", "_most_elements", "_skipped", "_stack",
        "elements", "is_tired", "kind", "name", "sequence",
    )  # fmt: skip

    def __init__(self, limit_bytes: int, most_elements: int = NO_LIMIT) -> None:
        self._limit = limit_bytes
        self._longest_text = min(limit_bytes, MAX_TEXT_BYTES)
        self._most_elements = most_elements
        self._at = 0
        self._skipped = 0
        # Open items, innermost last: None for a struct, or of a container the types of its items in turn, how many are
        # left, and for one that may be repeated where it begins and the elements before it (else -1).
        self._stack: list[tuple[tuple[int, ...], int, int, int] | None] = []
        self._known, self._known_elements = b"", 0
        self.elements = 0
        self.is_tired = False
        self.name = ""
        self.kind = 0
        self.sequence = 0

    @property
    def walked(self) -> int:
        """How many bytes of the buffer have been walked."""
        return self._at

    def scan(self, data: bytes | bytearray, most: int = NO_LIMIT) -> int | None:
        """The length of the message at the start of `data`, or None if its end is not there yet.

        After `most` elements it stops and is tired. Raises ProtocolError.
        """
        if not self.name and not self._header(data):
            return None
        size = len(data)
        stack = self._stack
        until = self.elements + most
        while stack and self.elements <= until:
            top = stack[-1]
            if top is None:
                if not self._fields(data, size):
                    return self._incomplete(size)
                continue
            kinds, left, begins_at, elements = top
            if left == 0:
                stack.pop()
                if begins_at >= 0:
                    self._keep(data, begins_at, elements)
                continue
            depth = len(stack)
            if not self._value(data, size, kinds[-left % len(kinds)], self._at):
                return self._incomplete(size)
            stack[depth - 1] = (kinds, left - 1, begins_at, elements)
        if self.elements > self._most_elements:
            raise BudgetError(f"a request of more than {self._most_elements} elements, send less at once")
        if stack:
            self.is_tired = True
            return None
        return self._at

    def is_found(self, name: str, kind: int, sequence: int, elements: int, length: int) -> int:
        """Take over what is known of the message already (see `shapes`); returns its length."""
        self.name, self.kind, self.sequence, self.elements, self._at = name, kind, sequence, elements, length
        return length

    def restart(self) -> None:
        """Begin with the next message, which is at the start of the buffer now; the one before has been found."""
        self._at = self._skipped = self._known_elements = self.elements = 0
        self._known = b""
        self.is_tired = False
        self.name = ""

    def skip(self) -> int:
        """Forget what has been walked, whose bytes nobody wants: how many to cut off the buffer's start."""
        done, self._at = self._at, 0
        self._skipped += done
        self._stack = [top and (*top[:2], -1, 0) for top in self._stack]
        return done

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
        self.is_tired = False
        if self._skipped + size > self._limit:
            raise BudgetError(f"a request of more than {self._limit} bytes, send less at once")
        return None

    def _keep(self, data: bytes | bytearray, begins_at: int, elements: int) -> None:
        """Remember the bytes of a list, in case the next one is the same."""
        if _WORTH_A_LOOK_BYTES <= self._at - begins_at <= _WORTH_KEEPING_BYTES:
            self._known = bytes(data[begins_at : self._at])
            self._known_elements = self.elements - elements

    def _fields(self, data: bytes | bytearray, size: int) -> bool:
        """Step over fields of the innermost struct, and of structs in it and around it, until another kind of value or
        the message's end; False if bytes are missing.

        Small messages are nearly all of this, so nothing is called for a field.
        """
        at, elements, stack, longest_text = self._at, self.elements, self._stack, self._longest_text
        stop = size if size <= _STRIDE_BYTES else min(at + _STRIDE_BYTES, size)
        while at < stop:
            kind = data[at]
            if step := _FIELD_SIZE[kind]:
                end = at + step
            elif kind == STRING:
                if at + 7 > size:
                    break
                length = _i32(data, at + 3)[0]
                end = at + 7 + (length if 0 <= length <= longest_text else self._text(data, at + 3))
            elif kind == STOP:
                at += 1
                stack.pop()
                if stack and stack[-1] is None:
                    continue
                self._at, self.elements = at, elements
                return True
            elif kind == STRUCT:
                if at + 3 > size:
                    break
                self._push(None)
                at += 3
                elements += STRUCT_ELEMENTS
                continue
            else:
                self._at, self.elements = at, elements
                return at + 3 <= size and self._value(data, size, kind, at + 3)
            if end > size:
                break
            at = end
            elements += 1
        self._at, self.elements = at, elements
        return stop <= at < size

    def _value(self, data: bytes | bytearray, size: int, kind: int, at: int) -> bool:
        """Step over one value that starts at `at`, or into it; False if its bytes are not all there."""
        fixed = FIXED_SIZE.get(kind)
        if fixed is not None:
            if at + fixed > size:
                return False
            self._at = at + fixed
            self.elements += 1
            return True
        if kind == STRING:
            if at + 4 > size:
                return False
            end = at + 4 + self._text(data, at)
            if end > size:
                return False
            self._at = end
            self.elements += 1
            return True
        if kind == STRUCT:
            self._push(None)
            self._at = at
            self.elements += STRUCT_ELEMENTS
            return True
        if kind in (LIST, SET):
            return self._list(data, size, at)
        if kind == MAP:
            if at + 6 > size:
                return False
            kinds = (data[at], data[at + 1])
            self._push((kinds, 2 * self._length(data, at + 2), -1, 0))
            self._at = at + 6
            self.elements += 1
            return True
        raise ProtocolError(f"a value of unknown type {kind}")

    def _list(self, data: bytes | bytearray, size: int, at: int) -> bool:
        if at + 5 > size:
            return False
        kind, count = data[at], self._length(data, at + 1)
        fixed = FIXED_SIZE.get(kind)
        if fixed is None:
            if self._known and data.startswith(self._known, at):
                self._at = at + len(self._known)
                self.elements += self._known_elements
                return True
            self._push(((kind,), count, at, self.elements))
            self._at = at + 5
            self.elements += 1
            return True
        end = at + 5 + count * fixed
        if end + self._skipped > self._limit:
            raise BudgetError(f"a list of {count} items, beyond the message limit of {self._limit} bytes")
        if self.elements + count > self._most_elements:
            raise BudgetError(f"a request of more than {self._most_elements} elements, send less at once")
        if end > size:
            return False
        self._at = end
        self.elements += 1 + count
        return True

    def _text(self, data: bytes | bytearray, at: int) -> int:
        """The length of a text or of bytes. Whoever looks at one in a single step lets all others wait."""
        length = self._length(data, at)
        if length > MAX_TEXT_BYTES:
            raise BudgetError(f"a text of {length} bytes, beyond the limit of {MAX_TEXT_BYTES}")
        return length

    def _length(self, data: bytes | bytearray, at: int) -> int:
        length: int = _i32(data, at)[0]
        if length < 0:
            raise ProtocolError(f"a size of {length}")
        if length > self._limit:
            raise BudgetError(f"a size of {length}, beyond the message limit of {self._limit} bytes")
        return length

    def _push(self, frame: tuple[tuple[int, ...], int, int, int] | None) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise ProtocolError(f"values nested deeper than {MAX_DEPTH}")
        self._stack.append(frame)
