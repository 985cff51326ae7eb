"""Joins of partitioned tables with small ones: partitions that cannot be reached are not read, and no row differs."""

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.telling import heard_plans
from tests.spark.conftest import OVER_CONNECT


@pytest.fixture
def tables(acid: AcidSession, spark: SparkSession) -> AcidSession:
    """A table of rows by days and shops, and small ones about these."""
    acid.create_table("d.sales", {"id": "bigint", "n": "int"}, partitioned_by={"day": "date", "shop": "string"})
    made = "id, int(id % 7) n, date_add('2026-01-01', int(id % 5)) day, nullif(concat('s', id % 3), 's2') shop"
    acid.insert("d.sales", spark.sql(f"SELECT {made} FROM range(60)").coalesce(1))
    acid.create_table("d.days", {"day": "date", "week": "int", "n": "int"})
    acid.insert(
        "d.days", spark.sql("SELECT date_add('2026-01-01', int(id)) day, int(id DIV 2) week, int(id) n FROM range(9)")
    )
    acid.create_table("d.shops", {"shop": "string", "city": "string", "n": "int"})
    acid.sql("INSERT INTO d.shops VALUES ('s0', 'Linz', 1), ('s1', 'Graz', 2), (NULL, 'Wien', 3), ('s\\'9', 'Rom', 4)")
    acid.delete("d.days", "day = DATE '2026-01-04'")
    return acid


PRUNED = {
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.week = 0": 6,
    "SELECT s.* FROM d.sales s JOIN d.days d ON d.day = s.day AND d.week = 1 AND d.n < 100": 3,
    "SELECT s.id, x.city FROM d.shops x, d.sales s WHERE (x.city = 'Linz') AND s.shop = x.shop": 5,
    "SELECT sales.id FROM d.sales JOIN d.shops ON sales.shop = shops.shop WHERE city IN ('Graz', 'Wien')": 5,
    "SELECT s.id FROM d.sales s JOIN d.days d ON s.day = d.day JOIN d.shops x ON s.shop = x.shop "
    "LEFT JOIN d.days e ON e.n = s.n WHERE d.week = 0 AND x.city = 'Linz'": 2,
    "SELECT count(*) FROM d.sales s JOIN d.shops x ON s.shop = x.shop WHERE x.n = 99": 0,
    "WITH c AS (SELECT s.id FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.n = 4) SELECT * FROM c": 3,
}
"""Queries, and of how many of the 15 partitions they have to read rows."""

WHOLE = (
    "SELECT s.* FROM d.sales s JOIN d.shops x ON s.shop = x.shop WHERE x.city > 'L'",  # one has a sign in quotes
    "SELECT s.* FROM d.sales s LEFT JOIN d.days d ON s.day = d.day AND d.week = 0",
    "SELECT s.* FROM d.days d RIGHT JOIN d.sales s ON s.day = d.day AND d.week = 0",
    "SELECT s.* FROM d.sales s FULL JOIN d.days d ON s.day = d.day WHERE d.week = 0 OR d.week IS NULL",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day OR s.n = d.n WHERE d.week = 0",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day > d.day WHERE d.week = 0",
    "SELECT s.* FROM d.sales s JOIN d.shops x ON s.shop <=> x.shop WHERE x.city = 'Wien'",
    "SELECT s.* FROM d.sales s JOIN d.shops x ON s.n = x.n WHERE x.city = 'Wien'",
    "SELECT s.* FROM d.sales s JOIN d.days d ON s.day = d.day WHERE d.week + rand() < 1",
    "SELECT s.* FROM d.sales s(a, b, c, e) JOIN d.days d ON c = d.day WHERE d.week = 0".replace("s.*", "s.a"),
    "SELECT s.* FROM d.sales s ANTI JOIN d.days d ON s.day = d.day AND d.week = 0",
)


@pytest.mark.parametrize("query", [*PRUNED, *WHOLE])
def test_rows_are_those_of_a_join_of_all_partitions(tables: AcidSession, query: str) -> None:
    with heard_plans() as heard:
        found = sorted(map(str, tables.sql(query).collect()))
    if not OVER_CONNECT and query in PRUNED:
        (read,) = [plan for plan in heard if plan.lines()[0].startswith("Read d.sales")]
        assert f"  partitions: {PRUNED[query]} of 15" in read.lines()
    tables.limits = Limits(joined_partitions=1_000)
    if "rand()" not in query:
        assert found == sorted(map(str, tables.sql(query).collect()))
