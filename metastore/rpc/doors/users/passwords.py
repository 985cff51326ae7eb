"""A file of users and what their passwords were hashed to, by scrypt: one ``user:hash`` a line.

A password takes some fifty milliseconds and 16 MB to check, so that who has the file tries few. What was right once is
known by a code of this process's own until the user's line changes: connections come in numbers.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from metastore.rpc.doors.stamps import stamp_of
from metastore.settings import SettingError

LOG2_N, R, P = 14, 8, 1
"""What scrypt costs: the least that OWASP names for interactive use with this much memory is about this."""
_SALT_BYTES, _HASH_BYTES = 16, 32
_MOST_MEMORY = 256 << 20
LOOK_AGAIN_S = 1.0
LONGEST = 1024
"""Of a user's name or a password, in bytes."""


class Hashed(NamedTuple):
    """What is known of a password."""

    log2_n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: bytes) -> Hashed:
        """A new one, with a salt of its own."""
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(LOG2_N, R, P, salt, _scrypt(password, LOG2_N, R, P, salt))

    @classmethod
    def parse(cls, text: str) -> Hashed:
        """Of its text. Raises ValueError."""
        kind, log2_n, r, p, salt, digest = text.split("$")
        if kind != "scrypt" or not (1 <= int(log2_n) <= 20 and 1 <= int(r) <= 32 and 1 <= int(p) <= 16):
            raise ValueError("not of scrypt, or of one that costs too much")
        return cls(int(log2_n), int(r), int(p), base64.b64decode(salt), base64.b64decode(digest))

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(part).decode() for part in (self.salt, self.digest))
        return f"scrypt${self.log2_n}${self.r}${self.p}${salt}${digest}"

    def is_of(self, password: bytes) -> bool:
        """Whether the password is the one."""
        return hmac.compare_digest(_scrypt(password, self.log2_n, self.r, self.p, self.salt), self.digest)


def is_name(user: str) -> bool:
    """Whether a text can be the name of a user who comes in."""
    return user.isprintable() and 0 < len(user.encode()) <= LONGEST


class Bound(NamedTuple):
    """A user whose password a directory has taken."""

    user: str


class Passwords:
    """The users of a file as it is now. Threads may share it."""

    def __init__(self, file: str) -> None:
        """Raises SettingError if it cannot be read."""
        self._file = Path(file)
        self._guard = threading.Lock()
        self._stamp = stamp_of(self._file)
        self._users = read_users(self._file)
        self._looked_at_s = time.monotonic()
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, tuple[Hashed, bytes]] = {}
        self._nobody = Hashed.of(b"")

    def admits(self, user: str, password: bytes) -> Hashed | None:
        """The user's line if this is its password, else None. It takes as long for a user who is not there."""
        hashed = self._looked_up(user)
        if hashed is None:
            self._nobody.is_of(password)
            return None
        code = hmac.digest(self._secret, password, "sha256")
        known = self._known.get(user)
        if known is not None and known[0] == hashed and hmac.compare_digest(known[1], code):
            return hashed
        if not hashed.is_of(password):
            return None
        self._known[user] = hashed, code
        return hashed

    def lines(self) -> dict[str, Hashed]:
        """Users and their lines as the file has them now. Raises ValueError if it cannot be read."""
        with self._guard:
            self._look()
            return self._users

    def _looked_up(self, user: str) -> Hashed | None:
        with self._guard:
            self._look()
            return self._users.get(user)

    def _look(self) -> None:
        if time.monotonic() - self._looked_at_s < LOOK_AGAIN_S:
            return
        self._looked_at_s = time.monotonic()
        stamp = stamp_of(self._file)
        if stamp != self._stamp:
            self._users = read_users(self._file)
            self._stamp = stamp
            self._known = {user: known for user, known in self._known.items() if user in self._users}


def read_users(file: Path) -> dict[str, Hashed]:
    """The users of a file. Raises SettingError if one of its lines is none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise SettingError(
            f"the file of passwords {file} cannot be read: {words}; `metastore passwd` makes it"
        ) from None
    users = {}
    for number, line in enumerate(lines, 1):
        user, colon, text = line.partition(":")
        if line.strip() and not line.startswith("#"):
            try:
                if not (colon and user):
                    raise ValueError("no user")
                users[user] = Hashed.parse(text.strip())
            except ValueError:
                raise SettingError(
                    f"line {number} of the file of passwords {file} is not user:hash, as `metastore passwd` writes it"
                ) from None
    return users


def change(file: Path, user: str, password: str | None) -> None:
    """Give a user this password, or None to take the user out. Raises SettingError."""
    if not user or ":" in user or not user.isprintable() or user.startswith("#") or len(user.encode()) > LONGEST:
        raise SettingError(f"{user!r} is no name of a user: give one without a colon")
    if password is not None and not 0 < len(password.encode()) <= LONGEST:
        raise SettingError(f"a password has 1 to {LONGEST} bytes")
    with open(file.with_name(file.name + ".lock"), "w") as lock:  # two commands at a time lose neither's line
        fcntl.flock(lock, fcntl.LOCK_EX)
        users = read_users(file) if file.exists() else {}
        if password is None:
            if users.pop(user, None) is None:
                raise SettingError(f"there is no user {user} in {file}")
        else:
            users[user] = Hashed.of(password.encode())
        _write(file, users)


def _write(file: Path, users: Mapping[str, Hashed]) -> None:
    text = "".join(f"{user}:{hashed}\n" for user, hashed in sorted(users.items()))
    before = file.stat() if file.exists() else None
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            if before is not None:  # the server may be another user, or one of a group
                os.fchown(stream.fileno(), before.st_uid, before.st_gid)
                os.fchmod(stream.fileno(), before.st_mode & 0o777)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _scrypt(password: bytes, log2_n: int, r: int, p: int, salt: bytes) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=1 << log2_n, r=r, p=p, maxmem=_MOST_MEMORY, dklen=_HASH_BYTES)
