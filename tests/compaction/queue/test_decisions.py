"""What services decided is put down with the reason, and only when it has changed."""

from __future__ import annotations

import pytest

from metastore.compaction.config import CompactionConfig
from metastore.compaction.queue.decisions import Decider, Decision, Look
from metastore.compaction.queue.looks import DeltaCount
from metastore.compaction.queue.service import CompactionService
from metastore.housekeeping.compaction_housekeeper import CompactionHouseKeeper
from metastore.housekeeping.config import HousekeepingConfig
from metastore.store.database import Database

INITIATOR, CLEANER = Decider.INITIATOR, Decider.CLEANER


@pytest.fixture
def service(db: Database) -> CompactionService:
    return CompactionService(db, CompactionConfig())


def told(service: CompactionService, partition: str | None = None) -> list[tuple[object, ...]]:
    return [(v.partition, v.service, v.code, v.message, v.blocker) for v in service.decisions("db", "t", partition)]


def test_the_last_word_of_each_service(service: CompactionService) -> None:
    service.set_decisions([Look("DB", "T", None, "few_deltas", "2 of 10")], INITIATOR)
    service.set_decisions([Look("db", "t", None, "few_deltas", "3 of 10")], INITIATOR)
    service.set_decisions([Look("db", "t", None, "reader", "wait for 7", 7)], CLEANER)
    assert told(service) == [
        (None, INITIATOR, "few_deltas", "3 of 10", None),
        (None, CLEANER, "reader", "wait for 7", 7),
    ]
    service.set_decisions([Look("db", "t", None, None)], CLEANER)
    assert told(service) == [(None, INITIATOR, "few_deltas", "3 of 10", None)]


def test_time_says_since_when(service: CompactionService) -> None:
    def at() -> Decision:
        return service.decisions("db", "t")[0]

    look = Look("db", "t", None, "few_deltas", "2 of 10")
    service.set_decisions([look], INITIATOR)
    first = at()
    service.set_decisions([look], INITIATOR)
    assert service.set_decisions([look], INITIATOR) == 0
    assert at() == first
    assert service.set_decisions([Look("db", "t", None, "few_deltas", "4 of 10")], INITIATOR) == 1
    assert at().at_ms > first.at_ms


def test_many_at_once(service: CompactionService) -> None:
    looks = [Look("db", "t", f"p={number}", "few_deltas", f"{number} of 10") for number in range(1000)]
    assert service.set_decisions([*looks, looks[0]], INITIATOR) == 1000
    assert service.set_decisions(looks, INITIATOR) == 0
    assert service.set_decisions([Look("db", "t", "p=1", "many", "11 of 10"), *looks[2:]], INITIATOR) == 1
    assert service.set_decisions([Look("db", "t", "p=1", None)], INITIATOR) == 1
    assert service.set_decisions([], INITIATOR) == 0
    assert len(told(service)) == 999
    service.set_decisions([Look("db", "t", None, "off", "switched off")], INITIATOR)
    assert told(service, "P=2") == [
        (None, INITIATOR, "off", "switched off", None),
        ("p=2", INITIATOR, "few_deltas", "2 of 10", None),
    ]


def test_long_messages_are_cut(service: CompactionService) -> None:
    service.set_decisions([Look("db", "t", None, "unreadable", "x" * 10_000)], INITIATOR)
    assert len(service.decisions("db", "t")[0].message) == 2000


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("SELECT compaction_forget_table('db', 't')", []),
        ("SELECT compaction_forget_partitions('db', 't', '{p=1}')", [None, "p=2"]),
        ("SELECT compaction_rename_partition('db', 't', 'p=1', 'p=3', NULL)", [None, "p=2", "p=3"]),
        ("SELECT compaction_rename_table('db', 't', 'db', 'other')", []),
    ],
)
def test_they_share_the_fate_of_the_table(
    db: Database, service: CompactionService, statement: str, left: list[str | None]
) -> None:
    service.set_decisions([Look("db", "t", part, "off", "") for part in (None, "p=1", "p=2")], INITIATOR)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(statement)
    assert [partition for partition, *_ in told(service)] == left
    assert len(service.decisions("db", "other")) == (3 if "other" in statement else 0)


def test_those_of_what_is_gone_are_forgotten(db: Database, service: CompactionService) -> None:
    """Whoever looked just before a drop puts its decision down after it."""
    with db.engine.begin() as connection:
        for statement in (
            "INSERT INTO database (name, location, owner_type, created_s, parameters, details)"
            " VALUES ('db', '/db', 1, 0, '{}', '{}')",
            "INSERT INTO tbl (database, name, table_type, owner_type, created_s, columns, partition_keys, parameters,"
            " storage, details) VALUES ('db', 't', 'MANAGED_TABLE', 1, 0, '[]', '[]', '{}', '{}', '{}')",
            "INSERT INTO partition (table_id, name, values, created_s, parameters, details)"
            " SELECT id, 'p=1', '{1}', 0, '{}', '{}' FROM tbl",
        ):
            connection.exec_driver_sql(statement)
    for table in ("t", "gone"):
        service.set_decisions([Look("db", table, part, "off", "") for part in (None, "p=1", "p=2")], INITIATOR)
        service.looks.count_deltas([DeltaCount("db", table, part, 500, 500, 500) for part in ("p=1", "p=2")])
    keeper = CompactionHouseKeeper(db, HousekeepingConfig(purge_batch=2), service)
    assert keeper.run_once().purged_decisions == 0, "they are young"
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE compaction_decision SET decided_at = decided_at - interval '8 days'")
    assert keeper.run_once().purged_decisions == 4
    assert [partition for partition, *_ in told(service)] == [None, "p=1"]
    assert service.decisions("db", "gone") == []
    with db.engine.connect() as connection:
        counts = connection.exec_driver_sql("SELECT DISTINCT tbl, partition FROM compaction_metric").fetchall()
    assert [tuple(row) for row in counts] == [("t", "p=1")]
