"""A user and a password (RFC 4616)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.rpc.doors.door import Identity
from metastore.rpc.doors.mechanisms.mechanism import Proved, Rejected
from metastore.rpc.doors.users.passwords import LONGEST, Passwords
from metastore.rpc.doors.users.proxies import Proxies

if TYPE_CHECKING:  # its library is loaded only where there is a directory
    from metastore.rpc.doors.users.directory import Directory

PLAIN = "PLAIN"


class PlainMechanism:
    """One client's part."""

    most_bytes = 3 * LONGEST + 2

    def __init__(self, passwords: Passwords | Directory, proxies: Proxies, client: str) -> None:
        self._passwords = passwords
        self._proxies = proxies
        self._client = client

    def step(self, response: bytes) -> Proved | Rejected:
        """Whether the password is right. Raises ValueError if that cannot be said now."""
        try:
            other, name, password = response.split(b"\0")
            user = name.decode()
        except ValueError:
            return Rejected("the response is not the user and the password of PLAIN")
        as_whom = other.decode("utf-8", "replace") or user
        line = self._passwords.admits(user, password)
        if line is None:
            return Rejected(f"no user {user!r} with this password", user, is_guess=True)
        refusal = self._proxies.refusal(user, as_whom, self._client)
        if refusal is not None:
            return Rejected(refusal, user)
        return Proved(Identity(as_whom, user), line=line)
