"""Bases of earlier statements of a transaction, kept while a later one has its own in their place.

A base has one name within a transaction (acid-format.md §2.2). If the later statement fails, the earlier one counts
again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from hive_acid.filesystem import files
from hive_acid.format.names import staging_name
from hive_acid.transactions.transaction import Transaction


@dataclass(slots=True)
class _Moved:
    """A directory and its hidden place; `is_there` says that all of it is."""

    directory: str
    place: str
    is_there: bool = False


class Aside:
    """The bases that one write replaces, in hidden directories below its table."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._moved: list[_Moved] = []

    @property
    def has_some(self) -> bool:
        """Whether any are there."""
        return bool(self._moved)

    def put(self, transaction: Transaction, directories: Iterable[str]) -> None:
        """Move directories there, to be removed with the commit."""
        for directory in directories:
            place = files.join(self._root, staging_name(transaction.id, uuid.uuid4().hex[:12]))
            moved = _Moved(directory, place)
            self._moved.append(moved)
            transaction.on_commit(partial(_remove, place))
            files.rename(directory, place)
            moved.is_there = True

    def bring_back(self) -> None:
        """Move them back, the last first, once what was put in their place is removed."""
        while self._moved:
            moved = self._moved[-1]
            if not moved.is_there:  # where a rename is a copy, a part of it may be
                files.rename(moved.directory, moved.place)
                moved.is_there = True
            files.remove(moved.directory)
            files.rename(moved.place, moved.directory)
            self._moved.pop()


def _remove(place: str) -> None:
    files.remove(place)
