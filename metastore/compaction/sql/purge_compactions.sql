-- Shortens the history (transactions.md §4.11): of each table or partition and state the newest stay, as many as said;
-- failed, refused and not initiated ones go too when they are older than `timeout_ms` and something newer succeeded
-- that did as much. The newest that has been cleaned stays while transactions are open that may have needed what it
-- replaced (see add_min_history). Up to `at_most` go; returns how many did.
CREATE OR REPLACE FUNCTION purge_compactions(
    keep_succeeded integer, keep_failed integer, keep_not_initiated integer, keep_refused integer, timeout_ms bigint,
    at_most integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    purged bigint;
BEGIN
    WITH ranked AS (
        SELECT c.id, c.state, c.next_txn_id,
               row_number() OVER (PARTITION BY c.db, c.tbl, c.partition, c.state ORDER BY c.id DESC) AS age,
               c.state IN ('f', 'a', 'c')
                   AND c.ended_at < clock_timestamp() - make_interval(secs => timeout_ms / 1000.0)
                   AND EXISTS (
                        SELECT 1 FROM compaction s
                         WHERE s.db = c.db AND s.tbl = c.tbl AND s.partition IS NOT DISTINCT FROM c.partition
                           AND s.state = 's' AND s.id > c.id AND s.type IN ('a', c.type)) AS is_outdated
          FROM compaction c WHERE c.state IN ('s', 'f', 'a', 'c', 'x')
    )
    DELETE FROM compaction WHERE id = ANY (ARRAY(
        SELECT r.id FROM ranked r
         WHERE (r.is_outdated OR r.age > CASE r.state WHEN 's' THEN keep_succeeded WHEN 'f' THEN keep_failed
                                                      WHEN 'a' THEN keep_not_initiated ELSE keep_refused END)
           AND NOT (r.state = 's' AND r.age = 1
                    AND EXISTS (SELECT 1 FROM txn t WHERE t.state = 'o' AND t.txn_id <= r.next_txn_id))
         LIMIT at_most));
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
