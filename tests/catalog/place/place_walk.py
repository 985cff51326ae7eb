"""Random verbs of one client at, above, below and beside the places of others, spelt in all ways, by seed.

Others are tables, partitions and databases of every kind, one of a dropped table that is still read among them; each
has files, also where nobody expects them. The oracle is the disk: whatever the client was answered, each of these files
is where it was, byte by byte. `python -m tests.catalog.place.place_walk --seed 7 --stories 1000` walks for long.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from hive_acid.errors import HiveAcidError
from hive_acid.filesystem import files
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.models import Column, DatabaseInfo, Partition, Table
from metastore.catalog.place.places import Place
from metastore.catalog.service import CatalogService
from metastore.compaction.cleaner.orphans import Orphans, Sweep
from metastore.slices.compaction_catalogue import CatalogueOfCompaction
from metastore.store.database import Database
from metastore.transfer.target import Target
from metastore.txn.states import TxnType
from tests.catalog.acid_world import AcidWorld
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table
from tests.databases import url_of
from tests.served import migrated

KEYS = (column("k", "string"),)
NAMES = ("v", "v2", "V", "v%2F", "%76", "v w", "v=1", "\u00e9", "e\u0301", "v~", "#v", "_v")
"""Steps of places: with common beginnings, with what a URL would mean otherwise, in both normal forms of Unicode."""
KINDS = ("acid", "plain", "external", "partition", "acid partition", "database", "home", "read")
MINE = ("m0", "m1", "m2")
MOST_LINKS = 4
HOUR_MS = 3_600_000
_numbers = count(1)


@dataclass
class World:
    """One catalogue, and where stories are told: locations with a scheme, each story in a directory of its own."""

    db: Database
    warehouse: str
    ground: str
    undrop_window_ms: int = 0
    steps: int = 14
    done: int = 0
    refused: int = 0
    links: dict[str, str] = field(default_factory=dict)
    """Directories to the links that lead to them, in every story; one of them leads to what is around it."""

    most_links: int = MOST_LINKS
    ignores_case: bool = False
    """Whether the file system of the ground does."""

    def __post_init__(self) -> None:
        config = CatalogConfig(undrop_window_ms=self.undrop_window_ms, truncate_wait_ms=0)
        self.catalog = CatalogService(self.db, self.warehouse, config)
        self.catalog.start()
        self.rpc = Rpc(self.catalog)
        self.acid = AcidWorld(self.db, self.catalog)

    def tell(self, seed: int) -> None:
        """One story; an AssertionError has it if a file of others is gone, or is another one."""
        Story(self, random.Random(seed), f"seed {seed}").run()


class Story:
    """Others' places, and a client that has to do with them."""

    def __init__(self, world: World, chance: random.Random, name: str) -> None:
        self._world = world
        self._rpc = world.rpc
        self._chance = chance
        self._name = name
        self._steps: list[str] = []
        self._number = next(_numbers)
        self._root = files.join(world.ground, f"s{self._number}")
        self._places: list[str] = []
        self._files: dict[str, bytes] = {}
        self._theirs: list[Callable[[], object]] = []
        self._reader: TxnId | None = None

    def run(self) -> None:
        """Make what belongs to others, walk, and look at it after each step; all is gone afterwards."""
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            self._make(self._chance.choice(KINDS))
        self._look("at the beginning")
        for _ in range(self._world.steps):
            verb = self._chance.choice(VERBS)
            where = self._where()
            self._steps.append(f"{verb.__name__} {where}")
            try:
                verb(self, where)
                self._world.done += 1
            except (HiveAcidError, OSError) as error:
                self._world.refused += 1
                self._steps[-1] += f" -> {error}"
            self._look(verb.__name__)
        self._end()

    def _end(self) -> None:
        for name in MINE:
            with suppress(HiveAcidError):
                self._rpc.drop_table("default", name, True)
        for database in ("d", "e"):
            with suppress(HiveAcidError):
                self._rpc.drop_database(database, True, True)
        self._world.catalog.tidy()
        self._look("all of the client's was dropped")
        if self._reader is not None:
            self._world.acid.txns.commit_txn(self._reader)
        for forget in reversed(self._theirs):
            forget()
        self._world.acid.clean()

    def _look(self, what: str) -> None:
        for location, content in self._files.items():
            try:
                found = files.read(location)
            except OSError as error:
                found = str(error).encode()
            story = "\n  ".join(self._steps)
            assert found == content, f"{self._name}, {what}: {location} is {found!r}\n  {story}"

    # --- what belongs to others ---

    def _make(self, kind: str) -> None:
        place = self._new_place()
        name = f"t{self._number}_{len(self._places)}"
        self._places.append(place)
        self._steps.append(f"{kind} {name} at {place}")
        rpc, sd = self._rpc, storage(location=place)
        if kind in ("acid", "plain", "external", "read"):
            more = {"tableType": "EXTERNAL_TABLE"} if kind == "external" else {}
            parameters = ACID if kind in ("acid", "read") else {}
            rpc.create_table(table(name, sd=sd, parameters=parameters, **more))  # type: ignore[arg-type]
            self._theirs.append(lambda: rpc.drop_table("default", name, False))
        elif "partition" in kind:
            rpc.create_table(table(name, keys=KEYS, parameters=ACID if "acid" in kind else {}))
            self._theirs.append(lambda: rpc.drop_table("default", name, True))
            rpc.add_partition(partition(["1"], name, sd=sd))
        else:
            rpc.create_database(ttypes.Database(name=name, locationUri=place))
            self._theirs.append(lambda: rpc.drop_database(name, False, True))
            if kind == "home":  # its tables are external: the directory is theirs as well
                rpc.create_table(table("t", name, tableType="EXTERNAL_TABLE"))
            else:
                rpc.create_table(table("t", name, parameters=ACID))
            place = files.join(place, "t")
        for path in ("data", "part/data", "delta_0000001_0000001_0000/bucket_00000"):
            location = files.join(place, path)
            files.make_directory(files.parent(location))
            self._files[location] = f"{name}: {path}".encode()
            files.write(location, self._files[location])
        if kind == "read":
            self._reader = self._reader or self._world.acid.begin(TxnType.READ_ONLY)
            rpc.drop_table("default", name, True)
            self._theirs.pop()

    def _new_place(self) -> str:
        homes = [self._root, self._root, self._world.warehouse, files.join(self._world.warehouse, "d.db")]
        above = self._chance.choice(homes)
        if self._chance.random() < 0.5:
            above = files.join(above, self._chance.choice(NAMES))
        return files.join(above, f"{self._chance.choice(NAMES)}{len(self._places)}_{self._number}")

    # --- where the client is ---

    def _where(self) -> str:
        chance, place = self._chance, self._chance.choice(self._places)
        relation = chance.choice(("at", "at", "at", "above", "below", "beside", "far above"))
        match relation:
            case "above":
                place = files.parent(place)
            case "far above":
                place = files.parent(files.parent(place))
            case "below":
                place = files.join(place, chance.choice(("part", "new", "delta_0000001_0000001_0000", "t", "data")))
            case "beside":
                last = chance.choice((place[:-1], place + "2", place + " ", place + "%20", place.swapcase()))
                place = files.join(files.parent(place), last.rpartition("/")[2] or "x")
        return self._spelled(place)

    def _spelled(self, location: str) -> str:
        """Another spelling of a location."""
        chance, place = self._chance, Place.of(location)
        steps: list[str] = []
        above = len(Place.of(self._world.ground).path.split("/")) - 2  # of the same disk
        for number, step in enumerate(self._linked(place).strip("/").split("/")):
            swaps = self._world.ignores_case and number >= above and chance.random() < 0.3
            steps += chance.choice(([], [], [], ["."], [""], ["x", ".."], [".", "", "y", "..", ""]))
            steps.append(step.swapcase() if swaps else step)
        end = chance.choice(("", "", "/", "//", "/.", "/x/.."))
        if place.scheme == "file":
            while steps[0] == "":  # "file://" would be followed by a host
                del steps[0]
            head = chance.choice(("/", "file:/", "file:///", "FILE:/", "File:///", "file://localhost/", "file:////"))
            return head + "/".join(steps) + end
        schemes = ("s3", "s3a", "s3n", "S3A") if place.scheme == "s3a" else (place.scheme, place.scheme.upper())
        return f"{chance.choice(schemes)}://{place.authority}/{'/'.join(steps)}{end}"

    def _linked(self, place: Place) -> str:
        """The path, maybe through a link to one of the directories on the way."""
        if place.scheme != "file" or self._chance.random() < 0.7:
            return place.path
        path, ground = Path(place.path), Path(Place.of(self._world.ground).path)
        real = [one for one in path.parents if one.is_relative_to(ground) and one.exists()]
        if not real:
            return place.path
        above = str(self._chance.choice(real))
        link = self._world.links.get(above)
        if link is None and len(self._world.links) < self._world.most_links:
            link = self._world.links[above] = f"{ground}/l{next(_numbers)}"
            Path(link).symlink_to(above)
        return place.path if link is None else link + str(path)[len(above) :]

    # --- what it does ---

    def create_table(self, where: str) -> None:
        chance, more = self._chance, {}
        if chance.random() < 0.3:
            more["tableType"] = "EXTERNAL_TABLE"
        parameters = chance.choice(({}, ACID, {"external.table.purge": "true"}, {"transactional": "false"}))
        keys = chance.choice(((), KEYS))
        name, database = chance.choice(MINE), chance.choice(("default", "default", "d"))
        sd = storage(location=chance.choice((where, where, where, None)))
        self._rpc.create_table(table(name, database, sd=sd, keys=keys, parameters=dict(parameters), **more))

    def drop_table(self, where: str) -> None:
        self._rpc.drop_table(self._chance.choice(("default", "default", "d")), self._chance.choice(MINE), True)

    def truncate_table(self, where: str) -> None:
        names = self._chance.choice((None, ["k=1"]))
        self._rpc.truncate_table("default", self._chance.choice(MINE), names)

    def add_partition(self, where: str) -> None:
        value = self._chance.choice("12")
        location = self._chance.choice((where, where, None))
        self._rpc.add_partition(partition([value], self._chance.choice(MINE), sd=storage(location=location)))

    def drop_partition(self, where: str) -> None:
        self._rpc.drop_partition("default", self._chance.choice(MINE), [self._chance.choice("12")], True)

    def alter_partition(self, where: str) -> None:
        changed = partition([self._chance.choice("12")], "m", sd=storage(location=where))
        name = changed.tableName = self._chance.choice(MINE)
        self._rpc.alter_partition("default", name, changed)

    def rename_partition(self, where: str) -> None:
        name = self._chance.choice(MINE)
        location = self._chance.choice((None, where))
        self._rpc.rename_partition("default", name, ["1"], partition(["3"], name, sd=storage(location=location)))

    def exchange_partition(self, where: str) -> None:
        source, target = self._chance.sample(MINE, 2)
        self._rpc.exchange_partition({"k": "1"}, "default", source, "default", target)

    def alter_table(self, where: str) -> None:
        changed = self._rpc.get_table_req(
            ttypes.GetTableRequest(dbName="default", tblName=self._chance.choice(MINE))
        ).table
        match self._chance.choice(("place", "place", "rights", "acid", "external")):
            case "place":
                changed.sd.location = where
            case "rights":
                changed.parameters = {**changed.parameters, "EXTERNAL": "FALSE"}
                changed.tableType = "MANAGED_TABLE"
            case "acid":
                changed.parameters = {**changed.parameters, **ACID}
            case "external":
                changed.parameters = {**changed.parameters, "EXTERNAL": "TRUE", "external.table.purge": "true"}
                changed.tableType = "EXTERNAL_TABLE"
        self._rpc.alter_table("default", changed.tableName, changed)

    def rename_table(self, where: str) -> None:
        old, new = self._chance.sample(MINE, 2)
        changed = self._rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName=old)).table
        changed.tableName, changed.dbName = new, self._chance.choice(("default", "d"))
        if self._chance.random() < 0.3:
            changed.sd.location = where
        self._rpc.alter_table("default", old, changed)

    def create_database(self, where: str) -> None:
        name = self._chance.choice("de")
        place = self._chance.choice((None, where))
        managed = self._chance.choice((None, None, where))
        self._rpc.create_database(ttypes.Database(name=name, locationUri=place, managedLocationUri=managed))

    def alter_database(self, where: str) -> None:
        name = self._chance.choice("de")
        changed = self._rpc.get_database(name)
        changed.locationUri = where
        self._rpc.alter_database(name, changed)

    def drop_database(self, where: str) -> None:
        self._rpc.drop_database(self._chance.choice("de"), True, self._chance.random() < 0.8)

    def undrop(self, where: str) -> None:
        self._world.catalog.trash.restore(self._chance.choice(("default", "d")), self._chance.choice(MINE))

    def import_table(self, where: str) -> None:
        target = Target(self._world.db, "source", self._world.catalog.removals, replaces=self._chance.random() < 0.5)
        parameters = dict(self._chance.choice(({}, ACID)))
        keys = [Column("k", "string")] if self._chance.random() < 0.5 else []
        new = Table(
            "default",
            self._chance.choice(MINE),
            "MANAGED_TABLE",
            location=where,
            columns=[Column("a", "int")],
            partition_keys=keys,
            parameters=parameters,
        )
        _, stored = target.table(new, None)
        if stored is not None and keys:
            target.partitions(stored, [Partition(["1"], location=self._where())])

    def import_database(self, where: str) -> None:
        target = Target(self._world.db, "source", self._world.catalog.removals, replaces=self._chance.random() < 0.5)
        target.database(DatabaseInfo(name=self._chance.choice("de"), location=where))

    def remove_orphans(self, where: str) -> None:
        acid = self._world.acid
        catalogue = CatalogueOfCompaction(self._world.catalog)
        orphans = Orphans(acid.compactions, acid.snapshots, catalogue, catalogue)
        sweep = Sweep(0, remove=True, uncertain=True)
        name = self._chance.choice((None, *MINE))
        list(orphans.of_warehouse(sweep) if name is None else orphans.of_table("default", name, sweep))

    def write_and_abort(self, where: str) -> None:
        """So that the Cleaner has to do in the place of a table."""
        name = self._chance.choice(MINE)
        if (
            self._rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName=name)).table.parameters.get(
                "transactional"
            )
            != "true"
        ):
            return
        txn_id = self._world.acid.begin()
        try:
            self._world.acid.write(name, "lost", txn_id=txn_id)
        finally:
            self._world.acid.txns.abort_txn(txn_id)
        self._world.acid.clean()

    def tidy(self, where: str) -> None:
        self._world.acid.clean()
        self._world.catalog.tidy()


