"""Thrift calls over a small pool of sockets, safe to share between threads.

A socket is one thread's until it has its answers, so a lock that waits does not delay the heartbeats of another
(wire.md §2.2). Calls that are sent together share a round trip: every metastore does those of one socket in their
order. A process that was forked has sockets of its own.
"""

from __future__ import annotations

import getpass
import os
import re
import select
import socket
import ssl
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from thriftpy2.thrift import TApplicationException, TDecodeException, TException
from thriftpy2.transport import TCyBufferedTransport, TSocket, TTransportException

from hive_acid.errors import (
    THRIFT_ERRORS,
    AccessDeniedError,
    AddressError,
    AnswersMixedError,
    HiveAcidError,
    LoginError,
    MetaError,
    MetastoreError,
    MetastoreInternalError,
    MetastoreUnreachableError,
    UnknownMethodError,
)
from hive_acid.forks import renew_in_children
from hive_acid.http import HttpSocket
from hive_acid.login import DelegationToken, Kerberos, Login, Token, check_secrecy
from hive_acid.protocol import NumberedClient, NumberedProtocol, Question
from hive_acid.sasl.frames import SaslSocket
from hive_acid.tls import Tls
from hive_acid.wire import service, ttypes

POOL_SIZE = 8
CONNECT_TIMEOUT_S = 10
UNREPEATABLE = frozenset(
    {"lock", "open_txns", "hive_acid_begin", "create_table", "create_database", "compact", "compact2"}
)
"""Calls whose repetition after a lost answer could act twice (transactions.md §6)."""


