"""Messages to handler arguments, and results or errors to reply messages.

The whole reply is encoded in memory before a byte is sent, so a value that does not fit its type becomes a clean error
and never half a message (metastore-wire.md §7, point 3).
"""

from __future__ import annotations

import functools
from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TMessageType, TType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.errors import InvalidInputError, MetastoreError
from hive_acid.wire import service, ttypes

ONEWAY = frozenset({"shutdown", "reinitialize"})


def decode_arguments(method: str, message: bytes) -> list[Any]:
    """The arguments of a call, in the order of their ids.

    Raises InvalidInputError when a required field is missing or a text is not UTF-8.
    """
    protocol = TCyBinaryProtocol(TCyMemoryBuffer(message))
    protocol.read_message_begin()
    arguments = getattr(service, method + "_args")()
    protocol.read_struct(arguments)
    values = [getattr(arguments, name) for name in _argument_names(method)]
    for value in values:
        if hasattr(value, "thrift_spec"):
            _check(value)
    return values


def encode_result(method: str, sequence: int, value: Any) -> bytes:
    """The reply that carries a result."""
    result = _result_class(method)()
    if value is not None:
        result.success = value
    return _message(method, TMessageType.REPLY, sequence, result)


def encode_error(method: str, sequence: int, error: MetastoreError) -> bytes:
    """The reply that carries an error: in its declared slot, as MetaException where only that is declared, else as
    an internal error with its text (metastore-wire.md §3, point 4).
    """
    slots = _exception_slots(method)
    for name in (error.thrift_name, "MetaException"):
        if name in slots:
            result = _result_class(method)()
            setattr(result, slots[name], getattr(ttypes, name)(message=str(error)))
            return _message(method, TMessageType.REPLY, sequence, result)
    return encode_internal_error(method, sequence, str(error))


def encode_internal_error(method: str, sequence: int, text: str = "") -> bytes:
    """The reply for a failure that the method does not declare."""
    words = f"Internal error processing {method}" + (f": {text}" if text else "")
    error = TApplicationException(TApplicationException.INTERNAL_ERROR, words)
    return _message(method, TMessageType.EXCEPTION, sequence, error)


def encode_unknown_method(method: str, sequence: int) -> bytes:
    """The reply for a method that is not served; Spark and Flink search for exactly this text."""
    error = TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{method}'")
    return _message(method, TMessageType.EXCEPTION, sequence, error)


def _message(method: str, kind: int, sequence: int, body: Any) -> bytes:
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(method, kind, sequence)
    protocol.write_struct(body)
    protocol.write_message_end()
    encoded: bytes = buffer.getvalue()
    return encoded


@functools.cache
def _argument_names(method: str) -> list[str]:
    spec = getattr(service, method + "_args").thrift_spec
    return [spec[number][1] for number in sorted(spec)]


@functools.cache
def _result_class(method: str) -> Any:
    return getattr(service, method + "_result")


@functools.cache
def _exception_slots(method: str) -> dict[str, str]:
    spec = _result_class(method).thrift_spec
    return {field[2].__name__: field[1] for number, field in spec.items() if number != 0}


@functools.cache
def _fields(struct: Any) -> list[tuple[str, bool, bool]]:
    return [(field[1], bool(field[-1]), field[0] == TType.STRING) for field in struct.thrift_spec.values()]


def _check(struct: Any) -> None:
    struct_type: Any = type(struct)
    for name, required, is_text in _fields(struct_type):
        value = getattr(struct, name)
        if value is None and required:
            raise InvalidInputError(f"{type(struct).__name__}.{name} is required and was not sent")
        if is_text and isinstance(value, bytes):
            raise InvalidInputError(f"{type(struct).__name__}.{name} is not UTF-8 text")
