"""A frame of a table that has not changed is made of the one before it, and is a frame of its own all the same."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.read import plan_cache
from hive_acid.spark.read.table_frame import planned_table
from tests.spark.conftest import OVER_CONNECT
from tests.spark.snapshots.test_leases import named, until_none_is_named

pytestmark = pytest.mark.skipif(OVER_CONNECT, reason="a frame of Connect is words until it runs: none is kept")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tables whose frames were made from nothing."""
    seen = []
    read = planned_table

    def watched(spark: SparkSession, state: Any, **words: Any) -> Any:
        seen.append(state.table.name)
        return read(spark, state, **words)

    monkeypatch.setattr(plan_cache, "planned_table", watched)
    return seen


@pytest.fixture
def table(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"k": "bigint", "Odd name": "string"})
    acid.insert("d.t", spark.range(4).selectExpr("id AS k", "concat('v', id) AS `Odd name`"))
    return "d.t"


def rows(frame: Any) -> Any:
    return sorted(tuple(row) for row in frame.collect())


def test_a_table_that_has_not_changed_is_not_made_anew(acid: AcidSession, table: Any, made: Any) -> None:
    first, second = acid.table(table), acid.table(table)
    assert made == [], "frames are planned when they are used"
    assert first.columns == second.columns
    assert made == ["t"]
    assert rows(first) == rows(second) == [(n, f"v{n}") for n in range(4)]
    assert second.columns == first.columns
    assert second.schema == first.schema
    assert [row.k for row in second.where("k > 1").sort("k").collect()] == [2, 3]
    assert second.where("k > 1").count() == 2


def test_each_change_is_seen(acid: AcidSession, spark: SparkSession, table: Any, made: Any) -> None:
    assert acid.table(table).columns == ["k", "odd name"]
    acid.insert(table, spark.range(4, 5).selectExpr("id AS k", "'new' AS `Odd name`"))
    assert rows(acid.table(table))[4:] == [(4, "new")]
    acid.delete(table, "k < 2")
    assert [row[0] for row in rows(acid.table(table))] == [2, 3, 4]
    acid.update(table, {"k": "k * 10"}, "k = 2")
    assert [row[0] for row in rows(acid.table(table))] == [3, 4, 20]
    acid.sql("ALTER TABLE d.t ADD COLUMNS (more int)")
    assert rows(acid.table(table).select("k", "more")) == [(3, None), (4, None), (20, None)]
    acid.truncate(table)
    assert rows(acid.table(table)) == []
    assert len(made) == 6


def test_a_snapshot_stays_what_it_was(acid: AcidSession, table: Any) -> None:
    _ = acid.table(table).schema
    before = acid.table(table)
    _ = before.schema
    not_planned = acid.table(table)
    acid.delete(table, "k = 0")
    after = acid.table(table)
    assert [before.count(), after.count()] == [4, 3]
    assert [len(rows(frame)) for frame in (before, not_planned, after)] == [4, 4, 3]


def test_another_table_of_the_name_is_another_table(acid: AcidSession, spark: SparkSession, table: Any) -> None:
    _ = acid.table(table).schema
    acid.sql("DROP TABLE d.t PURGE")
    acid.create_table("d.t", {"k": "bigint", "Odd name": "string"})
    assert rows(acid.table(table)) == []


def test_row_ids_have_a_frame_of_their_own(acid: AcidSession, table: Any, made: Any) -> None:
    assert [acid.table(table, row_id=row_id).columns[0] for row_id in (False, True, False, True)] == [
        "k",
        "ROW__ID",
    ] * 2
    assert len(made) == 2


def test_frames_of_one_table_can_be_joined_by_their_columns(acid: AcidSession, table: Any, made: Any) -> None:
    one, two, three = (acid.table(table) for _ in range(3))
    joined = one.join(two, one["k"] == two["k"] + 1).join(three, three["k"] == two["k"] + 2)
    assert made == ["t"]
    assert rows(joined.select(one["k"], two["k"], three["k"])) == [(1, 0, 2), (2, 1, 3)]
    assert one.join(two, one["k"] > two["k"]).count() == 6
    assert rows(two.select(two["k"]).subtract(one.where(F.col("k") > 0).select("k"))) == [(0,)]


def test_other_settings_make_it_anew(acid: AcidSession, spark: SparkSession, table: Any, made: Any) -> None:
    _ = acid.table(table).schema
    before = str(spark.conf.get("spark.sql.ansi.enabled"))
    spark.conf.set("spark.sql.ansi.enabled", "false" if before == "true" else "true")
    try:
        _ = acid.table(table).schema
        assert len(made) == 2
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_each_frame_keeps_its_snapshot_and_what_is_known_keeps_none(
    acid: AcidSession, table: Any, made: Any, db: Any
) -> None:
    first = acid.table(table)
    second = acid.table(table)
    assert first.schema == second.schema
    del first
    assert named(db) == {"t"}
    del second
    until_none_is_named(db)
    third = acid.table(table)
    assert named(db) == {"t"}
    assert third.sort("k").first() == (0, "v0")
    assert made == ["t"]


def test_few_are_kept_and_none_of_many_files(
    acid: AcidSession, table: Any, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.limits = Limits(cached_plans=2)
    for name in ("a", "b"):
        acid.create_table(f"d.{name}", {"k": "int"})
    for name in ("t", "a", "t", "b", "t", "a"):
        _ = acid.table(f"d.{name}").schema
    assert made == ["t", "a", "b", "a"]
    acid.limits = Limits(cached_plan_files=0)
    for _ in range(2):
        _ = acid.table(table).schema
    assert made == ["t", "a", "b", "a", "t", "t"]
