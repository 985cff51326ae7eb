"""What operators ask, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.txn.models import TxnOwner


@dataclass(frozen=True, slots=True)
class Answer:
    """One reason.

    `subject` is what it is about, `code` the reason for programs, `message` for people, `action` what to do next.
    `since_ms` says since when, in epoch milliseconds. Of what is in the way: the transaction, lock or compaction, who
    owns it, and the files (directories, as locations) that are kept for it.
    """

    subject: str
    code: str
    message: str
    action: str
    since_ms: int | None = None
    txn_id: int | None = None
    lock_id: int | None = None
    compaction_id: int | None = None
    owner: TxnOwner | None = None
    files: tuple[str, ...] = field(default=())
