"""The connections by client, since their number is bounded: each is a file of the process.

When there is no room for another one, the client that has most of them loses the one that has been idle for longest. So
nobody can lock others out, and a client that comes back finds a place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Member(Protocol):
    """A connection."""

    @property
    def client(self) -> str:
        """Whose it is."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in progress on it."""

    @property
    def used_at_s(self) -> float:
        """When something was last done on it (monotonic clock)."""

    def close(self) -> None:
        """End it."""


class Crowd:
    """All connections. Used on the event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_client: dict[str, set[Member]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Member]:
        return iter([one for members in self._by_client.values() for one in members])

    def add(self, newcomer: Member) -> bool:
        """Take a connection in; False if there is no room for it."""
        self._by_client.setdefault(newcomer.client, set()).add(newcomer)
        self._count += 1
        return self._count <= self._most or self._make_room(newcomer)

    def discard(self, member: Member) -> None:
        """A connection has ended."""
        members = self._by_client.get(member.client, set())
        if member in members:
            members.remove(member)
            self._count -= 1
            if not members:
                del self._by_client[member.client]

    def _make_room(self, newcomer: Member) -> bool:
        """Close some at once, so that not each newcomer has all of them looked at."""
        most = max(self._by_client.values(), key=len)
        idle = sorted((one for one in most if one.is_idle and one is not newcomer), key=lambda one: one.used_at_s)
        leaving = idle[: max(1, self._most // 1000)]
        for member in leaving:
            self.discard(member)
            member.close()
        return bool(leaving)
