"""Literals in the clauses of a MERGE: kept out of generated code, and they mean the same."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark import AcidSession
from hive_acid.spark.change.source import Join
from tests.spark.conftest import OVER_CONNECT

COLUMNS = {"id": "bigint", "n": "int", "f": "double", "s": "string", "day": "date", "at": "timestamp"}
CLAUSES = (
    "WHEN MATCHED AND s.n % {n} = 3 AND t.day > DATE '2020-01-{n}' THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET n = s.n + {n}, s = concat(t.s, 'x{n}'), at = TIMESTAMP '2020-01-{n} 10:00:00.5' "
    "WHEN NOT MATCHED AND s.id > 10{n} THEN INSERT (id, n, day) VALUES (s.id, {n}, date_add(s.d2, {n}))",
    "WHEN MATCHED AND pmod(t.id + {n}, 7) IN (1, 2, 5) THEN UPDATE SET f = {n}, n = if(s.n > {n}, {n}, t.n * 1{n}) "
    "WHEN NOT MATCHED THEN INSERT (id, f, s) VALUES (id2 + {n}, 1.5D, '{n}')",
    "WHEN MATCHED THEN UPDATE SET n = CASE WHEN t.n IS NULL THEN {n} ELSE s.n - {n} END "
    "WHEN NOT MATCHED BY SOURCE AND t.n < 1{n} THEN UPDATE SET s = 'left', n = n + {n}, day = DATE '2021-01-{n}' "
    "WHEN NOT MATCHED BY SOURCE AND t.id % {n} = 1 THEN DELETE",
    "WHEN MATCHED AND t.at >= '2020-01-{n} 00:00:00' THEN UPDATE SET * "
    "WHEN NOT MATCHED AND hash(s.id) % {n} = 0 THEN INSERT *",
)


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr(
        *("id", "if(id % 11 = 0, null, int(id % 50)) n", "double(id) f", "concat('a', id) s"),
        *("date_add(DATE '2020-01-01', int(id % 40)) day", "timestamp_seconds(1577836800 + id * 9999) at"),
        *("id AS id2", "date_add(DATE '2020-02-01', int(id % 9)) AS d2"),
    )


def merged(acid: AcidSession, table: str, clauses: str) -> list[Any]:
    on = "t.id = s.id AND (t.n IS NULL OR t.n % 17 <> 5) AND t.day BETWEEN DATE '2020-01-03' AND DATE '2020-02-03'"
    acid.sql(f"MERGE INTO d.{table} t USING changes s ON {on} {clauses}")
    return sorted(acid.table(f"d.{table}").selectExpr("CAST(struct(*) AS string) AS row").toPandas()["row"])


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_they_mean_the_same(acid: AcidSession, spark: SparkSession, ansi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    rows(spark, 80, 140).createOrReplaceTempView("changes")
    for table in ("here", "there"):
        acid.create_table(f"d.{table}", COLUMNS)
        acid.insert(f"d.{table}", rows(spark, 0, 100).select(*COLUMNS))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for clauses in CLAUSES:
            found = merged(acid, "here", clauses.format(n=13))
            with monkeypatch.context() as patched:
                patched.setattr("hive_acid.spark.change.merge_job.hoisted_by", lambda text, names, column: text)
                patched.setattr(
                    "hive_acid.spark.change.source.with_hoisted_conjuncts", lambda text, names, column: text
                )
                assert merged(acid, "there", clauses.format(n=13)) == found, clauses
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))


@pytest.mark.skipif(OVER_CONNECT, reason="a client of Connect does not see what is compiled")
def test_merges_of_other_literals_share_their_programs(acid: AcidSession, spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    programs = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    acid.create_table("d.t", COLUMNS)
    acid.insert("d.t", rows(spark, 0, 100).select(*COLUMNS))
    rows(spark, 80, 140).localCheckpoint().createOrReplaceTempView("changes")
    clauses = "WHEN MATCHED AND s.n > {n} THEN UPDATE SET n = t.n + {n}, at = current_timestamp() "
    clauses += "WHEN NOT MATCHED THEN INSERT (id, n, at) VALUES (s.id, {n}, now())"
    made = []
    for n in (11, 12, 13, 14):
        before = programs.getCount()
        on = f"t.id = s.id AND t.day >= DATE '2020-01-{n}'"
        acid.sql(f"MERGE INTO d.t t USING changes s ON {on} {clauses.format(n=n)}")
        made.append(programs.getCount() - before)
    assert 0 in made[1:], made


def test_what_joins_two_tables_stays(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS)
    join = Join(rows(spark, 0, 1), "t.id = s.id")
    table = acid.connection.table("d", "t")
    found = join.hoisted("t.id = s.id + 5 AND t.n > 6 AND s.n < 7 AND n = 8 AND id2 = 9 AND t.d2 = 10", table)
    six = "array(6)[coalesce(__acid_bucket & 0, 0)]"
    assert found == f"t.id = s.id + 5 AND t.n > {six} AND s.n < 7 AND n = 8 AND id2 = 9 AND t.d2 = 10"
