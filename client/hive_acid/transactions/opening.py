"""How transactions begin: opened, with what they are going to use, then their snapshot, then heartbeats.

Which tables a transaction uses is said with its opening. The metastore's Cleaner then waits for it on these, and on no
others, from its first moment; said later, files that its snapshot needs might be gone by then.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from hive_acid.errors import HiveAcidError
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.ids import TxnId
from hive_acid.protocol import Question
from hive_acid.transactions.life import Opening, Owner
from hive_acid.transactions.states import Isolation, TransactionKind
from hive_acid.transactions.transaction import AGENT_INFO, Transaction
from hive_acid.wire import ttypes


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
) -> list[Transaction]:
    """Open `count` transactions in one call; each sees what had committed when all of them were open.

    `tables` (``db.table``) are all that they use; none if that is not known, and then nothing is cleaned until their
    end. `may_begin_again` is of `Transaction`; `only_adds` says that they neither read rows nor change any: they get no
    snapshot.
    """
    agent_info = agent_info or f"{AGENT_INFO} ({connection.application})"
    named = sorted({name.lower() for name in tables})
    request = ttypes.OpenTxnRequest(
        num_txns=count,
        user=connection.user,
        hostname=socket.gethostname(),
        agentInfo=agent_info,
        txn_type=getattr(ttypes.TxnType, kind.value),
        tables=named,
        mayBeginAgain=may_begin_again or only_adds,
    )
    questions = [Question("open_txns", (request,))]
    if not only_adds:
        questions.append(Question("get_open_txns", ()))
    opened, *answers = connection.ask(*questions)
    if isinstance(opened, HiveAcidError):
        raise opened
    txn_ids = [TxnId(txn_id) for txn_id in opened.txn_ids]
    transactions: list[Transaction] = []
    try:
        answer = answers[0] if answers else None
        if isinstance(answer, HiveAcidError):
            raise answer
        for txn_id in txn_ids:
            snapshot = answer and ValidTxnList.from_open_txns(
                answer.txn_high_water_mark, answer.open_txns, answer.abortedBits, own_txn_id=txn_id
            )
            transactions.append(
                Transaction(
                    connection,
                    Opening(
                        *(txn_id, kind, snapshot, frozenset(named), may_begin_again, lock_timeout_ms, agent_info),
                        isolation=isolation,
                    ),
                )
            )
        for transaction in transactions:
            connection.heartbeats.add(transaction)
            if named and not opened.tablesNamed and not only_adds:  # another metastore than hive-acid's
                transaction.reads_only(*named)
    except BaseException:
        for transaction in transactions:
            connection.heartbeats.remove(transaction)
        with suppress(HiveAcidError):
            connection.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=txn_ids))
        raise
    return transactions
