"""Thrift's binary protocol with calls that are numbered, so that no call takes the answer to another one.

thriftpy2's client sends 0 as the sequence id of each call and looks at neither that of the answer nor its method.
"""

from __future__ import annotations

from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.protocol.cybin.cybin import ProtocolError

from hive_acid.errors import AnswersMixedError

_LARGEST = 2**31 - 1


class NumberedProtocol(TCyBinaryProtocol):
    """One client's side of one socket, with one call in flight at a time."""

    def __init__(self, transport: Any) -> None:
        super().__init__(transport)  # type: ignore[no-untyped-call]
        self._asked = "", 0

    def write_message_begin(self, name: str, kind: int, _: int) -> None:
        """Begin a call under the next number."""
        number = self._asked[1] % _LARGEST + 1
        self._asked = name, number
        super().write_message_begin(name, kind, number)  # type: ignore[no-untyped-call]

    def read_message_begin(self) -> tuple[str, int, int]:
        """Begin to read the answer. Raises AnswersMixedError if it is not that to the call sent last."""
        try:
            name, kind, number = super().read_message_begin()  # type: ignore[no-untyped-call]
        except ProtocolError as error:
            raise AnswersMixedError(f"no answer begins as this one does ({error})") from None
        if (name, number) != self._asked:
            wanted, sent = self._asked
            raise AnswersMixedError(f"call {sent}, {wanted}, got the answer to call {number}, {name}")
        return name, kind, number
