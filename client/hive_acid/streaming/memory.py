"""What glibc does with memory that a file's writer has given back; for processes that are there to write files."""

from __future__ import annotations

import ctypes
import sys

_M_TOP_PAD, _M_MMAP_THRESHOLD = -2, -3
"""Names of settings in glibc's malloc.h: what a heap keeps at its end, and from which size on blocks lie outside."""

_KEPT_BYTES = 96 * 1024 * 1024
"""More than the buffers of a file of 16 columns, of which it touches an eighth."""

_LARGEST_IN_HEAP_BYTES = 32 * 1024 * 1024


def keep_freed_memory() -> None:
    """Have glibc keep freed memory for the next file, as other allocators do by themselves.

    It is a setting of the whole process, so only who owns the process should call this, at its beginning: a program
    that does little else than to stream. pyarrow's writer asks for 84 MB of buffers for a file of few rows and touches
    12 of them. By default glibc gives that back to the system, and to get it again, page by page, takes twice as long
    as to write the file. With this each of its heaps keeps up to 96 MB. Without glibc nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP_BYTES)
        mallopt(_M_TOP_PAD, _KEPT_BYTES)
