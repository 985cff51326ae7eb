-- Commits a transaction (transactions.md §1.5, §1.6). Outcome:
--   committed         its locks are freed, in `freed_databases`
--   committed_before  nothing to do
--   aborted_before    nothing done
--   unknown           nothing done
--   conflict          it is aborted now, for `conflict_reason`; the other columns say what it collided with
-- Safe to repeat.
CREATE OR REPLACE FUNCTION commit_txn(committing bigint, skip_conflict_check boolean, conflict_reason text)
RETURNS TABLE (outcome text, freed_databases text[], db text, tbl text, partition text, operation text,
               commit_id bigint, other_txn bigint, other_commit_id bigint, other_operation text)
LANGUAGE plpgsql AS $$
DECLARE
    this txn;
    compaction_types CONSTANT smallint[] := '{3,5,6}';  -- COMPACTION, SOFT_DELETE, REBALANCE_COMPACTION
    changes boolean;
BEGIN
    freed_databases := '{}';
    SELECT t.* INTO this FROM txn t WHERE t.txn_id = committing FOR NO KEY UPDATE;
    IF this.state IS DISTINCT FROM 'o' THEN
        outcome := CASE this.state WHEN 'c' THEN 'committed_before' WHEN 'a' THEN 'aborted_before' ELSE 'unknown' END;
        RETURN NEXT;
        RETURN;
    END IF;
    IF this.type <> 2 THEN  -- all but READ_ONLY may have written
        SELECT bool_or(c.operation IN ('u', 'd')) INTO changes FROM txn_component c WHERE c.txn_id = committing;
        IF changes THEN
            -- Committers to a table go one by one, from the check to the end of the database transaction.
            PERFORM pg_advisory_xact_lock(key)
               FROM (SELECT DISTINCT advisory_key(1, c.db || '.' || c.tbl) AS key FROM txn_component c
                      WHERE c.txn_id = committing AND c.operation IN ('u', 'd') ORDER BY key) AS sorted;
            SELECT last_id INTO commit_id FROM txn_counter;
            IF NOT skip_conflict_check THEN
                SELECT f.* INTO db, tbl, partition, operation, other_txn, other_commit_id, other_operation
                  FROM find_write_conflict(committing, this.opened_snapshot) f;
                IF FOUND THEN
                    SELECT a.freed_databases INTO freed_databases
                      FROM abort_txns(ARRAY[committing], conflict_reason) a;
                    outcome := 'conflict';
                    RETURN NEXT;
                    RETURN;
                END IF;
            END IF;
            INSERT INTO write_set (db, tbl, partition, operation, txn_id, commit_id, committed_xid)
            SELECT c.db, c.tbl, c.partition, c.operation, committing, commit_txn.commit_id, pg_current_xact_id()
              FROM txn_component c WHERE c.txn_id = committing AND c.operation IN ('u', 'd');
        END IF;
        IF this.type = ANY (compaction_types) THEN
            -- No open may be in flight: who opens later sees the outcome, who opened before has an id up to last_id.
            SELECT last_id INTO commit_id FROM txn_counter FOR UPDATE;
            PERFORM compaction_committed(committing, commit_id);
        END IF;
        IF changes IS NOT NULL THEN
            INSERT INTO completed_component (db, tbl, partition, txn_id, write_id, update_delete, committed_at)
            SELECT c.db, c.tbl, c.partition, committing, coalesce(max(w.write_id), max(c.write_id)),
                   bool_or(c.operation <> 'i'), clock_timestamp()
              FROM txn_component c
              LEFT JOIN write_id w ON w.db = c.db AND w.tbl = c.tbl AND w.txn_id = committing
             WHERE c.txn_id = committing AND c.operation <> 'c'
             GROUP BY c.db, c.tbl, c.partition;
            DELETE FROM txn_component c WHERE c.txn_id = committing;
        END IF;
    END IF;
    freed_databases := release_locks(ARRAY[committing]);
    UPDATE txn SET state = 'c', ended_at = clock_timestamp(), ended_xid = pg_current_xact_id()
     WHERE txn_id = committing;
    outcome := 'committed';
    RETURN NEXT;
END
$$;
