"""Joins of partitioned tables with small ones: partitions that cannot be reached are not read, and no row differs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.telling import heard_plans
from tests.spark.conftest import OVER_CONNECT

DAYS = "date_add('2026-01-01', int(id)) day, int(id DIV 2) week, int(id) n, concat('r', id % 4) region"


@pytest.fixture
def tables(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> Iterator[AcidSession]:
    """A table of rows by days and shops, and small ones about these: of ours, of Spark, and views."""
    acid.create_table("d.sales", {"id": "bigint", "n": "int"}, partitioned_by={"day": "date", "shop": "string"})
    made = "id, int(id % 7) n, date_add('2026-01-01', int(id % 5)) day, nullif(concat('s', id % 3), 's2') shop"
    acid.insert("d.sales", spark.sql(f"SELECT {made} FROM range(60)").coalesce(1))
    acid.create_table("d.days", {"day": "date", "week": "int", "n": "int", "region": "string"})
    acid.insert("d.days", spark.sql(f"SELECT {DAYS} FROM range(9)"))
    acid.create_table("d.shops", {"shop": "string", "city": "string", "n": "int"})
    acid.sql("INSERT INTO d.shops VALUES ('s0', 'Linz', 1), ('s1', 'Graz', 2), (NULL, 'Wien', 3), ('s\\'9', 'Rom', 4)")
    acid.delete("d.days", "day = DATE '2026-01-04'")
    acid.sql("CREATE VIEW d.early AS SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.week = 0")
    acid.sql("CREATE VIEW d.all_sales AS SELECT * FROM d.sales")
    place = str(tmp_path / "days")
    spark.sql(f"SELECT {DAYS} FROM range(9)").write.parquet(place)
    spark.read.parquet(place).createOrReplaceTempView("parquet_days")
    spark.sql(f"CREATE TABLE spark_days USING parquet LOCATION '{place}'")
    spark.createDataFrame([("s0", "Linz"), ("s1", "Graz"), (None, "Wien")], "shop string, city string").where(
        "city <> 'Rom'"
    ).createOrReplaceTempView("given_shops")
    spark.sql("SELECT *, rand() r FROM parquet_days").createOrReplaceTempView("random_days")
    yield acid
    spark.sql("DROP TABLE spark_days")


PRUNED = {
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.week = 0": 6,
    "SELECT s.* FROM d.sales s JOIN d.days d ON d.day = s.day AND d.week = 1 AND d.n < 100": 3,
    "SELECT s.id, x.city FROM d.shops x, d.sales s WHERE (x.city = 'Linz') AND s.shop = x.shop": 5,
    "SELECT sales.id FROM d.sales JOIN d.shops ON sales.shop = shops.shop WHERE city IN ('Graz', 'Wien')": 5,
    "SELECT s.id FROM d.sales s JOIN d.days d ON s.day = d.day JOIN d.shops x ON s.shop = x.shop "
    "LEFT JOIN d.days e ON e.n = s.n WHERE d.week = 0 AND x.city = 'Linz'": 2,
    "SELECT count(*) FROM d.sales s JOIN d.shops x ON s.shop = x.shop WHERE x.n = 99": 0,
    "WITH c AS (SELECT s.id FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.n = 4) SELECT * FROM c": 3,
    "SELECT s.* FROM d.sales s JOIN d.shops x ON s.shop = x.shop WHERE x.city > 'M'": 0,  # Rom has a sign in quotes
    "SELECT s.a FROM d.sales s(a, b, c, e) JOIN d.days d ON c = d.day WHERE d.week = 0": 6,
    'SELECT s.id FROM d.sales s JOIN d.shops x ON s.shop = x.shop WHERE x.city = "Linz"': 5,
    "SELECT s.* FROM d.sales s JOIN parquet_days d ON s.day = d.day WHERE d.week = 0": 6,
    "SELECT s.* FROM spark_days d JOIN d.sales s ON s.day = d.day WHERE d.week = 0": 6,
    "SELECT s.*, spark_days.n FROM d.sales s JOIN spark_days USING (day) WHERE spark_days.region = 'r1'": 3,
    "SELECT s.* FROM d.sales s JOIN given_shops x ON s.shop = x.shop WHERE x.city = 'Linz'": 5,
    "SELECT s.* FROM d.sales s JOIN (SELECT day FROM parquet_days WHERE region = 'r2') x USING (day)": 3,
    "WITH c AS (SELECT DISTINCT day FROM parquet_days WHERE n < 2) SELECT s.* FROM c, d.sales s WHERE c.day = s.day": 6,
    "SELECT * FROM d.sales WHERE day IN (SELECT day FROM parquet_days WHERE region = 'r2')": 3,
    "SELECT * FROM d.sales WHERE day IN (SELECT day FROM d.days WHERE region = 'r2')": 3,
    "SELECT * FROM d.sales s WHERE EXISTS (SELECT 1 FROM spark_days d WHERE d.day = s.day AND d.n = 0)": 3,
    "SELECT * FROM d.sales s LEFT SEMI JOIN parquet_days d ON s.day = d.day AND d.week = 1": 6,
    "SELECT d.n, s.id FROM (SELECT * FROM d.days WHERE n < 2) d LEFT JOIN d.sales s ON s.day = d.day": 6,
    "SELECT day, count(*) FROM d.sales GROUP BY day HAVING day IN (SELECT day FROM parquet_days WHERE n = 1)": 3,
    "SELECT count(*) FROM d.all_sales s JOIN parquet_days d ON s.day = d.day WHERE d.n = 1": 3,
    "SELECT * FROM d.early": 6,
    "SELECT s.id FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.n = 2 UNION ALL "
    "SELECT s.n FROM d.sales s JOIN spark_days d ON s.day = d.day WHERE d.n = 0": 6,
    "WITH c AS (SELECT * FROM d.sales) SELECT a.id FROM c a JOIN d.days d ON a.day = d.day AND d.n = 1 "
    "JOIN (SELECT c.id FROM c JOIN d.days e ON c.day = e.day WHERE e.n < 2) b ON a.id = b.id": 6,
    "SELECT s.* FROM d.sales s JOIN spark_days d ON s.day = string(d.day) WHERE d.n = 2": 3,
    "SELECT s.*, rand() < 2 FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.n = 2": 3,
}
"""Queries, and of how many of the 15 partitions they have to read rows."""

WHOLE = (
    "SELECT s.id FROM d.sales s JOIN d.sales r ON s.id = r.id + 1 JOIN d.days d ON s.day = d.day WHERE d.n = 2",
    "SELECT s.id FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.n = 2 UNION ALL SELECT n FROM d.sales",
    "SELECT s.* FROM d.sales s LEFT JOIN d.days d ON s.day = d.day AND d.week = 0",
    "SELECT s.* FROM d.days d RIGHT JOIN d.sales s ON s.day = d.day AND d.week = 0",
    "SELECT s.* FROM d.sales s FULL JOIN d.days d ON s.day = d.day WHERE d.week = 0 OR d.week IS NULL",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day OR s.n = d.n WHERE d.week = 0",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day > d.day WHERE d.week = 0",
    "SELECT s.* FROM d.sales s JOIN d.shops x ON s.shop <=> x.shop WHERE x.city = 'Wien'",
    "SELECT s.* FROM d.sales s JOIN d.shops x ON s.n = x.n WHERE x.city = 'Wien'",
    "SELECT s.* FROM d.sales s ANTI JOIN d.days d ON s.day = d.day AND d.week = 0",
    "SELECT * FROM d.sales WHERE day NOT IN (SELECT day FROM parquet_days WHERE region = 'r2')",
    "SELECT * FROM d.sales WHERE day IN (SELECT day FROM parquet_days WHERE region = 'r2') OR n = 3",
    "SELECT * FROM (SELECT * FROM d.sales ORDER BY id LIMIT 9) s JOIN d.days d ON s.day = d.day WHERE d.week = 0",
    "SELECT s.id, row_number() OVER (ORDER BY s.id) FROM d.sales s LEFT JOIN d.days d ON s.day = d.day AND d.n = 0",
    "SELECT s.* FROM d.sales s JOIN parquet_days d ON s.day = d.day WHERE d.n = 2 AND current_timestamp() > d.day",
    "SELECT s.* FROM d.sales s JOIN parquet_days d ON s.day = d.day WHERE d.n = 2 AND d.day < 'now'",
    "SELECT s.* FROM d.sales s JOIN (SELECT day FROM parquet_days WHERE n > 2 ORDER BY n LIMIT 1) d ON s.day = d.day",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day AND d.n = (SELECT max(n) - 1 FROM spark_days)",
)
CHANCE = (
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.week + rand() < 1",
    "SELECT s.* FROM d.sales s JOIN parquet_days TABLESAMPLE (50 PERCENT) d ON s.day = d.day WHERE d.week < 9",
    "SELECT s.* FROM d.sales s JOIN (SELECT uuid() u, day FROM parquet_days) d ON s.day = d.day WHERE d.u < '8'",
)
"""Queries whose rows are others each time."""


def partitions_read(heard: Sequence[Any]) -> list[str]:
    """The lines of the plans of `d.sales` that tell how many partitions are read."""
    plans = [plan.lines() for plan in heard if plan.lines()[0].startswith("Read d.sales")]
    return [line for lines in plans for line in lines if line.startswith("  partitions:")]


@contextmanager
def all_partitions(acid: AcidSession) -> Iterator[None]:
    """Within the block joins leave out nothing."""
    own = acid.limits
    acid.limits = Limits(joined_partitions=1_000)
    try:
        yield
    finally:
        acid.limits = own


@pytest.mark.parametrize("query", [*PRUNED, *WHOLE, *CHANCE])
def test_rows_are_those_of_a_join_of_all_partitions(tables: AcidSession, query: str) -> None:
    with heard_plans() as heard:
        found = sorted(map(str, tables.sql(query).collect()))
    if not OVER_CONNECT:
        read = PRUNED.get(query, 15)
        assert f"  partitions: {read} of 15" in partitions_read(heard) or (read == 0 and not partitions_read(heard))
    with all_partitions(tables):
        if query not in CHANCE:
            assert found == sorted(map(str, tables.sql(query).collect()))


def test_a_query_shows_small_tables_as_they_were_when_it_was_made(tables: AcidSession, spark: SparkSession) -> None:
    """Keys that come between a query and its first row would have theirs in partitions that are left out."""
    query = "SELECT s.id, d.n FROM d.sales s JOIN spark_days d ON s.day = d.day WHERE d.week = 0 ORDER BY 1, 2"
    first = tables.sql(query)
    whole = first.collect()
    second = tables.sql(query)
    spark.sql("INSERT INTO spark_days VALUES (DATE '2026-01-05', 0, 77, 'r9')")
    spark.catalog.cacheTable("spark_days")
    later = tables.sql(query).collect()
    assert {row.n for row in later} == {0, 1, 77}
    assert first.collect() == second.collect() == whole or OVER_CONNECT
    spark.catalog.uncacheTable("spark_days")
    assert second.filter("n < 90").collect() == whole or OVER_CONNECT
    assert tables.sql(query).collect() == later


def test_a_temporary_view_shows_what_its_tables_have(tables: AcidSession, spark: SparkSession) -> None:
    enabled = hive_acid.spark.enable(spark, metastore=tables.connection.uri)
    try:
        query = "SELECT count(*) FROM d.sales s JOIN spark_days d ON s.day = d.day WHERE d.week = 0"
        with heard_plans() as heard:
            assert spark.sql(query).first()[0] == 24  # type: ignore[index]
        assert "  partitions: 6 of 15" in partitions_read(heard) or OVER_CONNECT
        spark.sql(f"CREATE TEMPORARY VIEW shown AS {query}")
        spark.sql("INSERT INTO spark_catalog.default.spark_days VALUES (DATE '2026-01-05', 0, 77, 'r9')")
        assert spark.table("shown").first()[0] == 36  # type: ignore[index]
    finally:
        enabled.disable()
        spark.catalog.dropTempView("shown")


HOSTILE = {
    "string": ("'a'", "'A'", "' a'", "''", "'a/b=c'", "'%2F'", "'é'", "'s\\'9'", "'a\\\\b'", "'1'", "'01'", "NULL"),
    "char(4)": ("'a'", "'A'", "'abcd'", "' a'", "'b'", "'c'", "'d'", "'e'", "NULL"),
    "varchar(4)": ("'a'", "'A'", "'abcd'", "'a '", "'b'", "'c'", "'d'", "'e'", "NULL"),
    "int": ("0", "-1", "7", "2147483647", "-2147483648", "5", "6", "8", "NULL"),
    "bigint": ("0", "-1", "9223372036854775807", "-9223372036854775808", "4", "5", "6", "7", "NULL"),
    "date": ("DATE'2026-01-01'", "DATE'0001-01-01'", "DATE'1582-10-04'", "DATE'1582-10-15'", "DATE'9999-12-31'",
             "DATE'1970-01-01'", "DATE'1969-12-31'", "DATE'2000-02-29'", "NULL"),
    "decimal(10,2)": ("0", "0.01", "-0.01", "1.10", "99999999.99", "2", "3", "4", "NULL"),
    "double": ("0D", "-0D", "1.5D", "1e300D", "double('NaN')", "double('inf')", "2D", "3D", "NULL"),
    "boolean": ("true", "false", "NULL"),
}  # fmt: skip
OTHER_TYPES = {
    "int": "bigint",
    "string": "char(4)",
    "date": "string",
    "decimal(10,2)": "int",
    "bigint": "decimal(20,0)",
}
"""Of the other side, beside the key's own."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_keys_of_all_types(acid: AcidSession, spark: SparkSession, kind: str, tmp_path: Path) -> None:
    values = HOSTILE[kind]
    rows = ", ".join(f"({at}, cast({value} AS {kind}))" for at, value in enumerate(values))
    acid.limits = Limits(joined_partitions=2)
    acid.create_table("d.f", {"id": "int"}, partitioned_by={"k": kind})
    acid.sql(f"INSERT INTO d.f VALUES {rows}")
    for of_keys in {kind, OTHER_TYPES.get(kind, kind)}:
        place = str(tmp_path / of_keys)
        spark.sql(f"SELECT id n, try_cast(k AS {of_keys}) k FROM VALUES {rows} AS t(id, k)").write.parquet(place)
        spark.read.parquet(place).createOrReplaceTempView("keys")
        for where in ("n % 2 = 0", "n IN (1, 2, 3)", "n > 6"):
            joined = f"SELECT f.id, f.k, o.n FROM d.f JOIN keys o ON f.k = o.k WHERE o.{where}"
            within = f"SELECT * FROM d.f WHERE k IN (SELECT k FROM keys WHERE {where})"
            for query in (joined, within):
                found = sorted(map(str, acid.sql(query).collect()))
                with all_partitions(acid):
                    assert found == sorted(map(str, acid.sql(query).collect())), query


def test_many_keys_and_large_tables_leave_out_nothing(tables: AcidSession) -> None:
    query = "SELECT * FROM d.sales s JOIN spark_days d ON s.day = d.day WHERE d.week = 0"
    for limits in (Limits(joined_values=1), Limits(joined_bytes=1), Limits(joined_rows=1)):
        tables.limits = limits
        with heard_plans() as heard:
            assert tables.sql(query).count() == 24
        assert partitions_read(heard) == ["  partitions: 15 of 15"]
