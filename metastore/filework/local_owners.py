"""Who local files belong to, for `owners`.

Root gives away only what is its own, and goes by no link that somebody else has made: between the making of a directory
and the giving, users may put whatever they like into directories of theirs.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from metastore.filework.files import plain

_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_LINKS = 40


class _Owner(NamedTuple):
    user: int
    group: int


def give(location: str, user: str) -> None:
    """Have a directory of ours belong to a user of this machine. Raises OSError."""
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise OSError(f"there is no user {user!r}") from None
    _give((location,), _Owner(entry.pw_uid, entry.pw_gid), False)


def give_as(locations: tuple[str, ...], home: str, with_all: bool) -> None:
    """Have directories of ours belong to whom `home` belongs to, `with_all` below them. Raises OSError."""
    with _opened(plain(home)) as found:
        status = os.fstat(found)
    _give(locations, _Owner(status.st_uid, status.st_gid), with_all)


def _give(locations: tuple[str, ...], owner: _Owner, with_all: bool) -> None:
    if owner.user == os.geteuid():
        return
    for location in locations:
        with _opened(plain(location)) as found:
            _give_one(found, owner, with_all)


def _give_one(found: int, owner: _Owner, with_all: bool) -> None:
    """What is below first: as long as a directory is ours nobody changes what is in it."""
    status = os.fstat(found)
    if status.st_uid != os.geteuid():
        return
    if stat.S_ISDIR(status.st_mode):
        for name in os.listdir(found) if with_all else ():
            try:
                below = os.open(name, _LOOK, dir_fd=found)
            except OSError:  # a link, a socket, or gone
                continue
            try:
                _give_one(below, owner, with_all)
            finally:
                os.close(below)
    elif not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:  # a file of ours that has a second name
        return
    os.fchown(found, owner.user, owner.group)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """A directory, by no link of others. Raises OSError."""
    left = [part for part in path.split("/") if part][::-1]
    links = 0
    at = os.open("/", _LOOK | os.O_DIRECTORY)
    try:
        while left:
            part = left.pop()
            status = os.lstat(part, dir_fd=at)
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if status.st_uid not in (0, os.geteuid()) or status.st_nlink != 1 or links > _MOST_LINKS:
                    raise PermissionError(f"{part} on the way to {path} is a link of somebody else")
                target = os.readlink(part, dir_fd=at)
                left += [one for one in target.split("/") if one and one != "."][::-1]
                if not target.startswith("/"):
                    continue
                part = "/"
            inner = os.open(part, _LOOK | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)
