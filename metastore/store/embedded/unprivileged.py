"""Launcher that gives up root and becomes a Postgres program: Postgres refuses to run as root.

Run as a script of its own process, standard library only::

    python unprivileged.py --user postgres --reach PATH --reach PATH [--parent PID] -- program argument...

Directories above PATH may be closed to the unprivileged user (a virtual environment under ``/root``). Nobody's
directories are opened for it; the program keeps one capability instead, and only when a PATH is out of reach
without: CAP_DAC_READ_SEARCH, or CAP_DAC_OVERRIDE where the former is not to be had or does not suffice.

With ``--parent`` the program gets SIGINT, Postgres' fast shutdown, as soon as the thread that started it ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import signal
import sys
from collections.abc import Sequence

CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
_CAP_SETPCAP = 8

_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def _checked(result: int, what: str) -> None:
    if result != 0:
        sys.exit(f"{what} failed: {os.strerror(ctypes.get_errno())}")


def _permitted() -> int:
    """The permitted capabilities below bit 32; the two of interest are bits 1 and 2."""
    header, data = _Header(_CAPABILITY_VERSION_3, 0), (_Data * 2)()
    _checked(_libc.capget(ctypes.byref(header), data), "capget")
    return int(data[0].permitted)


def _set_capabilities(permitted: int, effective: int, inheritable: int) -> None:
    header, data = _Header(_CAPABILITY_VERSION_3, 0), (_Data * 2)()
    data[0].permitted, data[0].effective, data[0].inheritable = permitted, effective, inheritable
    _checked(_libc.capset(ctypes.byref(header), data), "capset")


def _change_user(name: str) -> None:
    entry = pwd.getpwnam(name)
    _checked(_libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "prctl(PR_SET_KEEPCAPS)")
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    os.environ.update(HOME="/", USER=name, LOGNAME=name)


def _reachable(paths: Sequence[str]) -> bool:
    return all(os.access(path, os.X_OK) for path in paths)


def _keep_least(paths: Sequence[str]) -> None:
    """Keep no capability, or the smallest one with which all of `paths` can be reached."""
    had = _permitted()
    _set_capabilities(had, 0, 0)
    if _reachable(paths):
        _set_capabilities(0, 0, 0)
        return
    if had & 1 << _CAP_SETPCAP:
        # initdb looks for its fellow programs with access(), which otherwise leaves capabilities out of account.
        _set_capabilities(had, 1 << _CAP_SETPCAP, 0)
        _checked(_libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0), "prctl(PR_SET_SECUREBITS)")
    for number in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
        capability = 1 << number
        if not had & capability:
            continue
        _set_capabilities(had, capability, 0)
        if _reachable(paths):
            _set_capabilities(capability, capability, capability)
            _checked(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number, 0, 0), "prctl(PR_CAP_AMBIENT)")
            return
    user = pwd.getpwuid(os.getuid()).pw_name
    sys.exit(f"user {user} cannot reach {' and '.join(paths)}: choose directories it may enter")


def _die_with_parent(parent: int) -> None:
    """Ask for SIGINT at the parent's end; comes after the change of user, which clears the request."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit("the process that asked for this server has ended")


def main(arguments: Sequence[str] | None = None) -> None:
    """Change the user as asked, then become the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", default="")
    parser.add_argument("--reach", action="append", default=[])
    parser.add_argument("--parent", type=int, default=0)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args(arguments)
    if options.user:
        _change_user(options.user)
        _keep_least(options.reach)
    if options.parent:
        _die_with_parent(options.parent)
    os.execv(options.program[0], options.program)


if __name__ == "__main__":
    main()
