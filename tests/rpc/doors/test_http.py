"""Thrift over HTTP: messages, who asks, and what is no request."""

from __future__ import annotations

import base64
import hmac
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from thriftpy2.http import THttpClient
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TClient

from hive_acid import Login, Tls, Token, connect
from hive_acid.connection import Connection
from hive_acid.errors import AddressError, LoginError, MetastoreUnreachableError, NoSuchObjectError
from hive_acid.protocol import Question
from hive_acid.wire import service
from metastore.config import Config
from metastore.rpc.audit.audit import Audit
from metastore.rpc.doors import http
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users import passwords, tokens
from metastore.settings import SettingError
from tests.authority import Authority
from tests.rpc.doors.conftest import wrong_answers_to_threads
from tests.rpc.doors.issuer import Issuer
from tests.rpc.test_server import Running, base_handlers
from tests.rpc.test_streaming import streamed
from tests.waiting import until

Guarded = Callable[..., Running]
Log = Callable[[], list[str]]
HTTP = "metastore.server.thrift.transport.mode=http"
LARGE = "x" * 3_000_000
STATUS = b"\x80\x01\x00\x01\x00\x00\x00\x09getStatus\x00\x00\x00\x01\x00"


def handlers() -> Any:
    def get_table(call: Any, *_: object) -> Any:
        raise NoSuchObjectError("hive.a.b table not found")

    return base_handlers() | {
        "getOption": lambda call, key: key,
        "getName": lambda call: LARGE,
        "getVersion": lambda call: f"{call.session.user} {call.session.authenticated} {call.session.client}",
        "get_table": get_table,
        "get_partition_names": lambda call, *_: streamed(5000, lambda: iter(["p=" + "x" * 1000] * 5000)),
    }


@pytest.fixture
def served(guarded: Guarded) -> Callable[..., Running]:
    return lambda *settings, **how: guarded(HTTP, *settings, handlers=how.pop("handlers", None) or handlers(), **how)


def asked(server: Running, tls: Tls | None = None, **how: Any) -> Connection:
    return connect(f"{'https' if tls else 'http'}://127.0.0.1:{server.port}", tls=tls, **how)


