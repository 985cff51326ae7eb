"""Files that a streaming writer appends to: a side file beside each says how much of it is readable.

Hive flushes such a file at each commit, with a complete ORC tail, and appends the length to the side file; both stay
until the writer closes the batch (acid-format.md §5.6). Spark reads a file to its end or not at all. A file that ends
with a tail is read: rows behind the flushed length are of writes that the snapshot does not see.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import DirectoryKind
from hive_acid.format.state import DataDirectory, DataFile

_SIDE_FILE = "_flush_length"
_LENGTH = struct.Struct(">q")


def closed_files(location: str, found: DataDirectory) -> DataDirectory:
    """`found`, a directory below `location`, without the files in which nothing is readable yet.

    Raises UnsupportedTableError for a file that does not end where it was flushed last.
    """
    of = found.directory
    if (
        not found.unfinished
        or of.kind is DirectoryKind.BASE
        or of.min_write_id == of.max_write_id
        or of.visibility_txn_id
    ):
        return found  # nobody flushes there: a side file means nothing
    return replace(found, files=tuple(file for file in found.files if _has_rows(files.join(location, file.path), file)))


def _has_rows(path: str, file: DataFile) -> bool:
    try:
        lengths = files.read(path + _SIDE_FILE)
    except FileNotFoundError:
        return file.size > 0
    if len(lengths) < _LENGTH.size:
        return False
    whole = len(lengths) - len(lengths) % _LENGTH.size
    (length,) = _LENGTH.unpack_from(lengths, whole - _LENGTH.size)
    if not length or not file.size:
        return False
    if length != file.size:
        try:
            SHARED.read([DataFilePath(path, file.size)])
        except FormatError as error:
            raise UnsupportedTableError(
                f"{path} is being written by a streaming writer: {length} of its {file.size} bytes are complete, which "
                f"Spark cannot read apart. Close the writer's batch of transactions, or read again later ({error})"
            ) from error
    return True
