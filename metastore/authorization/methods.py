"""What each method needs, in words that `needs` reads: the one table of it.

Lines of needs, all of which must be met, are followed by the methods that have them. Objects are named by the arguments
and fields of the IDL; ``[]`` stands for each element of a list. ``when`` has a need only where one of those fields says
something. Whoever has ADMIN on the server meets all of them. docs/operate/rights.md tells it to users.
"""

from __future__ import annotations

_NEEDS = """
anyone
    aliveSince flushCache getName getStatus getStatusDetails getVersion reinitialize set_ugi shutdown

# --- whoever has come in
user
    getCounter getCounters getCpuProfile getMetaConf getOption getOptions get_catalog get_catalogs
    get_config_value get_current_notificationEventId get_dataconnector_req get_dataconnectors
    get_metastore_db_uuid get_open_txns get_open_txns_req partition_name_has_valid_characters
    partition_name_to_spec partition_name_to_vals scheduled_query_poll setMetaConf cancel_delegation_token
    get_delegation_token renew_delegation_token get_all_databases get_all_functions
    get_all_materialized_view_objects_for_rewriting get_databases get_databases_req
    get_materialized_views_for_rewriting get_open_txns_info get_role_names get_table_meta
    get_table_names_by_filter get_table_objects_by_name get_table_objects_by_name_req get_tables get_all_tables
    get_tables_by_type get_tables_ext show_compact show_locks

# --- the server
ADMIN on server
    add_master_key add_token cm_recycle create_catalog alter_catalog drop_catalog find_columns_with_stats
    find_next_compact find_next_compact2 get_all_token_identifiers get_master_keys get_token hive_acid_removals
    mark_cleaned mark_compacted mark_failed mark_refused remove_master_key remove_token
    remove_compaction_metrics_data repl_tbl_writeid_state seed_txn_id setOption set_hadoop_jobid
    submit_for_cleanup update_compaction_metrics_data update_compactor_state update_master_key create_role
    drop_role
SELECT on server
    get_next_notification get_notification_events_count

# --- databases and functions
CREATE on catalog database.name database.catalogName
    create_database
CREATE on catalog createDatabaseRequest.databaseName createDatabaseRequest.catalogName
    create_database_req
ANY on database name
    get_database
ANY on database request.name request.catalogName
    get_database_req
alter database dbname db
    alter_database
alter database alterDbReq.oldDbName alterDbReq.newDb
    alter_database_req
DROP on database name
    drop_database
DROP on database req.name req.catalogName
    drop_database_req
CREATE on database func.dbName func.catName
    create_function
ALTER on database dbName
CREATE on database newFunc.dbName newFunc.catName
    alter_function
DROP on database dbName
    drop_function
ANY on database dbName
    get_function get_functions
ANY on database request.dbName request.catalogName
    get_functions_req

# --- tables
create table tbl
    create_table
create table tbl environment_context
    create_table_with_environment_context
create table tbl
ANY on tables foreignKeys[] pktable_db pktable_name catName
    create_table_with_constraints
create table request.table request.envContext
ANY on tables request.foreignKeys[] pktable_db pktable_name catName
    create_table_req
ANY on database request.table.dbName request.table.catName
    translate_table_dryrun
ANY on table dbname tbl_name
    get_table
ANY on table req.dbName req.tblName req.catName
SELECT on table req.dbName req.tblName req.catName when req.getColumnStats
    get_table_req
ANY on table db_name table_name
    get_fields get_fields_with_environment_context get_schema get_schema_with_environment_context
ANY on table req.dbName req.tblName req.catName
    get_fields_req get_schema_req
alter table dbname tbl_name . new_tbl
    alter_table alter_table_with_cascade alter_table_with_environment_context
alter table req.dbName req.tableName req.catName req.table
    alter_table_req
DROP on table dbname name
    drop_table drop_table_with_environment_context
DROP on table dropTableReq.dbName dropTableReq.tableName dropTableReq.catalogName
    drop_table_req
DELETE on table dbName tableName
    truncate_table
DELETE on table req.dbName req.tableName
    truncate_table_req
ALTER|INSERT on table dbname tbl_name catName
    update_creation_metadata
ANY on used creation_metadata.tablesUsed[]
    get_materialization_invalidation_info

# --- constraints
ALTER on tables req.checkConstraintCols[] table_db table_name catName
    add_check_constraint
ALTER on tables req.defaultConstraintCols[] table_db table_name catName
    add_default_constraint
ALTER on tables req.notNullConstraintCols[] table_db table_name catName
    add_not_null_constraint
ALTER on tables req.primaryKeyCols[] table_db table_name catName
    add_primary_key
ALTER on tables req.uniqueConstraintCols[] table_db table_name catName
    add_unique_constraint
ALTER on tables req.foreignKeyCols[] fktable_db fktable_name catName
ANY on tables req.foreignKeyCols[] pktable_db pktable_name catName
    add_foreign_key
ALTER on table req.dbname req.tablename req.catName
    drop_constraint
ANY on table request.dbName request.tblName request.catName
    get_all_table_constraints
ANY on table request.db_name request.tbl_name request.catName
    get_check_constraints get_default_constraints get_not_null_constraints get_primary_keys get_unique_constraints
ANY on table request.parent_db_name request.parent_tbl_name request.catName when request.parent_db_name
ANY on table request.foreign_db_name request.foreign_tbl_name request.catName when request.foreign_db_name
ADMIN on server unless request.parent_db_name request.foreign_db_name
    get_foreign_keys

# --- partitions
INSERT|ALTER on table new_part.dbName new_part.tableName new_part.catName
    add_partition add_partition_with_environment_context
INSERT|ALTER on tables new_parts[] dbName tableName catName
    add_partitions add_partitions_pspec
INSERT|ALTER on table request.dbName request.tblName request.catName
    add_partitions_req
INSERT|ALTER on table db_name tbl_name
    append_partition append_partition_by_name append_partition_by_name_with_environment_context
    append_partition_with_environment_context
INSERT|ALTER on table appendPartitionsReq.dbName appendPartitionsReq.tableName appendPartitionsReq.catalogName
    append_partition_req
ALTER on table db_name tbl_name
    alter_partition alter_partition_with_environment_context alter_partitions
    alter_partitions_with_environment_context rename_partition
ALTER on table req.dbName req.tableName req.catName
    alter_partitions_req rename_partition_req
DELETE|DROP on table db_name tbl_name
    drop_partition drop_partition_by_name drop_partition_by_name_with_environment_context
    drop_partition_with_environment_context
DELETE|DROP on table dropPartitionReq.dbName dropPartitionReq.tblName dropPartitionReq.catName
    drop_partition_req
DELETE|DROP on table req.dbName req.tblName req.catName
    drop_partitions_req
DELETE|DROP on table source_db source_table_name
SELECT on table source_db source_table_name
INSERT|ALTER on table dest_db dest_table_name
    exchange_partition exchange_partitions
ANY on table db_name tbl_name
    get_num_partitions_by_filter get_part_specs_by_filter get_partition get_partition_by_name get_partition_names
    get_partition_names_ps get_partition_with_auth get_partitions get_partitions_by_filter get_partitions_by_names
    get_partitions_ps get_partitions_ps_with_auth get_partitions_pspec get_partitions_with_auth
ANY on table partitionReq.dbName partitionReq.tblName partitionReq.catName
    fetch_partition_names_req
ANY on table rqst.dbname rqst.tablename
    hive_acid_partitions
ANY on table req.dbName req.tblName req.catName
    get_partition_names_ps_req get_partition_names_req get_partition_req get_partitions_by_expr
    get_partitions_by_filter_req get_partitions_ps_with_auth_req get_partitions_req get_partitions_spec_by_expr
ANY on table req.db_name req.tbl_name
SELECT on table req.db_name req.tbl_name when req.get_col_stats
    get_partitions_by_names_req
ANY on table request.dbName request.tblName request.catName
    get_partition_values get_partitions_with_specs

# --- statistics
SELECT on table db_name tbl_name
    get_partition_column_statistics get_table_column_statistics
SELECT on table request.dbName request.tblName request.catName
    get_aggr_stats_for get_partitions_statistics_req get_table_statistics_req
INSERT|UPDATE|DELETE|ALTER on table stats_obj.statsDesc.dbName stats_obj.statsDesc.tableName stats_obj.statsDesc.catName
    update_partition_column_statistics update_table_column_statistics
INSERT|UPDATE|DELETE|ALTER on tables req.colStats[] statsDesc.dbName statsDesc.tableName statsDesc.catName
    update_partition_column_statistics_req update_table_column_statistics_req
INSERT|UPDATE|DELETE|ALTER on tables request.colStats[] statsDesc.dbName statsDesc.tableName statsDesc.catName
    set_aggr_stats_for
INSERT|UPDATE|DELETE|ALTER on numbered req.tableId
    update_transaction_statistics
INSERT|UPDATE|DELETE|ALTER on table db_name tbl_name
    delete_partition_column_statistics delete_table_column_statistics
INSERT|UPDATE|DELETE|ALTER on table req.db_name req.tbl_name req.cat_name
    delete_column_statistics_req

# --- transactions: their owner's
user
ADMIN on server when rqst.replPolicy
    open_txns
own txn rqst.txnid
ADMIN on server when rqst.replPolicy
    abort_txn
own txn rqst.txn_ids[]
    abort_txns
own txn rqst.txnid
ADMIN on server when rqst.replPolicy rqst.replLastIdInfo rqst.writeEventInfos
INSERT|UPDATE|DELETE|ALTER on numbered rqst.keyValue.tableId when rqst.keyValue
    commit_txn
own txn rqst.txnid
alter table rqst.table.dbName rqst.table.tableName rqst.table.catName rqst.table unless rqst.successorId
DROP on table rqst.table.dbName rqst.table.tableName rqst.table.catName when rqst.successorId
CREATE on database rqst.table.dbName rqst.table.catName when rqst.successorId
    hive_acid_replace_table
user
lock rqst.component[]
ANY on full rqst.seen[]
INSERT|UPDATE|DELETE|ALTER|DROP on full rqst.written[]
    hive_acid_begin
own txn rqst.txnid
    hive_acid_commit_rows hive_acid_moved
own txn ids.txnid when ids.txnid
own lock ids.lockid when ids.lockid
    heartbeat
own range txns.min txns.max
    heartbeat_txn_range
own txn txnId
    get_latest_txnid_in_conflict
own txn txnId
ANY on full writeIds[]
    add_write_ids_to_min_history
own txn rqst.txnid
INSERT|UPDATE|DELETE on stored rqst.dbname rqst.tablename
    add_dynamic_partitions
own txn rqst.txnIds[]
INSERT|UPDATE|DELETE|ALTER|DROP on stored rqst.dbName rqst.tableName
ADMIN on server when rqst.replPolicy
    allocate_table_write_ids
ANY on full rqst.fullTableNames[]
    get_valid_write_ids hive_acid_pressure
ANY on stored rqst.dbName rqst.tableName
    get_max_allocated_table_write_id
ADMIN on stored rqst.dbName rqst.tableName
    seed_write_id
own txn request.txnId
    get_all_write_event_info
own txn rqst.txnId
INSERT|UPDATE|DELETE on table rqst.db rqst.table
    add_write_notification_log
own txn rqst.requestList[].txnId
INSERT|UPDATE|DELETE on table rqst.db rqst.table rqst.catalog
    add_write_notification_log_in_batch
INSERT|UPDATE|DELETE|ALTER on table rqst.dbName rqst.tableName rqst.catName
    fire_listener_event

# --- locks
own txn rqst.txnid when rqst.txnid
lock rqst.component[]
    lock
own lock rqst.lockid
own txn rqst.txnid when rqst.txnid
    check_lock
own lock rqst.lockid
    unlock
own txn txnId
INSERT|ALTER on stored dbName tableName
    get_lock_materialization_rebuild heartbeat_lock_materialization_rebuild

# --- compactions
ADMIN on stored rqst.dbname rqst.tablename
    compact compact2
compacted rqst.compactionIds[]
    abort_Compactions
ANY on stored rqst.dbname rqst.tablename
    get_latest_committed_compaction_info
ADMIN on stored rqst.dbname rqst.tablename when rqst.tablename
ADMIN on server unless rqst.tablename
    hive_acid_orphans
ANY on stored rqst.dbname rqst.tablename when rqst.tablename
own txn rqst.txnid when rqst.txnid
own lock rqst.lockid when rqst.lockid
ADMIN on server when rqst.compactionid
    hive_acid_why

# --- privileges and roles
grant privileges.privileges[]
    grant_privileges
revoke privileges.privileges[]
    revoke_privileges
grant or revoke request.requestType request.privileges.privileges[]
    grant_revoke_privileges
revoke objToRefresh
revoke grantRequest.privileges.privileges[]
    refresh_privileges
grantable role role_name
    grant_role revoke_role
grantable role request.roleName
    get_principals_in_role grant_revoke_role
self principal_name principal_type
    list_roles
self request.principal_name request.principal_type
    get_role_grants_for_principal
self principal_name principal_type or hiveObject
    list_privileges
self user_name . or hiveObject
    get_privilege_set
"""

