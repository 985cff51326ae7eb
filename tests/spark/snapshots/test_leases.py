"""What a transaction keeps from being cleaned: the tables that it names when it is opened, and no others."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import text

import hive_acid.spark
from hive_acid.connection import Connection, connect
from hive_acid.errors import TableNotNamedError, UnknownMethodError
from hive_acid.filesystem import files
from hive_acid.protocol import Question
from hive_acid.spark import AcidSession
from hive_acid.spark.verbs.stream import Sink
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from hive_acid.write.staging import Staging
from metastore.store.database import Database
from tests.served import served
from tests.spark.house import House
from tests.waiting import until


@pytest.fixture
def acid(spark: SparkSession, metastore: Any) -> Iterator[Any]:
    with hive_acid.spark.session(spark, metastore()) as session:
        session.create_database("d")
        for name in ("a", "b"):
            session.create_table(f"d.{name}", {"id": "bigint"})
            session.insert(f"d.{name}", spark.range(3))
        yield session


def named(db: Database) -> Any:
    """The tables that open transactions have named."""
    query = text("SELECT DISTINCT m.tbl FROM min_history_write_id m JOIN txn t USING (txn_id) WHERE t.state = 'o'")
    with db.engine.connect() as connection:
        return {row.tbl for row in connection.execute(query)}


@contextmanager
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Calls to the metastore meanwhile: the method and its first argument."""
    seen: list[Any] = []
    ask = Connection.ask

    def watched(self: Any, *questions: Any) -> Any:
        seen.extend((method, args[0] if args else None) for method, args in questions)
        return ask(self, *questions)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "ask", watched)
        yield seen


OPENING = ("open_txns", "hive_acid_begin")


def openings(seen: Any) -> Any:
    """What was said with each opening of a transaction: its tables, and whether it may begin again."""
    requests = [request if method == "open_txns" else request.open for method, request in seen if method in OPENING]
    return [(set(request.tables), request.mayBeginAgain) for request in requests]


def until_none_is_named(db: Any, collect: Any = gc.collect) -> None:
    until(lambda: named(db) == set(), told=lambda: named(db), between=collect)


# --- frames and blocks ----------------------------------------------------------------------------


def test_a_frame_keeps_its_own_table_only(acid: AcidSession, spark: SparkSession, db: Any) -> None:
    frame = acid.table("d.a")
    assert named(db) == {"a"}
    derived = frame.where("id > 0").groupBy().count()
    del frame
    gc.collect()
    assert named(db) == {"a"}, "a frame derived from it keeps the table too"
    assert derived.collect()[0][0] == 2
    del derived
    until_none_is_named(db)


def test_a_frame_leaves_nothing_to_the_collection_of_cycles(acid: AcidSession, spark: SparkSession, db: Any) -> None:
    """Its lease ends with it, whatever was tried to find out which rows are deleted."""
    acid.create_table("d.p", {"id": "bigint"}, partitioned_by={"k": "int"})
    acid.insert("d.p", spark.range(8).selectExpr("id", "int(id % 2) k"))
    acid.delete("d.p", "id < 2")
    gc.collect()
    gc.disable()
    try:
        frame = acid.table("d.p")
        assert frame.where("id > 2").count() == 5
        assert named(db) == {"p"}
        del frame
        until_none_is_named(db, collect=lambda: None)
    finally:
        gc.enable()


def test_a_block_keeps_everything_until_its_end(acid: AcidSession, db: Any) -> None:
    """Which tables it will read is not known: whoever has named none is waited for everywhere."""
    with acid.snapshot():
        assert acid.table("d.a").count() == 3
        assert named(db) == set()
    with acid.snapshot():
        kept = acid.table("d.b")
        assert kept.count() == 3
    assert "b" in named(db), "its frames need what it has read, as long as they live"
    del kept
    until_none_is_named(db)
    with acid.transaction():
        acid.delete("d.a", "id = 1")
        assert named(db) == set()


@pytest.mark.parametrize("kind", ["snapshot", "transaction"])
def test_a_block_that_names_its_tables_keeps_these_and_reads_no_others(acid: AcidSession, db: Any, kind: Any) -> None:
    with getattr(acid, kind)(["d.A", acid.connection.table("d", "b")]):
        assert named(db) == {"a", "b"}
        assert acid.table("d.b").count() == 3
    with getattr(acid, kind)(["d.a"]):
        with pytest.raises(TableNotNamedError, match=r"was begun for d\.a and may not use d\.b, .*tables=\["):
            acid.table("d.b")
        assert acid.table("d.a").count() == 3
        with pytest.raises(TableNotNamedError):
            acid.sql("SELECT * FROM d.b")
    with pytest.raises(ValueError, match="as a list"):
        acid.transaction("d.a").__enter__()


