"""Delegation tokens: whom they are issued to, who renews and cancels them, and who comes in with one.

Whoever has a ticket gets one for a program that has none, such as a job on a cluster. It is good for some time, and by
its renewer for longer, up to a limit. Who has come in with a token gets no other and renews none.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from hive_acid.errors import HiveAcidError, MetaError
from hive_acid.sasl.hadoop_tokens import Identifier, Secret
from metastore.catalog.registry.issued_tokens import Issued, IssuedTokens
from metastore.rpc.call import Session
from metastore.rpc.doors.users.passwords import is_name
from metastore.rpc.doors.users.proxies import Proxies


class Delegation:
    """The tokens of a server. Threads may share it."""

    def __init__(self, store: IssuedTokens, proxies: Proxies, user_of: Callable[[str], str]) -> None:
        """`user_of` tells which user a principal is, and raises ValueError if it is none."""
        self._store = store
        self._proxies = proxies
        self._user_of = user_of

    def issue(self, session: Session, owner: str, renewer: str) -> str:
        """A token for `owner`, the caller itself or one that it may act for. Raises MetaError."""
        who = self._without_token(session, "get")
        for_whom = self._user(owner) if owner else session.user or who
        by_whom = self._user(renewer) if renewer else ""
        if for_whom != session.user and (refusal := self._proxies.refusal(who, for_whom, session.client)):
            raise MetaError(f"get_delegation_token: {refusal}")
        return str(_secret(self._store.issue(for_whom, by_whom, "" if for_whom == who else who)))

    def renew(self, session: Session, text: str) -> int:
        """Until when it is good now (ms since 1970). Raises MetaError for another than its renewer."""
        self._without_token(session, "renew")
        found = self._found(text)
        if not found.renewer or found.renewer != session.user:
            raise MetaError(f"{session.user} may not renew this token: its renewer is {found.renewer or 'nobody'}")
        until_ms = self._store.renew(found.sequence)
        if until_ms is None:
            raise MetaError(_GONE)
        return until_ms

    def cancel(self, session: Session, text: str) -> None:
        """Raises MetaError for another than its owner and its renewer."""
        if session.authenticated is None:
            raise MetaError(_NOBODY)
        found = self._found(text)
        if session.user not in (found.owner, found.renewer or None):
            raise MetaError(f"{session.user} may not cancel this token: it is {found.owner}'s")
        if not self._store.cancel(found.sequence):
            raise MetaError(_GONE)

    def owner_of(self, identifier: bytes) -> tuple[str, Secret] | None:
        """Whose token it is, if it is good, and with its password. Raises ValueError if nobody can say."""
        try:
            found = self._looked_up(identifier)
        except (HiveAcidError, SQLAlchemyError) as error:
            raise ValueError(f"the database does not answer: {error}") from None
        return None if found is None else (found.owner, _secret(found))

    def _without_token(self, session: Session, verb: str) -> str:
        """Who has come in with a ticket. Raises MetaError for others."""
        if session.authenticated is None:
            raise MetaError(_NOBODY)
        if session.is_by_token:
            raise MetaError(f"who has come in with a delegation token does not {verb} one: log in with a ticket")
        return session.authenticated

    def _user(self, name: str) -> str:
        if "@" not in name and "/" not in name:
            if not is_name(name):
                raise MetaError(f"{name!r} is no name of a user")
            return name
        try:
            return self._user_of(name)
        except ValueError as error:
            raise MetaError(str(error)) from None

    def _found(self, text: str) -> Issued:
        """The token of a text, whose password has to be right. Raises MetaError."""
        try:
            shown = Secret.parse(text)
        except ValueError as error:
            raise MetaError(f"this is no delegation token: {error}") from None
        found = self._looked_up(shown.identifier)
        if found is None or not hmac.compare_digest(_secret(found).password, shown.password):
            raise MetaError(_GONE)
        return found

    def _looked_up(self, identifier: bytes) -> Issued | None:
        try:
            told = Identifier.parse(identifier)
        except ValueError:
            return None
        if not 0 < told.sequence < 1 << 31:
            return None
        found = self._store.find(told.sequence)
        return found if found is not None and bytes(_identifier(found)) == identifier else None


_GONE = "there is no such delegation token: it has ended or was cancelled, or it is not of this metastore"
_NOBODY = "delegation tokens are for those who have come in"


def _identifier(token: Issued) -> Identifier:
    return Identifier(
        token.owner, token.renewer, token.real_user, token.issued_ms, token.max_ms, token.sequence, token.key_id
    )


def _secret(token: Issued) -> Secret:
    """The token with its password, which nobody keeps."""
    identifier = bytes(_identifier(token))
    return Secret(identifier, hmac.digest(token.key, identifier, "sha1"))
