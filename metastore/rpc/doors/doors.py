"""The doors of a server, by its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hive_acid.sasl.digest import DIGEST, QOPS
from hive_acid.sasl.gss import GSSAPI
from hive_acid.sasl.seals import LAYERS
from metastore.catalog.registry.issued_tokens import IssuedTokens
from metastore.rpc.audit.audit import Audit
from metastore.rpc.doors.certificates import Certificates
from metastore.rpc.doors.config import CERTIFICATE, HTTP, KERBEROS, LDAP, PASSWORD, DoorsConfig
from metastore.rpc.doors.door import House
from metastore.rpc.doors.mechanisms.digest import DigestMechanism
from metastore.rpc.doors.mechanisms.mechanism import Mechanism
from metastore.rpc.doors.mechanisms.plain import PLAIN, PlainMechanism
from metastore.rpc.doors.sasl import SaslDoor
from metastore.rpc.doors.tls import TlsDoor
from metastore.rpc.doors.users.delegation import Delegation
from metastore.rpc.doors.users.guests import Guests
from metastore.rpc.doors.users.passwords import Passwords
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.limits.crowd import Crowd
from metastore.rpc.limits.debts import Debts
from metastore.rpc.limits.workers import Workers

if TYPE_CHECKING:
    from metastore.rpc.doors.mechanisms.kerberos import Kerberos
    from metastore.rpc.doors.users.directory import Directory

THREADS = 2
"""For handshakes and passwords."""
ASKING_THREADS = 8
"""For a directory and the database of tokens, which may take their time and are to hold up nobody else."""


class Doors:
    """Puts what is asked for before each connection; nothing if nothing is."""

    def __init__(self, config: DoorsConfig, audit: Audit | None = None) -> None:
        """`audit` is told who comes in and who does not.

        Raises SettingError for settings that do not go together, and for files that cannot be used.
        """
        config.check()
        self._audit = audit
        self._certificates = Certificates(config) if config.use_tls else None
        asks_for = config.asks_for
        self._names_user = asks_for == CERTIFICATE
        passwords = Passwords(config.password_file) if asks_for == PASSWORD else None
        directory = _directory(config) if asks_for == LDAP else None
        self.proxies = Proxies(config)
        self._workers = Workers(THREADS)
        is_to_ask = directory is not None or asks_for == KERBEROS
        self._askers = Workers(ASKING_THREADS) if is_to_ask else self._workers
        known = passwords or directory
        self._guests = None if known is None else Guests(known, self._workers)
        self._mechanisms: dict[str, Callable[[str], Mechanism]] = {}
        if known is not None:
            self._mechanisms[PLAIN] = partial(PlainMechanism, known, self.proxies)
        self._kerberos = _kerberos(config, self.proxies) if asks_for == KERBEROS else None
        if self._kerberos is not None:
            self._mechanisms[GSSAPI] = self._kerberos.met_by
        self._qops = _qops(config)
        self._over_http = _over_http(config, self._guests, self.proxies) if config.transport == HTTP else None

    def close(self) -> None:
        """End the threads; the server has stopped."""
        self._workers.shutdown(wait=True)
        if self._askers is not self._workers:
            self._askers.shutdown(wait=True)

    def take_tokens(self, store: IssuedTokens) -> Delegation | None:
        """Let those in from now on who have a delegation token of this store; None where none are issued."""
        if self._kerberos is None or not self._qops:
            return None
        delegation = Delegation(store, self.proxies, self._kerberos.principals.user_of)
        self._mechanisms[DIGEST] = partial(DigestMechanism, delegation.owner_of, self._qops)
        return delegation

    @property
    def scheme(self) -> str:
        """What the server's address begins with."""
        if self._over_http is not None:
            return "http" if self._certificates is None else "https"
        return "thrift" if self._certificates is None else "thrift+tls"

    def before(
        self, connection: asyncio.Protocol, crowd: Crowd, debts: Debts, most_message_bytes: int
    ) -> asyncio.Protocol:
        """The outermost door of a new connection, or the connection itself."""
        house = House(crowd, debts, self._askers, self._audit, most_message_bytes)
        if self._over_http is not None:
            connection = self._over_http(connection, house)
        elif self._mechanisms:
            connection = SaslDoor(connection, house, self._mechanisms, self._guests)
        if self._certificates is not None:
            connection = TlsDoor(
                connection, house._replace(workers=self._workers), self._certificates, names_user=self._names_user
            )
        return connection


# Libraries for HTTP, tokens, LDAP and Kerberos take 15 MB: they are loaded where they are used.


def _directory(config: DoorsConfig) -> Directory:
    from metastore.rpc.doors.users.directory import Directory

    return Directory(config)


def _kerberos(config: DoorsConfig, proxies: Proxies) -> Kerberos:
    from metastore.rpc.doors.mechanisms.kerberos import Kerberos

    return Kerberos(config, proxies)


def _over_http(
    config: DoorsConfig, guests: Guests | None, proxies: Proxies
) -> Callable[[asyncio.Protocol, House], asyncio.Protocol]:
    """What puts a door before a connection."""
    from metastore.rpc.doors.http import HttpDoor
    from metastore.rpc.doors.reception import Reception

    return partial(HttpDoor, reception=Reception(config, guests, proxies))


def _qops(config: DoorsConfig) -> list[str]:
    """What is offered to those with a token, who have no encryption of their own: with TLS it is there."""
    allowed = {LAYERS[word] for word in config.protection}
    return [name for name, layer in QOPS.items() if layer in allowed or (config.use_tls and name == "auth")]
