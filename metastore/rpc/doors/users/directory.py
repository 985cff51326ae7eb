"""Users of a directory (LDAP): a password is right if one may bind with it (RFC 4513, simple)."""

from __future__ import annotations

import re
import ssl
from urllib.parse import urlsplit

import ldap3
from ldap3.core.exceptions import LDAPException
from ldap3.utils.dn import escape_rdn

from hive_acid.login import is_loopback
from metastore.rpc.doors.config import DoorsConfig
from metastore.rpc.doors.users.passwords import Bound, is_name
from metastore.settings import SettingError

CONNECT_S, ANSWER_S = 5, 5
_WRONG = frozenset({32, 34, 49})
"""Results by which a directory says that there is no such user, or that this is not its password."""
_FORM = re.compile(r"ldaps?://[^/\s]+/?", re.IGNORECASE)


class Directory:
    """Asks one directory after the other, until one answers. Threads may share it."""

    def __init__(self, config: DoorsConfig) -> None:
        """Raises SettingError for addresses and names that are none."""
        self._config = config
        addresses = config.ldap_url.replace(",", " ").split()
        tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=config.ldap_ca or None)
        self._servers = [self._server(address, tls) for address in addresses]
        self._users = frozenset(one.strip() for one in config.ldap_users.split(",") if one.strip())

    def admits(self, user: str, password: bytes) -> Bound | None:
        """The user if this is its password, else None. Raises ValueError if no directory answers."""
        if not password or not is_name(user) or user != user.strip():
            return None  # without a password a directory would let anybody in, as nobody; and it minds no blanks
        if self._users and user not in self._users:
            return None
        try:
            text = password.decode()
        except UnicodeDecodeError:
            return None
        trouble = ""
        for server in self._servers:
            try:
                if any(self._binds(server, name, text) for name in self._names(user)):
                    return Bound(user)
            except (LDAPException, OSError, ValueError) as error:
                trouble = f"{server.name}: {error}"
            else:
                return None
        raise ValueError(f"no directory answers: {trouble}")

    def _server(self, address: str, tls: ldap3.Tls) -> ldap3.Server:
        parts = urlsplit(address)
        if not _FORM.fullmatch(address) or not parts.hostname:
            raise SettingError(f"metastore.authentication.ldap.url {address} is not ldaps://host or ldaps://host:port")
        is_secret = parts.scheme.lower() == "ldaps"
        if not (is_secret or self._config.password_in_clear or _is_here(parts.hostname)):
            raise SettingError(
                f"passwords would go to {address} for everybody on the way to read: give ldaps://, or say "
                "metastore.authentication.password.in.clear=true"
            )
        port = parts.port or (636 if is_secret else 389)
        return ldap3.Server(
            parts.hostname, port, use_ssl=is_secret, tls=tls, connect_timeout=CONNECT_S, get_info=ldap3.NONE
        )

    def _names(self, user: str) -> list[str]:
        """By which names a user may be known there: the first that binds is the one."""
        config, escaped = self._config, escape_rdn(user)
        if config.ldap_patterns:
            return [pattern.strip().replace("%s", escaped) for pattern in config.ldap_patterns.split(":")]
        if config.ldap_domain:
            return [user if "@" in user else f"{user}@{config.ldap_domain}"]
        return [f"{config.ldap_guid_key}={escaped},{config.ldap_base_dn}"]

    def _binds(self, server: ldap3.Server, name: str, password: str) -> bool:
        connection = ldap3.Connection(
            server,
            user=name,
            password=password,
            authentication=ldap3.SIMPLE,
            receive_timeout=ANSWER_S,
            auto_referrals=False,
        )
        try:
            if connection.bind():
                return True
            if connection.result["result"] in _WRONG:
                return False
            raise ValueError(f"it says {connection.result['description']}")
        finally:
            connection.unbind()


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return is_loopback(host)
    except ValueError:
        return False
