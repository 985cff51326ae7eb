"""Objects that Hive wrote with Kryo, read without Java (wire.md §5.6).

Kryo writes a class's name where it first occurs and its fields in the order of their names, without names or types: so
only objects whose fields are listed in `kryo_classes` can be read, those of the expressions by which Hive chooses
partitions. Hive 2.3 and 3 share one dialect, Hive 4 has another; the class's name in front tells it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from metastore.catalog.partition.kryo_classes import EXPRESSION, FIXED_LIST
from metastore.catalog.partition.kryo_reader import JavaObject, KryoError, KryoReader, checked_date, moment

MAX_BYTES = 4_000_000


def read_expression(data: bytes) -> JavaObject:
    """The expression that the bytes hold. Raises KryoError."""
    if len(data) > MAX_BYTES:
        raise KryoError(f"{len(data)} bytes, more than {MAX_BYTES}")
    reader = (_Hive4 if data.startswith(b"\x01\x00") else _Hive3)(data)
    try:
        found = reader.expression()
    except IndexError:
        raise KryoError("it ends too early") from None
    if not isinstance(found, JavaObject) or found.class_name != EXPRESSION:
        raise KryoError("it is not a function")
    if reader.at != len(data):
        raise KryoError(f"{len(data) - reader.at} bytes follow it")
    return found


class _Hive3(KryoReader):
    """Kryo 3 and 4, in Hive 2.3 to 3.1: the expression's own class is not written."""

    registered: Mapping[int, str] = {
        0: "int", 1: "String", 2: "float", 3: "boolean", 4: "byte", 6: "short", 7: "long", 8: "double",
        10: "java.sql.Date", 13: FIXED_LIST, 14: FIXED_LIST,
    }  # fmt: skip
    order = ">"
    tracks_enums = True

    def expression(self) -> Any:
        return self._object(EXPRESSION)

    def _list(self) -> list[Any]:
        return [self._any() for _ in range(self._size(self._count()))]

    def _texts(self) -> list[Any]:
        """Some releases write each string's class, others leave it out."""

        def read() -> list[Any]:
            size = self._size(self._count())
            if size and self._data[self.at] == 1 + 2:
                return [self._any() for _ in range(size)]
            return [self._tracked(self._string) for _ in range(size)]

        return [] if self._class() is None else self._tracked(read) or []

    def _date(self) -> datetime.date:
        day, month, year = self._signed(2), self._signed(2), self._int()
        return checked_date(lambda: datetime.date(year, month, day))

    def _datetime(self) -> tuple[datetime.datetime, int]:
        day = self._tracked(self._date)
        return self._tracked(self._time, day)  # type: ignore[no-any-return]

    def _time(self, day: Any) -> tuple[datetime.datetime, int]:
        hour, minute, nanoseconds, second = self._byte(), self._byte(), self._int(), self._byte()
        return moment(day, hour, minute, second, nanoseconds)


class _Hive4(KryoReader):
    """Kryo 5, in Hive 4: the expression's class comes first, lists say whether their elements have one class."""

    registered: Mapping[int, str] = {
        0: "int", 1: "String", 2: "float", 3: "boolean", 4: "byte", 6: "short", 7: "long", 8: "double",
        9: "java.sql.Date", 13: FIXED_LIST,
    }  # fmt: skip
    order = "<"
    tracks_enums = False

    def expression(self) -> Any:
        return self._any()

    def _list(self) -> list[Any]:
        first = self._byte()
        size = self._flagged(first) - 1
        if size <= 0:
            return []
        if first < 0x80:
            return [self._any() for _ in range(self._size(size))]
        class_name = self._class()
        if class_name is None:
            return [None] * self._size(size)
        has_null = self._boolean()
        return [self._element(class_name, has_null) for _ in range(self._size(size))]

    def _texts(self) -> list[Any]:
        def read() -> list[Any]:
            size = self._flagged(self._byte()) - 1
            return [self._tracked(self._string) for _ in range(self._size(size))]

        return [] if self._class() is None else self._tracked(read) or []

    def _date(self) -> datetime.date:
        year, month, day = self._count(), self._byte(), self._byte()
        return checked_date(lambda: datetime.date(year, month, day))

    def _datetime(self) -> tuple[datetime.datetime, int]:
        """Zeros at the end are left out: the last part that is there has all its bits turned."""
        day = self._date()
        parts: list[int] = []
        while len(parts) < 3:
            part = self._signed(1)
            parts.append(part if part >= 0 else ~part)
            if part < 0:
                hour, minute, second = (*parts, 0, 0)[:3]
                return moment(day, hour, minute, second, 0)
        hour, minute, second = parts
        return moment(day, hour, minute, second, self._count())


def decimal_of(value: JavaObject) -> Decimal:
    """The number of a HiveDecimal: sixteen digits in each of three words."""
    digits = value["high"] * 10**32 + value["middle"] * 10**16 + value["low"]
    if not 0 <= value["scale"] <= 38:
        raise KryoError("it has a number of too many digits")
    return Decimal(value["sign"] * digits).scaleb(-value["scale"])
