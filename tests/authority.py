"""A CA of the tests' own, by the openssl command: certificates for servers and clients, in PEM."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, each in a file."""

    certificate: Path
    key: Path

    @property
    def shown_by_a_server(self) -> dict[str, str]:
        """The settings of a server with TLS that shows this certificate."""
        return {
            "metastore.use.SSL": "true",
            "metastore.keystore.path": str(self.certificate),
            "metastore.tls.key": str(self.key),
        }


class Authority:
    """Makes files in `directory`."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._made = 0
        self._own = Pair(directory / f"{name}.pem", directory / f"{name}.key")
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", self._own.key, "-out", self._own.certificate),
        )

    @property
    def ca(self) -> Path:
        """The file of the CA itself."""
        return self._own.certificate

    def issue(self, subject: str, *names: str) -> Pair:
        """A new certificate for these names, such as ``DNS:localhost`` or ``IP:127.0.0.1``."""
        self._made += 1
        stem = self._directory / f"{subject}-{self._made}"
        pair, request = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key")), stem.with_suffix(".csr")
        _openssl("req", *_NEW_KEY, "-subj", f"/CN={subject}", "-keyout", pair.key, "-out", request)
        extensions = stem.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={','.join(names)}\n" if names else "basicConstraints=CA:FALSE\n")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._own.key, "-CAcreateserial"),
            *("-days", "2", "-extfile", extensions, "-out", pair.certificate),
        )
        return pair


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
