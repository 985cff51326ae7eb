"""Minor compactions of the newest deltas alone: the older ones stay as they are, and the rows, too."""

from __future__ import annotations

import random

import pytest

from hive_acid.format.names import parse_directory
from hive_acid.format.rows import RowId, encode_bucket
from metastore.compaction.states import CompactionState, CompactionType
from tests.compaction.world import World

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


def some_writes(world: World, dice: random.Random) -> None:
    """Inserts and deletes of rows that are there, some of them aborted."""
    for _ in range(dice.randint(2, 6)):
        rows = sorted(world.read())
        gone = dice.sample(rows, dice.randint(0, min(3, len(rows))))
        txn_id = world.open()
        world.write(txn_id, inserts=dice.randint(0 if gone else 1, 4), deletes=gone)
        if dice.random() < 0.2:
            world.txns.abort_txn(txn_id)
        else:
            world.txns.commit_txn(txn_id)


@pytest.mark.parametrize("seed", range(8))
def test_rows_and_older_deltas_stay(world: World, seed: int) -> None:
    """Of any part of a history, with compactions of other parts and the Cleaner between."""
    dice = random.Random(seed)
    for _ in range(5):
        some_writes(world, dice)
        rows, names = world.read(), set(world.directories())
        snapshot = world.snapshot()
        after = dice.randint(0, snapshot[0].high_water_mark)
        answer = world.request(MINOR, after=after) if dice.random() < 0.8 else world.request(MAJOR)
        assert answer.accepted
        assert world.worker().run_once()
        done = world.service.get(answer.id)
        assert done.state in (CompactionState.READY_FOR_CLEANING, CompactionState.REFUSED), done.error_message
        assert world.read() == world.read(snapshot) == rows
        while world.cleaner().run_once().cleaned:
            pass
        assert world.read() == rows
        made = [found for name in set(world.directories()) - names if (found := parse_directory(name)) is not None]
        assert all(directory.min_write_id > after for directory in made if done.type is MINOR)


def test_behind_one_of_the_newest_all_may_be_asked_for(world: World) -> None:
    """It has not done all that a minor compaction would do, so it is not in the way of one."""
    for _ in range(6):
        world.write()
    rows = world.read()
    assert world.request(MINOR, after=3).accepted
    assert world.worker().run_once()
    assert [name for name in world.directories() if "_v" in name] == [
        name for name in world.directories() if name.startswith("delta_0000004_0000006_v")
    ]
    again = world.request(MINOR, after=3)
    assert not again.accepted, "that is done"
    assert not world.request(MINOR, after=4).accepted
    whole = world.request(MINOR, after=0)
    assert whole.accepted
    assert world.worker().run_once()
    assert world.service.get(whole.id).state is CompactionState.READY_FOR_CLEANING
    assert any(name.startswith("delta_0000001_0000006_v") for name in world.directories())
    assert world.read() == rows


def test_rows_of_older_deltas_are_deleted_by_newer_ones(world: World) -> None:
    """The delete events stay beside rows that are not merged with them."""
    world.write(inserts=3)
    world.write(inserts=3)
    world.write(deletes=[RowId(1, encode_bucket(0), 1)])
    world.write(deletes=[RowId(2, encode_bucket(0), 0)])
    rows = world.read()
    assert len(rows) == 6
    assert world.request(MINOR, after=2).accepted
    assert world.worker().run_once()
    assert world.read() == rows
    while world.cleaner().run_once().cleaned:
        pass
    assert world.read() == rows
    assert {name.partition("_v")[0] for name in world.directories()} == {
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
        "delta_0000003_0000004",
        "delete_delta_0000003_0000004",
    }
