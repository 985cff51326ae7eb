"""How a table is read, by what is known of it and by the limits: one test for each decision, without Spark."""

from dataclasses import replace
from typing import Any

import pytest

from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice, counted, size
from hive_acid.spark.plans.read_plan import (
    LEFT_TO_CALLER,
    UNKNOWN,
    Analysis,
    Counting,
    DeleteFacts,
    Deletes,
    DirectoriesPlan,
    LeftOut,
    PlacePlan,
    Reach,
    ReadPlan,
    Scans,
    analysis_of,
    counting_by,
    deletes_by,
    footers_asked,
    reach_by,
    scans_for,
    why_not_cached,
    why_not_looked_up,
)
from hive_acid.spark.plans.telling import heard_plans, tell, text_of

LIMITS = Limits(delete_files=5, delete_events=100, broadcast_bytes=2000, deletes_reach_files=7, counted_files=7)
KNOWN = DeleteFacts(3, 1000, unread=2, events=50, readable=True, visible=True, fits=True)

AGAINST = [
    ({"placed": False}, "path of a partition"),
    ({"finished": False}, "still written"),
    ({"unread": 6}, "6 delete files would have to be read, more than 5"),
    ({"events": UNKNOWN}, "footer"),
    ({"events": 101}, "101 delete events, more than 100"),
    ({"readable": False}, "cannot be read here"),
    ({"visible": False}, "not in the snapshot"),
    ({"fits": False}, "bitmap"),
]


def test_few_deletes_are_looked_up() -> None:
    assert deletes_by(KNOWN, LIMITS) == Choice(Deletes.LOOK_UP, "50 delete events in 3 files")
    assert deletes_by(replace(KNOWN, unread=5, events=100), LIMITS).way is Deletes.LOOK_UP
    assert deletes_by(None, LIMITS).way is Deletes.NONE


@pytest.mark.parametrize(("fact", "why"), AGAINST)
def test_what_cannot_be_looked_up_is_joined(fact: dict[str, Any], why: str) -> None:
    """By broadcast, unless there is too much of it; and the reason is the fact that speaks against the look-up."""
    found = deletes_by(replace(KNOWN, **fact), LIMITS)
    assert found.way is Deletes.BROADCAST_JOIN
    assert why in found.why
    assert deletes_by(replace(KNOWN, size_bytes=2000, **fact), LIMITS).way is Deletes.BROADCAST_JOIN
    large = deletes_by(replace(KNOWN, size_bytes=2001, **fact), LIMITS)
    assert large.way is Deletes.SHUFFLED_JOIN
    assert why in large.why
    assert "2 kB" in large.why


@pytest.mark.parametrize(("fact", "why"), AGAINST)
def test_a_fact_decides_before_those_behind_it_are_known(fact: dict[str, Any], why: str) -> None:
    """Else more would be opened than it takes. What nobody has looked at speaks against nothing."""
    assert why_not_looked_up(DeleteFacts(), LIMITS) is None
    assert why in (why_not_looked_up(replace(DeleteFacts(), **fact), LIMITS) or "")


def test_files_that_deletes_do_not_reach_have_a_scan_of_their_own_beside_a_join() -> None:
    def scans(**facts: Any) -> Scans | None:
        found = scans_for(**{"keeps_few": False, "can_join": True, "looked_up": False, **facts})
        return found.way if found is not None else None

    assert scans() is Scans.APART
    assert scans(looked_up=True) is Scans.ONE
    assert scans(keeps_few=True) is Scans.ONE
    assert scans(keeps_few=True, looked_up=None) is Scans.ONE, "nothing has to be looked up for it"
    assert scans(keeps_few=True, can_join=False) is Scans.APART
    assert scans(looked_up=None) is None


def test_footers_say_what_deletes_reach_if_they_are_few() -> None:
    def reach(**facts: Any) -> Reach:
        return reach_by(**{"skips": True, "raw": False, "unopened": 7, "limits": LIMITS, **facts}).way

    assert reach() is reach(unopened=None) is Reach.KEYS
    assert reach(unopened=8) is reach(unopened=UNKNOWN) is Reach.WRITES
    assert reach(skips=False, unopened=None) is reach(raw=True, unopened=None) is Reach.WRITES


def test_the_largest_files_are_asked_for_a_condition() -> None:
    limits = Limits(skipping_files=2)
    assert footers_asked([1, 1, 1, 1], limits) == 2
    assert footers_asked([0, 1, 0, 1, 0, 1], limits) == 5, "what is known already costs nothing"
    assert footers_asked([], limits) == 0
    left = iter([1, 1, 1, 1])
    footers_asked(left, limits)
    assert len([*left]) == 1, "of the others nobody asks"


def test_an_analysed_plan_is_kept_of_tables_with_few_files() -> None:
    limits = Limits(cached_plan_files=3)
    assert why_not_cached(over_connect=False, files=3, limits=limits) is None
    assert "4 files, more than 3" in (why_not_cached(over_connect=False, files=4, limits=limits) or "")
    assert "Connect" in (why_not_cached(over_connect=True, files=0, limits=limits) or "")
    assert analysis_of(unchanged=True).way is Analysis.KEPT
    assert analysis_of(unchanged=False).way is Analysis.ANEW


def test_rows_are_counted_by_footers_if_all_are_seen() -> None:
    def counting(**facts: Any) -> Counting:
        return counting_by(**{"written": True, "unopened": 7, "limits": LIMITS, **facts}).way

    assert counting() is counting(unopened=None) is Counting.FOOTERS
    assert counting(unopened=8) is counting(unopened=UNKNOWN) is Counting.ROWS
    assert counting(written=False, unopened=None) is Counting.ROWS
    assert counting(deletes=KNOWN) is Counting.FOOTERS
    assert counting(deletes=replace(KNOWN, events=101)) is counting(deletes=KNOWN, numbered=False) is Counting.ROWS


def test_plans_are_told_to_who_listens() -> None:
    place = PlacePlan("2 partitions", 2, 3, 4, deletes_by(KNOWN, LIMITS), Choice(Scans.ONE, "why"), latest=True)
    plan = ReadPlan("d.t", 3, 7, 2048, LeftOut(5, 2, 1), True, (place, DirectoriesPlan(1)), analysis_of(unchanged=True))
    with heard_plans() as heard:
        tell(plan)
        with heard_plans() as inner:
            tell(plan)
        tell(replace(plan, places=(replace(place, deletes=LEFT_TO_CALLER),)))
    tell(plan)
    assert [heard[0], inner, len(heard)] == [plan, [plan], 2]
    assert text_of([plan]).splitlines()[:4] == [
        "Read d.t",
        "  partitions: 3 of 8",
        "  files: 7 of 9 in them, 2 kB, 1 of them unasked: too many footers",
        "  row groups: those in which a row may meet the condition",
    ]
    assert "deletes: look-up: 50 delete events in 3 files" in text_of(heard)


def test_numbers_are_said_as_people_read_them() -> None:
    assert [counted(1, "file"), counted(2000, "file")] == ["1 file", "2,000 files"]
    assert [size(1023), size(1024), size(1025), size(64 << 20), size(5 << 50)] == [
        "1023 bytes",
        "1 kB",
        "2 kB",
        "64 MB",
        "5120 TB",
    ]
