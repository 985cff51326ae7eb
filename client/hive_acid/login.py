"""Who we are to a metastore that asks: a password, a ticket of Kerberos, or a token."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hive_acid.errors import AddressError, LoginError
from hive_acid.sasl.digest import TokenMechanism
from hive_acid.sasl.frames import Mechanism, Plain
from hive_acid.sasl.hadoop_credentials import MAGIC, metastore_token
from hive_acid.sasl.hadoop_tokens import Identifier, Secret
from hive_acid.sasl.kerberos import Ticket, name_of_ticket
from hive_acid.sasl.seals import LAYERS, layers

PASSWORD_FILE = "HIVE_ACID_PASSWORD_FILE"
"""The variable of the environment that names a file with the password."""
TOKEN_FILE = "HIVE_ACID_TOKEN_FILE"
"""The variable that names a file with a token, for an address that begins with http."""
IN_CLEAR = "HIVE_ACID_PASSWORD_IN_CLEAR"
"""``true`` there lets a password or a token go to another machine without TLS."""
DELEGATION_TOKEN_FILE = "HIVE_ACID_DELEGATION_TOKEN_FILE"
"""The variable that names a file with a delegation token: its text, or a file of Hadoop's credentials."""
HADOOP_TOKEN_FILE = "HADOOP_TOKEN_FILE_LOCATION"
"""Hadoop's variable that names a file of credentials, as programs on YARN have it."""
KERBEROS = "HIVE_ACID_KERBEROS"
"""The variable that names the metastore's principal, such as ``hive/_HOST@EXAMPLE.COM``: we come with a ticket."""
KEYTAB = "HIVE_ACID_KERBEROS_KEYTAB"
"""The variable that names a keytab of ours; without it the ticket is that of the cache."""
PRINCIPAL = "HIVE_ACID_KERBEROS_PRINCIPAL"
"""The variable that names our own principal, if the cache or the keytab has several."""


@dataclass(frozen=True)
class Login:
    """Who we are, and how we prove it."""

    user: str
    password: str = field(repr=False)
    in_clear: bool = False
    """Whether the password may go to another machine without TLS, for everybody on the way to read."""

    @classmethod
    def from_environment(cls, user: str, environ: Mapping[str, str] = os.environ) -> Login:
        """A user whose password is in the file that `PASSWORD_FILE` names. Raises AddressError if there is none."""
        file = environ.get(PASSWORD_FILE)
        if not file:
            raise AddressError(f"{user} is to log in: name a file with the password in {PASSWORD_FILE}, or give login=")
        try:
            password = Path(file).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, ValueError) as error:
            raise AddressError(
                f"cannot read the password in {file}: {getattr(error, 'strerror', None) or error}"
            ) from None
        return cls(user, password, environ.get(IN_CLEAR, "").lower() == "true")

    def mechanism(self, host: str, acts_as: str | None) -> Mechanism:
        """What proves it by SASL, to be let in as another user if one is named. Raises LoginError."""
        return Plain(self.user, self.password, acts_as if acts_as and acts_as != self.user else "")


@dataclass(frozen=True)
class Kerberos:
    """A ticket of Kerberos says who we are: that of the cache (``kinit``), or one got with a keytab.

    It needs the package gssapi: ``pip install 'hive-acid[kerberos]'``. Where Kerberos is on this machine, and where the
    cache is, its own files and variables say (``krb5.conf``, ``KRB5_CONFIG``, ``KRB5CCNAME``).
    """

    service: str = "hive/_HOST"
    """The metastore's principal; ``_HOST`` is the host of the address, as Kerberos names it."""
    principal: str | None = None
    """Ours, such as ``ann@EXAMPLE.COM``; None for that of the cache or the keytab."""
    keytab: str | None = None
    """A file with our key; None for the ticket of the cache."""
    protection: str = ",".join(reversed(LAYERS))
    """What follows: ``authentication`` leaves it as it is, ``integrity`` shows who changes it, ``privacy`` hides it.

    Of several, with commas between, the first is taken that the metastore offers.
    """

    def __post_init__(self) -> None:
        try:
            layers(self.protection)
        except ValueError as error:
            raise AddressError(f"Kerberos: protection={error}") from None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Kerberos | None:
        """The one of the variables `KERBEROS`, `PRINCIPAL` and `KEYTAB`, if the first is there."""
        service = environ.get(KERBEROS)
        if not service:
            return None
        return cls(service, environ.get(PRINCIPAL) or None, environ.get(KEYTAB) or None)

    @property
    def user(self) -> str:
        """The first part of our principal. Raises LoginError if there is no ticket, and no package for it."""
        return name_of_ticket(self.principal, self.keytab)

    def mechanism(self, host: str, acts_as: str | None) -> Mechanism:
        """What proves it by SASL, to be let in as another user if one is named. Raises LoginError."""
        return Ticket(self.service, host, self.principal, self.keytab, layers(self.protection), acts_as or "")


