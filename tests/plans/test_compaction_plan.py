"""How files are merged, by what is known and by the limits: one test for each decision, without Spark."""

from dataclasses import replace
from typing import Any

import pytest

from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.compaction_plan import (
    CompactionPlan,
    MergedBy,
    MergedInsteadPlan,
    MergeFacts,
    deletes_by,
    directories_by,
    rebalanced_into,
    rows_by,
    rows_fit_arrow,
    run_bytes,
    sorted_by,
    stripes_stay,
    why_not_by_bucket,
    why_not_merged_here,
    why_not_opened,
)
from hive_acid.spark.plans.read_plan import UNKNOWN, DeleteFacts
from hive_acid.spark.plans.telling import text_of

LIMITS = Limits(
    broadcast_bytes=50,
    arrow_bytes=1000,
    arrow_sorted_bytes=100,
    few_buckets=4,
    bucket_bytes=100,
    by_bucket_bytes=200,
    one_task_bytes=500,
    merged_delete_events=10,
)
PLAIN = MergeFacts(900, 50, buckets=2, plain=True, written_bytes=900, sorted_bytes=100)
BY_SPARK = replace(PLAIN, plain=False)
SORTED = Choice(MergedBy.SHUFFLED, "much")


def test_a_little_is_merged_by_pyarrow_and_more_by_spark() -> None:
    assert rows_by(PLAIN, SORTED, LIMITS).way is MergedBy.ARROW
    for facts, why in (
        (BY_SPARK, "without a loss"),
        (replace(PLAIN, written_bytes=1001), "1001 bytes to write, more than 1000 bytes"),
        (replace(PLAIN, sorted_bytes=101), "101 bytes to sort"),
    ):
        found = rows_by(facts, SORTED, LIMITS)
        assert found.way is MergedBy.BUCKETS
        assert why in found.why


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ({"delete_bytes": 51}, "not broadcast"),
        ({"checkable": False}, "pyarrow is not here"),
        ({"pre_hive_3": True}, "before version 3"),
        ({"unfit": "so it is"}, "so it is"),
        ({"buckets": 0}, "no file has rows"),
        ({"buckets": 5, "size_bytes": 499}, "5 buckets"),
        ({"size_bytes": 200}, "one task is enough"),
    ],
)
def test_all_is_sorted_where_buckets_do_not_pay_or_are_not_right(fact: dict[str, Any], why: str) -> None:
    found = rows_by(replace(BY_SPARK, **fact), SORTED, LIMITS)
    assert found.way is SORTED.way
    assert why in found.why
    unknown = replace(MergeFacts(900, 50), **fact)
    if "size_bytes" not in fact:
        assert why_not_by_bucket(unknown, LIMITS) is not None, "without what has not been looked at"


def test_many_buckets_pay_if_they_are_large() -> None:
    assert rows_by(replace(BY_SPARK, buckets=5, size_bytes=500), SORTED, LIMITS).way is MergedBy.BUCKETS
    assert rows_by(replace(PLAIN, buckets=5, size_bytes=1), SORTED, LIMITS).way is MergedBy.ARROW
    assert why_not_by_bucket(MergeFacts(0, 0), LIMITS) is None, "nothing is known that speaks against it"


def test_one_task_sorts_what_is_small_or_of_one_bucket() -> None:
    assert sorted_by(500, 9, LIMITS).way is MergedBy.ONE_TASK
    assert sorted_by(501, 1, LIMITS).way is MergedBy.ONE_TASK
    assert sorted_by(501, 2, LIMITS).way is MergedBy.SHUFFLED
    assert sorted_by(1, 1, LIMITS, raw=True).way is MergedBy.SHUFFLED
    assert rebalanced_into(3) == Choice(MergedBy.REBALANCED, "into 3 files")


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ({"finished": False}, "still written"),
        ({"events": UNKNOWN}, "footer"),
        ({"events": 11}, "11 events, more than 10"),
        ({"readable": False}, "cannot be read"),
        ({"visible": False}, "no event is visible"),
    ],
)
def test_few_delete_events_are_merged_without_spark(fact: dict[str, Any], why: str) -> None:
    known = DeleteFacts(2, 100, events=10, readable=True, visible=True)
    assert deletes_by(known, SORTED, LIMITS) == Choice(MergedBy.CLIENT, "10 events in 2 files")
    found = deletes_by(replace(known, **fact), SORTED, LIMITS)
    assert found.way is SORTED.way
    assert why in found.why
    assert why in (why_not_merged_here(replace(DeleteFacts(), **fact), LIMITS) or "")


def test_files_whose_properties_tell_what_they_mean_are_joined() -> None:
    assert directories_by("avro", has_times=False).way is MergedBy.JOINED
    assert directories_by("parquet", has_times=True).way is MergedBy.JOINED
    assert directories_by("parquet", has_times=False).way is MergedBy.REWRITTEN
    assert directories_by("orc", has_times=True).way is MergedBy.REWRITTEN


def test_plans_are_shown() -> None:
    plan = CompactionPlan("major", "/w/t", "rows", rows_by(replace(PLAIN, kept=3), SORTED, LIMITS), 3)
    assert plan.by_bucket
    assert plan.phase == "rows (pyarrow, bucket by bucket)"
    assert text_of([plan]).splitlines() == [
        "major compaction of /w/t",
        f"  rows: pyarrow, bucket by bucket: {plan.by.why}",
        "  copied as they are: 3 files",
    ]
    assert "copied" not in text_of([replace(plan, by=SORTED)])
    assert "after all: Spark, after" in text_of([MergedInsteadPlan("major", "/w/t", SORTED)])


def test_what_is_looked_into_kept_and_read_together_goes_by_limits() -> None:
    limits = Limits(skipping_files=3, arrow_columns=2, arrow_row_bytes=10, kept_stripe_bytes=5, run_bytes=8, runs=4)
    assert why_not_opened(3, limits) is None
    assert why_not_opened(4, limits) == "4 footers would have to be read, more than 3"
    assert [rows_fit_arrow(*of, limits) for of in ((2, 70, 7), (3, 0, 7), (2, 71, 7))] == [True, False, False]
    assert [stripes_stay(2, size, limits) for size in (10, 9)] == [True, False]
    assert [run_bytes(size, limits) for size in (31, 40)] == [8, 10]
