"""What the machine says about processes: CPU time and memory from /proc; and the real-time class for bursts."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PRIORITY = 10
MAX_OPEN_FILES = 65_536


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, fresh = [root], [root]
    while fresh:
        fresh = [child for parent in fresh for child in children.get(parent, ())]
        found += fresh
    return found


def cpu_s(roots: Iterable[int]) -> float:
    """CPU time used until now by the processes, their descendants, and children of theirs that have ended."""
    ticks = 0
    for root in roots:
        for process in tree(root):
            fields = _stat(process)
            if fields:
                ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS_PER_S


def memory_mb(process: int) -> float:
    """Resident memory of one process."""
    return _status_mb(process, "VmRSS")


def peak_memory_mb(process: int) -> float:
    """The most that it has been since `reset_peak_memory`."""
    return _status_mb(process, "VmHWM")


def reset_peak_memory(process: int) -> None:
    """Let the peak count from now on."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def _status_mb(process: int, name: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0


@contextlib.contextmanager
def real_time(roots: Iterable[int]) -> Iterator[None]:
    """This thread, the processes and their descendants in SCHED_RR: other load on the machine does not decide then.

    Raises PermissionError where that is not allowed (it takes root or CAP_SYS_NICE).
    """
    wanted = list(roots)
    try:
        _schedule(wanted, os.SCHED_RR, _PRIORITY)
        yield
    finally:
        _schedule(wanted, os.SCHED_OTHER, 0)


def allow_many_files() -> None:
    """Raise the soft limit of open files as far as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _schedule(roots: Iterable[int], policy: int, priority: int) -> None:
    parameter = os.sched_param(priority)
    os.sched_setscheduler(0, policy, parameter)
    for root in roots:
        for process in tree(root):
            with contextlib.suppress(FileNotFoundError):
                for thread in Path(f"/proc/{process}/task").iterdir():
                    with contextlib.suppress(ProcessLookupError):
                        os.sched_setscheduler(int(thread.name), policy, parameter)


def _stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
