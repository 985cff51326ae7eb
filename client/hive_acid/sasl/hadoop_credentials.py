"""Hadoop's file of credentials, in which a program on YARN finds its tokens (``HADOOP_TOKEN_FILE_LOCATION``).

It is four letters, a version, and pairs of an alias and a token: in Hadoop's own form (version 0), or as a message of
protocol buffers (version 1). Secrets that are no tokens come behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hive_acid.sasl.hadoop_tokens import KIND, Reader, Secret

MAGIC = b"HDTS"
_OWN_FORM, _PROTOCOL_BUFFERS = 0, 1
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
"""Wire types of protocol buffers."""


class _Credential(NamedTuple):
    secret: Secret
    kind: bytes
    service: bytes


def metastore_token(data: bytes) -> Secret | None:
    """The token for a metastore in the bytes of a file: the first without a service, else the first; None for none.

    Raises ValueError for what is no such file.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("it is no file of Hadoop's credentials")
    reader = Reader(data[len(MAGIC) :])
    (version,) = reader.exactly(1)
    if version == _OWN_FORM:
        found = [*_own_form(reader)]
    elif version == _PROTOCOL_BUFFERS:
        found = [*_protocol_buffers(reader)]
    else:
        raise ValueError(f"it is of version {version} of Hadoop's credentials, which is not known here")
    ours = (token for token in found if token.kind == KIND)
    first = min(ours, key=lambda token: token.service != b"", default=None)
    return None if first is None else first.secret


def _own_form(reader: Reader) -> Iterator[_Credential]:
    for _ in range(reader.number()):
        reader.text()  # alias
        identifier, password, kind, service = (reader.text() for _ in range(4))
        yield _Credential(Secret(identifier, password), kind, service)


def _protocol_buffers(reader: Reader) -> Iterator[_Credential]:
    for number, pair in _fields(reader.exactly(_varint(reader))):
        token = dict(_fields(pair)).get(2) if number == 1 else None
        if token is not None:
            parts = dict(_fields(token))
            yield _Credential(Secret(parts.get(1, b""), parts.get(2, b"")), parts.get(3, b""), parts.get(4, b""))


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of a message's fields of bytes; others are passed over."""
    reader = Reader(message)
    while not reader.is_at_end:
        number, kind = divmod(_varint(reader), 8)
        if kind == _BYTES:
            yield number, reader.exactly(_varint(reader))
        elif kind == _VARINT:
            _varint(reader)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            reader.exactly(8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError("it is damaged")


def _varint(reader: Reader) -> int:
    value = 0
    for place in range(0, 64, 7):
        (byte,) = reader.exactly(1)
        value |= (byte & 127) << place
        if byte < 128:
            return value
    raise ValueError("it is damaged")
