"""Random readers and writers beside drops and returns of a table: each snapshot sees its rows, no commit loses any."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hive_acid.errors import NoSuchTxnError, TxnAbortedError
from hive_acid.ids import TxnId
from metastore.catalog.service import CatalogService
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from tests.catalog.acid_world import DEFAULT, AcidWorld, Reader
from tests.catalog.conftest import ACID, Rpc, table
from tests.catalog.removal.test_undrop import HOUR_MS, undrop

MOST = 4


@pytest.fixture
def catalog(make_catalog: Callable[..., CatalogService]) -> CatalogService:
    return make_catalog(undrop_window_ms=HOUR_MS)


@dataclass(eq=False)
class Incarnation:
    """A table that was created, and may have been dropped and brought back; `rows` are committed."""

    rows: set[str] = field(default_factory=set)


@dataclass
class Writer:
    """An open transaction that has a write id: of a table, or, without one, given out while there was none."""

    txn_id: TxnId
    target: Incarnation | None
    row: str
    is_lost: bool = False


class Walk:
    """One story of a name, told by a seed."""

    def __init__(self, rpc: Rpc, world: AcidWorld, seed: int) -> None:
        self.rpc, self.world, self.choice = rpc, world, random.Random(seed)
        self.live: Incarnation | None = None
        self.trash: list[Incarnation] = []
        self.readers: list[tuple[Reader, dict[Incarnation, frozenset[str]]]] = []
        self.writers: list[Writer] = []
        self.story: list[str] = []
        self.returns = self.lost = 0
        config = HousekeepingConfig(finished_retention_ms=0)
        self.keepers = AcidTxnCleaner(world.db, config), AcidHouseKeeper(world.db, config, TxnConfig())

    def run(self, steps: int) -> None:
        verbs = [self.create, self.write, self.write, self.write, self.end, self.end, self.read, self.read, self.leave,
                 self.drop, self.come_back, self.come_back, self.keep_house]  # fmt: skip
        for step in range(steps):
            self.story.append(self.choice.choice(verbs)(step))
            self.look()

    def look(self) -> None:
        """Each reader sees what was committed when it began, and a new one all."""
        if self.live is None:
            return
        assert set(self.world.rows("t")) == self.live.rows, self.story
        for reader, seen in self.readers:
            now = Reader(self.world, reader.txn_id, reader.txns, "t", self.world.location("t"))
            assert set(now.rows()) == seen.get(self.live, frozenset()), (reader.txn_id, self.story)

    def create(self, _: int) -> str:
        if self.live is not None:
            return "it is there"
        self.rpc.create_table(table("t", parameters=ACID))
        self.live = Incarnation()
        return "created"

    def write(self, step: int) -> str:
        if len(self.writers) >= MOST:
            return self.end(step)
        txn_id = self.world.begin()
        if self.live is None:
            self.world.write_ids.allocate(DEFAULT, "t", [txn_id])
        else:
            self.world.write("t", f"row {step}", txn_id=txn_id)
        self.writers.append(Writer(txn_id, self.live, f"row {step}"))
        return f"{txn_id} writes {step}"

    def end(self, _: int) -> str:
        if not self.writers:
            return "nobody writes"
        writer = self.writers.pop(self.choice.randrange(len(self.writers)))
        if writer.target is None:  # of no table: aborted if it is known still that the name came back, and all the same
            with contextlib.suppress(TxnAbortedError, NoSuchTxnError):
                self.world.txns.commit_txn(writer.txn_id)
            return f"{writer.txn_id} ends"
        if writer.is_lost:
            with pytest.raises((TxnAbortedError, NoSuchTxnError)):  # aborted, and maybe forgotten since
                self.world.txns.commit_txn(writer.txn_id)
            self.lost += 1
            return f"{writer.txn_id} is aborted"
        if self.choice.random() < 0.4:
            self.world.txns.abort_txn(writer.txn_id)
            return f"{writer.txn_id} aborts"
        self.world.txns.commit_txn(writer.txn_id)
        writer.target.rows.add(writer.row)
        return f"{writer.txn_id} commits"

    def read(self, step: int) -> str:
        if len(self.readers) >= MOST or self.live is None:
            return self.leave(step)
        known = [self.live, *self.trash]
        reader = self.world.reader("t")
        self.readers.append((reader, {one: frozenset(one.rows) for one in known}))
        return f"{reader.txn_id} reads"

    def leave(self, _: int) -> str:
        if not self.readers:
            return "nobody reads"
        reader, _seen = self.readers.pop(self.choice.randrange(len(self.readers)))
        reader.end()
        return f"{reader.txn_id} leaves"

    def drop(self, _: int) -> str:
        if self.live is None:
            return "nothing to drop"
        self.rpc.drop_table(DEFAULT, "t", True)
        self.trash.append(self.live)
        for writer in self.writers:
            writer.is_lost |= writer.target is self.live
        self.live = None
        return "dropped"

    def come_back(self, _: int) -> str:
        if self.live is not None or not self.trash:
            return "nothing to bring back"
        undrop(self.rpc, "t")
        self.live = self.trash.pop()
        self.returns += 1
        return "brought back"

    def keep_house(self, _: int) -> str:
        for keeper in self.keepers:
            keeper.run_once()
        self.world.clean()
        return "housekeeping"


@pytest.mark.parametrize("seed", range(1, 7))
def test_each_snapshot_sees_its_rows(rpc: Rpc, world: AcidWorld, db: Database, seed: int) -> None:
    walk = Walk(rpc, world, seed)
    walk.run(200)
    assert walk.returns >= 2, "so there was something to see"
    assert walk.lost, "and somebody was writing"
