"""Random readers, writers, compactions, drops and cleanings: whoever lives can read exactly the rows of its snapshot.

``python -m tests.compaction --seed 7 --steps 2000`` walks for long.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from hive_acid.errors import HiveAcidError
from hive_acid.filesystem import files
from hive_acid.format.names import delta_name, staging_name
from hive_acid.format.rows import RowId, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, directory_state
from hive_acid.ids import TxnId
from metastore.compaction.cleaner.orphans import Orphans, Sweep
from metastore.compaction.states import CompactionType
from metastore.housekeeping.compaction_housekeeper import CompactionHouseKeeper
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.min_history import MinHistory
from metastore.txn.models import UNDECLARED, Intent
from metastore.txn.states import TxnType
from tests.compaction.world import OWNER, Tables, World, read_directory, write_directory

MOST_READERS, MOST_WRITERS = 6, 4
_CATALOGUED = """
INSERT INTO database (name, location, owner_type, created_s, parameters, details)
VALUES ('db', '', 1, 0, '{}', '{}');
INSERT INTO tbl (database, name, table_type, owner_type, created_s, columns, partition_keys, parameters, storage,
                 details)
SELECT 'db', name, 'MANAGED_TABLE', 1, 0, '[]', '[]', '{}', '{}', '{}' FROM unnest(ARRAY['a', 'b', 'p']) AS name
"""


class Killed(BaseException):
    """The worker's process ends here."""


class SharedTables(Tables):
    """The catalogue of all places, also as the search for orphans asks it."""

    def homes(self) -> list[str]:
        return []

    def remove_unknown(self, location: str, inside: str | None = None) -> bool:
        files.remove(location)
        return True

    def in_use(self, places: Collection[str], inside: str | None = None) -> set[str]:
        return {one for one in places if any(files.is_below(known, one) for known in self._locations())}

    def has_imports(self) -> bool:
        return False

    def _locations(self) -> list[str]:
        partitions = [location for known in self.partitions.values() for location in known.values()]
        return [*(table.location for table in self.tables.values()), *partitions]


@dataclass
class Place:
    """A table or partition, and the rows that are committed in it."""

    world: World
    rows: set[RowId] = field(default_factory=set)
    version: int = 0

    @property
    def name(self) -> str:
        return f"{self.world.table}/{self.world.partition}" if self.world.partition else self.world.table


@dataclass
class Writer:
    """An open write, staged or in place, of inserts and deletes or of an overwrite."""

    txn_id: TxnId
    place: Place
    write_id: int = 0
    inserted: set[RowId] = field(default_factory=set)
    deleted: set[RowId] = field(default_factory=set)
    is_overwrite: bool = False


@dataclass
class Reader:
    """An open reader: what it may still read, as (place, location, expected rows), and with which lists."""

    txn_id: TxnId
    txns: ValidTxnList
    write_ids: dict[str, ValidWriteIdList]
    seen: list[tuple[Place, str, frozenset[RowId]]]
    locked: set[str] = field(default_factory=set)


