"""Merges of random rows and clauses, by each way in which they run, against a model of a few lines."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, MergeCardinalityError
from hive_acid.spark import AcidSession
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_table, location_of

WAYS = {
    "client": {},
    "broadcast": WRITTEN,
    "shuffled": {**WRITTEN, "broadcast_bytes": -1},
}
TOO_LARGE = 1 << 40
"""No value of the table's column: of a row that no clause takes nobody may ask for it."""

Row = tuple[Any, ...]


class Rule(NamedTuple):
    """A clause's condition, and what it gives: as SQL, and of a row of the table and one of the source."""

    condition: str | None
    holds: Callable[[Any, Any], bool]
    values: dict[str, str] | None
    row: Callable[[Any, Any], Row] | None


def small(_: Any, s: Any) -> bool:
    return s[1] is not None and s[1] < 100


CONDITIONS = [
    ("s.n < 100", small),
    ("s.n < 3", lambda _, s: s[1] is not None and s[1] < 3),
    ("s.n < 100 AND s.s <> 'x1'", lambda t, s: small(t, s) and s[2] is not None and s[2] != "x1"),
]
OF_PAIRS = [
    *CONDITIONS,
    ("t.n >= 2 AND s.n < 100", lambda t, s: small(t, s) and t[1] is not None and t[1] >= 2),
]
UPDATES = [
    ({"n": "s.n"}, lambda t, s: (t[0], s[1], t[2], t[3])),
    ({"s": "t.s", "n": "t.n + s.n"}, lambda t, s: (t[0], plus(t[1], s[1]), t[2], t[3])),
    ({"s": "concat(s.s, '!')", "p": "s.p"}, lambda t, s: (t[0], t[1], joined(s[2]), s[3])),
    ({"id": "S.ID", "n": "s.n", "s": "s.s", "p": "s.p"}, lambda _, s: s),
]
INSERTS = [
    ({"id": "s.id", "n": "s.n", "s": "s.s", "p": "s.p"}, lambda _, s: s),
    ({"id": "id", "s": "upper(s)", "p": "1"}, lambda _, s: (s[0], None, up(s[2]), 1)),
    ({"id": "s.id + 100", "n": "n", "s": "s.s", "p": "p"}, lambda _, s: (plus(s[0], 100), s[1], s[2], s[3])),
]
BY_SOURCE = [({"n": "t.n - 1"}, lambda t, _: (t[0], plus(t[1], -1), t[2], t[3]))]


def plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def joined(text: str | None) -> str | None:
    return None if text is None else f"{text}!"


def up(text: str | None) -> str | None:
    return None if text is None else text.upper()


def some_rows(chance: random.Random, number: int, ids: int, larges: bool) -> list[Row]:
    numbers = [None, 0, 1, 2, 3, 99, *([TOO_LARGE] if larges else [])]
    return [
        (
            chance.choice([None, *range(ids)]),
            chance.choice(numbers),
            chance.choice([None, "x1", "x2", ""]),
            chance.choice([None, 1, 2]),
        )
        for _ in range(number)
    ]


