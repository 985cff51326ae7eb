"""What is forgotten of transactions that have ended, and that nobody notices (transactions.md §5, §2.2)."""

import random
from collections.abc import Callable

import pytest

from hive_acid.errors import NoSuchTxnError, TxnAbortedError
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.ids import TxnId, WriteId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.queue.service import CompactionService
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.store.database import Database
from metastore.txn.models import TableWriteIds
from metastore.txn.states import Operation, TxnType

from .conftest import Clients

Count = Callable[[str], int]


def test_committed_changes_are_kept_for_open_writers(clients: Clients, cleaner: AcidTxnCleaner) -> None:
    clients.open(TxnType.READ_ONLY)  # never collides with anybody
    old = clients.write()
    clients.cycle()
    assert cleaner.run_once().purged_write_set == 0
    with pytest.raises(TxnAbortedError, match="write conflict"):
        clients.commit(old)
    assert cleaner.run_once().purged_write_set == 1


def test_finished_transactions_are_forgotten(
    db: Database, clients: Clients, cleaner: AcidTxnCleaner, count: Count
) -> None:
    txns = clients.txns
    committed = clients.open()
    txns.commit_txn(committed)
    assert AcidTxnCleaner(db, HousekeepingConfig()).run_once().purged_txns == 0
    txns.commit_txn(committed)
    aborted, dirty = clients.open(), clients.write()
    txns.abort_txns([aborted, dirty])
    assert cleaner.run_once().purged_txns == 2
    assert txns.get_open_txns().aborted_ids == [dirty]
    with pytest.raises(NoSuchTxnError):
        txns.commit_txn(committed)
    assert clients.sees().aborted == [1]
    with db.engine.begin() as connection:  # what the Cleaner does when it has removed the files
        connection.exec_driver_sql("DELETE FROM txn_component")
    assert cleaner.run_once().purged_txns == 1
    assert txns.get_open_txns().aborted_ids == []
    assert (count("write_id"), count("unresolved_write_id")) == (0, 0)
    assert clients.sees().aborted == []
    assert txns.get_open_txns().high_water_mark == 3


def test_write_ids_are_forgotten_up_to_the_first_unsettled(
    clients: Clients, cleaner: AcidTxnCleaner, count: Count
) -> None:
    for _ in range(3):
        clients.cycle()
    opened = clients.write()
    clients.cycle()
    assert cleaner.run_once().purged_write_ids == 3
    assert count("write_id") == 2, "the open one, and the one above it"
    seen = clients.sees()
    assert (seen.high_water_mark, seen.invalid, seen.min_open) == (5, [4], 4)
    clients.txns.commit_txn(opened, skip_conflict_check=True)
    assert cleaner.run_once().purged_write_ids == 2
    assert clients.sees().high_water_mark == 5
    assert clients.write_ids.allocate("db", "t", [clients.open()])[0][1] == 6


def test_those_that_all_see_alike_become_one_row(clients: Clients, cleaner: AcidTxnCleaner, count: Count) -> None:
    reader = clients.open()
    snapshot = snapshot_of(clients, reader)
    for _ in range(10):
        clients.cycle()
    middle = clients.open(TxnType.READ_ONLY)
    of_middle = snapshot_of(clients, middle)
    for _ in range(10):
        clients.cycle()
    before = seen_by(clients, snapshot), seen_by(clients, of_middle), clients.sees()
    assert [seen.high_water_mark for seen in before] == [1, 10, 20], "the first sees no write at all"
    run = cleaner.run_once()
    assert (run.purged_write_ids, run.merged_write_ids) == (0, 18)
    assert count("write_id") == 2
    assert (seen_by(clients, snapshot), seen_by(clients, of_middle), clients.sees()) == before
    for _ in range(10):
        clients.cycle()
    cleaner.run_once()
    assert count("write_id") == 2, "what was merged merges again"
    assert seen_by(clients, of_middle) == before[1]
    # The old one writes too: below its own write id are all those that it must not see.
    ((_, own),) = clients.write_ids.allocate("db", "t", [reader])
    seen = seen_by(clients, snapshot)
    assert (seen.high_water_mark, seen.invalid) == (own, list(range(1, own)))
    clients.txns.abort_txns([reader])
    clients.commit(middle)
    cleaner.run_once()
    assert clients.sees().invalid == [own]


