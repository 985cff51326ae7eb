"""Whose transactions and locks are: those that this server has given out lately are known without a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metastore.store.database import Database

MOST_KNOWN = 200_000


class Owners:
    """The users of ids of one kind; an id never changes hands."""

    def __init__(self, db: Database, function: str) -> None:
        """`function` of the database tells id and user of ids."""
        self._db = db
        self._function = function
        self._users: dict[int, str] = {}

    def note(self, ids: Iterable[int], user: str) -> None:
        """These are a user's."""
        if len(self._users) >= MOST_KNOWN:
            self._users.clear()
        for number in ids:
            self._users[number] = user

    def forget(self) -> None:
        """Know nothing."""
        self._users.clear()

    def known(self, ids: Sequence[int], user: str) -> bool | None:
        """Whether all ids are a user's; None if not all are known here."""
        users = self._users
        if len(ids) == 1:
            found = users.get(ids[0])
            return None if found is None else found == user
        owners = {users.get(number) for number in ids}
        return None if None in owners else owners <= {user}

    def all_of(self, ids: Sequence[int], user: str) -> bool:
        """Whether all ids that there are are a user's; looks into the database."""
        found = self._db.call(self._function, list(ids))
        for number, owner in found:
            self.note([number], owner)
        return all(owner == user for _, owner in found)
