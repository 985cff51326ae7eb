"""What is in the way of a lock."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import NoSuchObjectError
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.why.models import Answer
from metastore.why.words import lasting, who

MOST_BLOCKERS = 100
_STATES = {"a": "holds", "w": "waits for"}


class LockAnswers:
    """Answers about requests for locks."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def lock(self, lock_id: int) -> list[Answer]:
        """What is in the way of a request. Raises NoSuchObjectError if it is not on record."""
        if blockers := self._blockers(lock_id, None):
            return blockers
        row = self._db.call_one("why_lock", lock_id)
        assert row is not None
        components, waiting, txn_id, user, host, agent, acquired_ms, on = row
        if not components:
            raise NoSuchObjectError(f"lock {lock_id} is not on record: it was released, or its transaction has ended")
        owner = TxnOwner(user, host, agent)
        if waiting:
            return [
                Answer(
                    f"lock {lock_id}",
                    "free",
                    f"nothing is in the way of lock {lock_id} of {who(owner)} on {on} any more",
                    "wait for its next look (check_lock), which grants it",
                    None,
                    txn_id,
                    lock_id,
                    None,
                    owner,
                )
            ]
        ends = (
            f"ABORT TRANSACTIONS {txn_id}" if txn_id else "unlock it, or wait for hive.txn.timeout without a heartbeat"
        )
        return [
            Answer(
                f"lock {lock_id}",
                "acquired",
                f"lock {lock_id} on {on} is held by {who(owner)} {lasting(acquired_ms)}: it waits for nothing",
                f"nothing; {ends} to free what it holds",
                acquired_ms,
                txn_id,
                lock_id,
                None,
                owner,
            )
        ]

    def of_transaction(self, txn_id: int) -> list[Answer]:
        """What is in the way of the requests of a transaction; nothing if none of them waits."""
        return self._blockers(None, txn_id)

    def _blockers(self, lock_id: int | None, txn_id: int | None) -> list[Answer]:
        return [_blocked(row) for row in self._db.call("why_waiting", lock_id, txn_id, MOST_BLOCKERS)]


def _blocked(row: tuple[Any, ...]) -> Answer:
    lock_id, component, db, table, partition, kind = row[:6]
    blocker, blocker_txn, b_db, b_table, b_partition, b_kind, b_state, user, host, agent, since_ms = row[6:]
    owner = TxnOwner(user, host, agent)
    holder = f"transaction {blocker_txn}" if blocker_txn else f"lock {blocker}, outside of transactions,"
    if b_state == "w":
        action = f"`metastore why --lock {blocker}` says what that one waits for; requests are served in their order"
    elif blocker_txn:
        action = f"let it end, or ABORT TRANSACTIONS {blocker_txn}"
    else:
        action = (
            f"let its holder unlock it; without heartbeats it goes after hive.txn.timeout (`SHOW LOCKS` has {blocker})"
        )
    return Answer(
        f"lock {lock_id}.{component}",
        "blocked" if b_state == "a" else "queued_behind",
        f"{_type(kind)} on {_place(db, table, partition)} waits: {holder} of {who(owner)} {_STATES[b_state]} "
        f"{_type(b_kind)} on {_place(b_db, b_table, b_partition)} {lasting(since_ms)}",
        action,
        since_ms,
        blocker_txn,
        blocker,
        None,
        owner,
    )


def _type(letter: str) -> str:
    return LockType(letter).name


def _place(db: str, table: str | None, partition: str | None) -> str:
    name = f"{db}.{table}" if table else f"database {db}"
    return f"{name}/{partition}" if partition else name
