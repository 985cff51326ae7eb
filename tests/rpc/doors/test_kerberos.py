"""SASL GSSAPI on the Thrift port, with a KDC: who comes in, who does not, and frames that are sealed."""

import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TCyBufferedTransport, TMemoryBuffer

from hive_acid import DelegationToken, Kerberos, Tls, connect
from hive_acid.connection import Connection
from hive_acid.errors import AddressError, LoginError, MetastoreError, MetastoreUnreachableError
from hive_acid.sasl.frames import SaslSocket
from hive_acid.wire import service
from metastore import cli
from metastore.config import Config
from metastore.rpc.doors import door
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.handlers.session import connection_handlers
from metastore.settings import SettingError
from tests.authority import Authority, Pair
from tests.rpc.doors.conftest import tls_settings, wrong_answers_to_threads
from tests.rpc.doors.realm import REALM, Realm, missing, realm
from tests.rpc.doors.test_sasl import message, negotiation
from tests.rpc.test_server import Running, base_handlers
from tests.served import served
from tests.waiting import until

Guarded = Callable[..., Running]
Log = Callable[[], list[str]]
LARGE = "x" * 3_000_000
SERVICE = f"hive/localhost@{REALM}"
PROTECTIONS = ("authentication", "integrity", "privacy")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    if (words := missing()) is not None:
        pytest.skip(words)
    with realm(tmp_path_factory.mktemp("realm")) as running:
        running.add("ann")
        running.add("hive/localhost")
        yield running


