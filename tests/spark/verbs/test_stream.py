"""The sink of Structured Streaming: batches that come once, twice, late and from two drivers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ColumnError, StreamFencedError, TableNotAcidError, TransactionsOffError, WriteConflictError
from hive_acid.format.progress import last_batch
from hive_acid.spark import AcidSession
from hive_acid.spark.verbs import stream
from hive_acid.spark.verbs.stream import SinkPlan
from tests.spark.checker import check_snapshot, check_table, location_of
from tests.values.sessions.under import under

pytestmark = pytest.mark.spark

SCHEMA = "id int, name string, p int"


@pytest.fixture
def simple(acid: AcidSession) -> Any:
    acid.create_table("d.t", {"id": "int", "name": "string"})
    return acid


@pytest.fixture
def divided(acid: AcidSession) -> Any:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    return acid


def frame(acid: AcidSession, rows: Any, schema: Any = "id int, name string") -> Any:
    return acid.spark.createDataFrame(rows, schema)


def rows(acid: AcidSession, name: Any = "d.t") -> Any:
    """By the independent reader, of checked files."""
    check_table(location_of(acid, name))
    found = check_snapshot(acid, name)
    return sorted((*event.row, *([int(at.partition("=")[2])] if at else [])) for at in found for event in found[at])


def arrive(directory: Path, name: str, *records: dict[str, Any]) -> None:
    directory.mkdir(exist_ok=True)
    (directory / f"{name}.json").write_text("\n".join(map(json.dumps, records)))


def run(acid: AcidSession, sink: Any, source: Path, checkpoint: Path, schema: str = SCHEMA) -> None:
    """All that has arrived, one file a batch."""
    read = acid.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(source))
    writer = read.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


# --- a query --------------------------------------------------------------------------------------


def test_each_micro_batch_is_a_transaction(divided: Any, tmp_path: Path) -> None:
    arrive(tmp_path / "in", "1", {"id": 1, "name": "a", "p": 0}, {"id": 2, "name": "b", "p": 1})
    arrive(tmp_path / "in", "2", {"id": 3, "name": "c", "p": 1})
    sink = divided.sink("d.t", query="q")
    run(divided, sink, tmp_path / "in", tmp_path / "checkpoint")
    assert rows(divided) == [(1, "a", 0), (2, "b", 1), (3, "c", 1)]
    assert sorted(check_table(location_of(divided, "d.t"))) == [
        "p=0/delta_0000001_0000001_0000",
        "p=1/delta_0000001_0000001_0000",
        "p=1/delta_0000002_0000002_0000",
    ]
    assert last_batch(divided.connection.table("d", "t").parameters, "q") == 1
    arrive(tmp_path / "in", "3", {"id": 4, "name": "d", "p": 2})
    run(divided, sink, tmp_path / "in", tmp_path / "checkpoint")
    run(divided, sink, tmp_path / "in", tmp_path / "checkpoint")
    assert [row[0] for row in rows(divided)] == [1, 2, 3, 4]


def test_two_queries_write_to_one_table(simple: Any, tmp_path: Path) -> None:
    for name, number in (("one", 1), ("two", 2)):
        for file in range(3):
            arrive(tmp_path / name, str(file), {"id": file, "name": name * number})
    queries = []
    for name in ("one", "two"):
        read = simple.spark.readStream.schema("id int, name string").option("maxFilesPerTrigger", 1)
        writer = read.json(str(tmp_path / name)).writeStream.foreachBatch(simple.sink("d.t", query=name))
        writer = writer.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        queries.append(writer.trigger(availableNow=True).start())
    for query in queries:
        query.awaitTermination()
    assert rows(simple) == [(file, name) for file in range(3) for name in ("one", "twotwo")]


def test_a_batch_that_failed_comes_again(simple: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit has done its work, and Spark does not know: the query that starts again passes the batch by."""
    arrive(tmp_path / "in", "1", {"id": 1, "name": "a"})
    sink = simple.sink("d.t", query="q")

    def dies_after(given: Any, batch_id: Any) -> None:
        sink(given, batch_id)
        raise SystemError("killed")

    with pytest.raises(Exception, match="killed"):
        run(simple, dies_after, tmp_path / "in", tmp_path / "checkpoint", "id int, name string")
    assert rows(simple) == [(1, "a")]
    arrive(tmp_path / "in", "2", {"id": 2, "name": "b"})
    run(simple, simple.sink("d.t", query="q"), tmp_path / "in", tmp_path / "checkpoint", "id int, name string")
    assert rows(simple) == [(1, "a"), (2, "b")]


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_is_in_the_table_once(simple: Any) -> None:
    sink = simple.sink("d.t", query="q")
    for batch in (0, 1):
        sink(frame(simple, [(batch, "a")]), batch)
        sink(frame(simple, [(batch, "a")]), batch)
    simple.sink("d.t", query="q")(frame(simple, [(1, "a")]), 1)
    simple.sink("d.t", query="other")(frame(simple, [(9, "x")]), 0)
    assert rows(simple) == [(0, "a"), (1, "a"), (9, "x")]


