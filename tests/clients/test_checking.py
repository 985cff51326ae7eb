"""The proxy notices what Java would break on."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.rpc.encoding import codec
from tests.caller import Caller
from tests.clients.checking import checked


def complaints(method: str, value: object) -> list[str]:
    """What the proxy says of a server that answers one call so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(1 << 16)
            connection.sendall(codec.encode_result(method, 0, value))
            connection.recv(1 << 16)
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with checked(f"thrift://127.0.0.1:{listener.getsockname()[1]}") as proxy:
            with Caller(proxy.uri) as caller, suppress(Exception):
                caller.call(method)
            thread.join(10)
            proxy.join()
            return proxy.problems


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        ("show_locks", ttypes.ShowLocksResponse(locks=[]), []),
        (
            "show_locks",
            ttypes.ShowLocksResponse(locks=[ttypes.ShowLocksResponseElement(lockid=1, dbname="d", state=1, type=1)]),
            [
                "show_locks.success.locks.lastheartbeat is required and absent",
                "show_locks.success.locks.user is required and absent",
                "show_locks.success.locks.hostname is required and absent",
            ],
        ),
        ("get_open_txns", ttypes.GetOpenTxnsResponse(txn_high_water_mark=1, open_txns=[], abortedBits=b""), []),
        (
            "get_open_txns",
            ttypes.GetOpenTxnsResponse(txn_high_water_mark=1, open_txns=[]),
            ["get_open_txns.success.abortedBits is required and absent"],
        ),
        ("getName", None, ["getName has neither result nor error"]),
        ("getName", b"\xff", ["getName.success is not UTF-8"]),
    ],
)
def test_complaints(method: str, value: Any, expected: Any) -> None:
    assert complaints(method, value) == expected
