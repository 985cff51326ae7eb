"""What the tail of an ORC file shows of the order of its rows: by key, from stripe to stripe (acid-format.md §3.4)."""

from __future__ import annotations

from hive_acid.errors import FormatError
from hive_acid.format.orc.file import ACID_FIELDS
from hive_acid.format.orc.statistics import ColumnStatistics
from hive_acid.format.orc.tail import Tail
from hive_acid.format.rows import decode_bucket

_KEY = tuple(name for name, _ in ACID_FIELDS[1:4])
_Range = tuple[int, int]


def disorder(tail: Tail, bucket: int | None) -> str | None:
    """What is surely wrong with a file of events that has the name of `bucket`, in words; None if nothing is.

    Within a stripe statistics say nothing of the order. What a file does not state is not wrong.
    """
    columns = [tail.column(name) for name in _KEY]
    if None in columns:
        return "the columns of the rows' ids are missing"
    if not tail.rows:
        return None
    numbers = [column for column in columns if column is not None]
    found = _bounds([tail.statistics(column) for column in numbers])
    if found is not None and bucket is not None:
        try:
            buckets = {decode_bucket(property_)[0] for property_ in found[1]}
        except FormatError as error:
            return str(error)
        if buckets != {bucket}:
            return f"rows of bucket {min(buckets - {bucket})} lie"
    before: list[_Range] | None = None
    for stripe in range(len(tail.stripes)):
        here = _bounds([tail.stripe_statistics(stripe, column) for column in numbers])
        if here is None:
            return None
        if before is not None and not _may_follow(before, here):
            return f"rows of stripe {stripe} come before rows of the stripe above it"
        before = here
    return None


def _may_follow(before: list[_Range], after: list[_Range]) -> bool:
    """Whether all keys within the ranges `after` can be greater than all within `before`."""
    for (low, highest), (lowest, high) in zip(before, after, strict=True):
        if highest != lowest:
            return highest < lowest
        if low != highest or lowest != high:
            return True
    return False


def _bounds(statistics: list[ColumnStatistics]) -> list[_Range] | None:
    found: list[_Range] = []
    for column in statistics:
        if not isinstance(column.minimum, int) or not isinstance(column.maximum, int):
            return None
        found.append((column.minimum, column.maximum))
    return found
