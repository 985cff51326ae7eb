"""The server's certificate: read at the start, and again when its files change, without a restart.

A file that cannot be used then, such as a new certificate whose key has not come yet, changes nothing: clients get the
one before, and the log says so once.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from pathlib import Path

from metastore.observe.log import event
from metastore.rpc.doors.config import DoorsConfig
from metastore.rpc.doors.stamps import Stamp, stamp_of
from metastore.settings import SettingError

LOG = logging.getLogger("metastore.rpc")
LOOK_AGAIN_S = 1.0
"""So seldom the files are looked at, however many clients come."""
_JAVA, _PKCS12 = b"\xfe\xed\xfe\xed", b"\x30\x82"


class Certificates:
    """What a handshake is done with. Threads may share it."""

    def __init__(self, config: DoorsConfig) -> None:
        """Raises SettingError if the files cannot be used."""
        self._config = config
        self._files = [
            file for file in (config.certificate, config.key, config.key_password_file, config.client_ca) if file
        ]
        self._guard = threading.Lock()
        self._stamp = self._stamped()
        self._context = self._loaded()
        self._looked_at_s = time.monotonic()

    def context(self) -> ssl.SSLContext:
        """The one of the files as they are now, or as they were when they last could be used."""
        with self._guard:
            if time.monotonic() - self._looked_at_s >= LOOK_AGAIN_S:
                self._looked_at_s = time.monotonic()
                self._look()
            return self._context

    def _look(self) -> None:
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._context = self._loaded()
        except SettingError as error:
            event(LOG, logging.WARNING, "certificate not read again", reason=error)
        else:
            event(LOG, logging.INFO, "certificate read again", file=self._config.certificate)

    def _stamped(self) -> list[Stamp]:
        """What changes with the files."""
        return [stamp_of(file) for file in self._files]

    def _loaded(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            _check_form(config.certificate)
            password = Path(config.key_password_file).read_text().strip() if config.key_password_file else ""
            context.load_cert_chain(config.certificate, config.key or None, lambda: password)
        except (OSError, ValueError) as error:
            raise SettingError(
                f"the certificate in {config.certificate} cannot be used: {_words(error)}; metastore.keystore.path is "
                "a file in PEM with certificate and key, or the key is in metastore.tls.key"
            ) from None
        if config.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(config.client_ca)
            except OSError as error:
                raise SettingError(
                    f"the CAs in {config.client_ca} (metastore.tls.client.ca) cannot be used: {_words(error)}"
                ) from None
        return context


def _check_form(file: str) -> None:
    with open(file, "rb") as stream:
        beginning = stream.read(4)
    if beginning.startswith((_JAVA, _PKCS12)):
        raise ValueError(
            "it is a key store of Java's: make PEM of it (keytool -importkeystore -srckeystore FILE -destkeystore p12 "
            "-deststoretype PKCS12, then openssl pkcs12 -in p12 -nodes -out pem)"
        )


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).replace("_", " ").lower() if reason else getattr(error, "strerror", None) or str(error)
