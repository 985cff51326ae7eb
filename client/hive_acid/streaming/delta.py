"""The files of one transaction: bucket files in the six columns of the format, one per partition and bucket.

They are written by pyarrow below a hidden directory and renamed into place as whole directories; where a rename is a
copy they are written where they belong, as nobody sees the delta of an open write (acid-format.md §4.2). Rows are
gathered to be written in large portions. When much is in open files they are all closed, and what follows belongs to
the next statement of the transaction: so memory has a bound and no directory two files of one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from hive_acid.errors import StreamingError
from hive_acid.filesystem import files
from hive_acid.format.names import MAX_STATEMENT_ID, bucket_file_name, is_for_hive_3
from hive_acid.format.orc.compression import compression_of
from hive_acid.format.rows import encode_bucket
from hive_acid.streaming.bucket_file import BucketFile
from hive_acid.streaming.layout import Placed
from hive_acid.write.staging import INSERT, StagedFiles, Staging, Values
from hive_acid.write.table_write import TableWrite

GATHERED_BYTES = 32 * 1024 * 1024
"""So many bytes of rows, as Arrow has them, are gathered before they are written."""

OPEN_BYTES = 512 * 1024 * 1024
"""So many bytes of rows, as Arrow has them, are in open files at most."""

MAX_FILES = 1000
"""So many partitions and buckets are written to by one transaction at most."""


class Delta:
    """The output of one transaction; used by one thread at a time."""

    def __init__(self, begun: TableWrite, compression: str) -> None:
        table = begun.table
        self._begun = begun
        self._write_id, _ = begun.ids()
        self._staging = Staging.below(table.location, begun.transaction.id)
        self._for_hive_3 = is_for_hive_3(table.parameters)
        self._compression = compression_of(table.parameters, compression)
        self._statement = 0
        self._gathered: dict[tuple[Values, int], list[Any]] = {}
        self._gathered_bytes = self._open_bytes = 0
        self._writers: dict[tuple[Values, int], BucketFile] = {}
        self._targets: dict[Values, str] = {}
        self._written: dict[tuple[Values, int], StagedFiles] = {}

    @property
    def partitions_created(self) -> int:
        """How many partitions were registered for it."""
        return self._begun.created

    def add(self, placed: Iterable[Placed]) -> None:
        """Take rows in. Raises StreamingError when they go to too many files."""
        for rows in placed:
            self._gathered.setdefault((rows.values, rows.bucket), []).append(rows.rows)
            self._gathered_bytes += rows.rows.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            self._flush()

    def publish(self) -> None:
        """Write what is left, and put all of it where readers look. Raises what `TableWrite.publish` raises."""
        self._flush()
        self._close()
        self._begun.publish(self._staging, list(self._written.values()))
        if not self._staging.is_bypassed:
            self._staging.remove()

    def undo(self) -> None:
        """Remove everything; only for a transaction that does not commit."""
        for writer in self._writers.values():
            writer.abandon()
        self._begun.undo(self._staging)

    def _flush(self) -> None:
        if len({*self._writers, *self._gathered}) > MAX_FILES:
            raise StreamingError(
                f"a transaction writes to more than {MAX_FILES} partitions and buckets: send rows of fewer at a time"
            )
        if self._staging.is_bypassed:
            self._targets |= self._begun.locate({values for values, _ in self._gathered} - self._targets.keys())
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
        property_ = encode_bucket(bucket, self._statement)
        location = files.join(self._directory(values), bucket_file_name(bucket))
        return BucketFile(location, self._write_id, property_, self._compression, self._for_hive_3)

    def _directory(self, values: Values) -> str:
        """Where the files of a partition and of this statement are made."""
        key = values, self._statement
        bypassed = self._staging.is_bypassed
        if key not in self._written:
            below = "" if bypassed else str(len(self._written))
            self._written[key] = StagedFiles(INSERT, values, {}, statement_id=self._statement, directory=below)
        staged = self._written[key]
        if not bypassed:
            return files.join(self._staging.location, staged.directory)
        target = files.join(self._targets[values], self._begun.directory_name(staged))
        self._staging.claim(target)
        return target

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers, self._open_bytes = {}, 0
