"""The HTTP port by itself."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading

import pytest

from metastore.observe.http import MetricsServer


def test_it_ends_while_an_answer_is_made(caplog: pytest.LogCaptureFixture) -> None:
    asked, goes_on = threading.Event(), threading.Event()

    def metrics() -> str:
        asked.set()
        goes_on.wait(10)
        return ""

    server = MetricsServer("127.0.0.1", 0, metrics, lambda: True, lambda: None)
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert asked.wait(10)
        threading.Timer(0.2, goes_on.set).start()
        server.close()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(100) == b""
    gc.collect()
    assert not caplog.records


def test_who_comes_while_all_are_accepted_is_not_turned_away() -> None:
    """A connection for which there is no room is tried again by its client's kernel, a second later."""
    server = MetricsServer("127.0.0.1", 0, str, lambda: True, lambda: None)
    host, _, port = server.address.rpartition(":")
    goes_on = threading.Event()
    server._loop.call_soon_threadsafe(goes_on.wait, 10)
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=0.5))
    finally:
        goes_on.set()
        server.close()
