"""SASL PLAIN on the Thrift port: who comes in, who does not, and frames however they are cut."""

import hashlib
import io
import pickle
import random
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thrift.transport.TSocket import TSocket as ApacheSocket
from thrift.transport.TTransport import TSaslClientTransport
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TCyBufferedTransport, TMemoryBuffer

from hive_acid import Login, Tls, connect
from hive_acid.connection import Connection, addresses
from hive_acid.errors import AddressError, LoginError, MetastoreError, MetastoreUnreachableError
from hive_acid.wire import service
from metastore.config import Config
from metastore.rpc.doors import door
from metastore.rpc.doors.addresses import OpenDoorError, bound
from metastore.rpc.doors.config import DoorsConfig
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users import guests, passwords
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.handlers.session import connection_handlers
from metastore.settings import SettingError
from tests.authority import Authority, Pair
from tests.forks import bounded, status_of
from tests.rpc.doors.conftest import tls_settings, wrong_answers_to_threads
from tests.rpc.test_server import Running, base_handlers
from tests.waiting import stays, until

Guarded = Callable[..., Running]
Log = Callable[[], list[str]]
ANN = Login("ann", "geheim")
LARGE = "x" * 3_000_000


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "LOG2_N", 4)
    monkeypatch.setattr(door, "WRONG_S", 0.05)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    passwords.change(path, "ann", "geheim")
    passwords.change(path, "bölle", "pä ss:wort")
    return path


@pytest.fixture
def asking(guarded: Guarded, file: Path) -> Guarded:
    """A server that asks for passwords, without TLS."""

    def start(*settings: str, tls: bool = False, **how: Any) -> Running:
        own = ["metastore.authentication=password", f"metastore.authentication.password.file={file}"]
        return guarded(*own, *settings, tls=tls, **how)

    return start


def handlers() -> Any:
    return base_handlers() | {
        "getOption": lambda call, key: key,
        "getName": lambda call: LARGE,
        "getVersion": lambda call: f"{call.user} {call.session.authenticated}",
    }


def login(server: Running, who: Login = ANN, **how: Any) -> Connection:
    return connect(f"thrift{'+tls' if 'tls' in how else ''}://127.0.0.1:{server.port}", login=who, **how)


# --- who comes in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [ANN, Login("bölle", "pä ss:wort")])
def test_with_a_password_one_comes_in(who: Login, asking: Guarded) -> None:
    server = asking(handlers=handlers())
    with login(server, who) as connection:
        assert connection.call("getVersion") == f"{who.user} {who.user}"
        assert connection.call("getName") == LARGE
        for size in (0, 1, 65_536, 300_000, 5_000_000):
            assert connection.call("getOption", "y" * size) == "y" * size


def test_over_tls(asking: Guarded, authority: Authority, pair: Pair) -> None:
    server = asking(*tls_settings(pair), handlers=handlers())
    with login(server, tls=Tls(ca=str(authority.ca))) as connection:
        assert connection.uri == f"thrift+tls://ann@127.0.0.1:{server.port}"
        assert connection.call("getVersion") == "ann ann"
        assert connection.call("getOption", LARGE) == LARGE
    with pytest.raises(LoginError):
        login(server, Login("ann", "x"), tls=Tls(ca=str(authority.ca)))


@pytest.mark.parametrize(
    "who",
    [Login("ann", "wrong"), Login("ann", ""), Login("", "geheim"), Login("Ann", "geheim"), Login("eve", "geheim")],
)
def test_whoever_is_wrong_is_told_and_named_in_the_log(who: Login, asking: Guarded, log: Log) -> None:
    server = asking()
    with pytest.raises(LoginError, match=rf"does not let {who.user} in: SASL|does not let {who.user} in: no user"):
        login(server, who)
    until(log)
    (line,) = log()
    assert f"no user '{who.user}' with this password" in line
    assert who.password == "" or f"'{who.password}'" not in line
    until(lambda: not len(server.server.connections))


