"""Parameters of an idle table count in the Initiator's next run, and what is gone from the catalogue is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hive_acid.connection import Connection, connect
from hive_acid.filesystem import files
from metastore.catalog.config import CatalogConfig
from metastore.catalog.service import CatalogService
from metastore.compaction.initiator.initiator import Initiator
from metastore.compaction.queue.looks import Candidate
from metastore.compaction.states import CompactionType
from metastore.housekeeping.compaction_housekeeper import CompactionHouseKeeper, CompactionHousekeeperRun
from metastore.housekeeping.config import HousekeepingConfig
from metastore.slices.compaction_catalogue import CatalogueOfCompaction
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.states import TxnType
from metastore.why.cleaning import CleaningAnswers
from metastore.why.service import WhyService
from tests.compaction.crash.table import CrashTable, pass_a_day
from tests.compaction.world import removals

LOW = {"compactorthreshold.hive.compactor.delta.num.threshold": "1"}
PARTITIONS = [f"p={number}" for number in range(1, 6)]


@pytest.fixture
def connection(metastore: Callable[..., str]) -> Iterator[Connection]:
    with connect(metastore(**{"metastore.housekeeping.threads.on": "false"})) as made:
        made.create_database("db")
        yield made


@pytest.fixture
def table(db: Database, connection: Connection, tmp_path: Path) -> CrashTable:
    """Several partitions with a few deltas each, and pages of candidates that do not hold them all."""
    made = CrashTable(db, connection, tmp_path, "t", "p=1")
    made.configure(fetch_size=2)
    for partition in PARTITIONS[1:]:
        connection.add_partitions(made.definition, {partition: files.join(made.root, partition)})
    made.catalogue = CatalogueOfCompaction(CatalogService(db, str(tmp_path), CatalogConfig()))  # type: ignore[assignment]
    for partition in PARTITIONS:
        write(made, partition)
    return made


def write(table: CrashTable, partition: str) -> None:
    table.partition, table.location = partition, files.join(table.root, partition)
    files.make_directory(table.location)
    for _ in range(3):
        table.write()


def set_properties(table: CrashTable, **properties: str) -> None:
    wire = table.connection.wire_table("db", table.table)
    wire.parameters = {**wire.parameters, **properties}
    table.connection.call("alter_table", "db", table.table, wire)


def looked_at(initiator: Initiator, run: Callable[[], object]) -> list[str | None]:
    """The partitions that a run looks at."""
    seen: list[str | None] = []
    look = initiator._look

    def watched(candidate: Candidate, *args: object) -> object:
        seen.append(candidate.partition)
        return look(candidate, *args)  # type: ignore[arg-type]

    initiator._look = watched  # type: ignore[method-assign, assignment]
    run()
    initiator._look = look  # type: ignore[method-assign]
    return sorted(seen, key=str)


def idle(table: CrashTable) -> Initiator:
    """An Initiator that has nothing more to look at: all was written long ago."""
    initiator = table.initiator()
    assert looked_at(initiator, initiator.run_once) == PARTITIONS
    pass_a_day(table.db, [])
    assert looked_at(initiator, initiator.run_once) == []
    return initiator


def test_a_threshold_counts_in_the_next_run(table: CrashTable) -> None:
    initiator = idle(table)
    set_properties(table, comment="nothing that matters")
    assert looked_at(initiator, initiator.run_once) == []
    set_properties(table, **LOW)
    assert sorted(one.partition or "" for one in initiator.run_once()) == PARTITIONS


def test_no_auto_compaction_is_taken_back_for_all_partitions(table: CrashTable) -> None:
    """Also for those that do not come in the first page of candidates."""
    initiator = idle(table)
    set_properties(table, No_Auto_Compaction="true", **LOW)
    assert initiator.run_once() == []
    (decision,) = {one.code for one in table.service.decisions("db", "t") if one.partition is None}
    assert decision == "no_auto_compaction"
    pass_a_day(table.db, [])
    set_properties(table, No_Auto_Compaction="false")
    assert sorted(one.partition or "" for one in initiator.run_once()) == PARTITIONS


def test_a_database_has_a_say(table: CrashTable) -> None:
    set_properties(table, **LOW)
    database = table.connection.call("get_database", "db")
    database.parameters = {"NO_AUTO_COMPACTION": "true"}
    table.connection.call("alter_database", "db", database)
    initiator = table.initiator()
    assert initiator.run_once() == []
    pass_a_day(table.db, [])
    database.parameters = {}
    table.connection.call("alter_database", "db", database)
    assert len(initiator.run_once()) == len(PARTITIONS)


def test_a_renamed_table_takes_the_change_along(table: CrashTable) -> None:
    initiator = idle(table)
    set_properties(table, **LOW)
    wire = table.connection.wire_table("db", "t")
    wire.tableName = "u"
    table.connection.call("alter_table", "db", "t", wire)
    assert {one.table for one in initiator.run_once()} == {"u"}


def test_why_says_that_it_is_not_known_yet(table: CrashTable) -> None:
    cleaning = CleaningAnswers(table.db, table.service, table.snapshots, table.catalogue, table.config)
    why = WhyService(table.db, table.service, cleaning, table.catalogue, removals(table.db), table.config, TxnConfig())
    assert "settings_changed" not in {answer.code for answer in why.table("db", "t")}
    set_properties(table, **LOW)
    (answer,) = (answer for answer in why.table("db", "t") if answer.code == "settings_changed")
    assert "wait for its next run" in answer.action


def keep_house(table: CrashTable) -> CompactionHousekeeperRun:
    return CompactionHouseKeeper(table.db, HousekeepingConfig(purge_batch=1), table.service).run_once()


def test_changes_are_forgotten(table: CrashTable) -> None:
    set_properties(table, **LOW)
    assert keep_house(table).purged_setting_changes == 0
    pass_a_day(table.db, [])
    pass_a_day(table.db, [])
    assert keep_house(table).purged_setting_changes == 1


def test_history_of_what_is_gone_is_forgotten(table: CrashTable) -> None:
    """What the Cleaner had to remove after a drop ends as history of a table that there is not."""
    table.compact(CompactionType.MAJOR)
    reader = table.open(TxnType.READ_ONLY)
    kept = {one.id for one in table.service.show()}
    table.connection.drop_partitions(table.definition, ["p=1"])
    table.txns.commit_txn(reader)
    while table.cleaner().run_once().cleaned:
        pass
    left = {one.partition for one in table.service.show()}
    assert left == {"p=1", "p=5"}
    assert keep_house(table).purged_gone_history == 0, "it is young"
    for _ in range(8):
        pass_a_day(table.db, [])
    assert keep_house(table).purged_gone_history == 1
    assert {one.id for one in table.service.show()} == kept
    reader = table.open(TxnType.READ_ONLY)
    table.connection.drop_table("db", "t")
    table.txns.commit_txn(reader)
    while table.cleaner().run_once().cleaned:
        pass
    assert len(table.service.show()) > 0
    for _ in range(8):
        pass_a_day(table.db, [])
    assert keep_house(table).purged_gone_history > 0
    assert table.service.show() == []
