"""TLS on the Thrift port, with our client, with openssl's, and with those that speak it badly or not at all."""

import os
import random
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid import connect
from hive_acid.connection import Connection
from hive_acid.errors import AddressError, MetastoreUnreachableError
from hive_acid.tls import Tls
from metastore.config import Config
from metastore.rpc.doors import certificates, door
from metastore.rpc.doors.doors import Doors
from metastore.settings import SettingError
from tests.authority import Authority, Pair
from tests.forks import bounded, status_of
from tests.rpc.doors.conftest import NAMES, tls_settings, wrong_answers_to_threads
from tests.rpc.test_server import Running, base_handlers
from tests.waiting import until

Guarded = Callable[..., Running]
Log = Callable[[], list[str]]
LARGE = "x" * 3_000_000


def encrypted(server: Running, tls: Tls, host: str = "127.0.0.1", **how: Any) -> Connection:
    return connect(f"thrift+tls://{host}:{server.port}", tls=tls, **how)


def handlers() -> Any:
    return base_handlers() | {
        "getOption": lambda call, key: key,
        "getName": lambda call: LARGE,
    }


@pytest.fixture
def tls(authority: Authority) -> Tls:
    return Tls(ca=str(authority.ca))


@pytest.fixture
def raw(guarded: Guarded) -> Callable[[Running], socket.socket]:
    return lambda server: socket.create_connection(("127.0.0.1", server.port), timeout=10)


# --- calls ----------------------------------------------------------------------------------------


def test_calls_of_all_sizes(guarded: Guarded, tls: Tls) -> None:
    server = guarded(handlers=handlers())
    with encrypted(server, tls) as connection:
        assert connection.uri == f"thrift+tls://127.0.0.1:{server.port}"
        assert connection.call("getName") == LARGE
        for size in (0, 1, 16_383, 16_384, 16_385, 300_000, 5_000_000):
            assert connection.call("getOption", "y" * size) == "y" * size


def test_threads_share_a_connection(guarded: Guarded, tls: Tls) -> None:
    server = guarded(handlers=handlers())
    with encrypted(server, tls) as connection:
        assert wrong_answers_to_threads(connection) == []


def test_one_that_is_closed_is_made_anew(guarded: Guarded, tls: Tls) -> None:
    server = guarded()
    with encrypted(server, tls) as connection:
        connection.call("shutdown")
        until(lambda: not len(server.server.connections))
        assert connection.call("getStatus") == 2


def test_a_child_has_a_handshake_of_its_own(guarded: Guarded, tls: Tls) -> None:
    server = guarded(handlers=handlers())
    with encrypted(server, tls) as connection:
        assert status_of(bounded(lambda: int(connection.call("getOption", "child") != "child"))) == 0
        assert connection.call("getOption", "parent") == "parent"


def test_what_was_asked_is_answered_as_the_server_stops(guarded: Guarded, tls: Tls) -> None:
    entered = threading.Event()

    def get_status_details(call: Any) -> str:
        entered.set()
        until(lambda: server.server.stopping)
        return "late"

    server = guarded(handlers=handlers() | {"getStatusDetails": get_status_details})
    with encrypted(server, tls) as connection:
        answers: list[str] = []
        asking = threading.Thread(target=lambda: answers.append(connection.call("getStatusDetails")))
        asking.start()
        assert entered.wait(10)
        server.stop()
        asking.join()
        assert answers == ["late"]


# --- who it is ------------------------------------------------------------------------------------


def test_a_server_of_another_ca_is_not_believed(guarded: Guarded, tmp_path: Path, log: Log) -> None:
    server = guarded()
    with pytest.raises(MetastoreUnreachableError, match=r"certificate is not believed: .*HIVE_ACID_TLS_CA"):
        encrypted(server, Tls(ca=str(Authority(tmp_path / "other").ca)))
    with pytest.raises(MetastoreUnreachableError, match="certificate is not believed"):
        encrypted(server, Tls())
    until(lambda: len(log()) == 2)
    # Its alert is lost where it closes with bytes of ours unread.
    assert all("tlsv1 alert unknown ca" in line or "went away before it had come in" in line for line in log())


