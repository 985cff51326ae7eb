"""Who asks over HTTP: by a password (Basic), a token (Bearer), or by the word of a proxy that is believed."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import time
from collections.abc import Mapping
from typing import NamedTuple

from hive_acid.http import ACTOR
from hive_acid.login import parsed_address
from metastore.rpc.doors.config import JWT, LDAP, PASSWORD, DoorsConfig
from metastore.rpc.doors.users.guests import Guests
from metastore.rpc.doors.users.passwords import Bound, Hashed, is_name
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.doors.users.tokens import TokenError, Tokens

AUTHORIZATION, FORWARDED_FOR = "authorization", "x-forwarded-for"
MOST_BELIEVED_S = 60.0
"""After that a token is looked at again, since its key may have been withdrawn, and a directory is asked again."""
_BASIC = 'Basic realm="metastore", charset="UTF-8"'


class Visitor(NamedTuple):
    """Who makes a request."""

    user: str | None
    """As whom it acts."""
    authenticated: str | None = None
    """Who has shown what was asked for; None where nobody is asked."""
    line: Hashed | Bound | None = None
    """Of the file of passwords, or the user of a directory, if it was one."""
    until_s: float = float("inf")
    """So long the same words are believed, by the clock of the day."""


class Refused(NamedTuple):
    """Who is not let in, and why."""

    reason: str
    user: str | None = None
    is_wrong: bool = True
    """Whether it was tried and was wrong; else nothing was shown."""


class Reception:
    """Looks at the headers of requests. Threads may share it."""

    def __init__(self, config: DoorsConfig, guests: Guests | None, proxies: Proxies) -> None:
        """`guests` have come in by passwords. Raises SettingError for files that cannot be used."""
        self.path = f"/{config.http_path.strip('/')}/".replace("//", "/")
        """Where requests are taken, and below."""
        self.guests = guests
        self._proxies = proxies
        self._config = config
        self._tokens = Tokens(config) if config.authentication == JWT else None
        self._proxy_header = config.proxy_header.lower()
        self._believed = [ipaddress.ip_network(one) for one in config.proxy_addresses]

    @property
    def challenge(self) -> str:
        """What a client is to show, as HTTP says it; empty if nothing."""
        schemes = dict.fromkeys((PASSWORD, LDAP), _BASIC) | {JWT: 'Bearer realm="metastore"'}
        return schemes.get(self._config.authentication, "")

    def believes(self, client: str) -> bool:
        """Whether an address is that of a proxy whose header is believed."""
        if not self._proxy_header:
            return False
        address = parsed_address(client)
        return any(address in network for network in self._believed)

    def at_once(self, headers: Mapping[str, str], by_proxy: bool, come_in: str | None) -> Visitor | Refused | None:
        """Who it is if that needs no arithmetic, else None: then ask `looked_at`, on a thread.

        `come_in` is the user of a certificate, None if nobody was asked for one.
        """
        actor = headers.get(ACTOR, "")
        if by_proxy and (user := headers.get(self._proxy_header)):
            if not is_name(user):
                return Refused(f"the proxy's {self._proxy_header} names no user")
            return Visitor(user, user) if actor in ("", user) else None
        if come_in is not None:
            return Visitor(come_in, come_in) if actor in ("", come_in) else None
        if not self.challenge:
            return Visitor(actor if is_name(actor) else None)
        if AUTHORIZATION not in headers:
            return Refused(f"it shows nothing, and this port asks for {self.challenge.partition(' ')[0]}", None, False)
        return None

    def looked_at(
        self, headers: Mapping[str, str], by_proxy: bool, come_in: str | None, client: str
    ) -> Visitor | Refused:
        """Who it is, from this address. Raises ValueError if that cannot be said now."""
        if by_proxy and (user := headers.get(self._proxy_header)):
            found: Visitor | Refused = Visitor(user, user)
        elif come_in is not None:
            found = Visitor(come_in, come_in)
        else:
            found = self._by_authorization(headers[AUTHORIZATION])
        actor = headers.get(ACTOR, "")
        if isinstance(found, Refused) or actor in ("", found.user):
            return found
        assert found.user is not None
        if not is_name(actor):
            return Refused(f"{ACTOR} names no user", found.user)
        refusal = self._proxies.refusal(found.user, actor, client)
        return found._replace(user=actor) if refusal is None else Refused(refusal, found.user)

    def shown(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        """What decides who it is: with the same it is the same again."""
        return tuple(headers.get(name, "") for name in (self._proxy_header, AUTHORIZATION, ACTOR))

    def _by_authorization(self, authorization: str) -> Visitor | Refused:
        scheme, _, shown = authorization.partition(" ")
        wanted = self.challenge.partition(" ")[0]
        if scheme.lower() != wanted.lower():
            return Refused(f"it shows {scheme[:20]!r}, and this port asks for {wanted}")
        if self._tokens is not None:
            try:
                bearer = self._tokens.bearer(shown.strip())
            except TokenError as error:
                return Refused(str(error))
            return Visitor(bearer.user, bearer.user, None, min(bearer.until_s, time.time() + MOST_BELIEVED_S))
        return self._by_password(shown.strip())

    def _by_password(self, shown: str) -> Visitor | Refused:
        try:
            user, colon, password = base64.b64decode(shown, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            user = colon = password = ""
        if not (colon and is_name(user)):
            return Refused("what it shows is not the user and the password of Basic")
        assert self.guests is not None
        line = self.guests.passwords.admits(user, password.encode())
        if line is None:
            return Refused(f"no user {user!r} with this password", user)
        return Visitor(user, user, line, time.time() + MOST_BELIEVED_S if isinstance(line, Bound) else float("inf"))


def address_of(text: str) -> str | None:
    """An address as `X-Forwarded-For` has it; None if it is none."""
    try:
        return str(ipaddress.ip_address(text.strip().strip("[]")))
    except ValueError:
        return None