_CHANGING = """
alter_database alter_database_req drop_catalog drop_database drop_database_req drop_role grant_privileges
grant_revoke_privileges grant_revoke_role grant_role refresh_privileges revoke_privileges revoke_role
"""
CHANGING = frozenset(_CHANGING.split())
"""The methods after which any right may be another."""

_CHANGING_TABLES = """
dbname tbl_name
    alter_table alter_table_with_cascade alter_table_with_environment_context
req.dbName req.tableName req.catName
    alter_table_req
dbname name
    drop_table drop_table_with_environment_context
dropTableReq.dbName dropTableReq.tableName dropTableReq.catalogName
    drop_table_req
"""


def needs() -> dict[str, tuple[str, ...]]:
    """What each method that is served needs, in the words above."""
    return _by_method(_NEEDS)


def changed_tables() -> dict[str, str]:
    """The methods after which the rights on one table may be others, and how they name it."""
    return {method: words for method, (words,) in _by_method(_CHANGING_TABLES).items()}


def _by_method(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    words: list[str] = []
    is_complete = False
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith(" "):
            is_complete = True
            for method in line.split():
                if method in found:
                    raise ValueError(f"{method} is there twice")
                found[method] = tuple(words)
        else:
            words, is_complete = [line] if is_complete else [*words, line], False
    return found
