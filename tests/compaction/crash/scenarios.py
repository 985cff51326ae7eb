"""What services find when they are killed: a table's history, and what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hive_acid.filesystem import files
from hive_acid.format.names import HIVE_3_PROPERTY, staging_name
from metastore.compaction.models import CompactionRequest
from metastore.compaction.states import CompactionType
from metastore.txn.states import TxnType
from tests.compaction.crash.table import CrashTable

SETTINGS = {
    "hive.compactor.abortedtxn.threshold": "0",
    "hive.compactor.cleaner.retry.retention.time": "0s",
    "metastore.compactor.staging.max.age": "0s",
    "metastore.txn.finished.retention": "0s",
    "metastore.housekeeping.lease.time": "600s",
    "hive.compactor.cleaner.retry.maxattempts": "2",
    "hive.compactor.history.retention.succeeded": "1",
}
"""Of the services: nothing waits for its time, and each table has something to be forgotten."""


@dataclass(frozen=True)
class Scenario:
    """`prepare` makes the history; `executor` is what stands in Spark's place, and `later` after a restart.

    `first_killed_at` names a step: services have been killed there, and a day has passed; these find what is left.
    `stuck` begins the name of directories that the file system does not let go for the first day.
    """

    prepare: Callable[[CrashTable], None]
    partition: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    executor: str = "merges"
    later: str | None = None
    first_killed_at: str | None = None
    stuck: str = ""
    is_gone: bool = False
    """The table is dropped: nobody reads it."""
    keeps_aborted: bool = False
    """Its property keeps what aborted attempts have left, too."""
    waits_for_readers: bool = False
    """Work does not go on beside a reader."""


def _history(table: CrashTable) -> None:
    """Several deltas of both kinds, rows deleted, an aborted write among them, whose files are there."""
    table.write(inserts=3)
    table.write(inserts=2, deletes=[table.rows()[0]])
    table.leave_behind(inserts=2)
    table.write(inserts=1, deletes=[table.rows()[-1]])


def _queued(kind: CompactionType) -> Callable[[CrashTable], None]:
    def prepare(table: CrashTable) -> None:
        _history(table)
        assert table.request(kind).accepted

    return prepare


def _newest(table: CrashTable) -> None:
    """A minor compaction that leaves the older deltas as they are."""
    _history(table)
    table.write(inserts=2, deletes=[table.rows()[0]])
    assert table.request(CompactionType.MINOR, after=2).accepted


def _many(kind: CompactionType) -> Callable[[CrashTable], None]:
    """More deltas than are merged at a time."""

    def prepare(table: CrashTable) -> None:
        _history(table)
        for _ in range(3):
            table.write(inserts=2)
        assert table.request(kind).accepted

    return prepare


def _converted(kind: CompactionType) -> Callable[[CrashTable], None]:
    def prepare(table: CrashTable) -> None:
        table.write_originals(3)
        _queued(kind)(table)

    return prepare


def _insert_only(kind: CompactionType) -> Callable[[CrashTable], None]:
    def prepare(table: CrashTable) -> None:
        for rows in (3, 2):
            table.write(inserts=rows)
            table.leave_behind()
        assert table.request(kind).accepted

    return prepare


def _dead_writers(table: CrashTable) -> None:
    """One that was aborted, one whose heartbeats have stopped, in the middle of its files, and one that has locked."""
    table.write(inserts=2)
    table.leave_behind()
    dead = table.leave_behind(aborts=False)
    staging = files.join(table.location, staging_name(dead, "left"))
    files.make_directory(staging)
    files.write(files.join(staging, "half"), b"half a file")
    table.open()


def _dead_before_naming(table: CrashTable) -> None:
    """Writers that end before they have named the partitions that they write to."""
    table.write(inserts=2)
    partition, table.partition = table.partition, None
    for _ in range(2):
        table.leave_behind()
    table.partition = partition


def _nothing_to_do(table: CrashTable) -> None:
    table.write(inserts=2)
    assert table.request(CompactionType.MAJOR).accepted


def _many_compactions(table: CrashTable) -> None:
    """History to be shortened, by ended compactions of the same table."""
    for _ in range(2):
        table.write()
        table.write()
        table.compact(CompactionType.MAJOR)
        table.cleaner().run_once()
    _queued(CompactionType.MINOR)(table)


def _failed_twice(table: CrashTable) -> None:
    _history(table)
    for _ in range(2):
        answer = table.request(CompactionType.MAJOR)
        assert table.service.find_next("lost") is not None
        table.service.mark_failed(answer.id, "no memory")


def _dropped_softly(table: CrashTable) -> None:
    """A reader was there when it was dropped, and has ended."""
    _history(table)
    reader = table.open(TxnType.READ_ONLY)
    table.connection.drop_table("db", table.table)
    table.txns.commit_txn(reader)


def _partition_dropped_softly(table: CrashTable) -> None:
    _history(table)
    reader = table.open(TxnType.READ_ONLY)
    assert table.partition is not None
    table.connection.drop_partitions(table.definition, [table.partition])
    table.txns.commit_txn(reader)


def _partition_dropped_and_back(table: CrashTable) -> None:
    _partition_dropped_softly(table)
    assert table.partition is not None
    table.connection.add_partitions(table.definition, {table.partition: table.location})
    table.write(inserts=2)


def _drop_not_committed(table: CrashTable) -> None:
    """A client that hands something to the Cleaner and dies before its commit."""
    _history(table)
    txn_id = table.open(TxnType.SOFT_DELETE)
    request = CompactionRequest(CompactionType.MAJOR, "db", table.table, properties={"location": table.location})
    ((_, write_id),) = table.write_ids.allocate("db", table.table, [txn_id])
    table.service.submit_for_cleanup(request, write_id, txn_id)


_NOW = {"compactorthreshold.hive.compactor.delta.num.threshold": "1"}
_INSERT_ONLY = {"transactional_properties": "insert_only"}
_ROUNDS = {"hive.compactor.max.num.delta": "3", "hive.compactor.history.retention.succeeded": "10"}
_TO_COMPACTIONS = {"metastore.compactor.clean.aborts.using.cleaner": "false"}
_LATER = {"hive.compactor.cleaner.retry.retention.time": "1h"}

SCENARIOS: Mapping[str, Scenario] = {
    "major": Scenario(_queued(CompactionType.MAJOR)),
    "minor": Scenario(_queued(CompactionType.MINOR)),
    "minor, by rounds": Scenario(_many(CompactionType.MINOR), settings=_ROUNDS),
    "major, by rounds": Scenario(_many(CompactionType.MAJOR), settings=_ROUNDS),
    "rebalance": Scenario(_queued(CompactionType.REBALANCE)),
    "major, converted": Scenario(_converted(CompactionType.MAJOR)),
    "minor, converted": Scenario(_converted(CompactionType.MINOR)),
    "major, insert-only": Scenario(_insert_only(CompactionType.MAJOR), parameters=_INSERT_ONLY),
    "minor, insert-only": Scenario(_insert_only(CompactionType.MINOR), parameters=_INSERT_ONLY),
    "automatic": Scenario(_history, parameters=_NOW),
    "partition": Scenario(_queued(CompactionType.MINOR), partition="p=1"),
    "for Hive 3.1": Scenario(
        _queued(CompactionType.MAJOR), parameters={HIVE_3_PROPERTY: "true"}, waits_for_readers=True
    ),
    "dead writers": Scenario(_dead_writers),
    "dead writers in a partition": Scenario(_dead_writers, partition="p=1"),
    "dead writers of unnamed partitions": Scenario(_dead_before_naming, partition="p=1", settings=_TO_COMPACTIONS),
    "nothing to do": Scenario(_nothing_to_do),
    "history": Scenario(_many_compactions),
    "failing": Scenario(_queued(CompactionType.MAJOR), executor="fails"),
    "interrupted": Scenario(_queued(CompactionType.MAJOR), executor="is interrupted", later="merges"),
    "Spark is gone": Scenario(_queued(CompactionType.MAJOR), executor="is gone", later="merges"),
    "submitted": Scenario(_queued(CompactionType.MAJOR), executor="is submitted"),
    "by cost": Scenario(_history, settings={"metastore.compactor.policy.cost.scans": "1000000"}),
    "minor, of the newest": Scenario(_newest),
    "failed twice": Scenario(_failed_twice, parameters=_NOW),
    "claimed by a dead worker": Scenario(_queued(CompactionType.MAJOR), first_killed_at="Worker: open_txns"),
    "half published": Scenario(_queued(CompactionType.MINOR), first_killed_at="Worker: mark_compacted"),
    "not committed": Scenario(_queued(CompactionType.MAJOR), first_killed_at="Worker: commit_txns"),
    "tried too often": Scenario(
        _queued(CompactionType.MAJOR),
        settings={"metastore.compactor.worker.max.attempts": "1"},
        first_killed_at="Worker: executor.run",
    ),
    "cannot be cleaned": Scenario(_queued(CompactionType.MAJOR), settings=_LATER, stuck="delta_0000002"),
    "aborts cannot be cleaned": Scenario(_dead_writers, settings=_LATER, stuck="delta_0000002"),
    "may not be cleaned": Scenario(
        _queued(CompactionType.MAJOR), parameters={"no_cleanup": "true"}, keeps_aborted=True
    ),
    "dropped": Scenario(_dropped_softly, is_gone=True),
    "partition dropped": Scenario(_partition_dropped_softly, partition="p=1"),
    "partition dropped and back": Scenario(_partition_dropped_and_back, partition="p=1"),
    "drop not committed": Scenario(_drop_not_committed),
}


def settings_of(scenario: Scenario) -> dict[str, str]:
    """The settings of the services in a scenario."""
    return {**SETTINGS, **scenario.settings}