@dataclass(frozen=True)
class DelegationToken:
    """A delegation token, which somebody with a ticket has got for us: ``connection.call("get_delegation_token", …)``.

    It has a code of what is sent (integrity), not encryption: that has TLS.
    """

    text: str = field(repr=False)
    """As that call returns it."""

    def __post_init__(self) -> None:
        self.secret()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> DelegationToken | None:
        """The one in the file that `DELEGATION_TOKEN_FILE` names, if it names one. Raises AddressError."""
        file = environ.get(DELEGATION_TOKEN_FILE)
        if not file:
            return None
        found = cls._read(file)
        if found is None:
            raise AddressError(f"cannot read the delegation token in {file}: it has none for a metastore")
        return found

    @classmethod
    def of_hadoop(cls, environ: Mapping[str, str] = os.environ) -> DelegationToken | None:
        """The one for a metastore in Hadoop's file of credentials, if there is one. Raises AddressError."""
        file = environ.get(HADOOP_TOKEN_FILE)
        return cls._read(file) if file else None

    @classmethod
    def _read(cls, file: str) -> DelegationToken | None:
        try:
            data = Path(file).read_bytes()
            if not data.startswith(MAGIC):
                return cls(data.decode("ascii").strip())
            secret = metastore_token(data)
        except (OSError, ValueError) as error:
            raise AddressError(
                f"cannot read the delegation token in {file}: {getattr(error, 'strerror', None) or error}"
            ) from None
        return None if secret is None else cls(str(secret))

    def secret(self) -> Secret:
        """Its parts. Raises AddressError for a text that is none."""
        try:
            found = Secret.parse(self.text)
            Identifier.parse(found.identifier)
        except ValueError as error:
            raise AddressError(f"this is no delegation token: {error}") from None
        return found

    @property
    def user(self) -> str:
        """Whose it is."""
        return Identifier.parse(self.secret().identifier).owner

    def mechanism(self, host: str, acts_as: str | None) -> Mechanism:
        """What proves it by SASL. Raises LoginError if we are to act as somebody else."""
        if acts_as and acts_as != self.user:
            raise LoginError(f"a delegation token of {self.user} acts for nobody else, so not for {acts_as}")
        return TokenMechanism(self.secret())


def token_or(ticket: Kerberos | None) -> DelegationToken | Kerberos | None:
    """Where a ticket is wanted a token in Hadoop's file of credentials stands for it, as for Hive's clients."""
    return None if ticket is None else DelegationToken.of_hadoop() or ticket


@dataclass(frozen=True)
class Token:
    """A file with a token (JWT) that says who we are; it is read for each request, since tokens end."""

    file: str
    in_clear: bool = False
    """Whether the token may go to another machine without TLS, for everybody on the way to read."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Token | None:
        """The one that `TOKEN_FILE` names, if it names one."""
        file = environ.get(TOKEN_FILE)
        return cls(file, environ.get(IN_CLEAR, "").lower() == "true") if file else None

    def text(self) -> str:
        """The token as it is now. Raises AddressError if the file cannot be read or holds none."""
        try:
            found = Path(self.file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise AddressError(
                f"cannot read the token in {self.file}: {getattr(error, 'strerror', None) or error}"
            ) from None
        if not found or not found.isprintable() or " " in found:
            raise AddressError(f"{self.file} holds no token: it is one word")
        return found


def check_secrecy(sock: socket.socket, login: Login | Token, is_encrypted: bool) -> None:
    """Raises AddressError if others could read on the way what we show."""
    if not (is_encrypted or login.in_clear or is_loopback(sock.getpeername()[0])):
        raise AddressError(
            f"the {'password' if isinstance(login, Login) else 'token'} would go to another machine for everybody on "
            f"the way to read: give thrift+tls:// or https://, or in_clear=True or {IN_CLEAR}=true"
        )


def is_loopback(address: str) -> bool:
    """Whether a numeric address is reached from this machine alone."""
    return parsed_address(address).is_loopback


def parsed_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """A numeric address as a socket tells it; one of IPv4 within IPv6 is that of IPv4. Raises ValueError."""
    found = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found
