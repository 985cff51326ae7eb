"""Users that act for others, by each way to come in."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid import Login, Token, connect
from hive_acid.errors import LoginError, MetaError
from metastore.config import Config
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users import passwords
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.handlers.session import connection_handlers
from metastore.settings import SettingError
from tests.rpc.doors.issuer import Issuer
from tests.rpc.test_server import Running, base_handlers

HERE = "127.0.0.1"
OWN_USER = pwd.getpwuid(os.getuid()).pw_name
OWN_GROUP = grp.getgrgid(os.getgid()).gr_name


def rules(**of_ann: str) -> list[str]:
    return [f"hadoop.proxyuser.ann.{name}={value}" for name, value in of_ann.items()]


def refusal(user: str, other: str, client: str, *settings: str) -> str | None:
    return Proxies(Config.parse(settings).doors).refusal(user, other, client)


@pytest.mark.parametrize(
    ("settings", "may"),
    [
        (rules(hosts="*", users="*"), True),
        (rules(hosts="*", users="bob"), True),
        (rules(hosts="*", users=" cid , bob "), True),
        (rules(hosts="10.0.0.1, 127.0.0.0/8", users="bob"), True),
        (rules(hosts="localhost", users="bob"), True),
        (rules(hosts="*", groups="*"), True),
        (rules(hosts="*", users="cid", groups="*"), True),
        ([], False),
        (rules(hosts="*", users="Bob"), False),
        (rules(hosts="*", users="bo"), False),
        (rules(hosts="*", users=""), False),
        (rules(hosts="", users="*"), False),
        (rules(hosts="10.0.0.0/8", users="*"), False),
        (rules(hosts="*", groups="wheel-of-nobody"), False),
        (["hadoop.proxyuser.cid.hosts=*", "hadoop.proxyuser.cid.users=*"], False),
    ],
)
def test_rules(settings: list[str], may: bool) -> None:
    for client in (HERE, f"::ffff:{HERE}"):
        found = refusal("ann", "bob", client, *settings)
        assert (found is None) is may
        assert may or (found and "ann" in found and "hadoop.proxyuser.ann" in found)
    assert refusal("ann", "ann", HERE, *settings) is None
    assert refusal("bob", "ann", HERE, *settings) is not None


def test_groups_are_those_of_the_machine() -> None:
    assert refusal("ann", OWN_USER, HERE, *rules(hosts="*", groups=OWN_GROUP)) is None
    assert refusal("ann", "nobody-of-that-name", HERE, *rules(hosts="*", groups=OWN_GROUP)) is not None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (rules(users="*"), "hosts is missing"),
        (rules(groups="*"), "hosts is missing"),
        (rules(hosts="*"), "users or .groups is missing"),
        (rules(hosts="no such host", users="*"), "neither an address"),
    ],
)
def test_rules_that_can_never_hold(settings: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Doors(Config.parse(settings).doors)


@pytest.fixture
def served(tmp_path: Path) -> Any:
    """Servers by their settings, with users ann and eve; the version is who it is."""
    file = tmp_path / "users"
    for user in ("ann", "eve"):
        passwords.change(file, user, "geheim")
    started: list[tuple[Running, Doors]] = []

    def start(*settings: str, is_http: bool = False, issuer: Issuer | None = None) -> Running:
        given = list(settings)
        if is_http:
            given.append("metastore.server.thrift.transport.mode=http")
        if issuer is None:
            given += ["metastore.authentication=password", f"metastore.authentication.password.file={file}"]
        else:
            given += [f"{key}={value}" for key, value in issuer.settings().items()]
        doors = Doors(Config.parse(given).doors)
        who = {"getVersion": lambda call: f"{call.session.user} {call.session.authenticated}"}
        server = Running(base_handlers() | connection_handlers(doors.proxies) | who, doors=doors)
        started.append((server, doors))
        return server

    yield start
    for server, doors in started:
        server.close()
        doors.close()


def asked(server: Running, scheme: str, **how: Any) -> str:
    with connect(f"{scheme}://{HERE}:{server.port}", **how) as connection:
        return str(connection.call("getVersion"))


@pytest.mark.parametrize("scheme", ["thrift", "http"])
def test_by_a_password(served: Callable[..., Running], scheme: str) -> None:
    server = served(*rules(hosts=HERE, users="bob"), is_http=scheme == "http")
    ann, eve = Login("ann", "geheim"), Login("eve", "geheim")
    assert asked(server, scheme, login=ann) == "ann ann"
    assert asked(server, scheme, login=ann, user="ann") == "ann ann"
    assert asked(server, scheme, login=ann, user="bob") == "bob ann"
    assert asked(server, scheme, login=eve) == "eve eve"
    for login, user in ((ann, "cid"), (eve, "bob"), (Login("ann", "x"), "bob"), (ann, "eve")):
        with pytest.raises(LoginError):
            asked(server, scheme, login=login, user=user)


def test_by_set_ugi(served: Callable[..., Running]) -> None:
    server = served(*rules(hosts=HERE, users="bob"))
    with connect(f"thrift://{HERE}:{server.port}", login=Login("ann", "geheim")) as connection:
        connection.call("set_ugi", "bob", ["g"])
        assert connection.call("getVersion") == "bob ann"
        with pytest.raises(MetaError, match="ann may not act for cid"):
            connection.call("set_ugi", "cid", [])
        assert connection.call("getVersion") == "bob ann"
        connection.call("set_ugi", "ann", [])
        assert connection.call("getVersion") == "ann ann"


def test_by_a_token(served: Callable[..., Running], tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    server = served(*rules(hosts=HERE, users="bob"), is_http=True, issuer=issuer)
    (tmp_path / "token").write_text(issuer.token(sub="ann"))
    token = Token(str(tmp_path / "token"))
    assert asked(server, "http", login=token) == "ann ann"
    assert asked(server, "http", login=token, user="bob") == "bob ann"
    with pytest.raises(LoginError, match="ann may not act for cid"):
        asked(server, "http", login=token, user="cid")
    (tmp_path / "token").write_text(issuer.token(sub="eve"))
    with pytest.raises(LoginError, match="eve has come in, and may not act for bob"):
        asked(server, "http", login=token, user="bob")