class Case:
    """One random merge: the rows, the clauses, and what the model makes of them."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.all_columns = chance.random() < 0.5
        self.target = some_rows(chance, chance.choice((0, 5, 30)), chance.choice((4, 40)), larges=False)
        self.source = some_rows(chance, chance.choice((1, 8, 25)), chance.choice((6, 60)), larges=True)
        self.on = chance.choice(("t.id = s.id", "t.id = s.id AND t.n <> 2"))
        self.matched = [self._rule(chance, OF_PAIRS, UPDATES) for _ in range(chance.randrange(3))]
        self.new = [self._rule(chance, CONDITIONS, INSERTS, deletes=False) for _ in range(chance.randrange(3))]
        self.by_source: list[Rule] = []
        if not (self.matched or self.new) or chance.random() < 0.2:
            values, row = chance.choice(BY_SOURCE)
            self.by_source = [Rule("t.n > 0", lambda t, _: t[1] is not None and t[1] > 0, values, row)]

    def _rule(self, chance: random.Random, conditions: Any, values: Any, deletes: bool = True) -> Rule:
        condition, holds = chance.choice(conditions)
        if deletes and chance.random() < 0.3:
            return Rule(condition, holds, None, None)
        if self.all_columns:
            return Rule(condition, holds, {"*": "*"}, lambda _, s: s)
        return Rule(condition, holds, *chance.choice(values))

    def expected(self) -> tuple[tuple[int, int, int], list[Row]] | None:
        """How many rows are inserted, updated and deleted, and what there is then; None if a row is changed twice."""
        left: list[Row] = []
        met: set[int] = set()
        inserted = updated = deleted = 0
        for t in self.target:
            pairs = [number for number, s in enumerate(self.source) if self._meet(t, s)]
            met.update(pairs)
            found = [
                (rule, self.source[number]) for number in pairs if (rule := first(self.matched, t, self.source[number]))
            ]
            if not pairs and (rule := first(self.by_source, t, None)):
                found = [(rule, ())]
            if len(found) > 1:
                return None
            if not found:
                left.append(t)
                continue
            rule, s = found[0]
            updated += rule.row is not None
            deleted += rule.row is None
            left += [rule.row(t, s)] if rule.row is not None else []
        for number, s in enumerate(self.source):
            if number not in met and (rule := first(self.new, None, s)) and rule.row is not None:
                inserted += 1
                left.append(rule.row(None, s))
        return (inserted, updated, deleted), sorted(left, key=repr)

    def _meet(self, t: Row, s: Row) -> bool:
        if t[0] is None or t[0] != s[0]:
            return False
        return "<>" not in self.on or (t[1] is not None and t[1] != 2)


def first(rules: list[Rule], t: Any, s: Any) -> Rule | None:
    return next((rule for rule in rules if rule.holds(t, s)), None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_a_merge_is_what_the_model_says(acid: AcidSession, spark: SparkSession, seed: int, way: str) -> None:
    case = Case(seed)
    acid.create_table("d.t", {"id": "int", "n": "int", "s": "string"}, partitioned_by={"p": "int"})
    types = "id int, n bigint, s string, p int"
    if case.target:
        acid.insert("d.t", spark.createDataFrame(case.target, "id int, n int, s string, p int"))
    builder = acid.merge("d.t", spark.createDataFrame(case.source, types), case.on)
    for rule in case.matched:
        if rule.values is None:
            builder.whenMatchedDelete(rule.condition)
        elif case.all_columns:
            builder.whenMatchedUpdateAll(rule.condition)
        else:
            builder.whenMatchedUpdate(rule.condition, rule.values)
    for rule in case.new:
        if case.all_columns:
            builder.whenNotMatchedInsertAll(rule.condition)
        else:
            builder.whenNotMatchedInsert(rule.condition, rule.values)
    for rule in case.by_source:
        builder.whenNotMatchedBySourceUpdate(rule.condition, rule.values)
    expected = case.expected()
    with limited(acid, **WAYS[way]):
        if expected is None:
            with pytest.raises(MergeCardinalityError):
                builder.execute()
            expected = (0, 0, 0), sorted(case.target, key=repr)
        else:
            assert builder.execute() == expected[0]
    assert sorted(map(tuple, acid.table("d.t").collect()), key=repr) == expected[1]
    ids = acid.table("d.t", row_id=True).select("ROW__ID.*", "p")
    assert ids.distinct().count() == len(expected[1])
    if expected[1]:
        check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("way", WAYS)
def test_new_rows_alone_are_those_that_match_nothing(acid: AcidSession, spark: SparkSession, way: str) -> None:
    """Of an unpartitioned table, whose new rows are written where they are found."""
    acid.create_table("d.t", {"id": "int", "n": "int", "s": "string"})
    acid.insert("d.t", spark.createDataFrame([(n % 5, n, "old") for n in range(9)], "id int, n int, s string"))
    source = spark.createDataFrame([(n % 12, n, f"s{n}") for n in range(40)], "id int, n int, s string")
    values = {"id": "s.id", "s": "concat(s, '!')"}
    with limited(acid, **WAYS[way]):
        merged = acid.merge("d.t", source, "t.id = s.id").whenNotMatchedInsert("s.n < 30", values)
        expected = [(n % 12, None, f"s{n}!") for n in range(30) if n % 12 > 4]
        assert merged.execute() == (len(expected), 0, 0)
    found = acid.table("d.t", row_id=True).where("s <> 'old'")
    assert sorted(map(tuple, found.select("id", "n", "s").collect())) == sorted(expected)
    assert found.select("ROW__ID.*").distinct().count() == len(expected)
    assert acid.delete("d.t", "id = 7") == sum(1 for row in expected if row[0] == 7)
    check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("way", WAYS)
def test_a_clause_knows_its_own_side_whatever_others_have_said(
    acid: AcidSession, spark: SparkSession, way: str
) -> None:
    """Also if one that knows both has named the same column before, or a column is a struct called as the source."""
    acid.create_table("d.t", {"id": "int", "n": "int", "s": "struct<n:int>"})
    acid.insert(
        "d.t", spark.sql("SELECT 1 id, 1 n, named_struct('n', 5) s UNION ALL SELECT 7, 7, named_struct('n', 9)")
    )
    source = spark.sql("SELECT 1 id, 2 n UNION ALL SELECT 3, 4")

    def merge(alias: str = "s") -> Any:
        return acid.merge("d.t", source, f"t.id = {alias}.id", source_alias=alias)

    with limited(acid, **WAYS[way]):
        with pytest.raises(ColumnError, match="NOT MATCHED BY SOURCE know"):
            merge().whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedBySourceUpdate(set={"n": "q.n"}).execute()
        with pytest.raises(ColumnError, match="NOT MATCHED BY SOURCE know"):
            merge("q").whenMatchedUpdate(set={"n": "q.n"}).whenNotMatchedBySourceUpdate(set={"n": "q.n"}).execute()
        with pytest.raises(ColumnError, match="NOT MATCHED THEN INSERT know"):
            merge("q").whenMatchedUpdate(set={"n": "t.n"}).whenNotMatchedInsert(
                values={"id": "q.id", "n": "t.n"}
            ).execute()
        with pytest.raises(ColumnError, match="NOT MATCHED THEN INSERT know"):
            merge("q").whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedInsert(
                values={"id": "q.id", "n": "s.n"}
            ).execute()
        both = merge("q").whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedInsert(values={"id": "Q.id", "n": "`q`.N"})
        assert both.execute() == (1, 1, 0)
        by_source = merge("q").whenMatchedUpdate(set={"n": "t.id"})
        assert by_source.whenNotMatchedBySourceUpdate("t.id = 7", {"n": "s.n"}).execute() == (0, 3, 0)
    found = sorted((row.id, row.n) for row in acid.table("d.t").collect())
    assert found == [(1, 1), (3, 3), (7, 9)]