def post(server: Running, body: bytes = STATUS, path: str = "/metastore", **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    return reply.status, reply.read()


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
def test_calls_of_all_sizes(served: Any, tls: bool, authority: Authority) -> None:
    server = served(tls=tls)
    with asked(server, Tls(ca=str(authority.ca)) if tls else None) as connection:
        assert connection.uri == f"http{'s' if tls else ''}://127.0.0.1:{server.port}/metastore"
        assert connection.call("getName") == LARGE
        for size in (0, 1, 16_383, 16_384, 65_535, 65_536, 300_000, 5_000_000):
            assert connection.call("getOption", "y" * size) == "y" * size
        assert connection.call("get_partition_names", "d", "t", -1) == ["p=" + "x" * 1000] * 5000
        with pytest.raises(NoSuchObjectError, match=r"hive\.a\.b"):
            connection.call("get_table", "a", "b")
        questions = [Question("getOption", (str(number) * 50_000,)) for number in range(9)]
        assert connection.ask(*questions) == [str(number) * 50_000 for number in range(9)]
        assert wrong_answers_to_threads(connection) == []
        connection.call("shutdown")
        assert connection.call("getStatus") == 2


def test_another_client_of_thrift(served: Any) -> None:
    transport = THttpClient(f"http://127.0.0.1:{served(tls=False).port}/metastore")
    client = TClient(service, TBinaryProtocol(transport))
    transport.open()
    transport.setCustomHeaders({"x-actor-username": "ann"})
    for _ in range(3):
        assert client.getVersion() == "ann None 127.0.0.1"
    assert len(client.get_partition_names("d", "t", -1)) == 5000


@pytest.mark.parametrize("seed", range(6))
def test_requests_in_pieces(served: Any, seed: int) -> None:
    """However the bytes come, and with requests in a row: each reply is that to its request."""
    chance = random.Random(seed)
    server = served(tls=False)
    texts = ["z" * chance.choice([0, 1, 10, 3000, 70_000, 400_000]) + str(number) for number in range(12)]
    stream = b""
    for number, text in enumerate(texts):
        body = _option(text, number)
        head = f"POST /metastore HTTP/1.1\r\nHost: h\r\nx-actor-username: u{number}\r\n".encode()
        if chance.random() < 0.5:
            stream += head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        else:
            at, pieces = 0, b""
            while at < len(body):
                piece = body[at : at + chance.randint(1, len(body))]
                pieces += f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
                at += len(piece)
            stream += head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        read = sock.makefile("rb")
        at = 0
        while at < len(stream):
            size = chance.choice([1, 7, 100, 5000, 200_000])
            sock.sendall(stream[at : at + size])
            at += size
        for number, text in enumerate(texts):
            status, headers, body = _answer(read)
            assert (status, headers["content-type"]) == (200, "application/x-thrift")
            assert body.endswith(text.encode() + b"\0"), number


def _option(text: str, number: int) -> bytes:
    key = text.encode()
    return (
        b"\x80\x01\x00\x01\x00\x00\x00\x09getOption" + number.to_bytes(4, "big")
        + b"\x0b\x00\x01" + len(key).to_bytes(4, "big") + key + b"\x00"
    )  # fmt: skip


def _answer(read: Any) -> tuple[int, dict[str, str], bytes]:
    status = int(read.readline().split()[1])
    headers = {}
    while (line := read.readline().decode().strip()) != "":
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    if "content-length" in headers:
        return status, headers, read.read(int(headers["content-length"]))
    body = b""
    while size := int(read.readline(), 16):
        body += read.read(size)
        read.readline()
    read.readline()
    return status, headers, body


def test_what_was_said_of_oneself_ends_with_the_request(served: Any) -> None:
    """A proxy may send the requests of many over one connection."""
    server = served(tls=False)
    with asked(server, user="ann") as connection:
        assert connection.call("getVersion") == "ann None 127.0.0.1"
        connection.call("set_ugi", "bob", [])
        assert connection.call("getVersion") == "ann None 127.0.0.1"


# --- what is no request ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (b"GET /metastore HTTP/1.1\r\nHost: h\r\n\r\n", 405, b"POST"),
        (b"DELETE /metastore HTTP/1.1\r\nHost: h\r\n\r\n", 405, b"POST"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 404, b"the metastore is at /metastore"),
        (b"POST /metastorex HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 404, b"/metastore"),
        (b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 400, b"no message"),
        (b"POST /metastore HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 400, b"no HTTP"),
        (b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400, b"no HTTP"),
        (b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400, b"no HTTP"),
        (b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nnonsense!", 400, b"no Thrift message"),
        (b"POST /metastore HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, b"no HTTP"),
        (b"POST /metastore HTTP/1.1\r\n" + b"X: " + b"y" * 70_000 + b"\r\n\r\n", 431, b""),
        (b"\x00\x01\x02\r\n\r\n", 400, b"no HTTP"),
    ],
)
def test_what_is_no_request_is_answered(served: Any, sent: bytes, status: int, words: bytes, log: Log) -> None:
    server = served(tls=False)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(sent)
        found, headers, body = _answer(sock.makefile("rb"))
        assert found == (400 if status == 431 else status)
        assert words in body
        assert headers["connection"] == "close"
        assert sock.recv(1) == b""
    assert len(log()) == 1
    until(lambda: not len(server.server.connections))
    assert server.server.debts.total_bytes == 0


@pytest.mark.parametrize(
    ("sent", "what"),
    [(STATUS, "plain Thrift"), (b"\x16\x03\x01\x02\x00\x01", "TLS"), (b"\x01\x00\x00\x00\x05PLAIN", "SASL")],
)
def test_who_speaks_something_else_is_told_in_the_log(served: Any, sent: bytes, what: str, log: Log) -> None:
    server = served(tls=False)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(sent)
        assert sock.recv(100) == b""
    assert f"it speaks {what}, and this port speaks HTTP" in log()[0]


def test_two_messages_in_a_request(served: Any, log: Log) -> None:
    server = served(tls=False)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(
            b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (2 * len(STATUS)) + 2 * STATUS
        )
        _answer(sock.makefile("rb"))
        assert sock.recv(1) == b""
    assert "more than one message" in log()[0]


def test_a_request_that_is_too_large_has_its_answer(served: Any) -> None:
    server = served(tls=False, max_message_bytes=100_000)
    with asked(server) as connection:
        for _ in range(3):
            with pytest.raises(Exception, match="100000"):
                connection.call("getOption", "y" * 400_000)
            assert connection.call("getStatus") == 2


def test_headers_have_a_time_limit(served: Any, monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    monkeypatch.setattr(http, "PATIENCE_S", 0.3)
    server = served(tls=False, request_timeout_ms=300)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        whole = b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(STATUS)
        sock.sendall(whole + STATUS + whole[:20])
        _answer(sock.makefile("rb"))
        assert sock.recv(1) == b""
    assert "has not come whole" in log()[0]


def test_hostile_bytes(served: Any) -> None:
    """Requests with bytes changed, left out and doubled: each connection ends, and the server serves on."""
    chance = random.Random(7)
    server = served(tls=False, request_timeout_ms=500)
    good = b"POST /metastore HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(STATUS) + STATUS
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(bad))
            match chance.randrange(3):
                case 0:
                    bad[at] = chance.randrange(256)
                case 1:
                    del bad[at]
                case _:
                    bad[at:at] = bad[at : at + chance.randint(1, 9)]
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
            sock.sendall(bytes(bad))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
    with asked(server) as connection:
        assert connection.call("getStatus") == 2
    until(lambda: not len(server.server.connections))
    assert server.server.debts.total_bytes == 0


# --- who asks: passwords --------------------------------------------------------------------------


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    passwords.change(file, "ann", "geheim")
    passwords.change(file, "bölle", "pä ss:wort")
    return file


def password_settings(file: Path) -> list[str]:
    return ["metastore.authentication=password", f"metastore.authentication.password.file={file}"]


@pytest.mark.slow
def test_passwords_by_basic(served: Any, users: Path, log: Log) -> None:
    server = served(*password_settings(users), tls=False)
    for user, password in (("ann", "geheim"), ("bölle", "pä ss:wort")):
        with asked(server, login=Login(user, password)) as connection:
            assert connection.call("getVersion") == f"{user} {user} 127.0.0.1"
    with pytest.raises(LoginError, match="no user 'ann' with this password"):
        asked(server, login=Login("ann", "wrong"))
    with pytest.raises(LoginError, match="it shows nothing, and this port asks for Basic"):
        asked(server)
    for shown in ("Basic !!!", "Basic YW5u", "Bearer x.y.z", "Basic", base64.b64encode(b"ann:geheim").decode()):
        assert post(server, Authorization=shown)[0] == 401
    assert all("geheim" not in line for line in log())


def test_of_one_connection_each_request_says_who_makes_it(served: Any, users: Path) -> None:
    server = served(*password_settings(users), tls=False)
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    version = STATUS.replace(b"\x09getStatus", b"\x0agetVersion")
    for user, password in (("ann", "geheim"), ("bölle", "pä ss:wort"), ("ann", "geheim")):
        shown = base64.b64encode(f"{user}:{password}".encode()).decode()
        connection.request("POST", "/metastore", version, {"Authorization": f"Basic {shown}"})
        assert f"{user} {user} ".encode() in connection.getresponse().read()
    connection.request("POST", "/metastore", version, {"Authorization": "Basic YW5uOndyb25n"})
    assert connection.getresponse().status == 401


def test_a_connection_goes_with_its_password(served: Any, users: Path, log: Log) -> None:
    server = served(*password_settings(users), tls=False)
    with asked(server, login=Login("ann", "geheim")) as connection:
        assert connection.call("getStatus") == 2
        passwords.change(users, "ann", "neu")
        until(lambda: any("has changed since it came in" in line for line in log()))
        with pytest.raises(LoginError):
            connection.call("getStatus")


# --- who asks: tokens -----------------------------------------------------------------------------


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path / "keys.json")


def jwt_settings(issuer: Issuer, **more: str) -> list[str]:
    return [f"{key}={value}" for key, value in issuer.settings(**more).items()]


@pytest.mark.sampled
def test_tokens(served: Any, issuer: Issuer, tmp_path: Path, authority: Authority) -> None:
    for name in ("ec", "okp"):
        issuer.add(name)
    server = served(*jwt_settings(issuer))
    tls = Tls(ca=str(authority.ca))
    for name in issuer.keys:
        (tmp_path / "token").write_text(issuer.token(name, sub=f"ann-{name}") + "\n")
        with asked(server, tls, login=Token(str(tmp_path / "token"))) as connection:
            assert connection.call("getVersion") == f"ann-{name} ann-{name} 127.0.0.1"
            (tmp_path / "token").write_text(issuer.token(name, sub="bob"))
            assert connection.call("getVersion") == "bob bob 127.0.0.1", "the file is read for each request"


@pytest.mark.slow
def test_tokens_that_are_not_accepted(served: Any, issuer: Issuer, tmp_path: Path, log: Log) -> None:
    server = served(*jwt_settings(issuer), tls=False)
    other = Issuer(tmp_path / "other.json")
    good = issuer.token()
    head, body, signature = good.split(".")
    claims = jwt.decode(good, options={"verify_signature": False})
    by_secret = f"{_word({'alg': 'HS256', 'kid': 'rsa'})}.{body}"
    public = json.dumps(issuer.told["rsa"]).encode()
    code = base64.urlsafe_b64encode(hmac.digest(public, by_secret.encode(), "sha256")).decode().rstrip("=")
    bad = {
        "expired": issuer.token(exp=time.time() - 31),
        "not yet": issuer.token(nbf=time.time() + 60),
        "no end": issuer.token(exp=None),
        "another audience": issuer.token(aud="hdfs"),
        "no audience": issuer.token(aud=None),
        "another issuer": issuer.token(iss="https://evil"),
        "no issuer": issuer.token(iss=None),
        "no user": issuer.token(sub=None),
        "user of nothing": issuer.token(sub=""),
        "a user that is a line": issuer.token(sub="ann\nroot"),
        "another's key": other.token(),
        "unknown key": issuer.token(kid="nix"),
        "unsigned": jwt.encode(claims, "", "none", headers={"kid": "rsa"}),
        "signed by what is public": f"{by_secret}.{code}",
        "signature of another": f"{head}.{body}.{other.token().split('.')[2]}",
        "changed": f"{head}.{_word(claims | {'sub': 'root'})}.{signature}",
        "no token": "nonsense",
        "empty": "",
        "long": "a." * 20_000,
    }
    assert post(server, Authorization=f"Bearer {good}")[0] == 200
    assert {name: post(server, Authorization=f"Bearer {token}")[0] for name, token in bad.items()} == dict.fromkeys(
        bad, 401
    )
    assert post(server, Authorization=f"Bearer {issuer.token(exp=time.time() - 20)}")[0] == 200, "clocks differ"
    assert post(server, Authorization=f"Bearer {issuer.token(aud=['hdfs', 'metastore'])}")[0] == 200
    assert all(token not in line for line in log() for token in (good, signature))


def _word(told: object) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def test_tokens_end_on_an_open_connection(served: Any, issuer: Issuer) -> None:
    server = served(*jwt_settings(issuer, **{"clock.skew": "0s"}), tls=False)
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    token = issuer.token(exp=time.time() + 1.5)
    statuses = []

    def status() -> bool:
        connection.request("POST", "/metastore", STATUS, {"Authorization": f"Bearer {token}"})
        reply = connection.getresponse()
        reply.read()
        statuses.append(reply.status)
        return reply.status == 401

    until(status, 10)
    assert statuses[0] == 200


def test_keys_are_read_again(served: Any, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.rpc.doors.reception.MOST_BELIEVED_S", 0.0)
    server = served(*jwt_settings(issuer), tls=False)
    issuer.add("ec")
    assert post(server, Authorization=f"Bearer {issuer.token('ec')}")[0] == 200
    issuer.file.write_text("nonsense")
    assert post(server, Authorization=f"Bearer {issuer.token('ec')}")[0] == 200, "they stay as they were"
    old = issuer.token("rsa")
    del issuer.told["rsa"]
    issuer.write()
    assert post(server, Authorization=f"Bearer {old}")[0] == 401
    assert post(server, Authorization=f"Bearer {issuer.token('ec')}")[0] == 200


def test_keys_from_an_address(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, key_server: Any) -> None:
    monkeypatch.setattr(tokens, "REFRESH_LEAST_S", 0.2)
    url, asked_for = key_server
    config = Config.parse([HTTP, *jwt_settings(issuer, **{"jwks.url": url})]).doors
    checked = tokens.Tokens(config)
    assert [checked.bearer(issuer.token()).user for _ in range(5)] == ["ann"] * 5
    assert len(asked_for) == 1
    issuer.add("ec")
    until(lambda: _accepts(checked, issuer.token("ec")), 5)
    before = len(asked_for)
    for _ in range(50):
        assert not _accepts(checked, issuer.token(kid="nix"))
    assert len(asked_for) <= before + 3, "tokens of strangers make no flood"


def _accepts(checked: tokens.Tokens, token: str) -> bool:
    try:
        checked.bearer(token)
    except tokens.TokenError:
        return False
    return True


@pytest.fixture
def key_server(issuer: Issuer) -> Iterator[tuple[str, list[str]]]:
    asked_for: list[str] = []

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_for.append(self.path)
            text = issuer.file.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Keys)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/keys", asked_for
    server.shutdown()
    thread.join()
    server.server_close()


# --- who asks: by a proxy -------------------------------------------------------------------------


def proxy_settings(addresses: str = "127.0.0.0/8") -> list[str]:
    return [
        "metastore.authentication.proxy.header=X-Forwarded-User",
        f"metastore.authentication.proxy.addresses={addresses}",
    ]


def test_the_word_of_a_proxy(served: Any, users: Path) -> None:
    version = STATUS.replace(b"\x09getStatus", b"\x0agetVersion")
    server = served(*password_settings(users), *proxy_settings(), tls=False)
    status, body = post(server, version, X_Forwarded_User="cid", X_Forwarded_For="10.1.1.1, 10.0.0.7")
    assert (status, b"cid cid 10.0.0.7" in body) == (200, True)
    assert post(server, version)[0] == 401
    elsewhere = served(*password_settings(users), *proxy_settings("10.0.0.0/8,::1"), tls=False)
    assert post(elsewhere, version, X_Forwarded_User="cid")[0] == 401
    off = served(tls=False)
    assert b"None None 127.0.0.1" in post(off, version, X_Forwarded_User="cid", X_Forwarded_For="10.0.0.7")[1]


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["metastore.authentication=jwt"], "needs metastore.server.thrift.transport.mode=http"),
        ([HTTP, "metastore.authentication=jwt"], "where are its keys"),
        ([HTTP, "metastore.authentication=jwt", "metastore.authentication.jwt.jwks.url=/x"], "jwt.audience"),
        ([HTTP, *proxy_settings("")], "whose header"),
        (proxy_settings(), "needs metastore.server.thrift.transport.mode=http"),
    ],
)
def test_settings_that_do_not_go_together(settings: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Doors(Config.parse(settings).doors)


@pytest.mark.parametrize("url", ["http://example.com/keys", "ftp://x/y", "/no/such/file", "data:,x"])
def test_places_of_keys_that_are_none(issuer: Issuer, url: str) -> None:
    with pytest.raises(SettingError, match=r"jwks\.url"):
        Doors(Config.parse([HTTP, *jwt_settings(issuer, **{"jwks.url": url})]).doors)


def test_addresses_of_clients(served: Any, tmp_path: Path) -> None:
    server = served(tls=False)
    with pytest.raises(MetastoreUnreachableError, match=r"404: the metastore is at /metastore"):
        connect(f"http://127.0.0.1:{server.port}/else")
    with pytest.raises(AddressError, match="cannot read the token"):
        asked(server, login=Token(str(tmp_path / "none")))
    with pytest.raises(AddressError, match="over HTTP alone"):
        connect(f"thrift://127.0.0.1:{server.port}", login=Token("x"))
    with pytest.raises(MetastoreUnreachableError):
        connect(f"thrift://127.0.0.1:{server.port}")


def test_who_came_in_is_in_the_audit_log(users: Path, tmp_path: Path) -> None:
    config = Config.parse([HTTP, *password_settings(users), f"metastore.audit.file={tmp_path / 'audit'}"])
    audit = Audit(config.audit)
    doors = Doors(config.doors, audit)
    server = Running(handlers(), doors=doors)
    try:
        with asked(server, login=Login("ann", "geheim")) as connection:
            connection.call("getStatus")
        with pytest.raises(LoginError):
            asked(server, login=Login("ann", "wrong"))
    finally:
        server.close()
        doors.close()
        audit.close()
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [(line["method"], line["user"], line["outcome"]) for line in lines] == [
        ("login", "ann", "fine"),
        ("login", "ann", "refused"),
    ]
    assert "wrong" not in (tmp_path / "audit").read_text()
