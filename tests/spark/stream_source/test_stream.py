"""Streams of tables: what comes, once, through restarts; and what is refused. Over Connect as in a classic session."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import NoSuchObjectError, TableNotAcidError, ViewError
from hive_acid.spark import AcidSession
from tests.served import served
from tests.spark.compaction import compact_table
from tests.spark.house import House
from tests.spark.stream_source.insert_only_walk import GrowingWalk
from tests.spark.stream_source.taken import Taken
from tests.spark.stream_source.walk import TELLS_SOURCES, Walk
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import TYPES, stored
from tests.waiting import until

pytestmark = pytest.mark.spark
of_told_sources = pytest.mark.skipif(not TELLS_SOURCES, reason="Spark 4.1 does not tell its source where a stream is")

Batches = list[list[tuple[Any, ...]]]


class Stream:
    """A stream of ``d.t`` and its checkpoint."""

    def __init__(self, acid: AcidSession, checkpoint: Path) -> None:
        self._acid = acid
        self._checkpoint = str(checkpoint)
        self._taken = Taken(Path(f"{checkpoint}.taken"))

    @property
    def batches(self) -> Batches:
        """Those that had rows, since the last `taken` has begun."""
        return [rows for rows in self._taken.batches.values() if rows]

    def taken(self, start: str | int = "earliest", frame: DataFrame | None = None) -> Batches:
        """Take all that is there, and tell it."""
        self._taken.forget()
        frame = self._acid.read_stream("d.t", start) if frame is None else frame
        self.started(frame).awaitTermination()
        return self.batches

    def started(self, frame: DataFrame, take: Callable[[DataFrame, int], None] | None = None, **trigger: Any) -> Any:
        writer = frame.writeStream.option("checkpointLocation", self._checkpoint)
        return writer.trigger(**(trigger or {"availableNow": True})).foreachBatch(take or self._taken).start()


@pytest.fixture
def stream(acid: AcidSession, tmp_path: Path) -> Stream:
    acid.create_table("d.t", {"id": "int", "n": "int"})
    acid.sql("INSERT INTO d.t VALUES (1, 10), (2, 20)")
    return Stream(acid, tmp_path / "checkpoint")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_walk(spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, seed: int) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        walk = Walk(spark, server, tmp_path, seed)
        try:
            walk.play(8)
        finally:
            walk.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_walk_of_an_insert_only_table(
    spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, seed: int
) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        walk = GrowingWalk(spark, server, tmp_path, seed)
        try:
            walk.play(8)
        finally:
            walk.close()


def test_what_comes(acid: AcidSession, stream: Stream) -> None:
    assert stream.taken() == [[(1, 10), (2, 20)]]
    assert stream.taken() == []
    acid.sql("UPDATE d.t SET n = 21 WHERE id = 2")
    acid.sql("DELETE FROM d.t WHERE id = 1")
    acid.sql("INSERT INTO d.t VALUES (3, 30)")
    assert stream.taken() == [[(2, 21), (3, 30)]]
    acid.sql("INSERT INTO d.t VALUES (4, 40), (5, 50)")
    acid.sql("DELETE FROM d.t WHERE id = 4")
    assert stream.taken() == [[(5, 50)]]
    compact_table(acid.spark, acid, "d.t", "major")
    assert stream.taken() == []
    acid.sql("INSERT OVERWRITE TABLE d.t VALUES (6, 60)")
    assert stream.taken() == [[(6, 60)]]
    acid.sql("TRUNCATE TABLE d.t")
    assert stream.taken() == []


def test_a_write_that_commits_late(acid: AcidSession, stream: Stream) -> None:
    stream.taken()
    with acid.transaction():
        acid.sql("INSERT INTO d.t VALUES (3, 30)")
        with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
            other.sql("INSERT INTO d.t VALUES (4, 40)")
            seen = Stream(other, Path(stream._checkpoint))
            assert seen.taken() == [[(4, 40)]]
            other.sql("INSERT INTO d.t VALUES (5, 50)")
            assert seen.taken() == [[(5, 50)]]
    acid.sql("INSERT INTO d.t VALUES (6, 60)")
    assert stream.taken() == [[(3, 30), (6, 60)]]


@of_told_sources
@pytest.mark.parametrize(("start", "comes"), [(0, [1, 2, 3]), ("2", [2, 3]), (3, [3]), (4, []), ("LATEST", [])])
def test_where_it_begins(acid: AcidSession, tmp_path: Path, start: Any, comes: list[int]) -> None:
    acid.create_table("d.t", {"id": "int"})
    for number in (1, 2, 3):
        acid.sql(f"INSERT INTO d.t VALUES ({number})")
    stream = Stream(acid, tmp_path / "checkpoint")
    assert [row for batch in stream.taken(start) for row in batch] == [(number,) for number in comes]
    acid.sql("INSERT INTO d.t VALUES (4)")
    assert stream.taken(start) == [[(4,)]]
    assert stream.taken("earliest") == []


@of_told_sources
@pytest.mark.parametrize(("begun", "again"), [("earliest", 3), (2, "earliest")])
def test_a_checkpoint_says_where_its_stream_has_begun(
    acid: AcidSession, stream: Stream, begun: str | int, again: str | int
) -> None:
    """Not what a stream would begin with now, also where a write from before that is still to come."""
    with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
        with acid.transaction():
            acid.sql("INSERT INTO d.t VALUES (3, 30)")  # write 2
            other.sql("INSERT INTO d.t VALUES (4, 40)")
            came = Stream(other, Path(stream._checkpoint))
            assert came.taken(begun)[0][-1:] == [(4, 40)]
            other.sql("INSERT INTO d.t VALUES (5, 50)")
            assert came.taken(again) == [[(5, 50)]]
        other.sql("INSERT INTO d.t VALUES (6, 60)")
        assert came.taken(again) == [[(3, 30), (6, 60)]]


def test_rows_from_before_the_table_was_acid(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.sql("CREATE TABLE d.t (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='false')")
    location = acid.connection.table("d", "t").location
    spark.createDataFrame([(1,)], "id int").coalesce(1).write.mode("append").orc(location)
    acid.sql("ALTER TABLE d.t SET TBLPROPERTIES ('transactional'='true')")
    spark.createDataFrame([(2,)], "id int").coalesce(1).write.orc(str(tmp_path / "loaded"))
    stream = Stream(acid, tmp_path / "checkpoint")
    assert stream.taken() == [[(1,)]]
    acid.sql(f"LOAD DATA INPATH '{tmp_path / 'loaded'}' INTO TABLE d.t")
    assert stream.taken() == [[(2,)]]


@pytest.mark.parametrize("properties", [{}, {"transactional_properties": "insert_only"}], ids=["acid", "insert-only"])
def test_all_values(acid: AcidSession, spark: SparkSession, tmp_path: Path, properties: Any) -> None:
    columns = {f"c{place}": kind for place, kind in enumerate(TYPES)}
    acid.create_table("d.t", columns, properties=properties)
    values = {name: stored(kind) for name, kind in columns.items()}
    longest = max(map(len, values.values()))
    lines = [[f"{of[place % len(of)].sql} AS {name}" for name, of in values.items()] for place in range(longest)]
    whole = reduce(DataFrame.unionByName, (spark.range(1).selectExpr(*line) for line in lines))
    acid.insert("d.t", whole)
    taken = Taken(tmp_path / "taken", lambda frame: (frame.schema, rows_of(frame, list(TYPES))))
    Stream(acid, tmp_path / "checkpoint").started(acid.read_stream("d.t"), taken).awaitTermination()
    ((schema, rows),) = taken.batches.values()
    table = acid.table("d.t")
    assert schema == table.schema
    assert Counter(map(exactly, rows)) == Counter(map(exactly, rows_of(table, list(TYPES))))


def test_a_process_that_is_killed(acid: AcidSession, stream: Stream, tmp_path: Path) -> None:
    """Its batch is read again by another one, and files have each row once. Over Connect its server ends with it."""
    place, slow = str(tmp_path / "copied"), tmp_path / "slow"
    text = _PROGRAM.format(uri=acid.connection.uri, checkpoint=stream._checkpoint, place=place, slow=slow)
    program = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        assert "copied" in next(line for line in program.stdout if "copied" in line)
        acid.sql("INSERT INTO d.t VALUES (3, 30)")
        until(slow.exists)
    finally:
        program.kill()
        program.wait()
    acid.sql("INSERT INTO d.t VALUES (4, 40)")
    writer = acid.read_stream("d.t").writeStream.option("checkpointLocation", stream._checkpoint)
    writer.trigger(availableNow=True).start(place, format="parquet").awaitTermination()
    copied = sorted(map(tuple, acid.spark.read.parquet(place).collect()))
    assert copied == [(1, 10), (2, 20), (3, 30), (4, 40)]


_PROGRAM = """
import pathlib
import signal
import hive_acid.spark
from pyspark.sql import functions as F
from tests.spark.conftest import started
from tests.waiting import until
spark = started()
acid = hive_acid.spark.session(spark, "{uri}")
@F.udf("int")
def slowly(n):
    if n == 30:
        pathlib.Path("{slow}").touch()
        signal.pause()
    return n
