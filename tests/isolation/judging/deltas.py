"""The tables of a run: what each transaction wrote, by table, partition and write id.

Each write makes the delta directory that a real one would make, without files in it; the lists themselves are kept in
memory. Nobody hides or removes anything for an abort but the server's Cleaner: a reader keeps what its snapshot says is
valid and the disk still has, so a write id that is valid too early or too long shows, and so does a directory that goes
too early.
"""

from __future__ import annotations

import random
import threading
from bisect import insort
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.format.names import base_name, delta_name
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from tests.isolation.judging.history import Elements, Key

DATABASE = "iso"


@dataclass(frozen=True)
class _Base:
    """What a compaction by `txn_id` made of all up to `write_id`."""

    write_id: int
    txn_id: int
    elements: Elements
    rows: Set[Key]


class Deltas:
    """Versions of lists by write id and statement; safe to use from many threads."""

    def __init__(self, warehouse: Path) -> None:
        self._root = warehouse / f"{DATABASE}.db"
        self._guard = threading.Lock()
        self._written: dict[Key, list[tuple[int, int, Elements]]] = {}
        self._inserted: dict[Key, list[tuple[int, Key]]] = {}
        self._bases: dict[Key, list[_Base]] = {}

    def write(self, key: Key, write_id: int, statement: int, elements: Elements) -> None:
        """Keep what a statement made of a list."""
        self._directory(key, write_id, statement).mkdir(exist_ok=True)
        with self._guard:
            insort(self._written.setdefault(key, []), (write_id, statement, elements))

    def writes(self, key: Key) -> list[int]:
        """The write ids that have made something of a list."""
        with self._guard:
            return [write_id for write_id, _, _ in self._written.get(key, ())]

    def compact(self, key: Key, visible: ValidWriteIdList, txns: ValidTxnList, txn_id: int) -> None:
        """Merge all that a compactor's snapshot sees into a base, which is visible once its transaction is."""
        rows = {row for row, elements in self.rows(key, visible, txns).items() if elements}
        base = _Base(visible.high_water_mark, txn_id, self.read(key, visible, txns), rows)
        with self._guard:
            self._bases.setdefault(key, []).append(base)
        self._base_directory(key, base).mkdir(exist_ok=True)

    def read(self, key: Key, visible: ValidWriteIdList, txns: ValidTxnList) -> Elements:
        """The list as a snapshot has it: as the statement with the highest valid write id left it."""
        base = self._base(key, visible, txns)
        with self._guard:
            written = list(self._written.get(key, ()))
        for write_id, statement, elements in reversed(written):
            if base is not None and write_id <= base.write_id:
                break
            if visible.is_valid(write_id) and self._directory(key, write_id, statement).is_dir():
                return elements
        return base.elements if base is not None else ()

    def _base(self, key: Key, visible: ValidWriteIdList, txns: ValidTxnList) -> _Base | None:
        """The base to read: the highest that the snapshot accepts."""
        with self._guard:
            bases = list(self._bases.get(key, ()))
        accepted = [
            base
            for base in bases
            if visible.is_valid_base(base.write_id)
            and txns.is_valid(base.txn_id)
            and self._base_directory(key, base).is_dir()
        ]
        return max(accepted, key=lambda base: (base.write_id, base.txn_id), default=None)

    def insert(self, key: Key, write_id: int, element: int) -> Key:
        """Insert a row beside a list, without a look at it; the row is a list of its own, of one element."""
        self._directory(key, write_id, 0).mkdir(exist_ok=True)
        row = Key(key.table, f"{key.partition}/row {element}")
        with self._guard:
            self._inserted.setdefault(key, []).append((write_id, row))
        return row

    def rows(self, key: Key, visible: ValidWriteIdList, txns: ValidTxnList) -> dict[Key, Elements]:
        """The rows ever inserted beside a list, each as a snapshot has it: there or not."""
        base = self._base(key, visible, txns)
        with self._guard:
            inserted = list(self._inserted.get(key, ()))
        found: dict[Key, Elements] = {}
        for write_id, row in inserted:
            if base is not None and write_id <= base.write_id:
                is_there = row in base.rows
            else:
                is_there = visible.is_valid(write_id) and self._directory(key, write_id, 0).is_dir()
            found[row] = (element_of(row),) if is_there else ()
        return found

    def _base_directory(self, key: Key, base: _Base) -> Path:
        return self._root / key.table / key.partition / base_name(base.write_id, base.txn_id)

    def _directory(self, key: Key, write_id: int, statement: int) -> Path:
        return self._root / key.table / key.partition / delta_name(write_id, write_id, statement)


def element_of(row: Key) -> int:
    """The element of an inserted row."""
    return int(row.partition.rpartition(" ")[2])


class Keyspace:
    """Which lists are in use: a few of each table, each replaced by a new one when it is long."""

    def __init__(self, tables: int, width: int, longest: int, appends: int) -> None:
        """Lists for `appends` appends in all, `width` of each table at a time."""
        self._guard = threading.Lock()
        self._longest = longest
        self._count = width + 2 * appends // (longest * tables)
        self._active = {f"t{table}": [Key(f"t{table}", f"p={n}") for n in range(width)] for table in range(tables)}
        self._next = dict.fromkeys(self._active, width)
        self._lengths: dict[Key, int] = {}
        self.used = {key for keys in self._active.values() for key in keys}

    def create(self, connection: Connection) -> None:
        """Make the tables and all partitions that will be used."""
        connection.create_database(DATABASE)
        for name in self._active:
            keys = (Column("p", "int"),)
            table = Table(DATABASE, name, (Column("element", "bigint"),), keys, {"transactional": "true"})
            connection.create_table(table)
            table = connection.table(DATABASE, name)
            connection.add_partitions(table, {f"p={n}": f"{table.location}/p={n}" for n in range(self._count)})

    def choose(self, chance: random.Random, count: int, table: str | None = None) -> list[Key]:
        """Different lists, of one table if it is given; the first ones of each table are asked for more often."""
        with self._guard:
            chosen: dict[Key, None] = {}
            tables = list(self._active)
            for _ in range(count * 4):
                keys = self._active[table or chance.choice(tables)]
                chosen[keys[int(len(keys) * chance.random() ** 1.5)]] = None
                if len(chosen) == count:
                    break
            return list(chosen)

    def appended(self, key: Key) -> None:
        """A list has grown."""
        with self._guard:
            self._lengths[key] = self._lengths.get(key, 0) + 1
            keys, following = self._active[key.table], self._next[key.table]
            if self._lengths[key] >= self._longest and key in keys and following < self._count:
                fresh = Key(key.table, f"p={following}")
                self._next[key.table] += 1
                keys[keys.index(key)] = fresh
                self.used.add(fresh)