def test_a_server_of_another_name_is_not_believed(guarded: Guarded, authority: Authority) -> None:
    server = guarded(*tls_settings(authority.issue("elsewhere", "DNS:meta.example.com")), tls=False)
    with pytest.raises(MetastoreUnreachableError, match=r"not valid for '127\.0\.0\.1'.*HIVE_ACID_TLS_NAME"):
        encrypted(server, Tls(ca=str(authority.ca)))
    with encrypted(server, Tls(ca=str(authority.ca), name="meta.example.com")) as connection:
        assert connection.call("getStatus") == 2


def test_the_environment_says_how(guarded: Guarded, tls: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    server = guarded()
    monkeypatch.setenv("HIVE_ACID_TLS_CA", str(tls.ca))
    with connect(f"thrift+tls://localhost:{server.port}") as connection:
        assert connection.call("getStatus") == 2


def test_a_client_without_a_certificate_is_refused(
    guarded: Guarded, authority: Authority, tls: Tls, tmp_path: Path, log: Log
) -> None:
    server = guarded(f"metastore.tls.client.ca={authority.ca}")
    with pytest.raises(MetastoreUnreachableError):
        encrypted(server, tls)
    until(lambda: len(log()) == 1)
    assert "peer did not return a certificate" in log()[0]
    stranger = Authority(tmp_path / "other").issue("ann")
    with pytest.raises(MetastoreUnreachableError):
        encrypted(server, Tls(tls.ca, str(stranger.certificate), str(stranger.key)))
    own = authority.issue("ann")
    with encrypted(server, Tls(tls.ca, str(own.certificate), str(own.key))) as connection:
        assert connection.call("getStatus") == 2


def test_files_of_a_client_that_cannot_be_used(guarded: Guarded, tls: Tls, pair: Pair, tmp_path: Path) -> None:
    server = guarded()
    (tmp_path / "empty").touch()
    for how in (Tls(ca="/nowhere/ca.pem"), Tls(tls.ca, str(pair.certificate)), Tls(str(tmp_path / "empty"))):
        with pytest.raises(AddressError, match=r"TLS"):
            encrypted(server, how)


# --- who speaks otherwise -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (b"\x80\x01\x00\x01\x00\x00\x00\x09getStatus\x00\x00\x00\x01\x00", "plain Thrift"),
        (b"\x01\x00\x00\x00\x05PLAIN", "SASL"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"hello", "no TLS"),
        (b"\x80", "no TLS"),
    ],
)
def test_who_speaks_no_tls_is_sent_away_in_one_line(
    words: bytes, name: str, guarded: Guarded, raw: Callable[[Running], socket.socket], log: Log
) -> None:
    server = guarded()
    with raw(server) as sock:
        sock.sendall(words)
        assert sock.recv(100) == b""
    until(log)
    (line,) = log()
    assert f"it speaks {name}, and this port speaks TLS (metastore.use.SSL)" in line
    until(lambda: not len(server.server.connections))


def test_our_client_without_tls_is_told_what_to_do(guarded: Guarded) -> None:
    server = guarded()
    with pytest.raises(MetastoreUnreachableError, match=r"does its port speak TLS\? Then give thrift\+tls://"):
        connect(f"thrift://127.0.0.1:{server.port}")


def test_tls_to_a_plain_port_is_sent_away_in_one_line(guarded: Guarded, tls: Tls, log: Log) -> None:
    server = guarded(tls=False)
    with pytest.raises(MetastoreUnreachableError):
        encrypted(server, tls)
    until(log)
    (line,) = log()
    assert "it speaks TLS, and this port speaks plain Thrift" in line


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_are_refused(guarded: Guarded, raw: Callable[[Running], socket.socket], log: Log) -> None:
    server = guarded()
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        with raw(server) as sock, pytest.raises(ssl.SSLError):
            context.wrap_socket(sock)
    until(lambda: len(log()) == 2)
    assert all("unsupported protocol" in line for line in log())


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_the_port_as_openssl_sees_it(version: str, guarded: Guarded, authority: Authority) -> None:
    server = guarded()
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-CAfile", str(authority.ca), version]
    command += ["-verify_return_error", "-verify_ip", "127.0.0.1"]
    seen = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False).stdout.decode()
    assert "Verify return code: 0 (ok)" in seen
    assert "Secure Renegotiation IS supported" in seen or version == "-tls1_3"
    refused = subprocess.run([*command[:-4], "-tls1_1"], input=b"", capture_output=True, timeout=60, check=False)
    assert b"Cipher is (NONE)" in refused.stdout


