"""How rows are changed, by what is known and by the limits: one test for each decision, without Spark."""

from dataclasses import replace
from typing import Any, NoReturn

import pytest

from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.change_plan import (
    ChangeFacts,
    DeletedBy,
    DirectoryInsertPlan,
    InsertPlan,
    InsteadPlan,
    SourceJoin,
    Writer,
    change_plan,
    deleted_by,
    insert_plan,
    source_by,
)
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import DeleteFacts
from hive_acid.spark.plans.tasks import Distribution, Estimate, Placing, Tasks
from hive_acid.spark.plans.telling import text_of

LIMITS = Limits(broadcast_bytes=1000, driver_rows=100, driver_deletes=200, delete_events=5)
FEW, MANY = Choice(Tasks.FEW, "small"), Choice(Tasks.MANY, "large")
SMALL, LARGE = source_by(10, 1000, LIMITS), source_by(10, 1001, LIMITS)


def unasked() -> NoReturn:
    raise AssertionError("this is not to be looked at")


UPDATE = ChangeFacts(FEW)
DELETE = ChangeFacts(FEW, deletes_only=True, unwritable=unasked)
MERGE = ChangeFacts(FEW, SMALL, 10, merges=True)


def test_a_small_source_is_broadcast() -> None:
    assert SMALL.way is SourceJoin.BROADCAST
    assert LARGE.way is SourceJoin.SHUFFLED
    assert "1001 bytes in memory, more than 1000 bytes" in LARGE.why


@pytest.mark.parametrize("facts", [UPDATE, DELETE, MERGE, replace(MERGE, deletes_only=True)])
def test_few_changes_of_small_tables_are_written_by_the_client(facts: ChangeFacts) -> None:
    plan = change_plan("CHANGE of", "d.t", facts, LIMITS)
    assert plan.by_client
    assert plan.in_place, "a job that writes instead moves nothing either"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(UPDATE, tasks=MANY), "many tasks"),
        (replace(DELETE, tasks=MANY), "many tasks"),
        (replace(MERGE, tasks=MANY, unwritable=unasked), "many tasks"),
        (replace(UPDATE, of_all_rows=True, unwritable=unasked), "few rows"),
        (replace(UPDATE, unwritable=lambda: "no, never"), "no, never"),
        (replace(MERGE, tasks=None, source=LARGE), "not broadcast"),
        (replace(DELETE, tasks=None, source=LARGE), "not broadcast"),
        (replace(MERGE, source_rows=101), "101 rows, more than 100"),
        (replace(MERGE, source_rows=51, inserts=True), "51 rows, more than 50"),
        (replace(MERGE, of_all_rows=True), "few rows"),
        (replace(MERGE, deletes_only=True, unwritable=lambda: "no, never"), "no, never"),
    ],
)
def test_all_else_is_written_by_a_job(facts: ChangeFacts, why: str) -> None:
    plan = change_plan("CHANGE of", "d.t", facts, LIMITS)
    assert plan.writer.way is Writer.JOB
    assert why in plan.writer.why


def test_the_limits_of_what_the_client_brings_are_told() -> None:
    assert "up to 200 rows;" in change_plan("DELETE from", "d.t", DELETE, LIMITS).writer.why
    assert "up to 100 rows, each with up to 500 bytes" in change_plan("UPDATE of", "d.t", UPDATE, LIMITS).writer.why


@pytest.mark.parametrize(
    ("facts", "moved"),
    [
        (UPDATE, None),
        (replace(UPDATE, of_all_rows=True), None),
        (replace(UPDATE, tasks=MANY), "many tasks"),
        (replace(MERGE, tasks=None, source=LARGE), "not broadcast"),
        (replace(UPDATE, clustered=True), "CLUSTERED"),
        (replace(DELETE, clustered=True), None),
        (replace(MERGE, once=True), "twice"),
        (replace(DELETE, file_is_statement=True), "statement"),
        (replace(MERGE, only_inserts=True, file_is_statement=True), "statement"),
    ],
)
def test_events_of_a_job_are_moved_where_they_have_to_meet(facts: ChangeFacts, moved: str | None) -> None:
    plan = change_plan("CHANGE of", "d.t", facts, LIMITS)
    assert plan.in_place is (moved is None)
    assert (moved or "few tasks") in plan.placing.why


@pytest.mark.parametrize("facts", [MERGE, replace(MERGE, tasks=None, source=LARGE), replace(MERGE, tasks=MANY)])
def test_new_rows_alone_stay_where_they_are(facts: ChangeFacts) -> None:
    assert "new" in change_plan("MERGE into", "d.t", replace(facts, only_inserts=True), LIMITS).placing.why
    assert change_plan("MERGE into", "d.t", replace(facts, only_inserts=True), LIMITS).in_place


