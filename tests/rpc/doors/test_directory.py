"""Users of a directory: OpenLDAP's server itself."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hive_acid import Login, connect
from hive_acid.errors import LoginError, MetastoreError
from metastore.config import Config
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users import directory
from metastore.settings import SettingError
from tests.authority import Authority
from tests.ports import await_port, free_port
from tests.rpc.doors.test_http import handlers
from tests.rpc.test_server import Running

BASE = "dc=example,dc=com"
_CONF = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {place}/pid
{tls}
database mdb
suffix "{base}"
rootdn "cn=admin,{base}"
rootpw secret
directory {place}/data
"""
_USERS = {"ann": "geheim", "bölle": "pä ss:wort", "a,b=c+d": "comma", "*": "star", "eve@example.com": "mail"}


class Ldap(NamedTuple):
    url: str
    tls_url: str
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def ldap(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Ldap]:
    program = shutil.which("slapd") or "/usr/sbin/slapd"
    if not Path(program).exists():
        pytest.skip("needs slapd")
    place = tmp_path_factory.mktemp("ldap")
    (place / "data").mkdir()
    pair = authority.issue("ldap", "IP:127.0.0.1", "DNS:localhost")
    tls = f"TLSCertificateFile {pair.certificate}\nTLSCertificateKeyFile {pair.key}"
    (place / "conf").write_text(_CONF.format(place=place, base=BASE, tls=tls))
    entries = [f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: e\ndc: example"]
    for user, password in _USERS.items():
        escaped = "".join(f"\\{letter}" if letter in ",+=" else letter for letter in user)
        entries.append(
            f"dn: uid={escaped},{BASE}\nobjectClass: inetOrgPerson\nuid: {user}\ncn: {user}\nsn: x\n"
            f"userPassword: {password}"
        )
    (place / "ldif").write_text("\n\n".join(entries) + "\n")
    added = ["slapadd", "-f", str(place / "conf"), "-l", str(place / "ldif")]
    subprocess.run([str(Path(program).with_name("slapadd")), *added[1:]], check=True, capture_output=True)
    port, tls_port = free_port(), free_port()
    url, tls_url = f"ldap://127.0.0.1:{port}", f"ldaps://127.0.0.1:{tls_port}"
    log = place / "log"
    with log.open("wb") as out:
        command = [program, "-d", "0", "-f", str(place / "conf"), "-h", f"{url} {tls_url}"]
        process = subprocess.Popen(command, stdout=out, stderr=out)
    await_port(port, process, log)
    yield Ldap(url, tls_url, process)
    process.terminate()
    process.wait()


@pytest.fixture
def served() -> Iterator[Callable[..., Running]]:
    started: list[tuple[Running, Doors]] = []

    def start(url: str, *settings: str) -> Running:
        given = ["metastore.authentication=ldap", f"metastore.authentication.ldap.url={url}", *settings]
        doors = Doors(Config.parse(given).doors)
        started.append((Running(handlers(), doors=doors), doors))
        return started[-1][0]

    yield start
    for server, doors in started:
        server.close()
        doors.close()


def by(**names: str) -> list[str]:
    return [f"metastore.authentication.ldap.{name}={value}" for name, value in names.items()]


def asked(server: Running, user: str, password: str, scheme: str = "thrift") -> str:
    with connect(f"{scheme}://127.0.0.1:{server.port}", login=Login(user, password)) as connection:
        return str(connection.call("getVersion"))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["thrift", "http"])
def test_a_password_is_right_if_it_binds(ldap: Ldap, served: Callable[..., Running], scheme: str) -> None:
    transport = ["metastore.server.thrift.transport.mode=http"] if scheme == "http" else []
    server = served(ldap.url, *by(baseDN=BASE), *transport)
    for user, password in _USERS.items():
        assert asked(server, user, password, scheme).startswith(f"{user} {user} ")
    wrong = [
        ("ann", "x"),
        ("ann", ""),
        ("ann ", "geheim"),
        ("Ann2", "geheim"),
        ("", "geheim"),
        ("ann," + BASE, "geheim"),
        ("a,b", "comma"),
    ]
    for user, password in [*wrong, ("an*", "geheim"), ("ann)(uid=*", "geheim"), ("ann\x00", "geheim")]:
        with pytest.raises(LoginError):
            asked(server, user, password, scheme)


def test_names_by_patterns_and_the_list_of_users(ldap: Ldap, served: Callable[..., Running]) -> None:
    server = served(ldap.url, *by(userDNPattern=f"cn=%s,ou=none,{BASE}:uid=%s,{BASE}", userFilter="ann, cid"))
    assert asked(server, "ann", "geheim").startswith("ann ann ")
    for user, password in (("ann", "x"), ("bölle", "pä ss:wort"), ("cid", "x")):
        with pytest.raises(LoginError, match="no user"):
            asked(server, user, password)


def test_over_tls_the_directory_is_known_by_its_ca(
    ldap: Ldap, served: Callable[..., Running], authority: Authority, tmp_path: Path
) -> None:
    server = served(ldap.tls_url, *by(baseDN=BASE, ca=str(authority.ca)))
    assert asked(server, "ann", "geheim").startswith("ann ann ")
    other = served(ldap.tls_url, *by(baseDN=BASE, ca=str(Authority(tmp_path / "other").ca)))
    with pytest.raises(LoginError, match="cannot check who it is now"):
        asked(other, "ann", "geheim")


def test_the_next_directory_is_asked_if_one_does_not_answer(ldap: Ldap, served: Callable[..., Running]) -> None:
    nobody = f"ldap://127.0.0.1:{free_port()}"
    server = served(f"{nobody} {ldap.url}", *by(baseDN=BASE))
    assert asked(server, "ann", "geheim").startswith("ann ann ")
    alone = served(nobody, *by(baseDN=BASE))
    with pytest.raises(LoginError, match="cannot check who it is now"):
        asked(alone, "ann", "geheim")


def test_a_silent_directory_holds_up_nobody_else(
    served: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has come in is served on; who comes is told after a while."""
    monkeypatch.setattr(directory, "ANSWER_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = served(f"ldap://127.0.0.1:{silent.getsockname()[1]}", *by(baseDN=BASE))
        refused: list[Any] = []

        def come() -> None:
            with pytest.raises((LoginError, MetastoreError)) as caught:
                asked(server, "ann", "geheim")
            refused.append(caught.value)

        threads = [threading.Thread(target=come) for _ in range(4)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(refused) == 4
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([], "where is the directory"),
        (by(url="ldaps://h"), "by which names"),
        (by(url="ldap://h.example.com", baseDN=BASE), "everybody on the way"),
        (by(url="http://h", baseDN=BASE), "is not ldaps://host"),
        (by(url="ldaps://", baseDN=BASE), "is not ldaps://host"),
        (by(url="ldaps://h", baseDN=BASE, groupFilter="g"), "groupFilter"),
        (by(url="ldaps://h", baseDN=BASE, customLDAPQuery="(x=y)"), "customLDAPQuery"),
    ],
)
def test_settings_that_do_not_do(settings: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Doors(Config.parse(["metastore.authentication=ldap", *settings]).doors)
