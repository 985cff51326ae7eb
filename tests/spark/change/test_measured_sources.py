"""What is learnt of the source of a MERGE, whether its keys are brought to the client or a query measures them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import MergeCardinalityError
from hive_acid.spark import AcidSession
from hive_acid.spark.change.source import Join, KeptSource, kept
from hive_acid.spark.conditions.predicates import MOST_VALUES, AllOf, Comparison, OneOf, Operator, Predicate
from hive_acid.spark.limits import Limits
from tests.spark.by_spark import WRITTEN

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


HOSTILE = {
    "tinyint": ("-128Y", "127Y", "0Y"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0"),
    "date": ("date'0001-01-01'", "date'9999-12-31'", "date_add(date'9999-12-31', 400)", "date'1582-10-15'"),
    "decimal(38,2)": ("-999999999999999999999999999999999999.99BD", "0.00BD", "0.01BD"),
    "string": ("''", "'a '", "'a'", "cast(X'ff' AS string)", "repeat('z', 3000)"),
    "char(3)": ("''", "'a '", "'a'"),
}
"""Values of the types of keys, as SQL."""

NUMBERED = {
    "tinyint": "cast(id % 100 AS tinyint)",
    "bigint": "id * 1000003",
    "date": "date_add(date'1970-01-01', int(id))",
    "decimal(38,2)": "cast(id / 4 AS decimal(38,2))",
    "string": "concat('k', id)",
    "char(3)": "cast(id AS string)",
}


def ends(predicate: Predicate | None) -> dict[str, tuple[Any, Any]]:
    """Between which values each column of a predicate on keys lies; nothing of one whose ends are not both known."""
    found: dict[str, list[Any]] = {}
    parts = [predicate]
    while parts:
        part = parts.pop()
        if isinstance(part, AllOf):
            parts += part.parts
        elif isinstance(part, OneOf):
            found[part.column] = [part.values[0], part.values[-1]]
        elif isinstance(part, Comparison):
            found.setdefault(part.column, [None, None])[part.operator is Operator.AT_MOST] = part.value
    return {column: (least, greatest) for column, (least, greatest) in found.items() if None not in (least, greatest)}


@pytest.mark.parametrize("seed", range(10))
def test_both_ways_learn_the_same(seed: int, spark: SparkSession) -> None:
    chance = random.Random(seed)
    kinds = [chance.choice(list(HOSTILE)) for _ in range(chance.randint(1, 2))]
    table = Table("d", "t", tuple(Column(f"k{at}", kind) for at, kind in enumerate(kinds)))
    number = chance.choice((0, 7, MOST_VALUES, 2 * MOST_VALUES + 9))
    keys = []
    for at, kind in enumerate(kinds):
        values = ", ".join(chance.sample(HOSTILE[kind], chance.randint(1, 3)))
        odd = f"array({values}, NULL)[int(pmod(hash(id, {seed}), size(array({values}, NULL))))]"
        of = chance.choice((NUMBERED[kind], f"if(id < 5, {odd}, {NUMBERED[kind]})", odd))
        keys.append(f"cast({of} AS {kind.replace('char(3)', 'string')}) k{at}")
    source = spark.range(0, number, 1, 3).selectExpr(*keys, "repeat('ü', int(id % 5)) v")
    join = Join(source, " AND ".join(f"t.k{at} = s.k{at}" for at in range(len(kinds))))

    def learnt(limits: Limits) -> KeptSource:
        return kept(join, table, limits, once=True)

    few, many = learnt(Limits()), learnt(Limits(**WRITTEN))
    compared = [f"rtrim(k{at})" if kind.startswith("char") else f"k{at}" for at, kind in enumerate(kinds)]
    met = source.selectExpr(*compared).dropna()
    assert few.rows == many.rows == number
    assert few.join == many.join
    assert few.is_unique == many.is_unique == (met.distinct().count() == met.count()), kinds
    assert ends(few.matched) == ends(many.matched), kinds


def test_no_query_of_several_stages_measures_a_source_of_numbers(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("the keys were not brought to the client")

    monkeypatch.setattr("hive_acid.spark.change.source._many", never)
    table = Table("d", "t", (Column("k", "bigint"), Column("p", "int")))
    source = spark.range(20 * MOST_VALUES).selectExpr("id k", "int(id % 3) p")
    found = kept(Join(source, "t.k = s.k AND t.p = s.p"), table, Limits(), once=True)
    assert (found.rows, found.is_unique) == (20 * MOST_VALUES, True)
    assert isinstance(found.matched, AllOf)
    assert OneOf("p", (0, 1, 2)) in found.matched.parts


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ([], "k"),
        ([None, "s.n < 3", "5"], "k n"),
        (["upper(V) = 'X'", "t.n * 2"], "k n v"),
        (["`a b` > 1"], "k"),
        (["to_json(struct(s.*))"], None),
        (["hash( * ) = 7"], None),
        (["count(n, *) > 1"], None),
        (["a column of Python's"], None),
    ],
)
def test_columns_that_nobody_asks_for_are_not_kept(spark: SparkSession, asked: Any, columns: str | None) -> None:
    """But those whose names are no words, which may be written in several ways."""
    asked = [F.col("s.n") > 1 if one == "a column of Python's" else one for one in asked]
    source = spark.range(9).selectExpr("id k", "id n", "string(id) v", "1 AS `a b`", "2 AS `größe`", "id w")
    table = Table("d", "t", (Column("k", "bigint"), Column("n", "bigint")))
    found = kept(Join(source, "t.k = s.k"), table, Limits(), asked=asked)
    odd = {"a b", "größe", "__acid_source_row"}
    assert set(found.frame.columns) - odd == set((columns or "k n v w").split())
    assert odd <= set(found.frame.columns)
    assert kept(Join(source, "true"), table, Limits(), asked=["1"]).rows == 9
    assert len(kept(Join(source, "t.k = s.k"), table, Limits()).frame.columns) == 7
