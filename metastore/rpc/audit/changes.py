"""The methods that change something, each of which is written down; the others are if they are refused.

Not among them are those that only read, and what every reader and writer does beside its changes: transactions are
opened, locks taken and given back, heartbeats sent. What a writer writes to is in `allocate_table_write_ids`, or in
`hive_acid_begin` where that gives write ids, and its end in `commit_txn` or `abort_txn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_METHODS = """
abort_Compactions abort_txn abort_txns add_check_constraint add_default_constraint add_dynamic_partitions
add_foreign_key add_master_key add_not_null_constraint add_partition add_partition_with_environment_context
add_partitions add_partitions_pspec add_partitions_req add_primary_key add_token add_unique_constraint
add_write_notification_log add_write_notification_log_in_batch allocate_table_write_ids alter_catalog alter_database
alter_database_req alter_function alter_partition alter_partition_with_environment_context alter_partitions
alter_partitions_req alter_partitions_with_environment_context alter_table alter_table_req alter_table_with_cascade
alter_table_with_environment_context append_partition append_partition_by_name
append_partition_by_name_with_environment_context append_partition_req append_partition_with_environment_context
cancel_delegation_token cm_recycle commit_txn compact compact2 create_catalog create_database create_database_req
create_function create_role create_table create_table_req create_table_with_constraints
create_table_with_environment_context delete_column_statistics_req delete_partition_column_statistics
delete_table_column_statistics drop_catalog drop_constraint drop_database drop_database_req drop_function drop_partition
drop_partition_by_name drop_partition_by_name_with_environment_context drop_partition_req
drop_partition_with_environment_context drop_partitions_req drop_role drop_table drop_table_req
drop_table_with_environment_context exchange_partition exchange_partitions find_next_compact find_next_compact2
fire_listener_event get_delegation_token grant_privileges grant_revoke_privileges grant_revoke_role grant_role
hive_acid_begin hive_acid_commit_rows hive_acid_orphans hive_acid_removals hive_acid_replace_table mark_cleaned
mark_compacted mark_failed mark_refused refresh_privileges remove_compaction_metrics_data remove_master_key remove_token
rename_partition rename_partition_req renew_delegation_token repl_tbl_writeid_state revoke_privileges revoke_role
seed_txn_id seed_write_id set_aggr_stats_for set_hadoop_jobid setOption submit_for_cleanup truncate_table
truncate_table_req update_compaction_metrics_data update_compactor_state update_creation_metadata update_master_key
update_partition_column_statistics update_partition_column_statistics_req update_table_column_statistics
update_table_column_statistics_req update_transaction_statistics
"""
CHANGES = frozenset(_METHODS.split())


def is_change(method: str, arguments: Sequence[Any]) -> bool:
    """Whether a call changes something; one whose arguments are not there any more may."""
    if method == "hive_acid_begin" and arguments:
        return bool(arguments[0].written)
    return method in CHANGES
