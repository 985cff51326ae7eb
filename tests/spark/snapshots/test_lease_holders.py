"""Whatever can read a snapshot keeps its files: each way in which something outlives the frame that it was made of."""

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlalchemy import text

import hive_acid.spark
from hive_acid.connection import connect
from hive_acid.errors import SnapshotEndedError
from hive_acid.filesystem import files
from hive_acid.spark import AcidSession
from tests.served import served
from tests.spark.conftest import OVER_CONNECT
from tests.spark.house import House
from tests.waiting import comes, until

ROWS = 6
ALL = [0, 1, 2, 3, 4, 5]


@dataclass(frozen=True)
class Way:
    """`make` gives what outlives the frames that it takes; `read` reads that; `end` lets go what Spark keeps itself."""

    make: Callable[["Scene"], Any]
    read: Callable[[Any], list[Any]]
    expected: Sequence[Any] = tuple(ALL)
    leases: int = 1
    end: Callable[["Scene"], object] | None = None
    classic_only: bool = False
    ends_when_read: bool = False
    is_cycle: bool = False
    """Whether PySpark's own objects refer to each other, so that Python has to collect cycles."""


class Scene:
    def __init__(self, acid: AcidSession, house: House, path: str) -> None:
        self.acid, self.house, self.path = acid, house, path
        self.spark: SparkSession = acid.spark

    def t(self) -> DataFrame:
        """The table's frame, with a lease of its own."""
        return self.acid.table("d.t")

    def open(self) -> int:
        """How many transactions are open, as the metastore knows."""
        with self.house._db.engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM txn WHERE state = 'o'")).scalar())  # type: ignore[arg-type]

    def require_open(self, wanted: int, what: str) -> None:
        until(lambda: self.open() == wanted, 20, what)

    def directories(self) -> int:
        at = self.acid.connection.table("d", "t").location
        return sum(entry.is_directory for entry in files.list_tree(at))

    def rewrite(self) -> None:
        """Every row is another one, in other files; the Cleaner takes what nobody needs."""
        self.acid.update("d.t", {"id": "id + 100"})
        self.acid.delete("d.t", "id > 103")
        self.house.compact("d.t", "major", [None])
        self.house.clean()


@pytest.fixture
def scene(spark: SparkSession, postgres_url: Any, template: Any, tmp_path: Path) -> Iterator[Any]:
    with served(postgres_url, template, tmp_path / "warehouse") as server, connect(server.uri) as connection:
        acid = hive_acid.spark.session(spark, connection)
        acid.create_database("d")
        acid.create_table("d.t", {"id": "bigint"})
        acid.create_table("d.u", {"id": "bigint"})
        for first in (0, 3):
            acid.insert("d.t", spark.range(first, first + 3).coalesce(1))
        yield Scene(acid, House(server.db, tmp_path / "warehouse", spark), str(tmp_path / "written"))


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def view(name: str, *, drop: str = "dropTempView", make: str = "createTempView", table: str | None = None) -> Way:
    def made(s: Scene) -> SparkSession:
        getattr(s.t(), make)(name)
        return s.spark

    def read(spark: SparkSession) -> list[int]:
        return ids(spark.table(table or name))

    return Way(made, read, end=lambda s: getattr(s.spark.catalog, drop)(name))


def of_view(s: Scene) -> DataFrame:
    s.t().createTempView("v_of_frame")
    frame = s.spark.table("v_of_frame")
    s.spark.catalog.dropTempView("v_of_frame")
    return frame


def of_view_of_view(s: Scene) -> DataFrame:
    s.t().createTempView("v_inner")
    s.spark.sql("CREATE TEMP VIEW v_outer AS SELECT id FROM v_inner")
    frame = s.spark.sql("SELECT * FROM v_outer")
    s.spark.catalog.dropTempView("v_outer")
    s.spark.catalog.dropTempView("v_inner")
    return frame


def begun(s: Scene) -> Any:
    rows = s.t().toLocalIterator()
    return rows, [next(rows)]


def in_block(s: Scene) -> DataFrame:
    with s.acid.snapshot():
        return s.spark.range(ROWS).join(s.t(), "id")


def written(writer: Any, path: str, spark: SparkSession) -> list[int]:
    writer.mode("overwrite").parquet(path)
    return ids(spark.read.parquet(path))


