"""By what one sees that a file has changed."""

from __future__ import annotations

import os

Stamp = tuple[int, int, int] | None


def stamp_of(file: str | os.PathLike[str]) -> Stamp:
    """What is another once the file has been written or replaced; None while it cannot be looked at."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
