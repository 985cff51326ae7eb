"""Random statements of two sessions in transactions of several statements, beside a model of the table in Python.

The model says of each statement whether it brings a key that is there, and of each commit what becomes of the table.
And a conflict has to be one: of a row that both have changed, or of a key that both have brought.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import DataFrame

import hive_acid.spark
from hive_acid.errors import DuplicateKeyError, MergeCardinalityError, WriteConflictError
from hive_acid.spark import AcidSession

pytestmark = pytest.mark.spark

KINDS: dict[str, list[Any]] = {
    "int": [1, 2, 3, 4, 5, -6],
    "double": [0.0, -0.0, math.nan, 1.5, -1.5, math.inf],
    "char(3)": ["a", "a ", "b", "", " ", "B"],
    "string": ["a", "a ", "á", "a\u0301", "", "x" * 50],
}
STEPS = 14
_TOKENS = itertools.count()

Table = dict[Any, tuple[str, int]]
"""By the key, as it is compared: a value, and a number of the row's own."""


def compared(kind: str, value: Any) -> Any:
    """What is equal for keys that are."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.rstrip(" ") if kind.startswith("char") and value is not None else value


@dataclass
class Open:
    """A transaction as the model has it: what it sees, and the rows of others that it has deleted or replaced."""

    view: Table
    before: Table
    gone: set[int] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    hidden: set[int] = field(default_factory=set)
    """Rows that others have deleted since, of which it sees another one with the same key."""
    mentioned: set[Any] = field(default_factory=set)
    others: list[tuple[set[int], set[Any]]] = field(default_factory=list)
    """Of those that have committed since: which rows they have changed, and which keys they have added."""

    def taken(self, keys: list[Any], committed: Table) -> list[int]:
        """The rows by now that have one of the keys."""
        there = [row[1] for key, row in self.view.items() if key in keys and row[1] in self.own]
        return there + [row[1] for key, row in committed.items() if key in keys and row[1] not in self.gone]

    def may_conflict(self, keys: list[Any]) -> bool:
        """Whether some other one has changed a row of it, or brought one of these keys or of its own."""
        own = {key for key, row in self.view.items() if row[1] in self.own} | self.mentioned | {*keys}
        return any((self.gone | self.hidden) & changed or own & added for changed, added in self.others)

    def drop(self, key: Any) -> None:
        token = self.view.pop(key)[1]
        if token in self.own:
            self.own.discard(token)
        else:
            self.gone.add(token)

    def put(self, key: Any, value: str) -> None:
        token = next(_TOKENS)
        if key in self.view:
            self.hidden.add(self.view[key][1])
        self.view[key] = value, token
        self.own.add(token)


class Walk:
    """Two sessions on one table."""

    def __init__(self, sessions: list[AcidSession], kind: str, seed: int, *, partitioned: bool) -> None:
        self.kind, self.random, self.sessions = kind, random.Random(seed), sessions
        self.committed: Table = {}
        self.open: list[Open | None] = [None for _ in sessions]
        where = "PARTITIONED BY (p string)" if partitioned else ""
        column = "" if partitioned else ", p string"
        sessions[0].sql(f"CREATE TABLE d.t (k {kind}, v string{column}, PRIMARY KEY (k)) {where}")
        self.done: list[str] = []

    def frame(self, acid: AcidSession, keys: list[Any], news: list[Any] | None = None) -> DataFrame:
        """Rows with these keys, and a value and a partition each."""
        of = "double" if self.kind == "double" else "int" if self.kind == "int" else "string"
        rows = [
            (key, f"v{next(_TOKENS)}", self.random.choice("xyz"), new)
            for key, new in zip(keys, news or keys, strict=True)
        ]
        return acid.spark.createDataFrame(rows, f"k {of}, v string, p string, new {of}")

    def step(self) -> None:
        at = self.random.randrange(len(self.sessions))
        acid, current = self.sessions[at], self.open[at]
        if current is None:
            acid.begin_transaction()
            acid.table("d.t").count()
            current = self.open[at] = Open(dict(self.committed), dict(self.committed))
        ways = [self.insert, self.insert, self.insert, self.delete, self.update, self.move, self.upsert, self.end]
        way = self.random.choice(ways)
        conflict = None
        try:
            way(at, acid, current)
        except WriteConflictError as error:
            conflict = str(error)
        if conflict is not None:
            assert current.may_conflict(self.keys), (self.done, conflict)
            self.done.append(f"{at} conflicts: {conflict[:80]}")
            self.open[at] = None
            if acid._blocks.by_words is not None:
                acid.end_transaction(commit=False)
        self.check()

    keys: list[Any] = []  # noqa: RUF012 - those of the statement

    def chosen(self, *, nulls: bool = False) -> list[Any]:
        given = self.random.choices(KINDS[self.kind], k=self.random.randint(1, 3))
        if nulls and self.random.random() < 0.1:
            given.append(None)
        self.keys = [compared(self.kind, key) for key in given]
        self.done.append(f"{given}")
        return given

    def expecting(self, fails: bool, run: Callable[[], object]) -> bool:
        """Run a statement that is to fail by its keys, or is not; whether it has not."""
        why = None
        try:
            run()
        except DuplicateKeyError as error:
            why = str(error)
        assert (why is not None) is fails, (self.done, why or "was accepted")
        return why is None

    def insert(self, at: int, acid: AcidSession, current: Open) -> None:
        self.done.append(f"{at} insert")
        given = self.chosen(nulls=True)
        rows = self.frame(acid, given)
        values = [row.v for row in rows.collect()]
        alike = None in self.keys or len({*self.keys}) < len(self.keys)
        taken = current.taken(self.keys, self.committed)
        if self.expecting(alike or bool(taken), lambda: acid.insert("d.t", rows.drop("new"))):
            for key, value in zip(self.keys, values, strict=True):
                current.put(key, value)

    def delete(self, at: int, acid: AcidSession, current: Open) -> None:
        self.done.append(f"{at} delete")
        rows = self.frame(acid, self.chosen())
        acid.delete("d.t", source=rows.select("k"), on="t.k = s.k")
        for key in {*self.keys} & {*current.view}:
            current.drop(key)

    def update(self, at: int, acid: AcidSession, current: Open) -> None:
        self.done.append(f"{at} update")
        (key,) = self.random.choices(KINDS[self.kind])
        self.keys = [compared(self.kind, key)]
        rows = self.frame(acid, [key])
        value = rows.collect()[0].v
        acid.update("d.t", {"v": "s.v", "p": "s.p"}, source=rows, on="t.k = s.k")
        if self.keys[0] in current.view:
            current.drop(self.keys[0])
            current.put(self.keys[0], value)

    def move(self, at: int, acid: AcidSession, current: Open) -> None:
        """Give a row another key."""
        old, new = self.random.choices(KINDS[self.kind], k=2)
        self.done.append(f"{at} move {old!r} to {new!r}")
        was, self.keys = compared(self.kind, old), [compared(self.kind, new)]
        rows = self.frame(acid, [old], [new])
        there = current.view.get(was)
        fails = False
        if there is not None:
            fails = any(token != there[1] for token in current.taken(self.keys, self.committed))
        if self.expecting(fails, lambda: acid.update("d.t", {"k": "s.new"}, source=rows, on="t.k = s.k")) and there:
            current.drop(was)
            current.put(self.keys[0], there[0])

    def upsert(self, at: int, acid: AcidSession, current: Open) -> None:
        self.done.append(f"{at} upsert")
        given = self.chosen(nulls=True)
        rows = self.frame(acid, given).drop("new")
        values = [row.v for row in rows.collect()]
        current.mentioned |= {*self.keys}
        twice = {key for key in self.keys if self.keys.count(key) > 1}
        replaced = {row[1] for key, row in current.view.items() if key in self.keys}
        others = [token for token in current.taken(self.keys, self.committed) if token not in replaced]
        fails = None in self.keys or bool(twice - {*current.view}) or bool(others)
        if twice & {*current.view}:
            with pytest.raises((MergeCardinalityError, DuplicateKeyError)):
                acid.upsert("d.t", rows)
            return
        if self.expecting(fails, lambda: acid.upsert("d.t", rows)):
            for key, value in zip(self.keys, values, strict=True):
                if key in current.view:
                    current.drop(key)
                current.put(key, value)

    def end(self, at: int, acid: AcidSession, current: Open) -> None:
        commits = self.random.random() < 0.75
        self.done.append(f"{at} {'commits' if commits else 'aborts'}")
        self.keys = []
        acid.end_transaction(commit=commits)
        self.open[at] = None
        if not commits:
            return
        changed = set(current.gone)
        self.committed = {key: row for key, row in self.committed.items() if row[1] not in current.gone}
        assert current.gone <= {row[1] for row in current.before.values()}
        added = {key: row for key, row in current.view.items() if row[1] in current.own}
        assert not added.keys() & self.committed.keys(), (self.done, "both have the key")
        self.committed |= added
        for other in self.open:
            if other is not None:
                other.others.append((changed, {*added}))

    def check(self) -> None:
        """The table has what has been committed."""
        with hive_acid.spark.session(self.sessions[0].spark, self.sessions[0].connection.uri) as reader:
            found = [(compared(self.kind, row.k), row.v) for row in reader.table("d.t").collect()]
        assert sorted(map(repr, found)) == sorted(repr((key, row[0])) for key, row in self.committed.items()), self.done


@pytest.mark.parametrize(
    ("kind", "partitioned", "seed"),
    [(kind, bool(number % 2), number) for number, kind in enumerate(("int", "double", "char(3)", "string"))],
)
def test_keys_are_kept_as_the_model_keeps_them(acid: AcidSession, kind: str, partitioned: bool, seed: int) -> None:
    with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
        walk = Walk([acid, other], kind, seed, partitioned=partitioned)
        for _ in range(STEPS):
            walk.step()
        for at, session in enumerate(walk.sessions):
            if walk.open[at] is not None:
                session.end_transaction(commit=False)
