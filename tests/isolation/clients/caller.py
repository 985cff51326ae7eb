"""Calls of one raw Thrift client that does not give up: it connects again, to another server perhaps, and repeats."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TClient
from thriftpy2.transport import TCyBufferedTransport, TSocket, TTransportException

from hive_acid.wire import service, ttypes
from tests.isolation.world.cluster import Address

ANSWER_TIMEOUT_MS = 30_000
PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5


class StuckError(Exception):
    """A call had no proper answer for as long as the caller is patient."""


class Caller:
    """One client with one call in flight; not to be shared between threads.

    `lost` counts answers that did not come, `failed` the answers that say the server could not, by their words;
    `longest_s` is how long the longest call of each method took, repetitions included.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        chance: random.Random,
        patience_s: float,
        note: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._addresses = list(addresses)
        self._chance = chance
        self._patience_s = patience_s
        self._socket: TSocket | None = None
        self._client: Any = None
        self._note = note
        self.lost = 0
        self.failed: dict[str, int] = {}
        self.longest_s: dict[str, float] = {}

    def call(self, method: str, *args: Any, final: tuple[type[Exception], ...] = ()) -> Any:
        """The answer of a call that may be repeated as often as it takes.

        Raises the Thrift exceptions that answer for the request itself, those that are to be taken as `final`, and
        StuckError.
        """
        began = time.monotonic()
        deadline = began + self._patience_s
        pause_s = PAUSE_S
        while True:
            try:
                answer = self.attempt(method, *args)
                self.longest_s[method] = max(self.longest_s.get(method, 0.0), time.monotonic() - began)
                return answer
            except final:
                raise
            except (TTransportException, OSError, EOFError) as error:
                self._note(f"{method}:lost")
                trouble = f"{type(error).__name__}: {error}"
            except (TApplicationException, ttypes.MetaException) as error:
                self._note(f"{method}:failed")
                trouble = f"{method}: {error.message}"
                self.failed[trouble] = self.failed.get(trouble, 0) + 1
            if time.monotonic() > deadline:
                raise StuckError(f"no answer to {method} for {self._patience_s:.0f} s: {trouble}")
            time.sleep(pause_s * self._chance.random())
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def attempt(self, method: str, *args: Any) -> Any:
        """Make a call once; whatever goes wrong is raised."""
        try:
            if self._client is None:
                self._connect()
            return getattr(self._client, method)(*args)
        except (TTransportException, OSError, EOFError):
            self.lost += 1
            self.close()
            raise

    def _connect(self) -> None:
        host, port = self._chance.choice(self._addresses)
        self._socket = TSocket(host, port, socket_timeout=ANSWER_TIMEOUT_MS, connect_timeout=5_000)
        self._socket.open()
        self._socket.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client = TClient(service, TCyBinaryProtocol(TCyBufferedTransport(self._socket)))
        self._client.set_ugi("isolation", [])

    def close(self) -> None:
        """Forget the connection; the next call makes another one."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._client = None
