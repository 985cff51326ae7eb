"""Messages to handler arguments, and results or errors to reply messages.

The whole reply is encoded in memory before a byte is sent, so a value that does not fit its type becomes a clean error
and never half a message (wire.md §7.3). Long lists are the exception, see `streaming`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TMessageType, TType
from thriftpy2.transport import TCyBufferedTransport, TCyMemoryBuffer

from hive_acid.errors import InvalidInputError, MetastoreError
from hive_acid.wire import service, ttypes
from metastore.observe.log import shortened
from metastore.rpc.encoding.generations import amend
from metastore.rpc.encoding.list_keys import has_list_keys, read_arguments
from metastore.rpc.encoding.pacing import paced

ONEWAY = frozenset({"shutdown", "reinitialize"})
_VERSION_1 = 0x80010000
_DISPENSABLE = frozenset({"EnvironmentContext", "CreationMetadata"})
"""Structs that clients leave out of their arguments, or whose absence the catalogue has an error of its own for."""
_FIELD, _LIST, _I32 = struct.Struct(">bh"), struct.Struct(">bi"), struct.Struct(">i")
_SUCCESS = _FIELD.pack(TType.STRUCT, 0)
_VOID = b"\x00"
"""The body of a reply without a result: a struct that ends at once."""


class Prepared:
    """A result that many replies carry; it is encoded once."""

    __slots__ = ("body", "value")

    def __init__(self, value: Any, body: bytes | None = None) -> None:
        self.value = value
        self.body = body


def prepared_paced(method: str, value: Any) -> Prepared:
    """A result that may be long, encoded here, on a thread: others have their turn meanwhile."""
    return Prepared(value, _success(method, paced(value)))


def decode_arguments(method: str, message: bytes) -> list[Any]:
    """The arguments of a call, in the order of their ids.

    Raises InvalidInputError when a struct or a required field of one is missing, or a text of theirs is not UTF-8; what
    lies deeper is looked at by who needs it, see `faults`.
    """
    shape = _shape(method)
    arguments = shape.arguments()
    if has_list_keys(message):
        read_arguments(message, arguments)
    else:
        protocol = TCyBinaryProtocol(TCyMemoryBuffer(message))
        protocol.read_message_begin()
        protocol.read_struct(arguments)
    amend(method, message, arguments)
    if _checked_fields(shape.arguments):
        _check(arguments)
    for name in shape.needed:
        if getattr(arguments, name) is None:
            raise InvalidInputError(f"{method} was called without its {name}")
    for name in shape.structs:
        if (value := getattr(arguments, name)) is not None:
            _check(value)
    return [getattr(arguments, name) for name in shape.names]


def encode_paced(method: str, sequence: int, value: Any) -> bytes:
    """The reply that carries a result which may be long; on a thread, others have their turn meanwhile."""
    return encode_result(method, sequence, paced(value))


def encode_result(method: str, sequence: int, value: Any) -> bytes:
    """The reply that carries a result."""
    if value is None:
        body = _VOID
    elif isinstance(value, Prepared):
        if value.body is None:
            value.body = _success(method, value.value)
        body = value.body
    else:
        body = _success(method, value)
    return _header(method, TMessageType.REPLY) + _I32.pack(sequence) + body


def write_result(method: str, sequence: int, value: Any, sink: Any, part_bytes: int) -> None:
    """Write the reply that `encode_result` makes in parts of about `part_bytes`, each by one call of `sink.write`.

    Lists in `value` may be anything with a length and an iterator.
    """
    transport = TCyBufferedTransport(sink, part_bytes)
    transport.write(_header(method, TMessageType.REPLY) + _I32.pack(sequence))
    TCyBinaryProtocol(transport).write_struct(_result_class(method)(success=value))
    transport.flush()


def encoded(value: Any) -> bytes:
    """A struct as it is within a message."""
    return _body(value)


def spliced(value: Any, *fields: bytes) -> Prepared:
    """A result that is a struct, of which some fields are encoded already and not in `value`."""
    return Prepared(value, b"".join((_SUCCESS, _body(value)[:-1], *fields, _VOID, _VOID)))


def struct_field(number: int, body: bytes) -> bytes:
    """A field that is a struct."""
    return _FIELD.pack(TType.STRUCT, number) + body


def structs_field(number: int, bodies: Sequence[bytes]) -> bytes:
    """A field that is a list of structs."""
    return b"".join((_FIELD.pack(TType.LIST, number), _LIST.pack(TType.STRUCT, len(bodies)), *bodies))


def longs_field(number: int, count: int, body: bytes, kind: int = TType.LIST) -> bytes:
    """A field that is a list, or a set, of so many 64-bit numbers, these big-endian in `body`."""
    return b"".join((_FIELD.pack(kind, number), _LIST.pack(TType.I64, count), body))


def binary_field(number: int, value: bytes) -> bytes:
    """A field that is bytes."""
    return b"".join((_FIELD.pack(TType.STRING, number), _I32.pack(len(value)), value))


def encode_error(method: str, sequence: int, error: MetastoreError) -> bytes:
    """The reply that carries an error: in its declared slot, as MetaException where only that is declared, else as
    an internal error with its text (wire.md §3.4).
    """
    slots, words = _exception_slots(method), shortened(str(error), _MOST_LETTERS)
    for name in (error.thrift_name, "MetaException"):
        if name in slots:
            result = _result_class(method)()
            setattr(result, slots[name], getattr(ttypes, name)(message=words))
            return _message(method, TMessageType.REPLY, sequence, result)
    return encode_internal_error(method, sequence, words)


def encode_internal_error(method: str, sequence: int, text: str) -> bytes:
    """The reply for an error that the method does not declare."""
    words = f"Internal error processing {method}: {text}"
    error = TApplicationException(TApplicationException.INTERNAL_ERROR, words)
    return _message(method, TMessageType.EXCEPTION, sequence, error)


def encode_unknown_method(method: str, sequence: int) -> bytes:
    """The reply for a method that is not served; Spark and Flink search for exactly this text."""
    error = TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{method}'")
    return _message(method, TMessageType.EXCEPTION, sequence, error)


_MOST_LETTERS = 10_000
"""Of what is said of a request: with a name of 90 MB in it the reply was as long."""


def _success(method: str, value: Any) -> bytes:
    """The body of a reply with a result."""
    return _body(_result_class(method)(success=value))


def _message(method: str, kind: int, sequence: int, body: Any) -> bytes:
    return _header(method, kind) + _I32.pack(sequence) + _body(body)


@functools.lru_cache(maxsize=4096)
def _header(method: str, kind: int) -> bytes:
    """All of a message up to its sequence number."""
    name = method.encode()
    return struct.pack(">Ii", _VERSION_1 | kind, len(name)) + name


def _body(value: Any) -> bytes:
    buffer = TCyMemoryBuffer()
    TCyBinaryProtocol(buffer).write_struct(value)
    encoded: bytes = buffer.getvalue()
    return encoded


class _Shape(NamedTuple):
    """The arguments of a method: their struct, their names in the order of the ids, those that are structs, and those
    that must be there.
    """

    arguments: Any
    names: tuple[str, ...]
    structs: tuple[str, ...]
    needed: tuple[str, ...]


@functools.cache
def _shape(method: str) -> _Shape:
    arguments = getattr(service, method + "_args")
    fields = [field for _, field in sorted(arguments.thrift_spec.items())]
    structs = {field[1]: field[2].__name__ for field in fields if field[0] == TType.STRUCT}
    needed = [name for name, kind in structs.items() if kind not in _DISPENSABLE]
    return _Shape(arguments, tuple(field[1] for field in fields), tuple(structs), tuple(needed))


@functools.cache
def _result_class(method: str) -> Any:
    return getattr(service, method + "_result")


@functools.cache
def _exception_slots(method: str) -> dict[str, str]:
    spec = _result_class(method).thrift_spec
    return {field[2].__name__: field[1] for number, field in spec.items() if number != 0}


@functools.cache
def _checked_fields(struct: Any) -> list[tuple[str, bool, bool]]:
    """The fields that must be there or be texts: the name, and which of the two it is."""
    fields = [(field[1], bool(field[-1]), field[0] == TType.STRING) for field in struct.thrift_spec.values()]
    return [(name, required, is_text) for name, required, is_text in fields if required or is_text]


def _check(struct: Any) -> None:
    struct_type: Any = type(struct)
    for name, required, is_text in _checked_fields(struct_type):
        value = getattr(struct, name)
        if value is None:
            if required:
                raise InvalidInputError(f"{struct_type.__name__}.{name} is required and was not sent")
        elif is_text and type(value) is bytes:
            raise InvalidInputError(f"{struct_type.__name__.removesuffix('_args')}.{name} is not UTF-8 text")
