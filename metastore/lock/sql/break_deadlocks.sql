-- Looks whether these lock requests wait in a circle, and breaks each circle by aborting the youngest transaction in
-- it: the one with the largest id, so that whoever looks aborts the same one. One row for each aborted transaction,
-- with the lock requests that went with it.
--
-- Requests of one lock call wait only for smaller ids. So a circle needs a transaction that waits with one request
-- while somebody waits for an earlier one of it, and it is enough to look from such transactions; most have a single
-- request, and cost one look at an index.
CREATE OR REPLACE FUNCTION break_deadlocks(lock_ids bigint[]) RETURNS TABLE (victim bigint, freed_locks bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    suspects bigint[] := ARRAY(
        SELECT DISTINCT w.txn_id FROM lock_component w
         WHERE w.lock_id = ANY (lock_ids) AND w.state = 'w' AND w.txn_id <> 0
           AND EXISTS (SELECT 1 FROM lock_component h WHERE h.txn_id = w.txn_id AND h.lock_id < w.lock_id)
         ORDER BY w.txn_id);
    suspect bigint;
    reason text;
BEGIN
    IF suspects = '{}' THEN
        RETURN;
    END IF;
    -- One at a time, to the end: what another server has broken just now is no circle any more.
    PERFORM pg_advisory_xact_lock(advisory_key(4, ''));
    FOREACH suspect IN ARRAY suspects LOOP
        SELECT max(d.waiter),
               'deadlock: transaction ' || string_agg(
                    concat(CASE WHEN d.waiter < 0 THEN 'lock ' END, abs(d.waiter), ' waits for ',
                           CASE WHEN d.waits_for < 0 THEN 'lock ' END, abs(d.waits_for), ' (',
                           CASE d.type WHEN 'r' THEN 'SHARED_READ' WHEN 'w' THEN 'SHARED_WRITE'
                                       WHEN 'x' THEN 'EXCL_WRITE' ELSE 'EXCLUSIVE' END,
                           ' on ', concat_ws('/', d.db, nullif(d.tbl, ''), nullif(d.partition, '')), ')'),
                    ', ' ORDER BY d.place)
          INTO victim, reason
          FROM find_deadlock(suspect) WITH ORDINALITY AS d (waiter, waits_for, type, db, tbl, partition, place);
        IF victim IS NOT NULL THEN
            SELECT a.freed_locks INTO freed_locks FROM abort_txns(ARRAY[victim], reason) AS a;
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;