def test_a_table_blocked_by_an_aborted_write_stays_small(
    clients: Clients, cleaner: AcidTxnCleaner, count: Count
) -> None:
    clients.cycle()
    clients.txns.abort_txns([clients.write()])
    for _ in range(20):
        clients.cycle(operation=Operation.INSERT)
    before = clients.sees()
    cleaner.run_once()
    assert count("write_id") == 2
    assert clients.sees() == before
    assert (before.high_water_mark, before.invalid) == (22, [2])


def test_small_batches_come_to_the_same(db: Database, clients: Clients, count: Count) -> None:
    clients.open()
    blocked = clients.write(table="b")
    for table in ("a", "b", "c"):
        for _ in range(9):
            clients.cycle(table)
    clients.txns.abort_txns([blocked])
    before = [clients.sees(table) for table in ("a", "b", "c")]
    cleaner = AcidTxnCleaner(db, HousekeepingConfig(finished_retention_ms=0, purge_batch=2))
    for _ in range(5):
        cleaner.run_once()
    assert [clients.sees(table) for table in ("a", "b", "c")] == before
    assert count("write_id") <= 8
    assert count("write_set") <= 6


def test_of_changes_to_the_same_data_the_last_is_enough(
    clients: Clients, cleaner: AcidTxnCleaner, count: Count
) -> None:
    before = clients.write(table="t")
    for number in range(10):
        clients.cycle(partition=f"p={number % 2}")
    between = clients.write(table="t", partition="p=1")
    last = clients.cycle(partition="p=0")
    assert cleaner.run_once().merged_write_set == 9
    assert count("write_set") == 2
    assert clients.txns.get_latest_txnid_in_conflict(before) == last
    clients.commit(between)
    with pytest.raises(TxnAbortedError, match="write conflict on db/t"):
        clients.commit(before)


def test_commits_in_another_order_than_that_of_their_database_transactions(
    db: Database, clients: Clients, cleaner: AcidTxnCleaner
) -> None:
    """The snapshot from in between sees the one that seems to be the later, and collides with the other."""
    slow, quick = clients.write(), clients.write()
    connection = db.dedicated_connection()
    connection.autocommit = False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
        clients.commit(quick)
        between = clients.write()
        cursor.execute("SELECT * FROM commit_txns(ARRAY[%s]::bigint[], ARRAY[true], 'conflict')", (slow,))
        connection.commit()
    connection.close()
    cleaner.run_once()
    with pytest.raises(TxnAbortedError, match="write conflict"):
        clients.commit(between)


def test_one_that_was_open_when_another_began_is_not_merged(clients: Clients, cleaner: AcidTxnCleaner) -> None:
    """The other one sees the write before it, but not its own."""
    clients.txns.abort_txns([clients.write()])
    clients.cycle()
    concurrent = clients.write()
    later = clients.open()
    snapshot = snapshot_of(clients, later)
    clients.txns.commit_txn(concurrent, skip_conflict_check=True)
    before = seen_by(clients, snapshot)
    assert before.invalid == [1, 3]
    cleaner.run_once()
    assert seen_by(clients, snapshot) == before


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_noticed_of_it(seed: int, clients: Clients, cleaner: AcidTxnCleaner) -> None:
    """Random transactions; what each open one sees and collides with is the same before and after every run.

    Odd seeds leave old writers open, beside whom others come and go.
    """
    rng = random.Random(seed)
    tables = ("t", "u")
    snapshots: dict[TxnId, ValidTxnList] = {}
    written: dict[tuple[TxnId, str], WriteId] = {}
    leaves_old = bool(seed % 2)

    def write(txn_id: TxnId, table: str, operation: Operation) -> None:
        clients.write(txn_id, table, operation)
        ((_, written[txn_id, table]),) = clients.write_ids.allocate("db", table, [txn_id])

    for _ in range(150):
        action = rng.choice(["open", "write", "write", "commit", "commit", "abort", "clean"])
        txn_id = rng.choice(list(snapshots)[-1 if leaves_old else 0 :]) if snapshots else None
        if action == "open" or txn_id is None:
            txn_id = clients.open()
            snapshots[txn_id] = snapshot_of(clients, txn_id)
            if leaves_old and len(snapshots) < 3:
                write(txn_id, rng.choice(tables), Operation.UPDATE)
        elif leaves_old and txn_id in list(snapshots)[:2] and action != "clean":
            continue
        elif action == "write":
            write(txn_id, rng.choice(tables), rng.choice([Operation.INSERT, Operation.UPDATE]))
        elif action == "commit":
            clients.txns.commit_txn(txn_id, skip_conflict_check=True)
            del snapshots[txn_id]
        elif action == "abort":
            clients.txns.abort_txns([txn_id])
            del snapshots[txn_id]
        else:
            before = [seen_by(clients, snapshot, table) for snapshot in snapshots.values() for table in tables]
            collides = [bool(clients.txns.get_latest_txnid_in_conflict(one)) for one in snapshots]
            conflicts = [one for one, does in zip(snapshots, collides, strict=True) if does]
            now = [valid(clients.sees(table)) for table in tables]
            cleaner.run_once()
            assert collides == [bool(clients.txns.get_latest_txnid_in_conflict(one)) for one in snapshots]
            told = [of for one in conflicts for of in clients.txns.commit_rows(one, [])]
            assert len(told) >= len(conflicts)
            assert [of.write_id for of in told] == [written[of.txn_id, of.table] for of in told]
            assert now == [valid(clients.sees(table)) for table in tables]
            after = [seen_by(clients, snapshot, table) for snapshot in snapshots.values() for table in tables]
            assert after == before


