"""Tails of ORC files, read over fsspec: one request for a small file, at most two, many files at a time, none twice.

A tail is kept by path, size and time of modification: a data file never changes, but a table that is dropped and made
again has files of the same names.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.forks import renew_in_children
from hive_acid.format.orc.protobuf import read_varint
from hive_acid.format.orc.tail import Tail, plain_section, read_tail, stripe_zone, tail_length
from hive_acid.format.state import DataFile

FIRST_READ_BYTES = 16 * 1024
"""How much of a file's end is read at once: the whole tail of most files."""

CACHED_TAILS = 4096


class DataFilePath(NamedTuple):
    """A file by its full path, with the size and the time (0 if unknown: not kept) that a listing gave."""

    path: str
    size: int
    modified_ms: int = 0

    @classmethod
    def of(cls, location: str, found: DataFile | files.FileEntry) -> DataFilePath:
        """That of what was found below a location."""
        return cls(files.join(location, found.path), found.size, found.modified_ms)


class Footers:
    """A cache of tails, safe to share between threads; the least recently used go first."""

    def __init__(self, limit: int = CACHED_TAILS) -> None:
        self._limit = limit
        self._tails: OrderedDict[DataFilePath, Tail] = OrderedDict()
        self.renew_in_child()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """Have a lock that no thread of the parent's holds."""
        self._guard = threading.Lock()

    def read(self, wanted: Sequence[DataFilePath]) -> list[Tail]:
        """The tails of files, in their order.

        Raises FormatError that names the file if one is no ORC file or compressed in a way that needs pyarrow, OSError
        if it cannot be read.
        """
        found = {file: tail for file in wanted if (tail := self._known(file)) is not None}
        missing = [file for file in dict.fromkeys(wanted) if file not in found]
        if missing:
            found.update(zip(missing, files.side_by_side(_tail_of, missing, missing[0].path), strict=True))
        for file in missing:
            if file.modified_ms:
                self._keep(file, found[file])
        return [found[file] for file in wanted]

    def missing(self, wanted: Sequence[DataFilePath]) -> int:
        """How many of the files `read` would have to open."""
        with self._guard:
            return sum(file not in self._tails for file in set(wanted))

    def _known(self, file: DataFilePath) -> Tail | None:
        with self._guard:
            tail = self._tails.get(file)
            if tail is not None:
                self._tails.move_to_end(file)
            return tail

    def _keep(self, file: DataFilePath, tail: Tail) -> None:
        with self._guard:
            self._tails[file] = tail
            while len(self._tails) > self._limit:
                self._tails.popitem(last=False)


SHARED = Footers()
"""The tails that this process has read."""


def end_of(file: DataFilePath) -> bytes:
    """The last bytes of a file: its whole tail or more. Raises FormatError if it is no ORC file."""
    end = files.read_end(file.path, file.size, FIRST_READ_BYTES)
    length = tail_length(end)
    return files.read_end(file.path, file.size, length) if length > len(end) else end


def writer_zones(file: DataFilePath) -> set[str]:
    """The time zones of those who have written the stripes of a file, "" of one that does not say.

    Raises FormatError as `Footers.read`.
    """
    tail = _tail_of(file)
    zones = set()
    with files.opened(file.path) as content:
        for stripe in tail.stripes:
            content.seek(stripe.offset + stripe.length - stripe.footer)
            zones.add(stripe_zone(plain_section(content.read(stripe.footer), tail.compression, uncompressed)))
    return zones


def _tail_of(file: DataFilePath) -> Tail:
    try:
        return read_tail(end_of(file), uncompressed)
    except FormatError as error:
        raise FormatError(f"{file.path}: {error}") from None


def uncompressed(compression: str, chunk: bytes, limit: int) -> bytes:
    """A chunk by pyarrow's codecs, which cover all that the standard library lacks but lzo."""
    try:
        import pyarrow
    except ImportError as error:
        raise ValueError("pyarrow is not installed") from error
    try:
        if compression == "zstd":
            content: bytes = pyarrow.CompressedInputStream(pyarrow.BufferReader(chunk), compression).read(limit)
            return content
        if compression not in ("snappy", "lz4"):
            raise ValueError("nothing here reads it")
        # These two codecs take the exact size, and fill up with anything to a larger one.
        size = read_varint(chunk, 0)[0] if compression == "snappy" else _lz4_size(chunk)
        if size > limit:
            raise ValueError(f"a chunk of {size} bytes")
        content = pyarrow.Codec("lz4_raw" if compression == "lz4" else compression).decompress(
            chunk, size, asbytes=True
        )
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(str(error)) from error
    return content


def _lz4_size(block: bytes) -> int:
    """The uncompressed size of an LZ4 block: of its literals and of its matches, which stand in turns."""
    size = at = 0
    while at < len(block):
        token = block[at]
        literals, at = _lz4_length(block, at + 1, token >> 4)
        at += literals
        size += literals
        if at < len(block):
            match, at = _lz4_length(block, at + 2, token & 15)
            size += match + 4
    return size


def _lz4_length(block: bytes, at: int, length: int) -> tuple[int, int]:
    more = length == 15
    while more and at < len(block):
        length += block[at]
        more = block[at] == 255
        at += 1
    return length, at
