"""Thrift's binary protocol with calls that are numbered, so that no call takes the answer to another one.

thriftpy2's client sends 0 as the sequence id of each call and looks at neither that of the answer nor its method.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.protocol.cybin.cybin import ProtocolError
from thriftpy2.thrift import TClient, TDecodeException, TException, TMessageType, args_to_kwargs
from thriftpy2.transport import TTransportException

from hive_acid.errors import AnswersMixedError

_LARGEST = 2**31 - 1


class Question(NamedTuple):
    """A call by its name, with its arguments."""

    method: str
    args: tuple[Any, ...]


class NumberedProtocol(TCyBinaryProtocol):
    """One client's side of one socket; answers come in the order of the calls."""

    def __init__(self, transport: Any) -> None:
        super().__init__(transport)  # type: ignore[no-untyped-call]
        self._last = 0
        self._asked: deque[tuple[str, int]] = deque()

    def write_message_begin(self, name: str, kind: int, _: int) -> None:
        """Begin a call under the next number."""
        self._last = self._last % _LARGEST + 1
        if kind != TMessageType.ONEWAY:
            self._asked.append((name, self._last))
        super().write_message_begin(name, kind, self._last)  # type: ignore[no-untyped-call]

    def read_message_begin(self) -> tuple[str, int, int]:
        """Begin to read the next answer. Raises AnswersMixedError if it is not that to the call whose turn it is."""
        try:
            name, kind, number = super().read_message_begin()  # type: ignore[no-untyped-call]
        except ProtocolError as error:
            raise AnswersMixedError(f"no answer begins as this one does ({error})") from None
        wanted, sent = self._asked.popleft()
        if (name, number) != (wanted, sent):
            raise AnswersMixedError(f"call {sent}, {wanted}, got the answer to call {number}, {name}")
        return name, kind, number


class NumberedClient(TClient):
    """Sends calls without waiting for the answers to those before."""

    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """What each call returns, or the Thrift exception that answers it, in their order.

        Raises TDecodeException for an argument that cannot be sent; then what came before it may have been done.
        """
        for method, args in questions:
            self._send(method, **args_to_kwargs(getattr(self._service, f"{method}_args").thrift_spec, *args))
        return [self._answer(method) for method, _ in questions]

    def _answer(self, method: str) -> Any:
        if getattr(self._service, f"{method}_result").oneway:
            return None
        try:
            return self._recv(method)
        except (TTransportException, TDecodeException):
            raise
        except TException as error:  # among them TApplicationException
            return error
