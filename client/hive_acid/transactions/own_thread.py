"""What a thread has open itself: it is not waited for by that thread, since it does not end before the wait."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Collection, Sequence

from hive_acid.errors import SnapshotInTheWayError, TransactionInTheWayError
from hive_acid.ids import TxnId, WriteId
from hive_acid.transactions.heartbeats import Heartbeats, Leased

LOG = logging.getLogger(__name__)


def refuse_snapshots(heartbeats: Heartbeats, tables: Sequence[str]) -> None:
    """Raise SnapshotInTheWayError if this thread reads one of the tables, which are to be locked against readers."""
    found = heartbeats.reading(tables)
    if found:
        gc.collect()  # frames in circles are in nobody's way
        found = heartbeats.reading(tables)
    own = [one for one in found if one.thread == threading.get_ident()]
    if own:
        raise SnapshotInTheWayError(
            f"the lock on {', '.join(tables)} is not waited for, since this very thread reads of it: transaction "
            f"{_ids(own)}. Let the frames go (del frame, or the end of acid.snapshot()) and try again"
        )
    if found:
        LOG.warning(
            "the lock on %s waits for snapshots that other threads of this program have: transaction %s",
            ", ".join(tables),
            _ids(found),
        )


def other_blocks(heartbeats: Heartbeats, than: TxnId) -> list[Leased]:
    """The transactions whose blocks this thread is within, other than one."""
    return [one for one in heartbeats.blocks() if one.id != than]


def refuse_writes(
    heartbeats: Heartbeats, than: TxnId, database: str, table: str, among: Collection[WriteId] | None
) -> None:
    """Raise TransactionInTheWayError if a block of another transaction `than` this one writes to a table.

    `among` are the write ids that are in the way, if not all are.
    """
    written = [(one, one.written_as(database, table)) for one in other_blocks(heartbeats, than)]
    if found := [one for one, write_id in written if write_id is not None and (among is None or write_id in among)]:
        raise in_the_way(f"the end of what is written to {database}.{table}", found)


def in_the_way(waited_for: str, own: Sequence[Leased]) -> TransactionInTheWayError:
    """What is said instead of waiting for blocks of this thread."""
    return TransactionInTheWayError(
        f"{waited_for} is not waited for, since this very thread is within a block that is in the way: transaction "
        f"{_ids(own)}. Do it within that block, or leave the block first"
    )


def _ids(transactions: Sequence[Leased]) -> str:
    return ", ".join(str(one.id) for one in transactions)
