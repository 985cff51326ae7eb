"""The metastore's plain tables by Spark's own words: they are filled as Spark's own are."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import AlreadyExistsError, TransactionClosedError, UnsupportedTableError
from hive_acid.spark import EnabledSession

OLD = [(1, "a"), (2, "b"), (3, "b")]


def rows(frame: DataFrame) -> Any:
    return sorted(map(tuple, frame.collect()), key=str)


def given(spark: SparkSession, *of: tuple[int, str | None]) -> DataFrame:
    return spark.createDataFrame(list(of), "id int, k string")


@pytest.fixture(params=["ORC", "PARQUET", "JSONFILE", "TEXTFILE"])
def plain(request: pytest.FixtureRequest, joined: EnabledSession, spark: SparkSession) -> str:
    """Tables ``d.u`` (id, k) and, by k, ``d.p``."""
    form = f"STORED AS {request.param} TBLPROPERTIES ('transactional'='false')"
    spark.sql(f"CREATE TABLE d.u (id int, k string) {form}")
    spark.sql(f"CREATE TABLE d.p (id int) PARTITIONED BY (k string) {form}")
    for name in ("d.u", "d.p"):
        given(spark, *OLD).writeTo(name).append()
    return str(request.param)


def test_writers(joined: EnabledSession, spark: SparkSession, plain: str) -> None:
    new = given(spark, (9, "b"), (8, None))
    new.writeTo("d.p").overwritePartitions()
    assert rows(spark.table("d.p")) == [(1, "a"), (8, None), (9, "b")]
    given(spark, (7, "a")).writeTo("d.p").overwrite(F.col("k") == "a")
    assert rows(spark.table("d.p")) == [(7, "a"), (8, None), (9, "b")]
    with pytest.raises(UnsupportedTableError, match=r"d\.p is a plain table.*\(k\)"):
        new.writeTo("d.p").overwrite(F.col("id") == 7)
    new.write.mode("append").saveAsTable("d.p")
    assert spark.table("d.p").count() == 5
    given(spark, (5, "c")).write.mode("overwrite").saveAsTable("d.p")
    assert rows(spark.table("d.p")) == [(5, "c")]
    given(spark, (6, "d")).write.insertInto("d.p")
    given(spark, (4, "c")).write.insertInto("d.p", overwrite=True)
    assert rows(spark.sql("SELECT * FROM d.p")) == [(4, "c"), (6, "d")]
    new.writeTo("d.u").overwritePartitions()
    assert rows(spark.table("d.u")) == rows(new)
    new.writeTo("d.u").overwrite(F.lit(True))
    new.write.format("hive_acid").mode("append").save("d.u")
    assert rows(spark.table("d.u")) == rows(new.unionAll(new))
    given(spark, *OLD).write.mode("overwrite").insertInto("d.u")
    assert rows(spark.table("d.u")) == OLD
    with pytest.raises(AlreadyExistsError):
        new.write.saveAsTable("d.u")
    with pytest.raises(UnsupportedTableError, match=r"other (format|kind)"):
        new.writeTo("d.u").createOrReplace()
    with pytest.raises(UnsupportedTableError, match="plain table" if plain == "ORC" else "other format"):
        new.selectExpr("id", "k", "1 n").writeTo("d.u").tableProperty("transactional", "false").createOrReplace()


def test_blocks_do_not_write_them(joined: EnabledSession, spark: SparkSession, plain: str) -> None:
    if plain != "ORC":
        pytest.skip("the format does not matter")
    for write in (
        given(spark, *OLD).writeTo("d.u").append,
        lambda: given(spark, *OLD).write.insertInto("d.p"),
        lambda: spark.sql("INSERT OVERWRITE d.p VALUES (1, 'a')"),
    ):
        spark.sql("BEGIN")
        with pytest.raises(TransactionClosedError, match="plain table"):
            write()
        assert rows(spark.table("d.u")) == OLD
        spark.sql("COMMIT")
    assert rows(spark.table("d.p")) == OLD
