"""A ticket of Kerberos (RFC 4752): the client shows it, and both agree upon what frames are sealed with."""

from __future__ import annotations

import socket
from typing import Any

from hive_acid.sasl.gss import MOST_OPENED_BYTES, GssSeal, NoLibraryError, context_of, library, words
from hive_acid.sasl.kerberos import HOST
from hive_acid.sasl.seals import AUTHENTICATION, LAYERS, LEAST_FRAME_BYTES, PRIVACY, SealError
from metastore.rpc.doors.config import DoorsConfig
from metastore.rpc.doors.door import Identity
from metastore.rpc.doors.mechanisms.mechanism import Challenge, Proved, Rejected
from metastore.rpc.doors.users.principals import Principals
from metastore.rpc.doors.users.proxies import Proxies
from metastore.settings import SettingError


class Kerberos:
    """The metastore as a service of Kerberos. Threads may share it."""

    def __init__(self, config: DoorsConfig, proxies: Proxies) -> None:
        """Raises SettingError for a keytab that has no key of the principal, and for rules that are none."""
        try:
            self.gssapi = library()
        except NoLibraryError as error:
            raise SettingError(f"metastore.authentication=kerberos: {error}") from None
        self._keytab = config.kerberos_keytab
        told = config.kerberos_principal.replace(HOST, socket.getfqdn().lower())
        try:
            name = self.gssapi.Name(told, self.gssapi.NameType.kerberos_principal)
            self._name = name.canonicalize(self.gssapi.MechType.kerberos)
            self.credentials()
        except (self.gssapi.exceptions.GSSError, ValueError) as error:
            raise SettingError(
                f"metastore.kerberos.keytab.file {self._keytab} holds no key of {told} "
                f"(metastore.kerberos.principal) that can be used: {words(error)}"
            ) from None
        self.principals = Principals(config.auth_to_local, str(self._name).rpartition("@")[2])
        self.proxies = proxies
        self.layers = sum(LAYERS[word] for word in config.protection)

    def credentials(self) -> Any:
        """The keys as the keytab has them now. Raises ValueError if it has none."""
        try:
            return self.gssapi.Credentials(
                name=self._name,
                mechs=[self.gssapi.MechType.kerberos],
                usage="accept",
                store={"keytab": self._keytab},
            )
        except self.gssapi.exceptions.GSSError as error:
            raise ValueError(f"the keytab {self._keytab} cannot be used: {words(error)}") from None

    def met_by(self, client: str) -> GssapiMechanism:
        """What a client from this address speaks to."""
        return GssapiMechanism(self, client)


class GssapiMechanism:
    """One client's part."""

    most_bytes = 64 * 1024
    """A ticket with all groups of a user of Active Directory has 48 KB."""

    def __init__(self, kerberos: Kerberos, client: str) -> None:
        self._kerberos = kerberos
        self._client = client
        self._context: Any = None
        self._offered = 0

    def step(self, response: bytes) -> Challenge | Proved | Rejected:
        """Look at the ticket, then at what the client has chosen. Raises ValueError if the keytab cannot be used."""
        gssapi = self._kerberos.gssapi
        try:
            if self._context is None:
                credentials = self._kerberos.credentials()
                self._context = context_of(gssapi, creds=credentials, usage="accept")
            if not self._context.complete:
                token = self._context.step(response)
                if token:
                    return Challenge(token)
                return self._offer() if self._context.complete else Challenge(b"")
            if not self._offered:
                return Rejected("more than a ticket came") if response else self._offer()
            return self._chosen(self._context.unwrap(response).message)
        except (gssapi.exceptions.GSSError, SealError) as error:
            return Rejected(words(error))

    def _offer(self) -> Challenge:
        flags = self._context.actual_flags
        flag = self._kerberos.gssapi.RequirementFlag
        offered = self._kerberos.layers
        if flag.integrity not in flags:
            offered &= AUTHENTICATION
        elif flag.confidentiality not in flags:
            offered &= ~PRIVACY
        most_bytes = 0 if offered == AUTHENTICATION else MOST_OPENED_BYTES
        self._offered = offered | 0x100
        message: bytes = self._context.wrap(bytes([offered]) + most_bytes.to_bytes(3), False).message
        return Challenge(message)

    def _chosen(self, answer: bytes) -> Proved | Rejected:
        principal = str(self._context.initiator_name)
        try:
            user = self._kerberos.principals.user_of(principal)
        except ValueError as error:
            return Rejected(str(error), principal)
        if len(answer) < 4 or answer[0] not in LAYERS.values() or not answer[0] & self._offered:
            return Rejected("it has chosen no layer of those that are offered (hadoop.rpc.protection)", user)
        layer, most_bytes = answer[0], int.from_bytes(answer[1:4])
        other = answer[4:].decode("utf-8", "replace")
        as_whom = user if other in ("", principal) else other
        refusal = self._kerberos.proxies.refusal(user, as_whom, self._client)
        if refusal is not None:
            return Rejected(refusal, user)
        if layer == AUTHENTICATION:
            return Proved(Identity(as_whom, user))
        if most_bytes < LEAST_FRAME_BYTES:
            return Rejected(f"it takes {most_bytes} bytes in a frame, and {LEAST_FRAME_BYTES} are the least", user)
        return Proved(Identity(as_whom, user), seal=GssSeal(self._context, layer == PRIVACY, most_bytes))
