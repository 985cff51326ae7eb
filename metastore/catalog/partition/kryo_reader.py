"""What both dialects of Kryo share: objects, references, classes, and values of fixed form.

Whatever the bytes are, reading ends: every step consumes a byte, and depth is bounded.
"""

from __future__ import annotations

import datetime
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from metastore.catalog.partition.kryo_classes import ARRAY_LIST, FIELDS, FIXED_LIST, INSPECTORS

MAX_DEPTH = 200
"""Objects inside one another; a function and the list of its arguments are two."""

_NULL, _NEW = 0, 1
_BY_NAME = 1
_NOT_TRACKED = frozenset({"int", "float", "boolean", "byte", "short", "long", "double"})


class KryoError(Exception):
    """The bytes are not of an object that can be read; the sentence says why."""


@dataclass(eq=False, slots=True)
class JavaObject:
    """An object by its class, with those of its fields that have a name here."""

    class_name: str
    fields: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


class KryoReader(ABC):
    """What both dialects share."""

    registered: Mapping[int, str]
    order: str
    """The order of the bytes of numbers of fixed length, in `struct`'s words."""
    tracks_enums: bool
    """Whether an enum's value gets a number by which it can be referred to."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._depth = 0
        self._objects: list[Any] = []
        self._classes: list[str] = []
        self._kinds: dict[str, Callable[[], Any]] = {
            "any": self._any,
            "text": lambda: self._tracked(self._string),
            "texts": self._texts,
            "enum": self._enum,
            "maybe": lambda: self._boolean() if self._byte() else None,
            "boolean": self._boolean,
            "int": self._int,
            "long": self._long,
            "date": lambda: self._tracked(self._date),
            "datetime": lambda: self._tracked(self._datetime),
        }
        self._values: dict[str, Callable[[], Any]] = {
            "int": self._int,
            "long": self._long,
            "short": lambda: struct.unpack(f"{self.order}h", self._bytes(2))[0],
            "byte": lambda: self._signed(1),
            "boolean": self._boolean,
            "float": self._float,
            "double": self._double,
            "String": self._string,
            ARRAY_LIST: self._list,
            FIXED_LIST: self._fixed_list,
            f"[L{INSPECTORS}ObjectInspector;": lambda: [self._any() for _ in range(self._count() - 1)],
            "java.sql.Date": self._sql_date,
        }

    @abstractmethod
    def expression(self) -> Any:
        """The expression that the bytes hold."""

    # --- objects ---

    def _any(self) -> Any:
        """An object of any class, or null."""
        class_name = self._class()
        if class_name is None:
            return None
        if class_name in _NOT_TRACKED:
            return self._values[class_name]()
        return self._object(class_name)

    def _object(self, class_name: str) -> Any:
        """An object of a known class whose values are told apart by reference."""
        read = self._values.get(class_name)
        return self._tracked(self._fielded, class_name) if read is None else self._tracked(read)

    def _element(self, class_name: str, has_null: bool) -> Any:
        """An element of a list of one class; without tracking a mark is there only if null is possible."""
        if class_name not in _NOT_TRACKED:
            return self._object(class_name)
        return None if has_null and not self._byte() else self._values[class_name]()

    def _tracked(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """An object that may be null, or one that was read before."""
        mark = self._count()
        if mark == _NULL:
            return None
        if mark != _NEW:
            if mark - 2 >= len(self._objects):
                raise KryoError("it refers to an object that is not there")
            found = self._objects[mark - 2]
            if found is None:
                raise KryoError("it contains itself")
            return found
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise KryoError(f"it is nested deeper than {MAX_DEPTH}")
        number = len(self._objects)
        self._objects.append(None)
        found = self._objects[number] = read(*arguments)
        self._depth -= 1
        return found

    def _fielded(self, class_name: str) -> JavaObject:
        kinds = FIELDS.get(class_name)
        if kinds is None:
            raise KryoError(f"it has {class_name}, which is not known here")
        found = JavaObject(class_name)
        for kind in kinds.split():
            name, _, kind = kind.rpartition(":")
            value = self._kinds[kind]()
            if name:
                found.fields[name] = value
        return found

    def _class(self) -> str | None:
        number = self._count()
        if number == _NULL:
            return None
        if number != _BY_NAME:
            name = self.registered.get(number - 2)
            if name is None:
                raise KryoError(f"it has an object of class number {number - 2}, which is not known here")
            return name
        number = self._count()
        if number > len(self._classes):
            raise KryoError("it refers to a class that is not there")
        if number == len(self._classes):
            self._classes.append(self._string() or "")
        return self._classes[number]

    def _enum(self) -> None:
        if self.tracks_enums:
            self._tracked(self._count)
        elif self._count():
            self._count()

    @abstractmethod
    def _list(self) -> list[Any]:
        """An ``ArrayList``."""

    @abstractmethod
    def _texts(self) -> list[Any]:
        """A list of strings, of a field declared as such."""

    def _fixed_list(self) -> list[Any]:
        """Hive writes ``Arrays.asList`` in its own way: the length, the declared class, then each."""
        size = self._size(self._count())
        class_name = self._class()
        if class_name in _NOT_TRACKED:
            return [self._element(class_name, has_null=False) for _ in range(size)]
        return [self._any() for _ in range(size)]

    # --- values ---

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _signed(self, length: int) -> int:
        return int.from_bytes(self._bytes(length), "big", signed=True)

    def _bytes(self, length: int) -> bytes:
        if self.at + length > len(self._data):
            raise KryoError("it ends too early")
        found = self._data[self.at : self.at + length]
        self.at += length
        return found

    def _size(self, count: int) -> int:
        """A number of elements, each of which takes a byte at least."""
        if count > len(self._data) - self.at:
            raise KryoError(f"it has a list of {count} elements, but ends before")
        return count

    def _count(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise KryoError("it has a number of too many bytes")

    def _flagged(self, first: int) -> int:
        """A number whose first byte, read already, has a flag in front."""
        value = first & 0x3F
        if first & 0x40:
            for shift in (6, 13, 20, 27):
                byte = self._byte()
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
        return value

    def _int(self) -> int:
        value = self._count() & 0xFFFFFFFF
        return (value >> 1) ^ -(value & 1)

    def _long(self) -> int:
        value = 0
        for shift in range(0, 56, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            value |= self._byte() << 56
        return (value >> 1) ^ -(value & 1)

    def _boolean(self) -> bool:
        return self._byte() != 0

    def _double(self) -> float:
        return float(struct.unpack(f"{self.order}d", self._bytes(8))[0])

    def _float(self) -> float:
        """Its shortest spelling counts: 0.1 is not the double that is nearest to the float."""
        packed = self._bytes(4)
        value = struct.unpack(f"{self.order}f", packed)[0]
        for digits in range(6, 9):
            short = float(f"{value:.{digits}g}")
            if abs(short) < 3.4e38 and struct.pack(f"{self.order}f", short) == packed:
                return short
        return float(value)

    def _string(self) -> str | None:
        """ASCII whose last character has the high bit; or a length in UTF-16 units, of one to three bytes each."""
        first = self._byte()
        if first < 0x80:
            end = self.at
            while self._data[end] < 0x80:
                end += 1
            found = self._data[self.at - 1 : end] + bytes([self._data[end] & 0x7F])
            self.at = end + 1
            return found.decode("ascii")
        length = self._size(self._flagged(first) - 1)
        if length < 0:
            return None
        units = bytearray()
        for _ in range(length):
            units += struct.pack(">H", self._unit())
        return units.decode("utf-16-be", "replace")

    def _unit(self) -> int:
        first = self._byte()
        if first < 0x80:
            return first
        if first & 0xE0 == 0xC0:
            return (first & 0x1F) << 6 | self._byte() & 0x3F
        if first & 0xF0 == 0xE0:
            return (first & 0x0F) << 12 | (self._byte() & 0x3F) << 6 | self._byte() & 0x3F
        raise KryoError("it has text that is not of Java's form")

    @abstractmethod
    def _date(self) -> datetime.date:
        """Hive's own class of dates."""

    @abstractmethod
    def _datetime(self) -> tuple[datetime.datetime, int]:
        """Hive's own class of timestamps: the time, and its nanoseconds."""

    def _sql_date(self) -> datetime.date:
        """Midnight of a day in the client's time zone, which nobody tells.

        Zones from 12 hours ahead to 10 behind leave one day only; beyond, two days are possible, and a guess would
        choose the wrong partition.
        """
        milliseconds = struct.unpack(f"{self.order}q", self._bytes(8))[0]
        day, rest = divmod(milliseconds, 86_400_000)
        if 10 * 3_600_000 <= rest < 12 * 3_600_000:
            raise KryoError("it has a date of which the client's time zone makes two: compare with text instead")
        return checked_date(lambda: datetime.date(1970, 1, 1) + datetime.timedelta(day + (rest >= 12 * 3_600_000)))


def checked_date(make: Callable[[], datetime.date]) -> datetime.date:
    try:
        return make()
    except (ValueError, OverflowError):
        raise KryoError("it has a date that is none") from None


def moment(day: Any, hour: int, minute: int, second: int, nanoseconds: int) -> tuple[datetime.datetime, int]:
    if not isinstance(day, datetime.date) or not 0 <= nanoseconds < 10**9:
        raise KryoError("it has a time that is none")
    try:
        return datetime.datetime(day.year, day.month, day.day, hour, minute, second), nanoseconds
    except ValueError:
        raise KryoError("it has a time that is none") from None
