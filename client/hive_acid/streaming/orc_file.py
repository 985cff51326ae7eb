"""An ORC file that is open for writing by pyarrow."""

from __future__ import annotations

from typing import Any

from pyarrow import orc

from hive_acid.filesystem import files
from hive_acid.forks import renew_in_children

_BLOCK_BYTES, _SMALL_BLOCK_BYTES = 256 * 1024, 64 * 1024
"""As Java has them, and for files of few rows: each stream of a column has buffers of this size, whatever it holds."""

_DICTIONARY, _NO_DICTIONARY = 0.8, 0.0
"""The part of texts that may be distinct in a column with a dictionary. To sort those of a few rows saves no bytes."""


class OrcFile:
    """A new file of Arrow tables; `size` is its bytes so far. Raises OSError if it cannot be made.

    pyarrow's writer ends the whole process when its file fails as it closes, which it does when it is forgotten as
    well. So it never hears of an error: `write` and `close` raise it.
    """

    def __init__(self, location: str, compression: str, *, is_small: bool = False) -> None:
        """`compression` is one of `hive_acid.format.orc.compression`; a file that `is_small` gets few rows."""
        self._sink = _Sink(files.create(location))
        self._writer = orc.ORCWriter(
            self._sink,
            compression="uncompressed" if compression == "none" else compression,
            compression_block_size=_SMALL_BLOCK_BYTES if is_small else _BLOCK_BYTES,
            dictionary_key_size_threshold=_NO_DICTIONARY if is_small else _DICTIONARY,
        )
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """The file is the parent's: when its copy here is forgotten, neither buffers nor tail may be written."""
        self._sink.error = OSError("this process was forked from the one that writes the file")
        files.let_go(self._sink.file)

    @property
    def size(self) -> int:
        return self._sink.size

    def write(self, table: Any) -> None:
        """Add rows. Raises OSError."""
        self._writer.write(table)
        self._sink.check()

    def close(self) -> None:
        """Write what is left and the tail. Raises OSError."""
        self._writer.close()
        self._sink.file.close()
        self._sink.check()

    def abandon(self) -> None:
        """Close what is not to be kept."""
        self._sink.error = OSError("abandoned")
        self._writer.close()
        self._sink.file.close()


class _Sink:
    """The file as pyarrow sees it: all that is written seems to arrive."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.file = file
        self.size = 0
        self.error: Exception | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, content: Any) -> int:
        if self.error is None:
            try:
                self.file.write(content)
            except Exception as error:
                self.error = error
        self.size += len(content)
        return len(content)

    def flush(self) -> None:
        """Nothing: the file is flushed as it closes."""

    def close(self) -> None:
        """Nothing: the file is closed by its owner."""

    def check(self) -> None:
        if self.error is not None:
            raise self.error
