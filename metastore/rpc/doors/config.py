"""Settings of who may come in."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, choice, text

LOCAL, NONE, NOSASL, PASSWORD = "local", "none", "nosasl", "password"


@dataclass(frozen=True)
class DoorsConfig:
    """What a client has to show."""

    authentication: str = choice(
        "metastore.authentication",
        LOCAL,
        "Who may call: local is everybody on this machine, and the server listens on loopback addresses only, unless "
        "metastore.tls.client.ca asks for certificates; none (or Hive's NOSASL) is everybody who reaches the port; "
        "password is whoever has one in metastore.authentication.password.file, by SASL PLAIN.",
        (LOCAL, NONE, NOSASL, PASSWORD),
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
        "Passwords may come from other machines without TLS, for everybody on the way to read.",
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

    def danger(self) -> str:
        """What is wrong if other machines reach the port, and what to do; empty if nothing is."""
        if self.authentication == PASSWORD:
            if self.use_tls or self.password_in_clear:
                return ""
            return (
                "passwords would come from there for everybody on the way to read: speak TLS (metastore.use.SSL), or "
                "say metastore.authentication.password.in.clear=true"
            )
        if self.authentication in (NONE, NOSASL) or (self.use_tls and self.client_ca):
            return ""
        return (
            "everybody there could do everything: listen on 127.0.0.1, ask for passwords "
            "(metastore.authentication=password) or certificates (metastore.tls.client.ca), or say "
            "metastore.authentication=NONE if that is what you want"
        )