def test_a_stream_that_counts_from_the_start_again_is_told(simple: Any) -> None:
    simple.sink("d.t", query="q")(frame(simple, [(1, "a")]), 5)
    with pytest.raises(StreamFencedError, match="give it a new name"):
        simple.sink("d.t", query="q")(frame(simple, [(2, "b")]), 0)
    assert rows(simple) == [(1, "a")]


def test_of_two_drivers_one_goes_on(simple: Any) -> None:
    one, other = simple.sink("d.t", query="q"), simple.sink("d.t", query="q")
    one(frame(simple, [(0, "one")]), 0)
    other(frame(simple, [(0, "other")]), 0)
    other(frame(simple, [(1, "other")]), 1)
    with pytest.raises(StreamFencedError, match="another writer"):
        one(frame(simple, [(1, "one")]), 1)
    assert rows(simple) == [(0, "one"), (1, "other")]


def test_two_drivers_with_one_batch_at_the_same_time(simple: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one commits when this one has looked, and before it commits: the commit itself decides."""
    other = simple.sink("d.t", query="q")
    write = SinkPlan.write

    def meanwhile(plan: Any, acid: AcidSession, table: Any, given: Any) -> None:
        write(plan, acid, table, given)
        monkeypatch.setattr(SinkPlan, "write", write)
        rival = hive_acid.spark.session(acid.spark, simple.connection.uri)
        with rival:
            rival.sink("d.t", query="q")(frame(simple, [(7, "rival")]), 0)

    monkeypatch.setattr(SinkPlan, "write", meanwhile)
    with pytest.raises(StreamFencedError):
        other(frame(simple, [(7, "late")]), 0)
    assert rows(simple) == [(7, "rival")]


def test_an_altered_table_does_not_set_a_stream_back(simple: Any) -> None:
    sink = simple.sink("d.t", query="q")
    old = simple.connection.wire_table("d", "t")
    sink(frame(simple, [(1, "a")]), 0)
    sink(frame(simple, [(2, "b")]), 1)
    old.parameters["comment"] = "by somebody who knew it before"
    simple.connection.call("alter_table", "d", "t", old)
    parameters = simple.connection.table("d", "t").parameters
    assert (parameters["comment"], last_batch(parameters, "q")) == ("by somebody who knew it before", 1)
    old.parameters["_meta.batch.q"] = ""
    simple.connection.call("alter_table", "d", "t", old)
    assert last_batch(simple.connection.table("d", "t").parameters, "q") is None


def test_an_empty_batch_counts(simple: Any) -> None:
    sink = simple.sink("d.t", query="q")
    sink(frame(simple, []), 0)
    sink(frame(simple, [(1, "a")]), 1)
    assert rows(simple) == [(1, "a")]
    assert list(check_table(location_of(simple, "d.t"))) == ["delta_0000002_0000002_0000"]


def test_a_sink_travels(simple: Any) -> None:
    """Spark Connect pickles the function: what arrives has no socket, and connects where it is."""
    sink = simple.sink("d.t", query="q", mode="upsert", keys=["id"])
    sink(frame(simple, [(1, "a")]), 0)
    arrived = cloudpickle.loads(cloudpickle.dumps(sink))
    assert arrived._connection is None
    arrived(frame(simple, [(1, "b")]), 1)
    assert arrived._connection is not simple.connection
    assert rows(simple) == [(1, "b")]
    arrived._connection.close()  # type: ignore[attr-defined]


# --- upsert and changes ---------------------------------------------------------------------------


def test_upsert_takes_the_last_row_of_a_key(divided: Any) -> None:
    sink = divided.sink("d.t", query="q", mode="upsert", keys=["ID"], order_by="at")
    schema = f"{SCHEMA}, at int"
    sink(frame(divided, [(1, "a", 0, 1), (1, "c", 0, 3), (1, "b", 0, 2), (2, "x", 1, 1)], schema), 0)
    assert rows(divided) == [(1, "c", 0), (2, "x", 1)]
    sink(frame(divided, [(2, "y", 1, 2), (3, "z", 2, None)], schema), 1)
    assert rows(divided) == [(1, "c", 0), (2, "y", 1), (3, "z", 2)]


@pytest.mark.parametrize(
    ("given", "order_by", "words"),
    [
        ([(1, "a"), (1, "b")], None, "two rows of a batch for d.t have the same id: name the column .*: 1"),
        ([(1, "a"), (1, "a")], "name", "have the same id and name: 1"),
        ([(None, "a")], None, "a row for d.t has no id"),
    ],
)
def test_rows_of_which_none_is_the_last_fail_the_batch(simple: Any, given: Any, order_by: Any, words: Any) -> None:
    sink = simple.sink("d.t", query="q", mode="upsert", keys=["id"], order_by=order_by)
    with pytest.raises(ColumnError, match=words):
        sink(frame(simple, given), 0)
    assert rows(simple) == []
    assert last_batch(simple.connection.table("d", "t").parameters, "q") is None


KEYS_AS_TEXTS = {
    "int": ["1", "01", " 1"],
    "date": ["2020-01-02", "2020-1-2"],
    "decimal(6,2)": ["1.5", "1.50"],
    "char(4)": ["ab", "ab "],
}


@pytest.mark.parametrize("kind", KEYS_AS_TEXTS)
def test_keys_are_values_of_the_table(acid: AcidSession, kind: Any) -> None:
    """A batch of texts, as of a CSV: two texts of one value would be two rows with one key."""
    acid.create_table("d.t", {"k": kind, "n": "int"})
    texts = KEYS_AS_TEXTS[kind]
    sink = acid.sink("d.t", query="q", mode="upsert", keys=["K"], order_by="n")
    for batch in range(2):
        given = [(text, batch * 10 + n) for n, text in enumerate(texts)]
        sink(frame(acid, given, "k string, n int"), batch)
        assert [row.n for row in acid.table("d.t").collect()] == [batch * 10 + len(texts) - 1]
    with pytest.raises(ColumnError, match="no column K, which is a key"):
        sink(frame(acid, [(1,)], "n int"), 2)


def test_a_batch_has_the_columns_that_the_sink_names(simple: Any) -> None:
    sink = simple.sink("d.t", query="q", mode="changes", keys=["id"], order_by="at", change_column="op")
    lacking = {"x": "no column at, its order_by and no op, its change_column", "AT": "column op", "OP": "column at"}
    for column, words in lacking.items():
        with pytest.raises(ColumnError, match=words):
            sink(simple.spark.sql(f"SELECT 1 AS id, 'a' AS name, 1 AS {column}"), 0)
    assert rows(simple) == []


@pytest.mark.parametrize("sensitive", ["false", "true"])
def test_names_are_meant_in_any_case(simple: Any, spark: SparkSession, sensitive: Any) -> None:
    with under(spark, {"spark.sql.caseSensitive": sensitive}):
        changes = {"mode": "changes", "change_column": "Op", "schema_evolution": True}
        sink = simple.sink("d.t", query="q", keys=["ID"], order_by="AT", **changes)
        schema = "iD int, Name string, OP string, At int, Extra string"
        sink(frame(simple, [(1, "a", "insert", 1, "x"), (2, "b", "insert", 1, "y")], schema), 0)
        sink(
            frame(simple, [(1, "z", "update", 2, "z"), (1, "A", "update", 3, "X"), (2, "", "delete", 2, "")], schema), 1
        )
    assert simple.table("d.t").columns == ["id", "name", "at", "extra"]
    assert rows(simple) == [(1, "A", 3, "X")]


def test_changes_say_what_they_are(simple: Any) -> None:
    sink = simple.sink("d.t", query="q", mode="changes", keys=["id"], order_by="at", change_column="op")
    schema = "id int, name string, op string, at int"
    sink(frame(simple, [(1, "a", "insert", 1), (2, "b", "INSERT", 1), (3, "c", "insert", 1)], schema), 0)
    given = [(1, "A", "update", 2), (2, None, "delete", 2), (4, None, "Delete", 2), (5, "e", "delete", 2)]
    sink(frame(simple, [*given, (5, "E", "insert", 3), (3, "z", "insert", 2)], schema), 1)
    assert rows(simple) == [(1, "A"), (3, "z"), (5, "E")]
    with pytest.raises(ColumnError, match="neither insert nor update nor delete, but : upsert"):
        sink(frame(simple, [(1, "a", "upsert", 1)], schema), 2)
    assert rows(simple) == [(1, "A"), (3, "z"), (5, "E")]


def test_columns_that_come_later_are_added(simple: Any) -> None:
    append = simple.sink("d.t", query="q", schema_evolution=True)
    append(frame(simple, [(1, "a")]), 0)
    append(frame(simple, [(2, "b", 7)], "id int, name string, n int"), 1)
    append(frame(simple, [(3, 8)], "id int, n int"), 2)
    assert rows(simple) == [(1, "a"), (2, "b", 7), (3, None, 8)], "files have the columns of their time"
    upsert = simple.sink("d.t", query="u", mode="upsert", keys=["id"], order_by="at", schema_evolution=True)
    upsert(frame(simple, [(3, "old", 1), (3, "c", 2), (4, "d", 1)], "id int, name string, at int"), 0)
    found = sorted(map(tuple, simple.table("d.t").collect()))
    assert simple.table("d.t").columns == ["id", "name", "n", "at"]
    assert found == [(1, "a", None, None), (2, "b", 7, None), (3, "c", 8, 2), (4, "d", None, 1)]


@pytest.mark.parametrize("mode", ["upsert", "changes"])
def test_a_table_that_gets_a_column_does_not_stop_its_stream(simple: Any, mode: Any) -> None:
    """With schema evolution a stream goes on: the rows that it changes keep what it does not know."""
    options = {"query": "q", "mode": mode, "keys": ["id"]}
    strict, evolving = simple.sink("d.t", **options), simple.sink("d.t", **options, schema_evolution=True)
    schema = "id int, name string, change string"
    strict(frame(simple, [(1, "a", "insert"), (2, "b", "insert")], schema), 0)
    simple.add_columns("d.t", {"since": "int"})
    simple.update("d.t", {"since": "2000 + id"})
    with pytest.raises(ColumnError, match=r"no column since: .*ask for schema evolution"):
        strict(frame(simple, [(1, "A", "update")], schema), 1)
    if mode == "upsert":
        schema = "id int, name string, note string"
    evolving(frame(simple, [(1, "A", "update"), (3, "c", "insert")], schema), 1)
    note = ["update", "insert"] if mode == "upsert" else []
    evolved = [(1, "A", 2001, *note[:1]), (2, "b", 2002, *(None for _ in note[:1])), (3, "c", None, *note[1:])]
    assert sorted(map(tuple, simple.table("d.t").collect())) == evolved
    if mode == "changes":
        given = [(1, None, "delete", 7), (2, "B", "update", 8)]
        evolving(frame(simple, given, "id int, name string, change string, extra int"), 2)
        assert simple.table("d.t").columns == ["id", "name", "since", "extra"], "the change is no column"
        assert sorted(map(tuple, simple.table("d.t").collect())) == [(2, "B", 2002, 8), (3, "c", None, None)]


def test_a_batch_that_meets_other_changes_is_tried_again(simple: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FIRST_PAUSE_S", 0.01)
    simple.insert("d.t", frame(simple, [(1, "a"), (2, "b")]))
    write, rivals = SinkPlan.write, iter(range(2))

    def meanwhile(plan: Any, acid: AcidSession, table: Any, given: Any) -> None:
        write(plan, acid, table, given)
        if next(rivals, None) is not None:
            with hive_acid.spark.session(acid.spark, simple.connection.uri) as rival:
                rival.update("d.t", {"name": "concat(name, '!')"}, changed)

    changed = "id <= 2"
    monkeypatch.setattr(SinkPlan, "write", meanwhile)
    sink = simple.sink("d.t", query="q", mode="upsert", keys=["id"])
    sink(frame(simple, [(1, "A"), (3, "C")]), 0)
    assert rows(simple) == [(1, "A"), (2, "b!!"), (3, "C")]
    monkeypatch.setattr(SinkPlan, "write", write)
    assert sink._is_there(simple.connection.table("d", "t"), 0, is_aborted=False)
    with pytest.raises(StreamFencedError):
        sink._is_there(simple.connection.table("d", "t"), 0, is_aborted=True)
    monkeypatch.setattr(SinkPlan, "write", meanwhile)
    monkeypatch.setattr(stream, "ATTEMPTS", 1)
    rivals = iter(range(1))
    with pytest.raises(WriteConflictError, match="have changed the row"):
        sink(frame(simple, [(1, "never")]), 1)
    assert rows(simple) == [(1, "A!"), (2, "b!!!"), (3, "C")]
    changed, rivals = "id = 2", iter(range(1))
    sink(frame(simple, [(1, "B")]), 1)  # other rows: it is not tried again
    assert rows(simple) == [(1, "B"), (2, "b!!!!"), (3, "C")]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"query": "a/b"}, ValueError, "cannot name a stream"),
        ({"query": "q", "mode": "replace"}, ValueError, "replace"),
        ({"query": "q", "mode": "upsert"}, ColumnError, "needs keys"),
        ({"query": "q", "mode": "changes", "keys": ["nr"]}, ColumnError, "no column nr"),
        ({"query": "q", "keys": ["id"]}, ColumnError, "takes neither keys"),
    ],
)
def test_a_sink_that_makes_no_sense_is_refused(simple: Any, options: Any, error: Any, words: Any) -> None:
    with pytest.raises(error, match=words):
        simple.sink("d.t", **options)


def test_plain_tables_have_no_sink(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.plain", {"id": "int"}, properties={"transactional": "false"})
    acid.create_table("d.o", {"id": "int"}, properties={"transactional_properties": "insert_only"})
    with pytest.raises(TableNotAcidError):
        acid.sink("d.o", query="q", schema_evolution=True)
    with pytest.raises(TableNotAcidError):
        acid.sink("d.plain", query="q")
    off = hive_acid.spark.session(spark, acid.connection.uri, settings={"hive.support.concurrency": "false"})
    with off, pytest.raises(TransactionsOffError):
        off.sink("d.plain", query="q")
