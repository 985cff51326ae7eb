"""Seeded random histories of one ACID table: whoever is told that statistics are true has exactly their rows.

Writers insert, gather statistics, commit and abort in any order; records are purged and compacted in between. The truth
is kept beside: which committed writes each snapshot sees, and which the statistics include.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from hive_acid.format.snapshot import ValidWriteIdList
from tests.caller import Caller
from tests.rpc.statistics.story import Story
from tests.served import Served

pytestmark = pytest.mark.sampled(of="walks of the service")

SEEDS, STEPS = 5, 70
PARTITIONS = ("p=x", "p=y")


@dataclass
class Writer:
    txn: int
    write_id: int
    snapshot: str
    targets: set[str] = field(default_factory=set)


@dataclass
class Walk:
    """The table, who is writing, and what is true."""

    story: Story
    server: Served
    source: random.Random
    open: list[Writer] = field(default_factory=list)
    committed: dict[int, set[str]] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    included: dict[str, set[int]] = field(default_factory=dict)
    """By partition, the writes that the statistics stored last include."""
    told: int = 0

    def step(self) -> None:
        often = [self.begin, self.begin, self.write, self.store, self.store, self.commit]
        self.source.choice([*often, *often, self.abort, self.purge, self.compact])()

    def begin(self) -> None:
        if len(self.open) < 3:
            self.open.append(Writer(*self.story.begin()))

    def write(self) -> None:
        if self.open:
            writer, target = self.source.choice(self.open), self.source.choice(PARTITIONS)
            if target not in writer.targets:
                self.story.writes(writer.txn, f"/{target}")
                writer.targets.add(target)

    def store(self) -> None:
        """What its snapshot and its own writes hold; only after the last of these, as clients do it."""
        if self.open:
            writer, target = self.source.choice(self.open), self.source.choice(PARTITIONS)
            if target in writer.targets or self.source.random() < 0.5:
                self.story.store(writer.write_id, writer.snapshot, target)
                self.included[target] = self.visible(writer.snapshot, target) | {writer.write_id}
                writer.targets.add(target)  # no further writes to it by this one

    def commit(self) -> None:
        if self.open:
            writer = self.open.pop(self.source.randrange(len(self.open)))
            self.story.ann.commit(writer.txn)
            self.committed[writer.write_id] = writer.targets

    def abort(self) -> None:
        if self.open:
            writer = self.open.pop(self.source.randrange(len(self.open)))
            self.story.ann.abort(writer.txn)
            self.aborted.add(writer.write_id)

    def purge(self) -> None:
        with self.server.db.engine.begin() as connection:
            connection.exec_driver_sql(
                "DELETE FROM txn_component c USING txn t WHERE t.txn_id = c.txn_id AND t.state = 'a'"
            )
        self.server.db.call("purge_duplicates", None, 1000)
        self.server.db.call("purge_txns", 0, 1000)

    def compact(self) -> None:
        """As much of the end of a compaction as removes the record of what was written."""
        target = self.source.choice(PARTITIONS)
        highest = max(self.committed, default=0)
        with self.server.db.engine.begin() as connection:
            connection.exec_driver_sql(
                "SELECT outdate_statistics('default', %s, %s, %s)", (self.story.name, target, highest)
            )
            connection.exec_driver_sql(
                "DELETE FROM completed_component WHERE tbl = %s AND partition = %s AND write_id <= %s",
                (self.story.name, target, highest),
            )

    def visible(self, snapshot: str, target: str) -> set[int]:
        """The committed writes to a partition that a snapshot sees."""
        seen = ValidWriteIdList.parse(snapshot)
        return {one for one, targets in self.committed.items() if target in targets and seen.is_valid(one)}

    def check(self, snapshot: str) -> None:
        told, _ = self.story.read_partitions(snapshot)
        self.told += len(told)
        for target in told:
            # Who stored them may have written nothing itself.
            included = {one for one in self.included[target] if target in self.committed.get(one, ())}
            assert included == self.visible(snapshot, target), (target, snapshot)


def test_nobody_is_told_what_is_not_true(ann: Caller, server: Served) -> None:
    told = 0
    for seed in range(SEEDS):
        walk = Walk(Story(ann, partitioned=True), server, random.Random(seed))
        snapshots: list[str] = []
        for _ in range(STEPS):
            walk.step()
            snapshots = [*snapshots[-3:], walk.story.list_of()]
            for snapshot in snapshots:
                walk.check(snapshot)
        told += walk.told
    assert told > 5 * SEEDS, "the walks say something"