def outer(frame: DataFrame) -> DataFrame:
    return frame.where(F.col("id") == F.col("o.id").outer())


WAYS = {
    "frame": Way(Scene.t, ids),
    "derived": Way(lambda s: s.t().where("id >= 0").select((F.col("id") + 1).alias("id")), ids, list(range(1, 7))),
    "narrowed": Way(lambda s: s.t().where("id >= 2"), ids, [2, 3, 4, 5]),
    "left of join": Way(lambda s: s.t().join(s.spark.range(9), "id"), ids),
    "right of join": Way(lambda s: s.spark.range(9).join(s.t(), "id"), ids),
    "both of join": Way(lambda s: s.t().join(s.t(), "id"), ids, leases=2),
    "broadcast": Way(lambda s: s.spark.range(9).join(F.broadcast(s.t()), "id"), ids),
    "cross join": Way(lambda s: s.spark.range(1).select(F.lit(0).alias("x")).crossJoin(s.t()), ids),
    "union": Way(lambda s: s.spark.range(0).union(s.t()), ids),
    "union by name": Way(lambda s: s.spark.range(0).unionByName(s.t()), ids),
    "intersect": Way(lambda s: s.spark.range(9).intersect(s.t()), ids),
    "intersect all": Way(lambda s: s.spark.range(9).intersectAll(s.t()), ids),
    "subtract": Way(lambda s: s.spark.range(8).subtract(s.t()), ids, [6, 7]),
    "except all": Way(lambda s: s.spark.range(8).exceptAll(s.t()), ids, [6, 7]),
    "lateral join": Way(
        lambda s: s.spark.range(8).alias("o").lateralJoin(outer(s.t()).select(F.col("id").alias("i"))), ids
    ),
    "exists": Way(lambda s: s.spark.range(8).alias("o").where(outer(s.t()).exists()), ids),
    "scalar": Way(
        lambda s: s.spark.range(1).select(s.t().select(F.max("id")).scalar().alias("id")), ids, [5]
    ),
    "in": Way(lambda s: s.spark.range(8).where(F.col("id").isin(s.t())), ids),
    "column of a subquery": Way(
        lambda s: (s.spark, s.t().select(F.max("id")).scalar() + 1),
        lambda of: ids(of[0].range(1).select(of[1].alias("id"))), [6],
    ),
    "sql with a frame": Way(lambda s: s.spark.sql("SELECT id FROM {d} WHERE id >= 0", d=s.t()), ids),
    "acid.sql": Way(lambda s: s.acid.sql("SELECT id FROM d.t WHERE id IN (SELECT id FROM d.t)"), ids),
    "right of acid.sql": Way(lambda s: s.spark.range(9).join(s.acid.sql("SELECT id FROM d.t"), "id"), ids),
    "block": Way(in_block, ids),
    "view": view("v_1"),
    "replaceable view": view("v_2", make="createOrReplaceTempView"),
    "global view": view(
        "v_3", make="createGlobalTempView", drop="dropGlobalTempView", table="global_temp.v_3"
    ),
    "view of the right side": Way(
        lambda s: s.spark.range(9).join(s.t(), "id").createTempView("v_4") or s.spark,
        lambda spark: ids(spark.sql("SELECT * FROM V_4")), end=lambda s: s.spark.sql("DROP VIEW IF EXISTS V_4"),
    ),
    "view that is replaced": Way(
        lambda s: s.t().createTempView("v_5") or s.spark, lambda spark: ids(spark.table("v_5")),
        end=lambda s: s.spark.range(2).createOrReplaceTempView("v_5"),
    ),
    "view that SQL replaces": Way(
        lambda s: s.t().createTempView("v_6") or s.spark, lambda spark: ids(spark.table("v_6")),
        end=lambda s: s.spark.sql("CREATE OR REPLACE TEMPORARY VIEW v_6 AS SELECT 1 AS id"),
    ),
    "frame of a view": Way(of_view, ids, classic_only=True),
    "frame of a view of a view": Way(of_view_of_view, ids, classic_only=True),
    "rdd": Way(lambda s: s.t().rdd, lambda of: sorted(row.id for row in of.collect()), classic_only=True),
    "rdd mapped": Way(
        lambda s: s.t().rdd.map(lambda row: row.id).filter(lambda found: found >= 0),
        lambda of: sorted(of.collect()), classic_only=True,
    ),
    "right of rdds": Way(
        lambda s: s.spark.sparkContext.union([s.spark.range(0).rdd, s.t().rdd]).map(lambda row: row.id),
        lambda of: sorted(of.collect()), classic_only=True,
    ),
    "rdds that meet": Way(
        lambda s: s.spark.range(9).rdd.map(lambda row: (row.id, 1)).join(s.t().rdd.map(lambda row: (row.id, 1))),
        lambda of: sorted(found[0] for found in of.collect()), classic_only=True, is_cycle=True,
    ),
    "frame of an rdd": Way(lambda s: s.spark.createDataFrame(s.t().rdd, "id bigint"), ids, classic_only=True),
    "iterator": Way(lambda s: s.t().toLocalIterator(), lambda of: sorted(row.id for row in of), ends_when_read=True),
    "iterator under way": Way(begun, lambda of: sorted(row.id for row in [*of[1], *of[0]]), ends_when_read=True),
    "iterator of an rdd": Way(
        lambda s: s.t().rdd.toLocalIterator(), lambda of: sorted(row.id for row in of), classic_only=True,
        ends_when_read=True,
    ),
    "grouped": Way(lambda s: s.t().groupBy("id"), lambda of: ids(of.count())),
    "pivoted": Way(
        lambda s: s.t().groupBy().pivot("id", [1, 9]), lambda of: [tuple(row) for row in of.count().collect()],
        [(1, None)],
    ),
    "grouped in pandas": Way(
        lambda s: s.t().groupBy("id").applyInPandas(lambda found: found, "id bigint"), ids
    ),
    "cogroup": Way(
        lambda s: s.spark.range(9).groupBy("id").cogroup(s.t().groupBy("id")),
        lambda of: ids(of.applyInPandas(lambda left, right: left.merge(right, on="id"), "id bigint")),
    ),
    "cogrouped": Way(
        lambda s: s.spark.range(9).groupBy("id").cogroup(s.t().groupBy("id"))
        .applyInPandas(lambda left, right: left.merge(right, on="id"), "id bigint"), ids
    ),
    "map in pandas": Way(lambda s: s.t().mapInPandas(lambda batches: batches, "id bigint"), ids),
    "na": Way(lambda s: s.t().na, lambda of: ids(of.fill(0))),
    "stat": Way(lambda s: s.t().stat, lambda of: sorted(row.id for row in of.sampleBy("id", {1: 1.0}).collect()), [1]),
    "writer": Way(
        lambda s: (s.t().write, s.path, s.spark), lambda of: written(*of)
    ),
    "cached": Way(lambda s: s.spark.range(9).join(s.t(), "id").cache(), ids),
    "checkpoint to come": Way(lambda s: s.t().localCheckpoint(eager=False), ids),
    "observed": Way(lambda s: s.t().observe("o", F.count("id")), ids),
    "hint": Way(lambda s: s.spark.range(9).join(s.t().hint("merge").alias("h"), "id"), ids),
    "pandas on Spark": Way(lambda s: s.t().pandas_api(), lambda of: sorted(of["id"].to_list()), is_cycle=True),
    "merge": Way(
        lambda s: s.acid.merge("d.u", s.t(), "t.id = s.id").whenNotMatchedInsertAll(),
        lambda of: [of.execute().inserted], [ROWS],
    ),
    "multi-insert": Way(
        lambda s: s.acid.multi_insert(s.t()).into("d.u"), lambda of: [sum(of.execute())], [ROWS]
    ),
}  # fmt: skip


