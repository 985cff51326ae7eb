"""A realm of Kerberos of its own: a KDC on a loopback address, with principals, keytabs and tickets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import await_port, free_port

REALM = "HOUSE.TEST"
_PASSWORD = "geheim"
_KRB5 = """
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""
_KDC = """
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {place}/database
    key_stash_file = {place}/stash
    acl_file = {place}/acl
    max_life = 1d
  }}
"""


def missing() -> str | None:
    """What a realm needs and this machine has not; None if all is there."""
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError) as error:
        return f"needs the package gssapi: {error}"
    lacking = [name for name in ("krb5kdc", "kadmin.local", "kdb5_util", "kinit") if _program(name) is None]
    return f"needs {', '.join(lacking)} (krb5-kdc, krb5-admin-server, krb5-user)" if lacking else None


@dataclass(frozen=True)
class Realm:
    """A running one."""

    place: Path
    environment: Mapping[str, str]

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        """Have the libraries of this process be in the realm."""
        for key, value in self.environment.items():
            if key.startswith("KRB5"):
                patch.setenv(key, value)

    def add(self, principal: str) -> Path:
        """A new principal; returns its keytab."""
        self.administer(f"addprinc -randkey {principal}")
        self.administer(f"ktadd -k {self.keytab(principal)} {principal}")
        return self.keytab(principal)

    def keytab(self, principal: str) -> Path:
        """The file with the keys of a principal that was added."""
        return self.place / f"{principal.replace('/', '_')}.keytab"

    def administer(self, query: str) -> None:
        """A command of kadmin's."""
        _run("kadmin.local", "-r", REALM, "-q", query, environment=self.environment)

    def ticket(self, principal: str, life: str = "1h", name: str = "cache") -> Path:
        """A new cache of this name, with a ticket."""
        cache = self.place / f"{principal.replace('/', '_')}.{name}"
        words = ("-k", "-t", str(self.keytab(principal)), "-l", life, "-c", str(cache), principal)
        _run("kinit", *words, environment=self.environment)
        return cache


@contextmanager
def realm(place: Path) -> Iterator[Realm]:
    """A realm with its files in `place`."""
    port = free_port()
    environment = {
        **os.environ,
        "KRB5_CONFIG": str(place / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(place / "kdc.conf"),
        "KRB5RCACHENAME": f"dfl:{place}",
    }
    (place / "krb5.conf").write_text(_KRB5.format(realm=REALM, port=port))
    (place / "kdc.conf").write_text(_KDC.format(realm=REALM, port=port, place=place))
    _run("kdb5_util", "-r", REALM, "create", "-s", "-P", _PASSWORD, environment=environment)
    log = place / "log"
    with log.open("wb") as out:
        command = [_found("krb5kdc"), "-n", "-r", REALM]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        await_port(port, process, log)
        yield Realm(place, environment)
    finally:
        process.terminate()
        process.wait()


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _found(name: str) -> str:
    program = _program(name)
    assert program is not None, name
    return program


def _run(name: str, *words: str, environment: Mapping[str, str]) -> None:
    subprocess.run([_found(name), *words], env=environment, check=True, capture_output=True, timeout=60)
