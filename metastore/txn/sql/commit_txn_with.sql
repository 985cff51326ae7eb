-- Commits a transaction and, in the same database transaction, what goes with it (transactions.md §1.5):
--   policy       not null: a replay; `committing` is the other warehouse's transaction. One that has no transaction here
--                has ended before: committed_before. What it wrote is in `event_…`, not in components of its own.
--   param_…      a table parameter that exists gets a new value, by which a stream stores how far it got; one whose name
--                begins with `_meta.batch.` need not exist, and is only raised
--   repl_…       `repl.last.id` of a database, and of the table and partitions named
-- Outcomes are those of commit_txns, or, and nothing is done and the transaction still open: no_parameter (the table
-- has none of that name, or is gone), not_newer (the batch is there already), no_database, no_table. Safe to repeat.
CREATE OR REPLACE FUNCTION commit_txn_with(
    committing bigint, skip_conflict_check boolean, conflict_reason text, policy text,
    param_table_id bigint, param_key text, param_value text,
    repl_id text, repl_db text, repl_tbl text, repl_partitions text[],
    event_dbs text[], event_tbls text[], event_partitions text[], event_write_ids bigint[]
) RETURNS TABLE (
    txn_id bigint, outcome text, freed_locks bigint[], db text, tbl text, partition text, operation text,
    commit_id bigint, other_txn bigint, other_commit_id bigint, other_operation text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    target bigint := CASE WHEN policy IS NULL THEN committing ELSE repl_target(policy, committing) END;
    is_open boolean;
    durability CONSTANT text := current_setting('synchronous_commit');
BEGIN
    IF target IS NULL THEN
        txn_id := committing;
        outcome := 'committed_before';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT t.state = 'o' INTO is_open FROM txn t WHERE t.txn_id = target FOR NO KEY UPDATE;
    IF is_open THEN
        outcome := store_commit_extras(param_table_id, param_key, param_value, repl_id, repl_db, repl_tbl,
                                       repl_partitions, false);
        IF outcome <> 'ok' THEN
            txn_id := target;
            RETURN NEXT;
            RETURN;
        END IF;
        IF policy IS NOT NULL THEN
            -- The source has found no conflict: there is none to be looked for.
            DELETE FROM txn_component c WHERE c.txn_id = target;
        END IF;
    END IF;
    FOR txn_id, outcome, freed_locks, db, tbl, partition, operation, commit_id, other_txn, other_commit_id,
        other_operation IN
        SELECT d.* FROM commit_txns(ARRAY[target], ARRAY[skip_conflict_check], conflict_reason) d
    LOOP
        IF outcome = 'committed' THEN
            -- A read-only transaction alone need not be durable; what is stored here must be.
            PERFORM set_config('synchronous_commit', durability, true);
            PERFORM store_commit_extras(param_table_id, param_key, param_value, repl_id, repl_db, repl_tbl,
                                        repl_partitions, true);
            -- The source does not say what kind of write it was: the worst is assumed.
            INSERT INTO completed_component (db, tbl, partition, txn_id, write_id, update_delete, committed_at)
            SELECT e.db, e.tbl, e.partition, target, e.write_id, true, clock_timestamp()
              FROM unnest(event_dbs, event_tbls, event_partitions, event_write_ids)
                   AS e (db, tbl, partition, write_id);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