def skipped(way: Way) -> bool:
    return OVER_CONNECT and way.classic_only


@pytest.mark.slow
def test_whatever_can_read_a_snapshot_keeps_its_files_and_nothing_else_does(scene: Scene) -> None:
    """By reference counts alone: no collection of cycles ends a lease, none is needed."""
    ways = {name: way for name, way in WAYS.items() if not skipped(way)}
    gc.collect()
    scene.require_open(0, "before")
    gc.disable()
    try:
        held: dict[str, Any] = {}
        for name, way in ways.items():
            before = scene.open()
            held[name] = way.make(scene)
            assert scene.open() - before == way.leases, name
        scene.rewrite()
        assert scene.directories() == 7, "nothing was cleaned"
        assert ids(scene.t()) == [100, 101, 102, 103]
        wrong = {}
        for name, way in ways.items():
            try:
                found: Any = way.read(held[name])
            except Exception as error:
                found = error
            if found != list(way.expected):
                wrong[name] = found
            if way.ends_when_read:
                held[name] = None
        assert wrong == {}
        left = sum(way.leases for way in ways.values() if not way.ends_when_read)
        scene.require_open(left, "all are there")
        kept = {}
        for name, way in ways.items():
            held.pop(name)
            if way.ends_when_read:
                continue
            if way.end is not None:
                way.end(scene)
            if way.is_cycle:
                gc.collect()
            left -= way.leases
            comes(lambda wanted=left: scene.open() <= wanted, 10)
            if scene.open() != left:
                kept[name], left = scene.open() - left, scene.open()
        assert kept == {}
    finally:
        gc.enable()
    scene.house.clean()
    assert scene.directories() == 1


