"""The files of one transaction: bucket files in the six columns of the format, one per partition and bucket.

They are written by pyarrow below a hidden directory and renamed into place as whole directories; where a rename is a
copy they are written where they belong, as nobody sees the delta of an open write (acid-format.md §4). Rows are
gathered to be written in large portions. When much is in open files they are all closed, and what follows belongs to
the next statement of the transaction: so memory has a bound and no directory two files of one bucket.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from hive_acid import files
from hive_acid.catalog import Table
from hive_acid.errors import StreamingError
from hive_acid.format.compression import compression_of
from hive_acid.format.names import (
    MAX_STATEMENT_ID,
    VERSION_CONTENT,
    VERSION_MARKER,
    bucket_file_name,
    delta_name,
    is_for_hive_3,
    staging_name,
)
from hive_acid.format.rows import encode_bucket
from hive_acid.ids import TxnId, WriteId
from hive_acid.streaming.bucket_file import BucketFile
from hive_acid.streaming.layout import Placed, Values

GATHERED_BYTES = 32 * 1024 * 1024
"""So many bytes of rows, as Arrow has them, are gathered before they are written."""

OPEN_BYTES = 512 * 1024 * 1024
"""So many bytes of rows, as Arrow has them, are in open files at most."""

MAX_FILES = 1000
"""So many partitions and buckets are written to by one transaction at most."""

Locate = Callable[[Iterable[Values]], Mapping[Values, str]]
"""Gives the directory of each partition, and makes those that are new."""


class Delta:
    """The output of one transaction; used by one thread at a time."""

    def __init__(self, table: Table, txn_id: TxnId, write_id: WriteId, compression: str, locate: Locate) -> None:
        root = table.location
        self._for_hive_3 = is_for_hive_3(table.parameters)
        self._compression = compression_of(table.parameters, compression)
        self._write_id = write_id
        self._locate = locate
        self._staging = files.join(root, staging_name(txn_id, uuid.uuid4().hex[:12]))
        self._is_staged = not files.rename_is_copy(root)
        self._statement = 0
        self._gathered: dict[tuple[Values, int], list[Any]] = {}
        self._gathered_bytes = self._open_bytes = 0
        self._writers: dict[tuple[Values, int], BucketFile] = {}
        self._targets: dict[Values, str] = {}
        self._directories: dict[Values, str] = {}
        self._written: dict[str, str] = {}

    @property
    def partitions(self) -> set[Values]:
        """The partitions that have rows."""
        return {*self._targets, *(values for values, _ in self._gathered)}

    def add(self, placed: Iterable[Placed]) -> None:
        """Take rows in. Raises StreamingError when they go to too many files."""
        for rows in placed:
            self._gathered.setdefault((rows.values, rows.bucket), []).append(rows.rows)
            self._gathered_bytes += rows.rows.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is left and close all files."""
        self._flush()
        self._close()

    def publish(self) -> None:
        """Rename all directories to where they belong; not before `finish`."""
        if self._is_staged:
            for made, target in self._written.items():
                files.rename(made, target)
            self.remove_staging()

    def remove_staging(self) -> None:
        """Remove the hidden directory with what was not published."""
        if self._is_staged:
            files.remove(self._staging)

    def undo(self) -> None:
        """Remove everything; only for a transaction that does not commit."""
        for writer in self._writers.values():
            writer.abandon()
        for target in self._written.values():
            files.remove(target)
        self.remove_staging()

    def _flush(self) -> None:
        if len({*self._writers, *self._gathered}) > MAX_FILES:
            raise StreamingError(
                f"a transaction writes to more than {MAX_FILES} partitions and buckets: send rows of fewer at a time"
            )
        self._targets |= self._locate({values for values, _ in self._gathered} - self._targets.keys())
        for key, arrays in self._gathered.items():
            if key not in self._writers:
                self._writers[key] = self._opened(*key)
            self._writers[key].write(pa.concat_arrays(arrays))
        self._open_bytes += self._gathered_bytes
        self._gathered, self._gathered_bytes = {}, 0
        if self._open_bytes >= OPEN_BYTES and self._statement < MAX_STATEMENT_ID:
            self._close()
            self._statement += 1

    def _opened(self, values: Values, bucket: int) -> BucketFile:
        made = self._directories.get(values)
        if made is None:
            name = delta_name(self._write_id, self._write_id, self._statement)
            target = files.join(self._targets[values], name)
            made = files.join(self._staging, str(len(self._written)), name) if self._is_staged else target
            self._directories[values] = made
            self._written[made] = target
        property_ = encode_bucket(bucket, self._statement)
        location = files.join(made, bucket_file_name(bucket))
        return BucketFile(location, self._write_id, property_, self._compression, self._for_hive_3)

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        for directory in self._directories.values():
            files.write(files.join(directory, VERSION_MARKER), VERSION_CONTENT)
        self._writers, self._directories, self._open_bytes = {}, {}, 0
