"""Our part where a ticket of Kerberos says who we are (RFC 4752)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from hive_acid.errors import LoginError
from hive_acid.sasl.gss import GSSAPI, MOST_OPENED_BYTES, GssSeal, NoLibraryError, context_of, library, words
from hive_acid.sasl.seals import AUTHENTICATION, LAYERS, LEAST_FRAME_BYTES, Seal

HOST = "_HOST"


class Ticket:
    """Asks for a ticket for the metastore, shows it, and agrees upon what frames are sealed with."""

    name = GSSAPI

    def __init__(
        self,
        service: str,
        host: str,
        principal: str | None,
        keytab: str | None,
        layers: Sequence[int],
        acts_as: str,
    ) -> None:
        """`layers` are those that we take, the dearest first. Raises LoginError without a ticket or a keytab."""
        self._gssapi = _library()
        self._layers = layers
        self._acts_as = acts_as.encode()
        self._seal: GssSeal | None = None
        self._is_complete = False
        flag = self._gssapi.RequirementFlag
        try:
            self._service = _service_name(self._gssapi, service, host)
            self._context = context_of(
                self._gssapi,
                name=self._service,
                creds=_credentials(self._gssapi, principal, keytab),
                usage="initiate",
                mech=self._gssapi.MechType.kerberos,
                flags=flag.mutual_authentication
                | flag.integrity
                | flag.confidentiality
                | flag.replay_detection
                | flag.out_of_sequence_detection,
            )
        except self._gssapi.exceptions.GSSError as error:
            raise LoginError(_no_ticket(error)) from None

    @property
    def is_complete(self) -> bool:
        """Whether all is agreed upon."""
        return self._is_complete

    def respond(self, challenge: bytes | None) -> bytes:
        """The ticket, or which layer of those that are offered. Raises LoginError."""
        try:
            if not self._context.complete:
                token: bytes = self._context.step(challenge) or b""
                return token
            if self._is_complete or challenge is None:
                raise LoginError("the metastore asks for more than Kerberos has to say")
            return self._chosen(self._context.unwrap(challenge).message)
        except self._gssapi.exceptions.GSSError as error:
            raise LoginError(f"Kerberos gives no ticket for {self._service}: {words(error)}") from None

    def end(self, payload: bytes) -> Seal | None:
        """The seal that was agreed upon. Raises LoginError if the metastore has not proved who it is."""
        if not self._is_complete:
            raise LoginError(f"what answers has not proved that it is {self._service}")
        return self._seal

    def _chosen(self, offer: bytes) -> bytes:
        if len(offer) != 4:
            raise LoginError(f"the metastore offers layers in {len(offer)} bytes where 4 are due")
        offered, most_bytes = offer[0], int.from_bytes(offer[1:])
        layer = next((one for one in self._layers if one & offered), None)
        if layer is None:
            told = [word for word, number in LAYERS.items() if number & offered]
            raise LoginError(
                f"the metastore offers {', '.join(told) or 'nothing'} (hadoop.rpc.protection), and we ask for "
                f"{', '.join(word for word, number in LAYERS.items() if number in self._layers)} (protection)"
            )
        if layer != AUTHENTICATION:
            if most_bytes < LEAST_FRAME_BYTES:
                raise LoginError(f"the metastore takes {most_bytes} bytes in a frame")
            self._seal = GssSeal(self._context, layer == LAYERS["privacy"], most_bytes)
        self._is_complete = True
        most = MOST_OPENED_BYTES if self._seal is not None else 0
        answer: bytes = self._context.wrap(bytes([layer]) + most.to_bytes(3) + self._acts_as, False).message
        return answer


def name_of_ticket(principal: str | None, keytab: str | None) -> str:
    """The first part of a principal, of that which the cache or the keytab has if None. Raises LoginError."""
    if principal is None:
        gssapi = _library()
        try:
            principal = str(_credentials(gssapi, None, keytab).name)
        except gssapi.exceptions.GSSError as error:
            raise LoginError(_no_ticket(error)) from None
    return principal.partition("@")[0].partition("/")[0]


def _library() -> Any:
    try:
        return library()
    except NoLibraryError as error:
        raise LoginError(str(error)) from None


def _credentials(gssapi: Any, principal: str | None, keytab: str | None) -> Any:
    name = None if principal is None else gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    # A cache of its own, which goes with this process: that of the user stays as it is.
    cache = hashlib.sha256(f"{principal}\0{keytab}".encode()).hexdigest()
    store = None if keytab is None else {"client_keytab": keytab, "ccache": f"MEMORY:{cache}"}
    return gssapi.Credentials(name=name, mechs=[gssapi.MechType.kerberos], usage="initiate", store=store)


def _service_name(gssapi: Any, service: str, host: str) -> Any:
    """The principal with the host in place of `HOST`, by the name that Kerberos has for it (krb5.conf)."""
    kind, _, rest = service.partition("/")
    place, at, realm = rest.partition("@")
    if place != HOST:
        return gssapi.Name(service, gssapi.NameType.kerberos_principal)
    name = gssapi.Name(f"{kind}@{host}", gssapi.NameType.hostbased_service)
    if not at:
        return name
    told = str(name.canonicalize(gssapi.MechType.kerberos)).partition("@")[0]
    return gssapi.Name(f"{told}@{realm}", gssapi.NameType.kerberos_principal)


def _no_ticket(error: BaseException) -> str:
    told = words(error)
    return f"there is no ticket of Kerberos: {told}. Run kinit, or name a keytab (keytab, HIVE_ACID_KERBEROS_KEYTAB)"
