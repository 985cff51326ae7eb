"""DIGEST-MD5 (RFC 2831), by which delegation tokens are shown: what both sides compute, and our part."""

from __future__ import annotations

import hmac
import re
import secrets
import struct
from hashlib import md5
from typing import NamedTuple

from hive_acid.errors import LoginError
from hive_acid.sasl.hadoop_tokens import Secret
from hive_acid.sasl.seals import AUTHENTICATION, INTEGRITY, MOST_FRAME_BYTES, Seal, SealError

DIGEST = "DIGEST-MD5"
REALM = "default"
"""As Hadoop has it."""
URI = "null/default"
"""What Hadoop's clients ask for."""
QOPS = {"auth": AUTHENTICATION, "auth-int": INTEGRITY}
"""Without auth-conf, whose ciphers are broken."""
DEFAULT_FRAME_BYTES = 65_536
MOST_OPENED_BYTES = (1 << 24) - 1
_SEAL_BYTES = 16
_PART = re.compile(r'\s*([a-zA-Z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)', re.DOTALL)
_TO_SERVER = b"Digest session key to client-to-server signing key magic constant"
_TO_CLIENT = b"Digest session key to server-to-client signing key magic constant"


class Exchange(NamedTuple):
    """What a response is made of."""

    user_name: str
    nonce: str
    client_nonce: str
    qop: str
    uri: str

    def response(self, session: bytes) -> str:
        """What the client shows."""
        return self._proof(session, f"AUTHENTICATE:{self.uri}")

    def answer(self, session: bytes) -> str:
        """What the server shows."""
        return self._proof(session, f":{self.uri}")

    def session(self, password: str, authzid: str | None = None) -> bytes:
        """The hash that stands for the password here."""
        secret = _md5(f"{self.user_name}:{REALM}:{password}".encode())
        rest = f":{self.nonce}:{self.client_nonce}" + (f":{authzid}" if authzid is not None else "")
        return _md5(secret + rest.encode())

    def _proof(self, session: bytes, what: str) -> str:
        tail = "" if self.qop == "auth" else ":" + "0" * 32
        told = f"{session.hex()}:{self.nonce}:00000001:{self.client_nonce}:{self.qop}:"
        return _md5((told + _md5((what + tail).encode()).hex()).encode()).hex()


class DigestSeal:
    """Frames with a code (auth-int)."""

    def __init__(self, session: bytes, most_bytes: int, *, is_server: bool) -> None:
        """`most_bytes` is what the other side takes in a frame."""
        keys = _md5(session + _TO_CLIENT), _md5(session + _TO_SERVER)
        self._own, self._other = keys if is_server else keys[::-1]
        self._sent = self._came = 0
        self.most_bytes = min(most_bytes, MOST_FRAME_BYTES) - _SEAL_BYTES

    def sealed(self, piece: bytes) -> bytes:
        """A frame of it."""
        number = struct.pack(">I", self._sent)
        self._sent = (self._sent + 1) & 0xFFFFFFFF
        return piece + _code(self._own, number, piece) + b"\x00\x01" + number

    def opened(self, frame: bytes) -> bytes:
        """What is in a frame. Raises SealError."""
        piece, code, kind, number = frame[:-16], frame[-16:-6], frame[-6:-4], frame[-4:]
        wanted = struct.pack(">I", self._came)
        if len(frame) < _SEAL_BYTES or kind != b"\x00\x01" or number != wanted:
            raise SealError("it is not the next one")
        if not hmac.compare_digest(code, _code(self._other, number, piece)):
            raise SealError("its code is another")
        self._came = (self._came + 1) & 0xFFFFFFFF
        return piece


class TokenMechanism:
    """Our part with a token."""

    name = DIGEST

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._exchange: Exchange | None = None
        self._session = b""
        self._most_bytes = DEFAULT_FRAME_BYTES

    @property
    def is_complete(self) -> bool:
        """Nothing until the server's last word, which proves that it knows the password, too."""
        return False

    def respond(self, challenge: bytes | None) -> bytes:
        """What shows that we know the password. Raises LoginError."""
        if challenge is None:
            return b""
        if self._exchange is not None:
            raise LoginError("the metastore asks again where DIGEST-MD5 has one word")
        try:
            asked = directives(challenge)
            nonce = asked["nonce"]
            offered = [one.strip() for one in asked.get("qop", "auth").split(",")]
            self._most_bytes = int(asked.get("maxbuf", DEFAULT_FRAME_BYTES))
            if asked.get("algorithm") != "md5-sess" or not 1024 <= self._most_bytes <= MOST_OPENED_BYTES:
                raise ValueError("it is none that we know")
        except (ValueError, KeyError) as error:
            raise LoginError(f"the metastore's challenge is not one of DIGEST-MD5: {error}") from None
        qop = next((one for one in reversed(QOPS) if one in offered), None)
        if qop is None:
            raise LoginError(f"the metastore offers {', '.join(offered)}, and a token has {', '.join(QOPS)}")
        made = self._exchange = Exchange(self._secret.user_name, nonce, secrets.token_urlsafe(24), qop, URI)
        self._session = made.session(self._secret.password_text)
        return (
            f'charset=utf-8,username="{made.user_name}",realm="{REALM}",nonce="{nonce}",nc=00000001,'
            f'cnonce="{made.client_nonce}",digest-uri="{URI}",maxbuf={MOST_OPENED_BYTES},'
            f"response={made.response(self._session)},qop={qop}"
        ).encode()

    def end(self, payload: bytes) -> Seal | None:
        """The seal that was agreed upon. Raises LoginError if the metastore does not know the token."""
        try:
            shown = directives(payload).get("rspauth", "")
        except ValueError:
            shown = ""
        if self._exchange is None or not hmac.compare_digest(
            shown.encode(), self._exchange.answer(self._session).encode()
        ):
            raise LoginError("what answers has not proved that it is the metastore of this token")
        if self._exchange.qop == "auth":
            return None
        return DigestSeal(self._session, self._most_bytes, is_server=False)


def directives(data: bytes) -> dict[str, str]:
    """What a message says, each thing once. Raises ValueError."""
    text = data.decode()
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise ValueError("it is no list of name=value")
        name, quoted, plain = match.groups()
        if name.lower() in found:
            raise ValueError(f"it says {name} twice")
        found[name.lower()] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        at = match.end()
    return found


def _code(key: bytes, number: bytes, piece: bytes) -> bytes:
    return hmac.digest(key, number + piece, "md5")[:10]


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()
