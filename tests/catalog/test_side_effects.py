"""What changes of the catalogue do to write ids, written components, locks and compactions (transactions.md §2.4)."""

import pytest

from hive_acid.errors import TxnAbortedError
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.compaction.states import CompactionState
from metastore.txn.states import Operation, TxnType
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, table

KEYS = (column("k", "string"),)
OF_PARTITIONS = ("txn_component", "completed_component", "write_set", "lock_component", "compaction")
OF_TABLES = (*OF_PARTITIONS, "write_id", "unresolved_write_id")


@pytest.fixture
def busy(rpc: Rpc, world: AcidWorld) -> dict[str, TxnId]:
    """A partitioned table ``p`` with all kinds of state: committed, aborted and open writes, locks, compactions."""
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    for value in ("1", "2"):
        rpc.add_partition(partition([value]))
        world.write("p", value, f"k={value}")
    holder = world.begin(TxnType.DEFAULT)  # keeps write sets on record
    world.write("p", "changed", "k=1", Operation.UPDATE)
    aborted, running = world.begin(), world.begin()
    world.write("p", "aborted", "k=1", txn_id=aborted)
    world.txns.abort_txn(aborted)
    world.write("p", "running", "k=1", txn_id=running)
    world.compact("p", "k=1")
    world.compact("p", "k=2")
    reader = world.begin(TxnType.READ_ONLY)
    world.db.call("add_min_history", reader, ["default"], ["p"], [1])
    return {"holder": holder, "running": running, "reader": reader}


def counts(world: AcidWorld, name: str, condition: str = "true") -> dict[str, int]:
    return {relation: world.count(relation, name, condition) for relation in OF_TABLES}


def of_partition(world: AcidWorld, name: str) -> dict[str, int]:
    return {relation: world.count(relation, "p", f"partition = '{name}'") for relation in OF_PARTITIONS}


def test_rename_carries_everything_over(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    before = counts(world, "p")
    assert all(before.values()), before
    rpc.alter_table("default", "p", table("q", parameters=ACID, keys=KEYS))
    assert counts(world, "q") == before
    assert not any(counts(world, "p").values())
    assert (world.count("min_history_write_id", "p"), world.count("min_history_write_id", "q")) == (0, 1)
    assert world.rows("q", "k=1") == ["1", "changed"]
    world.txns.commit_txn(busy["running"])
    assert world.rows("q", "k=1") == ["1", "changed", "running"]
    assert world.write("q", "next", "k=2") == 6


def test_rename_into_another_database_and_back(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    before = counts(world, "p")
    rpc.create_database(ttypes.Database(name="d"))
    rpc.alter_table("default", "p", table("p", "d", parameters=ACID, keys=KEYS))
    assert counts(world, "p", "db = 'd'") == before
    rpc.alter_table("d", "p", table("p", parameters=ACID, keys=KEYS))
    assert counts(world, "p", "db = 'default'") == before


def test_a_partition_that_is_renamed_takes_its_state_along(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    new = partition(["9"])
    rpc.rename_partition("default", "p", ["1"], new)
    assert rpc.get_partition_names("default", "p", -1) == ["k=2", "k=9"]
    assert world.rows("p", "k=9") == ["1", "changed"]
    old_ones = of_partition(world, "k=1")
    # The transaction under way may go on to write where the partition was: it is on record for both.
    assert old_ones["txn_component"] == 1
    assert (old_ones["completed_component"], old_ones["compaction"], old_ones["lock_component"]) == (0, 0, 0)
    new_ones = of_partition(world, "k=9")
    assert (new_ones["txn_component"], new_ones["compaction"], new_ones["lock_component"]) == (2, 1, 1)
    world.txns.commit_txn(busy["running"])
    assert world.rows("p", "k=9") == ["1", "changed", "running"]


def test_an_update_that_missed_the_rename_of_its_partition_is_aborted(
    rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]
) -> None:
    updating = world.begin()
    rpc.rename_partition("default", "p", ["2"], partition(["9"]))
    world.write("p", "late", "k=9", Operation.UPDATE, txn_id=updating)
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(updating)


def test_drop_forgets_everything_when_the_readers_have_ended(
    rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]
) -> None:
    rpc.drop_table("default", "p", True)
    states = [found.state for found in world.compactions.show()]
    assert states == [CompactionState.READY_FOR_CLEANING]
    for txn_id in busy.values():
        world.txns.commit_txn(txn_id)
    world.clean()
    left = counts(world, "p")
    del left["compaction"]  # the history of the cleaning
    assert not any(left.values()), left


def test_drop_of_a_database_forgets_everything(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    rpc.create_database(ttypes.Database(name="d"))
    rpc.alter_table("default", "p", table("p", "d", parameters=ACID, keys=KEYS))
    for txn_id in busy.values():
        world.txns.commit_txn(txn_id)
    rpc.drop_database("d", True, True)
    assert not any(counts(world, "p").values())


def test_drop_that_leaves_the_files_keeps_the_write_ids(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    rpc.drop_table("default", "p", False)
    left = counts(world, "p")
    assert left["write_id"] > 0
    assert left["compaction"] == 0


@pytest.mark.sampled(of="walks of the service")
def test_drop_of_a_partition_forgets_what_was_written_there(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    rpc.drop_partition("default", "p", ["1"], True)
    left = of_partition(world, "k=1")
    assert (left["txn_component"], left["completed_component"]) == (0, 0)
    waiting = [found for found in world.compactions.show() if found.partition == "k=1"]
    assert [found.state for found in waiting] == [CompactionState.READY_FOR_CLEANING]  # its directory
    assert of_partition(world, "k=2")["compaction"] == 1
    for txn_id in busy.values():
        world.txns.commit_txn(txn_id)
    world.clean()
    assert world.rows("p", "k=2") == ["2"]


def test_truncate_leaves_the_queue_to_find_nothing(rpc: Rpc, world: AcidWorld, busy: dict[str, TxnId]) -> None:
    world.txns.commit_txn(busy["running"])
    rpc.truncate_table("default", "p", None)
    assert (world.rows("p", "k=1"), world.rows("p", "k=2")) == ([], [])
    for name in ("holder", "reader"):
        world.txns.commit_txn(busy[name])
    world.clean()
    assert world.count("completed_component", "p") == 0
    assert world.count("txn_component", "p") == 0  # the aborted write's files are gone
