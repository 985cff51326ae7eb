"""Transactions, snapshots and leases of a session, against a real metastore."""

import asyncio
import gc
import threading
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

import hive_acid.spark
from hive_acid.errors import (
    AlreadyExistsError,
    ColumnError,
    MetastoreUnreachableError,
    NoSuchObjectError,
    TransactionClosedError,
    TransactionExpiredError,
    WriteConflictError,
)
from hive_acid.operators import show
from hive_acid.spark import AcidSession
from hive_acid.spark.verbs.frame import AcidTable
from hive_acid.wire import ttypes
from tests.spark.checker import check_table, location_of
from tests.waiting import until


@pytest.fixture
def numbers(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"id": "int", "n": "int"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id", "int(id) n"))
    return acid


def ids(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(row.id for row in acid.table(name).select("id").collect())


def open_txns(acid: AcidSession) -> Any:
    listing = show.transactions(acid.connection)
    state = listing.columns.index("state")
    return len([row for row in listing.rows if row[state] == "open"])


def until_open(session: AcidSession, expected: int) -> None:
    """Wait until so many transactions are open: of frames that nobody has any more, none is."""
    until(lambda: open_txns(session) == expected, between=gc.collect)


def test_a_table_is_a_dataframe(numbers: Any) -> None:
    table = numbers.table("d.t")
    assert isinstance(table, DataFrame)
    assert isinstance(table, AcidTable)
    assert table.columns == ["id", "n"]
    assert table.select(table.id, table["n"]).where(table.id > 8).collect()[0].n == 9
    assert numbers.table("D.T").count() == 10


def test_one_transaction_over_several_statements_sees_its_own_writes(numbers: Any, spark: SparkSession) -> None:
    with numbers.transaction() as transaction:
        numbers.insert("d.t", spark.createDataFrame([(100, 0)], "id int, n int"))
        assert ids(numbers) == [*range(10), 100]
        numbers.update("d.t", {"n": "n + 1"}, "id = 100")
        numbers.delete("d.t", "id = 100 OR id = 0")
        numbers.insert("d.t", spark.createDataFrame([(200, 0)], "id int, n int"))
        assert ids(numbers) == [*range(1, 10), 200]
        other = hive_acid.spark.session(spark, numbers.connection)
        assert ids(other) == list(range(10)), "others see nothing yet"
    assert transaction.state.value == "committed"
    assert ids(numbers) == [*range(1, 10), 200]
    names = sorted(check_table(location_of(numbers, "d.t")))
    assert names == [
        "delete_delta_0000002_0000002_0001",
        "delete_delta_0000002_0000002_0002",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
        "delta_0000002_0000002_0001",
        "delta_0000002_0000002_0003",
    ]


def test_an_error_undoes_the_whole_transaction(numbers: Any, spark: SparkSession) -> None:
    before = check_table(location_of(numbers, "d.t"))

    def fail() -> None:
        with numbers.transaction():
            numbers.insert("d.t", spark.createDataFrame([(100, 0)], "id int, n int"))
            numbers.delete("d.t", "id < 5")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert check_table(location_of(numbers, "d.t")) == before
    assert ids(numbers) == list(range(10))
    until_open(numbers, 0)


def test_a_failed_statement_leaves_nothing_and_its_transaction_goes_on(numbers: Any) -> None:
    with numbers.transaction():
        numbers.delete("d.t", "id = 1")
        with pytest.raises(ColumnError):
            numbers.update("d.t", {"n": "'x'"})
        numbers.delete("d.t", "id = 2")
    assert ids(numbers) == [0, *range(3, 10)]


def test_blocks_do_not_nest_and_snapshots_do_not_write(numbers: Any) -> None:
    with numbers.transaction():
        for block in (numbers.transaction, numbers.snapshot):
            with pytest.raises(TransactionClosedError, match="nest"), block():
                pass
    with numbers.snapshot(), pytest.raises(TransactionClosedError, match="only reads"):
        numbers.delete("d.t")


def test_the_first_committer_wins(numbers: Any, spark: SparkSession) -> None:
    other = hive_acid.spark.session(spark, numbers.connection)

    def lose() -> None:
        with numbers.transaction():
            numbers.update("d.t", {"n": "100"}, "id = 1")
            assert other.update("d.t", {"n": "200"}, "id = 1") == 1

    with pytest.raises(
        WriteConflictError, match=r"conflict on d/t.*both have changed the row \{writeid: 1, .*\(id = 1, n = "
    ):
        lose()
    table = numbers.table("d.t")
    assert {r.id: r.n for r in table.where("n >= 100").collect()} == {1: 200}
    names = sorted(check_table(location_of(numbers, "d.t")))
    assert "delta_0000002_0000002_0000" not in names, "the loser leaves no files"


def test_inserts_do_not_conflict(numbers: Any, spark: SparkSession) -> None:
    other = hive_acid.spark.session(spark, numbers.connection)
    with numbers.transaction():
        numbers.insert("d.t", spark.createDataFrame([(100, 0)], "id int, n int"))
        other.insert("d.t", spark.createDataFrame([(200, 0)], "id int, n int"))
    assert ids(numbers) == [*range(10), 100, 200]


def test_writers_of_different_partitions_do_not_conflict(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.p", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.p", spark.range(4).selectExpr("int(id) id", "int(id % 2) p"))
    other = hive_acid.spark.session(spark, acid.connection)
    with acid.transaction():
        acid.delete("d.p", "p = 0")
        other.delete("d.p", "p = 1 AND id = 1")
    assert ids(acid, "d.p") == [3]

    def lose() -> None:
        with acid.transaction():
            acid.delete("d.p", "id = 3")
            other.update("d.p", {"id": "30"}, "p = 1")

    with pytest.raises(WriteConflictError):
        lose()
    assert ids(acid, "d.p") == [30]


def test_each_thread_has_its_own_transaction(numbers: Any, spark: SparkSession) -> None:
    seen = []
    with numbers.transaction():
        numbers.delete("d.t", "id < 9")
        thread = threading.Thread(target=lambda: seen.append(ids(numbers)))
        thread.start()
        thread.join()
        assert ids(numbers) == [9]
    assert seen == [list(range(10))]


def test_a_task_of_asyncio_has_no_part_in_the_block_of_another(numbers: Any, spark: SparkSession) -> None:
    one = spark.sql("SELECT 70 AS id, 0 AS n")

    async def failing(entered: Any, done: Any) -> None:
        with numbers.transaction():
            numbers.delete("d.t", "id < 9")
            await asyncio.gather(asyncio.create_task(within()))
            entered.set()
            await done.wait()
            raise KeyError

    async def within() -> None:
        assert ids(numbers) == [9], "what a block begins is part of it"

    async def beside(entered: Any, done: Any) -> None:
        await entered.wait()
        for verb in (lambda: ids(numbers), lambda: numbers.insert("d.t", one), lambda: numbers.sql("DELETE FROM d.t")):
            with pytest.raises(TransactionClosedError, match="another task of asyncio"):
                verb()
        await asyncio.to_thread(numbers.insert, "d.t", one)
        done.set()

    async def both() -> None:
        entered, done = asyncio.Event(), asyncio.Event()
        with pytest.raises(ExceptionGroup) as raised:
            async with asyncio.TaskGroup() as group:
                group.create_task(failing(entered, done))
                group.create_task(beside(entered, done))
        assert [type(error) for error in raised.value.exceptions] == [KeyError]

    asyncio.run(both())
    assert ids(numbers) == [*range(10), 70], "the row that was inserted beside the block is not undone with it"
    numbers.insert("d.t", one)


@pytest.mark.parametrize("how", ["alone", "block"])
def test_a_statement_whose_session_is_closed_meanwhile_says_so(
    numbers: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """Whatever Spark says of a directory that goes while it writes."""
    writer_class = type(spark.range(1).write)  # Connect has one of its own
    save = writer_class.save
    other = hive_acid.spark.session(spark, numbers.connection.uri)

    def closed_meanwhile(writer: Any, path: Any) -> None:
        thread = threading.Thread(target=other.close)
        thread.start()
        thread.join()
        save(writer, f"{path}/\0")  # as if

    monkeypatch.setattr(writer_class, "save", closed_meanwhile)
    with (
        pytest.raises(TransactionClosedError, match="is aborted"),
        other.transaction() if how == "block" else nullcontext(),
    ):
        other.insert("d.t", spark.sql("SELECT 70 AS id, 0 AS n"))
    assert ids(numbers) == list(range(10))


def test_a_snapshot_is_one_for_all_its_reads(numbers: Any, spark: SparkSession) -> None:
    other = hive_acid.spark.session(spark, numbers.connection)
    with numbers.snapshot():
        first = ids(numbers)
        other.delete("d.t", "id < 5")
        assert ids(numbers) == first
    assert ids(numbers) == [5, 6, 7, 8, 9]


def test_a_lease_lives_as_long_as_what_is_derived_from_the_frame(numbers: Any) -> None:
    until_open(numbers, 0)
    derived = [numbers.table("d.t").where("id > 1").select("n")]
    gc.collect()
    assert open_txns(numbers) == 1
    derived = [derived[0].groupBy("n")]
    gc.collect()
    assert open_txns(numbers) == 1
    assert derived[0].count().count() == 8
    derived = [numbers.table("d.t").alias("a").join(numbers.table("d.t").alias("b"), "id").agg(F.sum("a.n")).na.fill(0)]
    until_open(numbers, 2)
    assert derived[0].collect()[0][0] == 45
    derived.clear()
    until_open(numbers, 0)


def test_a_snapshot_block_is_kept_by_its_frames(numbers: Any) -> None:
    with numbers.snapshot():
        table = numbers.table("d.t")
    gc.collect()
    assert open_txns(numbers) == 1
    assert table.count() == 10
    del table
    until_open(numbers, 0)


def test_an_expired_transaction_cannot_commit(spark: SparkSession, metastore: Any) -> None:
    with hive_acid.spark.session(spark, metastore()) as acid:
        acid.create_table("t", {"id": "int"})

        def expire() -> None:
            with acid.transaction() as transaction:
                acid.insert("t", spark.createDataFrame([(1,)], "id int"))
                acid.connection.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=[transaction.id]))

        with pytest.raises(TransactionExpiredError):
            expire()
        assert acid.table("t").count() == 0
        assert check_table(location_of(acid, "default.t")) == {}


def test_names_and_tables_that_are_not_there(acid: AcidSession, spark: SparkSession) -> None:
    with pytest.raises(NoSuchObjectError):
        acid.table("d.nothing")
    with pytest.raises(NoSuchObjectError):
        acid.insert("d.nothing", spark.range(1))
    with pytest.raises(ValueError, match=r"database\.table"):
        acid.table("a.b.c")
    until_open(acid, 0)


def test_creating_tables(acid: AcidSession, spark: SparkSession) -> None:
    fields = [("Id", t.LongType()), ("Name", t.VarcharType(3)), ("Day", t.DateType())]
    acid.create_table("d.t", t.StructType([t.StructField(*field) for field in fields]), partitioned_by=["day"])
    table = acid.connection.table("d", "t")
    assert [(c.name, c.type) for c in table.columns] == [("id", "bigint"), ("name", "varchar(3)")]
    assert [(c.name, c.type) for c in table.partition_keys] == [("day", "date")]
    assert table.is_full_acid
    with pytest.raises(AlreadyExistsError):
        acid.create_table("d.t", {"id": "int"})
    acid.create_table("d.t", {"id": "int"}, if_not_exists=True)
    for columns, keys, said in (
        ({"id": "int", "ID": "int"}, (), "given twice"),
        ({"id": "interval"}, (), "not supported"),
        ({"id": "int"}, ["p"], "partitioned_by names p"),
        ({"id": "int"}, {"id": "int"}, "given twice"),
        ({"id": "int"}, ["id"], "beside its partition"),
    ):
        with pytest.raises(ColumnError, match=said):
            acid.create_table("d.u", columns, partitioned_by=keys)
    acid.drop_table("d.t")
    acid.drop_table("d.t", if_exists=True)
    with pytest.raises(NoSuchObjectError):
        acid.table("d.t")


def test_no_metastore(spark: SparkSession) -> None:
    with pytest.raises(MetastoreUnreachableError):
        hive_acid.spark.session(spark, "thrift://127.0.0.1:9")
