"""What the tables should hold: rows by id, versions by stamps, and transactions that see snapshots.

A row's version has a stamp of its own, given when the version is written. The walk learns which ROW__ID belongs to a
stamp, and holds the table to it: the same stamp keeps its ROW__ID for ever, no other has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.data_walk.tables import Columns, Row, Shape

Partition = tuple[Any, ...]


class Version(NamedTuple):
    """A row as one write left it."""

    row: Row
    stamp: int


Content = dict[int, Version]
"""Rows by their id."""


@dataclass
class Txn:
    """An open transaction: the tables as it sees them, and what it has done to them.

    `changed` are partitions in which it has deleted rows, `claimed` those that count as changed if the service likes.
    `brought` are primary keys that it has added.
    """

    began: int
    seen: dict[str, Content]
    own: dict[str, Content]
    changed: set[tuple[str, Partition]] = field(default_factory=set)
    claimed: set[tuple[str, Partition]] = field(default_factory=set)
    brought: set[tuple[str, int]] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    verbs: set[str] = field(default_factory=set)
    """What it has done."""

    @property
    def rows(self) -> set[tuple[str, int]]:
        """The rows that it has seen and changed, by their tables and ids."""
        return {
            (table, number)
            for table, seen in self.seen.items()
            for number, version in seen.items()
            if self.own[table].get(number) != version
        }

    def copied(self) -> Txn:
        """As it is now."""
        own = {name: dict(rows) for name, rows in self.own.items()}
        changed, claimed, brought = set(self.changed), set(self.claimed), set(self.brought)
        return Txn(self.began, self.seen, own, changed, claimed, brought, set(self.written), set(self.verbs))

    def restore(self, to: Txn) -> None:
        """Be again what it was, as after a statement that has failed."""
        self.own, self.changed, self.claimed, self.written = to.own, to.changed, to.claimed, to.written
        self.brought, self.verbs = to.brought, to.verbs


class Commit(NamedTuple):
    """What a committed transaction has changed, and when it committed."""

    at: int
    changed: set[tuple[str, Partition]]
    claimed: set[tuple[str, Partition]]
    rows: set[tuple[str, int]]
    written: set[str]
    verbs: set[str]


BY_PARTITIONS = {"overwrite", "truncate"}
"""Verbs whose transactions conflict with who has changed other rows of the same partition, too."""
BY_CHANCE = {"merge", "upsert", "replace", "fail"}
"""Verbs whose transactions may: by rows that they match and others have added, and by statements that have failed."""


class Model:
    """All tables of a walk."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self.columns = {name: Columns.of(shape) for name, shape in shapes.items()}
        self.content: dict[str, Content] = {name: {} for name in shapes}
        self.commits: list[Commit] = []
        self._stamps = itertools.count(1)
        self._now = 0

    def begin(self) -> Txn:
        return Txn(self._now, *({name: dict(rows) for name, rows in self.content.items()} for _ in range(2)))  # type: ignore[arg-type]

    def conflict(self, txn: Txn) -> bool | None:
        """Whether the commit must be refused; None if it may be."""
        later = [commit for commit in self.commits if commit.at > txn.began]
        rows = txn.rows
        met = [commit for commit in later if txn.changed & commit.changed]
        if any(rows & commit.rows for commit in later) or (met and txn.verbs & BY_PARTITIONS):
            return True
        both = [(of, key) for of, key in txn.brought if key in self.content[of] and key not in txn.seen[of]]
        if both:
            return True if any(key in txn.own[of] for of, key in both) else None
        # Keys are compared over all partitions.
        keyed = {table for table in txn.written if self.columns[table].is_keyed}
        if any(
            txn.verbs & (BY_CHANCE | BY_PARTITIONS) or of.verbs & BY_PARTITIONS for of in later if of.written & keyed
        ):
            return None
        if any(txn.verbs & BY_CHANCE or commit.verbs & BY_PARTITIONS for commit in met):
            return None
        claims = txn.changed | txn.claimed
        meets = any((claims & commit.claimed) or (txn.claimed & commit.changed) for commit in later)
        return None if meets else False

    def may_collide(self, txn: Txn, tables: Iterable[str]) -> bool:
        """Whether somebody has changed one of these tables, or of those that it has changed, since it began."""
        of = {*tables, *(table for table, _ in txn.changed | txn.claimed | txn.brought)}
        later = [commit for commit in self.commits if commit.at > txn.began]
        keyed = (table for commit in later for table in commit.written if self.columns[table].is_keyed)
        return any(table in of for commit in later for table, _ in commit.changed | commit.claimed) or any(
            table in of for table in keyed
        )

    def commit(self, txn: Txn) -> None:
        """Make what the transaction has changed the content of the tables."""
        self._now += 1
        self.commits.append(Commit(self._now, txn.changed, txn.claimed, txn.rows, txn.written, txn.verbs))
        for name, own in txn.own.items():
            seen, content = txn.seen[name], self.content[name]
            for number in seen.keys() - own.keys():
                content.pop(number, None)
            for number, version in own.items():
                if seen.get(number) != version:
                    content[number] = version

    # --- changes of an open transaction --------------------------------------------------------

    def insert(self, txn: Txn, table: str, rows: Iterable[Row]) -> int:
        """Insert rows whose ids are free."""
        txn.written.add(table)
        new = {row["id"]: self._version(row) for row in rows}
        txn.own[table] |= new
        if self.columns[table].is_keyed:
            txn.brought |= {(table, number) for number in new}
        return len(new)

    def change(self, txn: Txn, table: str, to: Callable[[Row], Row | None]) -> tuple[int, int]:
        """Put `to` of each row in its place, where that is another object; None deletes. (updated, deleted)"""
        txn.written.add(table)
        own = txn.own[table]
        updated = deleted = 0
        for number, version in list(own.items()):
            new = to(version.row)
            if new is version.row:
                continue
            txn.changed.add((table, self.columns[table].partition_of(version.row)))
            if new is None:
                del own[number]
                deleted += 1
            else:
                own[number] = self._version(new)
                updated += 1
        if not self.columns[table].keys:
            txn.claimed.add((table, ()))
        return updated, deleted

    def replace(self, txn: Txn, table: str, rows: Iterable[Row], partitions: Callable[[Partition], bool]) -> int:
        """Put `rows` in the place of all that the chosen partitions hold."""
        columns = self.columns[table]
        of = {columns.partition_of(version.row) for version in txn.own[table].values()}
        self.change(txn, table, lambda row: None if partitions(columns.partition_of(row)) else row)
        rows = list(rows)
        txn.claimed |= {(table, place) for place in of | {columns.partition_of(row) for row in rows}}
        return self.insert(txn, table, rows)

    # --- columns -------------------------------------------------------------------------------

    def add_column(self, table: str, role: str, kind: str) -> None:
        """Null in all rows there are."""
        self.columns[table].types[role] = kind
        self.columns[table].names[role] = role
        self.content[table] = {
            number: Version({**version.row, role: None}, version.stamp)
            for number, version in self.content[table].items()
        }

    def rename_column(self, table: str, role: str, name: str) -> None:
        self.columns[table].names[role] = name

    def _version(self, row: Row) -> Version:
        return Version(row, next(self._stamps))
