"""Settings of who may come in."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, choice, text

LOCAL, NONE, NOSASL = "local", "none", "nosasl"


@dataclass(frozen=True)
class DoorsConfig:
    """What a client has to show."""

    authentication: str = choice(
        "metastore.authentication",
        LOCAL,
        "Who may call: local is everybody on this machine, and the server listens on loopback addresses only, unless "
        "metastore.tls.client.ca asks for certificates; none (or Hive's NOSASL) is everybody who reaches the port.",
        (LOCAL, NONE, NOSASL),
        hive="NOSASL",
        why="A port that asks nobody is opened to others on purpose only.",
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

    @property
    def is_open_on_purpose(self) -> bool:
        """Whether other machines may reach the port."""
        return self.authentication in (NONE, NOSASL) or (self.use_tls and bool(self.client_ca))
