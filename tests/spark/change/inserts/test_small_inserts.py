"""Few rows of a query, which the client writes: as a Spark job writes them, of all values, and when a job does so."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.change.test_driver_write import new_by_spark
from tests.spark.checker import check_table, location_of
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import stored
from tests.values.rows.tables import can_be_key

KINDS = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(38,10)", "decimal(5,2)", "string",
    "varchar(5)", "char(3)", "binary", "date", "timestamp",
]  # fmt: skip
KEYS = ["string", "int", "date", "boolean", "bigint"]


def by_client(value: Any, kind: str) -> bool:
    """Whether the client writes a value itself: no long text, and no part of a second before 1970."""
    if isinstance(value, str | bytes):
        return len(value) < 60
    return kind != "timestamp" or value is None or value >= 0 or value % 1_000_000 == 0


def random_rows(spark: SparkSession, seed: int, kinds: dict[str, str], keys: dict[str, str]) -> DataFrame:
    """Rows of some hostile values each."""
    chance = random.Random(seed)
    columns = ["id"]
    for name, kind in (kinds | keys).items():
        values = [value for value in stored(kind) if by_client(value.model, kind)]
        if name in keys:
            values = [value for value in values if can_be_key(value.model)]
        some = ", ".join(value.sql for value in chance.choices(values, k=12))
        columns.append(f"array({some})[pmod(xxhash64(id, {chance.randrange(1 << 30)}), 12)] AS {name}")
    return spark.range(chance.choice((1, 7, 300))).selectExpr(*columns)


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_as_a_job_writes_them(acid: AcidSession, spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kinds = {f"c{n}": kind for n, kind in enumerate(chance.sample(KINDS, 6))}
    keys = {f"k{n}": kind for n, kind in enumerate(chance.sample(KEYS, seed % 3))}
    # Spark's estimate is not understood of a plan in which such values stand.
    random_rows(spark, seed, kinds, keys).write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows"))
    columns = {"id": "bigint", **kinds}
    for name in ("d.t", "d.s"):
        acid.create_table(name, columns, partitioned_by=keys)
    assert acid.insert("d.t", rows) == rows.count()
    with limited(acid, **WRITTEN):
        assert acid.insert("d.s", rows) == rows.count()
    assert set(new_by_spark(acid, 1).values()) == {False}
    assert set(new_by_spark(acid, 1, "d.s").values()) == {True}
    if keys:
        assert acid.sql("SHOW PARTITIONS d.t").collect() == acid.sql("SHOW PARTITIONS d.s").collect() != []
    every = [*columns.values(), *keys.values()]
    written, by_job = (sorted(map(exactly, rows_of(acid.table(name), every))) for name in ("d.t", "d.s"))
    assert written == by_job
    assert len(written) == rows.count()
    # The files' own statistics are asked, and rows are changed afterwards.
    for name in columns:
        one, two = (acid.table(table).where(f"{name} IS NOT NULL").count() for table in ("d.t", "d.s"))
        assert one == two, name
    for name in ("d.t", "d.s"):
        acid.update(name, {"id": "id + 1000"}, "id % 3 = 1")
        acid.delete(name, "id % 3 = 0")
    written, by_job = (sorted(map(exactly, rows_of(acid.table(name), every))) for name in ("d.t", "d.s"))
    assert written == by_job
    if "timestamp" not in kinds.values():  # the checker's pyarrow does not read those that are far away
        check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("keys", [{}, {"p": "int"}], ids=["whole", "partitions"])
@pytest.mark.parametrize("by_job", [False, True])
def test_overwrites_replace_what_they_say(acid: AcidSession, spark: SparkSession, keys: Any, by_job: bool) -> None:
    """The client writes bases as it does deltas; a partition that is named is emptied, others are left alone."""
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by=keys)

    def rows(first: int, end: int, of: int = 4) -> DataFrame:
        return spark.range(first, end).selectExpr("id", *([f"int(id % {of}) p"] if keys else []))

    def left() -> list[int]:
        found = sorted(row.id for row in acid.table("d.t").collect())
        assert acid.table("d.t").count() == len(found)
        return found

    with limited(acid, **(WRITTEN if by_job else {})):
        acid.insert("d.t", rows(0, 40))
        assert acid.overwrite("d.t", rows(100, 110, of=2)) == 10
        assert left() == [*(i for i in range(40) if keys and i % 4 > 1), *range(100, 110)]
        bases = list(location_of(acid, "d.t").rglob("base_*/bucket_*"))
        assert len(bases) == (2 if keys else 1)
        assert acid.overwrite("d.t", rows(0, 0)) == 0
        if keys:
            assert len(left()) == 30
            assert acid.overwrite("d.t", spark.range(5).where("id < 0"), partition={"p": "1"}) == 0
            assert left() == [*(i for i in range(40) if i % 4 > 1), *range(100, 110, 2)]
            assert acid.overwrite("d.t", spark.range(500, 503), partition={"p": "2"}) == 3
            assert left() == [*(i for i in range(40) if i % 4 == 3), *range(100, 110, 2), *range(500, 503)]
        else:
            assert left() == []
        assert acid.update("d.t", {"id": "id + 1"}, "id >= 100") == len([i for i in left() if i > 100])
    check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("parts", [1, 3, 9])
def test_they_keep_the_order_in_which_they_come(acid: AcidSession, spark: SparkSession, parts: int) -> None:
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by={"p": "int"})
    source = spark.range(0, 900, 1, parts).selectExpr("(id * 7919) % 900 AS id", "int(id % 3) AS p")
    acid.insert("d.t", source)
    assert set(new_by_spark(acid, 1).values()) == {False}
    for p in range(3):
        rows = acid.table("d.t", row_id=True).where(f"p = {p}").orderBy("ROW__ID.rowid").collect()
        assert [row.id for row in rows] == [row.id for row in source.where(f"p = {p}").collect()]


@pytest.mark.parametrize(
    ("made", "more"),
    [
        (lambda rows: rows.repartition(3), {}),
        (lambda rows: rows, {"properties": {"orc.bloom.filter.columns": "id"}}),
        (lambda rows: rows, {"columns": {"n": "array<int>"}}),
        (lambda rows: rows.mapInArrow(lambda batches: batches, rows.schema), {}),
    ],
    ids=["placed", "filters", "nested", "of unknown size"],
)
def test_others_are_written_by_a_job(acid: AcidSession, spark: SparkSession, made: Any, more: Any) -> None:
    columns = {"id": "bigint", **more.get("columns", {})}
    acid.create_table("d.t", columns, properties=more.get("properties"))
    rows = spark.range(50).selectExpr(
        "id", *(f"cast(null AS {kind}) {name}" for name, kind in more.get("columns", {}).items())
    )
    assert acid.insert("d.t", made(rows)) == 50
    assert set(new_by_spark(acid, 1).values()) == {True}
    assert acid.table("d.t").count() == 50


def test_more_rows_than_the_client_takes_are_all_written_by_a_job(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by={"p": "int"})
    acid.limits = Limits(driver_rows=99)
    assert acid.insert("d.t", spark.range(99).selectExpr("id", "int(id % 2) p")) == 99
    assert acid.insert("d.t", spark.range(100, 200).selectExpr("id", "int(id % 2) p")) == 100
    assert set(new_by_spark(acid, 1).values()) == {False}
    assert set(new_by_spark(acid, 2).values()) == {True}
    assert sorted(row.id for row in acid.table("d.t").collect()) == [*range(99), *range(100, 200)]


@pytest.mark.parametrize("by_job", [False, True])
def test_a_row_that_does_not_fit_leaves_nothing(acid: AcidSession, spark: SparkSession, by_job: bool) -> None:
    acid.create_table("d.t", {"id": "tinyint"}, partitioned_by={"p": "int"})
    rows = spark.range(100, 200).selectExpr("id", "int(id % 2) p")
    with limited(acid, **(WRITTEN if by_job else {})), pytest.raises(ColumnError, match="does not fit"):
        acid.insert("d.t", rows)
    assert acid.table("d.t").count() == 0
    assert not [path for path in location_of(acid, "d.t").rglob("*") if path.is_file()]


def test_the_plan_says_who_writes(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.create_table("d.u", {"id": "bigint"})
    acid.insert("d.u", spark.range(10))
    plan = acid.sql("EXPLAIN INSERT INTO d.t SELECT * FROM d.u WHERE id > 3").collect()[0][0]
    assert "written by: the client: " in plan
    assert "at most; up to 100,000 rows" in plan