frame = acid.read_stream("d.t").withColumn("n", slowly("n"))
query = frame.writeStream.option("checkpointLocation", "{checkpoint}").start("{place}", format="parquet")
until(lambda: query.lastProgress and query.lastProgress["batchId"] == 0)
print("copied", flush=True)
signal.pause()
"""


def test_it_counts_over_batches_without_rows(acid: AcidSession, stream: Stream) -> None:
    """What Spark keeps of a stream it keeps, whatever a batch is made of: deletes, or nothing at all."""
    counts = acid.read_stream("d.t").groupBy("id").count()
    taken = Taken(Path(stream._checkpoint + ".counted"))

    def take() -> dict[int, int]:
        writer = counts.writeStream.outputMode("update").option("checkpointLocation", stream._checkpoint)
        writer.trigger(availableNow=True).foreachBatch(taken).start().awaitTermination()
        return {id_: count for batch in taken.batches.values() for id_, count in batch}

    assert take() == {1: 1, 2: 1}
    acid.sql("DELETE FROM d.t WHERE id = 1")
    assert take() == {1: 1, 2: 1}
    acid.sql("INSERT INTO d.t VALUES (1, 11)")
    acid.sql("UPDATE d.t SET n = 22 WHERE id = 2")
    assert take() == {1: 2, 2: 2}


def test_it_waits_for_late_rows_as_long_as_is_said(acid: AcidSession, tmp_path: Path) -> None:
    """A window is told when the watermark is behind it, and a row that comes later is not in it."""
    acid.create_table("d.t", {"at": "timestamp", "n": "int"})
    late = acid.read_stream("d.t").withWatermark("at", "10 minutes").groupBy(F.window("at", "10 minutes"))
    sums = late.agg(F.sum("n").alias("n")).selectExpr("CAST(window.start AS STRING) AS start", "n")
    stream = Stream(acid, tmp_path / "checkpoint")
    acid.sql("INSERT INTO d.t VALUES (TIMESTAMP '2024-01-01 00:01:00', 1), (TIMESTAMP '2024-01-01 00:02:00', 2)")
    assert stream.taken(frame=sums) == []
    acid.sql("INSERT INTO d.t VALUES (TIMESTAMP '2024-01-01 01:00:00', 4)")
    assert stream.taken(frame=sums) == [[("2024-01-01 00:00:00", 3)]]
    acid.sql("INSERT INTO d.t VALUES (TIMESTAMP '2024-01-01 00:03:00', 8), (TIMESTAMP '2024-01-01 02:00:00', 16)")
    assert stream.taken(frame=sums) == [[("2024-01-01 01:00:00", 4)]]


@of_told_sources
def test_a_batch_is_limited(acid: AcidSession, spark: SparkSession, stream: Stream, tmp_path: Path) -> None:
    """To whole writes, the oldest first; what a compaction has put together is one."""
    for number in range(3, 7):
        acid.sql(f"INSERT INTO d.t VALUES ({number}, {number}0)")
    each = [[(number, number * 10)] for number in range(3, 7)]
    assert stream.taken(frame=acid.read_stream("d.t", max_files=1)) == [[(1, 10), (2, 20)], *each]
    assert stream.taken(frame=acid.read_stream("d.t", max_files=1)) == []
    two = Stream(acid, tmp_path / "two").taken(frame=acid.read_stream("d.t", max_files=2))
    assert two == [[(1, 10), (2, 20), *each[0]], [*each[1], *each[2]], each[3]]
    least = Stream(acid, tmp_path / "least").taken(frame=acid.read_stream("d.t", max_bytes=1))
    assert least == [[(1, 10), (2, 20)], *each]
    begun = Stream(acid, tmp_path / "begun").taken(frame=acid.read_stream("d.t", 3, max_files=1))
    assert begun == each[1:]
    slow = Stream(acid, tmp_path / "slow")
    with acid.transaction():
        acid.sql("INSERT INTO d.t VALUES (7, 70)")
        other = hive_acid.spark.session(spark, acid.connection.uri)
        other.sql("INSERT INTO d.t VALUES (8, 80)")
        assert slow.taken(frame=other.read_stream("d.t", max_files=3))[-1] == [each[2][0], each[3][0], (8, 80)]
        compact_table(spark, other, "d.t", "major")
        other.sql("INSERT INTO d.t VALUES (9, 90)")
    assert slow.taken(frame=acid.read_stream("d.t", max_files=1)) == [[(7, 70)], [(9, 90)]]
    assert stream.taken(frame=acid.read_stream("d.t", max_files=1)) == [[(7, 70)], [(8, 80)], [(9, 90)]]


def test_two_queries_and_a_union_of_one_stream(acid: AcidSession, stream: Stream, tmp_path: Path) -> None:
    frame = acid.read_stream("d.t")
    other = Stream(acid, tmp_path / "other")
    assert stream.taken(frame=frame) == other.taken(frame=frame) == [[(1, 10), (2, 20)]]
    both = frame.select("id").union(frame.selectExpr("-id"))
    assert Stream(acid, tmp_path / "third").taken(frame=both) == [[(-2,), (-1,), (1,), (2,)]]


def test_a_batch_keeps_its_files_and_ends(acid: AcidSession, postgres_url: str, template: str, tmp_path: Path) -> None:
    """While a batch runs its files stay; between batches nothing holds the table, however long that is."""
    with (
        served(postgres_url, template, tmp_path / "warehouse") as server,
        hive_acid.spark.session(acid.spark, server.uri) as own,
    ):
        house = House(server.db, tmp_path / "warehouse", acid.spark)
        own.create_database("d")
        own.create_table("d.t", {"id": "int"})
        for number in (1, 2):
            own.sql(f"INSERT INTO d.t VALUES ({number})")
        begun, cleaned = tmp_path / "begun", tmp_path / "cleaned"

        def when_cleaned(frame: DataFrame) -> list[tuple[Any, ...]]:
            begun.touch()
            until(cleaned.exists)
            return sorted(map(tuple, frame.collect()))

        taken = Taken(tmp_path / "taken", when_cleaned)
        query = Stream(own, tmp_path / "checkpoint").started(own.read_stream("d.t"), taken, processingTime="1 hour")
        try:
            until(begun.exists)
            compact_table(acid.spark, own, "d.t", "major")
            house.clean()
            cleaned.touch()
            until(lambda: taken.batches)
            assert taken.batches == {0: [(1,), (2,)]}
            own.drop_table("d.t")
        finally:
            query.stop()


def test_an_acid_table_out_of_an_acid_table(acid: AcidSession, stream: Stream, tmp_path: Path) -> None:
    acid.create_table("d.copy", {"id": "int", "n": "int"})

    def copy() -> list[tuple[Any, ...]]:
        sink = acid.sink("d.copy", query="copy")
        stream.started(acid.read_stream("d.t"), sink).awaitTermination()
        return sorted(map(tuple, acid.table("d.copy").collect()))

    assert copy() == [(1, 10), (2, 20)]
    acid.sql("INSERT INTO d.t VALUES (3, 30)")
    assert copy() == copy() == [(1, 10), (2, 20), (3, 30)]


def test_an_insert_only_table_that_is_compacted(
    acid: AcidSession, spark: SparkSession, postgres_url: str, template: str, tmp_path: Path
) -> None:
    """Rows of a query that runs are kept apart for it; of one that does not, a compaction may be too early."""
    with (
        served(postgres_url, template, tmp_path / "warehouse") as server,
        hive_acid.spark.session(spark, server.uri) as own,
    ):
        house = House(server.db, tmp_path / "warehouse", spark)
        own.create_database("d")
        own.create_table("d.t", {"id": "int"}, properties={"transactional_properties": "insert_only"})

        def add(*ids: int) -> None:
            for one in ids:
                own.sql(f"INSERT INTO d.t VALUES ({one})")

        def compact(kind: str = "major") -> None:
            house.compact("d.t", kind, [None])
            house.clean()

        add(1, 2)
        compact()
        stopped, running = Stream(own, tmp_path / "stopped"), Stream(own, tmp_path / "running")
        assert stopped.taken() == [[(1,), (2,)]]
        query = running.started(own.read_stream("d.t"), processingTime="3 seconds")
        try:
            until(lambda: running.batches)
            for kind, number in (("minor", 3), ("major", 5), ("minor", 7)):
                add(number, number + 1)
                compact(kind)
            own.sql("INSERT OVERWRITE TABLE d.t SELECT 9 UNION ALL SELECT id FROM d.t WHERE id > 7")
            compact()
            until(lambda: (9,) in [row for batch in running.batches for row in batch] or query.exception())
            assert query.exception() is None
        finally:
            query.stop()
        came = [row for batch in running.batches for row in batch]
        assert came[:2] == [(1,), (2,)]
        assert {(8,), (9,)} <= set(came) <= {(number,) for number in range(1, 10)}
        add(10)
        compact()
        _ends(stopped.started(own.read_stream("d.t")), "a compaction has put rows.*startingWriteId 11")
        assert Stream(own, tmp_path / "anew").taken(11) == []
        add(11)
        assert Stream(own, tmp_path / "other").taken(11) == [[(11,)]]


def _ends(query: Any, words: str) -> None:
    with pytest.raises(StreamingQueryException, match=words) as raised:
        query.awaitTermination()
    assert "Traceback" not in str(raised.value)


def test_what_ends_a_stream(acid: AcidSession, stream: Stream) -> None:
    frame = acid.read_stream("d.t")
    stream.taken(frame=frame)
    acid.sql("ALTER TABLE d.t ADD COLUMNS (c INT)")
    _ends(stream.started(frame), "other columns than when its stream was begun: start the query again")
    acid.sql("INSERT INTO d.t VALUES (3, 30, 300)")
    assert stream.taken() == [[(3, 30, 300)]]
    acid.drop_table("d.t")
    _ends(stream.started(frame), "there is no table d.t any more")
    acid.create_table("d.t", {"id": "int", "n": "int", "c": "int"})
    acid.sql("INSERT INTO d.t VALUES (4, 40, 400)")
    _ends(stream.started(frame), "d.t is another table now")
    _ends(stream.started(acid.read_stream("d.t")), "the checkpoint is of another table than d.t is now")


@pytest.mark.parametrize("had_all", [True, False])
def test_a_rebalance(acid: AcidSession, spark: SparkSession, postgres_url: str, template: str, tmp_path: Path,
                     had_all: bool) -> None:  # fmt: skip
    with (
        served(postgres_url, template, tmp_path / "warehouse") as server,
        hive_acid.spark.session(spark, server.uri) as own,
    ):
        house = House(server.db, tmp_path / "warehouse", spark)
        own.create_database("d")
        own.create_table("d.t", {"id": "int"})
        own.sql("INSERT INTO d.t VALUES (1)")
        stream = Stream(own, tmp_path / "checkpoint")
        assert stream.taken() == [[(1,)]]
        own.sql("INSERT INTO d.t VALUES (2)")
        if had_all:
            assert stream.taken() == [[(2,)]]
        own.sql("ALTER TABLE d.t COMPACT 'rebalance' ORDER BY id DESC")
        house.work()
        if had_all:
            assert stream.taken() == []
        else:
            _ends(stream.started(own.read_stream("d.t")), "rebalanced up to write 2.*startingWriteId 3")
        own.sql("INSERT INTO d.t VALUES (3)")
        assert (stream if had_all else Stream(own, tmp_path / "other")).taken(3) == [[(3,)]]


def test_what_is_refused(acid: AcidSession, stream: Stream, spark: SparkSession) -> None:
    acid.sql("CREATE VIEW d.v AS SELECT * FROM d.t")
    acid.sql("CREATE TABLE d.plain (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='false')")
    with pytest.raises(ViewError):
        acid.read_stream("d.v")
    with pytest.raises(TableNotAcidError):
        acid.read_stream("d.plain")
    with pytest.raises(NoSuchObjectError):
        acid.read_stream("d.nothing")
    with pytest.raises(ValueError, match="a stream begins at"):
        acid.read_stream("d.t", "newest")
    with pytest.raises(ValueError, match="not a table's name"):
        acid.read_stream("d.t.files")


def test_sparks_own_words(acid: AcidSession, spark: SparkSession, stream: Stream) -> None:
    with hive_acid.spark.enable(spark, acid.connection.uri) as joined:
        assert stream.taken(frame=spark.readStream.table("d.t")) == [[(1, 10), (2, 20)]]
        spark.sql("INSERT INTO d.t VALUES (3, 30)")
        again = spark.readStream.format("hive_acid").option("startingwriteid", "latest").load("d.t")
        assert again.sparkSession is spark
        assert stream.taken(frame=again) == [[(3, 30)]]
        with pytest.raises(ValueError, match="takes no option ignoreDeletes, only startingWriteId, max"):
            spark.readStream.options(ignoreDeletes=True).table("d.t")
        with pytest.raises(ValueError, match="maxFilesPerTrigger is a whole number from 1, not 'all'"):
            spark.readStream.option("maxfilespertrigger", "all").table("d.t")
        if TELLS_SOURCES:
            limited = spark.readStream.option("maxFilesPerTrigger", 1).option("maxBytesPerTrigger", "1g").table("d.t")
            assert Stream(acid, Path(stream._checkpoint + "3")).taken(frame=limited) == [[(1, 10), (2, 20)], [(3, 30)]]
        with pytest.raises(ValueError, match="its own columns"):
            spark.readStream.schema("id int").table("d.t")
        with pytest.raises(NoSuchObjectError):
            spark.readStream.format("hive_acid").load("d.nothing")
        with pytest.raises(ValueError, match="a table has a name"):
            spark.readStream.format("hive_acid").load()
        assert spark.readStream.format("rate").option("rowsPerSecond", 1).load().isStreaming
        query = (
            spark.readStream.table("d.t")
            .writeStream.option("checkpointLocation", stream._checkpoint + "2")
            .trigger(availableNow=True)
            .toTable("d.copy")
        )
        query.awaitTermination()
        assert sorted(map(tuple, joined.table("d.copy").collect())) == [(1, 10), (2, 20), (3, 30)]
