"""One call's questions, answered from memory or by the database."""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.errors import MetaError
from metastore.authorization.models import ADMIN, ANY, SERVER, VERBS, Thing, Who, database_thing, table_thing
from metastore.authorization.needs import TXN
from metastore.authorization.owners import Owners
from metastore.authorization.policy import Policy, decision
from metastore.authorization.refusals import absent, not_ones_own
from metastore.authorization.rights import RightsBook
from metastore.catalog.models import ROLE, USER
from metastore.catalog.names import DEFAULT_DATABASE
from metastore.catalog.registry.roles import IS_GROUP, PUBLIC

_ADMIN, _ANY = frozenset({ADMIN}), frozenset({ANY})
_DEFAULT = database_thing(DEFAULT_DATABASE)
_FEW = 1000
"""Transactions of a range that are looked for one by one."""


class NotInMemoryError(Exception):
    """It takes a question to the database, or to a policy."""


class Questions:
    """Answers for one caller of one method; `needs.Asker`.

    With `is_quick` nothing is asked: NotInMemoryError says that it must be. Only what is allowed is believed of what is
    kept, so a right that somebody else has just granted holds at once.
    """

    __slots__ = ("_book", "_is_quick", "_method", "_owners", "_policy", "_who")

    def __init__(
        self,
        book: RightsBook,
        owners: dict[str, Owners],
        policy: Policy | None,
        who: Who,
        method: str,
        is_quick: bool,
    ) -> None:
        self._book = book
        self._owners = owners
        self._policy = policy
        self._who = who
        self._method = method
        self._is_quick = is_quick

    def is_admin(self) -> bool:
        """Whether the caller may do everything."""
        rights = self._book.known(self._who, SERVER)
        if rights is None:
            self._slow()
            rights = self._book.read(self._who, SERVER)
        return rights.is_admin

    def may(self, verbs: frozenset[str], thing: Thing) -> bool:
        """Whether the caller has one of some rights."""
        if self._policy is not None:
            self._slow()
            said = decision(self._policy, self._who, self._method, verbs, thing)
            if said is not None:
                return said
        if verbs == _ANY and thing == _DEFAULT:
            return True  # which every client looks for when it starts
        rights = self._book.known(self._who, thing)
        if rights is None or not rights.allow(verbs):
            self._slow()
            rights = self._book.read(self._who, thing)
        return rights.allow(verbs)

    def require(self, verbs: frozenset[str], thing: Thing) -> None:
        """One of some rights. Raises the error of a refusal."""
        if not self.may(verbs, thing):
            if ANY in verbs and self._is_seen_to_be_absent(thing):
                raise absent(self._method, thing)
            what = " or ".join(sorted(verbs - _ANY) or ["any right"])
            raise self._refusal(f"it takes {what} on {thing}" + ("" if ADMIN in verbs else ", or ADMIN"))

    def _is_seen_to_be_absent(self, thing: Thing) -> bool:
        """Whether it is a table that is not there, in a database of which the caller may see something."""
        if thing.database is None or thing.table is None or not self.may(_ANY, database_thing(thing.database)):
            return False
        self._slow()
        return not self._book.read(self._who, thing).is_there

    def require_own(self, kind: str, ids: Sequence[int]) -> None:
        """Transactions or locks of its own. Raises the error of a refusal."""
        owners, user = self._owners[kind], self._who.user or ""
        if owners.known(ids, user):
            return
        self._slow()
        if not owners.all_of(ids, user):
            named = ", ".join(map(str, ids[:5]))
            one, some = f"the {kind} {named} is another user's", f"of the {kind}s {named} some are other users'"
            raise not_ones_own(self._method, self._words(one if len(ids) == 1 else some))

    def require_own_range(self, least: int, most: int) -> None:
        """No transaction of another one between these. Raises the error of a refusal."""
        user = self._who.user or ""
        if 0 <= most - least <= _FEW and self._owners[TXN].known(range(least, most + 1), user):
            return
        self._slow()
        if not self._book.range_is_of(user, least, most):
            words = f"between transactions {least} and {most} there are other users'"
            raise not_ones_own(self._method, self._words(words))

    def require_numbered(self, verbs: frozenset[str], number: int) -> None:
        """One of some rights with the table of an id. Raises the error of a refusal."""
        self._slow()
        table = self._book.table(number)
        self.require(verbs if table else _ADMIN, table_thing(*table) if table else SERVER)

    def require_compacted(self, ids: Sequence[int]) -> None:
        """ADMIN on the tables of compactions. Raises the error of a refusal."""
        self._slow()
        found = self._book.compacted(list(ids))
        for database, table in found:
            self.require(_ADMIN, table_thing(database, table))
        if not found:
            self.require(_ADMIN, SERVER)

    def require_grant(self, privileges: frozenset[str], thing: Thing) -> None:
        """The right to grant privileges. Raises the error of a refusal."""
        self._slow()
        rights = self._book.read(self._who, thing)
        wanted = privileges - {"ALL"} | VERBS if "ALL" in privileges else privileges
        if not (wanted <= rights.grantable & VERBS or self.may(_ADMIN, thing)):
            words = ", ".join(sorted(privileges))
            raise self._refusal(f"it takes {words} with grant option, or ADMIN, on {thing}")

    def require_role(self, role: str) -> None:
        """The right to grant a role. Raises the error of a refusal."""
        self._slow()
        if not self._book.roles(self._who).get(role):
            raise self._refusal(f"it takes the role {role} with admin option, or ADMIN on the server")

    def require_self(self, name: str | None, kind: int, thing: Thing | None) -> None:
        """That a principal is the caller or one of its roles, or else ADMIN on a thing. Raises a refusal's error."""
        if name is not None:
            if kind == USER and name == self._who.user:
                return
            if kind == IS_GROUP and name in self._who.groups:
                return
            if kind == ROLE:
                self._slow()
                if name == PUBLIC or name in self._book.roles(self._who):
                    return
        self.require(_ADMIN, SERVER if thing is None else thing)

    def require_owner(self, thing: Thing, owner: str | None) -> None:
        """ADMIN on a thing, if that is to have another owner. Raises the error of a refusal."""
        rights = self._book.known(self._who, thing)
        if rights is not None and rights.is_admin:
            return
        self._slow()
        if self._book.read(self._who, thing).owner != owner:
            self.require(_ADMIN, thing)

    def _slow(self) -> None:
        if self._is_quick:
            raise NotInMemoryError

    def _refusal(self, words: str) -> MetaError:
        return MetaError(self._words(words))

    def _words(self, words: str) -> str:
        return f"{self._who.user} may not call {self._method}: {words}"