def test_who_asks_for_another_handshake_gets_none(guarded: Guarded, authority: Authority) -> None:
    """By renegotiation, which TLS 1.2 has, a client would have us do the arithmetic again and again."""
    server = guarded()
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2", "-CAfile", str(authority.ca)]
    seen = subprocess.run(command, input=b"R\n", capture_output=True, timeout=60, check=False)
    assert b"no renegotiation" in seen.stderr


# --- who takes the server's time ------------------------------------------------------------------


def test_who_does_not_come_in_is_sent_away(
    guarded: Guarded, raw: Callable[[Running], socket.socket], monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(door, "PATIENCE_S", 0.3)
    server = guarded()
    with raw(server) as silent, raw(server) as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00")
        for sock in (silent, slow):
            assert sock.recv(1) == b""
    until(lambda: len(log()) == 2)
    assert all("it has not come in for 0.3 s" in line for line in log())


def test_the_others_do_not_wait_for_handshakes(guarded: Guarded, tls: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes long is on a thread of its own."""
    context = certificates.Certificates.context
    asked, goes_on = threading.Event(), threading.Event()

    def slow(self: certificates.Certificates) -> ssl.SSLContext:
        if asked.is_set():
            goes_on.wait(10)
        return context(self)

    monkeypatch.setattr(certificates.Certificates, "context", slow)
    server = guarded()
    with encrypted(server, tls) as connection:
        asked.set()
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.sendall(_hello())
            started = time.monotonic()
            for _ in range(20):
                connection.call("getStatus")
            assert time.monotonic() - started < 5
            goes_on.set()


def test_those_at_the_door_are_counted_as_connections(
    guarded: Guarded, raw: Callable[[Running], socket.socket], tls: Tls
) -> None:
    server = guarded(max_connections=16)
    sockets = [raw(server) for _ in range(40)]
    until(lambda: len(server.server.connections) <= 16)
    with encrypted(server, tls) as connection:
        assert connection.call("getStatus") == 2
    for sock in sockets:
        sock.close()
    until(lambda: not len(server.server.connections))


def test_a_handshake_without_an_end_is_bounded(
    guarded: Guarded, raw: Callable[[Running], socket.socket], log: Log
) -> None:
    server = guarded()
    with raw(server) as sock:
        message = b"\x01" + (100_000).to_bytes(3, "big") + bytes(16_000)
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken, as it happens to be
            until(lambda: sock.sendall(b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message), 5)
    assert len(log()) == 1
    assert server.server.debts.total_bytes == 0


def _hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("seed", range(6))
def test_hostile_bytes_end_their_own_connection_alone(seed: int, guarded: Guarded, tls: Tls, log: Log) -> None:
    """Hellos with bytes changed, cut and repeated, and bytes changed in what is said after the handshake."""
    server = guarded(handlers=handlers())
    chance = random.Random(seed)
    hello = _hello()
    with encrypted(server, tls) as connection:
        for _ in range(60):
            words = bytearray(hello)
            for _ in range(chance.choice((0, 1, 3, 50))):
                words[chance.randrange(chance.choice((6, 60, len(words))))] = chance.randrange(256)
            words = words[: chance.randrange(1, len(words) + 1)] * chance.choice((1, 1, 2, 40))
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
                cut = chance.randrange(len(words))
                for part in (words[:cut], words[cut:]):
                    try:
                        sock.sendall(part)
                    except OSError:
                        break
        for _ in range(20):
            assert _spoiled(server, chance)
        assert connection.call("getOption", "still") == "still"
    until(lambda: not len(server.server.connections))
    assert server.server.debts.total_bytes == 0
    assert not [line for line in log() if "Traceback" in line]


def _spoiled(server: Running, chance: random.Random) -> bool:
    """Whether a connection ends of which a byte was changed on its way."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = context.wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(65_536))
        sock.sendall(outgoing.read())
        client.write(os.urandom(200))
        words = bytearray(outgoing.read())
        words[chance.randrange(5, len(words))] ^= 1 << chance.randrange(8)
        try:
            sock.sendall(words)
            while sock.recv(65_536):
                pass
        except ConnectionError:
            pass
    return True


# --- the files ------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "LOOK_AGAIN_S", 0.0)


def shown(server: Running) -> str:
    return ssl.get_server_certificate(("127.0.0.1", server.port), timeout=10)


def put(target: Pair, source: Pair, *, key: bool = True) -> None:
    for to, of in ((target.certificate, source.certificate), *([(target.key, source.key)] if key else [])):
        beside = to.with_suffix(".new")
        beside.write_bytes(of.read_bytes())
        beside.replace(to)


def test_a_new_certificate_is_shown_without_a_restart(
    guarded: Guarded, authority: Authority, tls: Tls, tmp_path: Path, at_once: None, log: Log
) -> None:
    files = Pair(tmp_path / "server.pem", tmp_path / "server.key")
    first, second, third = (authority.issue("metastore", *NAMES) for _ in range(3))
    put(files, first)
    server = guarded(*tls_settings(files), tls=False)
    with encrypted(server, tls) as elder:
        assert shown(server) == first.certificate.read_text()
        put(files, second, key=False)  # its key comes later: until then the first is shown
        assert shown(server) == first.certificate.read_text()
        put(files, second)
        assert shown(server) == second.certificate.read_text()
        files.certificate.unlink()
        assert shown(server) == second.certificate.read_text()
        put(files, third)
        assert shown(server) == third.certificate.read_text()
        assert elder.call("getStatus") == 2


def test_clients_whose_ca_is_taken_away_are_refused(
    guarded: Guarded, authority: Authority, tls: Tls, tmp_path: Path, at_once: None
) -> None:
    trusted = tmp_path / "clients.pem"
    trusted.write_bytes(authority.ca.read_bytes())
    server = guarded(f"metastore.tls.client.ca={trusted}")
    own = authority.issue("ann")
    how = Tls(tls.ca, str(own.certificate), str(own.key))
    with encrypted(server, how) as connection:
        assert connection.call("getStatus") == 2
    trusted.write_bytes(Authority(tmp_path / "other").ca.read_bytes())
    with pytest.raises(MetastoreUnreachableError):
        encrypted(server, how)


def _doors(*settings: str) -> None:
    Doors(Config.parse(["metastore.use.SSL=true", *settings]).doors).close()


def test_files_of_the_server_that_cannot_be_used(pair: Pair, authority: Authority, tmp_path: Path) -> None:
    own = [f"metastore.keystore.path={pair.certificate}", f"metastore.tls.key={pair.key}"]
    _doors(*own)
    (tmp_path / "jks").write_bytes(bytes.fromhex("feedfeed00000002"))
    other = authority.issue("other")
    encrypted_key = tmp_path / "encrypted.key"
    subprocess.run(
        ["openssl", "ec", "-in", pair.key, "-aes256", "-passout", "pass:geheim", "-out", encrypted_key],
        check=True,
        capture_output=True,
    )
    for settings, words in (
        ([], "No such file"),
        (own[:1], "metastore.tls.key"),
        ([own[0], f"metastore.tls.key={other.key}"], "key values mismatch"),
        ([own[0], "metastore.tls.key=/nowhere"], "No such file"),
        ([f"metastore.keystore.path={tmp_path / 'jks'}"], "keytool -importkeystore"),
        ([f"metastore.keystore.path={tmp_path}"], "Is a directory"),
        ([own[0], f"metastore.tls.key={encrypted_key}"], "cannot be used"),
        ([*own, "metastore.tls.client.ca=/nowhere"], r"metastore.tls.client.ca\) cannot be used: No such file"),
    ):
        with pytest.raises(SettingError, match=words):
            _doors(*settings)
    (tmp_path / "password").write_text("geheim\n")
    _doors(own[0], f"metastore.tls.key={encrypted_key}", f"metastore.tls.key.password.file={tmp_path / 'password'}")
    both = tmp_path / "both.pem"
    both.write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
    _doors(f"metastore.keystore.path={both}")
