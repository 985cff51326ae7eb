"""The reader of maps with lists as keys reads everything as thriftpy2 does, and those maps too."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import service, ttypes
from metastore.rpc.encoding import codec
from metastore.rpc.encoding.list_keys import has_list_keys, read_arguments
from tests.caller import Caller

DEPTH = 4


def made(struct_class: Any, rng: random.Random, depth: int = 0) -> Any:
    """A struct with some of its fields set."""
    struct = struct_class()
    for number, (kind, name, *inner, is_required) in struct_class.thrift_spec.items():
        if type(number) is int and (is_required or rng.random() < 0.7):
            setattr(struct, name, value(kind, inner[0] if inner else None, rng, depth))
    return struct


def value(kind: int, inner: Any, rng: random.Random, depth: int) -> Any:
    if kind == TType.STRUCT:
        return made(inner, rng, depth + 1) if depth < DEPTH else inner()
    if kind in (TType.LIST, TType.SET):
        item = inner if isinstance(inner, tuple) else (inner, None)
        return [value(*item, rng, depth + 1) for _ in range(rng.randrange(3) if depth < DEPTH else 0)]  # type: ignore[call-arg]
    if kind == TType.MAP:
        key, item = (one if isinstance(one, tuple) else (one, None) for one in inner)
        size = rng.randrange(3) if depth < DEPTH else 0
        return {value(*key, rng, depth): value(*item, rng, depth + 1) for _ in range(size)}  # type: ignore[call-arg]
    if kind == TType.STRING:
        return rng.choice(["", "a", "ä€", "x" * 300])
    if kind == TType.BINARY:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(5)))
    if kind == TType.BOOL:
        return rng.random() < 0.5
    if kind == TType.DOUBLE:
        return rng.random()
    bits = {TType.BYTE: 7, TType.I16: 15, TType.I32: 31, TType.I64: 63}[kind]
    return rng.randrange(-(2**bits), 2**bits)


def message_of(method: str, arguments: Any) -> bytes:
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(method, 1, 1)
    protocol.write_struct(arguments)
    return bytes(buffer.getvalue())


def read_fast(message: bytes, arguments: Any) -> Any:
    protocol = TCyBinaryProtocol(TCyMemoryBuffer(message))
    protocol.read_message_begin()
    protocol.read_struct(arguments)
    return arguments


def read_slow(message: bytes, arguments: Any) -> Any:
    read_arguments(message, arguments)
    return arguments


@pytest.mark.parametrize("seed", range(3))
def test_reads_as_the_fast_decoder(seed: int) -> None:
    rng = random.Random(seed)
    for method in service.thrift_services:
        arguments_class = getattr(service, f"{method}_args")
        message = message_of(method, made(arguments_class, rng))
        assert read_slow(message, arguments_class()) == read_fast(message, arguments_class()), method


def test_fields_of_other_types_are_skipped() -> None:
    rng = random.Random(7)
    arguments = made(service.create_table_args, rng)
    message = message_of("create_table", arguments)
    for other in ("lock_args", "add_partitions_req_args", "heartbeat_args", "alter_table_args"):
        arguments_class = getattr(service, other)
        assert read_slow(message, arguments_class()) == read_fast(message, arguments_class()), other


def skewed(locations: dict[tuple[str, ...], str]) -> Any:
    skew = ttypes.SkewedInfo(skewedColNames=["a", "b"], skewedColValues=[["1", "2"]])
    skew.skewedColValueLocationMaps = locations
    sd = ttypes.StorageDescriptor(cols=[], serdeInfo=ttypes.SerDeInfo(), skewedInfo=skew)
    return ttypes.Table(dbName="default", tableName="t", sd=sd)


@pytest.mark.parametrize("locations", [{("1", "2"): "file:/a"}, {("1", "2"): "file:/a", (): "", ("ä",): "b"}])
def test_lists_as_keys(locations: Any) -> None:
    message = message_of("create_table", service.create_table_args(tbl=skewed(locations)))
    assert has_list_keys(message)
    (table,) = codec.decode_arguments("create_table", message)
    assert table.sd.skewedInfo.skewedColValueLocationMaps == locations
    assert table.sd.skewedInfo.skewedColNames == ["a", "b"]


def test_an_empty_map_goes_the_fast_way() -> None:
    assert not has_list_keys(message_of("create_table", service.create_table_args(tbl=skewed({}))))


def test_our_own_client_skips_the_map(metastore: Callable[..., str]) -> None:
    with Caller(metastore()) as caller:
        caller.call("create_table", skewed({("1", "2"): "file:/a"}))
        found = caller.call("get_table", "default", "t").sd.skewedInfo
        assert found.skewedColValues == [["1", "2"]]
        assert found.skewedColValueLocationMaps is None
