"""Users by the common names of their certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid import Tls, connect
from hive_acid.connection import Connection
from hive_acid.errors import HiveAcidError, MetaError, MetastoreUnreachableError
from metastore.config import Config
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.handlers.session import connection_handlers
from metastore.settings import SettingError
from tests.authority import Authority
from tests.rpc.test_server import Running, base_handlers

RULES = ("hadoop.proxyuser.ann.hosts=*", "hadoop.proxyuser.ann.users=bob")
HTTP = "metastore.server.thrift.transport.mode=http"


@pytest.fixture
def served(guarded: Callable[..., Running], authority: Authority) -> Callable[..., Running]:
    """Servers that ask for certificates; the version is who it is."""
    asks = ("metastore.authentication=certificate", f"metastore.tls.client.ca={authority.ca}")

    def start(*settings: str) -> Running:
        proxies = Proxies(Config.parse(RULES).doors)
        who = {"getVersion": lambda call: f"{call.session.user} {call.session.authenticated}"}
        return guarded(*asks, *RULES, *settings, handlers=base_handlers() | connection_handlers(proxies) | who)

    return start


def shown(authority: Authority, subject: str, *names: str) -> Tls:
    pair = authority.issue(subject, *names)
    return Tls(ca=str(authority.ca), certificate=str(pair.certificate), key=str(pair.key))


def asked(server: Running, scheme: str, tls: Tls, **how: Any) -> Connection:
    return connect(f"{scheme}://127.0.0.1:{server.port}", tls=tls, **how)


@pytest.mark.parametrize(("scheme", "settings"), [("thrift+tls", ()), ("https", (HTTP,))])
def test_a_certificate_says_who_it_is(
    scheme: str, settings: tuple[str, ...], served: Callable[..., Running], authority: Authority
) -> None:
    server = served(*settings)
    ann, eve = shown(authority, "ann"), shown(authority, "eve", "DNS:ann")
    for tls, user in ((ann, "ann"), (eve, "eve")):
        for how in ({}, {"user": user}):
            with asked(server, scheme, tls, **how) as connection:
                assert connection.call("getVersion") == f"{user} {user}"
    with asked(server, scheme, ann, user="bob") as connection:
        assert connection.call("getVersion") == "bob ann", "who may act for others"
    with pytest.raises(HiveAcidError, match="eve has come in, and may not act for bob"):
        asked(server, scheme, eve, user="bob").call("getVersion")


def test_who_shows_none_or_one_of_another_ca(
    served: Callable[..., Running], authority: Authority, tmp_path: Path
) -> None:
    server = served()
    other = shown(Authority(tmp_path / "other"), "ann")
    for tls in (Tls(ca=str(authority.ca)), Tls(str(authority.ca), other.certificate, other.key)):
        with pytest.raises(MetastoreUnreachableError):
            asked(server, "thrift+tls", tls)


def test_set_ugi_changes_nobody(served: Callable[..., Running], authority: Authority) -> None:
    server = served()
    with asked(server, "thrift+tls", shown(authority, "eve"), user="eve") as connection:
        with pytest.raises(MetaError, match="may not act for root"):
            connection.call("set_ugi", "root", [])
        assert connection.call("getVersion") == "eve eve"


@pytest.mark.parametrize(
    "settings", [(), ("metastore.use.SSL=true", "metastore.keystore.path=/x"), ("metastore.tls.client.ca=/x",)]
)
def test_it_needs_tls_and_a_ca(settings: tuple[str, ...]) -> None:
    with pytest.raises(SettingError, match=r"needs metastore\.use\.SSL=true and metastore\.tls\.client\.ca"):
        Doors(Config.parse(["metastore.authentication=certificate", *settings]).doors)