def test_a_change_that_may_conflict_keeps_its_write_id(clients: Clients, cleaner: AcidTxnCleaner, count: Count) -> None:
    """Else an old transaction could not find out that it has changed other rows."""
    old = clients.write()
    others = [clients.cycle(partition=f"p={number % 2}") for number in range(4)]
    for _ in range(3):
        clients.cycle(operation=Operation.INSERT)
    assert cleaner.run_once().merged_write_ids == 4
    assert count("write_id") == 4, "its own, two of changes, one of inserts"
    told = {of.txn_id: of.write_id for of in clients.txns.commit_rows(old, [])}
    assert told == {others[2]: 4, others[3]: 5}
    assert clients.txns.commit_rows(old, others) == []


def test_the_cleaner_of_files_sees_no_run_across_a_compaction(
    db: Database, clients: Clients, cleaner: AcidTxnCleaner
) -> None:
    """It looks from where a compaction was committed: write ids up to there are resolved, later ones are not."""
    clients.open()
    for _ in range(5):
        clients.cycle()
    committed = clients.open(TxnType.COMPACTION)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO compaction (state, type, db, tbl, enqueued_at, txn_id, highest_write_id)"
            " VALUES ('r', 'a', 'db', 't', clock_timestamp(), %s, 5)",
            (committed,),
        )
    clients.commit(committed)
    for _ in range(5):
        clients.cycle()
    service = CompactionService(db, CompactionConfig())
    before = service.writes("db", "t", committed)
    assert cleaner.run_once().merged_write_ids == 8
    assert service.writes("db", "t", committed) == before
    assert before.open_ids == (6, 7, 8, 9, 10)


def test_running_twice_changes_nothing_more(clients: Clients, cleaner: AcidTxnCleaner) -> None:
    clients.open()
    for _ in range(5):
        clients.cycle()
    first = cleaner.run_once()
    assert first.merged_write_ids == first.merged_write_set == 4
    again = cleaner.run_once()
    assert (again.purged_write_set, again.merged_write_set, again.purged_write_ids, again.merged_write_ids) == (
        *(0, 0),
        *(0, 0),
    )


def valid(seen: TableWriteIds) -> tuple[set[int], object]:
    """Which write ids count; the highest one that a snapshot names may be one that does not."""
    return set(range(1, seen.high_water_mark + 1)) - set(seen.invalid), (seen.aborted, seen.min_open)


def snapshot_of(clients: Clients, txn_id: TxnId) -> ValidTxnList:
    """The snapshot as a transaction takes it now."""
    now = clients.txns.get_open_txns(())
    return ValidTxnList(
        txn_id,
        tuple(one for one in now.open_ids if one < txn_id),
        tuple(one for one in now.aborted_ids if one < txn_id),
    )


def seen_by(clients: Clients, snapshot: ValidTxnList, table: str = "t") -> TableWriteIds:
    return clients.write_ids.get_valid([f"db.{table}"], snapshot)[0]
