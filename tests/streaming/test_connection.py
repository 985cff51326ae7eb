"""Transactions of a stream: their files, their order, and what is left when they do not end well."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyarrow import orc

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import (
    InvalidTransactionStateError,
    MetastoreUnreachableError,
    StreamingConnectionError,
    StreamingTransactionError,
)
from hive_acid.format.hashing import bucket_number
from hive_acid.format.names import HIVE_3_PROPERTY
from hive_acid.format.progress import last_batch, progress_parameter
from hive_acid.streaming import DelimitedWriter, JsonWriter, StreamingConnection, StreamStatistics, delta
from hive_acid.transactions.transaction import Transaction
from tests.caller import Caller
from tests.streaming.conftest import House


def test_a_transaction_is_one_delta_with_one_file(simple: House) -> None:
    with simple.stream() as stream:
        stream.begin_transaction()
        assert stream.write(b"1,a\n2,b\n") == 2
        assert stream.write("3,c") == 1
        assert simple.rows() == [], "nobody sees it before the commit"
        stream.commit_transaction()
    found = simple.files()
    assert list(found) == ["delta_0000001_0000001_0000"]
    events = found["delta_0000001_0000001_0000"]["bucket_00000"]
    assert [(event.row_id, event.row) for event in events] == [(0, (1, "a")), (1, (2, "b")), (2, (3, "c"))]
    assert simple.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_transactions_of_a_batch_are_numbered_together(simple: House) -> None:
    with simple.stream(transaction_batch_size=3) as stream:
        ids = []
        for number in range(4):
            stream.begin_transaction()
            ids.append((stream.txn_id, stream.write_id, stream.waiting))
            stream.write(f"{number},x")
            if number == 1:
                stream.abort_transaction()
            else:
                stream.commit_transaction()
        first = ids[0][0]
        assert ids == [(first, 1, 2), (first + 1, 2, 1), (first + 2, 3, 0), (first + 3, 4, 2)]
        assert stream.statistics == StreamStatistics(records=3, committed=3, aborted=1)
        assert list(simple.files()) == [f"delta_000000{w}_000000{w}_0000" for w in (1, 3, 4)]
    assert simple.rows() == [(0, "x"), (2, "x"), (3, "x")]
    with Caller(simple.uri) as ann:
        assert not ann.snapshot().open_ids, "close has ended those that had not begun"


def test_an_empty_transaction_leaves_nothing(simple: House) -> None:
    with simple.stream() as stream, stream.transaction():
        assert stream.write(b"") == 0
    assert simple.files() == {}
    assert list(simple.location.iterdir()) == []


def test_rows_choose_their_partitions(house: House) -> None:
    house.create({"id": "int"}, {"day": "date", "place": "string"})
    with house.stream() as stream:
        assert stream.columns == ["id", "day", "place"]
        with stream.transaction():
            stream.write("1,2024-02-29,a/b\n2,2024-02-29,\\N\n3,2024-03-01,a/b\n4,2024-02-29,a/b")
        with stream.transaction():
            stream.write("5,2024-02-29,\n6,2024-02-29,x y")
        assert stream.statistics.partitions_created == 4
    assert house.rows() == [
        (1, "day=2024-02-29/place=a%2Fb"),
        (2, "day=2024-02-29/place=__HIVE_DEFAULT_PARTITION__"),
        (3, "day=2024-03-01/place=a%2Fb"),
        (4, "day=2024-02-29/place=a%2Fb"),
        (5, "day=2024-02-29/place=__HIVE_DEFAULT_PARTITION__"),
        (6, "day=2024-02-29/place=x y"),
    ]


def test_partitions_can_be_given_once_for_all(house: House) -> None:
    house.create({"id": "int"}, {"year": "int", "place": "string"})
    with house.stream(static_partition={"YEAR": "2024", "place": "here"}) as stream:
        with stream.transaction():
            stream.write("1")
        with Caller(house.uri) as ann:
            stream.begin_transaction()
            (lock,) = ann.locks()
            assert (lock.partname, lock.tablename) == ("year=2024/place=here", "t")
            stream.write("2")
            stream.commit_transaction()
    with house.stream(static_partition={"year": 2023}) as stream, stream.transaction():
        assert stream.columns == ["id", "place"]
        stream.write("3,there")
    assert house.rows() == [(1, "year=2024/place=here"), (2, "year=2024/place=here"), (3, "year=2023/place=there")]
    with pytest.raises(StreamingConnectionError, match="no partition key month"):
        house.stream(static_partition={"month": 1})


def test_rows_of_a_clustered_table_lie_in_the_bucket_of_their_hash(house: House) -> None:
    house.create(
        {"id": "bigint", "name": "string"},
        bucket_columns=("name", "id"),
        buckets=4,
        parameters={"bucketing_version": "2"},
    )
    with house.stream() as stream, stream.transaction():
        for start in (0, 50):
            stream.write("\n".join(f"{number},n{number % 7}" for number in range(start, start + 50)))
    found = house.files()["delta_0000001_0000001_0000"]
    assert len(found) == 4
    for name, events in found.items():
        assert [event.row_id for event in events] == list(range(len(events)))
        for event in events:
            number, text = event.row
            assert name == f"bucket_0000{bucket_number(['string', 'bigint'], [text, number], 4)}"
    assert len(house.rows()) == 100


def test_much_in_open_files_begins_another_statement(simple: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "GATHERED_BYTES", 2_000)
    monkeypatch.setattr(delta, "OPEN_BYTES", 10_000)
    lines = [f"{number},{'x' * 50}" for number in range(1000)]
    with simple.stream() as stream, stream.transaction():
        for start in range(0, 1000, 20):
            stream.write("\n".join(lines[start : start + 20]))
    found = simple.files()
    assert len(found) > 3
    assert list(found) == [f"delta_0000001_0000001_{number:04d}" for number in range(len(found))]
    assert len(simple.rows()) == 1000


def test_files_for_hive_3_have_its_metadata(house: House) -> None:
    house.create({"id": "int", "name": "string"}, parameters={HIVE_3_PROPERTY: "true"})
    with house.stream(compression="snappy") as stream, stream.transaction():
        stream.write("1,a\n2,b\n3,c")
    assert house.rows() == [(1, "a"), (2, "b"), (3, "c")]
    written = orc.ORCFile(house.location / "delta_0000001_0000001_0000" / "bucket_00000")
    assert dict(written.metadata) == {
        b"hive.acid.key.index": b"1,536870912,2;",
        b"hive.acid.stats": b"3,0,0",
        b"hive.acid.version": b"2",
    }
    assert written.compression == "ZLIB"


def test_a_transaction_writes_to_so_many_partitions_at_most(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "MAX_FILES", 3)
    house.create({"id": "int"}, {"p": "int"})
    with house.stream() as stream:
        stream.begin_transaction()
        stream.write("1,1\n2,2\n3,3\n4,4")
        with pytest.raises(StreamingTransactionError, match="more than 3 partitions"):
            stream.commit_transaction()
    assert house.rows() == []


def test_threads_share_a_transaction(simple: House) -> None:
    def write(of: int) -> None:
        for number in range(20):
            stream.write(f"{of},{number}\n{of},{number}'")

    with simple.stream() as stream, stream.transaction():
        threads = [threading.Thread(target=write, args=(of,)) for of in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (events,) = simple.files()["delta_0000001_0000001_0000"].values()
    for of in range(6):
        mine = [event.row[1] for event in events if event.row[0] == of]
        assert mine == [f"{number}{mark}" for number in range(20) for mark in ("", "'")], "in the order of the thread"


def test_several_streams_into_one_table_do_not_meet(house: House) -> None:
    house.create({"id": "int", "of": "int"}, {"p": "int"})

    def write(of: int) -> None:
        with house.stream(transaction_batch_size=2) as stream:
            for number in range(5):
                with stream.transaction():
                    stream.write(f"{number},{of},{number % 2}")

    threads = [threading.Thread(target=write, args=(of,)) for of in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert house.rows() == sorted([(number, of, f"p={number % 2}") for number in range(5) for of in range(4)], key=str)


def test_calls_out_of_order_are_refused(simple: House) -> None:
    stream = simple.stream()
    for call in (lambda: stream.write("1,a"), stream.commit_transaction, stream.abort_transaction):
        with pytest.raises(InvalidTransactionStateError, match="no transaction is open"):
            call()
    stream.begin_transaction()
    with pytest.raises(InvalidTransactionStateError, match="commit or abort it"):
        stream.begin_transaction()
    stream.close()
    stream.close()
    with pytest.raises(InvalidTransactionStateError, match="closed"):
        stream.begin_transaction()
    assert stream.statistics.aborted == 1


def test_an_error_in_the_block_aborts(simple: House) -> None:
    with simple.stream() as stream:
        with pytest.raises(ZeroDivisionError), stream.transaction():
            stream.write("1,a")
            raise ZeroDivisionError
        with stream.transaction():
            stream.write("2,b")
    assert simple.rows() == [(2, "b")]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "absent"}, "table not found"),
        ({"parameters": {}}, "not a full-ACID"),
        ({"parameters": {"transactional": "true", "transactional_properties": "insert_only"}}, "not a full-ACID"),
        ({"columns": (Column("u", "uniontype<int,string>"),)}, "uniontype"),
        ({"partition_keys": (Column("p", "double"),)}, "partitioned by p"),
        ({"bucket_columns": ("id",), "buckets": 2}, "older one of Hive's hashes"),
    ],
)
def test_a_table_that_cannot_be_streamed_into_is_refused(house: House, table: dict[str, Any], words: str) -> None:
    given = {"columns": (Column("id", "int"),), "parameters": {"transactional": "true"}, **table}
    if "name" not in given:
        house.connection.create_table(Table(database="d", name="t", **given))
    with pytest.raises(StreamingConnectionError, match=words):
        house.stream()


def test_nobody_answers(simple: House) -> None:
    with pytest.raises(StreamingConnectionError, match="no metastore answers"):
        StreamingConnection("thrift://127.0.0.1:1", "d.t", JsonWriter())


def test_a_table_that_was_replaced_is_not_written_to(simple: House) -> None:
    with simple.stream() as stream:
        simple.connection.drop_table("d", "t")
        simple.create({"id": "int", "name": "string"})
        with pytest.raises(StreamingTransactionError, match="altered or replaced"):
            stream.begin_transaction()
    assert simple.rows() == []


def test_a_transaction_that_was_given_up_leaves_nothing(simple: House) -> None:
    with simple.stream() as stream, Caller(simple.uri) as ann:
        stream.begin_transaction()
        stream.write("1,a")
        ann.abort(stream.txn_id)
        with pytest.raises(StreamingTransactionError, match="is aborted"):
            stream.commit_transaction()
        assert simple.files() == {}
        with stream.transaction():
            stream.write("2,b")
    assert simple.rows() == [(2, "b")]


def test_one_call_keeps_a_batch_alive(simple: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(simple.uri) as connection, Caller(simple.uri) as ann:
        stream = StreamingConnection(connection, "d.t", DelimitedWriter(","), transaction_batch_size=4)
        stream.begin_transaction()
        first = stream.txn_id
        ann.abort(first + 2)
        calls: list[str] = []
        call = connection.call
        monkeypatch.setattr(connection, "call", lambda method, *args: (calls.append(method), call(method, *args))[1])
        connection.heartbeats._beat()
        assert calls == ["heartbeat_txn_range"]
        stream.commit_transaction()
        found = []
        for _ in range(3):
            stream.begin_transaction()
            found.append(stream.txn_id - first)
            stream.commit_transaction()
        assert found == [1, 3, 4], "the one that was aborted meanwhile is passed by"
        stream.close()
        assert not ann.snapshot().open_ids


@pytest.mark.parametrize(
    ("batch", "trips"),
    [
        (1, ["hive_acid_begin+get_table_req", "heartbeat", "get_table_req", "commit_txn"]),
        (
            2,
            ["open_txns", "allocate_table_write_ids", "lock+get_table_req", "heartbeat", "get_table_req", "commit_txn"],
        ),
    ],
)
def test_a_transaction_that_is_no_batch_begins_in_one_round_trip(
    simple: House, monkeypatch: pytest.MonkeyPatch, batch: int, trips: list[str]
) -> None:
    seen: list[str] = []
    ask = Connection.ask

    def watched(self: Connection, *questions: Any) -> list[Any]:
        seen.append("+".join(question.method for question in questions))
        return ask(self, *questions)

    with simple.stream(transaction_batch_size=batch) as stream:
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "ask", watched)
            with stream.transaction():
                stream.write("1,a")
                assert stream.write_id == 1
        assert [trip for trip in seen if trip not in ("get_config_value", "hive_acid_pressure")] == trips, seen
    assert simple.rows() == [(1, "a")]


def test_an_answer_that_is_lost_leaves_the_files_alone(simple: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(simple.uri) as connection:
        stream = StreamingConnection(connection, "d.t", DelimitedWriter(","))
        stream.begin_transaction()
        stream.write("1,a")
        call = connection.call

        def lossy(method: str, *args: object) -> object:
            answer = call(method, *args)
            if method == "commit_txn":
                raise MetastoreUnreachableError("the answer is lost")
            return answer

        monkeypatch.setattr(connection, "call", lossy)
        with pytest.raises(MetastoreUnreachableError):
            stream.commit_transaction()
        assert stream.statistics == StreamStatistics()
        monkeypatch.undo()
        with stream.transaction():
            stream.write("2,b")
    assert simple.rows() == [(1, "a"), (2, "b")]


def test_a_disk_that_is_full_aborts(simple: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with simple.stream() as stream:
        stream.begin_transaction()
        stream.write("1,a")
        monkeypatch.setattr(delta.BucketFile, "write", _no_space)  # type: ignore[attr-defined]
        with pytest.raises(StreamingTransactionError, match="No space left"):
            stream.commit_transaction()
        monkeypatch.undo()
        assert simple.files() == {}
        assert list(simple.location.iterdir()) == []
        assert stream.statistics.aborted == 1


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_batch_is_committed_once(simple: House) -> None:
    key = progress_parameter("feed-1")
    with simple.stream() as stream:
        for batch in (1, 2, 2, 1, 3):
            stream.begin_transaction()
            stream.write(f"{batch},x")
            if batch <= (last_batch(simple.parameters, "feed-1") or 0):
                with pytest.raises(StreamingTransactionError, match="already"):
                    stream.commit_transaction(key, str(batch))
            else:
                stream.commit_transaction(key, str(batch))
    assert simple.rows() == [(1, "x"), (2, "x"), (3, "x")]
    assert last_batch(simple.parameters, "feed-1") == 3


def test_two_writers_of_one_batch(simple: House) -> None:
    key = progress_parameter("feed")
    with simple.stream() as one, simple.stream() as other:
        for stream, text in ((one, "1,one"), (other, "1,other")):
            stream.begin_transaction()
            stream.write(text)
        other.commit_transaction(key, "7")
        with pytest.raises(StreamingTransactionError, match="already"):
            one.commit_transaction(key, "7")
    assert simple.rows() == [(1, "other")]


def test_a_batch_that_cannot_be_numbered_is_ended(simple: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MetastoreUnreachableError("gone")

    with simple.stream(transaction_batch_size=3) as stream, Caller(simple.uri) as ann:
        monkeypatch.setattr(Transaction, "allocate_write_ids", fails)
        with pytest.raises(StreamingTransactionError, match="gone"):
            stream.begin_transaction()
        assert not ann.snapshot().open_ids
