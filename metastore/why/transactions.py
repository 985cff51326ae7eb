"""How a transaction stands: what it waits for, and what waits for it."""

from __future__ import annotations

from metastore.compaction.models import target_name
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.states import TxnState, TxnType
from metastore.why.cleaning import CleaningAnswers
from metastore.why.locks import LockAnswers
from metastore.why.models import Answer
from metastore.why.words import ago, lasting, span, who


class TransactionAnswers:
    """Answers about transactions."""

    def __init__(self, db: Database, locks: LockAnswers, cleaning: CleaningAnswers, config: TxnConfig) -> None:
        self._db = db
        self._locks = locks
        self._cleaning = cleaning
        self._config = config

    def transaction(self, txn_id: int) -> list[Answer]:
        """What there is to say of a transaction, whatever its state."""
        row = self._db.call_one("why_txn", txn_id)
        subject = f"transaction {txn_id}"
        if row is None:
            return [
                Answer(
                    subject,
                    "unknown",
                    f"{subject} is not on record: it was never opened, or has ended and is forgotten",
                    "nothing: it holds nothing and waits for nothing",
                    txn_id=txn_id,
                )
            ]
        state, number, user, host, agent, started_ms, heartbeat_ms, ended_ms, reason, left_in = row
        owner = TxnOwner(user, host, agent)
        kind = TxnType(number).name
        if TxnState(state) is TxnState.COMMITTED:
            message = f"{subject} ({kind}) of {who(owner)} has committed {ago(ended_ms)}"
            return [Answer(subject, "committed", message, "nothing", ended_ms, txn_id, owner=owner)]
        if TxnState(state) is TxnState.ABORTED:
            message = f"{subject} ({kind}) of {who(owner)} was aborted {ago(ended_ms)}: {reason}"
            if left_in:
                message += f"; what it wrote may still lie in {', '.join(left_in)}, where nobody reads it"
            action = "begin again; the Cleaner removes what it has left"
            return [Answer(subject, "aborted", message, action, ended_ms, txn_id, owner=owner)]
        repl = TxnType(number) is TxnType.REPL_CREATED
        timeout_ms = self._config.repl_timeout_ms if repl else self._config.timeout_ms
        opened = Answer(
            subject,
            "open",
            f"{subject} ({kind}) of {who(owner)} is open {lasting(started_ms)}, last heard of {ago(heartbeat_ms)}; "
            f"{span(timeout_ms // 1000)} without a heartbeat abort it",
            f"wait for its end, or ABORT TRANSACTIONS {txn_id}",
            started_ms,
            txn_id,
            owner=owner,
        )
        held = [*self._locks.of_transaction(txn_id), *self._cleaning.held_by(txn_id)]
        return [opened, *self._conflicts(txn_id), *held]

    def _conflicts(self, txn_id: int) -> list[Answer]:
        """Of a transaction that is open, and that cannot commit any more: who was faster."""
        found = []
        for row in self._db.call("why_conflicts", txn_id):
            db, table, partition, other, ended_ms, user, host, agent = row
            owner = None if user is None else TxnOwner(user, host, agent)
            target = target_name(db, table, partition)
            whose = "" if owner is None else f" of {who(owner)}"
            message = (
                f"transaction {txn_id} cannot commit, since transaction {other}{whose} has changed {target}, too, and "
                f"committed {ago(ended_ms)}"
            )
            action = "abort it, and run it again on fresh data"
            found.append(Answer(target, "conflict", message, action, ended_ms, other, owner=owner))
        return found
