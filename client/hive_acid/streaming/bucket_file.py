"""A bucket file of new rows as pyarrow writes it: the six columns of the format, row ids as they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hive_acid.filesystem import files
from hive_acid.filesystem.footers import FIRST_READ_BYTES, uncompressed
from hive_acid.format.orc.patch import hive_3_properties, second_tail
from hive_acid.format.orc.tail import read_tail, tail_length
from hive_acid.format.rows import INSERT
from hive_acid.ids import WriteId
from hive_acid.streaming.orc_file import OrcFile

_ONE = pa.scalar(1, pa.int64())


class BucketFile:
    """One open file, and the number of the next row.

    `compression` is one of `hive_acid.format.orc.compression`; a file that `is_small` gets few rows. Raises OSError if
    it cannot be made.
    """

    def __init__(
        self,
        location: str,
        write_id: WriteId,
        bucket_property: int,
        compression: str,
        for_hive_3: bool,
        *,
        is_small: bool = False,
    ) -> None:
        self._location = location
        self._for_hive_3 = for_hive_3
        self._write_id = pa.scalar(write_id, pa.int64())
        self._bucket = pa.scalar(bucket_property, pa.int32())
        self._rows = 0
        self._file = OrcFile(location, compression, is_small=is_small)

    def write(self, rows: Any) -> None:
        """Add rows, an Arrow array of structs (`hive_acid.streaming.layout.row_array`)."""
        count = len(rows)
        write_ids = pa.repeat(self._write_id, count)
        self._file.write(
            pa.table(
                {
                    "operation": pa.repeat(pa.scalar(INSERT, pa.int32()), count),
                    "originalTransaction": write_ids,
                    "bucket": pa.repeat(self._bucket, count),
                    "rowId": pc.cumulative_sum(pa.repeat(_ONE, count), start=self._rows - 1),
                    "currentTransaction": write_ids,
                    "row": rows,
                }
            )
        )
        self._rows += count

    def close(self) -> int:
        """Write what is left and the tail; returns the size in bytes."""
        self._file.close()
        size = self._file.size
        if self._for_hive_3:
            end = files.read_end(self._location, size, FIRST_READ_BYTES)
            if (length := tail_length(end)) > len(end):
                end = files.read_end(self._location, size, length)
            properties = hive_3_properties(read_tail(end, uncompressed), deletes=False)
            files.append(self._location, second_tail(end, properties=properties, decompress=uncompressed))
        return size

    def abandon(self) -> None:
        """Close what is not to be kept."""
        self._file.abandon()
