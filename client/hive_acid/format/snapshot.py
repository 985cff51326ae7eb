"""Snapshots: which transactions and which write ids a reader, a compactor or the Cleaner sees.

Both kinds of list are a high-water mark and the exceptions below it, open ones and aborted ones, held as sorted tuples
and searched by bisection, so that a hundred thousand exceptions cost little. The text forms are those that Hive's
clients exchange (transactions.md §1.4 and §2.2).
"""

from __future__ import annotations

import enum
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hive_acid.errors import FormatError

NONE_OPEN = 2**63 - 1
"""The smallest open id where nothing is open; also the high-water mark of a list in which all is valid."""

_SHORTEST_RANGE = 5
_DIGITS = bytes.maketrans(b"\0\1", b"01")
_MOST_IDS = 10_000_000
"""More ids than any service keeps open or aborted: a text that names more is refused before it fills the memory."""


class RangeValidity(enum.Enum):
    """How much of a range of ids has a property."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


class ListKind(enum.Enum):
    """Who asks, which decides about deltas that are only partly resolved (transactions.md §2.3)."""

    READER = "reader"
    COMPACTOR = "compactor"
    CLEANER = "cleaner"


@dataclass(frozen=True, slots=True)
class ValidTxnList:
    """The transactions that a snapshot sees: all up to the high-water mark but the open and the aborted ones."""

    high_water_mark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_ids", _sorted(self.open_ids))
        object.__setattr__(self, "aborted_ids", _sorted(self.aborted_ids))

    @classmethod
    def everything(cls) -> ValidTxnList:
        """The list in which every transaction is valid."""
        return cls(NONE_OPEN)

    @classmethod
    def parse(cls, text: str | None) -> ValidTxnList:
        """The list of ``hwm:minOpen:open:aborted``; an empty text means that all is valid.

        Raises FormatError for anything else.
        """
        if not text:
            return cls.everything()
        fields = text.split(":")
        if not 2 <= len(fields) <= 4:
            raise FormatError(f"'{_shorten(text)}' is not a transaction list of the form hwm:minOpen:open:aborted")
        fields += [""] * (4 - len(fields))
        return cls(_number(fields[0], text), _parse_ids(fields[2], text), _parse_ids(fields[3], text))

    @classmethod
    def from_open_txns(
        cls, high_water_mark: int, open_txns: Sequence[int], aborted_bits: bytes, own_txn_id: int = 0
    ) -> ValidTxnList:
        """The list of a get_open_txns answer, as transaction `own_txn_id` sees it (0: nobody's).

        A transaction sees nothing with a larger id than its own, and always itself (transactions.md §1.4).
        """
        limit = min(own_txn_id, high_water_mark) if own_txn_id else high_water_mark
        open_ids: list[int] = []
        aborted_ids: list[int] = []
        for txn_id, aborted in zip(open_txns, decode_bits(aborted_bits, len(open_txns)), strict=True):
            if not own_txn_id or txn_id < own_txn_id:
                (aborted_ids if aborted else open_ids).append(txn_id)
        return cls(limit, tuple(open_ids), tuple(aborted_ids))

    @property
    def min_open(self) -> int:
        """The smallest open id, `NONE_OPEN` if there is none."""
        return self.open_ids[0] if self.open_ids else NONE_OPEN

    def is_valid(self, txn_id: int) -> bool:
        """Whether the transaction is committed in this snapshot."""
        return txn_id <= self.high_water_mark and not (
            _contains(self.open_ids, txn_id) or _contains(self.aborted_ids, txn_id)
        )

    def is_aborted(self, txn_id: int) -> bool:
        """Whether the transaction is known to be aborted."""
        return _contains(self.aborted_ids, txn_id)

    def seen_by(self, txn_id: int) -> ValidTxnList:
        """This list as it is for a transaction that sees larger ids than its own, too, and itself."""
        return ValidTxnList(
            max(self.high_water_mark, txn_id), tuple(one for one in self.open_ids if one != txn_id), self.aborted_ids
        )

    def up_to(self, high_water_mark: int) -> ValidTxnList:
        """This list as it is for those who see no transaction above `high_water_mark`."""
        limit = min(self.high_water_mark, high_water_mark)
        return ValidTxnList(limit, _below(self.open_ids, limit), _below(self.aborted_ids, limit))

    def __str__(self) -> str:
        return f"{self.high_water_mark}:{self.min_open}:{_ranges(self.open_ids)}:{_ranges(self.aborted_ids)}"


@dataclass(frozen=True, slots=True)
class ValidWriteIdList:
    """The write ids of one table that a snapshot sees.

    `min_open` is the table's smallest open write id; it may lie above the high-water mark (transactions.md §2.2), and
    is the first of `open_ids` where it is not given. The text form says nothing of `kind`: a parsed list is a reader's.
    """

    table: str
    high_water_mark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()
    min_open: int = 0
    kind: ListKind = ListKind.READER

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_ids", _sorted(self.open_ids))
        object.__setattr__(self, "aborted_ids", _sorted(self.aborted_ids))
        if not self.min_open:
            object.__setattr__(self, "min_open", self.open_ids[0] if self.open_ids else NONE_OPEN)

    @classmethod
    def parse(cls, text: str) -> ValidWriteIdList:
        """The list of ``db.table:hwm:minOpen:open:aborted``.

        Raises FormatError for anything else.
        """
        fields = text.split(":")
        if not 3 <= len(fields) <= 5:
            raise FormatError(
                f"'{_shorten(text)}' is not a write-id list of the form db.table:hwm:minOpen:open:aborted"
            )
        fields += [""] * (5 - len(fields))
        return cls(
            fields[0],
            _number(fields[1], text),
            _parse_ids(fields[3], text),
            _parse_ids(fields[4], text),
            _number(fields[2], text),
        )

    @classmethod
    def from_invalid(
        cls, table: str, high_water_mark: int, invalid: Sequence[int], aborted_bits: bytes, min_open: int | None = None
    ) -> ValidWriteIdList:
        """The list of one table in a get_valid_write_ids answer."""
        flags = decode_bits(aborted_bits, len(invalid))
        open_ids = tuple(write_id for write_id, aborted in zip(invalid, flags, strict=True) if not aborted)
        aborted_ids = tuple(write_id for write_id, aborted in zip(invalid, flags, strict=True) if aborted)
        return cls(table, high_water_mark, open_ids, aborted_ids, min_open or 0)

    def is_valid(self, write_id: int) -> bool:
        """Whether the write is committed in this snapshot."""
        return write_id <= self.high_water_mark and not (
            _contains(self.open_ids, write_id) or _contains(self.aborted_ids, write_id)
        )

    def is_aborted(self, write_id: int) -> bool:
        """Whether the write is known to be aborted."""
        return _contains(self.aborted_ids, write_id)

    def has_more_than(self, before: ValidWriteIdList) -> bool:
        """Whether a write is committed here that was not in the list of `before`, of the same table."""
        later = range(before.high_water_mark + 1, self.high_water_mark + 1)
        return any(map(self.is_valid, before.open_ids)) or any(map(self.is_valid, later))

    def is_valid_base(self, write_id: int) -> bool:
        """Whether a compacted base up to `write_id` may be read: nothing in it may be open (acid-format.md §2.1)."""
        return write_id < self.min_open and write_id <= self.high_water_mark

    def range_validity(self, lowest: int, highest: int) -> RangeValidity:
        """How much of ``lowest..highest`` is valid; an empty range is NONE."""
        if lowest > self.high_water_mark or lowest > highest:
            return RangeValidity.NONE
        if self.kind is not ListKind.READER and highest > self.high_water_mark:
            return RangeValidity.NONE
        if self.kind is ListKind.COMPACTOR:
            return RangeValidity.ALL
        if highest <= self.high_water_mark and not self.open_ids and not self.aborted_ids:
            return RangeValidity.ALL
        limit = min(highest, self.high_water_mark)
        invalid = highest - limit + _count(self.open_ids, lowest, limit) + _count(self.aborted_ids, lowest, limit)
        return _validity(highest - lowest + 1 - invalid, highest - lowest + 1)

    def aborted_range(self, lowest: int, highest: int) -> RangeValidity:
        """How much of ``lowest..highest`` is aborted."""
        if not self.aborted_ids:
            return RangeValidity.NONE
        return _validity(_count(self.aborted_ids, lowest, highest), highest - lowest + 1)

    def aborted_in(self, lowest: int, highest: int) -> tuple[int, ...]:
        """The aborted write ids of ``lowest..highest``."""
        start, end = bisect_left(self.aborted_ids, lowest), bisect_right(self.aborted_ids, highest)
        return self.aborted_ids[start:end]

    def open_in(self, lowest: int, highest: int) -> bool:
        """Whether some write id of ``lowest..highest`` is open, or above the high-water mark."""
        return highest > self.high_water_mark or bool(_count(self.open_ids, lowest, highest))

    def for_compactor(self) -> ValidWriteIdList:
        """The list by which a compaction chooses its input: all below the lowest open write id, aborted ones left out.

        (transactions.md §2.3)
        """
        limit = min(self.high_water_mark, self.min_open - 1)
        return replace(
            self,
            high_water_mark=limit,
            open_ids=(),
            aborted_ids=_below(self.aborted_ids, limit),
            kind=ListKind.COMPACTOR,
        )

    def for_cleaner(self, highest_write_id: int) -> ValidWriteIdList:
        """The list by which the Cleaner judges what a compaction up to `highest_write_id` made superfluous.

        (transactions.md §2.3)
        """
        limit = min(self.high_water_mark, highest_write_id)
        return replace(
            self,
            high_water_mark=limit,
            open_ids=_below(self.open_ids, limit),
            aborted_ids=_below(self.aborted_ids, limit),
            kind=ListKind.CLEANER,
        )

    def __str__(self) -> str:
        min_open = self.min_open if self.open_ids or self.aborted_ids else NONE_OPEN
        open_ids = ",".join(map(str, self.open_ids))
        aborted_ids = ",".join(map(str, self.aborted_ids))
        return f"{self.table}:{self.high_water_mark}:{min_open}:{open_ids}:{aborted_ids}"


def encode_bits(flags: Iterable[bool]) -> bytes:
    """`flags` as a bit set: bit ``i % 8`` of byte ``i // 8``, no zero bytes at the end."""
    digits = bytes(flags)[::-1].translate(_DIGITS)  # there may be very many, so all of it is C
    number = int(digits or b"0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def decode_bits(bits: bytes, count: int) -> list[bool]:
    """The first `count` flags of a bit set."""
    return [position // 8 < len(bits) and bool(bits[position // 8] >> position % 8 & 1) for position in range(count)]


def _sorted(ids: tuple[int, ...]) -> tuple[int, ...]:
    return ids if all(map(operator.lt, ids, ids[1:])) else tuple(sorted(set(ids)))


def _contains(ids: tuple[int, ...], wanted: int) -> bool:
    at = bisect_left(ids, wanted)
    return at < len(ids) and ids[at] == wanted


def _count(ids: tuple[int, ...], lowest: int, highest: int) -> int:
    return max(0, bisect_right(ids, highest) - bisect_left(ids, lowest))


def _below(ids: tuple[int, ...], highest: int) -> tuple[int, ...]:
    return ids[: bisect_right(ids, highest)]


def _validity(having: int, total: int) -> RangeValidity:
    if having <= 0:
        return RangeValidity.NONE
    return RangeValidity.ALL if having >= total else RangeValidity.SOME


def _ranges(ids: tuple[int, ...]) -> str:
    """Ascending ids as text, runs of `_SHORTEST_RANGE` or more as ``first-last``."""
    parts: list[str] = []
    start = 0
    for at in range(1, len(ids) + 1):
        if at < len(ids) and ids[at] == ids[at - 1] + 1:
            continue
        if at - start >= _SHORTEST_RANGE:
            parts.append(f"{ids[start]}-{ids[at - 1]}")
        else:
            parts.extend(map(str, ids[start:at]))
        start = at
    return ",".join(parts)


def _parse_ids(field: str, text: str) -> tuple[int, ...]:
    if field.isascii() and len(field) <= _MOST_IDS and field.replace(",", "").isdigit() and ",," not in f",{field},":
        return tuple(map(int, field.split(",")))  # without ranges, and long ones mostly are
    ids: list[int] = []
    for part in field.split(",") if field else ():
        first, dash, last = part.partition("-")
        run = range(_number(first, text), _number(last if dash else first, text) + 1)
        if len(ids) + len(run) > _MOST_IDS:
            raise FormatError(f"the list '{_shorten(text)}' names more than {_MOST_IDS} ids")
        ids.extend(run)
    return tuple(ids)


def _number(field: str, text: str) -> int:
    if not (field.isascii() and field.isdigit()):
        raise FormatError(f"'{_shorten(field)}' in the list '{_shorten(text)}' is not an id")
    return int(field)


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
