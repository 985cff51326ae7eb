"""RPC of readers that say what they read (transactions.md §2.4)."""

from __future__ import annotations

from hive_acid.ids import TxnId, WriteId
from metastore.rpc.call import Call, Handler
from metastore.txn.min_history import MinHistory


def handlers(min_history: MinHistory) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def add_write_ids_to_min_history(call: Call, txn_id: int, write_ids: dict[str, int] | None) -> None:
        needed = {name: WriteId(write_id) for name, write_id in (write_ids or {}).items()}
        min_history.add(TxnId(txn_id), needed)

    return {"add_write_ids_to_min_history": add_write_ids_to_min_history}