@pytest.fixture(autouse=True)
def _ticket(house: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody here is in the realm, and has ann's ticket."""
    house.enter(monkeypatch)
    monkeypatch.setenv("KRB5CCNAME", str(house.ticket("ann")))


@pytest.fixture
def asking(guarded: Guarded, house: Realm) -> Guarded:
    """A server that asks for tickets, without TLS."""

    def start(*settings: str, tls: bool = False, **how: Any) -> Running:
        return guarded(*asked(house.keytab("hive/localhost")), *settings, tls=tls, **{"handlers": handlers(), **how})

    return start


def asked(keytab: Path) -> list[str]:
    return [
        "hive.metastore.sasl.enabled=true",
        f"hive.metastore.kerberos.keytab.file={keytab}",
        f"hive.metastore.kerberos.principal={SERVICE}",
    ]


def handlers() -> Any:
    return base_handlers() | {
        "getOption": lambda call, key: key,
        "getName": lambda call: LARGE,
        "getVersion": lambda call: f"{call.user} {call.session.authenticated}",
    }


def login(server: Running, who: Kerberos = Kerberos(), **how: Any) -> Connection:  # noqa: B008 - frozen
    return connect(f"thrift{'+tls' if 'tls' in how else ''}://localhost:{server.port}", login=who, **how)


# --- who comes in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_with_a_ticket_one_comes_in(protection: str, asking: Guarded) -> None:
    server = asking()
    with login(server, Kerberos(protection=protection)) as connection:
        assert connection.user == "ann"
        assert connection.call("getVersion") == "ann ann"
        assert connection.call("getName") == LARGE
        for size in (0, 1, 65_536, 300_000, 5_000_000):
            assert connection.call("getOption", "y" * size) == "y" * size
        assert wrong_answers_to_threads(connection) == []


@pytest.mark.parametrize("service", ["hive/_HOST", f"hive/_HOST@{REALM}", SERVICE])
def test_the_metastore_is_known_by_its_principal(service: str, asking: Guarded) -> None:
    login(asking(), Kerberos(service)).close()


def test_a_keytab_does_without_a_cache(asking: Guarded, house: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    server = asking()
    monkeypatch.setenv("KRB5CCNAME", str(house.place / "none"))
    bob = Kerberos(principal=f"bob@{REALM}", keytab=str(house.add("bob")))
    with login(server, bob) as connection:
        assert connection.call("getVersion") == "bob bob"
    with pytest.raises(LoginError, match=r"there is no ticket of Kerberos: .*Run kinit"):
        login(server)
    with pytest.raises(LoginError, match="there is no ticket of Kerberos"):
        login(server, replace(bob, principal=f"eve@{REALM}"))
    with pytest.raises(LoginError, match="there is no ticket of Kerberos"):
        login(server, replace(bob, keytab="/nowhere"))


def test_the_environment_says_so(asking: Guarded, house: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"thrift://localhost:{asking().port}"
    with pytest.raises(MetastoreUnreachableError, match=r"for Kerberos\? Then HIVE_ACID_KERBEROS"):
        connect(uri)
    monkeypatch.setenv("HIVE_ACID_KERBEROS", "hive/_HOST")
    with connect(uri) as connection:
        assert connection.call("getVersion") == "ann ann"
        assert connection.uri == uri
    monkeypatch.setenv("HIVE_ACID_KERBEROS_KEYTAB", str(house.add("cid")))
    monkeypatch.setenv("HIVE_ACID_KERBEROS_PRINCIPAL", "cid")
    with connect(uri) as connection:
        assert connection.call("getVersion") == "cid cid"


def test_over_tls(asking: Guarded, authority: Authority, pair: Pair) -> None:
    server = asking(*tls_settings(pair))
    with login(server, tls=Tls(ca=str(authority.ca))) as connection:
        assert connection.call("getVersion") == "ann ann"
        assert connection.call("getOption", LARGE) == LARGE


def test_rules_say_which_user_a_principal_is(asking: Guarded, house: Realm, log: Log) -> None:
    house.add("dan/admin")
    server = asking(f"hadoop.security.auth_to_local=RULE:[2:$1_$2@$0](dan_.*@{REALM})s/@.*//")
    dan = Kerberos(principal="dan/admin", keytab=str(house.keytab("dan/admin")))
    with login(server, dan) as connection:
        assert connection.call("getVersion") == "dan_admin dan_admin"
    with pytest.raises(LoginError, match=f"ann@{REALM} is no user by hadoop.security.auth_to_local"):
        login(server)
    until(log)


def test_a_token_stands_for_a_ticket(
    house: Realm, postgres_url: str, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    """Got with a ticket, used without one, renewed and cancelled by another; it gets no other."""
    house.add("yarn/localhost")
    settings = dict(one.split("=", 1) for one in asked(house.keytab("hive/localhost")))
    settings["metastore.audit.file"] = str(tmp_path / "audit")
    with served(postgres_url, template, tmp_path / "w", settings) as running:
        address = running.uri.replace("127.0.0.1", "localhost")
        with connect(address, login=Kerberos()) as connection:
            text = connection.call("get_delegation_token", "ann", f"yarn/localhost@{REALM}")
        (tmp_path / "token").write_text(f"{text}\n")
        monkeypatch.setenv("HIVE_ACID_DELEGATION_TOKEN_FILE", str(tmp_path / "token"))
        monkeypatch.setenv("KRB5CCNAME", str(house.place / "none"))
        with connect(address) as connection:
            assert connection.user == "ann"
            assert connection.login == DelegationToken(text)
            connection.call("set_ugi", "ann", [])
            with pytest.raises(MetastoreError, match="ann has come in, and may not act for eve"):
                connection.call("set_ugi", "eve", [])
            connection.create_database("anns", comment="x" * 2_000_000)
        with monkeypatch.context() as patch:  # as a program on YARN has it, whose settings ask for Kerberos
            patch.delenv("HIVE_ACID_DELEGATION_TOKEN_FILE")
            patch.setenv("HIVE_ACID_KERBEROS", "hive/_HOST")
            patch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "token"))
            with connect(address) as connection:
                assert connection.login == DelegationToken(text)
        with connect(address) as connection:
            assert len(connection.call("get_database", "anns").description) == 2_000_000
            for method, words in (("get", ("ann", "ann")), ("renew", (text,))):
                with pytest.raises(MetastoreError, match=f"does not {method} one: log in with a ticket"):
                    connection.call(f"{method}_delegation_token", *words)
        yarn = Kerberos(principal="yarn/localhost", keytab=str(house.keytab("yarn/localhost")))
        with connect(address, login=yarn) as connection:
            assert connection.call("renew_delegation_token", text) > time.time() * 1000
            assert connection.call("get_all_token_identifiers") == connection.call("get_master_keys") == []
            connection.call("cancel_delegation_token", text)
        with pytest.raises(LoginError, match="no token that is good here"):
            connect(address)
        assert text not in "".join(log())
        until(lambda: "no token that is good here" in (tmp_path / "audit").read_text())
    lines = list(map(json.loads, (tmp_path / "audit").read_text().splitlines()))
    assert text not in (tmp_path / "audit").read_text()
    told = {(line["method"], line["user"], line["outcome"]) for line in lines if "token" in line["method"]}
    assert {
        ("get_delegation_token", "ann", "fine"),
        ("get_delegation_token", "ann", "refused"),
        ("renew_delegation_token", "yarn", "fine"),
        ("cancel_delegation_token", "yarn", "fine"),
    } <= told
    (tmp_path / "token").unlink()
    with pytest.raises(AddressError, match="cannot read the delegation token in"):
        connect(address)


def test_tokens_have_no_encryption(house: Realm, postgres_url: str, template: str, tmp_path: Path) -> None:
    """Where everything is to be encrypted there are none, unless TLS does it."""
    settings = dict(
        one.split("=", 1) for one in [*asked(house.keytab("hive/localhost")), "hadoop.rpc.protection=privacy"]
    )
    with served(postgres_url, template, tmp_path / "w", settings) as running:
        address = running.uri.replace("127.0.0.1", "localhost")
        with (
            connect(address, login=Kerberos()) as connection,
            pytest.raises(MetastoreError, match=r"only with privacy .* and without TLS"),
        ):
            connection.call("get_delegation_token", "ann", "ann")


def test_who_acts_for_others(asking: Guarded) -> None:
    own = handlers() | connection_handlers(Proxies(Config.parse([]).doors))
    with pytest.raises(LoginError, match="ann has come in, and may not act for bob"):
        login(asking(handlers=own), user="bob")
    server = asking("hadoop.proxyuser.ann.hosts=127.0.0.1", "hadoop.proxyuser.ann.users=bob", handlers=own)
    with login(server, user="bob") as connection:
        assert connection.call("getVersion") == "bob ann"
        with pytest.raises(MetastoreError, match="may not act for eve"):
            connection.call("set_ugi", "eve", [])
    with pytest.raises(LoginError, match="may not act for eve"):
        login(server, user="eve")


# --- who does not ---------------------------------------------------------------------------------


def test_a_ticket_for_somebody_else(asking: Guarded, house: Realm, log: Log) -> None:
    server = asking()
    house.add("hive/elsewhere")
    with pytest.raises(LoginError, match="the metastore does not let ann in: "):
        login(server, Kerberos(f"hive/elsewhere@{REALM}"))
    until(log)
    with pytest.raises(LoginError, match="gives no ticket for hive/nowhere"):
        login(server, Kerberos(f"hive/nowhere@{REALM}"))


def test_a_ticket_that_has_ended(asking: Guarded, house: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    server = asking()
    cache = house.ticket("ann", life="1s", name="short")
    monkeypatch.setenv("KRB5CCNAME", str(cache))
    until(lambda: subprocess.run(["klist", "-s", "-c", str(cache)]).returncode != 0)
    with pytest.raises(LoginError, match="expired"):
        login(server)


def test_keys_that_are_changed_count_at_once(asking: Guarded, house: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    keytab = house.add("hive/changing")
    settings = [*asked(keytab), f"hive.metastore.kerberos.principal=hive/changing@{REALM}"]
    server = asking(*settings[1:])
    who = Kerberos(f"hive/changing@{REALM}")
    login(server, who).close()
    kept = keytab.with_name("kept")
    keytab.rename(kept)
    with pytest.raises(LoginError, match="the metastore cannot check who it is now"):
        login(server, who)
    kept.rename(keytab)
    house.administer(f"cpw -randkey hive/changing@{REALM}")
    monkeypatch.setenv("KRB5CCNAME", str(house.ticket("ann", name="new")))  # the old ticket is good for the old key
    with pytest.raises(LoginError, match="does not let ann in"):
        login(server, who)
    house.administer(f"ktadd -norandkey -k {keytab} hive/changing@{REALM}")
    login(server, who).close()


def test_a_keytab_without_the_key(house: Realm, tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(bytes(range(200)))
    for keytab in (house.keytab("ann"), tmp_path / "none", tmp_path / "garbage"):
        with pytest.raises(SettingError, match=rf"{keytab} holds no key of {SERVICE} .*that can be used"):
            Doors(Config.parse(asked(keytab)).doors)
    settings = [*asked(house.keytab("hive/localhost"))[:2], "metastore.kerberos.principal=@@"]
    with pytest.raises(SettingError, match="holds no key of @@"):
        Doors(Config.parse(settings).doors)


def test_the_doctor_looks_at_the_keytab(
    house: Realm, db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("metastore.doctor._java", lambda options: "")
    place = ["--database-url", db_url, "--warehouse", str(tmp_path / "w")]
    for keytab, words in ((house.keytab("hive/localhost"), "ok   doors: the files for Kerberos can be used"),
                          (house.keytab("ann"), "BAD  doors: metastore.kerberos.keytab.file")):  # fmt: skip
        cli.main(["doctor", *place, *(word for one in asked(keytab) for word in ("--set", one))])
        assert words in capsys.readouterr().out


def test_a_clock_that_is_wrong(asking: Guarded, house: Realm, tmp_path: Path, log: Log) -> None:
    """A client whose clock is ten minutes ahead, and who does not ask the KDC what time it is."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        pytest.skip("needs libfaketime")
    server = asking()
    login(server).close()  # the cache has a ticket for the metastore now
    config = tmp_path / "krb5.conf"
    config.write_text(
        Path(house.environment["KRB5_CONFIG"]).read_text().replace("[realms]", "  kdc_timesync = 0\n[realms]", 1)
    )
    script = f"import hive_acid; hive_acid.connect('thrift://localhost:{server.port}', login=hive_acid.Kerberos())"
    environment = {**os.environ, "KRB5_CONFIG": str(config)}

    def outcome(**more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script], env={**environment, **more}, capture_output=True, text=True, timeout=60
        )
        return done.stderr.strip().rpartition("\n")[2]

    assert outcome() == ""
    found = outcome(LD_PRELOAD=str(library), FAKETIME="+600", FAKETIME_DONT_FAKE_MONOTONIC="1")
    assert "LoginError" in found
    assert "Clock skew too great" in found
    assert any("Clock skew too great" in line for line in log())


def test_protections_that_the_other_side_does_not_want(asking: Guarded) -> None:
    server = asking("hadoop.rpc.protection=integrity")
    with pytest.raises(LoginError, match=r"offers integrity \(hadoop.rpc.protection\), and we ask for privacy"):
        login(server, Kerberos(protection="privacy"))
    login(server, Kerberos(protection="privacy,integrity")).close()
    with pytest.raises(AddressError, match="protection='secret' is not one or more of"):
        Kerberos(protection="secret")
    with pytest.raises(AddressError, match="are not shown over HTTP"):
        connect("https://localhost", login=Kerberos())


@pytest.mark.parametrize(
    ("layer", "most_bytes", "words"),
    [
        (4, 1 << 20, "no layer of those"),
        (3, 1 << 20, "no layer of those"),
        (0, 0, "no layer"),
        (2, 1000, "1024 are the least"),
    ],
)
def test_who_chooses_what_is_not_offered(layer: int, most_bytes: int, words: str, asking: Guarded) -> None:
    server = asking("hadoop.rpc.protection=authentication,integrity")
    with Wire(server) as wire, pytest.raises(LoginError, match=words):
        SaslSocket(wire, _Choosing(bytes([layer]) + most_bytes.to_bytes(3)), "ann")


def test_who_has_not_proved_itself_is_not_believed(house: Realm) -> None:
    """A server that says COMPLETE at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(10_000)
                sock.sendall(message(5))
                sock.recv(10_000)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(LoginError, match="what answers has not proved that it is hive"):
            connect(f"thrift://localhost:{listener.getsockname()[1]}", login=Kerberos())
        thread.join()


class _Choosing:
    """Our mechanism, which answers something else to the layers that are offered."""

    name = "GSSAPI"

    def __init__(self, answer: bytes) -> None:
        self._ticket = Kerberos().mechanism("localhost", None)
        self._answer = answer

    is_complete = False

    def respond(self, challenge: bytes | None) -> bytes:
        context: Any = self._ticket._context  # type: ignore[attr-defined]
        if not context.complete:
            return self._ticket.respond(challenge)
        message: bytes = context.wrap(self._answer, False).message
        return message

    def end(self, payload: bytes) -> None: ...


class Wire:
    """A socket as thriftpy2 has it."""

    def __init__(self, server: Running) -> None:
        self.sock = socket.create_connection(("localhost", server.port), timeout=20)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def write(self, data: bytes) -> None:
        self.sock.sendall(data)

    def read(self, size: int) -> bytes:
        found = self.sock.recv(size)
        if not found:
            raise EOFError("closed")
        return found


# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "status", "words"),
    [
        (message(1, b"GSSAPI") + message(2, b"garbage"), 3, b""),
        (message(1, b"GSSAPI") + message(2, b""), 3, b""),
        (message(1, b"GSSAPI") + b"\x02\x00\x01\x00\x01", 4, b"a message of 65537 bytes"),
        (message(1, b"PLAIN"), 3, b"the mechanism 'PLAIN' is not served, only GSSAPI is"),
        (message(1, b"GSSAPI" * 200), 4, b"a message of 1200 bytes"),
        (message(3, b"GSS initiate failed"), 0, b""),
    ],
)
def test_negotiations(raw: bytes, status: int, words: bytes, asking: Guarded) -> None:
    server = asking()
    with negotiation(server, raw=raw) as found:
        assert found[0] == status
        assert words in found[1]
    until(lambda: not len(server.server.connections))


def sealed(server: Running, protection: str, chance: random.Random, calls: bytes) -> tuple[Wire, SaslSocket, bytes]:
    """A socket that has come in, and calls in frames cut by chance: some are empty, some are opened on a thread."""
    wire = Wire(server)
    sasl = SaslSocket(wire, Kerberos(protection=protection).mechanism("localhost", None), "ann")
    assert sasl._seal is not None
    framed = b""
    while calls:
        size = chance.choice((0, 1, 3, 1000, 100_000, 700_000))
        frame = sasl._seal.sealed(calls[:size])
        framed += struct.pack(">I", len(frame)) + frame
        calls = calls[size:]
    return wire, sasl, framed


def questions(texts: list[str]) -> bytes:
    memory = TMemoryBuffer()
    client = TClient(service, TCyBinaryProtocol(TCyBufferedTransport(memory)))
    for text in texts:
        client._send("getOption", key=text)
    found: bytes = memory.getvalue()
    return found


def answers(texts: list[str]) -> bytes:
    head = b"\x80\x01\x00\x02\x00\x00\x00\x09getOption\x00\x00\x00\x00\x0b\x00\x00"
    return b"".join(head + struct.pack(">I", len(text)) + text.encode() + b"\x00" for text in texts)


@pytest.mark.parametrize("protection", PROTECTIONS[1:])
@pytest.mark.parametrize("seed", range(4))
def test_sealed_frames_end_where_they_like(seed: int, protection: str, asking: Guarded) -> None:
    """Calls cut into frames, and these into packets, while replies come: the answers are those of whole calls."""
    chance = random.Random(seed)
    server = asking()
    texts = ["k" * chance.choice((0, 1, 100, 70_000, 1_500_000)) for _ in range(20)]
    wire, sasl, framed = sealed(server, protection, chance, questions(texts))
    with wire:

        def send() -> None:
            left = framed
            while left:
                size = chance.choice((1, 2, 5, 4096, 200_000))
                wire.sock.sendall(left[:size])
                left = left[size:]

        sending = threading.Thread(target=send)
        sending.start()
        wanted, found = answers(texts), bytearray()
        while len(found) < len(wanted):
            found += sasl.read(1 << 20)
        sending.join()
    assert found == wanted
    until(lambda: not len(server.server.connections))
    assert server.server.debts.total_bytes == 0


@pytest.mark.parametrize("protection", PROTECTIONS[1:])
@pytest.mark.parametrize("seed", range(6))
def test_frames_that_are_changed_are_not_read(seed: int, protection: str, asking: Guarded, log: Log) -> None:
    """Bits, frames left out, sent twice or in another order: nothing of them is done."""
    chance = random.Random(seed)
    told: list[str] = []
    own = handlers() | {"getOption": lambda call, key: told.append(key) or key}
    server = asking(handlers=own)
    texts = [f"{number}" * chance.choice((1, 100, 400_000)) for number in range(4)]
    wire = Wire(server)
    sasl = SaslSocket(wire, Kerberos(protection=protection).mechanism("localhost", None), "ann")
    assert sasl._seal is not None
    frames = [bytearray(sasl._seal.sealed(questions([text]))) for text in texts]
    what = chance.choice(("bits", "order", "twice", "left out"))
    if what == "bits":
        broken = chance.choice(frames)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
    elif what == "order":
        frames.reverse()
    elif what == "twice":
        frames.insert(1, frames[0])
    else:
        del frames[1]
    with wire:
        wire.sock.sendall(b"".join(struct.pack(">I", len(frame)) + frame for frame in frames))
        until(lambda: not len(server.server.connections))
    assert told == texts[: len(told)]
    assert len(told) < len(texts)
    assert any("a frame is not as it was sent" in line for line in log())


def test_a_frame_that_is_too_large(asking: Guarded, log: Log) -> None:
    server = asking(max_message_bytes=100_000)
    with Wire(server) as wire:
        SaslSocket(wire, Kerberos().mechanism("localhost", None), "ann")
        wire.write(struct.pack(">I", 200_000))
        assert wire.sock.recv(1) == b""
    assert any("a frame of 200000 bytes came" in line for line in log())


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_end_their_own_connection_alone(seed: int, asking: Guarded, log: Log) -> None:
    """Tickets with letters changed, cut, doubled, or of another connection; beside them somebody goes on."""
    chance = random.Random(seed)
    server = asking()
    with login(server) as connection:
        for _ in range(60):
            token = Kerberos().mechanism("localhost", None).respond(None)
            words = bytearray(message(1, b"GSSAPI") + message(2, token) + message(2) + message(5, bytes(40)))
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
    assert not any("has come" in line and "getOption" in line for line in log())


def test_a_ticket_is_good_for_one_connection(asking: Guarded) -> None:
    """What somebody has overheard does not open the door again."""
    server = asking()
    token = Kerberos().mechanism("localhost", None).respond(None)
    told = []
    for _ in range(2):
        with negotiation(server, raw=message(1, b"GSSAPI") + message(2, token)) as (status, _words):
            told.append(status)
    assert told == [2, 3]


def test_slow_clients_have_a_time_limit(asking: Guarded, monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    monkeypatch.setattr(door, "PATIENCE_S", 0.3)
    server = asking()
    with Wire(server) as wire:
        wire.write(message(1, b"GSSAPI") + b"\x02\x00\x00\x10\x00half of it")
        assert wire.sock.recv(1) == b""
    assert any("it has not come in for 0.3 s" in line for line in log())
    monkeypatch.setattr(door, "PATIENCE_S", 10.0)
    server = asking(request_timeout_ms=300)
    with Wire(server) as wire:
        SaslSocket(wire, Kerberos().mechanism("localhost", None), "ann")
        wire.write(struct.pack(">I", 1000) + b"half of it")
        assert wire.sock.recv(1) == b""
    assert any("the request has not come whole within 0.3 s" in line for line in log())
    until(lambda: not len(server.server.connections))
    assert server.server.debts.total_bytes == 0
