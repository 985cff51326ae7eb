"""What a killed server leaves behind of its Postgres, and clearing it away before the next start.

Postgres processes work inside their data directory, so ``/proc/<pid>/cwd`` tells which belong to it. A data
directory must never be opened twice: nothing is removed while one of them is alive.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

SOCKET_PREFIX = "hive-acid-"

_QUIT_AFTER_S = 30.0
_KILL_AFTER_S = 45.0
_GIVE_UP_AFTER_S = 60.0


def clear(cluster: Path) -> bool:
    """Stop what still runs on this data directory and remove stale traces; False if something will not stop.

    The caller holds the lock of the data directory, so whatever runs here has lost its owner.
    """
    if not Path("/proc/self").exists():
        return True  # elsewhere than on Linux Postgres' own checks have to do
    postmaster = _postmaster_pid(cluster)
    asked = signal.SIGINT
    started = time.monotonic()
    signalled: signal.Signals | None = None
    while running := _processes(cluster):
        waited = time.monotonic() - started
        if waited > _GIVE_UP_AFTER_S:
            return False
        if waited > _KILL_AFTER_S:
            asked = signal.SIGKILL
        elif waited > _QUIT_AFTER_S:
            asked = signal.SIGQUIT
        if asked is not signalled:
            # Without a postmaster the others end by themselves as soon as they notice.
            _signal([postmaster] if postmaster in running else running if asked != signal.SIGINT else [], asked)
            signalled = asked
        time.sleep(0.02)
    _remove_traces(cluster, postmaster)
    return True


def _processes(cluster: Path) -> list[int]:
    """The living postgres processes of the data directory; zombies do not count."""
    target = os.path.realpath(cluster)
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            works_here = os.readlink(f"/proc/{entry}/cwd") == target
            is_postgres = works_here and os.path.basename(os.readlink(f"/proc/{entry}/exe")).startswith("postgres")
        except OSError:  # ended meanwhile, a zombie, or another user's
            continue
        if is_postgres:
            found.append(int(entry))
    return found


def _postmaster_pid(cluster: Path) -> int:
    lines = _pid_file_lines(cluster)
    return int(lines[0]) if lines and lines[0].isdigit() else 0


def _pid_file_lines(cluster: Path) -> list[str]:
    try:
        return (cluster / "postmaster.pid").read_text().splitlines()
    except OSError:
        return []


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _remove_traces(cluster: Path, postmaster: int) -> None:
    lines = _pid_file_lines(cluster)
    socket_directory = Path(lines[4]) if len(lines) > 4 and lines[4] else None
    if socket_directory and socket_directory.name.startswith(SOCKET_PREFIX):
        shutil.rmtree(socket_directory, ignore_errors=True)
    # A zombie or an unrelated process that got the same id would make Postgres take the file for a living server's.
    # Otherwise the file stays: Postgres finds its old shared memory through it.
    if postmaster and Path(f"/proc/{postmaster}").exists():
        (cluster / "postmaster.pid").unlink(missing_ok=True)
