"""Whether something needs a compaction, and why: every trigger with its default, and what the policy of costs promises
(transactions.md §4.4, §4.5, §7.2)."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from hive_acid.format.names import HIVE_3_PROPERTY, ORIGINALS_WRITE_ID, base_name, delete_delta_name, delta_name
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DirectoryState, directory_state
from metastore.compaction.config import CompactionConfig
from metastore.compaction.file_totals import FileTotals, small_deltas
from metastore.compaction.initiator.cost import Cost, head_start_s, writes
from metastore.compaction.initiator.policy import (
    MANUAL_HEAD_START_S,
    Aborts,
    Rules,
    excluded,
    judge,
    manual_head_start_s,
    may_be_cleaned,
    pool_of,
)
from metastore.compaction.models import TableInfo
from metastore.compaction.states import CompactionType
from metastore.settings import SettingError

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
MB, GB = 1 << 20, 1 << 30
ACID = {"transactional": "true"}
HIVE = CompactionConfig(policy="hive")
COST = CompactionConfig()


def state(
    inserts: int = 0, bytes_each: int = 1, base: int = 0, deletes: int = 0, more: Mapping[str, int] | None = None
) -> DirectoryState:
    """A directory with one file in each delta; deletes come with the last inserts."""
    entries = [(f"{delta_name(w, w, 0)}/bucket_00000", bytes_each) for w in range(101, 101 + inserts)]
    entries += [(f"{delete_delta_name(w, w, 0)}/bucket_00000", bytes_each) for w in range(101, 101 + deletes)]
    if base:
        entries.append((f"{base_name(100)}/bucket_00000", base))
    return directory_state([*entries, *(more or {}).items()], ValidWriteIdList("db.t", 1000), ValidTxnList(1000))


OLD_BASE = {f"{base_name(50)}/bucket_00000": 9}
ORIGINALS = {"000000_0": 10_000}
TRIGGERS: list[tuple[str, DirectoryState, Mapping[str, str], Aborts | None, CompactionType | None, str]] = [
    ("ten deltas are not more than ten", state(10), {}, None, None, "below_thresholds"),
    ("no base", state(11), {}, None, MAJOR, "many_deltas"),
    ("many small deltas", state(11, 1, 10_000), {}, None, MINOR, "many_deltas"),
    ("delete deltas count", state(6, 1, 10_000, 5), {}, None, MINOR, "many_deltas"),
    ("ten small deltas", state(10, 1, 10_000), {}, None, None, "below_thresholds"),
    ("more than a tenth of the base", state(1, 1001, 10_000), {}, None, MAJOR, "large_deltas"),
    ("just a tenth", state(1, 1000, 10_000), {}, None, None, "below_thresholds"),
    ("nothing", state(), {}, None, None, "below_thresholds"),
    ("a base alone", state(base=10_000), {}, None, None, "below_thresholds"),
    ("a replaced base", state(base=10_000, more=OLD_BASE), {}, None, MAJOR, "old_base"),
    ("a replaced base with a delta", state(1, 1, 10_000, more=OLD_BASE), {}, None, None, "below_thresholds"),
    ("original files are a base", state(1, 1001, more=ORIGINALS), {}, None, MAJOR, "large_deltas"),
    ("and so minor ones do", state(11, 1, more=ORIGINALS), {}, None, MINOR, "many_deltas"),
    ("delta.num.threshold of the table", state(4), {"delta.num": "3"}, None, MAJOR, "many_deltas"),
    ("higher", state(11), {"delta.num": "11"}, None, None, "below_thresholds"),
    ("delta.pct.threshold of the table", state(1, 400, 10_000), {"delta.pct": "0.03"}, None, MAJOR, "large_deltas"),
    ("many aborts", state(), {}, Aborts(1001, True, False), MAJOR, "many_aborts"),
    ("many and old ones", state(), {}, Aborts(1001, True, True), MAJOR, "many_aborts"),
    ("an old abort", state(11), {}, Aborts(1, False, True), MINOR, "old_abort"),
    ("some aborts", state(), {}, Aborts(1000, False, False), None, "below_thresholds"),
]


@pytest.mark.parametrize("row", TRIGGERS, ids=lambda row: row[0])
def test_every_trigger(row: tuple[str, DirectoryState, Mapping[str, str], Aborts | None, object, str]) -> None:
    """transactions.md §9, 59."""
    _, found, own, aborts, kind, code = row
    parameters = {f"compactorthreshold.hive.compactor.{key}.threshold": value for key, value in own.items()}
    judgement = judge(FileTotals.of(found), Rules.of(HIVE, parameters), aborts)
    assert (judgement.type, judgement.code) == (kind, code)
    assert judgement.reason


def test_defaults_are_the_wikis() -> None:
    assert (HIVE.delta_num_threshold, HIVE.delta_pct_threshold) == (10, 0.1)
    assert (HIVE.aborted_threshold, HIVE.aborted_age_ms) == (1000, 12 * 3_600_000)
    assert (HIVE.failed_threshold, HIVE.check_interval_ms) == (2, 300_000)
    assert (HIVE.initiator_on, HIVE.cleaner_on, HIVE.insert_only, HIVE.clean_aborts) == (True, True, True, True)
    assert (HIVE.keep_succeeded, HIVE.keep_failed, HIVE.keep_not_initiated, HIVE.keep_refused) == (3, 3, 2, 2)
    assert CompactionConfig().policy == "cost"


def test_reasons_have_the_figures() -> None:
    def reason(found: DirectoryState) -> str:
        return judge(FileTotals.of(found), Rules.of(HIVE, {})).message

    assert reason(state(4, 10, 10_000)) == (
        "4 deltas, and a compaction is made of more than 10; 40 bytes of deltas are 0.4 % of the base's, and more than "
        "0.1 of them would be put into it; all is well, and ALTER TABLE ... COMPACT compacts nevertheless"
    )
    assert reason(state(1, 1001, 10_000)) == "1001 bytes of deltas are 10 % of the base's, more than 0.1 of them"
    assert reason(state(11)) == "11 deltas, more than 10, and there is no base"


def test_statements_of_one_write_are_no_minor_compaction() -> None:
    """A minor one would be refused by the worker, again and again."""
    statements = {f"{delta_name(101, 101, number)}/bucket_00000": 1 for number in range(11)}
    judgement = judge(FileTotals.of(state(base=10_000, more=statements)), Rules.of(HIVE, {}))
    assert (judgement.type, judgement.code) == (MAJOR, "many_deltas")
    judgement = judge(FileTotals.of(state(base=10_000, more=statements)), Rules.of(COST, {}))
    assert (judgement.type, judgement.code) == (MAJOR, "many_deltas")
    assert Cost.of(FileTotals.of(state(base=10_000, more=statements)), 1e9).type is MAJOR


def test_thresholds_of_a_table() -> None:
    own = {"CompactorThreshold.hive.compactor.delta.num.threshold": "3"}
    assert Rules.of(HIVE, {}) == Rules(10, 0.1)
    assert Rules.of(HIVE, own) == Rules.of(COST, own) == Rules(3, 0.1)
    assert Rules.of(COST, {}, readers=2.0) == Rules(10, 0.1, 15.0)
    assert Rules.of(COST, {HIVE_3_PROPERTY: "true"}) == Rules(10, 0.1)
    with pytest.raises(SettingError, match="unfit"):
        Rules.of(HIVE, {"compactorthreshold.hive.compactor.delta.num.threshold": "many"})


EXCLUSIONS: list[tuple[Mapping[str, str], Mapping[str, str], str | None]] = [
    ({}, {}, None),
    ({"no_auto_compaction": "true"}, {}, "no_auto_compaction"),
    ({"NO_AUTO_COMPACTION": "TRUE"}, {}, "no_auto_compaction"),
    ({"No_Auto_Compaction": "true"}, {}, "no_auto_compaction"),
    ({"no_auto_compaction": "false"}, {}, None),
    ({}, {"No_Auto_Compaction": "true"}, "no_auto_compaction"),
    ({"no_auto_compaction": "true"}, {"no_auto_compaction": "false"}, None),
    ({"no_auto_compaction": "false"}, {"NO_AUTO_COMPACTION": "true"}, "no_auto_compaction"),
    ({"hive.repl.first.inc.pending": "true"}, {}, "replication_pending"),
    ({}, {"hive.repl.first.inc.pending": "true"}, "replication_pending"),
    ({}, {"hive.repl.first.inc.pending": "false"}, None),
]


@pytest.mark.parametrize(("own", "database", "code"), EXCLUSIONS)
def test_tables_left_alone(own: Mapping[str, str], database: Mapping[str, str], code: str | None) -> None:
    """transactions.md §9, 61: the database has the last word, and the case of keys does not matter."""
    found = excluded(TableInfo("/t", (), parameters={**ACID, **own}, database_parameters=database), HIVE)
    assert (found and found.code) == code
    if found is not None:
        assert found.action
        assert found.type is None


def test_insert_only_tables_can_be_left_out() -> None:
    table = TableInfo("/t", (), parameters={**ACID, "transactional_properties": "insert_only"})
    assert excluded(table, HIVE) is None
    found = excluded(table, CompactionConfig(insert_only=False))
    assert found is not None
    assert found.code == "insert_only_off"
    assert excluded(TableInfo("/t", (), parameters=ACID), CompactionConfig(insert_only=False)) is None


def test_other_flags_of_tables_and_databases() -> None:
    def table(own: dict[str, str], database: dict[str, str]) -> TableInfo:
        return TableInfo("/t", (), parameters=own, database_parameters=database)

    assert not may_be_cleaned(table({"NO_CLEANUP": "true"}, {}))
    assert pool_of(table({}, {"hive.compactor.worker.pool": "a"})) == "a"
    assert pool_of(table({"hive.compactor.worker.pool": "b"}, {"hive.compactor.worker.pool": "a"})) == "b"
    assert pool_of(table({}, {})) is None


def test_head_starts() -> None:
    assert manual_head_start_s("host1-manual") == MANUAL_HEAD_START_S
    assert manual_head_start_s("host1-4711") == 0
    assert [head_start_s(score) for score in (0.0, 1.0, 2.0, 4.0, 1e9)] == [0, 0, 60, 120, 600]


def test_small_deltas() -> None:
    assert small_deltas(state(3, 99, 10_000), 0.01) == 3
    assert small_deltas(state(3, 100, 10_000), 0.01) == 0
    assert small_deltas(state(3, 100), 0.01) == 0


# --- costs -------------------------------------------------------------------------------------------


WRITER_BYTES = 1500


def place(*deltas: tuple[int, int, int], base: int = 0, buckets: int = 1, merged: int = 0) -> FileTotals:
    """A base of write id 100, and deltas as (write id, bytes inserted, bytes of delete events), 0 for none of a kind.

    Each has a file for each bucket; those up to the write id `merged` were made by a compaction.
    """
    entries = [(f"{base_name(100)}/bucket_{bucket:05}", base // buckets) for bucket in range(buckets if base else 0)]
    for write_id, inserted, deleted in deltas:
        of = (None, 7) if write_id <= merged else (0, 0)
        for name, size in (
            (delta_name(write_id, write_id, *of), inserted),
            (delete_delta_name(write_id, write_id, *of), deleted and deleted + WRITER_BYTES),
        ):
            if size:
                entries += [(f"{name}/bucket_{bucket:05}", size) for bucket in range(buckets)]
    return FileTotals.of(directory_state(entries, ValidWriteIdList("db.t", 10_000), ValidTxnList(1000)))


def many(number: int, inserted: int, deleted: int = 0, first: int = 101) -> list[tuple[int, int, int]]:
    return [(write_id, inserted, deleted) for write_id in range(first, first + number)]


@pytest.mark.parametrize(
    ("found", "scans", "expected", "after"),
    [
        (place(), 10, None, 0),
        (place(base=GB), 10, None, 0),
        (place((101, GB, 0)), 10_000, None, 0),  # a file is a file, with or without a base
        (place(*many(5, 1000), base=GB), 5, None, 0),
        (place(*many(5, 1000), base=GB), 50, MINOR, 0),  # it is read more
        (place(*many(11, 1000), base=1000 * GB), 5, MINOR, 0),  # as many as Hive lets be
        (place(*many(10, 1000), base=1000 * GB), 5, None, 0),
        (place(*many(11, 1000)), 1, MAJOR, 0),  # a base costs no more
        (place((101, GB, 0), *many(20, 1000, first=102), base=100 * GB), 5, MINOR, 101),  # a large one is left alone
        (place((101, 8 * MB, 0), *many(20, 9 * MB, first=102), base=100 * GB), 5, MINOR, 0),
        (place(*many(20, MB), base=10 * MB), 5, MAJOR, 0),
        (place(*many(20, MB), base=1000 * GB), 5, MINOR, 0),
        (place((101, 1, GB), base=10 * GB), 5, MAJOR, 0),
        (place((101, 1, GB), base=1000 * GB), 5, None, 0),
        (place((101, 1, GB), base=1000 * GB), 5000, MAJOR, 0),
    ],
)
def test_costs(found: FileTotals, scans: int, expected: CompactionType | None, after: int) -> None:
    judgement = judge(found, Rules(10, 0.1, scans))
    assert (judgement.type, judgement.after) == (expected, after)
    assert judgement.code in (("worth_it", "many_deltas") if expected else ("not_worth_it",))
    assert "(1 is enough)" in judgement.reason


def test_writes_are_counted_across_compactions() -> None:
    """For a major compaction all since the base count, though the names of merged deltas do not tell how many."""
    assert writes(place()) == (0, 0)
    assert writes(place(*many(7, 1), base=1 << 30)) == (7, 7)
    assert writes(place(*many(7, 1))) == (7, 7)
    # Write ids 101 to 200 were merged; of the ten since then every other one wrote here.
    since = [(write_id, 1, 0) for write_id in range(202, 212, 2)]
    new, since_base = writes(place((200, 1, 0), *since, base=1 << 30, merged=200))
    assert new == 5
    assert since_base == 5 + 4.5 * 100 / 10
    assert writes(place((200, 1, 0), base=1 << 30, merged=200)) == (0, 0), "nothing is new"
    assert writes(place((101, MB, 0), base=10 * MB)) == (1, 50), "a load of a tenth counts as many small writes"


def test_a_base_from_before_the_first_write_is_not_older_than_that() -> None:
    """Its name has the lowest of all numbers."""
    entries = [
        (f"{base_name(ORIGINALS_WRITE_ID, 5)}/bucket_00000", GB),
        (f"{delta_name(1, 9, None, 7)}/bucket_00000", 9),
    ]
    entries += [(f"{delta_name(write_id, write_id, 0)}/bucket_00000", 9) for write_id in (10, 11)]
    found = FileTotals.of(directory_state(entries, ValidWriteIdList("db.t", 11), ValidTxnList(1000)))
    assert writes(found) == (2, 2 + 1.5 * 9 / 2)
    assert Cost.of(found, 5).type is None


def test_aborts_and_replaced_bases_count_under_every_policy() -> None:
    rules = Rules.of(COST, {})
    assert judge(place(), rules, Aborts(1001, True, False)).type is MAJOR
    assert judge(place(), rules, Aborts(1, False, True)).type is MINOR
    assert judge(FileTotals(base_bytes=1, obsolete_bases=1), rules).type is MAJOR


def _random_deltas(dice: random.Random) -> list[tuple[int, int, int]]:
    return [
        (101 + number, dice.choice((0, int(10 ** dice.uniform(0, 9)))), dice.choice((0, int(10 ** dice.uniform(0, 8)))))
        for number in range(dice.choice((0, 1, 2, 10, 60)))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_promises_of_the_costs(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(50):
        deltas, scans = _random_deltas(dice), 10 ** dice.uniform(0, 4)
        base, buckets = dice.choice((0, int(10 ** dice.uniform(6, 13)))), dice.choice((1, 4))
        merged = dice.choice((0, 105))
        found = place(*deltas, base=base, buckets=buckets, merged=merged)
        cost = Cost.of(found, scans)
        if not found.deltas:
            assert cost.type is None, "without deltas there is nothing to gain"
        if cost.type is not None:
            assert cost.score >= 1
        if cost.type is MINOR:
            beyond = [group for group in found.groups if group.first_write_id > cost.after]
            assert cost.merges == sum(group.deltas for group in beyond)
            assert len(beyond) > 1
            assert all(group.last_write_id <= cost.after for group in found.groups if group not in beyond)
        # More readers never make it less urgent; a larger base never makes a major one pay.
        assert Cost.of(found, 2 * scans).score >= cost.score
        assert cost.type is None or Cost.of(found, 2 * scans).type is not None
        if base and cost.type is not MAJOR:
            larger = place(*deltas, base=1000 * base, buckets=buckets, merged=merged)
            assert not larger.deltas or Cost.of(larger, scans).type is not MAJOR or found.delete_bytes


def test_a_huge_base_is_not_rewritten_for_a_tiny_delta() -> None:
    for base in (100 * GB, 1000 * GB, 10_000 * GB):
        assert Cost.of(place(*many(11, 1, 1000), base=base), 50).type is MINOR
        assert Cost.of(place((101, 11, 0), base=base), 50).type is None
