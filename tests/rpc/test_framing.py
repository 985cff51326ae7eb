"""The message scanner against the real encoder, however the bytes are cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TMessageType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import service, ttypes
from metastore.rpc.encoding.framing import MessageScanner, ProtocolError

LIMIT = 1 << 20


def encode(method: Any, arguments: Any, sequence: Any = 7) -> Any:
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(method, TMessageType.CALL, sequence)
    protocol.write_struct(arguments)
    protocol.write_message_end()
    return buffer.getvalue()


names = st.text(max_size=12)
columns = st.lists(st.builds(ttypes.FieldSchema, name=names, type=names, comment=st.none() | names), max_size=4)
tables = st.builds(
    ttypes.Table,
    tableName=names,
    dbName=names,
    createTime=st.integers(0, 2**31 - 1),
    sd=st.builds(ttypes.StorageDescriptor, cols=columns, parameters=st.dictionaries(names, names, max_size=3)),
    parameters=st.dictionaries(names, names, max_size=5),
    writeId=st.integers(-(2**63), 2**63 - 1),
    temporary=st.booleans(),
)


@given(tables, st.data())
def test_the_end_is_found_however_the_bytes_arrive(table: Any, data: Any) -> None:
    message = encode("create_table", service.create_table_args(tbl=table), sequence=99)
    rest = b"\x80\x01\x00\x01next"
    scanner = MessageScanner(LIMIT)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(message) - 1), max_size=6)))
    for cut in cuts:
        assert scanner.scan(message[:cut]) is None
    assert scanner.scan(message + rest) == len(message)
    assert (scanner.name, scanner.sequence) == ("create_table", 99)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), st.dictionaries(names, st.integers(0, 9), max_size=9))
def test_lists_and_maps_of_numbers_are_stepped_over(ids: Any, minimums: Any) -> None:
    message = encode("abort_txns", service.abort_txns_args(rqst=ttypes.AbortTxnsRequest(txn_ids=ids)))
    assert MessageScanner(LIMIT).scan(message) == len(message)
    message = encode("add_write_ids_to_min_history", service.add_write_ids_to_min_history_args(1, minimums))
    assert MessageScanner(LIMIT).scan(message) == len(message)


HEADER = b"\x80\x01\x00\x01\x00\x00\x00\x01x\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"GET / HTTP/1.1\r\n", "strict binary"),
        (b"\x00\x00\x00\x20\x80\x01", "strict binary"),
        (b"\x80\x01\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x01", "type 2"),
        (b"\x80\x01\x00\x01\x7f\xff\xff\xff", "method name"),
        (HEADER + b"\x0b\x00\x01\x40\x00\x00\x00", "size of 1073741824"),
        (HEADER + b"\x0f\x00\x01\x0a\x00\x0f\xff\xff", "beyond the message limit"),
        (HEADER + b"\x0b\x00\x01\xff\xff\xff\xff", "size of -1"),
        (HEADER + b"\x07\x00\x01", "unknown type 7"),
        (HEADER + b"\x0c\x00\x01" * 64, "nested deeper"),
    ],
)
def test_bad_bytes_are_refused(message: Any, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        MessageScanner(LIMIT).scan(message)


def test_a_message_that_never_ends_is_refused_at_the_limit() -> None:
    scanner = MessageScanner(1000)
    message = HEADER + b"\x0b\x00\x01\x00\x00\x03\x00" + b"x" * 1000
    assert scanner.scan(message[:700]) is None
    assert scanner.scan(message[:790]) is None
    endless = HEADER + b"\x0d\x00\x01\x0b\x0b\x00\x00\x03\xe8" + b"\x00\x00\x00\x01a" * 300
    with pytest.raises(ProtocolError, match="more than 1000"):
        MessageScanner(1000).scan(endless)


SIZES = {2: 1, 4: 8, 6: 2, 8: 4, 10: 8}


@st.composite
def values(draw: Any, depth: int = 0) -> tuple[int, bytes, int]:
    """A value of any type: its type, its bytes, and how many elements it counts for."""
    kind = draw(st.sampled_from([2, 6, 8, 10, 11, 4] + ([12, 12, 13, 14, 15] if depth < 4 else [])))
    if kind in SIZES:
        return kind, bytes(SIZES[kind]), 1
    if kind == 11:
        text = draw(st.binary(max_size=90))
        return kind, len(text).to_bytes(4, "big") + text, 1
    if kind == 12:
        fields = draw(st.lists(values(depth + 1), max_size=4))
        return kind, b"".join(bytes((k, 0, 1)) + b for k, b, _ in fields) + b"\0", 4 + sum(n for _, _, n in fields)
    (first, body, count), times = draw(values(depth + 1)), draw(st.integers(0, 3))
    if kind == 13:
        return kind, bytes((2, first)) + times.to_bytes(4, "big") + (b"\1" + body) * times, 1 + times * (1 + count)
    return kind, bytes((first,)) + times.to_bytes(4, "big") + body * times, 1 + times * count


@given(st.lists(st.lists(values(), max_size=5), min_size=1, max_size=3), st.data())
def test_one_scanner_finds_the_ends_and_counts_of_messages_in_a_row(messages: Any, data: Any) -> None:
    scanner = MessageScanner(LIMIT)
    for fields in messages:
        body = b"".join(bytes((kind, 0, 1)) + encoded for kind, encoded, _ in fields) + b"\0"
        message = HEADER + body
        most = data.draw(st.sampled_from([1, 7, 10_000]))
        length = None
        for cut in [*sorted(data.draw(st.lists(st.integers(0, len(message) - 1), max_size=3))), len(message)]:
            length = scanner.scan(message[:cut], most)
            while length is None and scanner.is_tired:
                length = scanner.scan(message[:cut], most)
        assert (length, scanner.elements) == (len(message), sum(count for _, _, count in fields))
        scanner.restart()
