"""One transaction under way: what its client reads and writes, put down as it happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from tests.isolation.judging.deltas import Deltas
from tests.isolation.judging.history import Append, Elements, Key, Read, Transaction

ELEMENTS = itertools.count(1)
"""Each element is appended once."""


class Attempt:
    """The data side of a transaction; the calls are its session's."""

    def __init__(self, transaction: Transaction, deltas: Deltas, clock: Callable[[], float]) -> None:
        self.transaction = transaction
        self.write_ids: dict[str, int] = {}
        self._deltas = deltas
        self._clock = clock
        self._contents: dict[Key, Elements] = {}

    def note(self, words: str) -> None:
        """A call, or what came of it, for the story."""
        self.transaction.calls.append(f"{self._clock():.3f} {words}")

    def keep_write_id(self, table: str, write_id: int) -> None:
        """The write id to write by from now on."""
        self.write_ids[table] = write_id
        self.transaction.write_ids.append((table, write_id))

    def read(self, key: Key, visible: ValidWriteIdList, txns: ValidTxnList) -> None:
        """Look at a list through a snapshot."""
        self._contents[key] = self._deltas.read(key, visible, txns)
        self.transaction.operations.append(Read(key, self._contents[key], self._clock()))

    def append(self, key: Key, statement: int) -> None:
        """Put an element of our own at the end of what was read."""
        element = next(ELEMENTS)
        self._contents[key] = (*self._contents[key], element)
        self._deltas.write(key, self.write_ids[key.table], statement, self._contents[key])
        self.transaction.operations.append(Append(key, element))

    def read_rows(self, key: Key, visible: ValidWriteIdList, txns: ValidTxnList) -> None:
        """Look at the rows inserted beside a list."""
        for row, elements in self._deltas.rows(key, visible, txns).items():
            self.transaction.operations.append(Read(row, elements, self._clock()))

    def insert(self, key: Key) -> None:
        """Insert a row beside a list."""
        element = next(ELEMENTS)
        row = self._deltas.insert(key, self.write_ids[key.table], element)
        self.transaction.operations.append(Append(row, element))