class Walk:
    """One story, told by a seed."""

    def __init__(self, db: Database, warehouse: Path, seed: int) -> None:
        self.db = db
        self.choice = random.Random(seed)
        self.catalogue = SharedTables()
        self.places = [Place(World(db, warehouse, name, partition)) for name, partition in
                       (("a", None), ("b", None), ("p", "k=1"), ("p", "k=2"))]  # fmt: skip
        for place in self.places:
            self.catalogue.tables.update(place.world.catalogue.tables)
            for table, partitions in place.world.catalogue.partitions.items():
                self.catalogue.partitions.setdefault(table, {}).update(partitions)
            place.world.catalogue = self.catalogue
        with db.engine.begin() as connection:  # the database asks, too, whether a table of a name is there
            connection.exec_driver_sql(_CATALOGUED)
        self.warehouse = warehouse
        self.any = self.places[0].world
        self.history = MinHistory(db)
        self.readers: list[Reader] = []
        self.writers: list[Writer] = []
        self.lost: list[TxnId] = []
        self.story: list[str] = []
        self.is_inside = False
        self.removed = 0
        config = HousekeepingConfig(finished_retention_ms=0)
        self.keepers = (
            AcidTxnCleaner(db, config),
            AcidHouseKeeper(db, config, TxnConfig()),
            CompactionHouseKeeper(db, config, self.any.service),
        )
        self._configure()

    def run(self, steps: int) -> None:
        """Take steps, looking through all eyes after each; then let everything end and be cleaned."""
        verbs: list[tuple[int, Callable[[], str]]] = [
            (6, self.write), (6, self.end_writer), (4, self.read), (4, self.end_reader), (5, self.compact),
            (6, self.clean), (2, self.purge), (1, self.sweep), (1, self.drop), (1, self.time_out), (1, self.configure),
        ]  # fmt: skip
        for _ in range(steps):
            self.story.append(self._one(verbs)())
            self.look()
        self.finish()

    def _one(self, verbs: list[tuple[int, Callable[[], str]]]) -> Callable[[], str]:
        return self.choice.choices([verb for _, verb in verbs], [weight for weight, _ in verbs])[0]

    # --- what readers see --------------------------------------------------------------------------

    def look(self) -> None:
        """Each reader sees its rows, and a new one all that is committed."""
        for reader in self.readers:
            for place, location, expected in reader.seen:
                table = place.world.table
                write_ids = reader.write_ids[table]
                if location == place.world.location and self.choice.random() < 0.3:
                    write_ids = place.world.snapshots.write_ids("db", table, reader.txns)
                found = rows_of(location, write_ids, reader.txns)
                assert found == expected, self._broken(f"reader {reader.txn_id} of {place.name}", found, expected)
        for place in self.places:
            found = rows_of(place.world.location, *place.world.snapshot())
            assert found == place.rows, self._broken(f"a new reader of {place.name}", found, place.rows)

    def _broken(self, who: str, found: Collection[RowId], expected: Collection[RowId]) -> str:
        lost, doubled = set(expected) - set(found), set(found) - set(expected)
        return f"{who} has lost {lost} and got {doubled} after:\n" + "\n".join(self.story[-40:])

    def read(self) -> str:
        if len(self.readers) >= MOST_READERS:
            return self.end_reader()
        tables = {place.world.table for place in self.places}
        kind = self.choice.choice(("opened", "opened", "named", "named", "unnamed", "locked"))
        says = kind in ("opened", "named")
        named = set(self.choice.sample(sorted(tables), self.choice.randint(1, 2))) if says else tables
        txn_type = self.choice.choice((TxnType.READ_ONLY, TxnType.DEFAULT))
        intent = Intent(tuple(("db", table) for table in sorted(named))) if kind == "opened" else UNDECLARED
        (txn_id,) = self.any.txns.open_txns(1, OWNER, txn_type, intent)
        txns = self.any.snapshots.txns(txn_id)
        write_ids = {table: self.any.snapshots.write_ids("db", table, txns) for table in tables}
        reader = Reader(txn_id, txns, write_ids, [])
        reader.seen = [(place, place.world.location, frozenset(place.rows))
                       for place in self.places if place.world.table in named]  # fmt: skip
        if kind == "named":
            self.history.add(txn_id, {f"db.{table}": write_ids[table].high_water_mark + 1 for table in named})
        elif kind == "locked":
            place = self.choice.choice(self.places)
            component = LockComponent(LockType.SHARED_READ, "db", place.world.table, place.world.partition)
            self.any.locks.lock(LockRequest((component,), OWNER, txn_id))
            reader.locked.add(place.world.table)
        self.readers.append(reader)
        return f"reader {txn_id} {kind} {sorted(named)}"

    def end_reader(self) -> str:
        if not self.readers:
            return "nobody reads"
        reader = self.readers.pop(self.choice.randrange(len(self.readers)))
        self.any.txns.commit_txn(reader.txn_id)
        return f"reader {reader.txn_id} ends"

    # --- writers -----------------------------------------------------------------------------------

    def write(self) -> str:
        """Begin a write: files are staged, or in place, and nobody sees them yet."""
        place = self.choice.choice(self.places)
        at_work = [writer for writer in self.writers if writer.place is place]
        if len(self.writers) >= MOST_WRITERS or any(writer.is_overwrite for writer in at_work):
            return self.end_writer()
        txn_id = self.any.open()
        writer = Writer(txn_id, place)
        busy = {key for other in at_work for key in other.deleted}
        is_free = not at_work and not any(place.world.table in reader.locked for reader in self.readers)
        if is_free and self.choice.random() < 0.15:
            writer.is_overwrite = True
        else:
            free = sorted(place.rows - busy)
            writer.deleted = set(self.choice.sample(free, self.choice.randint(0, min(2, len(free)))))
        inserts = self.choice.randint(0 if writer.deleted or writer.is_overwrite else 1, 3)
        writer.write_id = place.world.write(
            txn_id, inserts, deletes=sorted(writer.deleted), overwrite=writer.is_overwrite, commit=False
        )
        writer.inserted = {RowId(writer.write_id, encode_bucket(0), row) for row in range(inserts)}
        if self.choice.random() < 0.5:
            staged = files.join(place.world.root, staging_name(txn_id, "staged"), delta_name(1, 1, 0))
            write_directory(staged, [])
        self.writers.append(writer)
        verb = "overwrites" if writer.is_overwrite else f"deletes {len(writer.deleted)} of"
        return f"writer {txn_id} (write id {writer.write_id}) {verb} {place.name}"

    def end_writer(self) -> str:
        if not self.writers:
            return "nobody writes"
        writer = self.writers.pop(self.choice.randrange(len(self.writers)))
        if self.choice.random() < 0.3:
            self.any.txns.abort_txn(writer.txn_id)
            return f"writer {writer.txn_id} aborts"
        try:
            self.any.txns.commit_txn(writer.txn_id)
        except HiveAcidError:
            return f"writer {writer.txn_id} meets a conflict"
        rows = set() if writer.is_overwrite else writer.place.rows
        writer.place.rows = (rows - writer.deleted) | writer.inserted
        return f"writer {writer.txn_id} commits"

    # --- services ----------------------------------------------------------------------------------

    def compact(self) -> str:
        place = self.choice.choice(self.places)
        kind = self.choice.choice((CompactionType.MINOR, CompactionType.MAJOR))
        place.world.request(kind)
        fate = self.choice.choice(("works", "works", "works", "fails", "is killed early", "is killed late"))
        hooks = [lambda *_: None, lambda *_: None]
        if fate == "fails":
            hooks[1] = _fail
        elif fate.startswith("is killed"):
            hooks[fate.endswith("late")] = _kill
        world = self.any  # whoever is first in the queue
        world.executor.after = hooks[1]
        world.executor.before = lambda *job: (self._meanwhile(), hooks[0](*job))[1]
        try:
            world.worker().run_once()
        except Killed:
            self.lost += [row.txn_id for row in self.any.service.show() if row.state.value == "w" and row.txn_id]
        return f"a {kind.name.lower()} compaction of {place.name}, or of another one, {fate}"

    def _meanwhile(self) -> None:
        """Others go on while a compaction runs."""
        if self.is_inside:
            return
        self.is_inside = True
        for _ in range(self.choice.randint(0, 3)):
            step = self.choice.choice((self.write, self.end_writer, self.read, self.end_reader, self.clean, self.purge))
            self.story.append(f"  meanwhile {step()}")
        self.is_inside = False

    def clean(self) -> str:
        run = self.any.cleaner().run_once()
        self.removed += len(run.removed)
        assert not run.failed, self._broken(f"the Cleaner fails: {run.failed}", (), ())
        return f"the Cleaner removes {[place.removeprefix(str(self.warehouse)) for place in run.removed]}"

    def purge(self) -> str:
        for keeper in self.keepers:
            keeper.run_once()
        return "housekeeping"

    def sweep(self) -> str:
        """Remove orphans, however young: that they are orphans does not hang on their age."""
        return self._sweep(self.choice.choice(self.places).world.table)

    def _sweep(self, table: str) -> str:
        orphans = Orphans(self.any.service, self.any.snapshots, self.catalogue, self.catalogue)
        found = [one for _, one in orphans.of_table("db", table, Sweep(0, remove=True)) if one is not None]
        return f"orphans of {table}: {[(one.location.rpartition('/')[2], one.reason.value) for one in found]}"

    def time_out(self) -> str:
        """Killed workers lose their transactions, and their compactions go back into the queue."""
        for txn_id in self.lost:
            self.any.txns.abort_txn(txn_id)
        told, self.lost = f"transactions {self.lost} time out", []
        self.any.service.requeue()
        return told

    def drop(self) -> str:
        """Drop an unpartitioned table and make it anew elsewhere, as the catalogue does while transactions are open."""
        place = self.choice.choice(self.places[:2])
        world = place.world
        if any(one.place is place for one in self.writers) or any(world.table in one.locked for one in self.readers):
            return "nothing is dropped"
        (stays,) = self.db.call_one("compaction_keep_dropped", "db", world.table, [world.location], [None]) or (False,)
        if not stays:
            files.remove(world.location)
            self.db.call("txn_forget_table", "db", world.table)
        self.db.call("compaction_forget_table", "db", world.table)
        place.rows, place.version = set(), place.version + 1
        world.root = world.location = str(self.warehouse / f"{world.table}.v{place.version}")
        info = self.catalogue.tables["db", world.table]
        self.catalogue.tables["db", world.table] = type(info)(world.root, info.columns, parameters=info.parameters)
        files.make_directory(world.location)
        return f"{world.table} is dropped and made anew; its files {'stay' if stays else 'go'}"

    def configure(self) -> str:
        self._configure()
        return "other settings"

    def _configure(self) -> None:
        delayed = self.choice.random() < 0.2
        values = {
            "aborted_threshold": self.choice.randint(0, 2),
            "clean_aborts": self.choice.random() < 0.8,
            "delayed_cleanup": delayed,
            "cleaner_retention_ms": 50 if delayed else 0,
            "cleaner_threads": self.choice.choice((1, 1, 3)),
            "staging_age_ms": self.choice.choice((0, 3_600_000)),
            "max_deltas": self.choice.choice((2, 4, 500)),
        }
        for place in self.places:
            place.world.configure(**values)

    # --- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Everybody ends; then a compaction and a cleaning leave one directory in each place, and no record."""
        while self.writers:
            self.end_writer()
        while self.readers:
            self.end_reader()
        for place in self.places:
            place.world.configure(
                aborted_threshold=0, clean_aborts=True, delayed_cleanup=False, cleaner_retention_ms=0, staging_age_ms=0
            )
        self.any.executor.before = self.any.executor.after = lambda *_: None  # type: ignore[assignment]
        self.time_out()
        for _ in range(3):  # what waits comes first, and what has reached as far as this would is in its way
            self._work_off()
            self.time_out()
            for place in self.places:
                place.world.request(CompactionType.MAJOR)
        self._work_off()
        for table in {place.world.table for place in self.places}:  # what was staged where nothing had to be cleaned
            self._sweep(table)
        self.look()
        for place in self.places:
            left = [name for name in place.world.directories() if "=" not in name]
            assert len(left) <= 1, self._broken(f"{place.name} has {left} left", (), ())
        self.purge()
        assert self.any.txns.get_open_txns(()).aborted_ids == [], self._broken("records of aborted writes stay", (), ())

    def _work_off(self) -> None:
        """Compact and clean until there is nothing left to do."""
        while self.any.worker().run_once():
            pass
        for _ in range(20):
            run = self.any.cleaner().run_once()
            self.removed += len(run.removed)
            if not run.cleaned and not run.removed:
                break


def rows_of(location: str, write_ids: ValidWriteIdList, txns: ValidTxnList) -> set[RowId]:
    """The rows that a snapshot sees in a directory."""
    state = directory_state(files.list_tree(location), write_ids, txns)

    def events(directories: Collection[DataDirectory]) -> list[object]:
        return [event for found in directories for event in read_directory(files.join(location, found.name))]

    base = events((state.base,)) if state.base else []
    rows = visible_rows(events(state.insert_deltas), events(state.delete_deltas), write_ids, base)  # type: ignore[arg-type]
    return {event.key for event in rows}


def _fail(*_: object) -> None:
    raise RuntimeError("the job fails")


def _kill(*_: object) -> None:
    raise Killed
