"""What a killed server leaves behind of its Postgres, and clearing it away before the next start.

A data directory must never be opened twice. Whether a former Postgres still works on it is told by what it wrote
into ``postmaster.pid``: its process, known by its command line, and its shared memory, which every process of it is
attached to. Both can be looked up without any privilege (``/proc/<pid>/cmdline``, ``/proc/sysvipc/shm``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_QUIT_AFTER_S = 30.0
_KILL_AFTER_S = 45.0
_GIVE_UP_AFTER_S = 60.0


def are_there(cluster: Path) -> bool:
    """Whether a Postgres has left its trace, or works here."""
    return _Trace.read(cluster) is not None


def has_child(process: int, word: str) -> bool:
    """Whether a process has a child that names itself so; also where that cannot be found out."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return True
    for child in children:
        with contextlib.suppress(OSError):
            if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                return True
    return False


def clear(cluster: Path, is_stopping: Callable[[], bool] = lambda: False) -> bool:
    """Stop what still runs on this data directory and remove stale traces; False if something will not stop.

    The caller holds the lock of the data directory, so whatever runs here has lost its owner. It may break off.
    """
    if not Path("/proc/self").exists():
        return True  # elsewhere than on Linux Postgres' own checks have to do
    started = time.monotonic()
    signalled: signal.Signals | None = None
    while (trace := _Trace.read(cluster)) is not None:
        alive = trace.runs_on(cluster)
        # Without a postmaster the other processes end by themselves as soon as they notice.
        if not alive and not trace.is_attached():
            trace.remove(cluster)
            break
        waited_s = time.monotonic() - started
        if waited_s > _GIVE_UP_AFTER_S or is_stopping():
            return False
        number = _signal_after(waited_s)
        if alive and number is not signalled:
            with contextlib.suppress(ProcessLookupError):
                os.kill(trace.postmaster, number)
            signalled = number
        time.sleep(0.02)
    return True


@dataclass(frozen=True)
class _Trace:
    """The content of a ``postmaster.pid``; a server that has just begun has written only a part of it."""

    postmaster: int
    shared_memory: str | None

    @classmethod
    def read(cls, cluster: Path) -> _Trace | None:
        try:
            lines = [line.strip() for line in (cluster / "postmaster.pid").read_text().splitlines()]
        except FileNotFoundError:
            return None
        postmaster = int(lines[0]) if lines and lines[0].isdigit() else 0
        shared_memory = lines[6].split()[-1] if len(lines) > 6 and lines[6] else None
        return cls(postmaster, shared_memory)

    def runs_on(self, cluster: Path) -> bool:
        """Whether the postmaster lives and works on this directory; a zombie has no command line any more."""
        return _runs_on(str(self.postmaster), cluster)

    def is_attached(self) -> bool:
        """Whether any process still uses the server's shared memory."""
        try:
            header, *rows = Path("/proc/sysvipc/shm").read_text().splitlines()
        except OSError:
            return False
        names = header.split()
        for row in rows:
            segment = dict(zip(names, row.split(), strict=False))
            if segment.get("shmid") == self.shared_memory:
                return segment.get("nattch") != "0"
        return False

    def remove(self, cluster: Path) -> None:
        """Remove what would keep the next server from starting."""
        # A zombie or an unrelated process that got the same id would make Postgres take the file for a living
        # server's, and so it would an empty one, as a power cut leaves it. Otherwise the file stays: Postgres finds its
        # old shared memory through it.
        is_misleading = (
            Path(f"/proc/{self.postmaster}").exists() if self.postmaster else not _is_run_by_anybody(cluster)
        )
        if is_misleading:
            (cluster / "postmaster.pid").unlink(missing_ok=True)


def _runs_on(process: str, cluster: Path) -> bool:
    try:
        return os.fsencode(cluster) in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _is_run_by_anybody(cluster: Path) -> bool:
    """Whether any process has this directory as an argument: one that has only begun to write its trace."""
    return any(_runs_on(process, cluster) for process in os.listdir("/proc") if process.isdigit())


def _signal_after(waited_s: float) -> signal.Signals:
    """A fast shutdown at first, then an immediate one, then the end."""
    if waited_s > _KILL_AFTER_S:
        return signal.SIGKILL
    return signal.SIGQUIT if waited_s > _QUIT_AFTER_S else signal.SIGINT
