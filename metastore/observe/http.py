"""The HTTP port for figures and health: ``/metrics``, ``/livez`` and ``/readyz``, nothing else.

Live is a process that need not be started anew; ready is a server that can serve calls now, so its database has
answered within seconds. ``/healthz`` is another name of ``/readyz``.

An event loop of its own, on a thread. A client has a few seconds for its request and for reading the answer, however
it divides them, and there are some hundred at most: of more the one that has been there longest is cut off, those first
that have not asked yet, so nobody can keep the port. (prometheus_client's own server has a thread for each connection,
as many as come and for as long as they stay; from it comes what is answered.) What is answered was counted before: a
scrape asks the database nothing. Answers are made on a second thread, one at a time, since liveness waits for the event
loop of the calls.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from prometheus_client import make_wsgi_app
from prometheus_client.registry import Collector

from metastore.observe.log import event

LOG = logging.getLogger("metastore.metrics")
REQUEST_TIMEOUT_S = 5.0
MOST_CLIENTS = 1024
BACKLOG = 1024
"""Connections that wait to be accepted: one more would come a second later, when its kernel tries again."""
MOST_REQUEST_BYTES = 16 * 1024
NOT_LIVE = "the event loop does not turn"
_NEGOTIATED = ("accept", "accept-encoding")
_Headers = list[tuple[str, str]]
_Answer = tuple[int, _Headers, bytes]
_TEXT = ("Content-Type", "text/plain; charset=utf-8")


class MetricsServer:
    """Serves until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        registry: Collector,
        is_live: Callable[[], bool],
        trouble: Callable[[], str | None],
    ) -> None:
        """Listens on a bound socket from now on, and closes it at the end.

        `registry` has the figures, `trouble` says why the server is not ready, None if it is.
        """
        self._metrics, self._is_live, self._trouble = make_wsgi_app(registry), is_live, trouble
        self._listener = listener
        self._clients: dict[_Client, None] = {}  # the eldest comes first
        self._answers = ThreadPoolExecutor(1, thread_name_prefix="metrics-answer")
        self._loop = asyncio.new_event_loop()
        listening = self._loop.create_server(lambda: _Client(self), sock=self._listener, backlog=BACKLOG)
        self._loop.run_until_complete(listening)
        self._thread = threading.Thread(target=self._loop.run_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens: ``host:port``."""
        host, port = self._listener.getsockname()[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._end())
        self._answers.shutdown()
        self._loop.close()
        self._listener.close()

    async def _end(self) -> None:
        for client in list(self._clients):
            client.cut_off()
        unanswered = asyncio.all_tasks() - {asyncio.current_task()}
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)
        await asyncio.sleep(0)  # the connections are closed in it

    def enter(self, client: _Client) -> None:
        """A client has connected."""
        self._clients[client] = None
        if len(self._clients) > MOST_CLIENTS:
            leaving = next((one for one in self._clients if not one.has_asked), next(iter(self._clients)))
            del self._clients[leaving]
            leaving.cut_off()

    def leave(self, client: _Client) -> None:
        """A client has gone."""
        self._clients.pop(client, None)

    async def answer(self, request: str, headers: Mapping[str, str]) -> _Answer:
        """Status, headers and body for the first line and the headers of a request."""
        return await self._loop.run_in_executor(self._answers, self._answer, request, headers)

    def _answer(self, request: str, headers: Mapping[str, str]) -> _Answer:
        verb, _, rest = request.partition(" ")
        if verb not in ("GET", "HEAD"):
            return _text(405, "GET is answered here")
        match rest.partition(" ")[0].partition("?")[0]:
            case "/metrics":
                return self._figures(headers)
            case "/livez":
                return _whether(None if self._is_live() else NOT_LIVE)
            case "/readyz" | "/healthz":
                return _whether(self._trouble() if self._is_live() else NOT_LIVE)
            case _:
                return _text(404, "/metrics, /livez and /readyz are here")

    def _figures(self, headers: Mapping[str, str]) -> _Answer:
        """All figures, in the form that is asked for; as plain text for one who asks for what is none."""
        wishes = {f"HTTP_{name.upper().replace('-', '_')}": headers[name] for name in _NEGOTIATED if name in headers}
        try:
            return self._scraped(wishes)
        except (TypeError, ValueError):  # as of `version=x`
            return self._scraped({})

    def _scraped(self, wishes: Mapping[str, str]) -> _Answer:
        said: list[tuple[str, _Headers]] = []

        def start(status: str, headers: _Headers) -> None:
            said.append((status, headers))

        body = b"".join(self._metrics({"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", **wishes}, start))
        ((status, headers),) = said
        return int(status.split()[0]), headers, body


class _Client(asyncio.Protocol):
    """One connection: one request, one answer, and the end."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._request = b""
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def has_asked(self) -> bool:
        """Whether its request has come."""
        return self._task is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_TIMEOUT_S, self.cut_off)
        self._server.enter(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.leave(self)
        self._transport = None
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        if self._task is not None:
            return
        self._request += data
        if b"\r\n\r\n" in self._request or b"\n\n" in self._request:
            self._task = asyncio.ensure_future(self._reply(*_asked(self._request)))
        elif len(self._request) > MOST_REQUEST_BYTES:
            self.cut_off()

    def cut_off(self) -> None:
        """The client has had its time."""
        if self._transport is not None:
            self._transport.abort()

    async def _reply(self, request: str, headers: Mapping[str, str]) -> None:
        try:
            status, told, body = await self._server.answer(request, headers)
        except Exception:
            LOG.exception("a scrape has failed")
            status, told, body = _text(500, "the answer could not be made, the log says why")
        if self._transport is None:
            LOG.debug("a scrape was broken off")
            return
        event(LOG, logging.DEBUG, "scrape", peer=self._transport.get_extra_info("peername"), request=request)
        told = [*told, ("Content-Length", str(len(body))), ("Connection", "close")]
        head = "".join(f"{name}: {value}\r\n" for name, value in told)
        start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n"
        self._transport.write(start.encode() + (b"" if request.startswith("HEAD ") else body))
        self._transport.close()


def _asked(request: bytes) -> tuple[str, Mapping[str, str]]:
    """The first line, and the headers if they are some."""
    first, _, rest = request.partition(b"\n")
    try:
        headers: Mapping[str, str] = dict(http.client.parse_headers(io.BytesIO(rest)).items())
    except http.client.HTTPException:
        headers = {}
    return first.decode("latin-1").strip(), {name.lower(): value for name, value in headers.items()}


def _whether(trouble: str | None) -> _Answer:
    return _text(503, trouble) if trouble else _text(200, "ok")


def _text(status: int, words: str) -> _Answer:
    return status, [_TEXT], f"{words}\n".encode()
