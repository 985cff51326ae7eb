"""The doors of a server, by its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hive_acid.sasl.gss import GSSAPI
from metastore.rpc.audit.audit import Audit
from metastore.rpc.doors.certificates import Certificates
from metastore.rpc.doors.config import CERTIFICATE, HTTP, KERBEROS, LDAP, PASSWORD, DoorsConfig
from metastore.rpc.doors.door import House
from metastore.rpc.doors.mechanisms.mechanism import Mechanism
from metastore.rpc.doors.mechanisms.plain import PLAIN, PlainMechanism
from metastore.rpc.doors.sasl import SaslDoor
from metastore.rpc.doors.tls import TlsDoor
from metastore.rpc.doors.users.guests import Guests
from metastore.rpc.doors.users.passwords import Passwords
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.limits.crowd import Crowd
from metastore.rpc.limits.debts import Debts
from metastore.rpc.limits.workers import Workers

if TYPE_CHECKING:
    from metastore.rpc.doors.users.directory import Directory

THREADS = 2
"""For handshakes and passwords."""
ASKING_THREADS = 8
"""For a directory, which may take its time and is to hold up nobody else."""


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
        self._askers = self._workers if directory is None else Workers(ASKING_THREADS)
        known = passwords or directory
        self._guests = None if known is None else Guests(known, self._workers)
        self._mechanisms: dict[str, Callable[[str], Mechanism]] = {}
        if known is not None:
            self._mechanisms[PLAIN] = partial(PlainMechanism, known, self.proxies)
        if asks_for == KERBEROS:
            self._mechanisms[GSSAPI] = _kerberos(config, self.proxies)
        self._over_http = _over_http(config, self._guests, self.proxies) if config.transport == HTTP else None

    def close(self) -> None:
        """End the threads; the server has stopped."""
        self._workers.shutdown(wait=True)
        if self._askers is not self._workers:
            self._askers.shutdown(wait=True)

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


def _kerberos(config: DoorsConfig, proxies: Proxies) -> Callable[[str], Mechanism]:
    from metastore.rpc.doors.mechanisms.kerberos import Kerberos

    return Kerberos(config, proxies).met_by


def _over_http(
    config: DoorsConfig, guests: Guests | None, proxies: Proxies
) -> Callable[[asyncio.Protocol, House], asyncio.Protocol]:
    """What puts a door before a connection."""
    from metastore.rpc.doors.http import HttpDoor
    from metastore.rpc.doors.reception import Reception

    return partial(HttpDoor, reception=Reception(config, guests, proxies))
