"""Files that the next batches of running queries need: transactions by which the metastore keeps them.

A transaction keeps what is replaced by compactions that commit after its beginning. So the rows of later writes stay
where these have put them, each in a directory of its own, until a batch has had them.
"""

from __future__ import annotations

from collections.abc import Callable

from hive_acid.errors import TransactionExpiredError
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.spark.stream_source.position import Position
from hive_acid.transactions.transaction import Transaction


class KeptFiles:
    """By query the transactions that are open, each with the position that it sees: of what it has had, and is to have.

    Each query asks on its own thread.
    """

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[Position, Transaction]]] = {}
        self._had: dict[str, Position] = {}

    def from_now(self, query: str, now: Position, begin: Callable[[], tuple[Position, Transaction]]) -> Position:
        """Up to where files are kept for a query, whose batch before is over: to `now`, or what `begin` sees after it.

        While it has still to reach the one before it is that one.
        """
        kept = self._kept.setdefault(query, [])
        had = self._had.get(query)
        while len(kept) > 1 and had is not None and kept[1][0].is_within(had):
            kept.pop(0)[1].end_later()
        if not kept or (len(kept) == 1 and kept[0][0] != now):
            kept.append(begin())
        return kept[-1][0]

    def compacted_by(self, query: str) -> ValidTxnList | None:
        """The snapshot of whose moment files are kept, so that later compactions count for nothing; None for now."""
        kept = self._kept.get(query)
        return kept[0][1].snapshot if kept else None

    def are_kept(self, query: str) -> bool:
        """Whether the metastore has kept them until now. If not, what `compacted_by` says is another one afterwards."""
        kept = self._kept.get(query, [])
        try:
            if kept:
                kept[0][1].check_alive()
        except TransactionExpiredError:
            kept.pop(0)
            return False
        return True

    def reads_up_to(self, query: str, end: Position) -> None:
        """Note how far the query will have come when it asks again."""
        self._had[query] = end

    def end(self, query: str) -> None:
        """The query has ended."""
        self._had.pop(query, None)
        for _, transaction in self._kept.pop(query, []):
            transaction.end_later()