class Transport:
    """Calls to one metastore, by their names."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_ms: int = 60_000,
        user: str | None = None,
        application: str | None = None,
        tls: Tls | None = None,
        login: Login | Kerberos | DelegationToken | Token | None = None,
        http_path: str | None = None,
    ) -> None:
        """`application` is what `metastore why` names when we are in somebody's way; by default program and process.

        `user` is as whom we act; with `login` another than that only where the metastore lets it (hadoop.proxyuser).
        `tls` is how to know the metastore; None for a plain socket. `login` is who we are and how to prove it; None for
        a port that asks nobody. `http_path` is where the metastore is on a server of HTTP; None for a port of Thrift's
        own.
        """
        if isinstance(login, Token) and http_path is None:
            raise AddressError("a token is shown over HTTP alone: give an address that begins with https://")
        if isinstance(login, Kerberos | DelegationToken) and http_path is not None:
            raise AddressError(
                "tickets of Kerberos and delegation tokens are not shown over HTTP: give an address of thrift"
            )
        self.host = host
        self.http_path = http_path
        self.port = port
        self.tls = tls
        self.login = login
        self.user = user or (login.user if isinstance(login, Login | Kerberos | DelegationToken) else _login_name())
        self._is_named = user is not None
        self._application = application
        self._timeout_ms = timeout_ms
        self._closed = False
        self._begin_anew()
        renew_in_children(self)

    def _begin_anew(self) -> None:
        self._idle: list[tuple[socket.socket, NumberedClient]] = []
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._guard = threading.Lock()

    def renew_in_child(self) -> None:
        """Close the parent's sockets here, which sends nothing on them, and begin with none."""
        for sock in list(self._sockets):
            _discard(sock)
        self._begin_anew()

    def close(self) -> None:
        """Close the sockets: no call is sent any more."""
        with self._guard:
            self._closed = True
        self._discard_idle()

    def __reduce__(self) -> Any:
        raise TypeError(f"a connection stays in its process: send its address, {self.uri}, and connect there")

    @property
    def application(self) -> str:
        """What the metastore calls the program that we are."""
        return self._application or f"{Path(sys.argv[0]).name or 'python'}, process {os.getpid()}"

    @property
    def uri(self) -> str:
        """The address in the form that Hive's clients use."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{quote(self.login.user, safe='')}@" if isinstance(self.login, Login) else ""
        if self.http_path is not None:
            return f"{'http' if self.tls is None else 'https'}://{user}{host}:{self.port}{self.http_path}"
        return f"{'thrift' if self.tls is None else 'thrift+tls'}://{user}{host}:{self.port}"

    def call(self, method: str, *args: Any) -> Any:
        """Call an RPC by its name and return its result.

        Raises the error of `hive_acid.errors` that stands for the Thrift exception; MetastoreUnreachableError when no
        answer came. A call that may be repeated is tried once more on a fresh socket before that.
        """
        (answer,) = self.ask(Question(method, args))
        if isinstance(answer, HiveAcidError):
            raise answer
        return answer

    def ask(self, *questions: Question) -> list[Any]:
        """Do calls in this order, in one round trip; what each returned, or the error of ours for what it raised.

        Each is done whatever becomes of those before. Raises what `call` raises if answers are missing.
        """
        method = " and ".join(question.method for question in questions)
        attempts = 1 if any(question.method in UNREPEATABLE for question in questions) else 2
        for attempt in range(1, attempts + 1):
            sock, client = self._take()
            try:
                answers = client.ask(questions)
            except AnswersMixedError as error:
                _discard(sock)
                self._discard_idle()
                if attempt == attempts:
                    raise AnswersMixedError(
                        f"what came from the metastore at {self.uri} is no answer to {method}: {error}. Whether it was "
                        "done is not known; somebody else uses the socket, or a proxy mixes calls"
                    ) from None
            except (TTransportException, OSError, EOFError) as error:
                _discard(sock)
                if attempt == attempts:
                    raise MetastoreUnreachableError(
                        f"the metastore at {self.uri} did not answer {method}: {error}. Is it running there?"
                    ) from error
            except TDecodeException as error:  # an argument that cannot be sent, of which a part may have been
                _discard(sock)
                raise _thrift_error(error) from None
            except BaseException:
                _discard(sock)
                raise
            else:
                self._put_back(sock, client)
                return [
                    _error_of(question.method, answer) if isinstance(answer, TException) else answer
                    for question, answer in zip(questions, answers, strict=True)
                ]
        raise AssertionError("the loop above returns or raises")

    def _take(self) -> tuple[socket.socket, NumberedClient]:
        while True:
            with self._guard:
                if self._closed:
                    raise HiveAcidError(f"the connection to {self.uri} is closed: connect again")
                if not self._idle:
                    break
                sock, client = self._idle.pop()
            if _closed_by_peer(sock):
                _discard(sock)
                continue
            return sock, client
        return self._connect()

    def _connect(self) -> tuple[socket.socket, NumberedClient]:
        transport = TSocket(
            self.host, self.port, socket_timeout=self._timeout_ms, connect_timeout=CONNECT_TIMEOUT_S * 1000
        )
        try:
            transport.open()
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                transport.sock = self._encrypted(transport.sock, self.tls, transport.socket_timeout)
            self._sockets.add(transport.sock)
            client = NumberedClient(service, NumberedProtocol(TCyBufferedTransport(self._carrier(transport))))
            if self.login is None and self.http_path is None:
                self._say_who(client)
        except (AddressError, LoginError):
            if transport.sock is not None:
                _discard(transport.sock)
            raise
        except (TException, AnswersMixedError, OSError, EOFError, ValueError) as error:  # of a name that is none
            words = getattr(error, "message", None) or str(error)
            if getattr(error, "type", None) == TTransportException.END_OF_FILE:
                words += self._hint()
            raise MetastoreUnreachableError(
                f"no metastore answers at {self.uri}: {words}. Start one with `metastore serve`, or check the address."
            ) from error
        return transport.sock, client

    def _say_who(self, client: NumberedClient) -> None:
        try:
            client.set_ugi(self.user, [])
        except ttypes.MetaException:
            # A metastore that knows us by our certificate takes no other name, and nobody has asked for this one.
            if self._is_named or self.tls is None or self.tls.certificate is None:
                raise

    def _carrier(self, transport: TSocket) -> Any:
        """What messages are written to and read from."""
        is_encrypted = self.tls is not None
        if self.http_path is not None:
            assert not isinstance(self.login, Kerberos | DelegationToken)
            host = f"[{self.host}]" if ":" in self.host else self.host
            is_free = self.login is None and (self.tls is None or self.tls.certificate is None)
            acts_as = self.user if is_free or self._is_named else None
            return HttpSocket(
                transport, f"{host}:{self.port}", self.http_path, acts_as, self.login, is_encrypted=is_encrypted
            )
        if isinstance(self.login, Login | Kerberos | DelegationToken):
            if isinstance(self.login, Login):
                check_secrecy(transport.sock, self.login, is_encrypted)
            who = self.login.user
            return SaslSocket(transport, self.login.mechanism(self.host, self.user if self._is_named else None), who)
        return transport

    def _hint(self) -> str:
        """What to try where the metastore closes at once."""
        hints = []
        if self.tls is None:
            hints.append("does its port speak TLS? Then give thrift+tls://")
        if self.login is None:
            hints.append(
                "does it ask for a password? Then give thrift+tls://user@host; for Kerberos? Then HIVE_ACID_KERBEROS"
            )
        return f" ({'; '.join(hints)})" if hints else ""

    def _encrypted(self, sock: socket.socket, tls: Tls, timeout_s: float | None) -> ssl.SSLSocket:
        sock.settimeout(CONNECT_TIMEOUT_S)
        try:
            encrypted = tls.encrypted(sock, self.host)
        except BaseException:
            sock.close()
            raise
        encrypted.settimeout(timeout_s)
        return encrypted

    def _put_back(self, sock: socket.socket, client: NumberedClient) -> None:
        with self._guard:
            if not self._closed and len(self._idle) < POOL_SIZE:
                self._idle.append((sock, client))
                return
        _discard(sock)

    def _discard_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for sock, _ in idle:
            _discard(sock)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _discard(sock: socket.socket) -> None:
    sock.close()


def _closed_by_peer(sock: socket.socket) -> bool:
    """An idle socket has nothing to read, unless its peer has closed it."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


_REFUSED = re.compile(r"(?:Internal error processing \w+: )?(.+ may not call \w+: it takes .+)", re.DOTALL)


def _error_of(method: str, error: TException) -> HiveAcidError:
    if not isinstance(error, TApplicationException):
        return _thrift_error(error)
    if error.type == TApplicationException.UNKNOWN_METHOD:
        return UnknownMethodError(f"the metastore does not serve {method}")
    words = error.message or f"the metastore failed in {method}"
    return _refusal(words) or MetastoreInternalError(words)


def _thrift_error(error: TException) -> MetastoreError:
    kind = THRIFT_ERRORS.get(type(error).__name__, MetastoreError)
    words = getattr(error, "message", None) or str(error)
    return (_refusal(words) if kind is MetaError else None) or kind(words)


def _refusal(words: str) -> AccessDeniedError | None:
    """The error of who lacks a right; of a method that declares none for it, it comes as an internal one."""
    found = _REFUSED.fullmatch(words)
    return AccessDeniedError(found.group(1)) if found else None
