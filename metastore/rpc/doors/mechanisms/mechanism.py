"""A mechanism of SASL as its door sees it: a response comes, and something is said of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hive_acid.sasl.seals import Seal
from metastore.rpc.doors.door import Identity
from metastore.rpc.doors.users.passwords import Bound, Hashed


class Challenge(NamedTuple):
    """The client is to say more."""

    payload: bytes


class Proved(NamedTuple):
    """The client has shown who it is."""

    identity: Identity
    payload: bytes = b""
    """What it is told with that."""
    seal: Seal | None = None
    """Of the frames that follow."""
    line: Hashed | Bound | None = None
    """Of the file of passwords, or the user of a directory, if it was one."""


class Rejected(NamedTuple):
    """The client is sent away."""

    reason: str
    user: str | None = None
    """Whom it calls itself."""
    is_guess: bool = False
    """Whether another try might be right: then it waits for the answer."""


class Mechanism(Protocol):
    """One client's part; used on threads, a step at a time."""

    most_bytes: int
    """Of a response."""

    def step(self, response: bytes) -> Challenge | Proved | Rejected:
        """What becomes of a response. Raises ValueError if that cannot be said now."""
