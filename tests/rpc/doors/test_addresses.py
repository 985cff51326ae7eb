"""Where the server listens, as long as nobody has said who may call."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid import connect
from metastore.app import App, ServeOptions, StartError
from metastore.config import Config
from metastore.rpc.doors.addresses import OpenDoorError, bound
from metastore.rpc.doors.config import DoorsConfig
from tests.ports import free_port

OPEN = ("0.0.0.0", "0", "::", "::ffff:0.0.0.0")
OWN = ("127.0.0.1", "127.1", "localhost", "::1", "::ffff:127.0.0.1", "127.7.7.7")


def own_address() -> str:
    """An address of this machine that others reach, as it goes by it to others; none is sent anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has loopback addresses only")
        return str(sock.getsockname()[0])


@pytest.mark.parametrize("host", OPEN)
def test_an_address_for_others_is_refused_until_it_is_said_on_purpose(host: str) -> None:
    with pytest.raises(OpenDoorError, match=r"say metastore\.authentication=NONE"):
        bound(host, 0, DoorsConfig())
    for word in ("NONE", "none", "NOSASL"):
        bound(host, 0, Config.parse([f"metastore.authentication={word}"]).doors).close()


def test_the_address_of_the_machine_is_one_for_others() -> None:
    with pytest.raises(OpenDoorError):
        bound(own_address(), 0, DoorsConfig())


@pytest.mark.parametrize("host", OWN)
def test_loopback_addresses_are_listened_on(host: str) -> None:
    bound(host, 0, DoorsConfig()).close()


def test_what_was_refused_leaves_the_port_free() -> None:
    port = free_port()
    with pytest.raises(OpenDoorError):
        bound("0.0.0.0", port, DoorsConfig())
    bound("127.0.0.1", port, DoorsConfig()).close()


@pytest.fixture
def app(db_url: str, tmp_path: Path) -> Callable[..., App]:
    def make(host: str = "127.0.0.1", **settings: str) -> App:
        pairs = [f"{key.replace('_', '.')}={value}" for key, value in settings.items()]
        return App(ServeOptions(host, 0, None, db_url, str(tmp_path / "w"), Config.parse(pairs)))

    return make


def test_a_server_for_others_does_not_start_and_makes_nothing(app: Callable[..., App], tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"0\.0\.0\.0 is an address that other machines reach"):
        app("0.0.0.0").start()
    assert not (tmp_path / "w").exists()


def test_it_starts_when_it_is_said(app: Callable[..., App]) -> None:
    server = app("0.0.0.0", metastore_authentication="NONE")
    try:
        port = server.start().rpartition(":")[2]
        with connect(f"thrift://127.0.0.1:{port}") as connection:
            assert connection.call("get_all_databases") == ["default"]
    finally:
        server.stop()


def test_the_port_of_figures_is_no_other_door(app: Callable[..., App]) -> None:
    port = str(free_port())
    with pytest.raises(StartError, match=r"metrics: 0\.0\.0\.0 is an address that other machines reach"):
        app(metastore_metrics_host="0.0.0.0", metastore_metrics_port=port).start()
    server = app(metastore_metrics_host="0.0.0.0", metastore_metrics_port=port, metastore_authentication="NONE")
    try:
        server.start()
        with socket.create_connection(("127.0.0.1", int(port)), timeout=10) as sock:
            sock.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
            assert b"200" in sock.recv(100)
    finally:
        server.stop()
