"""The HTTP port by itself."""

from __future__ import annotations

import contextlib
import gc
import gzip
import socket
import threading
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import Metric

from metastore.observe.http import MetricsServer


def test_it_ends_while_an_answer_is_made(caplog: pytest.LogCaptureFixture) -> None:
    asked, goes_on = threading.Event(), threading.Event()

    class Slow:
        def collect(self) -> list[Metric]:
            asked.set()
            goes_on.wait(10)
            return []

    server = MetricsServer(socket.create_server(("127.0.0.1", 0)), Slow(), lambda: True, lambda: None)
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
    server = MetricsServer(socket.create_server(("127.0.0.1", 0)), CollectorRegistry(), lambda: True, lambda: None)
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


@pytest.mark.parametrize(
    ("headers", "kind", "ends"),
    [
        ({}, "text/plain; version=0.0.4; charset=utf-8", b"x 1.0\n"),
        ({"Accept": "*/*"}, "text/plain; version=0.0.4; charset=utf-8", b"x 1.0\n"),
        (
            {"Accept": "application/openmetrics-text;version=1.0.0"},
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
            b"x 1.0\n# EOF\n",
        ),
        ({"Accept": "application/openmetrics-text;version=x"}, "text/plain; version=0.0.4; charset=utf-8", b"x 1.0\n"),
        ({"Accept": "text/plain;version=1.x"}, "text/plain; version=0.0.4; charset=utf-8", b"x 1.0\n"),
        ({f"X-{number}": "" for number in range(200)}, "text/plain; version=0.0.4; charset=utf-8", b"x 1.0\n"),
    ],
    ids=["nothing", "anything", "openmetrics", "no version", "no version of text", "too many"],
)
def test_the_form_is_the_one_that_is_asked_for(
    headers: dict[str, str], kind: str, ends: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    Gauge("x", "One.", registry=registry).set(1)
    server = MetricsServer(socket.create_server(("127.0.0.1", 0)), registry, lambda: True, lambda: None)
    try:
        request = urllib.request.Request(f"http://{server.address}/metrics", headers=headers)
        for asked in (request, _packed(request)):
            with urllib.request.urlopen(asked, timeout=10) as answer:
                body = answer.read()
                packed = answer.headers["Content-Encoding"] == "gzip"
                assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
                assert (gzip.decompress(body) if packed else body).endswith(ends)
    finally:
        server.close()
    assert not caplog.records


def _packed(request: urllib.request.Request) -> urllib.request.Request:
    return urllib.request.Request(request.full_url, headers={**request.headers, "Accept-Encoding": "gzip"})
