"""What stands for a transaction where there is none: files of plain tables come and go without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from hive_acid.ids import TxnId, WriteId
from hive_acid.transactions.transaction import Transaction


class _Untransacted:
    """The part of a transaction that writes of plain tables ask for."""

    id = TxnId(1)

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []
        self.afterwards: list[Callable[[], None]] = []

    def on_abort(self, undo: Callable[[], None]) -> None:
        self.undo.append(undo)

    def on_commit(self, do: Callable[[], None]) -> None:
        self.afterwards.append(do)

    def uses(self, database: str, table: str, table_id: int) -> None:
        """Nothing holds a table where it is."""

    def check_alive(self) -> None:
        """Nobody gives it up."""

    def written_as(self, database: str, table: str) -> WriteId | None:
        """Its files have no write ids."""
        return None


@contextmanager
def untransacted() -> Iterator[Transaction]:
    """For the writes of one plain table: an error that leaves the block takes back what they have put there."""
    this = _Untransacted()
    try:
        yield cast(Transaction, this)
    except BaseException:
        for undo in reversed(this.undo):
            undo()
        raise
    for do in this.afterwards:
        do()
