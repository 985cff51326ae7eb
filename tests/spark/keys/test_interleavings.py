"""All ways in which two transactions can begin, write and commit beside each other, in a table with a primary key.

A model says of each statement whether it fails, and of each commit whether it is a conflict: exactly those who have
brought the same key, or changed the same row.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from hive_acid.errors import DuplicateKeyError, WriteConflictError
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table

pytestmark = pytest.mark.spark

FORMS = {
    "plain": "(k INT, v INT, p STRING, PRIMARY KEY (k))",
    "partitioned": "(k INT, v INT, PRIMARY KEY (k)) PARTITIONED BY (p STRING)",
    "partition in the key": "(k INT, v INT, PRIMARY KEY (p, k)) PARTITIONED BY (p STRING)",
    "bucketed": "(k INT, v INT, p STRING, PRIMARY KEY (k)) CLUSTERED BY (k) INTO 2 BUCKETS",
}
EVENTS = sorted({order for order in itertools.permutations((0, 0, 0, 1, 1, 1)) if order[0] == 0})
"""Who is next: the first time he begins, then he writes, then he commits."""
PAIRS = 3
"""So many pairs of statements are played in each order."""

Table = dict[int, int]
"""The value of each key. No two versions of rows have one value."""


@dataclass
class Writer:
    """A transaction as the model has it: what it sees, the versions that it has removed, the keys that it brings."""

    acid: AcidSession
    verb: str
    keys: tuple[int, ...]
    block: Any = None
    seen: Table = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    own: Table = field(default_factory=dict)

    def is_conflict(self, committed: Table) -> bool:
        """Whether others have changed a row of it since, or brought a key."""
        stays = {key for key, value in committed.items() if value not in self.gone}
        return not self.gone <= {*committed.values()} or not self.own.keys().isdisjoint(stays)


class Play:
    """Two writers on one table, and what it holds."""

    def __init__(self, acid: AcidSession, sessions: list[AcidSession], form: str, chance: random.Random) -> None:
        self.acid, self.sessions, self.chance = acid, sessions, chance
        self.values = itertools.count(1)
        self.places = ["x"] if form == "partition in the key" else ["x", "y"]
        acid.sql(f"CREATE TABLE d.t {FORMS[form]}")
        self.committed: Table = {}
        self.told: list[str] = []

    def begin(self) -> None:
        """Have the keys 1 and 2 there, and no other one."""
        self.acid.delete("d.t")
        self.committed = {1: next(self.values), 2: next(self.values)}
        rows = [(key, value, self.chance.choice(self.places)) for key, value in self.committed.items()]
        self.acid.insert("d.t", self.acid.spark.createDataFrame(rows, "k int, v int, p string"))

    def event(self, writer: Writer) -> bool:
        """Let a writer do what comes next; whether there is more of it."""
        if writer.block is None:
            writer.block = writer.acid.transaction()
            writer.block.__enter__()
            writer.seen = dict(self.committed)
            return True
        if not writer.own and not writer.gone:
            return self.write(writer)
        expected = writer.is_conflict(self.committed)
        error = self.caught(writer.block.__exit__, None, None, None)
        assert isinstance(error, WriteConflictError) if expected else error is None, (self.told, error)
        if not expected:
            there = {key: value for key, value in self.committed.items() if value not in writer.gone}
            self.committed = there | writer.own
        return False

    def write(self, writer: Writer) -> bool:
        """The statement of a writer. One that has failed has been all that it does."""
        own = {key: next(self.values) for key in writer.keys}
        place = self.chance.choice(self.places)
        rows = self.acid.spark.createDataFrame(
            [(key, value, place) for key, value in own.items()], "k int, v int, p string"
        )
        brings, removes = set(own), set[int]()
        if writer.verb == "delete":
            brings, removes = set(), set(own) & set(writer.seen)
        elif writer.verb == "upsert":
            removes = set(own) & set(writer.seen)
        elif writer.verb == "move":  # the row of key 1 gets another one
            removes = {1} & set(writer.seen)
            brings = brings if removes else set()
        error = self.caught(getattr(self, f"_{writer.verb}"), writer, rows)
        gone = {writer.seen[key] for key in removes}
        taken = [value for key, value in self.committed.items() if key in brings and value not in gone]
        if any(value in writer.seen.values() for value in taken):
            kind: type[Exception] | None = DuplicateKeyError
        else:
            is_late = bool(taken) or not gone <= {*self.committed.values()}
            kind = WriteConflictError if is_late else None
        assert error is None if kind is None else isinstance(error, kind), (self.told, kind, error)
        if kind is not None:
            self.caught(writer.block.__exit__, kind, error, None)
            return False
        writer.gone = gone
        writer.own = {key: value for key, value in own.items() if key in brings}
        return bool(writer.gone or writer.own) or self.ended(writer)

    def ended(self, writer: Writer) -> bool:
        """End who has found nothing to do."""
        writer.block.__exit__(None, None, None)
        return False

    def caught(self, do: Any, *arguments: Any) -> Exception | None:
        try:
            do(*arguments)
        except (DuplicateKeyError, WriteConflictError) as error:
            return error
        return None

    def _insert(self, writer: Writer, rows: Any) -> None:
        writer.acid.insert("d.t", rows)

    def _values(self, writer: Writer, rows: Any) -> None:
        """Which the client writes."""
        values = ", ".join(f"({row.k}, {row.v}, '{row.p}')" for row in rows.collect())
        writer.acid.sql(f"INSERT INTO d.t VALUES {values}")

    def _upsert(self, writer: Writer, rows: Any) -> None:
        writer.acid.upsert("d.t", rows)

    def _delete(self, writer: Writer, rows: Any) -> None:
        writer.acid.delete("d.t", source=rows.select("k"), on="t.k = s.k")

    def _move(self, writer: Writer, rows: Any) -> None:
        row = rows.collect()[0]
        writer.acid.update("d.t", {"k": str(row.k), "v": str(row.v)}, where="k = 1")

    def check(self) -> None:
        """The table has what has been committed, and no key twice."""
        rows = [(row.k, row.v) for row in self.acid.table("d.t").collect()]
        assert sorted(rows) == sorted(self.committed.items()), self.told


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", EVENTS, ids=lambda order: "".join(map(str, order)))
def test_exactly_those_that_bring_a_key_conflict(
    acid: AcidSession, writers: list[AcidSession], order: tuple[int, ...], form: str
) -> None:
    chance = random.Random(f"{order} {form}")
    play = Play(acid, writers[:2], form, chance)
    for _ in range(PAIRS):
        play.begin()
        playing = []
        for session in play.sessions:
            verb = chance.choice(("insert", "insert", "values", "upsert", "delete", "move"))
            keys = (
                chance.choice(((3,), (3,), (4,), (1,)))
                if verb == "move"
                else chance.choice(((3,), (3, 4), (4,), (1, 3), (1,)))
            )
            playing.append(Writer(session, verb, keys))
        play.told = [f"{order}", *(f"{one.verb} {one.keys}" for one in playing)]
        goes_on = [True, True]
        for at in order:
            if goes_on[at]:
                goes_on[at] = play.event(playing[at])
                if not goes_on[at]:
                    play.check()
                if chance.random() < 0.2:
                    compact_table(acid.spark, acid, "d.t", chance.choice(["minor", "major"]))
