"""Which compaction is next: tables take turns, and nothing starves (find_next_compact.sql)."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from hive_acid.ids import CompactionId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.initiator.policy import MANUAL_HEAD_START_S
from metastore.compaction.models import Compaction, CompactionRequest
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.states import CompactionType
from metastore.store.database import Database

MAJOR = CompactionType.MAJOR


@pytest.fixture
def service(db: Database) -> CompactionService:
    return CompactionService(db, CompactionConfig())


def ask(service: CompactionService, table: str, partition: int | None = None, head_start_s: int = 0) -> CompactionId:
    name = None if partition is None else f"p={partition}"
    return service.compact(CompactionRequest(MAJOR, "db", table, name, head_start_s=head_start_s)).id


def take(service: CompactionService, pool: str | None = None) -> Compaction | None:
    found = service.find_next("worker", pool=pool)
    if found is not None:
        service.mark_failed(found.id, "over", "worker")
    return found


def taken(service: CompactionService, count: int) -> list[str]:
    found = [take(service) for _ in range(count)]
    return [f"{one.table}{(one.partition or '')[2:]}" for one in found if one is not None]


def later(db: Database, seconds: int) -> None:
    """Let time go by."""
    past = ", ".join(
        f"{column} = {column} - make_interval(secs => {seconds})"
        for column in ("enqueued_at", "started_at", "ended_at")
    )
    with db.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE compaction SET {past}")


def test_one_of_each_table_in_the_order_of_their_age(service: CompactionService) -> None:
    """Where no table asks twice it is Hive's order."""
    for name in ("c", "a", "b"):
        ask(service, name)
    assert taken(service, 4) == ["c", "a", "b"]


def test_tables_take_turns(service: CompactionService) -> None:
    for partition in range(1, 4):
        ask(service, "a", partition)
    ask(service, "b", 1)
    ask(service, "c")
    assert taken(service, 2) == ["a1", "b1"]
    ask(service, "b", 2)
    assert taken(service, 4) == ["c", "a2", "b2", "a3"]


def test_who_has_been_served_waits_for_the_others(service: CompactionService) -> None:
    """Also when its requests come one at a time, each when the last one is done."""
    ask(service, "b")
    order = []
    for number in range(3):
        ask(service, "a", number)
        order += taken(service, 1)
    assert order == ["b", "a0", "a1"]


def test_ten_thousand_partitions_keep_nobody_waiting(db: Database, service: CompactionService) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO compaction (state, type, db, tbl, partition, enqueued_at)"
            " SELECT 'i', 'a', 'db', 'big', 'p=' || n, clock_timestamp() FROM generate_series(1, 10000) n"
        )
    assert taken(service, 1) == ["big1"]
    ask(service, "small")
    ask(service, "other", 1)
    ask(service, "other", 2)
    began = time.monotonic()
    assert taken(service, 6) == ["big2", "small", "other1", "big3", "other2", "big4"]
    assert (time.monotonic() - began) / 6 < 1.0, "and the choice is quick"


def test_by_hand_is_preferred_for_a_while(db: Database, service: CompactionService) -> None:
    ask(service, "waiting")
    later(db, MANUAL_HEAD_START_S - 60)
    ask(service, "automatic")
    ask(service, "manual", head_start_s=MANUAL_HEAD_START_S)
    assert taken(service, 3) == ["manual", "waiting", "automatic"]
    ask(service, "waiting")
    later(db, MANUAL_HEAD_START_S + 60)
    ask(service, "manual", head_start_s=MANUAL_HEAD_START_S)
    assert taken(service, 2) == ["waiting", "manual"], "whoever has waited for longer than that goes first"


def test_within_a_table_too(db: Database, service: CompactionService) -> None:
    for partition in range(3):
        ask(service, "a", partition)
    ask(service, "a", 9, head_start_s=60)
    assert taken(service, 2) == ["a9", "a0"]
    later(db, 120)
    ask(service, "a", 9, head_start_s=60)
    assert taken(service, 3) == ["a1", "a2", "a9"]


def test_pools_have_queues_of_their_own(db: Database, service: CompactionService) -> None:
    for table in ("a", "b"):
        service.compact(CompactionRequest(MAJOR, "db", table, pool="p"))
    ask(service, "c")
    assert (take(service, "q"), take(service, "p").table, take(service).table) == (None, "a", "c")  # type: ignore[union-attr]
    later(db, 13 * 3600)
    ask(service, "d")
    assert taken(service, 2) == ["b", "d"], "its pool has left it waiting"


@pytest.mark.parametrize("seed", range(4))
def test_no_starvation(service: CompactionService, seed: int) -> None:
    """However requests come, before the next one of a table each other table is served once at most."""
    dice = random.Random(seed)
    queues: dict[str, list[CompactionId]] = {}
    heads: dict[str, Counter[str]] = {}
    number = 0
    for _ in range(150):
        for _ in range(dice.choice((0, 0, 1, 1, 3, 10))):
            table = dice.choice(("big", "big", "big", "a", "b", "c", f"new{number}"))
            number += 1
            queues.setdefault(table, []).append(ask(service, table, number))
            heads.setdefault(table, Counter())
        served = take(service)
        assert (served is None) == (not heads), "a worker finds what there is"
        if served is None:
            continue
        assert served.id == queues[served.table].pop(0), "of a table the oldest"
        for table, passed_by in heads.items():
            if table != served.table:
                passed_by[served.table] += 1
                assert passed_by[served.table] == 1, f"{served.table} is served twice while {table} waits"
        del heads[served.table]
        if queues[served.table]:
            heads[served.table] = Counter()
