"""What the figures of the present state mean, for whoever looks at them in Prometheus (transactions.md §4.12)."""

from __future__ import annotations

_STATES = {
    "initiated": "waits for a worker",
    "working": "runs",
    "ready_for_cleaning": "has succeeded and waits for the Cleaner",
    "failed": "failed",
    "succeeded": "succeeded and is cleaned",
    "did_not_initiate": "the Initiator could not queue",
    "refused": "was refused",
    "aborted": "was aborted",
}
MEANINGS = {
    "num_open_transactions": "Open transactions.",
    "num_open_repl_transactions": "Open transactions that a replication replays.",
    "num_open_non_repl_transactions": "Open transactions that no replication replays.",
    "oldest_open_repl_txn_id": "The oldest open transaction that a replication replays, 0 if there is none.",
    "oldest_open_repl_txn_age_in_sec": "How long that has been open.",
    "oldest_open_non_repl_txn_id": "The oldest open transaction that no replication replays, 0 if there is none.",
    "oldest_open_non_repl_txn_age_in_sec": "How long that has been open.",
    "num_aborted_transactions": "Aborted transactions of which something is still there.",
    "oldest_aborted_txn_id": "The oldest aborted transaction of which something is still there, 0 if there is none.",
    "oldest_aborted_txn_age_in_sec": "How long ago that was opened.",
    "num_locks": "Locks that are held or waited for, one for each table or partition.",
    "oldest_lock_age_in_sec": "How long the oldest lock has been held.",
    "tables_with_x_aborted_transactions": "Tables with more aborted writes than the threshold.",
    "num_writes_to_disabled_compaction_table": "Writes to tables with no_auto_compaction since their last compaction.",
    "oldest_ready_for_cleaning_age_in_sec": "How long the oldest compaction has waited for the Cleaner.",
    "compaction_num_txn_to_writeid": "Write ids on record.",
    "compaction_num_completed_txn_components": "Committed writes since the last compactions.",
    **{
        f"compaction_num_{state}": f"Tables and partitions whose latest compaction {words}."
        for state, words in _STATES.items()
    },
    "compaction_oldest_enqueue_age_in_sec": "How long the oldest compaction has waited for a worker.",
    "compaction_oldest_working_age_in_sec": "How long the oldest compaction has run.",
    "compaction_oldest_cleaning_age_in_sec": "How long the oldest cleaning has run.",
    "compaction_num_initiators": "Initiators that queued something lately.",
    "compaction_num_initiator_versions": "Versions of those Initiators.",
    "compaction_num_workers": "Workers that took something lately.",
    "compaction_num_worker_versions": "Versions of those workers.",
    "compaction_pools_initiated_item_count": "Compactions that wait for a worker, by pool.",
    "compaction_pools_working_item_count": "Compactions that run, by pool.",
    "compaction_pools_oldest_enqueue_age_in_sec": "How long the oldest compaction has waited for a worker, by pool.",
    "compaction_pools_oldest_working_age_in_sec": "How long the oldest compaction has run, by pool.",
    "compaction_num_obsolete_deltas": "Deltas that wait for the Cleaner; tables and partitions with the most.",
    "compaction_num_active_deltas": "Deltas that readers open; tables and partitions with the most.",
    "compaction_num_small_deltas": "Small deltas; tables and partitions with the most.",
}
