"""The HTTP port for figures and health: ``/metrics``, ``/livez`` and ``/readyz``, nothing else.

Live is a process that need not be started anew; ready is a server that can serve calls now, so its database has
answered within seconds. ``/healthz`` is another name of ``/readyz``.

One request at a time, each with a few seconds, so that nobody can make many threads or keep the port. What is answered
was counted before: a scrape asks the database nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

from metastore.observe.log import event
from metastore.observe.prometheus import CONTENT_TYPE

LOG = logging.getLogger("metastore.metrics")
REQUEST_TIMEOUT_S = 5
NOT_LIVE = "the event loop does not turn"


class MetricsServer:
    """Serves until `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        metrics: Callable[[], str],
        is_live: Callable[[], bool],
        trouble: Callable[[], str | None],
    ) -> None:
        """Listens from now on; `trouble` says why the server is not ready, None if it is.

        Raises OSError if the port is taken, OverflowError if it is none.
        """

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_TIMEOUT_S  # of the socket

            def do_GET(self) -> None:
                match self.path.partition("?")[0]:
                    case "/metrics":
                        self._answer(200, CONTENT_TYPE, metrics())
                    case "/livez":
                        self._answer_whether(None if is_live() else NOT_LIVE)
                    case "/readyz" | "/healthz":
                        self._answer_whether(trouble() if is_live() else NOT_LIVE)
                    case _:
                        self._answer(404, "text/plain", "/metrics, /livez and /readyz are here\n")

            def _answer_whether(self, trouble: str | None) -> None:
                self._answer(503 if trouble else 200, "text/plain; charset=utf-8", f"{trouble or 'ok'}\n")

            def _answer(self, status: int, kind: str, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                event(LOG, logging.DEBUG, "scrape", peer=self.address_string(), request=format % args)

        class Server(HTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

            def handle_error(self, request: object, client_address: object) -> None:
                LOG.debug("a scrape was broken off", exc_info=True)

        self._server = Server((host, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens: ``host:port``."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
