"""A file that gets whole lines only, and is followed by another one when it is full.

If somebody else has renamed it, as logrotate does, the next lines go to a new one of its name.
"""

from __future__ import annotations

import contextlib
import os


class RotatedFile:
    """Used by one thread."""

    def __init__(self, path: str, most_bytes: int, kept: int) -> None:
        """Raises OSError if it cannot be opened."""
        self._path = path
        self._most_bytes = most_bytes
        self._kept = kept
        self._file = self._opened()

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

    def write(self, lines: bytes) -> None:
        """Write lines. Raises OSError; then none of them is in the file."""
        self._follow()
        size = os.fstat(self._file).st_size
        if size and size + len(lines) > self._most_bytes:
            self._rotate()
            size = 0
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise

    def _follow(self) -> None:
        try:
            there = os.stat(self._path)
            is_ours = os.path.samestat(there, os.fstat(self._file))
        except FileNotFoundError:
            is_ours = False
        if not is_ours:
            self._reopen()

    def _rotate(self) -> None:
        for number in range(self._kept - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.replace(self._path, f"{self._path}.1")
        self._reopen()

    def _reopen(self) -> None:
        following = self._opened()
        os.close(self._file)
        self._file = following

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