def test_rows_that_are_gone_are_left_out_by_who_knows_them() -> None:
    known = DeleteFacts(events=5)
    assert deleted_by(may_fail=False, tasks=FEW, known=known, limits=LIMITS).way is DeletedBy.CLIENT
    assert deleted_by(may_fail=False, limits=LIMITS).way is DeletedBy.CLIENT
    for facts, why in (
        ({"may_fail": True}, "no condition"),
        ({"tasks": MANY}, "many tasks"),
        ({"pre_hive_3": True}, "updates"),
        ({"known": DeleteFacts(events=6)}, "6 delete events, more than 5"),
    ):
        known_of: dict[str, Any] = {"may_fail": False, "limits": LIMITS, **facts}
        found = deleted_by(**known_of)
        assert found.way is DeletedBy.SCAN
        assert why in found.why


def test_rows_of_an_insert_go_where_the_table_wants_them() -> None:
    def plan(**facts: Any) -> InsertPlan:
        known = {"clustered": False, "one_file": False, "divided": False, "estimate": unasked, "cores": unasked}
        named = {"columns": 2, "target_bytes": 100, "unwritable": lambda: None, "limits": Limits(), **facts}
        return insert_plan("INSERT into", "d.t", **{**known, **named})

    assert plan(clustered=True).distribution is None
    assert plan(one_file=True).distribution == Distribution(1, shuffled=True)
    exact = Estimate(50, is_exact=True, is_placed=False)
    assert plan(estimate=lambda: exact).distribution == Distribution(1, shuffled=False)
    assert plan(estimate=lambda: exact).placing.way is Placing.IN_PLACE


def writer_of_rows(size_bytes: int | None, **facts: Any) -> Choice[Writer]:
    said = {name: facts.pop(name, name == "is_exact") for name in ("is_exact", "is_placed", "is_given")}
    known = Estimate(size_bytes, **said)
    limits = Limits(driver_given_bytes=5, driver_query_bytes=30, driver_column_bytes=10, driver_columns=9)
    asked = {"clustered": False, "one_file": False, "divided": False, "cores": unasked, "target_bytes": 100}
    named = {"columns": 2, "unwritable": lambda: None, "limits": limits, **facts}
    return insert_plan("INSERT into", "d.t", estimate=lambda: known, **{**asked, **named}).writer


def test_rows_that_stand_in_an_insert_are_written_by_the_client() -> None:
    assert writer_of_rows(5, is_given=True).way is Writer.CLIENT
    for given, why in (
        (writer_of_rows(6, is_given=True), "6 bytes of rows, more than 5"),
        (writer_of_rows(5, is_given=True, unwritable=lambda: "not this one"), "not this one"),
        (writer_of_rows(5, is_given=True, clustered=True), "CLUSTERED"),
        (writer_of_rows(5, is_given=True, one_file=True), "a base has one"),
    ):
        assert given.way is Writer.JOB
        assert why in given.why


def test_rows_that_surely_are_few_are_written_by_the_client() -> None:
    for few, why in (
        (writer_of_rows(20), "20 bytes of rows; up to 100,000 rows"),
        (writer_of_rows(20, is_exact=False), "20 bytes of rows at most"),
        (writer_of_rows(30, columns=9), "30 bytes of rows"),
    ):
        assert few.way is Writer.CLIENT
        assert why in few.why
    for many, why in (
        (writer_of_rows(21), "21 bytes of rows, more than 20"),
        (writer_of_rows(31, columns=9), "31 bytes of rows, more than 30"),
        (writer_of_rows(5, columns=10), "the table has 10 columns, more than 9"),
        (writer_of_rows(None), "knows no size"),
        (writer_of_rows(20, is_placed=True), "placed its rows"),
        (writer_of_rows(20, unwritable=lambda: "not this one"), "not this one"),
    ):
        assert many.way is Writer.JOB
        assert why in many.why


def test_plans_are_shown() -> None:
    plan = change_plan("MERGE of", "d.t", MERGE, LIMITS)
    assert text_of([plan]).splitlines() == [
        "MERGE of d.t",
        "  source: broadcast: 10 rows, 1000 bytes in memory",
        "  tasks that read the table: few: small",
        f"  written by: the client: {plan.writer.why}",
        "  events of a Spark job: where they are: few tasks read the table",
    ]
    assert "after all: too many" in text_of([InsteadPlan("MERGE of", "d.t", "too many")])
    assert "insert-only" in text_of([DirectoryInsertPlan("INSERT into", "d.i")])
