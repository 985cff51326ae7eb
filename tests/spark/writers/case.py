"""One case: a writer, somebody else at one moment of it, and the verdict on what came of both.

What may come of it is told by the model, in which the two are one after the other. A statement that has returned has
done what it does, before or after the other one. One that has raised has done nothing.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.connection import Connection, connect
from hive_acid.errors import HiveAcidError, MetastoreInternalError
from hive_acid.format.names import parse_directory
from hive_acid.transactions.states import TransactionKind
from tests.spark.reading import Reader, Row
from tests.spark.writers.directories import Mark, data_directories
from tests.spark.writers.disturbances import DISTURBANCES, TABLE, Disturbance
from tests.spark.writers.model import COLUMNS, KEY, RefusedError, TableModel, World, content
from tests.spark.writers.moments import MOMENTS, Moments
from tests.spark.writers.other import Other
from tests.spark.writers.statements import ROWS, SECOND_TABLE, WRITERS, Handle, Scene, Writer

SETTINGS = {"metastore.catalog.undrop.window": "1h"}
"""Of the server: dropped tables can come back."""

PATIENCE_S, PATIENCE_AT_START_S = 0.4, 30.0
"""So long the statement stands still for a client that may have to wait for its lock; before it, for the change."""

AFTERWARDS: Row = {"id": 99, "v": 990, KEY: 1}
"""A row that is added at the end: what was left of a failed write must not come up with it."""

_numbers = itertools.count(1)


class Case(NamedTuple):
    """What is tried; the names are keys of `WRITERS` and so on."""

    writer: str
    disturbance: str
    by: str
    """``calls``, or ``session`` for the product's own verb with its locks."""

    moment: str
    handle: str
    keyed: bool

    def __str__(self) -> str:
        shape = "partitioned" if self.keyed else "flat"
        return f"{self.writer} | {self.disturbance} | {self.by} | {self.moment} | {self.handle} | {shape}"


def cases() -> Iterator[Case]:
    """All of them."""
    for (name, writer), (other, disturbance) in itertools.product(WRITERS.items(), DISTURBANCES.items()):
        if disturbance.only_full_acid and writer.insert_only:
            continue
        ways = [way for way in ("calls", "session") if getattr(disturbance, f"by_{way}")]
        for by, moment, handle, keyed in itertools.product(ways, MOMENTS, writer.handles, writer.shapes):
            if not keyed and (disturbance.only_keyed or moment == "register"):
                continue
            if writer.makes_table and moment in ("start", "lock"):
                continue  # there is no table yet
            if (moment == "start") != (handle != "name"):
                continue  # what is made before matters before the statement, and all else is the same after
            if disturbance.aborts and moment in ("start", "lock"):
                continue  # it has no transaction yet, or none that holds anything
            if by == "session" and other == "renamed" and handle == "frame":
                continue  # the frame itself holds the lock that keeps a rename out
            yield Case(name, other, by, moment, handle, keyed)


def sample(seed: int) -> list[Case]:
    """Of each writer at each moment one case, with what others have not met as yet."""
    chance = random.Random(seed)
    by_moment: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases():
        by_moment[case.writer, case.moment].append(case)
    met: Counter[object] = Counter()
    chosen = []
    for some in by_moment.values():
        chance.shuffle(some)
        case = min(some, key=lambda one: sum(met[facet] for facet in _facets(one)))
        met.update(_facets(case))
        chosen.append(case)
    return chosen


def _facets(case: Case) -> Iterator[object]:
    yield case.disturbance, case.moment
    yield case.disturbance, case.by
    yield case.handle, case.keyed
    yield case.writer, case.disturbance


@dataclass
class Verdict:
    """What came of a case; `wrong` says what must not be."""

    case: Case
    outcome: str
    wrong: list[str]
    came: bool


class Stage:
    """Plays cases on one metastore and one Spark session."""

    def __init__(self, spark: SparkSession, uri: str, root: Path) -> None:
        self._spark = spark
        self._uri = uri
        self._root = root

    def play(self, case: Case, *, by_spark: bool = True) -> Verdict:
        """Carry it out. `by_spark` says to read what is left by the product as well."""
        database = f"w{next(_numbers)}"
        room = self._root / database
        room.mkdir(parents=True)
        with connect(self._uri) as connection, hive_acid.spark.session(self._spark, self._uri) as acid:
            return _Play(case, database, room, connection, acid, by_spark).run()


