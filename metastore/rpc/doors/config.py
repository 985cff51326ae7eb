"""Settings of who may come in."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.sasl.seals import LAYERS, layers
from metastore.settings import SettingError, boolean, choice, duration, names, text, texts

LOCAL, NONE, NOSASL, PASSWORD, LDAP = "local", "none", "nosasl", "password", "ldap"
JWT, CERTIFICATE, KERBEROS = "jwt", "certificate", "kerberos"
BINARY, HTTP = "binary", "http"
ANY_AUDIENCE = "*"


def _networks(said: str) -> tuple[str, ...]:
    """Addresses and networks with commas between. Raises ValueError for what is none."""
    return tuple(str(ipaddress.ip_network(one.strip())) for one in said.split(",") if one.strip())


def _protections(said: str) -> tuple[str, ...]:
    """Hadoop's words with commas between. Raises ValueError for another."""
    numbers = layers(said)
    return tuple(word for word, number in LAYERS.items() if number in numbers)


@dataclass(frozen=True)
class DoorsConfig:
    """What a client has to show."""

    authentication: str = choice(
        "metastore.authentication",
        LOCAL,
        "Who may call: local is everybody on this machine, and the server listens on loopback addresses only, unless "
        "metastore.tls.client.ca asks for certificates; none (or Hive's NOSASL) is everybody who reaches the port; "
        "password is whoever has one in metastore.authentication.password.file, by SASL PLAIN, or by HTTP's Basic; "
        "ldap is whoever has one in a directory, in the same way; jwt "
        "is whoever has a token, over HTTP; certificate is whoever has one of metastore.tls.client.ca, whose common "
        "name is the user; kerberos is whoever has a ticket, by SASL GSSAPI.",
        (LOCAL, NONE, NOSASL, PASSWORD, LDAP, JWT, CERTIFICATE, KERBEROS),
        hive="NOSASL",
        why="A port that asks nobody is opened to others on purpose only.",
    )
    password_file: str = text(
        "metastore.authentication.password.file",
        "",
        "File with users and hashes of their passwords, as `metastore passwd` writes it. It is read again when it "
        "changes.",
    )
    password_in_clear: bool = boolean(
        "metastore.authentication.password.in.clear",
        "false",
        "Passwords and tokens may come from other machines without TLS, for everybody on the way to read.",
    )
    use_tls: bool = boolean(
        "metastore.use.SSL",
        "false",
        "The Thrift port speaks TLS (1.2 or newer), and nothing else; false: it is plain.",
        hive="false",
    )
    certificate: str = text(
        "metastore.keystore.path",
        "",
        "File in PEM with the server's certificate, those between it and its CA, and the key if that is not in "
        "metastore.tls.key. It is read again when it changes.",
        hive="",
    )
    key: str = text("metastore.tls.key", "", "File in PEM with the private key of the certificate.")
    key_password_file: str = text(
        "metastore.tls.key.password.file", "", "File with the password of an encrypted private key."
    )
    client_ca: str = text(
        "metastore.tls.client.ca",
        "",
        "File in PEM with the CAs of clients: one without a certificate of theirs is refused; empty for none.",
    )

    transport: str = choice(
        "metastore.server.thrift.transport.mode",
        BINARY,
        "binary: messages follow one another on the socket; http: each is the body of a POST.",
        (BINARY, HTTP),
        hive="binary",
    )
    http_path: str = text(
        "metastore.server.thrift.http.path", "metastore", "The path of these requests.", hive="metastore"
    )
    ldap_url: str = text(
        "metastore.authentication.ldap.url",
        "",
        "The directory, such as ldaps://ldap.example.com; others behind a blank are asked if it does not answer.",
        hive="",
    )
    ldap_base_dn: str = text(
        "metastore.authentication.ldap.baseDN", "", "Below which name users are: uid=ann,<this>.", hive=""
    )
    ldap_guid_key: str = text(
        "metastore.authentication.ldap.guidKey", "uid", "What stands before the user in that name.", hive="uid"
    )
    ldap_patterns: str = text(
        "metastore.authentication.ldap.userDNPattern",
        "",
        "Names of users, with %s for the user and colons between: cn=%s,ou=people,dc=example,dc=com.",
        hive="",
    )
    ldap_domain: str = text(
        "metastore.authentication.ldap.Domain", "", "Users are known as ann@<this>, as in Active Directory.", hive=""
    )
    ldap_users: str = text(
        "metastore.authentication.ldap.userFilter",
        "",
        "The users that may come in; empty: all of the directory.",
        hive="",
    )
    ldap_groups: str = text(
        "metastore.authentication.ldap.groupFilter", "", "Refused: groups of the directory are not read.", hive=""
    )
    ldap_query: str = text(
        "metastore.authentication.ldap.customLDAPQuery", "", "Refused: the directory is not searched.", hive=""
    )
    ldap_ca: str = text(
        "metastore.authentication.ldap.ca", "", "File in PEM with the CAs of the directory; empty: those of the system."
    )
    jwks_url: str = text(
        "metastore.authentication.jwt.jwks.url",
        "",
        "Where the public keys of the issuer of tokens are (JWKS): a file, or an address that begins with https://. It "
        "is read again when it changes, an address every five minutes.",
        hive="",
    )
    jwt_audience: str = text(
        "metastore.authentication.jwt.audience",
        "",
        f"For whom a token must be (aud); {ANY_AUDIENCE} if it may be for anybody.",
    )
    jwt_issuer: str = text(
        "metastore.authentication.jwt.issuer", "", "By whom a token must be (iss); empty for anybody with these keys."
    )
    jwt_user_claim: str = text("metastore.authentication.jwt.user.claim", "sub", "The claim that names the user.")
    jwt_clock_skew_ms: int = duration(
        "metastore.authentication.jwt.clock.skew", "30s", "So far the issuer's clock may be from ours."
    )
    proxy_header: str = text(
        "metastore.authentication.proxy.header",
        "",
        "The header in which a proxy before an HTTP port names the user who has come in there, such as "
        "X-Forwarded-User; empty: none is believed.",
    )
    proxy_addresses: tuple[str, ...] = names(
        "metastore.authentication.proxy.addresses",
        "",
        "Addresses and networks (10.0.0.0/24) of proxies whose header is believed.",
        _networks,
    )

    use_sasl: bool = boolean(
        "metastore.sasl.enabled",
        "false",
        "true is metastore.authentication=kerberos, as Hive says it.",
        hive="false",
    )
    kerberos_keytab: str = text(
        "metastore.kerberos.keytab.file",
        "",
        "File with the keys of metastore.kerberos.principal. It is read for each client.",
        hive="",
    )
    kerberos_principal: str = text(
        "metastore.kerberos.principal",
        "hive/_HOST",
        "For whom clients have tickets, such as hive/_HOST@EXAMPLE.COM; _HOST is the full name of this machine.",
        hive="hive-metastore/_HOST@EXAMPLE.COM",
        why="The realm is that of the machine, unless it is said.",
    )
    auth_to_local: str = text(
        "hadoop.security.auth_to_local",
        "DEFAULT",
        "By which rules principals become users, with blanks between: RULE:[n:text](pattern)s/pattern/text/ or "
        "DEFAULT, which takes the first part of those of the metastore's own realm.",
        hive="DEFAULT",
    )
    protection: tuple[str, ...] = names(
        "hadoop.rpc.protection",
        ",".join(LAYERS),
        "What clients of Kerberos may ask for behind their login: authentication leaves bytes as they are, integrity "
        "shows who changes them, privacy hides them.",
        _protections,
    )

    token_life_ms: int = duration(
        "metastore.cluster.delegation.token.max-lifetime",
        "7d",
        "A delegation token is good for so long at most, however often it is renewed.",
        least_ms=1000,
        hive="7d",
    )
    token_renew_ms: int = duration(
        "metastore.cluster.delegation.token.renew-interval",
        "1d",
        "It is good for so long from its issue, and from each renewal.",
        least_ms=1000,
        hive="1d",
    )
    token_key_ms: int = duration(
        "metastore.cluster.delegation.key.update-interval",
        "1d",
        "After that the passwords of new tokens are made by a new key.",
        least_ms=1000,
        hive="1d",
    )

    proxy_hosts: Mapping[str, str] = texts(
        "hadoop.proxyuser.*.hosts",
        "From where a user may act for others: addresses, networks and names with commas between, or * for everywhere.",
        hive="",
    )
    proxy_users: Mapping[str, str] = texts(
        "hadoop.proxyuser.*.users", "For whom it may act: users with commas between, or * for all.", hive=""
    )
    proxy_groups: Mapping[str, str] = texts(
        "hadoop.proxyuser.*.groups",
        "For whose members it may act: groups of this machine with commas between, or * for all.",
        hive="",
    )

    def check(self) -> None:
        """Raises SettingError for settings that do not go together."""
        for is_wrong, words in (
            (
                self.authentication == JWT and self.transport != HTTP,
                "metastore.authentication=jwt needs metastore.server.thrift.transport.mode=http: a token is a header",
            ),
            (
                self.authentication == JWT and not self.jwks_url,
                "metastore.authentication=jwt needs metastore.authentication.jwt.jwks.url: where are its keys?",
            ),
            (
                self.authentication == JWT and not self.jwt_audience,
                "metastore.authentication=jwt needs metastore.authentication.jwt.audience: else a token for any other "
                f"service opens this one; {ANY_AUDIENCE} if that is what you want",
            ),
            (
                self.authentication == LDAP and not self.ldap_url,
                "metastore.authentication=ldap needs metastore.authentication.ldap.url: where is the directory?",
            ),
            (
                self.authentication == LDAP and not (self.ldap_base_dn or self.ldap_patterns or self.ldap_domain),
                "metastore.authentication=ldap needs metastore.authentication.ldap.baseDN, .userDNPattern or .Domain: "
                "by which names are users known there?",
            ),
            (
                bool(self.ldap_groups or self.ldap_query),
                "metastore.authentication.ldap.groupFilter and .customLDAPQuery are not served: name the users in "
                "metastore.authentication.ldap.userFilter, or grant rights to users (metastore.authorization=grants)",
            ),
            (
                self.authentication == CERTIFICATE and not (self.use_tls and self.client_ca),
                "metastore.authentication=certificate needs metastore.use.SSL=true and metastore.tls.client.ca",
            ),
            (
                self.use_sasl and self.authentication not in (LOCAL, KERBEROS),
                f"metastore.sasl.enabled=true is Kerberos, and metastore.authentication={self.authentication} is "
                "something else: say one of them",
            ),
            (
                self.asks_for == KERBEROS and self.transport == HTTP,
                "metastore.authentication=kerberos needs metastore.server.thrift.transport.mode=binary: over HTTP "
                "there are tokens (jwt)",
            ),
            (
                self.asks_for == KERBEROS and not self.kerberos_keytab,
                "metastore.authentication=kerberos needs metastore.kerberos.keytab.file: where are its keys?",
            ),
            (
                bool(self.proxy_header) and self.transport != HTTP,
                "metastore.authentication.proxy.header needs metastore.server.thrift.transport.mode=http",
            ),
            (
                bool(self.proxy_header) and not self.proxy_addresses,
                "metastore.authentication.proxy.header needs metastore.authentication.proxy.addresses: whose header is "
                "to be believed?",
            ),
        ):
            if is_wrong:
                raise SettingError(words)

    @property
    def asks_for(self) -> str:
        """What `metastore.authentication` says, or Hive's elder setting."""
        return KERBEROS if self.use_sasl and self.authentication == LOCAL else self.authentication

    @property
    def proves_users(self) -> bool:
        """Whether who comes in has shown who it is."""
        return self.asks_for in (PASSWORD, LDAP, JWT, CERTIFICATE, KERBEROS)

    def danger(self) -> str:
        """What is wrong if other machines reach the port, and what to do; empty if nothing is."""
        if self.proves_users:
            if self.use_tls or self.password_in_clear or self.asks_for == KERBEROS:
                return ""
            shown = "tokens" if self.authentication == JWT else "passwords"
            return (
                f"{shown} would come from there for everybody on the way to read: speak TLS (metastore.use.SSL), or "
                "say metastore.authentication.password.in.clear=true"
            )
        if self.authentication in (NONE, NOSASL) or (self.use_tls and self.client_ca):
            return ""
        return (
            "everybody there could do everything: listen on 127.0.0.1, ask for passwords "
            "(metastore.authentication=password) or certificates (metastore.tls.client.ca), or say "
            "metastore.authentication=NONE if that is what you want"
        )