@pytest.mark.slow
def test_a_running_query_keeps_what_it_joins_with(scene: Scene, tmp_path: Path) -> None:
    """Until it ends, also where nothing in Python refers to it."""
    spark, source = scene.spark, str(tmp_path / "source")
    spark.range(2).write.parquet(source)
    stream = spark.readStream.schema("id bigint").parquet(source).join(scene.t(), "id")
    query = stream.writeStream.format("memory").queryName("q_lease").start()
    query.processAllAvailable()
    del stream, query
    gc.collect()
    scene.rewrite()
    assert scene.directories() == 7
    spark.range(2, 9).write.mode("append").parquet(source)
    running = spark.streams.active[0]
    running.processAllAvailable()
    assert ids(spark.table("q_lease")) == ALL
    scene.require_open(1, "it runs")
    running.stop()
    scene.require_open(0, "it has ended")
    spark.catalog.dropTempView("q_lease")


@pytest.mark.slow
def test_files_of_the_same_names_are_never_read_for_those_of_the_snapshot(scene: Scene) -> None:
    """A table that is dropped and made again begins with the same write ids and buckets."""
    acid, spark = scene.acid, scene.spark
    before = scene.spark.range(9).join(scene.t(), "id")
    acid.drop_table("d.t")
    acid.create_table("d.t", {"id": "bigint"})
    for first in (50, 53):
        acid.insert("d.t", spark.range(first, first + 3).coalesce(1))
    scene.house.clean()
    assert ids(before) == ALL
    after = scene.spark.range(99).join(scene.t(), "id")
    del before
    gc.collect()
    scene.require_open(1, "the new one's")
    scene.house.compact("d.t", "major", [None])
    scene.house.clean()
    acid.insert("d.t", spark.range(7, 8))
    spark.catalog.refreshByPath(acid.connection.table("d", "t").location)
    assert ids(after) == [50, 51, 52, 53, 54, 55]
    after.createTempView("v_refreshed")
    del after
    acid.insert("d.t", spark.range(8, 9))
    spark.catalog.refreshTable("v_refreshed")
    assert ids(spark.table("v_refreshed")) == [50, 51, 52, 53, 54, 55]
    spark.catalog.dropTempView("v_refreshed")
    scene.require_open(0, "after")


@pytest.mark.slow
def test_threads_read_what_they_have_taken_beside_writers_and_the_cleaner(scene: Scene) -> None:
    wrong: list[object] = []
    is_over = threading.Event()

    def read(number: int) -> None:
        try:
            while not is_over.is_set():
                frame = scene.spark.range(1000).join(scene.t(), "id")
                if number % 2:
                    frame.createOrReplaceTempView(f"v_thread_{number}")
                    frame = scene.spark.sql(f"SELECT id FROM v_thread_{number}")
                is_over.wait(0.2)
                found = ids(frame)
                if len(found) != ROWS or found != list(range(found[0], found[0] + ROWS)):
                    wrong.append(found)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            scene.acid.update("d.t", {"id": "id + 1"})
            scene.house.compact("d.t", "major", [None])
            scene.house.clean()
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    for number in (1, 3):
        scene.spark.catalog.dropTempView(f"v_thread_{number}")
    scene.require_open(0, "after")


