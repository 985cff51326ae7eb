"""What glibc does with memory that the writers of files have given back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from itertools import count

_M_TOP_PAD, _M_MMAP_THRESHOLD = -2, -3
"""Names of settings in glibc's malloc.h: what a heap keeps at its end, and from which size on blocks lie outside."""

_KEPT_BYTES = 96 * 1024 * 1024
"""More than the buffers of a file of 16 columns, of which it touches an eighth."""

_LARGEST_IN_HEAP_BYTES = 32 * 1024 * 1024

_TRIMMED_AFTER_FILES = 64
"""A file of few rows leaves at most 12 MB behind; to give all of 64 back takes some ten milliseconds."""

_small_files = count(1)
_keeping: list[bool] = []


def keep_freed_memory() -> None:
    """Have glibc keep freed memory for the next file, as other allocators do by themselves.

    It is a setting of the whole process, so only who owns the process should call this, at its beginning: a program
    that does little else than to stream. pyarrow's writer asks for 84 MB of buffers for a file of few rows and touches
    12 of them. By default glibc gives that back to the system, and to get it again, page by page, takes twice as long
    as to write the file. With this each of its heaps keeps up to 96 MB. Without glibc nothing happens.
    """
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        _keeping.append(True)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP_BYTES)
        mallopt(_M_TOP_PAD, _KEPT_BYTES)


def small_file_written() -> None:
    """Give memory that is free back to the system, now and then, unless the process is to keep it.

    What a thread allocates lies in a heap that few threads share, and of each heap glibc by itself gives back only what
    is free at its end. Of ten threads that write small files it kept 500 MB.
    """
    if next(_small_files) % _TRIMMED_AFTER_FILES == 0 and not _keeping:
        malloc_trim = _of_glibc("malloc_trim")
        if malloc_trim is not None:
            malloc_trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of glibc's; None where there is no glibc."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
