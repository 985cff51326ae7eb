"""What is learnt of the source of a MERGE, whether its keys are brought to the client or a query measures them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import MergeCardinalityError
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.predicates import MOST_VALUES

KINDS = {
    "int": "int(n)",
    "string": "concat('ü', n)",
    "char(4)": "concat('x', n)",
    "date": "date_add(date'9990-01-01', n)",
    "decimal(7,2)": "cast(n + 0.25 AS decimal(7,2))",
}


@pytest.fixture(params=[0, MOST_VALUES], ids=["few", "many"])
def others(request: Any) -> Any:
    """How many rows a source has that match nothing, beside those that a test is about."""
    return request.param


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_match_twice_are_found(kind: str, others: Any, acid: AcidSession, spark: SparkSession) -> None:
    def rows(*numbers: int | None) -> Any:
        given = ", ".join(f"({'NULL' if number is None else number})" for number in numbers)
        return spark.sql(f"SELECT {KINDS[kind]} k, n FROM VALUES {given} AS v(n)")

    acid.create_table("d.t", {"k": kind, "n": "int"})
    acid.insert("d.t", rows(1, 2, 3, None))
    more = spark.range(1000, 1000 + others).selectExpr("int(id) n").selectExpr(f"{KINDS[kind]} k", "n")

    def merged(source: Any) -> Any:
        merge = acid.merge("d.t", source.unionByName(more), "t.k = s.k")
        return merge.whenMatchedUpdate(set={"n": "s.n + t.n"}).execute().updated

    assert merged(rows(1, 3, None, None, 7)) == 2
    twice = rows(2, 3, 3)
    if kind == "char(4)":
        twice = rows(2, 3).unionByName(rows(3).selectExpr("concat(k, ' ') k", "n"))
    with pytest.raises(MergeCardinalityError):
        merged(twice)
    assert merged(rows(7, 7, 2)) == 1
    found = {row.k: row.n for row in acid.table("d.t").orderBy("n").collect()}
    assert sorted(map(str, found.values())) == ["2", "4", "6", "None"]
