"""A line that says how far something long is, in a terminal and in a notebook; elsewhere nothing is said."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

SILENT_S = 2.0
"""What ends sooner says nothing."""
EACH_S = 0.5
PATIENCE_S = 2.0
"""So long the end of what is watched waits for a line that is being made."""
_ONE_LINE = threading.Lock()


@contextmanager
def status_line(what: str, figures: Callable[[], str]) -> Iterator[None]:
    """Show `what`, the seconds so far and what `figures` tells, until the block ends; then the line goes away.

    `figures` is asked on a thread of its own, every half second from the third second on; when it raises, the line goes
    away. There is one line at a time: a block within another one, or beside it, has none.
    """
    stream = sys.stderr
    if not is_watched(stream) or not _ONE_LINE.acquire(blocking=False):
        yield
        return
    try:
        ended = threading.Event()
        thread = threading.Thread(target=_show, args=(what, figures, stream, ended), name="hive-acid-status-line")
        thread.daemon = True
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(PATIENCE_S)
    finally:
        _ONE_LINE.release()


def is_watched(stream: TextIO | None) -> bool:
    """Whether somebody looks at what is written there: it is a terminal, or that of a notebook."""
    try:
        return stream is not None and (stream.isatty() or is_notebook())
    except ValueError:  # it is closed
        return False


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _show(what: str, figures: Callable[[], str], stream: TextIO, ended: threading.Event) -> None:
    begun_s = time.monotonic()
    length = 0
    try:
        pause_s = SILENT_S
        while not ended.wait(pause_s):
            pause_s = EACH_S
            line = ", ".join(part for part in (f"{what}: {time.monotonic() - begun_s:.0f} s", figures()) if part)
            line = line[: shutil.get_terminal_size().columns - 1]
            stream.write("\r" + line.ljust(length))
            stream.flush()
            length = len(line)
    except Exception:  # what is shown is a courtesy: what is done goes on
        return
    finally:
        if length:
            stream.write("\r" + " " * length + "\r")
            stream.flush()
