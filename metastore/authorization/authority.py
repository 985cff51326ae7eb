"""The one place where rights are enforced: before a call is served, and on the list that it is answered with.

A call that is hot is decided from memory (`check_soon`); what is not known there takes one question to the database, on
a thread (`check`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.authorization.asking import NotInMemoryError, Questions
from metastore.authorization.claims import CLAIMS, Claim
from metastore.authorization.methods import CHANGING, changed_tables, needs
from metastore.authorization.models import ANY, SERVER, Thing, Who
from metastore.authorization.needs import LOCK, TXN, Need, is_for_anyone, named_table, parsed
from metastore.authorization.owners import Owners
from metastore.authorization.policy import Policy, decision
from metastore.authorization.rights import RightsBook
from metastore.authorization.shown import SHOWN, Eyes
from metastore.store.database import Database

_ANY = frozenset({ANY})


class _Row:
    """What is known of a method."""

    __slots__ = ("claim", "is_for_anyone", "needs")

    def __init__(self, method: str, texts: Sequence[str]) -> None:
        self.is_for_anyone = is_for_anyone(texts)
        self.needs: tuple[Need, ...] = parsed(method, texts)
        self.claim: Claim | None = CLAIMS.get(method)


class Authority:
    """Decides who may do what; safe to use from many threads."""

    def __init__(self, db: Database, policy: Policy | None = None) -> None:
        self.book = RightsBook(db)
        self._owners = {TXN: Owners(db, "txn_owners"), LOCK: Owners(db, "lock_owners")}
        self._policy = policy
        self._rows = {method: _Row(method, texts) for method, texts in needs().items()}
        self._changed = {method: named_table(method, text) for method, text in changed_tables().items()}

    def listening(self, is_told: bool) -> None:
        """Whether the database tells of changes from now on. What is known may be of before a crash of it."""
        self.book.listening(is_told)
        for owners in self._owners.values():
            owners.forget()

    def check_soon(self, method: str, who: Who, arguments: list[Any]) -> bool:
        """Whether a call is known to be allowed, on the event loop: nothing is asked for."""
        try:
            self._check(method, who, arguments, is_quick=True)
        except NotInMemoryError:
            return False
        return True

    def check(self, method: str, who: Who, arguments: list[Any]) -> None:
        """Raises the error of a refusal unless a call is allowed; may ask the database, once for each object."""
        self._check(method, who, arguments, is_quick=False)

    def _check(self, method: str, who: Who, arguments: list[Any], is_quick: bool) -> None:
        row = self._rows.get(method)
        if row is None:
            raise MetaError(f"{method}: nothing says who may call it")
        if row.is_for_anyone:
            return
        if not who.user:
            words = "no user has come in on this connection, and it takes one (metastore.authorization)"
            raise MetaError(f"{method}: {words}")
        asker = Questions(self.book, self._owners, self._policy, who, method, is_quick)
        is_admin = asker.is_admin()
        if not is_admin:
            for need in row.needs:
                need.check(asker, arguments)
        if row.claim is not None:
            row.claim(arguments, who.user, is_admin)

    def served(self, method: str, who: Who, reply: Any) -> None:
        """A call has been served: transactions and locks that it has given out are the caller's."""
        if method == "open_txns" and isinstance(reply, ttypes.OpenTxnsResponse):
            self._owners[TXN].note(reply.txn_ids, who.user or "")
        elif method == "hive_acid_begin" and isinstance(reply, ttypes.HiveAcidBeginResponse):
            self._owners[TXN].note([reply.txnid], who.user or "")
            if reply.lock is not None:
                self._owners[LOCK].note([reply.lock.lockid], who.user or "")
        elif method == "lock" and isinstance(reply, ttypes.LockResponse):
            self._owners[LOCK].note([reply.lockid], who.user or "")

    def ended(self, method: str, arguments: Sequence[Any]) -> None:
        """A call has ended, well or not, and is not answered yet: what it may have changed is not known any more."""
        if method in CHANGING:
            self.book.forget()
        elif method in self._changed:
            for thing in self._changed[method](arguments):
                self.book.forget(thing.database, thing.table)

    def sees(self, method: str, who: Who, arguments: Sequence[Any]) -> tuple[Callable[[Any], bool], str | None] | None:
        """Which elements of a reply's list are shown, and the field that has the list (None: the reply itself is it).

        None if the reply is shown as it is. May ask the database.
        """
        if method not in SHOWN:
            return None
        known = self.book.known(who, SERVER) or self.book.read(who, SERVER)
        if known.is_admin or (self._policy is None and known.shows_all and method not in _PERSONAL):
            return None
        look, field = SHOWN[method]

        def said(thing: Thing) -> bool | None:
            return decision(self._policy, who, method, _ANY, thing)

        return look(Eyes(self.book, who, said), arguments), field


_PERSONAL = frozenset({"get_open_txns_info", "get_role_names"})