@pytest.mark.parametrize("verb", ["insert", "delete", "sql"])
def test_a_block_changes_no_table_that_it_has_not_named(acid: AcidSession, spark: SparkSession, verb: Any) -> None:
    change = {
        "insert": lambda: acid.insert("d.b", spark.range(1)),
        "delete": lambda: acid.delete("d.b", "id = 1"),
        "sql": lambda: acid.sql("INSERT INTO d.a SELECT id FROM d.b"),
    }[verb]
    with pytest.raises(TableNotNamedError), acid.transaction(["d.a"]):
        acid.delete("d.a", "id = 1")
        change()
    assert (acid.table("d.a").count(), acid.table("d.b").count()) == (3, 3)


def test_what_a_transaction_does_without_a_block_is_checked_too(acid: AcidSession) -> None:
    with acid.connection.begin(TransactionKind.READ, tables=["d.A"]) as transaction:
        assert transaction.write_ids("d", "a").high_water_mark == 1
        with pytest.raises(TableNotNamedError):
            transaction.write_ids("d", "b")


# --- every verb -----------------------------------------------------------------------------------

A, B, BOTH = {"d.a"}, {"d.b"}, {"d.a", "d.b"}
VERBS = {
    "read": (lambda acid, spark, path: acid.table("d.a"), A),
    "query": (lambda acid, spark, path: acid.sql("SELECT * FROM d.a JOIN d.b USING (id)"), BOTH),
    "insert": (lambda acid, spark, path: acid.insert("d.a", spark.range(2)), A),
    "overwrite": (lambda acid, spark, path: acid.overwrite("d.a", spark.range(2)), A),
    "update": (lambda acid, spark, path: acid.update("d.a", {"id": "id + 9"}), A),
    "delete": (lambda acid, spark, path: acid.delete("d.a", "id = 1"), A),
    "merge": (
        lambda acid, spark, path: acid.merge("d.a", spark.range(2), "t.id = s.id").whenMatchedDelete().execute(), A,
    ),
    "multi-insert": (
        lambda acid, spark, path: acid.multi_insert(spark.range(2)).into("d.a").into("d.b").execute(), BOTH,
    ),
    "create as": (lambda acid, spark, path: acid.create_table_as("d.c", spark.range(2)), {"d.c"}),
    "load": (lambda acid, spark, path: acid.load_data("d.a", path, copy=True), A),
    "truncate": (lambda acid, spark, path: acid.truncate("d.a"), A),
    "export": (lambda acid, spark, path: acid.export_table("d.a", path + "-exported"), A),
    "analyze": (lambda acid, spark, path: acid.analyze("d.a", columns=["id"]), A),
    "convert": (lambda acid, spark, path: acid.convert_table("d.a", compact=False), A),
    "rename": (lambda acid, spark, path: acid.rename_table("d.a", "d.z"), A),
    "properties": (lambda acid, spark, path: acid.set_properties("d.a", {"k": "v"}), A),
    "add columns": (lambda acid, spark, path: acid.add_columns("d.a", {"x": "int"}), A),
    "rename column": (lambda acid, spark, path: acid.rename_column("d.a", "id", "i"), A),
    "sql change": (lambda acid, spark, path: acid.sql("ALTER TABLE d.a CHANGE id i bigint"), A),
    "sql insert": (lambda acid, spark, path: acid.sql("INSERT INTO d.a SELECT id + 10 FROM d.b"), BOTH),
    "sql overwrite": (lambda acid, spark, path: acid.sql("INSERT OVERWRITE TABLE d.a SELECT id FROM d.a"), A),
    "sql update": (lambda acid, spark, path: acid.sql("UPDATE d.a SET id = 7 WHERE id IN (SELECT id FROM d.b)"), BOTH),
    "sql update from": (
        lambda acid, spark, path: acid.sql("UPDATE d.a SET id = 7 FROM (SELECT max(id) AS m FROM d.b) s WHERE id = m"),
        BOTH,
    ),
    "sql delete": (lambda acid, spark, path: acid.sql("DELETE FROM d.a WHERE id = (SELECT max(id) FROM d.b)"), BOTH),
    "sql merge": (
        lambda acid, spark, path: acid.sql(
            "MERGE INTO d.a t USING (SELECT id + 2 AS id FROM d.b) s ON t.id = s.id WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id)"
        ),
        BOTH,
    ),
    "sql multi-insert": (
        lambda acid, spark, path: acid.sql(
            "FROM d.b INSERT INTO d.a SELECT id INSERT INTO d.b SELECT id WHERE id IN (SELECT id FROM d.a)"
        ),
        BOTH,
    ),
    "sql create as": (lambda acid, spark, path: acid.sql("CREATE TABLE d.c AS SELECT id FROM d.b"), {"d.c", "d.b"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def loadable(spark: SparkSession, tmp_path_factory: Any) -> Any:
    path = str(tmp_path_factory.mktemp("loadable") / "files")
    spark.range(10, 12).coalesce(1).write.orc(path)
    return path


@pytest.mark.slow
def test_every_verb_names_its_tables_when_it_begins(
    acid: AcidSession, spark: SparkSession, loadable: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And costs no call of its own for it. A verb alone may begin again, so no rebalance has to wait for it."""
    for name, (verb, tables) in VERBS.items():
        with calls(monkeypatch) as seen:
            verb(acid, spark, loadable)
        # One that finds nothing to do opens none.
        wanted = [] if name == "convert" else [(tables, name not in ("read", "query", "export"))]
        assert openings(seen) == wanted, name
        assert "add_write_ids_to_min_history" not in {method for method, _ in seen}, name
        if name in ("rename", "add columns", "rename column", "sql change") or "as" in name.split():
            for table in ("a", "c", "z"):
                acid.drop_table(f"d.{table}", if_exists=True)
            acid.create_table("d.a", {"id": "bigint"})


def test_a_verb_asks_for_no_write_ids_that_it_does_not_need(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.insert("d.a", spark.range(3))
    with calls(monkeypatch) as seen:
        acid.insert("d.a", spark.range(3))
    assert [method for method, _ in seen if method != "get_config_value"] == [
        "hive_acid_begin", "get_table_req", "heartbeat", "get_table_req", "commit_txn",
    ]  # fmt: skip


def test_a_sink_names_its_table(acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode, keys in (("append", []), ("upsert", ["id"])):
        sink: Sink = acid.sink("d.a", query=mode, mode=mode, keys=keys)
        with calls(monkeypatch) as seen:
            sink(spark.range(5, 7), 0)
        assert openings(seen) == [(A, True)]
    assert acid.table("d.a").count() == 5


def test_an_import_names_its_table(acid: AcidSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acid.export_table("d.a", str(tmp_path / "x"))
    with calls(monkeypatch) as seen:
        acid.import_table(str(tmp_path / "x"), "d.c")
    assert openings(seen) == [({"d.c"}, True)]


def test_a_stream_names_its_table_for_all_transactions_of_a_batch(
    acid: AcidSession, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        calls(monkeypatch) as seen,
        StreamingConnection(acid.connection, "d.a", DelimitedWriter(","), transaction_batch_size=3) as stream,
    ):
        with stream.transaction():
            stream.write(b"7\n")
        assert named(db) == {"a"}
    assert openings(seen) == [(A, True)]
    assert "add_write_ids_to_min_history" not in {method for method, _ in seen}


# --- other metastores -----------------------------------------------------------------------------


def of_another_metastore(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, knows_promises: Any) -> Any:
    ask = acid.connection.ask
    seen: list[Any] = []

    def answering(*questions: Question) -> Any:
        seen.extend(question.method for question in questions)
        for method, args in questions:
            if method == "add_write_ids_to_min_history" and not knows_promises:
                return [UnknownMethodError(f"the metastore does not serve {method}")]
            if method == "hive_acid_begin":
                return [
                    UnknownMethodError(f"the metastore does not serve {method}"),
                    *(ask(*questions[1:]) if questions[1:] else []),
                ]
            if method == "open_txns":
                args[0].tables = args[0].mayBeginAgain = None
        return ask(*questions)

    monkeypatch.setattr(acid.connection, "ask", answering)
    return seen


def test_a_metastore_that_takes_no_promises_keeps_everything(
    acid: AcidSession, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_another_metastore(acid, monkeypatch, knows_promises=False)
    frame = acid.table("d.a")
    assert frame.count() == 3
    assert named(db) == set()


def test_hives_metastore_is_told_behind_the_opening(
    acid: AcidSession, spark: SparkSession, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write that may be open to the transaction, as Hive's clients say it."""
    other = acid.connection.begin()
    assert other.write_id("d", "a") == 2
    acid.insert("d.a", spark.range(3))
    seen = of_another_metastore(acid, monkeypatch, knows_promises=True)
    frame = acid.table("d.a")
    assert frame.count() == 6
    assert seen.count("add_write_ids_to_min_history") == 1
    with db.engine.connect() as connection:
        found = connection.execute(text("SELECT tbl, write_id FROM min_history_write_id WHERE write_id > 0")).all()
    assert found == [("a", 2)]
    other.abort()


def test_the_end_of_a_transaction_that_cannot_say_what_it_uses(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, *tables: Any) -> None:
        raise UnknownMethodError("no")

    of_another_metastore(acid, monkeypatch, knows_promises=True)
    monkeypatch.setattr(Transaction, "reads_only", fail)
    with pytest.raises(UnknownMethodError):
        acid.table("d.a")
    states = lambda: [one.state for one in acid.connection.call("get_open_txns_info").open_txns]  # noqa: E731
    until(lambda: ttypes.TxnState.OPEN not in states(), told=states)


# --- with the Cleaner -----------------------------------------------------------------------------


@pytest.fixture
def kept(spark: SparkSession, postgres_url: Any, template: Any, tmp_path: Path) -> Iterator[Any]:
    """Three tables of two deltas each, in a metastore whose compactions and cleanings are the test's."""
    with served(postgres_url, template, tmp_path / "warehouse") as server, connect(server.uri) as connection:
        acid = hive_acid.spark.session(spark, connection)
        acid.create_database("d")
        for name in ("a", "b", "c"):
            acid.create_table(f"d.{name}", {"id": "bigint"})
            for first in (0, 3):
                acid.insert(f"d.{name}", spark.range(first, first + 3).coalesce(1))
        yield acid, House(server.db, tmp_path / "warehouse", spark)


def deltas(acid: AcidSession, name: Any) -> Any:
    return [entry.path for entry in files.list_tree(acid.connection.table("d", name).location) if entry.is_directory]


def compact_and_clean(house: Any) -> None:
    for name in ("a", "b", "c"):
        house.compact(f"d.{name}", "major", [None])
    house.clean()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["snapshot", "transaction"])
def test_the_cleaner_waits_for_what_a_block_has_named_and_for_nothing_else(
    kept: Any, spark: SparkSession, kind: Any
) -> None:
    """Real files, compactions and Cleaner: the block reads its snapshot to the end, and no table without files."""
    acid, house = kept
    with getattr(acid, kind)(["d.a", "d.b"]):
        assert acid.table("d.b").count() == 6
        compact_and_clean(house)
        assert len(deltas(acid, "c")) == 1
        assert len(deltas(acid, "a")) == len(deltas(acid, "b")) == 3
        assert sorted(row.id for row in acid.table("d.a").collect()) == list(range(6)), "for the first time only now"
        with pytest.raises(TableNotNamedError):
            acid.table("d.c")
    assert acid.table("d.c").count() == 6
    gc.collect()

    def collect() -> None:
        gc.collect()
        house.clean()

    until(lambda: (len(deltas(acid, "a")), len(deltas(acid, "b"))) == (1, 1), between=collect)


@pytest.mark.slow
def test_the_cleaner_waits_for_a_block_that_names_nothing_with_everything(kept: Any) -> None:
    acid, house = kept
    with acid.transaction():
        assert acid.table("d.b").count() == 6
        compact_and_clean(house)
        assert {len(deltas(acid, name)) for name in ("a", "b", "c")} == {3}
        assert sorted(row.id for row in acid.table("d.c").collect()) == list(range(6))
    house.clean()
    assert len(deltas(acid, "c")) == 1


@pytest.mark.slow
def test_a_long_import_holds_back_its_own_table_only(
    kept: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As do a stream and a statement of SQL."""
    acid, house = kept
    rows = spark.range(9).coalesce(1)
    seen: list[Any] = []
    publish = Staging.publish

    def slowly(self: Any, *arguments: Any) -> None:
        patch.undo()  # compactions have files to publish, too
        compact_and_clean(house)
        seen.append({name for name in ("a", "b", "c") if len(deltas(acid, name)) == 1})
        publish(self, *arguments)

    with (
        StreamingConnection(acid.connection, "d.b", DelimitedWriter(","), transaction_batch_size=2) as stream,
        monkeypatch.context() as patch,
    ):
        stream.begin_transaction()
        patch.setattr(Staging, "publish", slowly)
        acid.create_table_as("d.z", rows)
        assert seen == [{"a", "c"}]
        stream.write(b"77\n")
        stream.commit_transaction()
    house.clean()
    assert len(deltas(acid, "b")) == 2, "the compacted rows, and the stream's"
    assert acid.table("d.b").count() == 7
    assert acid.table("d.z").count() == 9
