"""A delegation token (DIGEST-MD5, RFC 2831): the client shows that it knows the password, and so do we."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Collection

from hive_acid.sasl.digest import DEFAULT_FRAME_BYTES, MOST_OPENED_BYTES, QOPS, REALM, DigestSeal, Exchange, directives
from hive_acid.sasl.hadoop_tokens import Secret
from hive_acid.sasl.seals import LEAST_FRAME_BYTES
from metastore.rpc.doors.door import Identity
from metastore.rpc.doors.mechanisms.mechanism import Challenge, Proved, Rejected

UNKNOWN = "no token that is good here, or another password"

Owner = Callable[[bytes], tuple[str, Secret] | None]
"""Of an identifier, if it is one of ours: whose it is, and with its password. Raises ValueError if nobody can say."""


class DigestMechanism:
    """One client's part."""

    most_bytes = 4096

    def __init__(self, owner_of: Owner, qops: Collection[str], client: str) -> None:
        """`qops` are those of `QOPS` that are offered."""
        self._owner_of = owner_of
        self._qops = qops
        self._nonce = ""

    def step(self, response: bytes) -> Challenge | Proved | Rejected:
        """Ask, then look at the answer. Raises ValueError if that cannot be said now."""
        if self._nonce:
            return self._answered(response)
        if response:
            return Rejected("more than the start of DIGEST-MD5 came")
        self._nonce = secrets.token_urlsafe(24)
        return Challenge(
            f'realm="{REALM}",nonce="{self._nonce}",qop="{",".join(self._qops)}",charset=utf-8,algorithm=md5-sess,'
            f"maxbuf={MOST_OPENED_BYTES}".encode()
        )

    def _answered(self, response: bytes) -> Proved | Rejected:
        try:
            said = directives(response)
            most_bytes = int(said.get("maxbuf", DEFAULT_FRAME_BYTES))
            identifier = base64.b64decode(said.setdefault("username", ""), validate=True)
        except ValueError:
            return Rejected("the response is not one of DIGEST-MD5")
        qop = said.get("qop", "auth")
        if said.get("nonce") != self._nonce or said.get("nc") != "00000001" or said.get("realm", "") != REALM:
            return Rejected("the response is to another challenge")
        if qop not in self._qops:
            return Rejected(f"it has chosen {qop!r}, and {', '.join(self._qops)} is offered (hadoop.rpc.protection)")
        if said.get("authzid", said["username"]) != said["username"]:
            return Rejected("a token acts for nobody else")
        found = self._owner_of(identifier)
        if found is None:
            return Rejected(UNKNOWN)
        owner, secret = found
        exchange = Exchange(said["username"], self._nonce, said.get("cnonce", ""), qop, said.get("digest-uri", ""))
        session = exchange.session(secret.password_text, said.get("authzid"))
        if not hmac.compare_digest(exchange.response(session).encode(), said.get("response", "").encode()):
            return Rejected(UNKNOWN, owner)
        identity = Identity(owner, owner, is_by_token=True)
        payload = f"rspauth={exchange.answer(session)}".encode()
        if QOPS[qop] == QOPS["auth"]:
            return Proved(identity, payload)
        if not LEAST_FRAME_BYTES <= most_bytes <= MOST_OPENED_BYTES:
            return Rejected(f"it takes {most_bytes} bytes in a frame, and {LEAST_FRAME_BYTES} are the least", owner)
        return Proved(identity, payload, DigestSeal(session, most_bytes, is_server=True))
