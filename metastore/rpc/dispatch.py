"""One wrapper round every call: find the handler, run it, time it, log it, turn its end into a reply.

Three ends are told apart: fine, refused (an error of `hive_acid.errors`, or what `refusals` makes one of) and crashed
(a fault of ours, which the log keeps with its traceback). No end closes the connection, since Java clients repeat their
call on a closed one (wire.md §3.2); but for a long reply that ends in its middle (`streaming`).
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from hive_acid.errors import MetaError, MetastoreError, UnknownMethodError
from hive_acid.wire import service, ttypes
from metastore.authorization.authority import Authority
from metastore.observe.calls import CallCounts, Outcome
from metastore.observe.log import event
from metastore.rpc.audit.audit import Audit
from metastore.rpc.audit.subjects import subjects_of
from metastore.rpc.call import Call, Handler, Session
from metastore.rpc.config import ServerConfig
from metastore.rpc.encoding import codec
from metastore.rpc.encoding.generations import is_since_hive_4
from metastore.rpc.limits.admission import LARGE_BYTES, LARGE_ELEMENTS, Admission, Ticket
from metastore.rpc.limits.workers import Workers
from metastore.rpc.refusals import confession, refusal
from metastore.rpc.request import Request
from metastore.rpc.streaming import BrokenOffError, Outlet, Streamed, Streams, shown
from metastore.store.config import StoreConfig
from metastore.store.connections.failures import NO_ROOM, code_of

LOG = logging.getLogger("metastore.rpc")
MOST_HOT_ELEMENTS = 200_000
"""Of a call of transactions, whose handlers run on the event loop: what 50,000 ids or names of partitions need."""
SLOW_MS = 1_000.0
POLLING = frozenset({"lock", "check_lock"})
"""These wait on purpose, so their length says nothing."""


class Dispatcher:
    """Serves calls by method name from a table of handlers."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        workers: Workers,
        counts: CallCounts,
        patience_s: float = StoreConfig().patience_s,
        has_no_room: Callable[[str], None] = lambda reason: None,
        limits: ServerConfig = ServerConfig(),  # noqa: B008 - frozen
        audit: Audit | None = None,
        authority: Authority | None = None,
    ) -> None:
        """A call waits for a database that is away for `patience_s`; `has_no_room` is told when its disk is full.

        Without `authority` everybody may do everything.
        """
        self._audit = audit
        self._authority = authority
        self._handlers = {
            name: (handler, inspect.iscoroutinefunction(handler), is_since_hive_4(name))
            for name, handler in handlers.items()
        }
        self._workers = workers
        self._counts = counts
        self._patience_s = patience_s
        self._has_no_room = has_no_room
        self._streams = Streams(patience_s, limits.reply_timeout_ms / 1000)
        self._admission = Admission(limits.max_message_elements)

    def close(self) -> None:
        """Wait for the long replies under way; the server has stopped."""
        self._streams.close()

    def knows(self, method: str) -> bool:
        """Whether anybody reads the arguments of this method."""
        return method in self._handlers

    def refuse(self, method: str, sequence: int, words: str, session: Session) -> bytes:
        """The reply to a message that is not even read to its end."""
        error = MetaError(f"{method}: {words}")
        self._counts.add(method if self.knows(method) else "?", Outcome.REFUSED, 0.0)
        event(LOG, logging.WARNING, "request refused", method=method, peer=session.peer, reason=words)
        if self._audit is not None:
            detail = {"error": error.thrift_name, "text": str(error)}
            self._audit.note(Request(method, sequence, b""), session, Outcome.REFUSED, detail)
        if hasattr(service, f"{method}_result"):
            return codec.encode_error(method, sequence, error)
        return codec.encode_internal_error(method, sequence, words)

    async def serve(self, request: Request, session: Session, outlet: Outlet) -> bytes | None:
        """The reply to one message; None for a oneway call, and for a long reply, which goes to `outlet` itself."""
        started = time.perf_counter()
        method = request.method
        outcome, detail, reply = await self._answer(request, session, outlet)
        duration_ms = (time.perf_counter() - started) * 1000
        self._counts.add(method if outcome is not Outcome.UNKNOWN else "?", outcome, duration_ms)
        if self._audit is not None:
            self._audit.note(request, session, outcome, detail)
        level = _level(method, outcome, duration_ms)
        if LOG.isEnabledFor(level):
            words = {"method": method, "outcome": outcome.value, "duration_ms": duration_ms, "peer": session.peer}
            event(LOG, level, "call", **words, **detail)
        return None if method in codec.ONEWAY else reply

    async def _answer(
        self, request: Request, session: Session, outlet: Outlet
    ) -> tuple[Outcome, dict[str, Any], bytes | None]:
        method, sequence = request.method, request.sequence
        found = self._handlers.get(method)
        if found is None:
            return Outcome.UNKNOWN, {}, codec.encode_unknown_method(method, sequence)
        handler, is_coroutine, tells_hive_4 = found
        if tells_hive_4:
            session.is_hive_4 = True
        call = Call(method, session, self._workers, self._patience_s)
        ticket: Ticket | None = None
        try:
            if request.elements > LARGE_ELEMENTS or len(request.message) > LARGE_BYTES:
                ticket = await self._admission.enter(session.client, request.elements, len(request.message))
            if not is_coroutine:
                value = await call.run(_handled, handler, call, request, self._authority)
            else:
                if ticket is None:
                    request.arguments = codec.decode_arguments(method, request.message)
                elif request.elements > MOST_HOT_ELEMENTS:
                    raise MetaError(f"{method} with more than {MOST_HOT_ELEMENTS} elements: send less at once")
                else:
                    await call.run(request.decode)
                if (authority := self._authority) is None:
                    value = await handler(call, *request.arguments)
                else:
                    asked = method, session.who, request.arguments
                    if ticket is not None or not authority.check_soon(*asked):
                        await call.run(authority.check, *asked)
                    value = await handler(call, *request.arguments)
                    authority.served(method, asked[1], _result_of(value))
            if isinstance(value, Streamed):
                await self._streams.send(method, sequence, value, session.client, outlet)
                return Outcome.FINE, {}, None
            result = _result_of(value)
            told = {"txnid": result.txnid} if type(result) is ttypes.HiveAcidBeginResponse else {}
            return Outcome.FINE, told, value if type(value) is bytes else codec.encode_result(method, sequence, value)
        except MetastoreError as error:
            detail = {"error": error.thrift_name, "text": str(error)}
            return Outcome.REFUSED, detail, codec.encode_error(method, sequence, error)
        except UnknownMethodError:  # for what the request holds
            return Outcome.UNKNOWN, {}, codec.encode_unknown_method(method, sequence)
        except BrokenOffError as error:
            outlet.abort()
            if not isinstance(error.__cause__, ConnectionError):  # that is the client's doing
                LOG.exception("reply broken off method=%s", method)
            return Outcome.BROKEN_OFF, {"text": str(error)}, None
        except Exception as error:
            if ticket is None:
                refused = refusal(method, error, request.arguments)
            else:
                refused = await call.run(refusal, method, error, request.arguments)
            if refused is not None:
                if code_of(error) == NO_ROOM:
                    self._has_no_room(str(refused))
                detail = {"error": refused.thrift_name, "text": str(refused)}
                return Outcome.REFUSED, detail, codec.encode_error(method, sequence, refused)
            LOG.exception("call failed method=%s", method)
            detail = {"error": type(error).__name__}
            return Outcome.CRASHED, detail, codec.encode_error(method, sequence, confession(method, error))
        finally:
            session.last_method = method
            if ticket is not None:
                if self._audit is not None:
                    request.subjects = subjects_of(method, request.arguments)
                request.arguments = []
                self._admission.leave(ticket)


def _result_of(value: Any) -> Any:
    return value.value if type(value) is codec.Prepared else value


def _handled(handler: Handler, call: Call, request: Request, authority: Authority | None) -> Any:
    """The reply of a handler that works on a thread, or what is sent while it is made."""
    arguments = request.decode()
    if authority is None:
        value = handler(call, *arguments)
    else:
        who = call.session.who
        authority.check(call.method, who, arguments)
        try:
            value = handler(call, *arguments)
        finally:
            authority.ended(call.method, arguments)
        sees = authority.sees(call.method, who, arguments)
        if sees is not None:
            value = shown(value, *sees)
    return value if isinstance(value, Streamed) else codec.encode_paced(call.method, request.sequence, value)


def _level(method: str, outcome: Outcome, duration_ms: float) -> int:
    if outcome is Outcome.CRASHED:
        return logging.ERROR
    if outcome is Outcome.BROKEN_OFF:
        return logging.WARNING
    if outcome is Outcome.REFUSED or (duration_ms > SLOW_MS and method not in POLLING):
        return logging.INFO
    return logging.DEBUG
