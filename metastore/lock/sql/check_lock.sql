-- Heartbeats a lock request and grants it if nothing is in its way any more (transactions.md §3.5). Outcome: acquired,
-- waiting, lock_unknown; or txn_aborted when the lock went with `in_txn`, the transaction that the caller says it
-- belongs to; with the databases of the request. Safe to repeat.
--
-- No advisory lock is needed: whoever could be in the way has a smaller id and stands on record already.
CREATE OR REPLACE FUNCTION check_lock(checked bigint, in_txn bigint) RETURNS TABLE (outcome text, databases text[])
LANGUAGE plpgsql AS $$
DECLARE
    asked record;
    blocked record;
BEGIN
    SELECT min(l.txn_id) AS txn_id, min(l.state) AS state, array_agg(l.type ORDER BY l.component) AS types,
           array_agg(l.db ORDER BY l.component) AS dbs, array_agg(l.tbl ORDER BY l.component) AS tbls,
           array_agg(l.partition ORDER BY l.component) AS partitions
      INTO asked FROM lock_component l WHERE l.lock_id = checked;
    IF asked.state IS NULL THEN
        RETURN QUERY SELECT CASE
            WHEN EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = in_txn AND t.state = 'a') THEN 'txn_aborted'
            ELSE 'lock_unknown' END, '{}'::text[];
        RETURN;
    END IF;
    IF asked.txn_id <> 0 THEN
        UPDATE txn SET heartbeat_at = clock_timestamp(), heartbeat_count = heartbeat_count + 1
         WHERE txn_id = asked.txn_id AND state = 'o';
    ELSE
        UPDATE lock_component SET heartbeat_at = clock_timestamp() WHERE lock_id = checked;
    END IF;
    IF asked.state = 'a' THEN
        RETURN QUERY SELECT 'acquired', asked.dbs;
        RETURN;
    END IF;
    SELECT b.* INTO blocked
      FROM find_blocker(checked, asked.txn_id, asked.types, asked.dbs, asked.tbls, asked.partitions) b;
    IF FOUND THEN
        UPDATE lock_component l
           SET blocker_lock = CASE l.component WHEN blocked.component THEN blocked.blocker_lock END,
               blocker_component = CASE l.component WHEN blocked.component THEN blocked.blocker_component END
         WHERE l.lock_id = checked
           AND (l.blocker_lock, l.blocker_component) IS DISTINCT FROM
               (CASE l.component WHEN blocked.component THEN blocked.blocker_lock END,
                CASE l.component WHEN blocked.component THEN blocked.blocker_component END);
        RETURN QUERY SELECT 'waiting', asked.dbs;
        RETURN;
    END IF;
    UPDATE lock_component
       SET state = 'a', acquired_at = clock_timestamp(), blocker_lock = NULL, blocker_component = NULL
     WHERE lock_id = checked;
    -- The transaction may have ended meanwhile, taking the lock with it.
    RETURN QUERY SELECT CASE WHEN FOUND THEN 'acquired' ELSE 'lock_unknown' END, asked.dbs;
END
$$;
