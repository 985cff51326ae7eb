"""Messages that are recognised by an earlier one have the end that a walk finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hive_acid.wire import service, ttypes
from metastore.rpc.encoding.framing import MessageScanner, ProtocolError
from metastore.rpc.encoding.shapes import LEARNS_EACH, LONGEST_BYTES, MAX_OF_LENGTH, Shapes
from tests.rpc.test_framing import LIMIT, encode

Found = tuple[object, ...] | str

letters = st.text("ab€", max_size=3)
components = st.builds(
    ttypes.LockComponent,
    type=st.integers(0, 3),
    level=st.integers(0, 2),
    dbname=letters,
    tablename=letters,
    partitionname=st.none() | letters,
    isTransactional=st.booleans(),
)
requests = st.builds(
    ttypes.LockRequest,
    component=st.lists(components, max_size=2),
    txnid=st.none() | st.integers(0, 2**63 - 1),
    user=letters,
)
calls = st.one_of(
    requests.map(lambda request: ("lock", service.lock_args(request))),
    st.lists(st.integers(0, 2**63 - 1), max_size=3).map(
        lambda ids: ("abort_txns", service.abort_txns_args(ttypes.AbortTxnsRequest(txn_ids=ids)))
    ),
    st.dictionaries(letters, letters, max_size=2).map(
        lambda found: ("create_database", service.create_database_args(ttypes.Database(parameters=found)))
    ),
    st.dictionaries(letters, st.integers(0, 9), max_size=2).map(
        lambda ids: ("add_write_ids_to_min_history", service.add_write_ids_to_min_history_args(1, ids))
    ),
)
messages = st.builds(lambda call, sequence: bytes(encode(*call, sequence=sequence)), calls, st.integers(0, 2**31 - 1))


def found(scan: Any, scanner: MessageScanner, message: bytes) -> Found:
    try:
        end = scan(message)
    except ProtocolError as error:
        return str(error)
    return end, scanner.name, scanner.kind, scanner.sequence, scanner.elements, scanner.walked


def found_by_shapes(shapes: Shapes, message: bytes) -> Found:
    scanner = MessageScanner(LIMIT)
    return found(lambda data: shapes.scan(scanner, bytearray(data)), scanner, message)


def found_by_walk(message: bytes) -> Found:
    scanner = MessageScanner(LIMIT)
    return found(scanner.scan, scanner, message)


def knowing(*known: bytes) -> Shapes:
    shapes = Shapes()
    for message in known:
        for _ in range(LEARNS_EACH):
            found_by_shapes(shapes, message)
    return shapes


@given(st.lists(messages, min_size=1, max_size=30))
def test_each_of_many_messages_is_found_as_by_a_walk(several: Any) -> None:
    shapes = knowing(*several)
    for message in several:
        assert found_by_shapes(shapes, message) == found_by_walk(message)


@given(messages, st.data())
def test_a_message_with_other_bytes_is_found_as_by_a_walk(message: Any, data: Any) -> None:
    shapes = knowing(message)
    changed = bytearray(message)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(message) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(range(16))
        )
    assert found_by_shapes(shapes, bytes(changed)) == found_by_walk(bytes(changed))
    assert found_by_shapes(shapes, message + b"\0") == found_by_walk(message + b"\0")
    assert found_by_shapes(shapes, message[:-1]) == found_by_walk(message[:-1])


def test_what_differs_in_its_values_is_recognised(monkeypatch: Any) -> None:
    def heartbeat(txn_id: int, sequence: int) -> bytes:
        request = ttypes.HeartbeatRequest(txnid=txn_id)
        return bytes(encode("heartbeat", service.heartbeat_args(request), sequence=sequence))

    shapes = knowing(heartbeat(1, 2))
    expected = found_by_walk(heartbeat(2**60 + 7, 99))
    monkeypatch.setattr(MessageScanner, "scan", None)
    assert found_by_shapes(shapes, heartbeat(2**60 + 7, 99)) == expected


def test_of_each_length_the_last_ones_are_known_and_long_ones_are_not() -> None:
    shapes = Shapes()
    for number in range(3 * MAX_OF_LENGTH):
        method = f"method_{number:02}"
        for _ in range(LEARNS_EACH):
            scanner = MessageScanner(LIMIT)
            assert shapes.scan(scanner, encode(method, service.get_all_databases_args())) is not None
            assert scanner.name == method
    long = encode("get_database", service.get_database_args("n" * LONGEST_BYTES))
    assert found_by_shapes(knowing(bytes(long)), bytes(long)) == found_by_walk(bytes(long))