# --- where nothing keeps the files ----------------------------------------------------------------


ACTIONS: dict[str, Callable[[Any, DataFrame, str], object]] = {
    "collect": lambda acid, frame, path: frame.collect(),
    "count": lambda acid, frame, path: frame.where("id >= 0").count(),
    "derived": lambda acid, frame, path: frame.groupBy("id").count().collect(),
    "right of join": lambda acid, frame, path: acid.spark.range(9).join(frame, "id").collect(),
    "pandas": lambda acid, frame, path: frame.toPandas(),
    "arrow": lambda acid, frame, path: frame.toArrow(),
    "iterator": lambda acid, frame, path: list(frame.toLocalIterator()),
    "first": lambda acid, frame, path: frame.first(),
    "write": lambda acid, frame, path: frame.write.parquet(path + "/written"),
    "cache": lambda acid, frame, path: frame.cache().collect(),
    "sql": lambda acid, frame, path: acid.spark.sql("SELECT * FROM {f}", f=frame).collect(),
    "in pandas": lambda acid, frame, path: frame.mapInPandas(lambda batches: batches, "id bigint").collect(),
    "insert": lambda acid, frame, path: acid.insert("d.u", frame),
    "merge": lambda acid, frame, path: (
        acid.merge("d.u", frame, "t.id = s.id").whenNotMatchedInsertAll().execute()
    ),
    "create as": lambda acid, frame, path: acid.create_table_as("d.x", frame),
    "view": lambda acid, frame, path: (
        frame.createOrReplaceTempView("v_ended"), acid.spark.table("v_ended").collect()
    ),
}  # fmt: skip
CLASSIC_ACTIONS: dict[str, Callable[[Any, DataFrame, str], object]] = {
    "rdd": lambda acid, frame, path: frame.rdd.collect(),
    "rdd mapped": lambda acid, frame, path: frame.rdd.map(lambda row: row.id).count(),
    "foreach": lambda acid, frame, path: frame.foreach(lambda row: None),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "missing", "planned"),
    [
        ("acid", False, True),
        ("acid", True, True),
        ("insert-only", True, True),
        ("original", True, True),
        ("acid", True, False),
        ("insert-only", True, False),
    ],
)
def test_rows_of_an_ended_snapshot_are_never_fewer_but_an_error_of_ours(
    scene: Scene, kind: str, tmp_path: Path, missing: bool, planned: bool
) -> None:
    acid, spark = scene.acid, scene.spark
    if kind == "insert-only":
        acid.create_table("d.e", {"id": "bigint"}, properties={"transactional_properties": "insert_only"})
        for first in (0, 3):
            acid.insert("d.e", spark.range(first, first + 3).coalesce(1))
    elif kind == "original":
        at = str(tmp_path / "plain")
        spark.range(6).coalesce(1).write.orc(at)
        acid.create_table("d.e", {"id": "bigint"})
        acid.load_data("d.e", at, copy=True)
    else:
        acid.create_table("d.e", {"id": "bigint"})
        for first in (0, 3):
            acid.insert("d.e", spark.range(first, first + 3).coalesce(1))
    actions = ACTIONS if OVER_CONNECT else ACTIONS | CLASSIC_ACTIONS
    frames = {name: acid.table("d.e") for name in actions}
    for frame in frames.values() if planned else ():
        assert frame.columns == ["id"]
    scene.house.time_out()
    with ThreadPoolExecutor(1) as pool:  # this thread believes that it reads still
        pool.submit(acid.overwrite, "d.e", spark.range(50, 53)).result()
    scene.house.compact("d.e", "major", [None])
    gc.collect()
    scene.house.clean()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", str(missing).lower())
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", str(missing).lower())
    told = {}
    try:
        for name, action in actions.items():
            try:
                told[name] = str(action(acid, frames[name], str(tmp_path)))
            except SnapshotEndedError as error:
                why = "/e/" if planned or OVER_CONNECT else "d.e has ended before its frame was used"
                told[name] = "gone" if why in str(error) and error.__cause__ is not None else str(error)
            except Exception as error:
                told[name] = f"{type(error)} {error}"[:2000]
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert told == dict.fromkeys(actions, "gone")
    assert ids(acid.table("d.e")) == [50, 51, 52]
    assert acid.table("d.u").count() == 0
