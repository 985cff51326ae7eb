"""A proxy before a metastore that does something to the answers of single calls."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from metastore.rpc.encoding.framing import MessageScanner

_LARGEST_BYTES = 16 * 1024 * 1024
_QUIET_S = 0.1


class Meddler:
    """Passes calls on, but for those of the methods in `faults`, each of which has a fault once.

    stale: what comes is the answer to the call before on the socket, or bytes without sense if there was none;
    half: a half of the answer comes, then nothing; silent: no answer comes; late: it comes when `go` is set; lost: the
    call does not reach the server.
    """

    def __init__(self, uri: str) -> None:
        address = urlsplit(uri)
        self._target = address.hostname, address.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self._clients: list[socket.socket] = []
        self.faults: dict[str, str] = {}
        self.met = threading.Event()
        """Set when a fault has happened."""
        self.go = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Be away: nobody listens, and whoever was connected is not any more."""
        self._listener.close()
        for client in self._clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._clients.append(self._listener.accept()[0])
                threading.Thread(target=self._serve, args=self._clients[-1:], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(self._target)
        buffer, before = bytearray(), b"no answer of any kind"
        with client, server, suppress(OSError):
            while True:
                scanner = MessageScanner(_LARGEST_BYTES)
                while (length := scanner.scan(buffer)) is None:
                    if not (received := client.recv(65536)):
                        return
                    buffer += received
                call, fault = bytes(buffer[:length]), self.faults.pop(scanner.name, None)
                del buffer[:length]
                answer = b"" if fault == "lost" else self._answer(server, call)
                if fault == "stale":
                    client.sendall(before)
                elif fault == "half":
                    client.sendall(answer[: len(answer) // 2])
                before = answer
                if fault is not None:
                    self.met.set()
                if fault == "late":
                    self.go.wait()
                if fault in (None, "late"):
                    client.sendall(answer)

    def _answer(self, server: socket.socket, call: bytes) -> bytes:
        server.sendall(call)
        server.settimeout(None)
        answer = server.recv(65536)
        server.settimeout(_QUIET_S)
        with suppress(TimeoutError):
            while more := server.recv(65536):
                answer += more
        return answer


@contextmanager
def meddler(uri: str) -> Iterator[Meddler]:
    proxy = Meddler(uri)
    try:
        yield proxy
    finally:
        proxy.close()