VERBS: tuple[Callable[[Story, str], None], ...] = (
    *[Story.create_table] * 4,
    *[Story.drop_table] * 3,
    *[Story.add_partition] * 3,
    *[Story.create_database] * 2,
    *[Story.drop_database] * 2,
    *[Story.alter_table] * 2,
    Story.truncate_table,
    Story.drop_partition,
    Story.alter_partition,
    Story.rename_partition,
    Story.exchange_partition,
    Story.rename_table,
    Story.alter_database,
    Story.undrop,
    Story.import_table,
    Story.import_database,
    Story.remove_orphans,
    Story.write_and_abort,
    Story.tidy,
)


def main() -> None:
    """Tell stories on local disks, half of them in a catalogue with a trash."""
    parser = argparse.ArgumentParser(prog="python -m tests.catalog.place.place_walk", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first story")
    parser.add_argument("--stories", type=int, default=500)
    parser.add_argument("--disk", help="a directory on a file system that ignores case and has no links, such as exFAT")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, migrated(Path(directory), "template_places") as url:
        db = Database(url_of(url, "template_places"))
        ground = Path(options.disk or directory).resolve() / "Ground"
        ground.mkdir()
        worlds = [World(db, f"file:{ground}/warehouse", f"file:{ground}", window_ms) for window_ms in (0, HOUR_MS)]
        for world in worlds if options.disk else ():
            world.ignores_case, world.most_links = True, 0
        started = time.monotonic()
        for number, seed in enumerate(range(options.seed, options.seed + options.stories), 1):
            worlds[seed % 2].tell(seed)
            if number % 100 == 0 or number == options.stories:
                done, refused = sum(one.done for one in worlds), sum(one.refused for one in worlds)
                print(f"{number} stories, {done} steps and {refused} refused, {time.monotonic() - started:.0f} s")
        db.close()


if __name__ == "__main__":
    main()
