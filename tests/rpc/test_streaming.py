"""Long lists over real sockets: the bytes of the plain reply, bounded memory, and what happens when one end fails."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import func, select, text

from hive_acid.errors import MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.observe.calls import Outcome
from metastore.rpc import server as server_module
from metastore.rpc import streaming
from metastore.rpc.encoding.codec import encode_result
from metastore.rpc.streaming import PART_BYTES, Streamed, listed
from metastore.store.database import STREAMS, WAITING_STREAMS, Database
from metastore.store.rows import SHORT, Rows, Snapshot
from tests.caller import Caller, refused
from tests.rpc.test_server import Running
from tests.waiting import at_rest, until

NUMBERS = func.generate_series(1, text(":n")).column_valued("number")


def rows(db: Database, count: int, form: str = "k=%s") -> Rows[str]:
    """As many texts, from the database."""
    return Rows(db, select(NUMBERS).order_by(NUMBERS).params(n=count), lambda row: form % row[0])


class Made:
    """A list in place of one of the database."""

    def __init__(self, count: int, items: Callable[[], Iterator[Any]]) -> None:
        self._count, self._items = count, items

    @contextmanager
    def opened(self) -> Iterator[Snapshot[Any]]:
        yield Snapshot(self._count, self._items)


def streamed(count: int, items: Callable[[], Iterator[Any]]) -> Streamed:
    return Streamed(Made(count, items), lambda found: found)  # type: ignore[arg-type]


@contextmanager
def caller(server: Running) -> Iterator[Caller]:
    with Caller(f"thrift://127.0.0.1:{server.port}") as found:
        yield found


def asked(server: Running, method: str, receive_bytes: int | None = None) -> socket.socket:
    """A connection on which a method without arguments was called."""
    connection = socket.socket()
    if receive_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(struct.pack(">Ii", 0x80010001, len(method)) + method.encode() + struct.pack(">i", 7) + b"\0")
    return connection


def read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (part := connection.recv(1 << 16)):
        data += part
    return bytes(data)


def item(number: int) -> Any:
    values = [f"2020-{number}", "é"]
    return ttypes.Partition(values=values, dbName="d", tableName="t", parameters={"number": str(number)})


def transaction(name: str) -> Any:
    return ttypes.TxnInfo(id=int(name[2:]), state=1, user="u", hostname="h")


def behind_a_number(found: Any) -> Any:
    return ttypes.GetOpenTxnsInfoResponse(txn_high_water_mark=2**40, open_txns=found)


def deep_inside(found: Any) -> Any:
    return [
        ttypes.PartitionSpec(dbName="d", partitionList=ttypes.PartitionListComposingSpec(partitions=found)),
        ttypes.PartitionSpec(dbName="other"),
    ]


@pytest.mark.parametrize("count", [0, 1, SHORT, SHORT + 1, 5000])
@pytest.mark.parametrize(
    ("method", "each", "wrap"),
    [
        ("get_partition_names", str, lambda found: found),
        ("get_partitions", lambda name: item(int(name[2:])), lambda found: found),
        ("get_open_txns_info", transaction, behind_a_number),
        ("get_part_specs_by_filter", lambda name: item(int(name[2:])), deep_inside),
    ],
)
def test_the_bytes_are_those_of_the_plain_reply(
    running: Any, db: Database, method: str, each: Any, wrap: Any, count: int
) -> None:
    server = running(**{method: lambda call, *args: Streamed(rows(db, count).each(each), wrap)})
    expected = encode_result(method, 7, wrap([each(f"k={number}") for number in range(1, count + 1)]))
    with asked(server, method) as connection:
        assert read(connection, len(expected)) == expected
        connection.sendall(struct.pack(">Ii", 0x80010001, 9) + b"getStatus" + struct.pack(">i", 8) + b"\0")
        assert b"getStatus" in connection.recv(100)


def test_short_lists_are_plain(db: Database) -> None:
    assert listed(rows(db, SHORT)) == [f"k={number}" for number in range(1, SHORT + 1)]
    assert isinstance(listed(rows(db, SHORT + 1)), Streamed)
    assert listed(rows(db, 3), behind_a_number).open_txns == ["k=1", "k=2", "k=3"]
    limited = Rows(db, select(NUMBERS).params(n=10_000), lambda row: row[0], limit=SHORT)
    assert listed(limited) == list(range(1, SHORT + 1))


def test_gaps_do_not_count(running: Any, db: Database) -> None:
    even = rows(db, 2000).each(lambda name: name if int(name[2:]) % 2 == 0 else None, has_gaps=True)
    with caller(running(get_partition_names=lambda call, *args: listed(even))) as ann:
        assert ann.call("get_partition_names", "d", "t", -1) == [f"k={number}" for number in range(2, 2001, 2)]


def test_200_000_names_take_little_memory(running: Any, db: Database) -> None:
    form = "year=2020/month=12/" + 80 * "x" + "=%s"
    server = running(get_partition_names=lambda call, *args: listed(rows(db, 200_000, form)))
    size = len(encode_result("get_partition_names", 7, [form % number for number in range(1, 200_001)]))
    assert size > 20_000_000
    with asked(server, "get_partition_names") as connection:
        tracemalloc.start()
        taken = 0
        while taken < size:
            taken += len(connection.recv(1 << 16))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert taken == size
    assert peak_bytes < 4_000_000, peak_bytes


def test_the_list_is_that_of_one_moment(running: Any, db: Database) -> None:
    with db.engine.begin() as connection:
        connection.execute(text("CREATE TABLE moment AS SELECT number FROM generate_series(1, 50000) AS number"))
    query = select(text("number")).select_from(text("moment")).order_by(text("number"))
    begun = threading.Event()

    def made(row: Any) -> str:
        begun.set()
        return f"{row[0]:>20}"

    found = Rows(db, query, made)
    server = running(get_partition_names=lambda call, *args: listed(found))
    with caller(server) as ann:
        ann.send("get_partition_names", "d", "t", -1)
        assert begun.wait(10)
        with db.engine.begin() as connection:
            connection.execute(text("DELETE FROM moment WHERE number % 2 = 0"))
        assert len(ann.receive()) == 50_000
        assert len(ann.call("get_partition_names", "d", "t", -1)) == 25_000


def test_a_reader_sets_the_pace(running: Any) -> None:
    made = 0

    def items() -> Iterator[str]:
        nonlocal made
        for _ in range(4000):
            made += 1
            yield "x" * 10_000

    server = running(get_partition_names=lambda call, *args: streamed(4000, items))
    with asked(server, "get_partition_names", receive_bytes=1 << 16) as connection, caller(server) as other:
        until(lambda: made)
        at_rest(lambda: made, 0.2)
        assert 0 < made < 2000, "some 20 MB and more are made that nobody takes"
        assert other.call("getStatus") == 2
        assert len(read(connection, 40_000_000)) > 40_000_000
    assert made == 4000


def test_an_error_before_the_first_part_is_answered(running: Any) -> None:
    def items() -> Iterator[str]:
        yield "little"
        raise NoSuchObjectError("hive.d.t table not found")

    def crash() -> Iterator[str]:
        yield "little"
        raise ZeroDivisionError

    server = running(
        get_partition_names=lambda call, *args: streamed(10, items),
        get_all_tables=lambda call, *args: streamed(10, crash),
    )
    with caller(server) as ann:
        with refused("NoSuchObjectException", "table not found"):
            ann.call("get_partition_names", "d", "t", -1)
        with refused("MetaException", "get_all_tables has failed in the metastore"):
            ann.call("get_all_tables", "d")
        assert ann.call("getStatus") == 2
    assert server.counts.total(Outcome.REFUSED) == 1
    assert server.counts.total(Outcome.CRASHED) == 1


def test_an_error_after_it_cuts_the_connection(running: Any, caplog: pytest.LogCaptureFixture) -> None:
    def items() -> Iterator[str]:
        for _ in range(10):
            yield "x" * PART_BYTES
        raise MetaError("the database is gone")

    server = running(get_partition_names=lambda call, *args: streamed(100, items))
    for _ in range(2 * STREAMS):  # each leaves its place to the next
        with caller(server) as ann, pytest.raises(Exception):  # noqa: B017, PT011 - as the transport has it
            ann.call("get_partition_names", "d", "t", -1)
    with caller(server) as ann:
        assert ann.call("getStatus") == 2
    assert server.counts.total(Outcome.BROKEN_OFF) == 2 * STREAMS
    assert "the database is gone" in caplog.text


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_list_of_another_length_is_no_half_message(running: Any, size: int) -> None:
    server = running(get_partition_names=lambda call, *args: streamed(20, lambda: iter(["x" * size] * 19)))
    with caller(server) as ann, pytest.raises(Exception):  # noqa: B017, PT011 - an answer, or the end of the connection
        ann.call("get_partition_names", "d", "t", -1)
    until(lambda: server.counts.total(Outcome.CRASHED) + server.counts.total(Outcome.BROKEN_OFF) == 1)


def test_a_value_that_does_not_fit_is_no_half_message(running: Any) -> None:
    server = running(get_partition_names=lambda call, *args: streamed(2, lambda: iter(["x", 1])))
    with caller(server) as ann:
        with refused("MetaException", "get_partition_names has failed in the metastore"):
            ann.call("get_partition_names", "d", "t", -1)
        assert ann.call("getStatus") == 2


@pytest.mark.parametrize("leaves", [True, False])
def test_who_does_not_read_is_cut_off(running: Any, monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    """A client that goes away, or takes nothing for long, gives its place to others; a slow one keeps it."""
    monkeypatch.setattr(streaming, "READER_PATIENCE_S", 60.0 if leaves else 0.3)
    begun: list[int] = []

    def items() -> Iterator[str]:
        begun.append(1)
        return iter(["x" * 10_000] * 4000)

    server = running(get_partition_names=lambda call, *args: streamed(4000, items))
    connections = [asked(server, "get_partition_names", receive_bytes=1 << 16) for _ in range(STREAMS)]
    if leaves:
        until(lambda: len(begun) == STREAMS)
        for connection in connections:
            connection.close()
    with asked(server, "get_partition_names") as connection:
        assert len(read(connection, 40_000_000)) > 40_000_000
    until(lambda: server.counts.total(Outcome.BROKEN_OFF) == STREAMS)
    for connection in connections:
        connection.close()


def test_a_slow_reader_has_its_time(running: Any, caplog: Any) -> None:
    server = running(
        limits={"reply_timeout_ms": 400},
        get_partition_names=lambda call, *args: streamed(4000, lambda: iter(["x" * 10_000] * 4000)),
    )
    with asked(server, "get_partition_names", receive_bytes=1 << 16) as connection:
        until(lambda: server.counts.total(Outcome.BROKEN_OFF), between=lambda: connection.recv(1 << 14))
    assert "has not taken the list" in caplog.text


def test_a_list_waits_for_its_turn_but_not_forever(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "TURN_S", 0.3)
    goes_on = threading.Event()
    begun: list[int] = []

    def items() -> Iterator[str]:
        for number in range(4000):
            if number == 100:
                begun.append(1)
                goes_on.wait(20)
            yield "x" * 10_000

    server = running(get_partition_names=lambda call, *args: streamed(4000, items))
    connections = [asked(server, "get_partition_names") for _ in range(STREAMS)]
    until(lambda: len(begun) == STREAMS)
    with caller(server) as ann:
        with refused("MetaException", "busy sending"):
            ann.call("get_partition_names", "d", "t", -1)
        assert ann.call("getStatus") == 2
        goes_on.set()
        for connection in connections:
            assert len(read(connection, 40_000_000)) > 40_000_000
            connection.close()
        assert len(ann.call("get_partition_names", "d", "t", -1)) == 4000


@pytest.mark.parametrize("drips", [False, True])
def test_slow_readers_keep_nobody_waiting(running: Any, drips: bool) -> None:
    """However many there are, another one's list begins at once or after the first of them was cut off."""
    server = running(get_partition_names=lambda call, *args: streamed(4000, lambda: iter(["x" * 10_000] * 4000)))
    connections = [
        asked(server, "get_partition_names", receive_bytes=1 << 16) for _ in range(STREAMS + WAITING_STREAMS + 4)
    ]
    ends = threading.Event()

    def drip() -> None:
        while not ends.wait(0.02):
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.recv(1 << 12)

    dripping = threading.Thread(target=drip)
    if drips:
        dripping.start()
    try:
        for _ in range(3):
            began_at = time.monotonic()
            with caller(server) as ann:
                assert len(ann.call("get_partition_names", "d", "t", -1)) == 4000
            assert time.monotonic() - began_at < 10
    finally:
        ends.set()
        if drips:
            dripping.join()
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("reads", [True, False])
def test_a_stop_finishes_replies_that_are_read(running: Any, monkeypatch: pytest.MonkeyPatch, reads: bool) -> None:
    monkeypatch.setattr(server_module, "STOP_WAIT_S", 10.0 if reads else 0.3)
    server = running(get_partition_names=lambda call, *args: streamed(4000, lambda: iter(["x" * 10_000] * 4000)))
    with asked(server, "get_partition_names", receive_bytes=1 << 16) as connection:
        taken = len(connection.recv(100))
        thread = threading.Thread(target=server.stop)
        thread.start()
        if reads:
            assert taken + len(read(connection, 41_000_000)) > 40_000_000
        thread.join(8)
        assert not thread.is_alive()
    until(lambda: server.counts.total(Outcome.FINE if reads else Outcome.BROKEN_OFF) == 1)
