"""Row events: the bucket property, ROW__ID, and a reference reader in plain Python (acid-format.md §3 and §5).

The reference reader is for tests and for checkers that must not share code with the Spark reader: it holds all rows
in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from hive_acid.errors import FormatError
from hive_acid.format.names import MAX_BUCKET, MAX_STATEMENT_ID, bucket_file_name, parse_bucket_file
from hive_acid.format.snapshot import ValidWriteIdList

INSERT = 0
DELETE = 2

ID_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
"""The columns of an event before its row."""
KEY = ID_COLUMNS[1:4]
"""The columns that identify a row within its partition, in the order by which files are sorted."""

_CODEC_V1 = 1 << 29


class RowId(NamedTuple):
    """ROW__ID: identifies a row within one partition directory; its order is the order inside every file."""

    write_id: int
    bucket_property: int
    row_id: int


class RowEvent(NamedTuple):
    """One record of a data file, its six columns in file order; `row` is None in a delete event."""

    operation: int
    original_write_id: int
    bucket_property: int
    row_id: int
    current_write_id: int
    row: Any

    @property
    def key(self) -> RowId:
        """The ROW__ID of the row that the event inserts or deletes."""
        return RowId(self.original_write_id, self.bucket_property, self.row_id)


def encode_bucket(bucket: int, statement_id: int = 0) -> int:
    """The bucket property, codec version 1, of a writer's rows."""
    if not 0 <= bucket <= MAX_BUCKET:
        raise ValueError(f"bucket {bucket} is outside 0..{MAX_BUCKET}")
    if not 0 <= statement_id <= MAX_STATEMENT_ID:
        raise ValueError(f"statement id {statement_id} is outside 0..{MAX_STATEMENT_ID}")
    return _CODEC_V1 | bucket << 16 | statement_id


def decode_bucket(bucket_property: int) -> tuple[int, int]:
    """(bucket, statement id) of a bucket property of codec version 1 or 0.

    Raises FormatError for any other version.
    """
    version = bucket_property >> 29
    if version == 0:
        return bucket_property, 0
    if version != 1:
        raise FormatError(f"bucket property {bucket_property} has the unknown codec version {version}")
    return bucket_property >> 16 & MAX_BUCKET, bucket_property & MAX_STATEMENT_ID


def file_of(bucket_property: int) -> str:
    """The name of the file that holds a row with this property, and the delete events for it."""
    return bucket_file_name(decode_bucket(bucket_property)[0])


def check_file(name: str, events: Iterable[RowEvent]) -> None:
    """Raise FormatError unless all events belong into the file `name` and stand in the order of their keys."""
    bucket = parse_bucket_file(name)
    previous: RowId | None = None
    for position, event in enumerate(events):
        if decode_bucket(event.bucket_property)[0] != bucket:
            raise FormatError(f"row {position} of {name} belongs into {file_of(event.bucket_property)}: {event.key}")
        if previous is not None and event.key <= previous:
            raise FormatError(f"row {position} of {name} is out of order: {event.key} comes after {previous}")
        previous = event.key


def visible_rows(
    data_rows: Iterable[RowEvent],
    delete_rows: Iterable[RowEvent],
    write_ids: ValidWriteIdList,
    base_rows: Iterable[RowEvent] = (),
) -> list[RowEvent]:
    """The rows of one partition directory that a snapshot sees, by key.

    `base_rows` are those of the selected base, valid without a test; `data_rows` and `delete_rows` those of the
    selected deltas. Raises FormatError if two visible rows have the same ROW__ID.
    """
    deleted = {event.key for event in delete_rows if event.operation == DELETE and _is_current(event, write_ids)}
    visible: dict[RowId, RowEvent] = {}
    for event in (*base_rows, *(event for event in data_rows if _is_current(event, write_ids))):
        if event.key in visible:
            raise FormatError(f"two rows have the ROW__ID {event.key}")
        if event.key not in deleted:
            visible[event.key] = event
    return [visible[key] for key in sorted(visible)]


def _is_current(event: RowEvent, write_ids: ValidWriteIdList) -> bool:
    return write_ids.is_valid(event.current_write_id)
