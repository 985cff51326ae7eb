"""How transactions begin: opened, with what they are going to use, then their snapshot, then heartbeats.

Which tables a transaction uses is said with its opening. The metastore's Cleaner then waits for it on these, and on no
others, from its first moment; said later, files that its snapshot needs might be gone by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hive_acid.transactions.beginning import Opened, Opening, Owner, abort, open_many, open_one
from hive_acid.transactions.states import Isolation, TransactionKind
from hive_acid.transactions.transaction import AGENT_INFO, Transaction


class Opener(Owner, Protocol):
    """What it takes to open transactions."""

    @property
    def application(self) -> str: ...


def open_transactions(
    connection: Opener,
    count: int,
    kind: TransactionKind,
    *,
    lock_timeout_ms: int,
    tables: Iterable[str] = (),
    may_begin_again: bool = False,
    only_adds: bool = False,
    agent_info: str | None = None,
    isolation: Isolation = Isolation.SNAPSHOT,
    with_lock: bool = False,
) -> list[Transaction]:
    """Open `count` transactions in one call; each sees what had committed when all of them were open.

    `tables` (``db.table``) are all that they use; none if that is not known, and then nothing is cleaned until their
    end. `may_begin_again` is of `Transaction`; `only_adds` says that they neither read rows nor change any: they get no
    snapshot. One that is opened `with_lock` is so when it asks for its first lock, in the same call, or for anything
    else: it sees what had committed by then.
    """
    opening = Opening(
        kind,
        frozenset(name.lower() for name in tables),
        may_begin_again,
        lock_timeout_ms,
        agent_info or f"{AGENT_INFO} ({connection.application})",
        isolation,
        only_adds,
    )
    if with_lock:
        return [Transaction(connection, opening) for _ in range(count)]
    opened = [open_one(connection, opening)] if count == 1 else open_many(connection, opening, count)
    transactions = [Transaction(connection, opening) for _ in opened]
    try:
        for transaction, one in zip(transactions, opened, strict=True):
            transaction.is_opened_as(one)
        for transaction, one in zip(transactions, opened, strict=True):
            transaction.names_tables(one)
    except BaseException:
        _let_go(connection, transactions, opened)
        raise
    return transactions


def _let_go(connection: Opener, transactions: Iterable[Transaction], opened: Iterable[Opened]) -> None:
    for transaction in transactions:
        connection.heartbeats.remove(transaction)
    abort(connection, [one.id for one in opened])
