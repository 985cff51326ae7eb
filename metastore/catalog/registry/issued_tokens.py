"""The delegation tokens that this metastore has issued, and the keys of their passwords (wire.md §2.8).

They are apart from those that clients keep here (`tokens.py`): no call tells a key of ours.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from sqlalchemy import text

from hive_acid.errors import MetaError
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

MOST_OF_ONE = 10_000
"""Tokens of one owner."""
KEY_BYTES = 32
_ISSUE = text(
    "SELECT * FROM issue_delegation_token(:owner, :renewer, :real_user, :key, :life_ms, :renew_ms, :key_ms, :most)"
)
_FIND = text("SELECT * FROM find_delegation_token(:number)")
_RENEW = text("SELECT renew_delegation_token(:number, :renew_ms)")
_CANCEL = text("SELECT cancel_delegation_token(:number)")


class Issued(NamedTuple):
    """One token."""

    sequence: int
    owner: str
    renewer: str
    real_user: str
    """Who has asked for it, if not its owner."""
    issued_ms: int
    max_ms: int
    """Beyond that nobody renews it."""
    key_id: int
    key: bytes


class IssuedTokens:
    """By number."""

    def __init__(self, db: Database, life_ms: int, renew_ms: int, key_ms: int) -> None:
        """A token is good for `renew_ms` from its last renewal, `life_ms` at most; after `key_ms` comes a new key."""
        self._db = db
        self._life_ms, self._renew_ms, self._key_ms = life_ms, renew_ms, key_ms

    def issue(self, owner: str, renewer: str, real_user: str) -> Issued:
        """A new one. Raises MetaError if its owner has too many."""
        given = {
            "owner": owner,
            "renewer": renewer,
            "real_user": real_user,
            "key": secrets.token_bytes(KEY_BYTES),
            "life_ms": self._life_ms,
            "renew_ms": self._renew_ms,
            "key_ms": self._key_ms,
            "most": MOST_OF_ONE,
        }
        row = in_transaction(self._db, lambda connection: connection.execute(_ISSUE, given).first())
        if row is None:
            raise MetaError(f"{owner} has {MOST_OF_ONE} delegation tokens already: cancel those that nobody needs")
        return Issued(row.sequence, owner, renewer, real_user, row.issued_ms, row.max_ms, row.key_id, bytes(row.key))

    def find(self, number: int) -> Issued | None:
        """The one of a number, if it is good still."""
        with self._db.engine.connect() as connection:
            row = connection.execute(_FIND, {"number": number}).first()
        if row is None:
            return None
        return Issued(
            number, row.owner, row.renewer, row.real_user, row.issued_ms, row.max_ms, row.key_id, bytes(row.key)
        )

    def renew(self, number: int) -> int | None:
        """Until when it is good now (ms since 1970); None if it is not any more."""
        given = {"number": number, "renew_ms": self._renew_ms}
        found: int | None = in_transaction(self._db, lambda connection: connection.execute(_RENEW, given).scalar())
        return found

    def cancel(self, number: int) -> bool:
        """Whether there was such a one; there is none any more."""
        return bool(
            in_transaction(self._db, lambda connection: connection.execute(_CANCEL, {"number": number}).scalar())
        )
