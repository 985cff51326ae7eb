"""Who has come in by a password, so that it goes when that password does.

The file is looked at while somebody is in, every `LOOK_S`: whoever came in by a line that has changed since, or is
gone, has its connections closed when it is so at the next look, too: an editor may be writing the file. One that cannot
be read sends nobody away; the log says so when somebody comes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from metastore.rpc.doors.users.passwords import Bound, Hashed, Passwords
from metastore.rpc.limits.workers import Workers

if TYPE_CHECKING:  # its library is loaded only where there is a directory
    from metastore.rpc.doors.users.directory import Directory

LOOK_S = 1.0


class Guest(Protocol):
    """A connection."""

    def expel(self, user: str) -> None:
        """Close it."""


class Guests:
    """All connections of users; used on the event loop."""

    def __init__(self, passwords: Passwords | Directory, workers: Workers) -> None:
        """`workers` read the file. Of users of a directory nobody hears when their passwords change."""
        self.passwords = passwords
        self._workers = workers
        self._inside: dict[Guest, tuple[str, Hashed]] = {}
        self._doubtful: set[Guest] = set()  # whose line was another at the last look
        self._timer: asyncio.TimerHandle | None = None

    def came(self, guest: Guest, user: str, line: Hashed | Bound) -> None:
        """Somebody has come in by a line of the file, or of a directory."""
        if isinstance(line, Bound):
            self.left(guest)
            return
        self._inside[guest] = user, line
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def left(self, guest: Guest) -> None:
        """Somebody has gone, or never came in."""
        self._inside.pop(guest, None)
        self._doubtful.discard(guest)

    def _look(self) -> None:
        self._timer = None
        if not self._inside:
            return
        loop = asyncio.get_running_loop()

        def read(future: Any) -> None:
            lines = future.result() if future.exception() is None else None
            loop.call_soon_threadsafe(self._compare, lines)

        assert isinstance(self.passwords, Passwords)
        self._workers.submit_for("", self.passwords.lines).add_done_callback(read)

    def _compare(self, lines: dict[str, Hashed] | None) -> None:
        if lines is not None:
            before = self._doubtful
            self._doubtful = {guest for guest, (user, line) in self._inside.items() if lines.get(user) != line}
            for guest in before & self._doubtful:
                user, _ = self._inside[guest]
                self.left(guest)
                guest.expel(user)
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
