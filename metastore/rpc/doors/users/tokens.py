"""Tokens that somebody else has issued (JWT): whose they are, by the issuer's public keys.

Only signatures by a private key count: one by a secret that we shared, or none, is refused. The keys are read again
when their file has changed; from an address every `REFRESH_S`, and when a token names a key that is not known, but not
more often than `REFRESH_LEAST_S`. Keys that cannot be read again stay as they were, and the log says so.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jwt

from metastore.observe.log import event
from metastore.rpc.doors.config import ANY_AUDIENCE, DoorsConfig
from metastore.rpc.doors.stamps import Stamp, stamp_of
from metastore.rpc.doors.users.passwords import is_name
from metastore.settings import SettingError

LOG = logging.getLogger("metastore.rpc")
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
REFRESH_S = 300.0
REFRESH_LEAST_S = 10.0
FETCH_S = 5.0
MOST_KEYS_BYTES = 1 << 20


class TokenError(ValueError):
    """A token that is not accepted, in a sentence."""


class Bearer(NamedTuple):
    """What a token says."""

    user: str
    until_s: float
    """When it ends, by the clock of the day."""


class Tokens:
    """Checks tokens. Threads may share it."""

    def __init__(self, config: DoorsConfig) -> None:
        """Raises SettingError if the keys are in a file that cannot be used."""
        self._config = config
        self._keys = IssuerKeys(config.jwks_url)

    def bearer(self, token: str) -> Bearer:
        """Whose token it is. Raises TokenError if it is not accepted."""
        config = self._config
        options: Any = {"require": ["exp", config.jwt_user_claim], "verify_aud": config.jwt_audience != ANY_AUDIENCE}
        try:
            key = self._keys.named(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=None if config.jwt_audience == ANY_AUDIENCE else config.jwt_audience,
                issuer=config.jwt_issuer or None,
                leeway=config.jwt_clock_skew_ms / 1000,
                options=options,
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise TokenError(f"the token is not accepted: {error}") from None
        user = claims[config.jwt_user_claim]
        if not isinstance(user, str) or not is_name(user):
            raise TokenError(f"the token is not accepted: its claim {config.jwt_user_claim} names no user")
        return Bearer(user, float(claims["exp"]) + config.jwt_clock_skew_ms / 1000)


class IssuerKeys:
    """The public keys of an issuer, by their names."""

    def __init__(self, url: str) -> None:
        """Raises SettingError for a place that is none, and for a file that cannot be used."""
        parts = urlsplit(url)
        if parts.scheme not in ("https", "file", "") and not (
            parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
        ):
            raise SettingError(
                f"metastore.authentication.jwt.jwks.url {url} is neither a file nor an address that begins with https://"
            )
        self._url = url
        self._file = None if parts.scheme in ("https", "http") else Path(parts.path)
        self._reading = threading.Lock()
        self._stamp: Stamp = None
        self._read_at_s = 0.0
        self._keys: list[jwt.PyJWK] = []
        try:
            self._read()
        except (OSError, ValueError) as error:
            if self._file is not None:
                raise SettingError(
                    f"the keys in {url} (metastore.authentication.jwt.jwks.url) cannot be used: {_words(error)}"
                ) from None
            self._complain(error)  # the issuer may come up after us

    def named(self, name: object) -> jwt.PyJWK:
        """The key of this name; the only one, if a token names none. Raises TokenError if it is not known."""
        self._look(REFRESH_S)
        found = self._found(name)
        if found is None:
            self._look(REFRESH_LEAST_S)
            found = self._found(name)
        if found is None:
            raise TokenError(f"the issuer has no key {name!r}" if name is not None else "it names no key")
        return found

    def _found(self, name: object) -> jwt.PyJWK | None:
        keys = self._keys
        if name is None:
            return keys[0] if len(keys) == 1 else None
        return next((key for key in keys if key.key_id == name), None)

    def _look(self, age_s: float) -> None:
        """Read the keys again if they are so old; one thread does, and others take what is there."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            if self._file is not None and self._stamp == stamp_of(self._file):
                return
            if self._file is None and time.monotonic() - self._read_at_s < age_s:
                return
            self._read()
        except (OSError, ValueError) as error:
            self._complain(error)
        finally:
            self._reading.release()

    def _read(self) -> None:
        if self._file is not None:
            self._stamp = stamp_of(self._file)
            text = self._file.read_bytes()
        else:
            self._read_at_s = time.monotonic()
            with urllib.request.urlopen(self._url, timeout=FETCH_S) as answer:
                text = answer.read(MOST_KEYS_BYTES + 1)
            if len(text) > MOST_KEYS_BYTES:
                raise ValueError(f"they have more than {MOST_KEYS_BYTES} bytes")
        self._keys = _parsed(text)

    def _complain(self, error: Exception) -> None:
        event(LOG, logging.WARNING, "keys of tokens not read", url=self._url, reason=_words(error))


def _parsed(text: bytes) -> list[jwt.PyJWK]:
    """The keys of a set by which tokens can be signed. Raises ValueError if there is none."""
    try:
        found = json.loads(text)["keys"]
        told = [one for one in found if one.get("use", "sig") == "sig" and one.get("kty") in ("RSA", "EC", "OKP")]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError('it is no JSON of the form {"keys": [...]}') from None
    keys = []
    for one in told:
        try:
            keys.append(jwt.PyJWK(one))
        except (jwt.PyJWTError, ValueError):
            continue  # of a kind that is newer than we are
    if not keys:
        raise ValueError("it has no public key of RSA, EC or Ed25519")
    return keys


def _words(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError):
        return str(error.reason)
    return getattr(error, "strerror", None) or str(error)
