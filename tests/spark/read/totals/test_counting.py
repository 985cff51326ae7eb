"""`count()` of a table: from the tails of its files where they tell it, else by Spark."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import SnapshotEndedError
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT


@pytest.fixture
def reads(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """How often Spark has counted."""
    asked = []
    kind = type(spark.range(0))
    count = kind.count
    monkeypatch.setattr(kind, "count", lambda self: asked.append(1) or count(self))
    return asked


def test_rows_of_clean_tables_are_not_read(acid: AcidSession, spark: SparkSession, reads: Any) -> None:
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by={"k": "int"})
    assert acid.table("d.t").count() == 0
    for _ in range(2):
        acid.insert("d.t", spark.range(100).selectExpr("id", "cast(id % 3 AS int) AS k"))
    reads.clear()
    table = acid.table("d.t")
    acid.insert("d.t", spark.range(1).selectExpr("id", "9 AS k"))
    reads.clear()
    assert table.count() == 200, "of its own snapshot"
    assert acid.table("d.t").count() == 201
    assert reads == []


def test_whatever_else_is_asked_is_read(acid: AcidSession, spark: SparkSession, reads: Any) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100))
    reads.clear()
    assert acid.table("d.t").where("id > 89").count() == 10
    assert acid.table("d.t", where="id > 89").count() == 10
    assert acid.table("d.t").select("id").distinct().count() == 100
    assert acid.table("d.t").limit(7).count() == 7
    cached = acid.table("d.t").cache()
    assert cached.count() == 100, "this fills the cache"
    cached.unpersist()
    assert len(reads) == 5


def test_rows_that_are_deleted_or_not_visible_are_not_counted(
    acid: AcidSession, spark: SparkSession, reads: Any
) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100))
    with pytest.raises(ZeroDivisionError), acid.transaction():
        acid.insert("d.t", spark.range(1000))
        1 / 0  # noqa: B018
    assert acid.table("d.t").count() == 100
    acid.delete("d.t", "id < 30")
    acid.update("d.t", {"id": "id + 1"}, "id >= 95")
    reads.clear()
    assert acid.table("d.t").count() == 70
    assert reads == []


def test_where_files_do_not_tell_that_deleted_rows_were_there_rows_are_read(
    acid: AcidSession, spark: SparkSession, reads: Any
) -> None:
    """A compacted file has gaps, and a file that somebody took away had rows that are named still."""
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100).coalesce(1))
    acid.delete("d.t", "id BETWEEN 30 AND 39")
    compact_table(spark, acid, "d.t", "major")
    acid.delete("d.t", "id = 50")
    reads.clear()
    assert acid.table("d.t").count() == 89
    acid.create_table("d.u", {"id": "bigint"})
    acid.insert("d.u", spark.range(100).coalesce(1))
    acid.insert("d.u", spark.range(100, 200).coalesce(1))
    acid.delete("d.u", "id IN (1, 101)")
    assert acid.table("d.u").count() == 198
    assert len(reads) == 1
    (taken,) = Path(acid.connection.table("d", "u").location.removeprefix("file:")).glob("delta_0000002_*/bucket_*")
    taken.unlink()
    assert acid.table("d.u").count() == 99
    assert len(reads) == 2


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("partitioned", [False, True])
def test_counts_are_those_of_rows_whatever_has_been_done(
    seed: int, partitioned: bool, acid: AcidSession, spark: SparkSession
) -> None:
    choice = random.Random(seed)
    name = "d.t"
    acid.create_table(name, {"id": "bigint", "v": "int"}, partitioned_by={"k": "int"} if partitioned else {})
    columns = ["id", "v", *(["k"] if partitioned else [])]
    for step in range(14):
        first, number = choice.randrange(300), choice.choice((1, 10, 5_000))
        rows = spark.range(first, first + number, 1, choice.choice((1, 3)))
        made = rows.selectExpr("id", f"{step} AS v", "int(id % 3) AS k").select(*columns)
        match choice.randrange(5) if step else 0:
            case 0:
                acid.insert(name, made)
            case 1:
                acid.delete(name, f"id % {choice.randrange(2, 9)} = 0 AND v <> {choice.randrange(14)}")
            case 2:
                acid.update(name, {"v": "v + 100"}, f"id % {choice.randrange(2, 9)} = 1")
            case 3:
                on = " AND ".join(f"t.{key} = s.{key}" for key in columns if key != "v")
                merge = acid.merge(name, made.limit(20), f"{on} AND t.v = {choice.randrange(14)}")
                merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
            case 4 if not partitioned:
                compact_table(spark, acid, name, choice.choice(("minor", "major")))
        assert acid.table(name).count() == len(acid.table(name).collect()), step


def test_a_compaction_brings_the_tails_back(acid: AcidSession, spark: SparkSession, reads: Any) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100))
    acid.delete("d.t", "id < 30")
    compact_table(spark, acid, "d.t", "major")
    reads.clear()
    assert acid.table("d.t").count() == 70
    assert reads == []


COUNTED = (
    "SELECT count(*) FROM d.t",
    "SELECT count(*) AS n, count(1), COUNT('x') `odd name` FROM d.t x",
    "SELECT (SELECT count(*) FROM d.t) AS a, (SELECT count(*) FROM d.p) AS b",
    "SELECT count(*) FROM d.t UNION ALL SELECT count(*) FROM d.p",
    "WITH c AS (SELECT count(*) AS n FROM d.p) SELECT n + 1 FROM c",
    "SELECT * FROM (SELECT count(*) FROM d.t) WHERE 1 = 1",
    "SELECT count(*), max(id) FROM d.t",
)
READ = (
    "SELECT count(*) FROM d.t WHERE id > 3",
    "SELECT count(id) FROM d.t",
    "SELECT count(DISTINCT 1) FROM d.t",
    "SELECT count(*), max(v) FROM d.t",
    "SELECT count(*) + 1 FROM d.t",
    "SELECT count(*) FROM d.t GROUP BY id % 2 ORDER BY 1",
    "SELECT count(*) FROM d.t HAVING count(*) > 1000",
    "SELECT count(*) FILTER (WHERE id > 3) FROM d.t",
    "SELECT count(*) OVER () FROM d.t",
    "SELECT count(*) FROM d.t a CROSS JOIN d.p b",
    "SELECT count(*) FROM d.t LATERAL VIEW explode(array(1, 2)) e AS f",
    "SELECT count(*) FROM d.t TABLESAMPLE (100 PERCENT)",
    "SELECT count(NULL), count(1, id) FROM d.t",
    "SELECT count(*) FROM d.t LIMIT 5",
    "SELECT count(*) FROM (SELECT DISTINCT v FROM d.t)",
)


@pytest.mark.parametrize("state", ["clean", "changed", "empty"])
def test_counts_in_sql_are_those_of_rows(acid: AcidSession, spark: SparkSession, tmp_path: Any, state: str) -> None:
    acid.create_table("d.t", {"id": "bigint", "v": "string"})
    acid.create_table("d.p", {"id": "bigint"}, partitioned_by={"k": "string"})
    if state != "empty":
        acid.insert("d.t", spark.range(9).selectExpr("id", "CASE WHEN id > 4 THEN 'x' END AS v"))
        acid.insert("d.p", spark.range(7).selectExpr("id", "CASE WHEN id > 2 THEN 'y' END AS k"))
    if state == "changed":
        acid.delete("d.t", "id IN (1, 6)")
        acid.insert("d.t", spark.sql("SELECT 11L AS id, 'z' AS v"))
        acid.update("d.p", {"k": "'moved'"}, "id = 3")
    for name in ("t", "p"):  # plain ones, which the queries find without a database
        acid.table(f"d.{name}").write.parquet(str(tmp_path / name))
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    for query in (*COUNTED, *READ):
        found, wanted = acid.sql(query), spark.sql(query.replace("d.", ""))
        assert (found.columns, found.dtypes) == (wanted.columns, wanted.dtypes), query
        assert sorted(map(tuple, found.collect())) == sorted(map(tuple, wanted.collect())), query
        if state != "empty" and not OVER_CONNECT:
            assert ("Scan orc" in _plan(found)) == (query in READ), query


def _plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_counts_of_a_transaction_are_gone_with_it(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(5))
    kept = acid.sql("SELECT count(*) FROM d.t")
    with pytest.raises(ZeroDivisionError), acid.transaction():
        acid.insert("d.t", spark.range(10))
        within = acid.sql("SELECT count(*) FROM d.t")
        assert within.collect() == [(15,)]
        1 / 0  # noqa: B018
    with pytest.raises(SnapshotEndedError):
        within.collect()
    with acid.snapshot():
        before = acid.sql("SELECT count(*) FROM d.t")
    acid.insert("d.t", spark.range(1))
    assert [frame.collect() for frame in (kept, before, acid.sql("SELECT count(*) FROM d.t"))] == [
        [(5,)],
        [(5,)],
        [(6,)],
    ]