def test_the_address_and_the_environment_say_who(
    asking: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = asking(handlers=handlers())
    with pytest.raises(AddressError, match="HIVE_ACID_PASSWORD_FILE"):
        connect(f"thrift://ann@127.0.0.1:{server.port}")
    (tmp_path / "password").write_text("geheim\n")
    monkeypatch.setenv("HIVE_ACID_PASSWORD_FILE", str(tmp_path / "password"))
    with connect(f"thrift://ann@127.0.0.1:{server.port}") as connection:
        assert connection.call("getVersion") == "ann ann"
    assert addresses("thrift://a%40b@h")[0].user == "a@b"
    with pytest.raises(AddressError, match="holds no password"):
        connect(f"thrift://ann:geheim@127.0.0.1:{server.port}")
    with pytest.raises(AddressError, match=r"^'thrift://…@h:x' is not the address") as caught:
        connect("thrift://ann:geheim@h:x")
    assert "geheim" not in str(caught.value)


def test_nobody_acts_for_another(asking: Guarded) -> None:
    server = asking(handlers=handlers() | connection_handlers(Proxies(DoorsConfig())))
    with pytest.raises(LoginError, match="ann has come in, and may not act for bob"):
        login(server, user="bob")
    with login(server) as connection:
        assert connection.call("set_ugi", "ann", ["g"]) == ["g", "ann"]
        with pytest.raises(MetastoreError, match="ann has come in, and may not act for bob"):
            connection.call("set_ugi", "bob", [])
        assert connection.call("getVersion") == "ann ann"
    with negotiation(server, b"bob\0ann\0geheim") as (status, words):
        assert (status, words) == (3, b"ann has come in, and may not act for bob (hadoop.proxyuser.ann.hosts)")


def test_a_password_that_is_changed_or_taken_away_counts_at_once(
    asking: Guarded, file: Path, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(passwords, "LOOK_AGAIN_S", 0.0)
    server = asking()
    login(server).close()
    passwords.change(file, "ann", "neu")
    with pytest.raises(LoginError):
        login(server)
    login(server, Login("ann", "neu")).close()
    passwords.change(file, "ann", None)
    with pytest.raises(LoginError):
        login(server, Login("ann", "neu"))
    file.write_text("nonsense\n")
    with pytest.raises(LoginError, match="cannot check who it is now"):
        login(server, Login("ann", "neu"))
    passwords.change(file.with_name("other"), "ann", "geheim")
    file.with_name("other").replace(file)
    login(server).close()


@pytest.mark.parametrize("tls", [False, True])
def test_open_connections_go_with_their_password(
    tls: bool, asking: Guarded, file: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setattr(passwords, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(guests, "LOOK_S", 0.02)
    server = asking(tls=tls)
    secured: dict[str, Any] = {"tls": Tls(ca=str(authority.ca))} if tls else {}

    def come(user: str, password: str) -> None:
        connection = login(server, Login(user, password), **secured)
        connection.call("getStatus")
        inside.append(connection)

    def count() -> int:
        return len(server.server.connections)

    def replaced(text: str) -> None:
        """At once: a file that is empty for a moment lets nobody in."""
        other = file.with_suffix(".new")
        other.write_text(text)
        other.rename(file)

    inside: list[Any] = []
    try:
        for _ in range(3):
            come("ann", "geheim")
        come("bölle", "pä ss:wort")
        until(lambda: count() == 4)
        good = file.read_text()
        replaced("nonsense\n")  # sends nobody away
        stays(lambda: count() == 4, 0.2)
        replaced(good)
        passwords.change(file, "cid", "x")  # nor does another one's
        stays(lambda: count() == 4, 0.2)
        passwords.change(file, "ann", "neu")
        until(lambda: count() == 1)
        assert sum("the password of 'ann' has changed" in line for line in log()) == 3
        come("ann", "neu")
        passwords.change(file, "bölle", None)
        until(lambda: count() == 1)
        inside[-1].call("getStatus")
    finally:
        for connection in inside:
            connection.close()


def test_it_is_hashed_once(asking: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    hashed = hashlib.scrypt
    server = asking()
    monkeypatch.setattr(hashlib, "scrypt", lambda password, **how: made.append(password) or hashed(password, **how))
    for _ in range(5):
        login(server).close()
    assert made == [b"geheim"]
    with pytest.raises(LoginError):
        login(server, Login("eve", "x"))
    assert made == [b"geheim", b"x"]  # as much work for a user who is not there


def test_a_connection_that_is_lost_is_made_anew(asking: Guarded) -> None:
    server = asking(handlers=handlers())
    with login(server) as connection:
        connection.call("shutdown")
        until(lambda: not len(server.server.connections))
        assert connection.call("getVersion") == "ann ann"
        assert status_of(bounded(lambda: int(connection.call("getVersion") != "ann ann"))) == 0


def test_threads_share_a_connection(asking: Guarded) -> None:
    server = asking(handlers=handlers())
    with login(server) as connection:
        assert wrong_answers_to_threads(connection) == []


# --- who speaks otherwise -------------------------------------------------------------------------


def test_who_comes_without_sasl_is_told_what_to_do(asking: Guarded, log: Log) -> None:
    server = asking()
    with pytest.raises(
        MetastoreUnreachableError, match=r"does it ask for a password\? Then give thrift\+tls://user@host"
    ):
        connect(f"thrift://127.0.0.1:{server.port}")
    until(log)
    (line,) = log()
    assert "it speaks plain Thrift, and this port asks for SASL (metastore.authentication)" in line


def test_who_comes_with_sasl_to_a_port_that_asks_nobody(guarded: Guarded, log: Log) -> None:
    with pytest.raises(MetastoreUnreachableError):
        login(guarded(tls=False))
    until(log)
    (line,) = log()
    assert "it speaks SASL, and this port speaks plain Thrift" in line


def test_apaches_thrift_of_python_comes_in(asking: Guarded) -> None:
    """Its TSaslClientTransport, by the three lines of PLAIN that pure-sasl has."""

    class Plain:
        mechanism, complete = "PLAIN", True

        def process(self, challenge: object = None) -> bytes:
            return b"\0ann\0geheim"

        def wrap(self, data: bytes) -> bytes:
            return data

        unwrap = wrap

        def dispose(self) -> None: ...

    server = asking(handlers=handlers())
    carrier = TSaslClientTransport.__new__(TSaslClientTransport)
    own = ApacheSocket("127.0.0.1", server.port)
    vars(carrier).update(
        transport=own, sasl=Plain(), _max_negotiation_size=1 << 20, _max_frame_size=1 << 24,
        _TSaslClientTransport__wbuf=io.BytesIO(), _TSaslClientTransport__rbuf=io.BytesIO(),
    )  # fmt: skip
    carrier.open()
    memory = TMemoryBuffer()
    client = TClient(service, TCyBinaryProtocol(TCyBufferedTransport(memory)))
    client._send("getName")
    carrier.write(memory.getvalue())
    carrier.flush()
    assert LARGE.encode() in carrier.readAll(len(LARGE) + 27)
    carrier.close()


class negotiation:  # noqa: N801 - a function with a context
    """What a server answers to a response of PLAIN, or to other messages."""

    def __init__(self, server: Running, response: bytes = b"\0ann\0geheim", *, raw: bytes | None = None) -> None:
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        self.sock.sendall(message(1, b"PLAIN") + message(2, response) if raw is None else raw)

    def __enter__(self) -> tuple[int, bytes]:
        head = b""
        while len(head) < 5:
            part = self.sock.recv(5 - len(head))
            if not part:
                return 0, b""
            head += part
        status, length = struct.unpack(">BI", head)
        return status, self.sock.recv(length) if length else b""

    def __exit__(self, *_: object) -> None:
        self.sock.close()


def message(status: int, payload: bytes = b"") -> bytes:
    return struct.pack(">BI", status, len(payload)) + payload


@pytest.mark.parametrize(
    ("raw", "status", "words"),
    [
        (message(1, b"GSSAPI"), 3, b"'GSSAPI' is not served"),
        (message(1, b"\xff\xfe"), 3, b"is not served"),
        (message(1, b"PLAIN") + message(1, b"PLAIN"), 4, b"status 1 where 2 is due"),
        (message(1, b"PLAIN") + message(3), 0, b""),
        (message(1, b"PLAIN") + message(2, b"ann"), 3, b"not the user and the password"),
        (message(1, b"PLAIN") + message(2, b"\0ann\0geheim\0"), 3, b"not the user and the password"),
        (message(1, b"PLAIN") + message(2, b"\0\xff\0geheim"), 3, b"not the user and the password"),
        (message(1, b"PLAIN") + message(5, b"\0ann\0geheim"), 5, b""),
        (message(1, b"PLAIN") + message(2, b"ann\0ann\0geheim"), 5, b""),
        (b"\x01\xff\xff\xff\xff", 4, b"a message of 4294967295 bytes"),
        (message(2), 0, b""),
    ],
)
def test_negotiations(raw: bytes, status: int, words: bytes, asking: Guarded) -> None:
    server = asking()
    with negotiation(server, raw=raw) as found:
        assert found[0] == status
        assert words in found[1]
    until(lambda: not len(server.server.connections))


def test_who_sends_on_before_it_is_in_waits(asking: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    admits = passwords.Passwords.admits
    monkeypatch.setattr(passwords.Passwords, "admits", lambda *a: goes_on.wait(10) and admits(*a))
    server = asking()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(message(1, b"PLAIN") + message(2, b"\0ann\0geheim"))
        sock.settimeout(1)
        with pytest.raises(TimeoutError):
            sock.sendall(bytes(100_000_000))
        assert server.server.debts.total_bytes < 1_000_000
        goes_on.set()
    until(lambda: not len(server.server.connections))


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_frames_and_messages_end_where_they_like(seed: int, asking: Guarded) -> None:
    """Calls cut into frames, empty ones too, and frames into packets: the answers are those of whole calls."""
    chance = random.Random(seed)
    server = asking(handlers=handlers())
    memory = TMemoryBuffer()
    client = TClient(service, TCyBinaryProtocol(TCyBufferedTransport(memory)))
    wanted = ["k" * chance.choice((0, 1, 100, 70_000)) for _ in range(20)]
    for key in wanted:
        client._send("getOption", key=key)
    calls = memory.getvalue()
    framed = b""
    while calls:
        size = chance.choice((0, 1, 3, 4, 1000, 100_000))
        framed += struct.pack(">I", len(calls[:size])) + calls[:size]
        calls = calls[size:]
    words = message(1, b"PLAIN") + message(2, b"\0ann\0geheim") + framed
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:

        def send() -> None:
            left = words
            while left:
                size = chance.choice((1, 2, 5, 4096, 200_000))
                sock.sendall(left[:size])
                left = left[size:]

        sending = threading.Thread(target=send)
        sending.start()
        stream = sock.makefile("rb")
        assert stream.read(5) == message(5)
        found = b""
        expected = sum(map(len, wanted)) + 20 * len(_reply(""))
        while len(found) < expected:
            (length,) = struct.unpack(">I", stream.read(4))
            found += stream.read(length)
        sending.join()
    assert found == b"".join(_reply(key) for key in wanted)


def _reply(text: str) -> bytes:
    data = text.encode()
    head = b"\x80\x01\x00\x02\x00\x00\x00\x09getOption\x00\x00\x00\x00"
    return head + b"\x0b\x00\x00" + struct.pack(">I", len(data)) + data + b"\x00"


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_end_their_own_connection_alone(seed: int, asking: Guarded, log: Log) -> None:
    chance = random.Random(seed)
    server = asking(handlers=handlers())
    good = message(1, b"PLAIN") + message(2, b"\0ann\0geheim") + struct.pack(">I", 30) + bytes(30)
    with login(server) as connection:
        for _ in range(150):
            words = bytearray(good)
            for _ in range(chance.choice((0, 1, 1, 2, 20))):
                words[chance.randrange(len(words))] = chance.choice((0, 1, 5, 255, chance.randrange(256)))
            words = words[: chance.randrange(1, len(words) + 1)] * chance.choice((1, 1, 1, 3))
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
                try:
                    sock.sendall(words)
                    if chance.random() < 0.3:
                        sock.settimeout(0.2)
                        sock.recv(100)
                except OSError:
                    pass
        assert connection.call("getOption", "still") == "still"
    until(lambda: not len(server.server.connections))
    assert server.server.debts.total_bytes == 0


# --- where, and the file --------------------------------------------------------------------------


def test_passwords_do_not_come_in_clear_from_other_machines(file: Path) -> None:
    own = ["metastore.authentication=password", f"metastore.authentication.password.file={file}"]
    with pytest.raises(OpenDoorError, match=r"passwords would come .*metastore\.use\.SSL"):
        bound("0.0.0.0", 0, Config.parse(own).doors)
    bound("127.0.0.1", 0, Config.parse(own).doors).close()
    for said in ("metastore.authentication.password.in.clear=true", "metastore.use.SSL=true"):
        bound("0.0.0.0", 0, Config.parse([*own, said]).doors).close()


def test_our_client_sends_none_in_clear_to_another_machine(asking: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    server = asking()
    monkeypatch.setattr("hive_acid.login.is_loopback", lambda address: False)
    with pytest.raises(AddressError, match="for everybody on the way to read"):
        login(server)
    login(server, Login("ann", "geheim", in_clear=True)).close()


def test_a_password_is_not_shown() -> None:
    assert "geheim" not in repr(ANN)
    assert pickle.loads(pickle.dumps(ANN)) == ANN


@pytest.mark.parametrize(
    "text", ["ann", ":scrypt$1$1$1$$", "ann:x", "ann:scrypt$30$8$1$AA==$AA==", "ann:scrypt$4$8$1$A$A"]
)
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"# who\n\n{text}\n")
    settings = ["metastore.authentication=password", f"metastore.authentication.password.file={tmp_path / 'users'}"]
    with pytest.raises(SettingError, match=r"line 3 of the file of passwords .* is not user:hash"):
        Doors(Config.parse(settings).doors)
    with pytest.raises(SettingError, match=r"cannot be read: .*`metastore passwd` makes it"):
        Doors(Config.parse([settings[0], "metastore.authentication.password.file=/nowhere"]).doors)
