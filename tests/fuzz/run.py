"""Hostile calls of every method to one server, by seed, and what is wrong with its answers."""

from __future__ import annotations

import random
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TMessageType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import service
from metastore.rpc.encoding.framing import MessageScanner
from tests.caller import Caller
from tests.fuzz.stage import furnish
from tests.fuzz.values import Values
from tests.repository.methods import methods

AGAIN_AFTER = 400
"""Messages after which what they have dropped is made again."""
SLOW_S = 10.0
_ONEWAY = ("shutdown", "reinitialize")
SERVED = [method.name for method in methods() if method.is_served and method.name not in _ONEWAY]


@dataclass
class Finding:
    """An answer that is none: the seed and number by which it comes again, the call, and what is wrong."""

    seed: int
    number: int
    method: str
    wrong: str
    arguments: str

    def __str__(self) -> str:
        return f"seed {self.seed} message {self.number}: {self.method}: {self.wrong}\n    {self.arguments}"


@dataclass
class FuzzReport:
    """What a run has found."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    fine: set[str] = field(default_factory=set)
    """Methods that have succeeded at least once."""


def run(uri: str, seed: int, messages: int, place: str, only: str | None = None) -> FuzzReport:
    """Send `messages` hostile calls over one connection; of each method about as many."""
    report = FuzzReport()
    chance = random.Random(seed)
    address = urlsplit(uri)
    connection: Connection | None = None
    ids: list[int] = []
    for number in range(messages):
        if number % AGAIN_AFTER == 0:
            with Caller(uri) as caller:
                ids = furnish(caller)
        method = only or chance.choice(SERVED)
        arguments = Values(random.Random(f"{seed}/{number}"), place, ids).arguments(method, service)
        connection = connection or Connection(str(address.hostname), int(address.port or 0))
        started = time.monotonic()
        try:
            outcome, wrong = connection.call(method, arguments)
        except (OSError, EOFError) as error:
            outcome, wrong = "no answer", f"{type(error).__name__}: {error}"
            connection = None
        if time.monotonic() - started > SLOW_S:
            wrong = wrong or f"took {time.monotonic() - started:.0f} s"
        report.outcomes[outcome] += 1
        if outcome == "fine":
            report.fine.add(method)
        if wrong:
            report.findings.append(Finding(seed, number, method, wrong, _short(arguments)))
    return report


class Connection:
    """One client's, with one call at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), 60)
        self._buffer = bytearray()

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def call(self, method: str, arguments: Any) -> tuple[str, str]:
        """The outcome, and what is wrong with the answer, or nothing."""
        out = TCyMemoryBuffer()
        protocol = TCyBinaryProtocol(out)
        protocol.write_message_begin(method, TMessageType.CALL, 7)
        try:
            protocol.write_struct(arguments)
        except Exception:  # what thriftpy2 does not write, no client sends
            return "not sent", ""
        protocol.write_message_end()
        self._socket.sendall(out.getvalue())
        return self._judged(method, self._reply())

    def _reply(self) -> bytes:
        scanner = MessageScanner(1 << 30)
        length, kind = None, None
        while length is None:
            received = self._socket.recv(1 << 16)
            if not received:
                raise EOFError("the connection was closed")
            self._buffer += received
            if kind is None and len(self._buffer) >= 4:
                kind, self._buffer[3] = self._buffer[3], TMessageType.CALL  # the scanner takes only calls
            length = scanner.scan(self._buffer)
        reply = bytes(self._buffer[:3]) + bytes([kind or 0]) + bytes(self._buffer[4:length])
        del self._buffer[:length]
        return reply

    def _judged(self, method: str, reply: bytes) -> tuple[str, str]:
        protocol = TCyBinaryProtocol(TCyMemoryBuffer(reply))
        _, kind, _ = protocol.read_message_begin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            protocol.read_struct(error)
            words = error.message or ""
            if error.type == TApplicationException.UNKNOWN_METHOD:
                return "unknown method", ""
            head, _, rest = words.partition(": ")
            is_declared = "MetaException" in _declared(method)
            return "internal", _fault(rest, head if is_declared or not rest else "")
        result = getattr(service, method + "_result")()
        protocol.read_struct(result)
        for name in _slots(method):
            refused = getattr(result, name)
            if refused is not None:
                return type(refused).__name__, _fault(refused.message or "", "")
        return "fine", ""


def _fault(words: str, bare: str) -> str:
    if bare:
        return f"{bare}: {words}".rstrip(": ")
    if not words.strip():
        return "no sentence"
    return words if "has failed in the metastore, whose log says where" in words else ""


def _slots(method: str) -> Iterator[str]:
    spec = getattr(service, method + "_result").thrift_spec
    return (field[1] for number, field in spec.items() if number != 0)


def _declared(method: str) -> set[str]:
    spec = getattr(service, method + "_result").thrift_spec
    return {field[2].__name__ for number, field in spec.items() if number != 0}


def _short(value: Any) -> str:
    words = str(value)
    return words if len(words) < 1500 else f"{words[:1500]}… ({len(words)} characters)"
