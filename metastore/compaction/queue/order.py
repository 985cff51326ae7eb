"""In which order compactions are listed: by columns that are known, since the wire gives them as text."""

from __future__ import annotations

from hive_acid.errors import MetaError

_ORDER_COLUMNS = {
    "id": "id",
    "database": "db",
    "table": "tbl",
    "partition": "partition",
    "type": "type",
    "state": "state",
    "enqueue_time": "enqueued_at",
    "start": "started_at",
    "end": "ended_at",
    "commit_time": "committed_at",
    "highest_write_id": "highest_write_id",
    "worker_id": "worker",
    "pool_name": "pool",
    "txn_id": "txn_id",
    "next_txn_id": "next_txn_id",
    "run_as": "run_as",
    "initiator_id": "initiator",
    "hadoop_job_id": "job_id",
    "error_message": "error_message",
    "duration": "ended_at - started_at",
    "bytes_before": "bytes_before",
    "bytes_after": "bytes_after",
}
"""What a list may be ordered by, in the words of the wire, where a prefix ``CC_`` or ``CQ_`` is allowed."""


def parse_order(order: str) -> str:
    """The order in SQL, made of nothing but words of ours: Hive's clients send columns and directions as text.

    Raises MetaError for anything else than known columns, each perhaps with a direction.
    """
    found = []
    for item in order.replace("`", "").replace('"', "").split(","):
        words = item.lower().split()
        name = words[0].removeprefix("cc_").removeprefix("cq_") if words else ""
        direction = words[1] if len(words) == 2 else "asc"
        if name not in _ORDER_COLUMNS or direction not in ("asc", "desc") or len(words) > 2:
            known = ", ".join(sorted(_ORDER_COLUMNS))
            raise MetaError(f"compactions cannot be ordered by '{order}': name one of {known}, and asc or desc")
        found.append(f"{_ORDER_COLUMNS[name]} {direction} NULLS LAST")
    return ", ".join(found)