class _Play:
    def __init__(
        self, case: Case, database: str, room: Path, connection: Connection, acid: Any, by_spark: bool
    ) -> None:
        self.case = case
        self.writer: Writer = WRITERS[case.writer]
        self.disturbance: Disturbance = DISTURBANCES[case.disturbance]
        self.database = database
        self.room = room
        self.connection = connection
        self.acid = acid
        self.by_spark = by_spark
        self.other = Other(
            connection, database, room / "elsewhere", keyed=case.keyed, insert_only=self.writer.insert_only
        )
        self.reader = Reader(connection, database)
        self.scene = Scene(acid, database, case.keyed, room / "loose")
        self.failure: HiveAcidError | None = None
        self.thread: threading.Thread | None = None
        self.of_other: Set[Mark] = set()
        self.then: Set[Mark] = set()
        self.wrong: list[str] = []

    def run(self) -> Verdict:
        self.connection.create_database(self.database, location=f"file:{self.room / 'home'}")
        before = self._prepared()
        found_before = data_directories(self.room).keys()
        moments = Moments(self.acid.connection, self.room, self.case.moment, lambda: self._disturb(moments))
        count: int | None = None
        error: BaseException | None = None
        try:
            is_early = self.case.handle == "builder"
            handle = Handle(self.scene, "name" if is_early else self.case.handle)
            run = self.writer.made(self.scene, handle) if is_early else None
            moments.start()
            with moments.watching():
                count = (run or self.writer.made(self.scene, handle))()
        except Exception as raised:
            error = raised
        if self.thread is not None:
            self.thread.join(60)
            if self.thread.is_alive():
                self.wrong.append("the other client waits for a lock that nobody should hold")
        if not moments.came:
            return Verdict(self.case, "the moment did not come", [], came=False)
        outcome = "returned" if error is None else f"{type(error).__name__}: {str(error)[:160]}"
        if self.failure is not None:
            outcome += f" (the other one: {type(self.failure).__name__}: {str(self.failure)[:120]})"
        if error is not None and (not isinstance(error, HiveAcidError) or isinstance(error, MetastoreInternalError)):
            self.wrong.append("an error of no clear class")
        try:
            self._judge(before, found_before, count, returned=error is None)
        except (AssertionError, HiveAcidError, PySparkException, OSError) as broken:
            self.wrong.append(f"it cannot be read: {type(broken).__name__}: {str(broken)[:200]}")
        return Verdict(self.case, outcome, self.wrong, came=True)

    def _prepared(self) -> World:
        keyed = self.case.keyed
        columns, by_name = (*COLUMNS, KEY) if keyed else COLUMNS, self.writer.insert_only
        if self.writer.makes_table:  # it is there without rows from before the lock on
            return {TABLE: TableModel("first", columns, by_name=by_name)}
        world: dict[str, TableModel] = {}
        for name in (TABLE, SECOND_TABLE) if "multi-insert" in self.case.writer else (TABLE,):
            self.other.create(name)
            rows = tuple(self.scene.fitting(ROWS)) if name == TABLE else ()
            if rows:
                self.other.insert(name, rows)
            world[name] = TableModel("first" if name == TABLE else name, columns, rows, by_name)
        return world

    def _disturb(self, moments: Moments) -> None:
        before = data_directories(self.room)

        def work() -> None:
            try:
                if self.case.by == "session":
                    with hive_acid.spark.session(self.acid.spark, self.acid.connection.uri) as acid:
                        assert self.disturbance.by_session is not None
                        self.disturbance.by_session(acid, self.scene.name())
                else:
                    assert self.disturbance.by_calls is not None
                    self.disturbance.by_calls(self.other, moments.transactions)
                if self.disturbance.new_rows:
                    self.other.insert(TABLE, self.scene.fitting(self.disturbance.new_rows))
            except HiveAcidError as error:
                self.failure = error

        if self.case.by == "session":
            self.thread = threading.Thread(target=work, daemon=True)
            self.thread.start()
            self.thread.join(PATIENCE_AT_START_S if self.case.moment == "start" else PATIENCE_S)
        else:
            work()
        now = data_directories(self.room)
        if self.thread is None:  # what it has made or, with the table, moved
            self.of_other = {number for number, path in now.items() if before.get(number) != path}
        self.then = now.keys()

    # --- the verdict -------------------------------------------------------------------------------

    def _judge(self, before: World, found_before: Set[Mark], count: int | None, *, returned: bool) -> None:
        found = self.reader.content()
        allowed = self._allowed(before, returned=returned)
        fitting = [counts for counts, rows in allowed if rows == found]
        if not fitting:
            wanted = " or ".join(str(rows) for _, rows in allowed) or "an error"
            self.wrong.append(f"rows are {found}, should be {wanted}")
        elif returned and count is not None and count not in fitting:
            self.wrong.append(f"it says {count}, should be {fitting}")
        if self.by_spark and (by_product := self.reader.content_by(self.acid)) != found:
            self.wrong.append(f"the product reads {by_product}, plain Python {found}")
        known = found_before | self.of_other | self.other.written | self._committed()
        if returned:  # what was in place when the other one came was where it belonged
            known |= self.then
        new = [path for number, path in data_directories(self.room).items() if number not in known]
        places = {place for some in self.reader.places().values() for place in some}
        if returned and (lost := [path for path in new if path.parent not in places]):
            self.wrong.append(f"files in a directory of no table: {self._shown(lost)}")
        if not returned and new:
            self.wrong.append(f"files are left of a statement that failed: {self._shown(new)}")
        self._add_afterwards(found)

    def _committed(self) -> Set[Mark]:
        """The directories of what the other one has written by a verb of the product."""
        if self.disturbance.by_calls is not None or TABLE not in {table.name for table in self.reader.tables()}:
            return set()
        with self.connection.begin(TransactionKind.READ) as transaction:
            valid = transaction.write_ids(self.database, TABLE)
        found = data_directories(self.room).items()
        return {number for number, path in found if valid.is_valid(parse_directory(path.name).max_write_id)}  # type: ignore[union-attr]

    def _shown(self, paths: Any) -> str:
        return ", ".join(sorted(str(path.relative_to(self.room)) for path in paths))

    def _add_afterwards(self, found: dict[str, list[str]]) -> None:
        """A write of somebody who comes later: it brings its row, and nothing else."""
        if TABLE not in found:
            return
        self.other.insert(TABLE, self.scene.fitting([AFTERWARDS]))
        later = self.reader.content()
        more = [row for row in later.get(TABLE, []) if row not in found[TABLE]]
        if len(later[TABLE]) != len(found[TABLE]) + 1 or len(more) != 1:
            self.wrong.append(f"one row more, and the table has {later[TABLE]} instead of {found[TABLE]}")

    def _allowed(self, before: World, *, returned: bool) -> list[tuple[int | None, dict[str, list[str]]]]:
        """Counts and rows of each order of the two, or rows as they are without the statement."""
        other = self.disturbance.model if self.failure is None else lambda world: world
        if not returned:
            rows = content(other(before))
            gone = {name: some for name, some in rows.items() if some or not self.writer.makes_table}
            return [(None, rows), (None, gone)]
        steps = self.writer.steps
        first = 0 if self.case.handle == "name" or _is_same(before, other(before)) else 1
        last = 0 if self.case.moment == "start" else len(steps)
        found: list[tuple[int | None, dict[str, list[str]]]] = []
        # What the other client adds after its change is a commit of its own, which may come later.
        for at, added in itertools.combinations_with_replacement(range(first, last + 1), 2):
            with suppress(RefusedError):
                world, count = before, None
                for position in range(len(steps) + 1):
                    if self.failure is None and position == at:
                        world = self.disturbance.changed(world)
                    if self.failure is None and position == added:
                        world = self.disturbance.with_new_rows(world)
                    if position < len(steps):
                        world, count = steps[position](world)
                found.append((count, content(world)))
        return found


def _is_same(before: World, after: World) -> bool:
    """Whether the name stands for the same table still."""
    return TABLE in after and before[TABLE].identity == after[TABLE].identity
