"""TLS to the metastore: by whose word we know it, and what we show it."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hive_acid.errors import AddressError

VARIABLES = {
    "ca": "HIVE_ACID_TLS_CA",
    "certificate": "HIVE_ACID_TLS_CERTIFICATE",
    "key": "HIVE_ACID_TLS_KEY",
    "name": "HIVE_ACID_TLS_NAME",
}
"""Variables of the environment that stand for what is not said."""


@dataclass(frozen=True)
class Tls:
    """Files in PEM, which are read again when they change."""

    ca: str | None = None
    """Whose certificates are believed: a file of CAs; None for those of the system."""
    certificate: str | None = None
    """What we show a metastore that asks for a certificate, with those between it and its CA."""
    key: str | None = None
    """The private key of that; None if it is in the same file."""
    name: str | None = None
    """Whose certificate it has to be; None for the host of the address."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Tls:
        """What the variables `VARIABLES` say."""
        return cls(**{field: environ.get(variable) or None for field, variable in VARIABLES.items()})

    def encrypted(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """The socket behind a handshake. Raises OSError if that fails, AddressError if a file cannot be used."""
        context = _context(self, tuple(_stamp(file) for file in (self.ca, self.certificate, self.key)))
        try:
            return context.wrap_socket(sock, server_hostname=self.name or host)
        except ssl.SSLCertVerificationError as error:
            raise OSError(
                f"its certificate is not believed: {error.verify_message}. Name the file of its CA in "
                f"{VARIABLES['ca']}, and the name that it has, if that is not {self.name or host}, in "
                f"{VARIABLES['name']}"
            ) from error


def _stamp(file: str | None) -> tuple[int, int] | None:
    if file is None:
        return None
    try:
        status = os.stat(file)
    except OSError as error:
        raise AddressError(f"cannot read {file}, which is to be used for TLS: {error.strerror}") from None
    return status.st_mtime_ns, status.st_ino


@lru_cache(maxsize=16)
def _context(tls: Tls, stamps: tuple[object, ...]) -> ssl.SSLContext:
    """What is made of the files as they are now, which the stamps tell."""
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key, lambda: "")  # else OpenSSL would ask on the terminal
    except OSError as error:
        files = " or ".join(file for file in (tls.ca, tls.certificate, tls.key) if file)
        raise AddressError(f"{files} cannot be used for TLS: {getattr(error, 'reason', None) or error}") from None
    return context
